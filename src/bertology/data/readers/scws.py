"""Stanford's contextual word similarities: how similar are two words, each in its context?

Cells with tabs between: the number, both words each with its part of speech, both contexts, in
which the word stands between <b> and </b>, the mean rating, and ten ratings:

    1	Brazil	n	nut	n	… in <b> Brazil </b> , …	… a <b> nut </b> …	1.1	0.0	…

LABEL is the mean rating, TARGETS are the marked words, GROUP says which parts of speech they have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers.csv import tab_separated
from bertology.data.readers.request import Request
from bertology.data.words.alignment import Span, split_words
from bertology.data.words.targets import TARGETED, targeted_pair
from bertology.errors import DataError

_TASK = Task("scws", "regression", (), ("spearman", "pearson"), pair=True)
_RATINGS = 10
_CELLS = 8 + _RATINGS


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The pairs of a file of ratings."""
    path, request = Path(source), Request.of(source, request)
    rows = tab_separated(path)
    examples = [_example(cells, f"{path.name}, line {number}") for number, cells in rows]
    seen: dict[str, int] = {}
    for (number, _), example in zip(rows, examples, strict=True):
        if (first := seen.setdefault(example.id, number)) != number:
            at = f"{path.name}, line {number}"
            raise DataError(f"{at}: the number {example.id!r:.20} is that of line {first} as well.")
    fields = TARGETED | {Field.LABEL, Field.GROUP}
    return Corpus(request.name, examples, fields, request.task or _TASK, request.split)


def _example(cells: Sequence[str], at: str) -> Example:
    if len(cells) != _CELLS:
        raise DataError(
            f"{at}: {len(cells)} cells where {_CELLS} are wanted.",
            hint="Expected, with tabs between: number, word, part of speech, word, part of speech, "
            "context, context, mean rating, ten ratings.",
        )
    name, _, one, _, other, *contexts = (cell.strip() for cell in cells[:7])
    mean, *_ = (_number(cell, at) for cell in cells[7:])
    read = [_marked(context, f"{at}, context {i}") for i, context in enumerate(contexts, start=1)]
    (text, spans, target), (text_b, spans_b, target_b) = read
    return targeted_pair(
        name,
        (text, text_b),
        [spans, spans_b],
        [target, target_b],
        label=mean,
        more={"group": f"{one}-{other}"},
    )


def _number(cell: str, at: str) -> float:
    try:
        found = float(cell)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise DataError(f"{at}: the rating {cell!r:.40} is not a number.")
    return found


def _marked(context: str, at: str) -> tuple[str, list[Span], Span]:
    """The context without its marks, its words, and which of them were marked."""
    before, opened, rest = context.partition("<b>")
    inside, closed, after = rest.partition("</b>")
    if not opened or not closed or not inside.strip() or "<b>" in inside + after:
        raise DataError(f"{at}: one word must stand between <b> and </b>.")
    parts = [" ".join(part.split()) for part in (before, inside, after)]
    text = " ".join(part for part in parts if part)
    first = len(parts[0].split())
    return text, split_words(text), (first, first + len(parts[1].split()))
