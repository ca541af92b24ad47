"""Verb Physics (Forbes and Choi 2017): which of two objects is larger, heavier, stronger, … ?

TEXT and TEXT_B are the objects, GROUP the attribute, and LABEL says how the first compares with the
second. What most annotators could not decide is left out.
"""

from __future__ import annotations

from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers.request import Request
from bertology.data.readers.rows import known_rows
from bertology.errors import DataError

_ATTRIBUTES = ("size", "weight", "strength", "rigidness", "speed")
_LABELS = {"-1": 0, "0": 1, "1": 2}
_UNDECIDED = "-42"
_TASK = Task("verb-physics", "classification", ("less", "similar", "more"), pair=True)


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The decided comparisons of one file."""
    path, request = Path(source), Request.of(source, request)
    examples = []
    columns = ("obj1", "obj2", *(f"{name}-maj" for name in _ATTRIBUTES))
    for number, (at, cells) in enumerate(known_rows(path, columns)):
        for attribute in _ATTRIBUTES:
            found = cells[f"{attribute}-maj"]
            if found == _UNDECIDED:
                continue
            if found not in _LABELS:
                raise DataError(
                    f"{at}: {attribute}-maj must be -1, 0, 1 or -42, not {found!r:.20}."
                )
            about = {"group": attribute, "item": str(number)}
            pair = cells["obj1"], cells["obj2"]
            examples.append(Example(f"{number}-{attribute}", *pair, _LABELS[found], about))
    return Corpus(
        name=request.name,
        examples=examples,
        fields=frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.GROUP, Field.ITEM}),
        task=request.task or _TASK,
        split=request.split,
    )
