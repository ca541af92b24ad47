"""Token substitution: some tokens of a text are others in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bertology.errors import CapabilityError
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way


@dataclass(frozen=True)
class Substitution(Way):
    """Trained: everything; each token is another one with probability `share`, in training only.

    The other one is any token that is not special (`by=random`), or the mask token (`by=mask`);
    special tokens stay.
    """

    summary: ClassVar[str] = "in training, some tokens are replaced by others"

    share: float = parameter(0.1, "Probability for each token.", minimum=0, maximum=1)
    by: str = parameter("random", "random, or mask.", choices=("random", "mask"))

    def prepare(self, lesson: Lesson) -> None:
        """The mask token must be there if it is asked for."""
        if self.by == "mask" and getattr(lesson.tokenizer, "mask_token_id", None) is None:
            raise CapabilityError(
                "The tokenizer has no mask token.", hint="Use substitution:by=random."
            )

    def inputs(self, lesson: Lesson, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The batch with other tokens in it."""
        ids = inputs["input_ids"]
        # (vocabulary,): which tokens stay as they are
        rows = lesson.model.get_input_embeddings().weight.shape[0]
        special = torch.zeros(rows, dtype=torch.bool, device=ids.device)
        special[torch.tensor(lesson.tokenizer.all_special_ids, device=ids.device)] = True
        special[len(lesson.tokenizer) :] = True  # embeddings that stand for no token
        chosen = (torch.rand(ids.shape, device=ids.device) < self.share) & ~special[ids]
        if self.by == "mask":
            others = torch.full_like(ids, int(lesson.tokenizer.mask_token_id))  # type: ignore[attr-defined]
        else:
            # A uniform draw among ordinary tokens: the n-th of them, by counting.
            ordinary = (~special).cumsum(0)
            drawn = torch.rand(ids.shape, device=ids.device) * ordinary[-1]
            others = torch.searchsorted(ordinary, drawn.floor().to(ordinary.dtype) + 1)
        return {**inputs, "input_ids": torch.where(chosen, others, ids)}
