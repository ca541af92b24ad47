"""The readers of published layouts: minimal pairs, SQuAD, LAMA; and of the hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertology.data import Field, load_corpus
from bertology.data.readers import lama, minimal_pairs, squad
from bertology.errors import DataError, UnknownNameError


def test_true_false_pairs(tmp_path: Path) -> None:
    file = tmp_path / "simple_agrmt.txt"
    file.write_text("True\tthe author laughs\nFalse\tthe author laugh\n")
    (example,) = minimal_pairs.read(file)
    assert example.text == "the author laughs"
    assert example.get("contrast") == "the author laugh"
    assert example.get("group") == "simple_agrmt"
    file.write_text("True\ta\nTrue\tb\n")
    with pytest.raises(DataError, match=r"line 1"):
        minimal_pairs.read(file)
    file.write_text("True\ta\n")
    with pytest.raises(DataError, match=r"no pairs"):
        minimal_pairs.read(file)


def test_agreement_with_attractors(tmp_path: Path) -> None:
    file, gold = tmp_path / "x.text", tmp_path / "x.gold"
    file.write_text("the keys to the cabinet are here . <eos>\n")
    gold.write_text("5\tAre\tIs\t1\n")
    (example,) = minimal_pairs.read(file)
    assert example.text == "the keys to the cabinet are here ."
    assert example.get("contrast") == "the keys to the cabinet is here ."
    assert (example.get("verb"), example.get("attractors")) == (5, 1)
    gold.write_text("4\tare\tis\t1\n")
    with pytest.raises(DataError, match=r"x\.gold, line 1: word 4"):
        minimal_pairs.read(file)
    gold.write_text("five\tare\tis\t1\n")
    with pytest.raises(DataError, match=r"wanted"):
        minimal_pairs.read(file)
    gold.write_text("5\tare\tis\t1\n" * 2)
    with pytest.raises(DataError, match=r"1 sentences and x\.gold 2 rows"):
        minimal_pairs.read(file)


def test_squad(tmp_path: Path) -> None:
    file = tmp_path / "dev.json"
    answers = [{"text": "Denver", "answer_start": 4}, {"text": "Denver", "answer_start": 4}]
    question = {"id": "q", "question": " Where? ", "answers": answers}
    paragraph = {"context": "The Denver Broncos", "qas": [question]}
    file.write_text(json.dumps({"data": [{"title": "T", "paragraphs": [paragraph]}]}))
    (example,) = squad.read(file)
    assert (example.text, example.text_b) == ("Where?", "The Denver Broncos")
    assert example.get("answer") == ["Denver"]
    assert example.get("answer_spans") == [(4, 10), (4, 10)]
    file.write_text('{"data": [{"title": "T"}]}')
    with pytest.raises(DataError, match=r"not of SQuAD.s format"):
        squad.read(file)


def test_lama(tmp_path: Path) -> None:
    facts = tmp_path / "facts.jsonl"
    masked = {"masked_sentences": ["Born in [MASK]."], "obj_label": "Rome", "sub_label": "X"}
    facts.write_text(json.dumps(masked) + "\n")
    (example,) = lama.read(facts)
    assert (example.text, example.get("answer")) == ("Born in [MASK].", ["Rome"])
    facts.write_text('{"obj_label": "Rome", "sub_label": "Nero", "predicate_id": "P19"}\n')
    with pytest.raises(DataError, match=r"line 1: the fact has no 'masked_sentences'"):
        lama.read(facts)
    (tmp_path / "r.jsonl").write_text('{"relation": "P19", "template": "[X] was born in [Y] ."}\n')
    (example,) = load_corpus(facts, reader="lama", templates="r.jsonl")
    assert (example.text, example.get("group")) == ("Nero was born in [MASK] .", "P19")
    facts.write_text("{}\n")
    with pytest.raises(DataError, match=r"obj_label"):
        lama.read(facts)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "premise": datasets.Value("string"),
            "hypothesis": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["no", "yes"]),
        }
    )
    rows: dict[str, list[Any]] = {"premise": ["a", "c"], "hypothesis": ["b", "d"], "label": [1, 0]}
    hidden = {**rows, "label": [-1, -1]}
    both = datasets.DatasetDict(
        {
            "validation": datasets.Dataset.from_dict(rows, features=features),
            "test": datasets.Dataset.from_dict(hidden, features=features),
        }
    )
    both.save_to_disk(str(tmp_path / "saved"))
    return tmp_path / "saved"


def test_saved_dataset(saved: Path) -> None:
    corpus = load_corpus(saved)
    assert corpus.labels == [1, 0]
    assert corpus.task is not None
    assert corpus.task.labels == ("no", "yes")
    assert corpus.texts == [("a", "b"), ("c", "d")]
    assert Field.LABEL not in load_corpus(saved, split="test").fields
    assert load_corpus(**corpus.origin).fingerprint == corpus.fingerprint
    swapped = load_corpus(saved, text="hypothesis")
    assert swapped[0].text == "b"
    assert swapped[0].text_b is None
    with pytest.raises(UnknownNameError, match=r"Unknown split.*'train'"):
        load_corpus(saved, split="train")
    with pytest.raises(DataError, match=r"(?s)no column 'premis'.*text='premise'"):
        load_corpus(saved, text="premis")


def test_saved_tags_get_their_names(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    tags = datasets.ClassLabel(names=["O", "B-PER"])
    features = datasets.Features(
        {"tokens": datasets.Sequence(datasets.Value("string")), "ner": datasets.Sequence(tags)}
    )
    rows = {"tokens": [["Ann", "ran"]], "ner": [[1, 0]]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(tmp_path / "ner"))
    corpus = load_corpus(tmp_path / "ner", words="tokens", tags="ner")
    assert corpus[0].get("tags") == ["B-PER", "O"]
    assert corpus.task is not None
    assert (corpus.task.kind, corpus.task.labels) == ("tagging", ("O", "B-PER"))


def test_broken_saved_dataset(tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text("{}")
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(DataError, match=r"Cannot read the saved dataset"):
        load_corpus(tmp_path)


def test_hub_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")

    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("Couldn't reach 'nobody/nothing' on the Hub\n(long story)")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(DataError) as error:
        load_corpus("nobody/nothing:small")
    said = str(error.value)
    assert "Couldn't reach 'nobody/nothing' on the Hub." in said
    assert "load_dataset('nobody/nothing', 'small').save_to_disk('nothing')" in said
    assert "HF_HUB_OFFLINE" in said
    assert "long story" not in said
