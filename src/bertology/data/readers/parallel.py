"""Texts that say the same in two languages: sentence pairs of Tatoeba, and words that are aligned.

Codes of languages are the two-letter ones of `data/languages.py`, else the three letters that the
files have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.languages import languages
from bertology.data.readers import MissingSplitError, Request
from bertology.data.readers.annotations import check_annotations
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import spaced
from bertology.errors import DataError

_PAIR = re.compile(r"tatoeba\.([a-z]{3}-[a-z]{3})\.([a-z]{3})")
_CODES = re.compile(r"([a-z]{2})([a-z]{2})")
_LINK = re.compile(r"([1-9]\d*)([-p])([1-9]\d*)")
SURE, POSSIBLE = "sure", "possible"


def read_tatoeba(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a folder of files `tatoeba.deu-eng.deu` and `tatoeba.deu-eng.eng`.

    Each sentence is an example; the two of a pair, which are the same line of two files, share
    their ITEM (`deu-eng/17`), and all of two languages their GROUP (`deu-eng`).
    """
    folder, request = Path(source), Request.of(source, request)
    files = {m.groups(): p for p in sorted(folder.iterdir()) if (m := _PAIR.fullmatch(p.name))}
    if not files:
        raise MissingSplitError(f"{folder} has no file such as tatoeba.deu-eng.deu.")
    two_letters = {one.iso3: code for code, one in languages().items()}
    examples = []
    for pair in sorted({pair for pair, _ in files}):
        sides = {code: _lines(files, pair, code) for code in pair.split("-")}
        if len({len(lines) for lines in sides.values()}) > 1:
            counts = ", ".join(f"{len(lines)} of {code}" for code, lines in sides.items())
            raise DataError(f"The files of {pair} must have as many lines each; found {counts}.")
        for code, lines in sides.items():
            language = two_letters.get(code, code)
            for number, text in lines:
                item = f"{pair}/{number}"
                about = {"language": language, "item": item, "group": pair}
                examples.append(Example(f"{language}/{item}", text, annotations=about))
    fields = frozenset({Field.TEXT, Field.LANGUAGE, Field.ITEM, Field.GROUP})
    return Corpus(request.name, examples, fields, split=request.split)


def _lines(files: dict[tuple[str, ...], Path], pair: str, code: str) -> list[tuple[int, str]]:
    path = files.get((pair, code))
    if path is None:
        raise DataError(f"The file tatoeba.{pair}.{code} is missing beside the other of its pair.")
    found = [(number, line.strip()) for number, line in numbered_lines(read_text(path))]
    while found and not found[-1][1]:
        found.pop()
    if empty := [number for number, line in found if not line]:
        raise DataError(f"{path.name}, line {empty[0]} is empty.", hint="A line is a sentence.")
    return found


def read_word_alignments(source: str | Path, request: Request | None = None) -> Corpus:
    """Pairs of sentences, and which words of them people aligned: `deen.src-tgt`, `deen.gold`.

    A line of the first file is two sentences, their words between spaces, `|||` between them; a
    line of the second has `1-2` for a sure link of word 1 to word 2 and `1p2` for a possible one,
    counted from 1. WORDS and OFFSETS are those of both texts, numbered through; ALIGNMENT has
    [word, word of the other text, sure or possible], both counted from 0 in their own text. A word
    that is nothing but a wide space is written `_`. The two languages are told by the file's name.
    """
    path, request = Path(source), Request.of(source, request)
    codes = _CODES.fullmatch(path.name.partition(".")[0])
    if codes is None:
        raise DataError(
            f"{path.name} does not begin with the codes of its two languages.",
            hint="Call it deen.src-tgt for German and English, with deen.gold beside it.",
        )
    gold = path.with_name(f"{codes[0]}.gold")
    if not gold.is_file():
        raise DataError(f"{gold.name}, which has the links, is missing beside {path.name}.")
    links = dict(numbered_lines(read_text(gold)))
    examples = list(_aligned(path, links, gold.name, (codes[1], codes[2])))
    missing = [number for number in range(1, len(examples) + 1) if number not in links]
    rest = [number for number, line in links.items() if number > len(examples) and line.strip()]
    if missing or rest:
        raise DataError(f"{path.name} and {gold.name} must have as many lines each.")
    names = "text text_b words offsets alignment language language_b item group"
    fields = frozenset(map(Field, names.split()))
    return Corpus(request.name, examples, fields, split=request.split)


def _aligned(
    path: Path, links: dict[int, str], gold: str, codes: tuple[str, str]
) -> Iterator[Example]:
    pair = "-".join(codes)
    for number, line in numbered_lines(read_text(path)):
        if not line.strip():
            continue
        at = f"{path.name}, line {number}"
        sides = [[w if w.strip() else "_" for w in s.split(" ") if w] for s in line.split("|||")]
        if len(sides) != 2 or not all(sides):
            raise DataError(f"{at}: expected the words of two sentences, with ||| between them.")
        (first, one), (second, other) = map(spaced, sides)
        beyond = len(first) + 1
        alignment = list[tuple[int, int, str]]()
        for link in links.get(number, "").split():
            found = _LINK.fullmatch(link)
            if found is None:
                raise DataError(
                    f"{gold}, line {number}: {link!r:.20} is no link.",
                    hint="Expected 1-2 (sure) or 1p2 (possible), counted from 1.",
                )
            kind = SURE if found[2] == "-" else POSSIBLE
            alignment.append((int(found[1]) - 1, int(found[3]) - 1, kind))
        about = {
            "words": [*sides[0], *sides[1]],
            "offsets": [*one, *((a + beyond, b + beyond) for a, b in other)],
            "alignment": [list(link) for link in alignment],
            "language": codes[0],
            "language_b": codes[1],
            "item": f"{pair}/{number}",
            "group": pair,
        }
        check_annotations(about, [first, second], at)
        outside = [a for a in alignment if a[0] >= len(sides[0]) or a[1] >= len(sides[1])]
        if outside:
            raise DataError(
                f"{gold}, line {number}: a link names word {outside[0][0] + 1} and word "
                f"{outside[0][1] + 1} of {len(sides[0])} and {len(sides[1])}."
            )
        yield Example(f"{number}", first, second, annotations=about)
