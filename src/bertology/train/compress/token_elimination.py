"""PoWER-BERT: tokens that are attended to least go, layer after layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bertology.model.compressed.eliminated_tokens import eliminate
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import EPOCHS, FORM, Method
from bertology.train.compress.work import Work
from bertology.train.encoded import encode
from bertology.train.fit import row_limit

_USUAL = 95  # percentile of the lengths of texts that counts as the length


@dataclass(frozen=True)
class TokenElimination(Method):
    """Each layer passes on fewer tokens, and the model is trained on with that.

    How many falls in a line, from the length of long texts (the 95th percentile of the training
    data) to a share of it after the last layer. In the paper the numbers are learnt; here they are
    given, so that the cost is known before. Shorter texts lose less.
    """

    summary: ClassVar[str] = "layers pass on fewer and fewer tokens, trained on with that"
    source: ClassVar[str] = "Goyal et al. 2020"
    against: ClassVar[dict[str, str]] = {
        "token_elimination": "it was done already",
        "factorised": "layers that are one cannot pass on different numbers of tokens",
    }

    keep: float = parameter(
        0.25, "The share of tokens that is left after the last layer.", minimum=0.001, maximum=1
    )
    epochs: int | None = parameter(None, EPOCHS, minimum=0)

    @property
    def kind(self) -> str:
        """Other parts."""
        return FORM

    def apply(self, work: Work) -> Encoder:
        """Leave out tokens, and train on."""
        encoder = work.encoder
        limit = row_limit(encoder.model, encoder.tokenizer, work.settings.max_length)
        lengths = encode(work.choosing, encoder.tokenizer, limit).lengths
        longest = float(np.percentile(lengths, _USUAL))
        if self.keep == 1:  # nothing goes, of whatever text
            longest = limit or max(lengths)
        left = numbers_left(round(longest), self.keep, encoder.shape.layers)
        work.say(f"layers pass on at most {', '.join(map(str, left))} tokens")
        found = work.around(eliminate(encoder.model, left))
        work.train_on(found, epochs=self.epochs)
        return found


def numbers_left(length: int, share: float, layers: int) -> list[int]:
    """Tokens after each layer: in a line from `length` to a share of it."""
    last = share * length
    ends = [length + (last - length) * (layer + 1) / layers for layer in range(layers)]
    return [max(1, round(end)) for end in ends]
