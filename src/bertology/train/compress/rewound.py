"""Pruning by size with rewinding: weights go, and the others are trained again from the start."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import WeightMask, weights_held_at_zero
from bertology.model.weight_ranks import without_smallest
from bertology.parameters import parameter
from bertology.train.compress.method import ONE_EPOCH, ZEROS, Method
from bertology.train.compress.work import Work
from bertology.train.encoded import learnable
from bertology.train.prune_weights import weights_text
from bertology.train.starts import STARTS, begin


@dataclass(frozen=True)
class Rewound(Method):
    """In each round some of the smallest weights go, and what is left is trained again.

    `to=start` trains it from the weights before fine-tuning (a lottery ticket, Frankle and Carbin
    2019; Chen et al. 2020), which must be known; `to=rate` goes on from the trained weights, with
    the learning rate of a whole training (Renda et al. 2020). Weights that are gone stay zero.
    """

    summary: ClassVar[str] = "the smallest weights go in rounds, the others are trained again"
    source: ClassVar[str] = "Frankle and Carbin 2019; Chen et al. 2020; Renda et al. 2020"

    weights: float = parameter(0.5, "The share of weights that stays.", minimum=0.001, maximum=1)
    rounds: int = parameter(3, "In how many rounds they go.", minimum=1)
    to: str = parameter("start", "start: weights before fine-tuning. rate: trained weights.",
                        choices=("start", "rate"))  # fmt: skip
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)

    @property
    def begins(self) -> bool:
        """With the original, whatever came before."""
        return True

    @property
    def uses_base(self) -> bool:
        """The weights before fine-tuning."""
        return True

    @property
    def kind(self) -> str:
        """Zeros, which another training would fill."""
        return ZEROS

    def apply(self, work: Work) -> Encoder:
        """Prune and train, round by round."""
        if self.to == "start" and work.base is None:
            raise CapabilityError(
                f"The model that {work.teacher.name!r} was fine-tuned from is not known, or not "
                "here, so nothing can be trained from its weights.",
                hint="Give the pre-trained model itself, which is then fine-tuned first; or go on "
                "from the trained weights: rewound:to=rate",
            )
        now, mask = work.encoder, WeightMask.full(work.encoder.model)
        less = 1 - self.weights ** (1 / self.rounds)
        for number in range(1, self.rounds + 1):
            if less:
                mask = without_smallest(now.model, mask, share=less)
            now = self._begun(work, now)
            held = _Held(mask)
            work.train_on(now, name=f"round-{number}", epochs=self.epochs, held=held)
        work.say(f"{weights_text(mask.share)} of all matrices but the embeddings are zero")
        return now

    def _begun(self, work: Work, now: Encoder) -> Encoder:
        if self.to == "rate":
            return now
        assert work.base is not None
        fresh = begin(work.base, learnable(work.train), STARTS["pretrained"], seed=work.seed)
        for name in ("id2label", "label2id", "problem_type"):
            setattr(fresh.config, name, getattr(work.teacher.config, name, None))
        return work.around(fresh)


@dataclass(frozen=True)
class _Held:
    """Keeps the weights that are gone at zero during a training."""

    mask: WeightMask

    def __call__(self, model: Any) -> AbstractContextManager[None]:
        return weights_held_at_zero(model, self.mask)
