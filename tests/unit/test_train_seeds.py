"""Fine-tuning takes its two seeds apart, can be watched, and shares tokenized data with others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import planted
from bertology.model.batch import tokenize
from bertology.model.encoder import Encoder
from bertology.studies.training.finetuning_variants.runs import Variant, VariantRun, train_variant
from bertology.train import encoded
from bertology.train.finetune import FinetuneSettings
from bertology.train.history import Watch
from bertology.train.landscape.survey import Asked, Survey
from bertology.train.starts import STARTS
from bertology.train.tuning import TuningJob, answers_of, tune

FAST = FinetuneSettings(epochs=3, batch_size=8, learning_rate=2e-3)


def job(**settings: Any) -> TuningJob:
    encoder = Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")
    data = planted.corpus(40, seed=1), planted.corpus(30, seed=2)
    return TuningJob(encoder, *data, STARTS["pretrained"], replace(FAST, **settings))


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def test_new_weights_and_the_order_of_examples_have_seeds_of_their_own() -> None:
    def start(**seeds: int) -> dict[str, torch.Tensor]:
        never = replace(job(**seeds), start=STARTS["frozen"])
        return dict(tune(never)[0].state_dict())

    def end(**seeds: int) -> dict[str, torch.Tensor]:
        return dict(tune(job(epochs=1, **seeds))[0].state_dict())

    assert same(start(seed=3), start(seed=5, weights_seed=3))
    assert not same(start(seed=3), start(seed=3, weights_seed=5))
    assert same(end(seed=3), end(seed=3, weights_seed=3))
    assert not same(end(seed=3, weights_seed=3), end(seed=5, weights_seed=3))


def test_one_seed_for_both_is_the_job_that_it_was() -> None:
    assert job().identity == "aea95a35d567b5eb"  # as it was before there were two seeds
    assert job(weights_seed=0).identity != job().identity


def test_a_watch_sees_the_training_and_changes_nothing() -> None:
    seen: dict[int, Any] = {}
    watch = Watch((0.05, 0.5, 1.0), lambda step, said: seen.update({step: said}))
    watched, history = tune(job(), watch=watch)
    plain, other = tune(job())
    assert same(dict(watched.state_dict()), dict(plain.state_dict()))
    assert history.scores == other.scores
    assert list(seen) == list(watch.steps(15)) == [1, 8, 15]
    assert (seen[15] == answers_of(plain, job())).all()
    assert (seen[1] != seen[15]).any()


@pytest.fixture
def tokenized(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were tokenized in each call so far."""
    calls = list[int]()

    def counted(*given: Any, **more: Any) -> Any:
        calls.append(len(given[1]))
        return tokenize(*given, **more)

    monkeypatch.setattr(encoded, "tokenize", counted)
    return calls


def by_seeds(given: TuningJob) -> list[TuningJob]:
    return [replace(given, settings=replace(given.settings, seed=k)) for k in range(3)]


def test_data_are_tokenized_once_for_all_seeds(tokenized: list[int]) -> None:
    for given in by_seeds(job(epochs=1)):
        tune(given)
    assert tokenized == [40, 30]


def test_what_no_run_changes_is_tokenized_once_for_all_seeds(tokenized: list[int]) -> None:
    for given in by_seeds(replace(job(), start=STARTS["frozen"])):
        tune(given)
    assert tokenized == [30]


def test_texts_that_variants_are_scored_on_are_tokenized_once(tokenized: list[int]) -> None:
    given = job(epochs=1)
    for one in by_seeds(given):
        trained = train_variant(
            VariantRun(Variant("plain"), one, given.validation), None, keep=False, reach=_quiet
        )
        said, noisy = trained.answers(given.validation, noise=0.5)
        assert said.shape == noisy.shape == (30,)
    assert tokenized == [40, 30]


def test_texts_that_landscapes_are_read_on_are_tokenized_once(tokenized: list[int]) -> None:
    asked = Asked(sample=40, grid=3, directions=1, probes=2, iterations=4, eigenvalues=1)
    for one in by_seeds(job(epochs=1)):
        found = Survey(one, asked).run()
        assert "validation_loss" in found
    assert tokenized == [40, 30]


def _quiet(done: int) -> None:
    pass


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_watch_sees_recorded_steps_and_changes_nothing() -> None:
    def trained(**more: Any) -> Any:
        given = job(recorded=True)
        given.encoder.model.cuda()
        return tune(given, **more)[0]

    seen: dict[int, Any] = {}
    watched = trained(watch=Watch((0.5, 1.0), lambda step, said: seen.update({step: said})))
    for one, other in zip(watched.parameters(), trained().parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert list(seen) == [8, 15]
