"""Baselines: what each of them can learn is found, what it cannot is not, and noise is neither."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binom
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import bertology as bt
import tiny
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.loading import load_corpus
from bertology.data.static_vectors import split_words
from bertology.errors import DataError, ParameterError, UnknownNameError
from bertology.metrics import find_metric
from bertology.model.encoder import Encoder
from bertology.model.shape import Shape
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.crossed import crossed_difference, crossed_score
from bertology.studies.designs.scored_runs import answered
from bertology.studies.designs.trials import split_part
from bertology.studies.study import Context
from bertology.studies.training.task_baselines import (
    METHODS,
    SEEDLESS,
    TaskBaselines,
    TaskBaselinesResult,
)
from bertology.train import baselines
from bertology.train.baselines import BASELINES, train_baseline
from result_conformance import ResultConformance

WORDS = ["up", "down", "cat", "dog", "sun", "moon", "red", "blue"]
TWO = Task("planted", "classification", ("no", "yes"), ("accuracy",))
NUMBERS = Task("planted-numbers", "regression", (), ("pearson", "spearman"))
PAIRS = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL})
TEXTS = frozenset({Field.TEXT, Field.LABEL})


def made(size: int, seed: int, label: Callable[[list[str], random.Random], int]) -> Corpus:
    """Texts of one `up`, one `down` and fillers in random order."""
    rng, examples = random.Random(seed), []
    for i in range(size):
        words = ["up", "down", *rng.choices(WORDS[2:], k=4)]
        rng.shuffle(words)
        examples.append(Example(str(i), " ".join(words), label=label(words, rng)))
    return Corpus("planted", examples, TEXTS, TWO)


def has_cat(words: list[str], rng: random.Random) -> int:
    return int("cat" in words)


def up_first(words: list[str], rng: random.Random) -> int:
    return int(words.index("up") < words.index("down"))


def coin(words: list[str], rng: random.Random) -> int:
    return rng.randrange(2)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks that learn what is planted here in a second."""
    monkeypatch.setattr(baselines, "HIDDEN", 32)
    monkeypatch.setattr(baselines, "RATE", 2e-2)
    monkeypatch.setattr(baselines, "EPOCHS", 5)


@cache
def encoder() -> Encoder:
    return Encoder(tiny.model("bert"), tiny.tokenizer(WORDS), name="tiny")


def accuracy(name: str, label: Callable[[list[str], random.Random], int], **more: object) -> float:
    train, scored = made(240, 1, label), made(150, 2, label)
    run = train_baseline(name, encoder(), train, scored, **more)  # type: ignore[arg-type]
    return find_metric("accuracy").score(run.predictions, scored.labels)


def test_a_word_that_tells_the_label_is_found_by_all() -> None:
    for name in ("bag-of-words", "cbow", "bilstm"):
        assert accuracy(name, has_cat) > 0.95


def test_order_is_found_by_the_bilstm_only() -> None:
    assert accuracy("bilstm", up_first) > 0.95
    for name in ("majority", "bag-of-words", "cbow"):
        assert accuracy(name, up_first) < 0.65


def test_nothing_learns_a_label_that_is_drawn() -> None:
    highest = binom.ppf(0.999, 150, 0.5) / 150
    for name in ("bag-of-words", "cbow", "bilstm"):
        assert accuracy(name, coin) < highest


def test_the_epoch_is_chosen_by_the_score_that_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accuracy falls from epoch to epoch and F1 rises: the first epoch is kept, not the last."""
    seen: list[float] = []

    def falling(*given: object) -> dict[str, float]:
        seen.append(len(seen))
        return {"f1": seen[-1], "accuracy": -seen[-1]}

    monkeypatch.setattr(baselines, "RATE", 3e-3)
    monkeypatch.setattr(baselines, "scores", falling)
    task = replace(TWO, metrics=("f1", "accuracy"))
    train, scored = (replace(made(n, s, has_cat), task=task) for n, s in ((120, 1), (150, 2)))
    chosen = train_baseline("cbow", encoder(), train, scored).predictions
    assert len(seen) == 5
    monkeypatch.setattr(baselines, "EPOCHS", 1)
    first = train_baseline("cbow", encoder(), train, scored).predictions
    assert np.array_equal(chosen, first)
    monkeypatch.setattr(baselines, "EPOCHS", 5)
    rising = iter(range(9))
    monkeypatch.setattr(baselines, "scores", lambda *given: {"f1": 0, "accuracy": next(rising)})
    assert not np.array_equal(train_baseline("cbow", encoder(), train, scored).predictions, first)


def pairs(size: int, seed: int, *, numbers: bool) -> Corpus:
    """How many words two texts share, or whether they share most."""
    rng, examples = random.Random(seed), []
    for i in range(size):
        one, shared = rng.sample(WORDS, 4), rng.randrange(5)
        rest = rng.sample([w for w in WORDS if w not in one], 4 - shared)
        other = rng.sample(one, shared) + rest
        label = float(shared) if numbers else int(shared > 2)
        examples.append(Example(str(i), " ".join(one), " ".join(other), label=label))
    return Corpus("pairs", examples, PAIRS, NUMBERS if numbers else TWO)


@pytest.mark.parametrize("numbers", [False, True])
def test_pairs_and_numbers_are_learnt_too(numbers: bool) -> None:
    train, scored = pairs(300, 1, numbers=numbers), pairs(150, 2, numbers=numbers)
    metric, least = (find_metric("pearson"), 0.7) if numbers else (find_metric("accuracy"), 0.8)
    for name in ("bag-of-words", "cbow", "bilstm"):
        said = train_baseline(name, encoder(), train, scored).predictions
        assert metric.score(said, scored.labels) > least, name
    constant = train_baseline("majority", encoder(), train, scored).predictions
    assert len(set(constant)) == 1
    if numbers:
        assert constant[0] == pytest.approx(np.mean(train.labels))
        assert np.abs(said - np.array(scored.labels)).mean() < 1  # in the units of the labels


def test_a_bag_of_words_is_the_pipeline_of_scikit_learn() -> None:
    def noisy(words: list[str], rng: random.Random) -> int:
        return int("cat" in words) if rng.random() < 0.8 else rng.randrange(2)

    train, scored = made(200, 3, noisy), made(100, 4, noisy)
    reference = make_pipeline(
        CountVectorizer(binary=True, tokenizer=split_words, token_pattern=None),
        LogisticRegression(max_iter=1000),
    )
    reference.fit(list(train.texts), list(train.labels))
    said = train_baseline("bag-of-words", encoder(), train, scored).predictions
    np.testing.assert_array_equal(said, reference.predict(list(scored.texts)))


def test_a_seed_decides_all_and_torch_is_left_alone() -> None:
    train, scored = made(60, 5, coin), made(40, 6, coin)
    encoder()
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    one, same, other = (
        train_baseline("bilstm", encoder(), train, scored, seed=s).predictions for s in (1, 1, 2)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_vectors_of_a_file_are_used(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    rng = np.random.default_rng(0)
    rows = [f"{w} {' '.join(map(str, rng.normal(size=5)))}" for w in WORDS if w != "cat"]
    path.write_text("\n".join(rows), encoding="utf-8")
    train, scored = made(200, 1, has_cat), made(100, 2, has_cat)
    run = train_baseline("cbow", encoder(), train, scored, vectors=str(path))
    cats = sum(text.split().count("cat") for text in scored.texts if isinstance(text, str))
    assert run.covered == pytest.approx(1 - cats / 600)
    path.write_text("xyz 1 2 3\n", encoding="utf-8")
    with pytest.raises(DataError, match="none of the"):
        train_baseline("cbow", encoder(), train, scored, vectors=str(path))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="bilstm"):
        train_baseline("lstm", encoder(), made(9, 1, coin), made(9, 2, coin))
    for wrong in ((), ("cbow", "cbow"), ("lstm",)):
        with pytest.raises(ParameterError, match="none twice"):
            TaskBaselines(methods=wrong)
    one_class = made(30, 1, lambda words, rng: 1)
    for name in BASELINES:
        assert set(train_baseline(name, encoder(), one_class, one_class).predictions) == {1.0}


# Intervals over seeds and examples ---------------------------------------------------------------


def test_intervals_hold_over_seeds_and_examples() -> None:
    """Two methods of the same skill: seeds and examples differ, and both make them differ."""
    rng, metric, missed, draws = np.random.default_rng(0), find_metric("accuracy"), 0, 100
    for _ in range(draws):
        hard = rng.normal(0, 1, 200)
        labels = np.ones(200)
        runs = [
            np.stack(
                [
                    metric.statistics(
                        (hard + skill + rng.normal(0, 0.7, 200) > -0.8).astype(float), labels
                    )
                    for skill in rng.normal(0, 0.1, 4)
                ]
            )
            for _ in range(2)
        ]
        found = crossed_difference(metric, *runs)
        missed += found.excludes(0)
        assert found.low <= found.value <= found.high
    assert missed <= binom.ppf(0.999, draws, 0.05)


def test_an_interval_of_one_score_holds_that_of_other_examples() -> None:
    rng, metric, missed, draws = np.random.default_rng(1), find_metric("accuracy"), 0, 100
    for _ in range(draws):
        right = rng.random((1, 150)) < 0.9
        statistics = metric.statistics(right[0] * 1.0, np.ones(150))[None]
        missed += crossed_score(metric, statistics).excludes(0.9)
    assert missed <= binom.ppf(0.999, draws, 0.05)


def test_flawless_runs_still_have_an_interval() -> None:
    metric = find_metric("accuracy")
    perfect = np.stack([metric.statistics(np.ones(50), np.ones(50))] * 3)
    found = crossed_score(metric, perfect)
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0.8 < found.low < 1.0
    with pytest.raises(DataError, match="as many of one as of the other"):
        crossed_difference(metric, perfect, perfect[:2])


# The study ---------------------------------------------------------------------------------------

AS_PUBLISHED = dict(zip(METHODS, (0.5, 0.75, 0.72, 0.8, 0.6, 0.9), strict=True))


def made_up(right: dict[str, float], *, seeds: int = 3, draw: int = 0, n: int = 300) -> Result:
    """Answers that are right with this probability; examples are easy or hard for all alike."""
    rng = np.random.default_rng(draw)
    study, hard = TaskBaselines(seeds=seeds, methods=tuple(right)), rng.random(n)
    corpus = Corpus(
        "made-up",
        [Example(str(i), "x", label=int(label)) for i, label in enumerate(rng.integers(0, 2, n))],
        TEXTS,
        TWO,
    )
    labels, parts = np.array(corpus.labels), {}
    for part in study.parts(Shape(1, 1, 1, 1, 1), corpus):
        name, _ = split_part(part)
        luck = 0.0 if name in SEEDLESS else rng.normal(0, 0.01)
        fine = (hard + rng.random(n)) / 2 < _mixed(right[name]) + luck
        parts[part] = answered(
            {name: np.where(fine, labels, 1 - labels)}, corpus, corpus, covered=0.9
        )
    return study.conclude(
        parts,
        Provenance("task-baselines", 1, {}, {"name": "m", "fingerprint": "f"},
                   {"name": "made-up", "fingerprint": "c"}),
    )  # fmt: skip


def _mixed(share: float) -> float:
    """Where the mean of two uniform numbers lies below with this probability."""
    return math.sqrt(share / 2) if share <= 0.5 else 1 - math.sqrt((1 - share) / 2)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up(AS_PUBLISHED)


def test_what_is_better_is_found() -> None:
    result = made_up(AS_PUBLISHED)
    evidence = result.evidence()
    assert evidence["fine_tuned_over_bilstm"].value == pytest.approx(0.1, abs=0.04)
    assert evidence["fine_tuned_over_simple"].low > 0
    assert evidence["fine_tuned_over_simple"].value == evidence["fine_tuned_over_bilstm"].value
    assert "BiLSTM" in result.answer
    assert "surely gains" in result.answer
    row = result.table().set_index("method").loc["bilstm"]
    assert row["low"] < 0.8 < row["high"]
    assert row["over_majority_low"] > 0.1
    assert result.table("runs").groupby("method").size()["majority"] == 1


def test_one_seed_decides_nothing_of_what_is_drawn() -> None:
    evidence = made_up(AS_PUBLISHED, seeds=1).evidence()
    assert math.isnan(evidence["fine_tuned_over_bilstm"].low)
    assert evidence["bag_of_words_over_majority"].low > 0  # in these nothing is


def test_equal_skill_bears_no_claim_out() -> None:
    held, draws = 0, 15
    for draw in range(draws):
        result = made_up(dict.fromkeys(METHODS, 0.7), draw=draw, n=150)
        held += sum(v.outcome.is_there for v in result.verdicts())
    assert held <= binom.ppf(0.999, draws, 0.05)


def written(folder: Path, label: Callable[[list[str], random.Random], int]) -> Corpus:
    folder.mkdir()
    for split, size, seed in (("train", 64, 1), ("validation", 40, 2)):
        with (folder / f"{split}.csv").open("w", newline="") as file:
            rows = [(e.text, TWO.labels[int(e.get("label"))]) for e in made(size, seed, label)]
            csv.writer(file).writerows([("text", "label"), *rows])
    return load_corpus(str(folder))


def test_the_whole_study_runs_and_is_a_function_of_what_it_is_given(tmp_path: Path) -> None:
    corpus = written(tmp_path / "task", has_cat)
    told: list[int] = []
    result = bt.run(
        "task-baselines", encoder(), task=corpus, store=str(tmp_path / "store"), seeds=2, epochs=1
    )
    assert isinstance(result, TaskBaselinesResult)
    runs = result.table("runs").set_index(["method", "seed"])["accuracy"]
    assert len(runs) == 4 * 2 + 2
    assert runs["bag-of-words"][0] > 0.9
    assert "64 examples to learn from, 40 to score, 2 seeds" in result.headline()
    study = TaskBaselines(seeds=2, epochs=1)
    for part in ("fine-tuned-seed-1", "bilstm-seed-1", "majority-seed-0"):
        again = study.measure(encoder(), corpus, part, Context(advance=told.append))
        score = float((again["predictions"][0] == again["labels"]).mean())
        assert score == runs[split_part(part)]
    assert sum(told) == 300


def test_another_file_of_vectors_is_another_study(tmp_path: Path) -> None:
    corpus = written(tmp_path / "task", has_cat)
    path = tmp_path / "v.txt"
    seen = set()
    for content in ("cat 1 2\n", "cat 1 3\n"):
        path.write_text(content)
        seen.add(TaskBaselines(vectors=str(path)).ingredients(corpus)["vectors"])
    assert len(seen) == 2
    with pytest.raises(DataError, match="no file"):
        TaskBaselines(vectors=str(tmp_path / "none")).ingredients(corpus)
