"""The bundled grammar as a reader: nothing is read, the sentences are made on the spot."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from bertology.data.corpus import Corpus
from bertology.data.readers.request import Request


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The corpus of that name; `size`, `seed` and the grammar's switches are its options."""
    request = Request.of(source, request)
    options = dict(request.options)
    options |= {"size": options.get("size"), "seed": options.get("seed", 0)}
    options["split"] = request.split or "validation"
    return _made(request.name, json.dumps(options, sort_keys=True, default=repr))


@lru_cache(maxsize=32)
def _made(name: str, options: str) -> Corpus:
    """A study that trains asks for the same corpus with each of its parts, a page with each study.

    All corpora of the grammar together take some 150 MB; making one takes a second.
    """
    # Imported here: the lexicon need not be built to read a CSV file.
    made: Corpus = import_module("bertology.data.grammar").corpus(name, **json.loads(options))
    return made
