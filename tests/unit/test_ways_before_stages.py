"""What does not fit is refused before a stage, and a stage learns nothing that is scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus, load_split
from bertology.errors import BertologyError, CapabilityError, DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.studies.training.finetuning_variants import FinetuningVariants
from bertology.train.encoded import encode
from bertology.train.finetune import FinetuneSettings, finetune, try_ways
from bertology.train.iterative_pruning import split_deciding
from bertology.train.movement import Movement
from bertology.train.starts import begin
from bertology.train.tuning import TuningJob, try_job, tune
from bertology.train.ways import read_way
from bertology.train.ways.hex import projected_out
from made_tunings import LENGTH, YES_NO, corpus, encoder
from made_ways import by, lesson_of, other_task, pairs, prepared


def of(kind: str) -> Callable[[], Encoder]:
    return lambda: encoder(kind)


def mixed() -> Encoder:
    """A model that reads a mix of its layers already."""
    model, _ = prepared(by("layer_mix"))
    return Encoder(model, encoder().tokenizer, head="classification")


def without_mask() -> Encoder:
    found = encoder()
    found.tokenizer.mask_token = None
    return found


LATE: list[tuple[str, Callable[[], Encoder], str]] = [
    ("siamese", encoder, "for pairs of texts"),
    ("hex", encoder, "for pairs of texts"),
    ("substitution:by=mask", without_mask, "no mask token"),
    ("adapters", of("albert"), "cannot have parts added"),
    ("layer_choice", of("modernbert"), "cannot have parts added"),
    ("bias_only", of("modernbert"), "no bias terms"),
    ("layer_rates", of("albert"), "share their weights"),
    ("frozen_bottom", of("albert"), "share their weights"),
    ("layer_mix", mixed, "has a part 'layer_mix' already"),
    ("lora", of("deberta-v2"), "no query and value maps"),
]


@pytest.mark.parametrize(("text", "make", "message"), LATE)
def test_what_a_way_refuses_is_refused_before_a_stage(
    text: str, make: Callable[[], Encoder], message: str
) -> None:
    """The stage would refuse these models too, in other words."""
    given = by("masked_lm", text)
    small = {"train": corpus(0, 40), "validation": corpus(40, 60)}
    with pytest.raises(CapabilityError, match=message):
        tune(replace(given, encoder=make(), **small))


def test_hex_refuses_numbers_before_a_stage() -> None:
    given, task = by("masked_lm", "hex"), replace(LENGTH, pair=True)
    numbers = replace(corpus(0, 40, LENGTH), task=task)
    with pytest.raises(CapabilityError, match="is for classes"):
        tune(replace(given, train=numbers, validation=numbers))


def test_a_trial_changes_nothing() -> None:
    given = by("adapters", "frozen_bottom", "masked_lm", "substitution")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    before = {n: w.detach().clone() for n, w in model.named_parameters()}
    lesson, state = lesson_of(given, model), torch.get_rng_state()
    try_ways(lesson, given.settings.ways)
    after = dict(model.named_parameters())
    assert after.keys() == before.keys()
    assert all(torch.equal(after[n], before[n]) and after[n].requires_grad for n in after)
    assert torch.equal(torch.get_rng_state(), state)
    assert not lesson.kept
    assert not lesson.spent


# Another task first ------------------------------------------------------------------------------


def task_in(folder: Path) -> tuple[Corpus, Corpus, str]:
    """A task's training data, what is scored, and the other task's way on the same data."""
    folder.mkdir()
    text = other_task(folder).partition(",")[0]
    return load_corpus(str(folder), split="train"), load_corpus(str(folder)), text


def first(train: Corpus, scored: Corpus, *texts: str) -> TuningJob:
    return replace(by(*texts), train=train, validation=scored)


@pytest.mark.parametrize("options", ["", ",limit=30", ",split=validation"])
def test_the_same_task_is_none_to_learn_first(options: str, tmp_path: Path) -> None:
    train, scored, text = task_in(tmp_path / "task")
    parts = [replace(train, examples=train.examples[:30], origin={}), train]
    for learnt in parts:
        with pytest.raises(ParameterError, match="be another task"):
            tune(first(learnt, scored, text + options))


def test_what_is_scored_is_not_learnt_first(tmp_path: Path) -> None:
    train, scored, _ = task_in(tmp_path / "task")
    _, _, text = task_in(tmp_path / "copy")
    for job in (first(train, scored, text), first(train, scored, text + ",split=validation")):
        with pytest.raises(DataError, match=r"20 of the 20 examples of 'task' that are scored"):
            tune(job)
    # Where other data decide when to stop, what is scored is asked about all the same.
    job = first(corpus(0, 40), corpus(40, 60), text)
    try_job(job, corpus(60, 80))
    with pytest.raises(DataError, match="which is learnt first"):
        try_job(job, scored)


@pytest.mark.parametrize("way", ["", "early-stopping+"])
def test_the_study_refuses_it_too(way: str, tmp_path: Path) -> None:
    other_task(tmp_path)
    lines = [f"cat {'owl ' * i}fox,{'yes' if i % 2 else 'no'}" for i in range(200)]
    (tmp_path / "train.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    scored = load_corpus(str(tmp_path))
    same = f"{way}intermediate:task={tmp_path},split=validation"
    with pytest.raises(ParameterError, match="be another task"):
        FinetuningVariants(ways=(same,)).check(encoder(), scored)
    named = FinetuningVariants(
        ways=("layer-mix",), intermediate=str(tmp_path), intermediate_split="validation"
    )
    with pytest.raises(ParameterError, match="be another task"):
        named.check(encoder(), scored)


def test_a_part_of_data_still_knows_where_other_data_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace(corpus(0, 400), origin={"name_or_path": "mrpc", "root": "/data", "limit": 9})
    learn, decide = split_deciding(whole, corpus(400, 410))
    assert learn.origin == decide.origin == {"root": "/data"}
    with pytest.raises(CapabilityError, match="does not say where its split"):
        load_split(learn, "train")
    asked = list[Any]()

    def load(name: str, **how: Any) -> Corpus:
        asked.append((name, how["root"]))
        return corpus(0, 4)

    monkeypatch.setattr("bertology.train.ways.intermediate.load_corpus", load)
    assert read_way("intermediate:task=rte,limit=77").ingredients(learn)
    assert asked == [("rte", "/data")] * 2


# What the record says ----------------------------------------------------------------------------


def test_a_stage_has_the_precision_of_the_training(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And its steps are recorded where that is quicker, also if those after it are not."""
    seen = list[FinetuneSettings]()
    place = "bertology.train.ways.intermediate"
    monkeypatch.setattr(f"{place}.finetune", lambda *a, settings, **k: seen.append(settings))
    given = by(other_task(tmp_path))
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    for quick in (False, True):
        monkeypatch.setattr(f"{place}.gains_by_recording", lambda model, quick=quick: quick)
        lesson = replace(lesson_of(given, model), precision="bfloat16")
        given.settings.ways[0].prepare(lesson)
    assert [(s.precision, s.recorded) for s in seen] == [("bfloat16", False), ("bfloat16", True)]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_more_masked_lm_has_the_precision_of_the_training(precision: str) -> None:
    there, way = encoder(head="mlm"), read_way("masked_lm")
    seen = list[bool]()
    there.model.register_forward_pre_hook(
        lambda *given: seen.append(torch.is_autocast_enabled("cpu"))
    )
    given = by()
    lesson = replace(lesson_of(given, prepared(given)[0]), precision=precision)
    rows = encode(given.train, there.tokenizer, 64)
    assert torch.isfinite(way._loss(there.model, rows, [0, 1, 2], lesson))  # type: ignore[attr-defined]
    assert seen == [precision == "bfloat16"]


def test_hex_takes_the_answers_and_the_loss_of_the_pass_that_it_is_given() -> None:
    """So precision and other losses inside of it count."""
    given = by("hex")
    model, lesson = prepared(given)
    rows = encode(pairs(0, 40), given.encoder.tokenizer, 64)
    inputs, targets = rows.batch(range(8), torch.device("cpu"))

    def plain(inputs: dict[str, Any], targets: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return 3 * functional.cross_entropy(model(**inputs).logits, targets)

    found = given.settings.ways[0].loss(lesson, plain, inputs, targets)
    with torch.no_grad():
        bias = model.superficial(inputs["input_ids"], inputs["attention_mask"])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            answers = model(**inputs).logits
        left = projected_out(answers.float(), bias)
        wanted = 3 * functional.cross_entropy(left, targets) + functional.cross_entropy(
            bias, targets
        )
    assert float(found.detach()) == pytest.approx(float(wanted), abs=1e-5)
    assert not model._forward_hooks


def test_steps_that_cannot_be_recorded_are_not() -> None:
    """Said before anything is asked of the device: a recording would be wrong without a word."""
    given = by("adversarial")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    parts = model, given.encoder.tokenizer, given.train, given.validation
    recorded = replace(given.settings, recorded=True)
    with pytest.raises(ParameterError, match="be False with 'adversarial', whose steps"):
        finetune(*parts, settings=recorded)
    name = "bert.encoder.layer.0.output.dense.weight"
    movement = Movement({name: dict(model.named_parameters())[name]}, 0.5)
    with pytest.raises(BertologyError, match="be False with a movement"):
        finetune(*parts, settings=replace(recorded, ways=()), movement=movement)
    with pytest.raises(ParameterError, match="but on a GPU"):
        finetune(*parts, settings=replace(recorded, ways=()))
