"""Senses, targets and similarities of words: what is read, and files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertology.data import Field, load_corpus
from bertology.errors import DataError

SENSED = {
    "text": "The bank of the Rhine.",
    "words": ["The", "bank", "of", "the", "Rhine", "."],
    "senses": [[1, 2, "bank.n", "river"]],
}
PAIRED = {"text": "A bat flew.", "text_b": "He swung his bat.", "label": "no"}


def write(folder: Path, content: str, name: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return file


def lines(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_senses_and_targets_of_your_own(tmp_path: Path) -> None:
    (sensed,) = load_corpus(write(tmp_path, lines(SENSED), "a.jsonl"))
    assert sensed.get("senses") == [[1, 2, "bank.n", "river"]]
    rows = [{**PAIRED, "targets": [[1, 2], [3, 4]]}] * 2
    corpus = load_corpus(write(tmp_path, lines(*rows), "b.jsonl"))
    assert Field.TARGETS in corpus.fields
    assert corpus[0].get("targets") == [[1, 2], [3, 4]]


def test_senses_and_targets_in_cells(tmp_path: Path) -> None:
    table = 'text\twords\tsenses\nIt rang .\tIt rang .\t[[1, 2, "ring.v", "sound"]]\n'
    (sensed,) = load_corpus(write(tmp_path, table, "a.tsv"))
    assert sensed.get("senses") == [[1, 2, "ring.v", "sound"]]
    table = 'text,text_b,score,targets\nA bat.,My bat.,2.5,"[[1, 2], [1, 2]]"\n'
    (pair,) = load_corpus(write(tmp_path, table, "b.csv"))
    assert (pair.label, pair.get("targets")) == (2.5, [[1, 2], [1, 2]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (SENSED | {"senses": [[1, 1, "bank.n", "river"]]}, "a word at least"),
        (SENSED | {"senses": [[1, 2, "bank.n"]]}, "lemma, sense"),
        (SENSED | {"senses": [[1, 2, "bank.n", 3]]}, "lemma, sense"),
        (SENSED | {"senses": [[5, 7, "bank.n", "river"]]}, "senses names the word 6"),
        (SENSED | {"targets": [[1, 2], [2, 3]]}, "2 targets for 1 texts"),
        (PAIRED | {"targets": [[1, 2]]}, "1 targets for 2 texts"),
        (PAIRED | {"targets": [[1, 2], [3, 5]]}, "outside text 2, which has 4 words"),
        (PAIRED | {"targets": [[1, 2], [2, 2]]}, "a word at least"),
        (PAIRED | {"targets": [1, 2]}, "one for each text"),
        (PAIRED | {"targets": [[1, 2], [1, 2]], "words": ["A"]}, "no offsets"),
    ],
)
def test_wrong_senses_and_targets(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path, lines(row), "a.jsonl"))


def test_cells_that_are_no_spans(tmp_path: Path) -> None:
    table = "text\ttext_b\ttargets\nA bat\tMy bat\t1 2 1 2\n"
    with pytest.raises(DataError, match=r"a.tsv, line 2: targets must be written as in JSON"):
        load_corpus(write(tmp_path, table, "a.tsv"))
