"""WinoBias: sentences about two people by their occupations, and a pronoun for one of them.

Lines are like `1 [The developer] argued with the designer because [he] did not like the design.`:
what is in brackets is one person. The other occupation is found by the published lists of both, and
is a mention of its own. GROUP is the name of the file up to its first dot, such as
`pro_stereotyped_type1`: whether the pronoun suits the stereotype, and whether syntax decides (type
2) or only what is known of the world (type 1).
"""

from __future__ import annotations

import re
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import MENTIONED, of_characters
from bertology.data.readers.request import Request
from bertology.data.words.alignment import Span
from bertology.errors import DataError

_NUMBER = re.compile(r"\s*\d+\s+")
_OCCUPATIONS = (
    "driver supervisor janitor cook mover laborer construction_worker chief developer carpenter "
    "manager lawyer farmer salesperson physician guard analyst mechanic sheriff CEO attendant "
    "cashier teacher nurse assistant secretary auditor cleaner receptionist clerk counselor "
    "designer hairdresser writer housekeeper baker accountant editor librarian tailor"
).split()
_OTHER = re.compile(
    rf"\b(?:(?:the|an?)\s+)?(?:{'|'.join(o.replace('_', ' ') for o in _OCCUPATIONS)})s?\b",
    re.IGNORECASE,
)


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a file such as pro_stereotyped_type1.txt.dev."""
    path, request = Path(source), Request.of(source, request)
    group = path.name.partition(".")[0]
    examples = [
        _example(line, str(number), group, f"{path.name}, line {number}")
        for number, line in numbered_lines(read_text(path))
        if line.strip()
    ]
    fields = MENTIONED | {Field.GROUP}
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _example(line: str, name: str, group: str, at: str) -> Example:
    written = _NUMBER.sub("", line, count=1).strip()
    text, mentions = _without_brackets(written, at)
    if len(mentions) < 2:
        raise DataError(
            f"{at}: two or more mentions of one person must be in [brackets], not {len(mentions)}.",
            hint="Such as: 1 [The cook] thanked the guard because [she] was grateful.",
        )
    others = [m.span() for m in _OTHER.finditer(text)]
    apart = [[span] for span in others if not any(_overlap(span, m) for m in mentions)]
    return of_characters(name, text, [mentions, *apart], at, more={"group": group})


def _without_brackets(written: str, at: str) -> tuple[str, list[Span]]:
    text, mentions, begun = "", list[Span](), -1
    for character in written:
        if character == "[" and begun < 0:
            begun = len(text)
        elif character == "]" and 0 <= begun < len(text):
            mentions.append((begun, len(text)))
            begun = -1
        elif character in "[]":
            raise DataError(f"{at}: the brackets are not in pairs: {written!r:.60}.")
        else:
            text += character
    if begun >= 0:
        raise DataError(f"{at}: a bracket is never closed: {written!r:.60}.")
    return text, mentions


def _overlap(a: Span, b: Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]
