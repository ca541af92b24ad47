"""Siamese: the two texts of a pair are read apart, and then compared (Reimers et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import CapabilityError
from bertology.model.added_parts import SIAMESE, add_part
from bertology.model.siamese import PairTokens
from bertology.train.encoded import task_of
from bertology.train.ways.way import Lesson, Way


@dataclass(frozen=True)
class Siamese(Way):
    """Trained: everything but the pooler, and the map from what is compared to one state.

    The head reads that state in place of the pooler's, which is not trained. With the start
    `frozen-features`: that map and the head alone.
    """

    summary: ClassVar[str] = "both texts of a pair are read apart, and then compared"
    order: ClassVar[int] = 4
    recordable: ClassVar[bool] = False  # whether a recording gives the same was not tried
    against: ClassVar[dict[str, str]] = {
        "layer_choice": "each says what the head reads",
        "layer_mix": "each says what the head reads",
        "adversarial": "it moves the words of both texts together",
    }

    def prepare(self, lesson: Lesson) -> None:
        """Let the encoder read them apart."""
        tokens = pair_tokens(lesson, self.name)
        add_part(lesson.model, SIAMESE, lesson.generator(self), **tokens._asdict())
        for name, weight in lesson.model.base_model.named_parameters():
            if name.startswith("pooler."):
                weight.requires_grad_(False)


def pair_tokens(lesson: Lesson, way: str) -> PairTokens:
    """The tokens by which rows are taken apart, if they are pairs and have such tokens."""
    if not task_of(lesson.train).pair:
        raise CapabilityError(
            f"The way {way!r} is for pairs of texts; {lesson.train.name!r} has single ones.",
            hint="Take a task of pairs, such as mnli, rte or mrpc.",
        )
    tokenizer = lesson.tokenizer
    wanted = ("cls_token_id", "sep_token_id", "pad_token_id")
    found = [getattr(tokenizer, name, None) for name in wanted]
    if None in found or tokenizer.padding_side != "right":
        raise CapabilityError(
            f"The way {way!r} needs a tokenizer that begins a row with a token for its class, ends "
            "texts with separators, and pads on the right.",
            hint="BERT, RoBERTa, ELECTRA, DistilBERT and their like have one.",
        )
    return PairTokens(*(int(token) for token in found if token is not None))
