"""`bt.finetune`, and texts and corpora in each other's place."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertology as bt
import tiny
from bertology.cli.compress import CompressOptions
from bertology.cli.finetune import FinetuneOptions
from bertology.cli.prune import PruneOptions
from bertology.cli.run import RunOptions
from bertology.cli.score import ScoreOptions
from bertology.errors import DataError, InterruptedRunError, ParameterError
from bertology.run.loading import LOADING
from bertology.run.progress import TrainingLine

WORDS = ("cat", "dog", "owl", "fox", "hen", "elk")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, and two files: does the text have a cat?"""
    monkeypatch.chdir(tmp_path)
    tiny.model("bert", "mlm").save_pretrained("start")
    tiny.tokenizer(list(WORDS)).save_pretrained("start")
    for name, first, last in (("cats-train", 0, 48), ("cats-test", 48, 80)):
        rows = ["review;stars"]
        for i in range(first, last):
            text = " ".join(WORDS[(i * 7 + j * j * (i % 11)) % 6] for j in range(1 + i % 5))
            rows.append(f"{text};{'cat' if 'cat' in text else 'other'}")
        Path(f"{name}.csv").write_text("\n".join(rows))
    return tmp_path


COLUMNS = {"text": "review", "label": "stars"}


def tune(**how: Any) -> Any:
    given = {"epochs": 1, "batch_size": 16, "device": "cpu", "progress": False, **COLUMNS, **how}
    return bt.finetune("start", "cats-train.csv", "cats-test.csv", **given)


def test_one_call_gives_folder_encoder_and_score(data: Path) -> None:
    told: list[str] = []
    found = tune(to="out", epochs=40, rate=0.01, tell=told.append)
    assert found.folder == Path("out/seed-0")
    assert found.encoder.head == "classification"
    score = found.scores["accuracy"]
    # The interval is around the score that the record has.
    assert score.value == pytest.approx(found.records[0]["scores"]["accuracy"])
    assert score.low < score.value <= score.high
    assert found.learnt
    assert "start fine-tuned on cats has accuracy" in found.sentence
    assert "over 32 examples): clearly better than a constant answer" in str(found)
    assert len(found.table()) == 40
    assert list(found.table()["kept"])[-1]
    assert told[0] == "start: fine-tuned from the pre-trained weights"
    assert sum("epoch" in line for line in told) == 41
    # The same again is found, not made.
    told.clear()
    assert tune(to="out", epochs=40, rate=0.01, tell=told.append).records == found.records
    assert any("was made on" in line for line in told)


def test_columns_are_said_alike_everywhere(data: Path) -> None:
    found = tune(to="out", text=None, label=None, columns=COLUMNS)
    scored = bt.score(found.folder, "cats-test.csv", columns=COLUMNS, limit=9, device="cpu")
    assert scored.examples == 9
    assert bt.score(found.encoder, found.validation, limit=9).examples == 9


def test_several_seeds_have_an_interval_over_seeds(data: Path) -> None:
    found = tune(seeds=(0, 1))
    assert found.folders == tuple(
        Path(f"results/finetuned/start/cats-pretrained/seed-{i}") for i in (0, 1)
    )
    assert found.over == "2 seeds"
    with pytest.raises(ParameterError, match="name each seed once"):
        tune(seeds=(1, 1))


def test_an_encoder_and_corpora_do_as_well(data: Path) -> None:
    train, unseen = (bt.load_corpus(f, **COLUMNS) for f in ("cats-train.csv", "cats-test.csv"))
    encoder = bt.load("start", head="mlm", device="cpu")
    found = bt.finetune(encoder, train, unseen, epochs=1, to="a", progress=False)
    named = tune(to="b", batch_size=32)
    # Whoever loads the model, and with whatever head: the record is the same.
    assert found.records[0]["base"] == named.records[0]["base"]
    assert found.records[0]["identity"] == named.records[0]["identity"]
    few = bt.finetune(encoder, train, unseen, epochs=1, to="c", limit=20, progress=False)
    assert few.records[0]["train"]["size"] == 20


def test_another_split_of_a_corpus_is_found(data: Path) -> None:
    Path("own").mkdir()
    Path("cats-train.csv").rename("own/train.csv")
    Path("cats-test.csv").rename("own/dev.csv")
    train = bt.load_corpus("own", split="train", **COLUMNS)
    found = bt.finetune("start", train, epochs=1, to="out", progress=False)
    assert found.records[0]["validation"]["split"] == "validation"


def test_nothing_is_scored_on_what_it_was_chosen_on(data: Path) -> None:
    """A file has no splits: without other data, a cut was judged on the examples that chose it."""
    with pytest.raises(DataError, match="are the same examples"):
        bt.finetune("start", "cats-train.csv", columns=COLUMNS, to="out")
    with pytest.raises(DataError, match="are the same examples"):
        bt.prune("start", "cats-train.csv", columns=COLUMNS, to="out")


def test_a_stop_says_that_the_same_call_goes_on(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(shown: Any, step: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainingLine, "step", stop)
    with pytest.raises(InterruptedRunError, match=r"0 of 1 models are finished(.|\n)*same call"):
        tune(to="out")


class Bar:
    def __init__(self) -> None:
        self.titles: list[str] = []
        self.done = 0

    def start(self, title: str, total: int) -> None:
        self.titles.append(f"{title}: {total}")

    def advance(self, steps: int) -> None:
        self.done += steps

    def stop(self) -> None:
        self.titles.append("stopped")


def test_progress_is_shown(data: Path) -> None:
    bar = Bar()
    tune(to="out", progress=bar)
    assert bar.titles == ["fine-tuning, seed 0: 3", "stopped"]
    assert bar.done == 3


def test_stages_before_the_training_are_shown(data: Path) -> None:
    bar = Bar()
    before = "intermediate:task=grammar-paraphrase,limit=16"
    tune(to="out", progress=bar, ways=["masked_lm", before])
    begun = [title for title in bar.titles if title != "stopped"]
    assert begun == [
        "seed 0, masked LM on the training texts: 3",
        "fine-tuning, seed 0, first grammar-paraphrase: 1",
        "fine-tuning, seed 0: 3",
    ]
    assert bar.titles.count("stopped") == 3


@pytest.mark.parametrize(
    ("function", "options", "left_out"),
    [
        # The model is called encoder; None says that no split of data at hand is asked for.
        (bt.run, RunOptions, {"model", "split"}),
        # What says how data are read is passed on; a file is what one writes oneself.
        (bt.finetune, FinetuneOptions, {"columns", "labels", "root", "languages"}),
        (bt.compress, CompressOptions, {"columns", "labels", "root", "languages"}),
        (bt.prune, PruneOptions, {"columns", "labels", "root", "languages"}),
        (bt.score, ScoreOptions,
         {"columns", "labels", "root", "languages", "split", "limit", "json"}),
    ],
)  # fmt: skip
def test_every_option_is_a_keyword(function: Any, options: Any, left_out: set[str]) -> None:
    known = inspect.signature(function).parameters
    own = {f.name: f for f in fields(options) if f.name not in left_out | set(LOADING)}
    assert own.keys() <= known.keys()
    for name in own.keys() - {"seeds", "ways", "columns", "labels", "store"}:  # other types
        if own[name].default is not MISSING:
            assert known[name].default == own[name].default, name


def test_a_study_takes_texts_columns_and_ways_of_loading(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = {"device": "cpu", "dtype": "float32", "batch_tokens": 64, "store": "r"}
    found = bt.run("attention-maps", "start", corpus=["a cat", "a dog"], **how)
    assert found.provenance.corpus is not None
    assert (found.provenance.corpus["name"], found.provenance.corpus["size"]) == ("texts", 2)
    pairs = bt.run("attention-maps", "start", corpus=[("a cat", "dog"), ("an owl", "hen")], **how)
    assert pairs.provenance.corpus is not None
    assert pairs.provenance.corpus["pair"]
    own = bt.run(
        "attention-maps", "start", corpus="cats-train.csv", columns=COLUMNS, limit=4, **how
    )
    assert own.provenance.corpus is not None
    assert own.provenance.corpus["size"] == 4
    loaded = bt.load("start", device="cpu")
    with pytest.raises(ParameterError, match=r"'device'.*loaded already"):
        bt.run("attention-maps", loaded, corpus=["a cat"], device="cpu")
    with pytest.raises(ParameterError, match=r"'columns'.*loaded already"):
        bt.run("attention-maps", loaded, corpus=["a cat"], columns=COLUMNS)
    with pytest.raises(ParameterError, match=r"'task'.*a name, a path or a Corpus"):
        bt.run("head-ablation", "start", task=["a cat"])
    with pytest.raises(DataError, match="cannot share a corpus"):
        bt.run("attention-maps", loaded, corpus=["a cat", ("a", "b")])


def test_corpora_are_taken_where_texts_are(data: Path) -> None:
    encoder = bt.load("start", head="mlm", device="cpu")
    corpus = bt.Corpus.of_texts(["cat dog", "owl", "fox hen elk"])
    texts = ["cat dog", "owl", "fox hen elk"]
    assert encoder.run(corpus).tokens == encoder.run(texts).tokens
    assert encoder.run(corpus[1]).tokens == encoder.run("owl").tokens
    assert sum(len(b.indices) for b in encoder.batches(corpus)) == 3
    ours, theirs = (bt.pseudo_log_likelihood(encoder, given) for given in (corpus, texts))
    assert [s.total for s in ours] == [s.total for s in theirs]
    assert encoder.head_means(corpus).equal(encoder.head_means(texts))
    blanks = bt.Corpus.of_texts(["a {mask}"])
    assert bt.cloze(encoder, blanks)[0].text == "a {mask}"
    with pytest.raises(DataError, match="not in pairs"):
        bt.cloze(encoder, [("a {mask}", "b")])


def test_a_corpus_of_minimal_pairs_has_both_sides() -> None:
    encoder = bt.load(head="mlm", device="cpu")
    pairs = bt.load_corpus("grammar-agreement", limit=4)
    found = bt.compare_pairs(encoder, pairs)
    good, bad = [e.text for e in pairs], [e.get("contrast") for e in pairs]
    assert np.array_equal(found, bt.compare_pairs(encoder, good, bad))
    with pytest.raises(DataError, match="a corpus with both"):
        bt.compare_pairs(encoder, good)
