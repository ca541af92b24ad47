"""A word in a blank, with its log-probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder


@dataclass(frozen=True)
class Prediction:
    """A word in a blank. The log-probability of several pieces is the sum of theirs."""

    word: str
    log_probability: float
    pieces: tuple[str, ...]

    @classmethod
    def of(cls, encoder: Encoder, token: int, log_probability: float) -> Prediction:
        """A piece of the vocabulary."""
        piece = str(encoder.tokenizer.convert_ids_to_tokens(token))
        return cls(encoder.tokenizer.decode([token]).strip(), log_probability, (piece,))

    @property
    def probability(self) -> float:
        return math.exp(self.log_probability)
