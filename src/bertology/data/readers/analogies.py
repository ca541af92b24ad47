"""Analogies in the form of Google's questions-words.txt: a is to b as c is to d.

    : capital-common-countries
    Athens Greece Baghdad Iraq

A line that begins with a colon names the section of those after it. WORDS are the four words, the
GROUP is the section.
"""

from __future__ import annotations

from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.files import numbered_lines, read_text
from bertology.errors import DataError

_FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.GROUP})


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The questions of a file."""
    path, request = Path(source), Request.of(source, request)
    examples, section = list[Example](), ""
    for number, line in numbered_lines(read_text(path)):
        words = line.split()
        if not words:
            continue
        at = f"{path.name}, line {number}"
        if words[0].startswith(":"):
            section = " ".join(words).removeprefix(":").strip()
            if not section:
                raise DataError(f"{at}: the section has no name.")
        elif len(words) != 4:
            raise DataError(
                f"{at}: {len(words)} words where four are wanted.",
                hint="Expected: a b c d, as in Athens Greece Baghdad Iraq; or a section, : name.",
            )
        elif not section:
            raise DataError(
                f"{at}: this question comes before the first section.",
                hint="A section is a line such as “: capitals”.",
            )
        else:
            about = {"words": words, "group": section}
            examples.append(Example(str(number), " ".join(words), annotations=about))
    if not examples:
        raise DataError(f"{path.name} has sections and no questions.")
    return Corpus(request.name, examples, _FIELDS, split=request.split)
