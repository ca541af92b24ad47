"""Minimal pairs in two published layouts: the good sentence is TEXT, the bad one CONTRAST.

- CLAMS and Marvin & Linzen: lines `True<TAB>sentence`, `False<TAB>sentence` in turn;
- Linzen, Dupoux & Goldberg as filtered by Gulordava et al.: `x.text` beside `x.gold`, whose
  columns are the verb's position, its right form, its wrong form and the number of attractors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.request import Request
from bertology.errors import DataError

__all__ = ["read"]

_END = "<eos>"


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The pairs of a True/False file, or of a .text file with its .gold beside it."""
    path, request = Path(source), Request.of(source, request)
    fields = {Field.TEXT, Field.CONTRAST, Field.GROUP}
    if path.suffix == ".text":
        examples = list(_agreement(path))
        fields |= {Field.WORDS, Field.VERB}
    else:
        examples = list(_judged(path))
    return Corpus(
        name=request.name, examples=examples, fields=frozenset(fields), split=request.split
    )


def _lines(path: Path) -> list[tuple[int, str]]:
    return [(n, line) for n, line in numbered_lines(read_text(path)) if line.strip()]


def _judged(path: Path) -> Iterator[Example]:
    lines = _lines(path)
    if len(lines) % 2:
        raise DataError(f"{path.name}: {len(lines)} lines are no pairs.")
    for i in range(0, len(lines), 2):
        number, line = lines[i]
        good, _, text = line.partition("\t")
        bad, _, contrast = lines[i + 1][1].partition("\t")
        if (good, bad) != ("True", "False") or not text or not contrast:
            raise DataError(
                f"{path.name}, line {number}: 'True<TAB>sentence' and then "
                f"'False<TAB>sentence' are wanted, not {line[:60]!r}."
            )
        yield Example(
            id=str(i // 2),
            text=text.strip(),
            annotations={"contrast": contrast.strip(), "group": path.stem},
        )


def _agreement(path: Path) -> Iterator[Example]:
    gold_path = path.with_suffix(".gold")
    sentences, gold = _lines(path), _lines(gold_path)
    if len(sentences) != len(gold):
        raise DataError(
            f"{path.name} has {len(sentences)} sentences and {gold_path.name} {len(gold)} rows."
        )
    for i, ((_, sentence), (number, row)) in enumerate(zip(sentences, gold, strict=True)):
        at = f"{gold_path.name}, line {number}"
        words = [w for w in sentence.split() if w != _END]
        cells = row.split("\t")
        if len(cells) != 4 or not (cells[0].isdigit() and cells[3].isdigit()):
            raise DataError(f"{at}: position, right form, wrong form and attractors are wanted.")
        verb, right, wrong = int(cells[0]), cells[1], cells[2]
        if verb >= len(words) or words[verb].lower() != right.lower():
            raise DataError(f"{at}: word {verb} of the sentence is not {right!r}.")
        if words[verb].islower():
            wrong = wrong.lower()  # the published forms have a few stray capitals
        yield Example(
            id=str(i),
            text=" ".join(words),
            annotations={
                "contrast": " ".join([*words[:verb], wrong, *words[verb + 1 :]]),
                "group": f"{cells[3]} attractors",
                "words": words,
                "verb": verb,
                "attractors": int(cells[3]),
            },
        )
