"""Trials: text from a corpus, every objective, and measures that are the same for all."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.loading import load_corpus
from bertology.errors import ModelError, UnknownNameError
from bertology.train.finetune import FinetuneSettings
from bertology.train.fresh import Architecture
from bertology.train.pretrain import trial
from bertology.train.pretrain.config import Phase, Pretraining
from bertology.train.pretrain.objectives import OBJECTIVES, find_objective
from bertology.train.pretrain.shards import Shards
from bertology.train.pretrain.trial import Tuning, run_trial
from bertology.train.pretrain.trial_text import (
    check_tokenizer,
    documents_of,
    prepare_trial_text,
)
from bertology.train.vocabulary import wordpieces

SIZE = Architecture(layers=1, heads=2, hidden=16, vocab_size=500, max_length=48, dropout=0.0)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("grammar", split="train", limit=400)


@pytest.fixture(scope="module")
def pieces(corpus: Corpus) -> Any:
    texts = [str(t) for t in corpus.texts]
    return wordpieces(lambda: texts, vocab_size=500, max_length=48)


@pytest.fixture(scope="module")
def text(corpus: Corpus, pieces: Any, tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return prepare_trial_text(pieces, corpus, folder=tmp_path_factory.mktemp("text"))


def recipe(objective: str = "mlm-nsp", **more: Any) -> Pretraining:
    given: dict[str, Any] = {
        "model": SIZE, "stages": find_objective(objective), "steps": 6, "batch_tokens": 240,
        "phases": (Phase(48),), "evaluate_every": 100,
    }  # fmt: skip
    return Pretraining(**(given | more))


def small_task() -> Tuning:
    train, validation = (
        load_corpus("grammar-paraphrase", split=s, limit=32) for s in ("train", "validation")
    )
    return Tuning(train, validation, FinetuneSettings(epochs=1, learning_rate=1e-3))


def test_examples_in_a_row_make_documents() -> None:
    examples = [Example(str(i), f"s{i}", f"t{i}" if i % 2 else None) for i in range(5)]
    corpus = Corpus("c", examples, frozenset({Field.TEXT}))
    found = [d.sentences for d in documents_of(corpus, 2)]
    assert found == [("s0", "s1", "t1"), ("s2", "s3", "t3"), ("s4",)]


def test_text_is_prepared_once(
    corpus: Corpus, pieces: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertology.train.pretrain import trial_text

    first = prepare_trial_text(pieces, corpus, folder=tmp_path)
    monkeypatch.setattr(trial_text, "prepare", None)
    assert prepare_trial_text(pieces, corpus, folder=tmp_path) == first
    monkeypatch.undo()
    other = prepare_trial_text(pieces, corpus, folder=tmp_path, document_size=4)
    assert other.folder != first.folder
    (first.folder / "held-out.sentences.npy").unlink()  # swept away with other temporary files
    again = prepare_trial_text(pieces, corpus, folder=tmp_path)
    assert again.fingerprint == first.fingerprint
    assert again.open("held-out").sentences.size > 1
    assert len(list(tmp_path.iterdir())) == 2


def test_the_one_who_comes_second_uses_what_is_there(
    corpus: Corpus, pieces: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertology.train.pretrain import trial_text

    first = prepare_trial_text(pieces, corpus, folder=tmp_path)
    kept = (first.folder / "shards.json").stat().st_ino
    complete = trial_text._complete
    answers = iter([None])  # not there yet when it looks, there when it is done
    monkeypatch.setattr(trial_text, "_complete", lambda place: next(answers, complete(place)))
    assert prepare_trial_text(pieces, corpus, folder=tmp_path) == first
    assert (first.folder / "shards.json").stat().st_ino == kept
    assert list(tmp_path.iterdir()) == [first.folder]


def test_a_vocabulary_that_will_not_do_is_refused(pieces: Any) -> None:
    check_tokenizer(pieces, "mine")
    with pytest.raises(ModelError, match="no WordPiece vocabulary"):
        check_tokenizer(object.__new__(_Bare), "mine")
    bare = tiny.tokenizer(["a"])
    bare.mask_token = None
    with pytest.raises(ModelError, match="no mask token"):
        check_tokenizer(bare, "mine")


class _Bare:
    cls_token_id = sep_token_id = pad_token_id = mask_token_id = unk_token_id = 0


def test_objectives_have_names() -> None:
    assert find_objective("mlm-nsp")[0].objective.losses == ("mlm", "sentence")
    with pytest.raises(UnknownNameError, match="mlm-nsp"):
        find_objective("mlm_nsp")


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_trains_and_is_measured(name: str, text: Shards, pieces: Any) -> None:
    found = run_trial(recipe(name), text, pieces, device="cpu").numbers
    told = [found[m] for m in ("mlm_loss", "mlm_accuracy")]
    if name == "replaced":
        assert np.isnan(told).all()
    else:
        assert np.isfinite(told).all()
        assert found["mlm_loss"] < 1.2 * math.log(500)
    assert math.isnan(found["pair_accuracy"])  # not asked for
    assert math.isnan(found["task_score"])
    assert found["body_parameters"] == 12 * 16**2 + 13 * 16
    assert found["parameters"] > found["body_parameters"]


def test_pairs_and_task_are_measured_and_repeat(text: Shards, pieces: Any) -> None:
    pairs = load_corpus("grammar-agreement", limit=12)
    one, two = (
        run_trial(recipe(), text, pieces, device="cpu", pairs=pairs, task=small_task()).numbers
        for _ in range(2)
    )
    assert {k: v for k, v in one.items() if k != "seconds"} == {
        k: v for k, v in two.items() if k != "seconds"
    }
    assert 0 <= one["pair_accuracy"] <= 1
    assert 0 <= one["task_score"] <= 1
    replaced = run_trial(recipe("replaced"), text, pieces, device="cpu", pairs=pairs)
    assert math.isnan(replaced.numbers["pair_accuracy"])


def test_a_model_without_mask_is_scored_by_unk(
    text: Shards, pieces: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    seen: list[int] = []

    def compare(encoder: Any, good: list[str], bad: list[str]) -> Any:
        seen.append(encoder.tokenizer.mask_token_id)
        return np.array([1.0, 0.0, 0.0, -1.0])[: len(good)]

    def evaluate(model: Any, shards: Shards, *, length: int, token: str) -> dict[str, float]:
        asked.append(token)
        return {"mlm_loss": 1.0, "mlm_accuracy": 0.5}

    monkeypatch.setattr(trial, "compare_pairs", compare)
    monkeypatch.setattr(trial, "evaluate_mlm", evaluate)
    chosen = load_corpus("grammar-agreement", limit=1)
    pairs = Corpus("pairs", [chosen[0]] * 4, chosen.fields)
    for name in ("unk-mask", "no-nsp"):
        found = run_trial(recipe(name, steps=1), text, pieces, device="cpu", pairs=pairs)
        assert found.numbers["pair_accuracy"] == 0.5  # a tie is half
    assert asked == ["unk", "mask"]
    assert seen == [pieces.unk_token_id, pieces.mask_token_id]


def test_pairs_that_do_not_fit_are_left_out(text: Shards, pieces: Any) -> None:
    short = load_corpus("grammar-agreement", limit=1)
    long = replace(short[0], text=short[0].text * 20)
    model = trial.pretrain(recipe(steps=1), text, pieces, device="cpu").model
    only = Corpus("pairs", [long], short.fields)
    both = Corpus("pairs", [long, short[0]], short.fields)
    assert math.isnan(trial.pair_accuracy(model, pieces, only))
    assert trial.pair_accuracy(model, pieces, both) in (0.0, 1.0)


def test_the_pooler_is_kept_or_fresh(text: Shards, pieces: Any) -> None:
    model = trial.pretrain(recipe(steps=2), text, pieces, device="cpu").model
    task = small_task()
    kept, fresh = (
        trial.classifier_on(model, task._replace(pooler=p)).bert for p in ("kept", "fresh")
    )
    trained = model.bert.state_dict()
    for name, value in kept.state_dict().items():
        assert value.equal(trained[name])
        assert fresh.state_dict()[name].equal(value) == (not name.startswith("pooler."))
    assert 0 <= trial.task_score(model, pieces, task._replace(pooler="normalised")) <= 1


def test_stacking_costs_less_in_its_shallow_phase(text: Shards, pieces: Any) -> None:
    deep = recipe(model=replace(SIZE, layers=2), steps=4)
    stacked = replace(deep, phases=(Phase(48, 0.5, 1), Phase(48, 0.5)))
    whole, less = (run_trial(r, text, pieces, device="cpu").numbers for r in (deep, stacked))
    assert less["parameters"] == whole["parameters"]
    shallow = trial.training_flops(1, 16, length=48, vocab_size=len(pieces))
    assert less["flops_per_token"] == pytest.approx((whole["flops_per_token"] + shallow) / 2)
