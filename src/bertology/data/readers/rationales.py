"""Data in which people said why: ERASER and e-SNLI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import MissingSplitError, Request
from bertology.data.readers.csv import known_rows
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.jsonl import objects
from bertology.data.readers.labels import infer_task, parse_label
from bertology.data.readers.mentions import spaced
from bertology.data.tasks import get_task
from bertology.errors import DataError

_ERASER_FIELDS = frozenset(
    {Field.TEXT, Field.LABEL, Field.WORDS, Field.OFFSETS, Field.SENTENCES, Field.RATIONALES}
)
_HINT = (
    "Expected: annotation_id, classification, and evidences as lists of {docid, start_token, …}."
)


def read_eraser(source: str | Path, request: Request | None = None) -> Corpus:
    """ERASER (DeYoung et al. 2020): documents with a label and the words given as evidence.

    A line of a split, and the document in a file of `docs/` beside it, cut into words by white
    space and into sentences by lines:

        {"annotation_id": "negR_900.txt", "classification": "NEG", "query": "…",
         "evidences": [[{"docid": "negR_900.txt", "start_token": 40, "end_token": 43, "text":
         "…"}]]}

    RATIONALES are these words, counted in the document; spans without a word are left out. Tasks
    whose evidence lies in several documents are not read.

    The documents of a split such as val.jsonl, which stands beside the folder docs.
    """
    path, request = Path(source), Request.of(source, request)
    rows = objects(path)
    labels = [row.values.get("classification") for row in rows]
    task = request.task or infer_task(request.name, labels, pair=False, where=path.name)
    examples = []
    for row in rows:
        at = f"{path.name}, line {row.line}"
        label = parse_label(row.values.get("classification"), task, at)
        examples.append(_eraser_example(row.values, label, path.parent / "docs", at))
    return Corpus(request.name, examples, _ERASER_FIELDS, task, request.split)


def _eraser_example(row: Mapping[str, Any], label: int | float, docs: Path, at: str) -> Example:
    name = row.get("annotation_id")
    evidence = list(_evidence(row, at))
    documents = {str(one["docid"]) for one in evidence} or {str(name)}
    if not isinstance(name, str) or not name:
        raise DataError(f"{at}: there is no annotation_id.", hint=_HINT)
    if len(documents) > 1:
        raise DataError(f"{at}: its evidence lies in {len(documents)} documents; one can be read.")
    file = docs / documents.pop()
    # A name must not lead out of the folder of documents.
    if file.parent != docs or not file.is_file():
        raise DataError(f"{at}: there is no document {file.name!r:.60} in {docs}.")
    words, sentences = list[str](), list[int]()
    for _, line in numbered_lines(read_text(file)):
        if line.split():
            sentences.append(len(words))
            words += line.split()
    text, offsets = spaced(words)
    spans = sorted({_span(one, len(words), at) for one in evidence})
    spans = [(start, end) for start, end in spans if start < end]
    about = {
        "words": words,
        "offsets": offsets,
        "sentences": sentences,
        "rationales": [list(span) for span in spans],
    }
    return Example(name, text, label=label, annotations=about)


def _evidence(row: Mapping[str, Any], at: str) -> Sequence[Mapping[str, Any]]:
    groups = row.get("evidences")
    lists = isinstance(groups, list) and all(isinstance(group, list) for group in groups)
    found = [one for group in groups or () for one in group] if lists else []
    if not lists or not all(isinstance(one, dict) and "docid" in one for one in found):
        raise DataError(f"{at}: evidences are {groups!r:.60}.", hint=_HINT)
    return found


def _span(one: Mapping[str, Any], words: int, at: str) -> tuple[int, int]:
    ends = one.get("start_token"), one.get("end_token")
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in ends)
    start, end = ends
    if not whole or start is None or end is None or not 0 <= start <= end <= words:
        raise DataError(
            f"{at}: start_token and end_token must be words of the document, which has {words}, "
            f"not {start!r:.20} and {end!r:.20}."
        )
    return start, end


_E_SNLI_FIELDS = frozenset(
    {Field.TEXT, Field.TEXT_B, Field.LABEL, Field.WORDS, Field.OFFSETS, Field.RATIONALES}
)
_ENDINGS = {"train": "train", "validation": "dev", "test": "test"}
_ANNOTATORS = (1, 2, 3)
_FUNCTION_WORDS = frozenset(
    """
    a an the this that these those some any all both each every no not n't and or but if then
    because so as than is are was were be been being am has have had do does did can could will
    would may might must should 's 're 've 'll he she it they we you i him her them us me his
    its their our your my who which what where when how why in on at by for from of off to into
    onto with without about over under near while there here one just
    """.split()
)


def read_e_snli(source: str | Path, request: Request | None = None) -> Corpus:
    """e-SNLI (Camburu et al. 2018): pairs of SNLI and why people think that the label is right.

    Two forms. The tables (`esnli_dev.csv`) have the words that each annotator highlighted, between
    stars; RATIONALES are words that half of the annotators or more did:

        pairID, gold_label, Sentence1, Sentence2, Sentence1_marked_1, Sentence2_marked_1, …

    The parallel files of a split (`s1.dev`, `s2.dev`, `labels.dev`, `preproc1_expl_1.dev`, …) have
    the explanations only, as free text. There RATIONALES are words of the pair that half of the
    explanations or more mention, function words and punctuation left out. That is near to what was
    highlighted, but not the same: explanations also say things in other words.

    The pairs of a table, or of one split of a folder that has tables or parallel files.
    """
    path, request = Path(source), Request.of(source, request)
    task = request.task or get_task("mnli")
    if path.is_dir():
        ending = _ENDINGS.get(request.split or "validation", str(request.split))
        tables = sorted(path.glob(f"esnli_{ending}*.csv"))
        found = [_of_table(file) for file in tables] or [_of_files(path, ending)]
        rows = [row for some in found for row in some]
    else:
        rows = _of_table(path)
    examples = [
        _e_snli_example(name, texts, reasons, parse_label(label, task, at))
        for name, at, texts, reasons, label in rows
    ]
    return Corpus(request.name, examples, _E_SNLI_FIELDS, task, request.split)


_Row = tuple[str, str, Sequence[Sequence[str]], Sequence[Sequence[bool]], str]
"""Id, where it stands, the words of both texts, which of them are reasons, and the label."""


def _of_table(path: Path) -> list[_Row]:
    found = list[_Row]()
    wanted = ("pairID", "gold_label", "Sentence1_marked_1", "Sentence2_marked_1")
    for at, row in known_rows(path, wanted):
        texts, reasons = list[list[str]](), list[list[bool]]()
        for side in (1, 2):
            cells = [row.get(f"Sentence{side}_marked_{who}", "") for who in _ANNOTATORS]
            marked = [cell.split() for cell in cells if cell.strip()]
            words = [word.strip("*") or word for word in marked[0]] if marked else []
            if not words or len({len(one) for one in marked}) > 1:
                raise DataError(f"{at}: annotators must mark the same words of sentence {side}.")
            votes = [sum(_is_marked(one[i]) for one in marked) for i in range(len(words))]
            texts.append(words)
            reasons.append([2 * count >= len(marked) for count in votes])
        found.append((row["pairID"], at, texts, reasons, row["gold_label"]))
    return found


def _is_marked(word: str) -> bool:
    return len(word) > 2 and word.startswith("*") and word.endswith("*")


def _of_files(folder: Path, ending: str) -> list[_Row]:
    names = [f"s1.{ending}", f"s2.{ending}", f"labels.{ending}"]
    told = [f"preproc1_expl_{who}.{ending}" for who in _ANNOTATORS]
    there = [name for name in told if (folder / name).is_file()]
    for name in (*names, *([] if there else told[:1])):
        if not (folder / name).is_file():
            raise MissingSplitError(f"{folder} has neither esnli_{ending}.csv nor {name}.")
    columns = [_lines(folder / name) for name in (*names, *there)]
    if len({len(column) for column in columns}) > 1:
        sizes = ", ".join(f"{n} {len(c)}" for n, c in zip([*names, *there], columns, strict=True))
        raise DataError(f"{folder}: the files must have as many lines each ({sizes}).")
    found = list[_Row]()
    for i, (first, second, label, *explained) in enumerate(zip(*columns, strict=True)):
        at = f"{names[0]}, line {i + 1}"
        texts = [first.split(), second.split()]
        if not all(texts):
            raise DataError(f"{at}: a sentence is empty.")
        said = [set(one.lower().split()) for one in explained]
        reasons = [[_is_mentioned(word, said) for word in words] for words in texts]
        found.append((str(i), at, texts, reasons, label.strip()))
    return found


def _is_mentioned(word: str, said: Sequence[set[str]]) -> bool:
    plain = word.lower()
    if plain in _FUNCTION_WORDS or not any(c.isalnum() for c in plain):
        return False
    return 2 * sum(plain in one for one in said) >= len(said)


def _lines(path: Path) -> list[str]:
    found = [line for _, line in numbered_lines(read_text(path))]
    return found if found[-1].strip() else found[:-1]


def _e_snli_example(
    name: str,
    texts: Sequence[Sequence[str]],
    reasons: Sequence[Sequence[bool]],
    label: int | float,
) -> Example:
    (first, one), (second, other) = (spaced(words) for words in texts)
    beyond = len(first) + 1
    both = [*reasons[0], *reasons[1]]
    about = {
        "words": [*texts[0], *texts[1]],
        "offsets": [*one, *((a + beyond, b + beyond) for a, b in other)],
        "rationales": [[i, i + 1] for i, chosen in enumerate(both) if chosen],
    }
    return Example(name, first, second, label=label, annotations=about)
