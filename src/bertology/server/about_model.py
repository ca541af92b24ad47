"""What the page is told of the model: its shape, what it can do, and what to begin with."""

from __future__ import annotations

from bertology.server.reading import NEXT, ModelReader
from bertology.server.searching import offered
from bertology.server.sentences import CHARACTERS, most_tokens
from bertology.server.task_examples import first_examples


def about_model(reader: ModelReader) -> dict[str, object]:
    """The model, what it can do, and the sentences to begin with."""
    encoder = reader.encoder
    shape, main = encoder.shape, encoder.family.main_stack
    gone = [
        [layer, head]
        for (stack, layer), heads in sorted(encoder.numbering.removed.items())
        for head in heads
        if stack == main
    ]
    hows = (["uniform"] if reader.shows_maps else []) + (
        ["zero", "mean"] if "heads" in encoder.capabilities else []
    )
    return {
        "name": encoder.name,
        "family": encoder.family.title,
        "layers": shape.layers,
        "heads": shape.heads,
        "hidden": shape.hidden,
        "parameters": encoder.parameters,
        "vocabulary": int(encoder.config.vocab_size),
        "limits": {"characters": CHARACTERS, "tokens": most_tokens(encoder)},
        "can": {
            "maps": reader.shows_maps,
            "masked": reader.fills,
            "classes": reader.labels is not None,
            "words": bool(encoder.tokenizer.is_fast),
        },
        "value": reader.gives_value,
        "labels": None if reader.labels is None else list(reader.labels),
        "asks_next": reader.labels is NEXT,
        "mask_token": encoder.tokenizer.mask_token,
        "hows": hows,
        "gone": gone,
        **offered(),
        "examples": [
            {"text": text, "pair": pair} for text, pair in first_examples(pairs=reader.takes_pairs)
        ],
    }
