"""Fine-tuning learns, repeats itself, tells of its progress, and fails cleanly."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.errors import (
    CapabilityError,
    DataError,
    InterruptedRunError,
    JobError,
    ModelError,
    ParameterError,
)
from bertology.train.encoded import encode
from bertology.train.evaluate import baseline, predict
from bertology.train.finetune import FinetuneSettings, _Trainer, finetune
from bertology.train.fresh import Architecture
from bertology.train.history import History, Step
from made_classifiers import fresh_classifier

SIZE = Architecture(layers=1, heads=2, hidden=16, max_length=16)
ANIMALS = ("cat", "dog", "owl", "fox", "hen", "elk")
FAST = FinetuneSettings(epochs=3, batch_size=8, learning_rate=5e-3)
YES_NO = Task("has-cat", "classification", ("no", "yes"), ("accuracy", "f1"))
LENGTH = Task("length", "regression", (), ("pearson", "spearman"))


def words(i: int) -> str:
    """A sentence of one to five animals, different for every i."""
    return " ".join(ANIMALS[(i * 7 + j * j * (i % 11)) % 6] for j in range(1 + i % 5))


def corpus(task: Task, start: int, stop: int) -> Corpus:
    def label(text: str) -> int | float:
        return int("cat" in text) if task.kind == "classification" else len(text.split()) / 5

    texts = [words(i) for i in range(start, stop)]
    examples = [Example(str(i), text, label=label(text)) for i, text in enumerate(texts)]
    return Corpus(task.name, examples, frozenset({Field.TEXT, Field.LABEL}), task)


def taught(
    task: Task, settings: FinetuneSettings = FAST, **options: Any
) -> tuple[Any, Any, History]:
    train, validation = corpus(task, 0, 200), corpus(task, 200, 260)
    model, tokenizer = fresh_classifier(train.texts, SIZE, labels=task.labels)
    history = finetune(model, tokenizer, train, validation, settings=settings, **options)
    return model, tokenizer, history


def test_a_classifier_learns() -> None:
    model, tokenizer, history = taught(YES_NO)
    validation = corpus(YES_NO, 200, 260)
    floor = baseline(corpus(YES_NO, 0, 200), validation)
    assert list(history.scores) == ["accuracy", "f1"]
    assert history.scores["accuracy"] > max(0.95, floor["accuracy"])
    assert [e.number for e in history.epochs] == [1, 2, 3]
    assert history.epochs[-1].loss < history.epochs[0].loss
    said = predict(model, encode(validation, tokenizer, 16), YES_NO)
    right = sum(a == b for a, b in zip(said, validation.labels, strict=True))
    assert right / 60 == pytest.approx(history.scores["accuracy"])
    assert model.config.id2label == {0: "no", 1: "yes"}
    assert not model.training


def test_a_regression_learns() -> None:
    model, _, history = taught(LENGTH)
    assert history.scores["pearson"] > 0.9
    assert model.config.problem_type == "regression"
    assert baseline(corpus(LENGTH, 0, 200), corpus(LENGTH, 200, 260))["pearson"] == 0


def test_equal_seeds_give_equal_models_whatever_torch_was_doing() -> None:
    torch.manual_seed(1)
    first, _, _ = taught(YES_NO)
    state = torch.get_rng_state()
    torch.manual_seed(2)
    again, _, _ = taught(YES_NO)
    other, _, _ = taught(
        YES_NO, FinetuneSettings(epochs=3, batch_size=8, learning_rate=5e-3, seed=1)
    )
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
    assert not torch.equal(first.classifier.weight, other.classifier.weight)
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), state)


def test_progress_hears_every_step_and_every_epoch() -> None:
    heard: list[Step] = []
    _, _, history = taught(YES_NO, progress=heard.append)
    assert [s.done for s in heard] == list(range(1, 76))
    assert {s.total for s in heard} == {75}
    assert [s.done for s in heard if s.epoch] == [25, 50, 75]
    assert [s.epoch for s in heard if s.epoch] == list(history.epochs)


def test_batches_hold_every_example_once_and_waste_little() -> None:
    train = corpus(YES_NO, 0, 200)
    _, tokenizer = fresh_classifier(train.texts, SIZE, labels=YES_NO.labels)
    encoded = encode(train, tokenizer, None)
    batches = list(encoded.shuffled(8, torch.Generator().manual_seed(0)))
    assert sorted(i for b in batches for i in b) == list(range(200))
    padded = sum(len(b) * max(encoded.lengths[i] for i in b) for b in batches)
    assert padded < 1.1 * sum(encoded.lengths)
    assert batches != list(encoded.shuffled(8, torch.Generator().manual_seed(1)))


def test_ctrl_c_gives_the_model_back_as_it_was() -> None:
    train = corpus(YES_NO, 0, 40)
    model, tokenizer = fresh_classifier(train.texts, SIZE, labels=YES_NO.labels)
    before = {name: value.clone() for name, value in model.state_dict().items()}

    def stop(step: Step) -> None:
        if step.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match="stopped at step 3 of 15") as caught:
        finetune(model, tokenizer, train, train, settings=FAST, progress=stop)
    assert caught.value.exit_code == 130
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model.training


def test_divergence_is_said_at_once() -> None:
    train = corpus(YES_NO, 0, 40)
    model, tokenizer = fresh_classifier(train.texts, SIZE, labels=YES_NO.labels)
    with torch.no_grad():
        model.classifier.weight.fill_(math.nan)
    with pytest.raises(JobError, match=r"loss is nan at step 1 of 15[\s\S]*learning rate"):
        finetune(model, tokenizer, train, train, settings=FAST)


def test_a_loss_that_is_read_late_is_still_told_by_its_step() -> None:
    train = corpus(YES_NO, 0, 40)
    model, _ = fresh_classifier(train.texts, SIZE, labels=YES_NO.labels)
    trainer = _Trainer(model, YES_NO, FAST, steps=15, done=9)
    assert trainer._read([torch.tensor(0.5), torch.tensor(0.25)]) == [0.5, 0.25]
    with pytest.raises(JobError, match="loss is inf at step 8 of 15"):
        trainer._read([torch.tensor(v) for v in (0.5, math.inf, math.nan)])


@pytest.mark.parametrize("side", ["right", "left"])
def test_batches_are_padded_as_the_tokenizer_would(side: str) -> None:
    pairs = [Example(str(i), words(i), text_b=words(3 * i + 1), label=i % 2) for i in range(20)]
    fields = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL})
    train = Corpus("pairs", pairs, fields, YES_NO)
    _, tokenizer = fresh_classifier(train.texts, SIZE, labels=YES_NO.labels)
    tokenizer.padding_side = side
    encoded = encode(train, tokenizer, 16)
    chosen = [7, 0, 13, 4]
    inputs, targets = encoded.batch(chosen, torch.device("cpu"))
    expected, _ = encoded._padded_by_tokenizer(chosen, torch.device("cpu"))
    assert targets.tolist() == [1, 0, 1, 0]
    assert set(inputs) == set(expected) == {"input_ids", "token_type_ids", "attention_mask"}
    assert (inputs["attention_mask"] == 0).any()
    for name, value in expected.items():
        assert torch.equal(inputs[name], value)


@pytest.mark.parametrize(
    ("task", "label", "message"),
    [
        (YES_NO, 2, "not a class of 'has-cat'"),
        (YES_NO, -1, "not a class"),
        (YES_NO, math.nan, "not a class"),
        (YES_NO, 0.5, "not a class"),
        (LENGTH, math.nan, "not a finite number"),
        (LENGTH, math.inf, "not a finite number"),
    ],
)
def test_labels_that_cannot_be_are_refused(task: Task, label: float, message: str) -> None:
    bad = [Example("odd", "cat", label=label)]
    given = Corpus("bad", bad, frozenset({Field.TEXT, Field.LABEL}), task)
    _, tokenizer = fresh_classifier(["cat"], SIZE, labels=task.labels)
    with pytest.raises(DataError, match=f"'odd'.*{message}"):
        encode(given, tokenizer, None)


def test_what_does_not_fit_is_refused_before_any_work() -> None:
    train = corpus(YES_NO, 0, 8)
    model, tokenizer = fresh_classifier(train.texts, SIZE, labels=("a", "b", "c"))
    with pytest.raises(ModelError, match="3 outputs; 'has-cat' needs 2"):
        finetune(model, tokenizer, train, train)
    with pytest.raises(ParameterError, match="same task"):
        finetune(model, tokenizer, train, corpus(LENGTH, 0, 8))
    untold = Corpus("plain", train.examples, train.fields)
    with pytest.raises(CapabilityError, match="has no task"):
        finetune(model, tokenizer, untold, untold)
    tagging = Corpus("tags", train.examples, train.fields, Task("pos", "tagging", ("a", "b")))
    with pytest.raises(CapabilityError, match="tagging task"):
        finetune(model, tokenizer, tagging, tagging)
    model, tokenizer = fresh_classifier(train.texts, SIZE, labels=YES_NO.labels)
    with pytest.raises(ParameterError, match="at most 16"):
        finetune(model, tokenizer, train, train, settings=FinetuneSettings(max_length=99))


def test_long_texts_are_cut_and_counted() -> None:
    train = corpus(YES_NO, 0, 40)
    model, tokenizer = fresh_classifier(train.texts, SIZE, labels=YES_NO.labels)
    settings = FinetuneSettings(epochs=1, max_length=4)
    history = finetune(model, tokenizer, train, train, settings=settings)
    assert history.truncated == sum(len(e.text.split()) > 2 for e in train)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"learning_rate": math.nan},
        {"warmup": 1.5},
        {"weight_decay": -1.0},
        {"max_length": 2},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        FinetuneSettings(**wrong)
