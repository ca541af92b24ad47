"""Minimal pairs in two published layouts: the good sentence is TEXT, the bad one CONTRAST.

- CLAMS and Marvin & Linzen: lines `True<TAB>sentence`, `False<TAB>sentence` in turn. Its English
  sentences are made by templates, so that noun phrases can be told: SUBJECT is that of the verb, or
  the antecedent of the reflexive, `critical` the word in which the two sentences differ, and
  `distractors` are the heads of the other noun phrases;
- Linzen, Dupoux & Goldberg as filtered by Gulordava et al.: `x.text` beside `x.gold`, whose
  columns are the verb's position, its right form, its wrong form and the number of attractors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.files import numbered_lines, read_text
from bertology.errors import DataError

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
        fields |= {Field.WORDS, Field.SUBJECT}
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
            annotations={
                "contrast": contrast.strip(),
                "group": path.stem,
                **_phrases(text.split(), contrast.split(), path.stem),
            },
        )


def _phrases(words: list[str], bad: list[str], group: str) -> dict[str, Any]:
    """Words, where the sentences part, and the nouns of English templates; else None."""
    apart = [i for i, (a, b) in enumerate(zip(words, bad, strict=False)) if a != b]
    one = len(words) == len(bad) and len(apart) == 1
    found: dict[str, Any] = {"words": words, "subject": None}
    nouns = [] if "npi" in group.split("_") else _english_nouns(words)
    before = [n for n in nouns if one and n < apart[0]]
    if before:
        # In these templates the critical word is in a clause of its own, after the first noun.
        inner = "within" in group or "sent_comp" in group
        subject = before[-1] if inner else before[0]
        others = [n for n in nouns if n != subject]
        found |= {"subject": subject, "critical": apart[0], "distractors": others}
    return found


def _english_nouns(words: list[str]) -> list[int]:
    """The word after "the"; "the taxi driver" and "to the side of" are all that need care."""
    after = [i + 1 for i, word in enumerate(words[:-1]) if word == "the"]
    nouns = [i + 1 if words[i] == "taxi" else i for i in after if words[i] != "side"]
    return [i for i in nouns if i < len(words)]


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
