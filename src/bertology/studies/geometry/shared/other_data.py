"""Corpora beside the one that a study is run on: texts to learn from, or contexts of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus


def other_corpus(corpus: Corpus, name: str, *, split: str, limit: int, seed: int) -> Corpus:
    """Another corpus by name, from the same folder of downloaded data."""
    from bertology.data.loading import load_corpus

    root = corpus.origin.get("root")
    return load_corpus(name, split=split, limit=limit, seed=seed, root=root)
