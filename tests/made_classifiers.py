"""Fresh classifiers with a tokenizer of their texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bertology.train.fresh import Architecture, fresh_bert, fresh_tokenizer


def fresh_classifier(
    texts: Iterable[str | tuple[str, str]],
    size: Architecture,
    *,
    labels: Sequence[str],
    seed: int = 0,
) -> tuple[Any, Any]:
    """A fresh BERT with a head for these labels (none: for a number), and its tokenizer."""
    made = fresh_tokenizer(texts, vocab_size=size.vocab_size, max_length=size.max_length)
    names = list(labels) or ["score"]
    model = fresh_bert(
        "BertForSequenceClassification",
        size,
        made,
        seed=seed,
        id2label=dict(enumerate(names)),
        label2id={name: i for i, name in enumerate(names)},
    )
    return model, made
