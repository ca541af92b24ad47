"""A reader: one example per stanza, stanzas being set off by blank lines."""

from __future__ import annotations

from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The corpus in a file of stanzas, numbered from 1."""
    request = Request.of(source, request)
    stanzas = Path(source).read_text(encoding="utf-8").strip().split("\n\n")
    examples = [Example(str(i), " ".join(s.split())) for i, s in enumerate(stanzas, 1)]
    return Corpus(request.name, examples, frozenset({Field.TEXT}), split=request.split)
