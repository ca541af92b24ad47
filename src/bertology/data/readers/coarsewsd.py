"""CoarseWSD-20 (Loureiro et al. 2021): 20 nouns in sentences of Wikipedia, with coarse senses.

A folder has a folder for each noun: `classes_map.txt` names the senses by number, `train.data.txt`
has a sentence on each line after the position of the noun and a tab, `train.gold.txt` the number of
its sense; `test` likewise. The out-of-domain sentences are one file:

    club	club_club	5	Could an employee 's garden club take over … ?

In it, four sentences have "president" for the noun "chair". SENSES have the noun ("club.n") and the
name of its sense ("club", "nightclub", "club_(weapon)"), GROUP is the noun.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.csv import tab_separated
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.jsonl import whole
from bertology.data.readers.mentions import spaced
from bertology.data.readers.request import MissingSplitError, Request
from bertology.errors import DataError

_FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS, Field.SENSES, Field.GROUP})
_MAP = "classes_map.txt"


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """One split of a folder of nouns, of one of them, or the sentences of a .tsv file."""
    path, request = Path(source), Request.of(source, request)
    if path.is_file():
        examples = list(_of_table(path))
    else:
        examples = list(_of_folder(path, request.split or "train"))
    return Corpus(request.name, examples, _FIELDS, split=request.split)


def _of_folder(path: Path, split: str) -> Iterator[Example]:
    nouns = [path] if (path / _MAP).is_file() else sorted(f.parent for f in path.glob(f"*/{_MAP}"))
    if not nouns:
        raise DataError(
            f"{path} has no folder with a {_MAP}.",
            hint="Expected a folder for each noun, as in CoarseWSD-20.",
        )
    for noun in nouns:
        data, gold = (noun / f"{split}.{kind}.txt" for kind in ("data", "gold"))
        for file in (data, gold):
            if not file.is_file():
                raise MissingSplitError(f"{noun} has no file {file.name} (split {split!r}).")
        yield from _of_noun(noun, data, gold)


def _of_noun(noun: Path, data: Path, gold: Path) -> Iterator[Example]:
    senses = whole(noun / _MAP)
    if not isinstance(senses, dict) or not all(isinstance(name, str) for name in senses.values()):
        raise DataError(f"{noun.name}/{_MAP} must map numbers to the names of senses.")
    lines, numbers = (_lines(file) for file in (data, gold))
    if len(lines) != len(numbers):
        raise DataError(
            f"{noun.name}: {data.name} has {len(lines)} sentences and {gold.name} {len(numbers)}."
        )
    for i, (line, number) in enumerate(zip(lines, numbers, strict=True), start=1):
        at = f"{noun.name}/{data.name}, line {i}"
        place, _, text = line.partition("\t")
        if number.strip() not in senses:
            raise DataError(f"{at}: its sense {number.strip()!r:.20} is not in {_MAP}.")
        sense = senses[number.strip()]
        yield _example(f"{noun.name}-{i - 1}", noun.name, sense, place, text, at)


def _lines(file: Path) -> list[str]:
    found = [line for _, line in numbered_lines(read_text(file))]
    return found if found[-1].strip() else found[:-1]


def _of_table(path: Path) -> Iterator[Example]:
    for i, (line, cells) in enumerate(tab_separated(path)):
        at = f"{path.name}, line {line}"
        if len(cells) != 4:
            raise DataError(
                f"{at}: {len(cells)} cells where 4 are wanted.",
                hint="Expected, with tabs between: noun, sense, position of the noun, sentence.",
            )
        noun, sense, place, text = cells
        yield _example(f"{noun}-{i}", noun, sense, place, text, at)


def _example(name: str, noun: str, sense: str, place: str, text: str, at: str) -> Example:
    # Positions count what any white space separates; a few sentences have two spaces, or others.
    words = text.split()
    target = int(place) if place.isascii() and place.isdigit() and len(place) < 9 else -1
    if not 0 <= target < len(words):
        raise DataError(
            f"{at}: {place!r:.20} is no position of a word, and there are {len(words)} words.",
            hint="Expected: the position from 0, a tab, the sentence.",
        )
    written, offsets = spaced(words)
    short = sense.removeprefix(f"{noun}_")
    if not noun or not short:
        raise DataError(f"{at}: the sense is {sense!r:.40}, which has no name.")
    about = {
        "words": words,
        "offsets": offsets,
        "senses": [[target, target + 1, f"{noun}.n", short]],
        "group": noun,
    }
    return Example(name, written, annotations=about)
