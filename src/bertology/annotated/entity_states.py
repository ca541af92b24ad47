"""States of what a sentence is about, and of the rest of it, after each layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.data.corpus import Example
    from bertology.model.encoder import Encoder


def entity_places(example: Example) -> list[tuple[int, int]]:
    """Where the entity stands in the text, as a whole word; a DataError if it does not."""
    entity = str(example.get("entity"))
    found = re.finditer(rf"(?<!\w){re.escape(entity)}(?!\w)", example.text, re.IGNORECASE)
    places = [match.span() for match in found]
    if not places:
        raise DataError(
            f"The entity {entity!r} of example {example.id!r} is not a word of its text "
            f"{example.text!r}.",
            hint="ENTITY says what a sentence is about, as it is written there.",
        )
    return places


def entity_states(
    encoder: Encoder,
    examples: Sequence[Example],
    *,
    batch_tokens: int = 4096,
    advance: Callable[[int], None] = lambda examples: None,
) -> NDArray[np.float16]:
    """(layers + 1, examples, 2, width): the mean over the entity's pieces, and over all others.

    Layer 0 is what enters the first one. Special tokens do not count. NaN where one of both has no
    piece that the model read.
    """
    from bertology.annotated.words import require_offsets
    from bertology.model.reducers.unit_states import UnitStates

    require_offsets(encoder)
    layers = encoder.shape.layers + 1
    found = np.full((layers, len(examples), 2, encoder.shape.hidden), np.nan, np.float16)
    texts = [example.text for example in examples]
    for batch in encoder.batches(texts, tokens_per_batch=batch_tokens):
        units, rows = [], []
        for row, encoding in zip(batch.indices, batch.encodings or (), strict=True):
            start, end = entity_places(examples[row])[0]
            pieces = [p for p, special in enumerate(encoding.special_tokens_mask) if not special]
            own = [
                p for p in pieces if encoding.offsets[p][0] < end and encoding.offsets[p][1] > start
            ]
            rest = [p for p in pieces if p not in set(own)]
            both = bool(own and rest)
            units.append([own, rest] if both else [])
            rows += [row] if both else []

        def take(layer: int, states: Tensor, rows: list[int] = rows) -> None:
            pairs = states.reshape(len(rows), 2, -1).half().cpu().numpy()
            found[layer, rows] = pairs

        if rows:
            reducer = UnitStates(batch, units, take)
            encoder.run(batch, reduce={"embeddings": reducer, "layer.*.residual": reducer})
        advance(len(batch))
    return found
