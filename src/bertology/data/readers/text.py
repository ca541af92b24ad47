"""Plain text, one example per line; blank lines are left out."""

from __future__ import annotations

import re
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.files import numbered_lines, read_text
from bertology.errors import DataError, ParameterError


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The corpus in a text file. Its examples are named by their line numbers."""
    path, request = Path(source), Request.of(source, request)
    skip = _pattern(request.options["skip"]) if "skip" in request.options else None
    examples = [
        Example(id=str(number), text=line.strip())
        for number, line in numbered_lines(read_text(path))
        if line.strip() and not (skip and skip.search(line))
    ]
    if not examples:
        raise DataError(
            f"{path.name} has no lines left after {skip and skip.pattern!r} is skipped."
        )
    return Corpus(
        name=request.name,
        examples=examples,
        fields=frozenset({Field.TEXT}),
        task=None,
        split=request.split,
    )


def _pattern(given: object) -> re.Pattern[str]:
    try:
        return re.compile(str(given))
    except re.error as error:
        raise ParameterError("skip", "the text reader", f"be a pattern ({error})", given) from None
