"""MED (Yanaka et al. 2019): pairs that differ in how specific a phrase is; GROUP is the direction.

Gold labels are `entailment` and `neutral`, and the latter stands for everything else: so the
classes are those of HANS. `phenomena` are the other tags, `origin` is `crowd` or `paper`.
"""

from __future__ import annotations

from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.request import Request
from bertology.data.readers.rows import known_rows
from bertology.data.tasks import get_task
from bertology.errors import DataError

_COLUMNS = ("index", "genre", "sentence1", "sentence2", "gold_label")
_DIRECTIONS = {
    "upward_monotone": "upward", "downward_monotone": "downward", "non_monotone": "neither",
}  # fmt: skip
_LABELS = ("entailment", "neutral")


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The pairs of the file."""
    path, request = Path(source), Request.of(source, request)
    examples = []
    for at, cells in known_rows(path, _COLUMNS):
        origin, *tags = cells["genre"].split(":")
        directions = [_DIRECTIONS[tag] for tag in tags if tag in _DIRECTIONS]
        if len(directions) != 1 or cells["gold_label"] not in _LABELS:
            raise DataError(
                f"{at}: one direction and a label are wanted, not {cells['genre']!r:.60} and "
                f"{cells['gold_label']!r:.20}.",
                hint=f"Directions: {', '.join(_DIRECTIONS)}. Labels: {', '.join(_LABELS)}.",
            )
        about = {
            "group": directions[0],
            "origin": origin,
            "phenomena": tuple(tag for tag in tags if tag not in _DIRECTIONS),
        }
        label = _LABELS.index(cells["gold_label"])
        pair = cells["sentence1"].strip(), cells["sentence2"].strip()
        examples.append(Example(cells["index"], *pair, label, about))
    return Corpus(
        name=request.name,
        examples=examples,
        fields=frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.GROUP}),
        task=request.task or get_task("hans"),
        split=request.split,
    )
