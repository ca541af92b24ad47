"""Ranges of the inputs of maps, learnt from training examples without training."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from bertology.model.compressed.input_ranges import watched_ranges
from bertology.model.compressed.integer_product import Range
from bertology.train.compress.work import Work
from bertology.train.encoded import encode
from bertology.train.fit import row_limit

_TEXTS = 256  # after some tens of texts, the furthest inputs hardly move
_ROWS = 32  # in one pass


def learn_ranges(work: Work) -> dict[str, Range]:
    """For each map, between which numbers its inputs lie; no text that scores the model is read."""
    encoder, examples = work.encoder, work.choosing[:_TEXTS]
    limit = row_limit(encoder.model, encoder.tokenizer, work.settings.max_length)
    rows = encode(examples, encoder.tokenizer, limit)

    def batches() -> Iterator[dict[str, Tensor]]:
        for start in range(0, len(rows), _ROWS):
            chosen = range(start, min(start + _ROWS, len(rows)))
            yield rows.batch(list(chosen), encoder.device)[0]

    work.say(f"ranges of inputs learnt from {len(rows):,} training examples")
    return watched_ranges(encoder.model, batches())
