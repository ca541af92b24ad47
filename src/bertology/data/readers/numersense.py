"""NumerSense (Lin et al. 2020): sentences in which a number word is hidden; TEXT, tab, ANSWER."""

from __future__ import annotations

from pathlib import Path

from bertology.data.clozes import with_mask
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.csv import tab_separated
from bertology.data.readers.request import Request
from bertology.errors import DataError

NUMBER_WORDS = (
    "no", "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip
"""The answers that NumerSense allows; CANDIDATES of every sentence."""


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a file; GROUP is the number."""
    path, request = Path(source), Request.of(source, request)
    examples = []
    for number, cells in tab_separated(path):
        at = f"{path.name}, line {number}"
        if len(cells) != 2:
            raise DataError(f"{at}: a sentence and its number are wanted, separated by a tab.")
        answer = cells[1].strip()
        if answer not in NUMBER_WORDS:
            known = ", ".join(NUMBER_WORDS)
            raise DataError(f"{at}: {answer!r:.20} is not among the answers.", hint=f"{known}.")
        about = {"answer": [answer], "candidates": NUMBER_WORDS, "group": answer}
        examples.append(Example(str(number), with_mask(cells[0], at), annotations=about))
    fields = frozenset({Field.TEXT, Field.ANSWER, Field.CANDIDATES, Field.GROUP})
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)
