"""GAP: a pronoun and two names in a passage of Wikipedia, and which of them it stands for.

The name that the pronoun stands for is in its cluster; the other name, and both where it is
neither, are mentions of their own. Other mentions of the passage are not annotated.
"""

from __future__ import annotations

from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.csv import tab_separated
from bertology.data.readers.mentions import MENTIONED, of_characters
from bertology.data.readers.request import Request
from bertology.data.words.alignment import Span
from bertology.errors import DataError

_COLUMNS = (
    "ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset",
    "B-coref", "URL",
)  # fmt: skip
_FEMININE = ("she", "her", "hers")
_SAID = {"true": True, "false": False}


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The passages of a GAP file; GROUP is the pronoun's gender."""
    path, request = Path(source), Request.of(source, request)
    (_, header), *rows = tab_separated(path)
    if tuple(header) != _COLUMNS:
        raise DataError(
            f"{path.name} is no GAP file: its first line is {header!r:.80}.",
            hint=f"Expected columns, separated by tabs: {', '.join(_COLUMNS)}.",
        )
    examples = []
    for number, cells in rows:
        at = f"{path.name}, line {number}"
        if len(cells) != len(_COLUMNS):
            raise DataError(f"{at}: {len(cells)} cells where {len(_COLUMNS)} columns are.")
        examples.append(_example(dict(zip(_COLUMNS, cells, strict=True)), at))
    fields = MENTIONED | {Field.GROUP}
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _example(row: dict[str, str], at: str) -> Example:
    pronoun, *names = (_mention(row, which, at) for which in ("Pronoun", "A", "B"))
    together, apart = [pronoun], []
    for which, name in zip("AB", names, strict=True):
        said = row[f"{which}-coref"].strip().lower()
        if said not in _SAID:
            raise DataError(f"{at}: {which}-coref must be TRUE or FALSE, not {said!r:.40}.")
        if _SAID[said]:
            together.append(name)
        else:
            apart.append([name])
    gender = "feminine" if row["Pronoun"].lower() in _FEMININE else "masculine"
    clusters = [sorted(together), *apart]
    return of_characters(row["ID"], row["Text"], clusters, at, more={"group": gender})


def _mention(row: dict[str, str], which: str, at: str) -> Span:
    text, written, offset = row["Text"], row[which], row[f"{which}-offset"]
    start = int(offset) if offset.isascii() and offset.isdigit() and len(offset) < 9 else -1
    if start < 0 or not written.strip() or not text.startswith(written, start):
        raise DataError(
            f"{at}: {which} {written!r:.40} does not stand at character {offset!r:.20} of the text."
        )
    return start, start + len(written)
