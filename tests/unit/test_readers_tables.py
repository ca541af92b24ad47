"""CSV, TSV, JSONL, JSON and plain text: what is read, and what is said when it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertology.data import Field, load_corpus
from bertology.data.readers import READERS, csv, jsonl, text
from bertology.data.readers.labels import infer_task, parse_label
from bertology.data.tasks import TASKS
from bertology.errors import DataError, ParameterError, UnknownNameError


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_csv_with_named_columns(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", 'first,second,gold\n"a, ""b""\nc",d,yes\ne,f,no\n')
    corpus = load_corpus(file, text="first", text_b="second", label="gold")
    assert corpus[0].text == 'a, "b"\nc'
    assert corpus.labels == [1, 0]
    assert corpus.task is not None
    assert corpus.task.labels == ("no", "yes")
    assert corpus.task.pair
    assert corpus.fields == {Field.TEXT, Field.TEXT_B, Field.LABEL}


def test_usual_column_names_are_found(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "premise,hypothesis,label,id\na,b,0,x\nc,d,2,y\n")
    corpus = load_corpus(file, task="mnli")
    assert [(e.id, e.text, e.text_b, e.label) for e in corpus] == [
        ("x", "a", "b", 0),
        ("y", "c", "d", 2),
    ]


def test_quotes_in_tsv_are_ordinary_characters(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", '\ufefftext\tlabel\r\n" unbalanced\t1\r\nb\u2028c\t0\r\n')
    corpus = csv.read(file)
    assert [e.text for e in corpus] == ['" unbalanced', "b\u2028c"]
    assert corpus.name == "a"


def test_no_header(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "x\t1\nz\t0\n")
    assert [e.text for e in load_corpus(file, header=False, text="0", label="1")] == ["x", "z"]
    named = load_corpus(file, header=["text", "label"])
    assert named.labels == [1, 0]


def test_labels_in_a_given_order(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "text,label\nx,pos\ny,neg\n")
    corpus = load_corpus(file, labels="pos,neg")
    assert corpus.labels == [0, 1]


def test_jsonl_carries_annotations(tmp_path: Path) -> None:
    rows = [
        {"words": ["A", "b"], "pos": ["DET", "NOUN"], "heads": [1, -1], "tense": "past"},
        {"words": ["C"], "pos": ["VERB"], "heads": [-1], "frame": "Motion"},
    ]
    file = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    corpus = jsonl.read(file)
    # tense and frame are not everywhere, so the corpus does not promise them
    assert corpus.fields == {Field.TEXT, Field.WORDS, Field.POS, Field.HEADS}
    assert corpus[0].text == "A b"
    assert corpus[1].get("heads") == [-1]


def test_json_mapping_and_list(tmp_path: Path) -> None:
    mapping = {"7": {"text_a": "a", "text_b": "b", "label": "0"}}
    file = write(tmp_path / "a.json", json.dumps(mapping))
    corpus = load_corpus(file)
    assert (corpus[0].id, corpus[0].text, corpus[0].text_b, corpus[0].label) == ("7", "a", "b", 0)
    write(tmp_path / "b.json", json.dumps([{"text": "x"}]))
    assert Field.LABEL not in load_corpus(tmp_path / "b.json").fields
    write(tmp_path / "c.json", '{"text": "x"}\n{"text": "y"}\n')
    assert len(load_corpus(tmp_path / "c.json")) == 2


def test_text_lines(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", " = Heading = \n\n one line \r\ntwo\x85still two\n")
    corpus = text.read(file)
    assert [e.text for e in corpus] == ["= Heading =", "one line", "two\x85still two"]
    assert [e.id for e in corpus] == ["1", "3", "4"]
    assert len(load_corpus(file, skip="^ =")) == 2


def test_one_file_per_split(tmp_path: Path) -> None:
    write(tmp_path / "my-train.csv", "text\na\n")
    write(tmp_path / "my-dev.csv", "text\nb\n")
    assert load_corpus(tmp_path)[0].text == "b"
    assert load_corpus(tmp_path, split="train")[0].text == "a"
    with pytest.raises(DataError, match=r"no file for the split 'test'.*\n.*train"):
        load_corpus(tmp_path, split="test")


def test_other_data_are_looked_for_where_was_said(tmp_path: Path) -> None:
    """Also beside a file, or beside what is made on the spot: studies take `root` from there."""
    (tmp_path / "mine.csv").write_text("text,label\nup,yes\ndown,no\n")
    for name, more in (
        (str(tmp_path / "mine.csv"), {}),
        ("grammar-heuristics", {"limit": 60, "only": "subsequence"}),
    ):
        corpus = load_corpus(name, root=tmp_path, **more)  # type: ignore[arg-type]
        assert corpus.origin["root"] == str(tmp_path)
        assert load_corpus(**corpus.origin).fingerprint == corpus.fingerprint
        assert "root" not in load_corpus(name, **more).origin  # type: ignore[arg-type]


def test_origin_loads_the_same_again(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "s,y\n" + "".join(f"t{i},{i % 3}\n" for i in range(30)))
    corpus = load_corpus(file, text="s", label="y", limit=7, seed=3)
    again = load_corpus(**json.loads(json.dumps(corpus.origin)))
    assert len(again) == 7
    assert again.fingerprint == corpus.fingerprint


BROKEN = {
    "missing column": ("a.csv", "sentense,label\nx,1\n", {"text": "sentence"}, "'sentense'"),
    "columns are listed": ("a.csv", "foo,bar\nx,1\n", {"text": "quux"}, "foo, bar"),
    "no text column": ("a.csv", "foo,bar\nx,1\n", {}, "text='foo'"),
    "no text in JSON": ("a.jsonl", '{"foo": 1}\n', {}, "Its columns: foo"),
    "empty file": ("a.csv", "", {}, "is empty"),
    "blank file": ("a.txt", "\n \n", {}, "is empty"),
    "header only": ("a.csv", "text,label\n", {}, "no rows"),
    "bad UTF-8": ("a.tsv", b"text\tlabel\ncaf\xe9\t1\n", {}, "0xe9 in line 2"),
    "missing label": ("a.csv", "text,label\nx,1\ny,\n", {}, "line 3: the label is missing"),
    "NaN label": ("a.csv", "text,label\nx,1\ny,NaN\n", {}, "line 3: the label is missing"),
    "NaN in JSON": ("a.jsonl", '{"text":"x","label":1}\n{"text":"y","label":NaN}\n', {}, "line 2"),
    "no label in JSON": ("a.jsonl", '{"text":"x","label":1}\n{"text":"y"}\n', {}, "line 2"),
    "label outside": ("a.csv", "text,label\nx,3\n", {"task": "rte"}, "the classes of 'rte'"),
    "label misspelt": ("a.csv", "text,label\nx,entailmnt\n", {"task": "rte"}, "'entailment'"),
    "infinite score": ("a.csv", "text,label\nx,inf\n", {"task": "sts-b"}, "not a number"),
    "ragged row": ("a.csv", "text,label\nx,1\ny\n", {}, "line 3: 1 cells where 2 columns"),
    "open quote": ("a.csv", 'text,label\nx,1\n"y,2\n', {}, "quoting='none'"),
    "double column": ("a.csv", "text,text\nx,1\n", {}, "more than once"),
    "empty text": ("a.csv", "text,label\n ,1\n", {}, "line 2: the text in column 'text' is empty"),
    "null text": ("a.jsonl", '{"text": null}\n', {}, "missing"),
    "text is a number": ("a.jsonl", '{"text": 5}\n', {}, "is not text"),
    "broken JSON line": ("a.jsonl", '{"text": "x"}\n{"text": \n', {}, "line 2: not JSON"),
    "broken JSON": ("a.json", '{"text": "x",\n ]', {}, "line 2: not JSON"),
    "line is no object": ("a.jsonl", '{"text": "x"}\n[1]\n', {}, "line 2: this must be an object"),
    "odd JSON": ("a.json", '{"a": 1}', {}, "does not hold examples"),
    "lengths": ("a.jsonl", '{"words":["a","b"],"pos":["X"]}\n', {}, "2 words and 1 pos"),
    "heads": ("a.csv", "words,heads\na b,0 x\n", {}, "whole numbers"),
    "all skipped": ("a.txt", "x\n", {"skip": "x"}, "no lines left"),
    "id twice": ("a.csv", "text,n\nx,1\ny,1\n", {"id": "n"}, "line 3: the id '1'"),
    "unknown ending": ("a.docx", "x", {}, "No reader is known for a.docx"),
    "too many classes": (
        "a.csv", "text,label\n" + "".join(f"x,c{i}\n" for i in range(300)), {}, "300 different",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_bad_files(case: str, tmp_path: Path) -> None:
    name, content, arguments, said = BROKEN[case]
    file = write(tmp_path / name, content)
    with pytest.raises(DataError) as error:
        load_corpus(file, **arguments)
    assert said in str(error.value)
    assert name in str(error.value)


def test_arguments_that_nobody_knows(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "text,label\nx,1\n")
    with pytest.raises(UnknownNameError, match=r"Did you mean 'label'"):
        load_corpus(file, lable="label")
    with pytest.raises(UnknownNameError, match=r"field or option.*\n.*--columns text=first"):
        load_corpus(file, first="text")
    with pytest.raises(UnknownNameError, match=r"Unknown task 'mrcp'.*\n.*'mrpc'"):
        load_corpus(file, task="mrcp")
    with pytest.raises(UnknownNameError, match=r"Unknown reader 'cvs'.*\n.*'csv'"):
        load_corpus(file, reader="cvs")
    with pytest.raises(ParameterError, match=r"at least 1"):
        load_corpus(file, limit=0)


def test_columns_of_pairs_with_other_names(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "one,other,points\nx,y,1\n")
    with pytest.raises(DataError, match=r"--columns text=one\); the second .* is text_b"):
        load_corpus(file)


def test_places_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file or folder .*gone\.csv"):
        load_corpus(tmp_path / "gone.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no layout that is known.*\nKnown: a GLUE task"):
        load_corpus(tmp_path / "empty")
    write(tmp_path / "empty" / "stuff.csv", "text\nx\n")
    with pytest.raises(DataError, match=r"Give one of its files: stuff\.csv"):
        load_corpus(tmp_path / "empty")


def test_labels_are_understood() -> None:
    rte = TASKS["rte"]
    assert [parse_label(v, rte, "x") for v in ("0", 1, 1.0, "entailment")] == [0, 1, 1, 0]
    assert parse_label("2.5", TASKS["sts-b"], "x") == 2.5
    none = infer_task("t", ["none", "some"], pair=False, where="x")
    assert none.kind == "classification"


def test_tasks_are_inferred() -> None:
    def labels(*values: object) -> tuple[str, ...]:
        return infer_task("t", values, pair=False, where="x").labels

    assert labels("0", "2") == ("0", "1", "2")
    assert labels(1, 5) == ("1", "2", "3", "4", "5")
    assert labels(-1, 1) == ("-1", "1")
    assert labels(True, False) == ("false", "true")
    assert infer_task("t", ["0.5", "1"], pair=False, where="x").kind == "regression"


def test_metrics_of_all_tasks_exist() -> None:
    metrics = pytest.importorskip("bertology.metrics")
    assert {m for t in TASKS.values() for m in t.metrics} <= set(metrics.METRICS)


def test_every_reader_can_be_loaded() -> None:
    assert all(callable(READERS.get(name)) for name in READERS)


@pytest.mark.parametrize(
    ("file", "name", "split"),
    [
        ("reviews/test.csv", "reviews", "test"),
        ("reviews/reviews_train.csv", "reviews", "train"),
        ("reviews/films-dev.csv", "films", "validation"),
        ("reviews/held-out.csv", "held-out", None),
        ("reviews/latest.csv", "latest", None),
    ],
)
def test_data_are_not_called_by_their_split(
    tmp_path: Path, file: str, name: str, split: str | None
) -> None:
    (tmp_path / "reviews").mkdir()
    (tmp_path / file).write_text("text,label\na,x\nb,y\n")
    corpus = load_corpus(tmp_path / file)
    assert (corpus.name, corpus.split) == (name, split)
