"""The objectives of the literature by name, each as the stages of a recipe.

`mlm-nsp` is BERT's own, with masks drawn anew in every pass. Those that change the masking change
nothing else; those that drop the second segment are to be compared with `no-nsp`, and
`no-sentence-loss` with `mlm-nsp`, whose rows it has.
"""

from __future__ import annotations

from bertology.errors import UnknownNameError
from bertology.train.pretrain.config import Masking, Objective, Stage

_ALONE = ("mlm",)
_FULL = "full-sentences"


def _masked(masking: Masking) -> tuple[Stage, ...]:
    return (Stage(Objective(masking=masking)),)


def _of(pairing: str, *losses: str, masking: Masking | None = None) -> tuple[Stage, ...]:
    return (Stage(Objective(pairing, masking or Masking(), losses)),)


OBJECTIVES: dict[str, tuple[Stage, ...]] = {
    "mlm-nsp": (Stage(Objective()),),  # Devlin et al. 2019
    "static": _masked(Masking(copies=1)),
    "same-rows": (Stage(Objective(cuts=1)),),  # as static, but for its masks
    "static-10": _masked(Masking(copies=10)),  # as BERT's own preparation of text did it
    "no-sentence-loss": _of("nsp", "mlm"),  # BERT's rows, and nothing asked of their parts
    "no-nsp": _of(_FULL, "mlm"),  # Liu et al. 2019
    "whole-word": _masked(Masking(units="words")),
    "ngram": _masked(Masking(units="ngrams")),  # phrases, where nobody marked them
    "span": _masked(Masking(units="spans")),
    "span-boundary": _of(_FULL, "mlm", "boundary", masking=Masking(units="spans")),  # Joshi 2020
    "unk-mask": _masked(Masking(token="unk")),  # Clinchant et al. 2019
    "sop": _of("sop", "mlm", "sentence"),  # Lan et al. 2020
    "three-way": _of("three-way", "mlm", "sentence"),  # Wang et al. 2019
    "stream-subsampled": _of("stream", "mlm", masking=Masking(subsample=1e-3)),  # Lample 2019
    "permutation": _of(_FULL, "permutation"),  # Yang et al. 2019
    "ngram-order": _of(_FULL, "mlm", "order"),  # Wang et al. 2019
    "replaced": _of(_FULL, "replaced"),  # Clark et al. 2020
    # Sun et al. 2019: tasks join one after the other, and the earlier ones go on.
    "continual": (
        Stage(Objective(_FULL, losses=_ALONE)),
        Stage(Objective("sop", losses=("mlm", "sentence")), begins=1 / 3),
        Stage(Objective(_FULL, losses=("mlm", "order")), begins=2 / 3),
    ),
}


def find_objective(name: str) -> tuple[Stage, ...]:
    """The stages of the objective of this name."""
    try:
        return OBJECTIVES[name]
    except KeyError:
        raise UnknownNameError("objective", name, OBJECTIVES) from None
