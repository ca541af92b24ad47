"""Heads and MLPs that matter least are cut out, and what is left is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bertology.errors import ParameterError
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.part_masks import PartMask, part_importances
from bertology.parameters import parameter
from bertology.train.compress.method import EPOCHS, Method
from bertology.train.compress.work import Work
from bertology.train.encoded import task_of
from bertology.train.prune import shrink
from bertology.train.prune_settings import PruneSettings

_ROUNDS = 5  # in which parts go; what is left is ranked anew
_RANKING = 200  # examples that rank; more make a ranking slower, and hardly better


@dataclass(frozen=True)
class HeadsAndMlps(Method):
    """The gradients of their gates say which heads and MLPs matter least (Michel et al. 2019).

    Either the shares that stay are given, or which share of the score must be kept (`keep`): then
    other training examples than those that rank decide how far it goes, as in `bertology prune`.
    """

    summary: ClassVar[str] = "heads and MLPs that matter least are cut, the rest is trained on"
    source: ClassVar[str] = "Michel et al. 2019; Prasanna et al. 2020"

    heads: float | None = parameter(
        None, "The share of heads that stays; 0.5 if nothing is given.", minimum=0, maximum=1
    )
    mlps: float | None = parameter(
        None, "The share of MLPs that stays; all if not given.", minimum=0, maximum=1
    )
    keep: float | None = parameter(
        None, "In place of shares: which share of the score is kept before the training."
    )
    epochs: int | None = parameter(None, EPOCHS, minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep is None:
            return
        if not 0 < self.keep < 1:
            raise ParameterError("keep", self.name, "be above 0 and below 1", self.keep)
        for name in ("heads", "mlps"):
            if (value := getattr(self, name)) is not None:
                must = "be left out where keep is given, which says how far it goes"
                raise ParameterError(name, self.name, must, value)

    @property
    def share_of_heads(self) -> float | None:
        """How many heads stay; None where the score decides."""
        if self.keep is not None:
            return None
        none_said = self.heads is None and self.mlps is None
        return 0.5 if none_said else 1.0 if self.heads is None else self.heads

    def apply(self, work: Work) -> Encoder:
        """Cut, and train what is left."""
        work.encoder.require(Capability.PRUNING, Capability.HEADS, Capability.MLP)
        smaller = self._as_far_as_allowed(work) if self.keep is not None else self._to_shares(work)
        work.train_on(smaller, epochs=self.epochs)
        return smaller

    def _as_far_as_allowed(self, work: Work) -> Encoder:
        choosing = work.choosing
        ranking = max(2, min(_RANKING, len(choosing) // 5))
        found = shrink(
            work.encoder,
            choosing[:ranking],
            choosing[ranking:],
            PruneSettings(keep=self.keep, method="importance"),
            tell=work.watch.tell,
        )
        work.say(f"{found.cut.text} are cut (numbers from 0)")
        return work.around(found.encoder.model)

    def _to_shares(self, work: Work) -> Encoder:
        encoder = work.encoder
        there = PartMask.full(encoder)
        heads, mlps = self.share_of_heads, 1.0 if self.mlps is None else self.mlps
        assert heads is not None  # or the score would decide
        wanted = [
            round(share * int(np.count_nonzero(parts)))
            for share, parts in ((heads, there.heads), (mlps, there.mlps))
        ]
        mask, examples = there, work.choosing[:_RANKING]
        numbers = task_of(examples).kind == "regression"
        targets = [label if numbers else int(label) for label in examples.labels]
        for left in range(_ROUNDS, 0, -1):
            found = part_importances(encoder, examples.texts, targets, mask=mask)
            counts = [int(np.count_nonzero(parts)) for parts in (mask.heads, mask.mlps)]
            gone = [-(-(now - end) // left) for now, end in zip(counts, wanted, strict=True)]
            if any(gone):
                mask = mask.without_least(found, heads=gone[0], mlps=gone[1])
        work.say(
            f"{wanted[0]} of {int(np.count_nonzero(there.heads))} heads and {wanted[1]} of "
            f"{int(np.count_nonzero(there.mlps))} MLPs stay"
        )
        return work.around(mask.cut(encoder).model)
