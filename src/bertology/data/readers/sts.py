"""Semantic textual similarity, SemEval 2012 to 2016: pairs of sentences with a score from 0 to 5.

Either cells with tabs between on each line, `score, sentence, sentence`, or the published files,
`STS.input.NAME.txt` with both sentences and `STS.gs.NAME.txt` beside it with the scores. From 2015
on only some pairs have a score; the others are left out. GROUP is the name of the file, which says
where the sentences are from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.request import Request
from bertology.errors import DataError
from bertology.plain_files import read_utf8

_FIELDS = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.GROUP})
_TASK = Task("sts", "regression", (), ("pearson", "spearman"), pair=True)
_INPUT, _GOLD = "STS.input.", "STS.gs."
_LOWEST, _HIGHEST = 0.0, 5.0


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The scored pairs of one file."""
    path, request = Path(source), Request.of(source, request)
    published = path.name.startswith(_INPUT)
    group = path.stem.removeprefix(_INPUT).removesuffix(".test").removesuffix(".train")
    rows = _with_gold(path) if published else _rows(path, 3)
    examples = []
    for number, (written, text, text_b) in rows:
        at = f"{path.name}, line {number}"
        if not written:
            continue
        if not text or not text_b:
            raise DataError(f"{at}: a sentence is empty.")
        score = _score(written, at)
        examples.append(Example(str(number), text, text_b, score, {"group": group}))
    if not examples:
        raise DataError(f"{path.name} has no pair with a score.")
    return Corpus(request.name, examples, _FIELDS, request.task or _TASK, request.split)


def _rows(path: Path, fewest: int) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line; some published lines have further ones, such as where it is from."""
    for number, line in numbered_lines(read_text(path)):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < fewest:
            names = "score, sentence, sentence" if fewest == 3 else "sentence, sentence"
            raise DataError(
                f"{path.name}, line {number}: {len(cells)} cells where {fewest} are wanted.",
                hint=f"Expected, with tabs between: {names}.",
            )
        yield number, cells[:fewest]


def _with_gold(path: Path) -> Iterator[tuple[int, list[str]]]:
    gold = path.with_name(path.name.replace(_INPUT, _GOLD, 1))
    if not gold.is_file():
        raise DataError(f"{path.name}: the scores should be beside it, in {gold.name}.")
    scores = [line.strip() for _, line in numbered_lines(read_utf8(gold))]
    pairs = list(_rows(path, 2))
    # The last line may end without a break, and pairs at the end may be without a score.
    if any(scores[pairs[-1][0] :]):
        raise DataError(f"{gold.name} has more scores than {path.name} has pairs.")
    for number, texts in pairs:
        yield number, [scores[number - 1] if number <= len(scores) else "", *texts]


def _score(written: str, at: str) -> float:
    try:
        found = float(written)
    except ValueError:
        found = math.nan
    if not _LOWEST <= found <= _HIGHEST:
        raise DataError(f"{at}: the score must be a number from 0 to 5, not {written!r:.40}.")
    return found
