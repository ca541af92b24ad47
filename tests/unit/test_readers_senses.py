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


SEMCOR = """<contextfile concordance="brown">
<context filename="br-a01" paras="yes">
<p pnum="1">
<s snum="1">
<wf cmd="done" rdf="group" lemma="group" wnsn="1" lexsn="1:03:00::" pn="group">Grand_Jury</wf>
<wf cmd="done" pos="VB" lemma="say" wnsn="1" lexsn="2:32:00::">said</wf>
<punc>``</punc>
<wf cmd="done" pos="NN" lemma="year" wnsn="2;1" lexsn="1:28:02::;1:28:01::">years</wf>
<wf cmd="done" pos="VB" lemma="take_place" wnsn="1" lexsn="2:30:00::">took_place</wf>
<punc>''</punc>
<wf cmd="ignore" pos="TO">_to</wf>
<punc>&amp;</punc>
<wf cmd=done pos=JJ lemma=recent wnsn=2 lexsn=5:00:00:past:00>recent</wf>
<punc>.</punc>
</s>
<s snum="2">
</s>
</p>
</context>
</contextfile>
"""


def test_semcor(tmp_path: Path) -> None:
    (one,) = load_corpus(write(tmp_path, SEMCOR, "br-a01"), reader="semcor")
    assert one.text == 'Grand Jury said "years took place" to & recent.'
    words = one.get("words")
    assert [one.text[a:b] for a, b in one.get("offsets")] == words
    assert [(words[a:b], *rest) for a, b, *rest in one.get("senses")] == [
        (["said"], "say.v", "say%2:32:00::"),
        (["years"], "year.n", "year%1:28:02::"),
        (["took", "place"], "take_place.v", "take_place%2:30:00::"),
        (["recent"], "recent.a", "recent%5:00:00:past:00"),
    ]
    assert (one.id, one.get("group")) == ("br-a01-0", "br-a01")


def test_documents_of_semcor_are_held_out(tmp_path: Path) -> None:
    for i in range(20):
        write(tmp_path, SEMCOR, f"br-{i}")
    write(tmp_path, "", "br-empty")
    parts = {s: load_corpus(tmp_path, reader="semcor", split=s) for s in ("train", "test", "all")}
    groups = {s: {e.get("group") for e in part} for s, part in parts.items()}
    assert not groups["train"] & groups["test"]
    assert groups["train"] | groups["test"] == groups["all"]
    assert len(groups["all"]) == 20
    assert 1 <= len(groups["test"]) < len(groups["train"])
    (tmp_path / "br-0").unlink()
    again = {e.get("group") for e in load_corpus(tmp_path, reader="semcor", split="test")}
    assert again == groups["test"] - {"br-0"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</s>\n<s", "<s", "line 15: a sentence begins inside the one of line 4"),
        ('<s snum="1">\n', "", "line 4: a word stands outside"),
        ("<punc>.</punc>\n</s>", "</s>\n</s>", "line 15: a sentence ends here"),
        ("lexsn=5:00:00:past:00", "lexsn=past", "no sense of WordNet"),
        ("<punc>.</punc>", "<punc>.", "no line of SemCor"),
        ("<punc>.</punc>", "<punc>_</punc>", "line 14: the word is empty"),
        ("</s>\n</p>\n</context>\n</contextfile>", "", "the sentence of line 16 never ends"),
        (SEMCOR, "<contextfile>\n", "has no sentence"),
        (SEMCOR, "", "is empty"),
    ],
)
def test_wrong_semcor(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path, SEMCOR.replace(old, new), "a"), reader="semcor")
