"""The bundled grammar as a reader: nothing is read, the sentences are made on the spot."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from bertology.data.corpus import Corpus
from bertology.data.readers.request import Request

__all__ = ["read"]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The corpus of that name; `size`, `seed` and the grammar's switches are its options."""
    request = Request.of(source, request)
    options = dict(request.options)
    size, seed = options.pop("size", None), options.pop("seed", 0)
    # Imported here: the lexicon need not be built to read a CSV file.
    generator = import_module("bertology.data.grammar")
    made: Corpus = generator.corpus(
        request.name, split=request.split or "validation", size=size, seed=seed, **options
    )
    return made
