"""What ways make is saved and opened again, and a killed run goes on to the same numbers."""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from bertology.data.corpus import Corpus, Field, Task
from bertology.errors import CapabilityError, MissingExtraError, ParameterError
from bertology.model.batch import tokenize
from bertology.model.encoder import Encoder
from bertology.model.interventions import SkipLayer
from bertology.train import encoded
from bertology.train.encoded import encode
from bertology.train.finetune import finetune
from bertology.train.starts import STARTS, begin
from bertology.train.tuning import TuningJob, make_tuned, tune
from bertology.train.ways import read_way, read_ways
from made_tunings import FAST, YES_NO, KilledError, corpus, encoder, killed_at, same, weights
from made_ways import HEAD, ONCE, TOGETHER, by, lesson_of, other_task, prepared, with_its_head

LORA = ("lora:rank=2",)
BUILT = [
    TOGETHER,
    LORA,
    ("layer_choice:which=1+3,how=joined",),
    ("layer_choice:which=2,how=mean",),
]


@pytest.mark.parametrize("texts", BUILT)
def test_a_saved_model_is_opened_and_says_the_same(texts: tuple[str, ...], tmp_path: Path) -> None:
    given = by(*texts)
    record = make_tuned(tmp_path / "made", given)
    assert record["settings"]["ways"] == [way.text for way in given.settings.ways]
    assert record["trained_parameters"] == tune(given)[1].trained
    model: Any = tune(given)[0]
    opened = Encoder.load(str(tmp_path / "made"), head="classification", device="cpu")
    batch = tiny.inputs(length=12) | {"input_ids": tiny.inputs(length=12)["input_ids"] % 11}
    with torch.no_grad():
        assert torch.equal(opened.model(**batch).logits, model(**batch).logits)
        twin = copy.deepcopy(opened.model)
        for weight in twin.base_model.parameters():
            weight.zero_()
        assert torch.equal(opened.model(**batch).logits, model(**batch).logits)
        body = Encoder.load(str(tmp_path / "made"), device="cpu")
        states = model.base_model(**batch).last_hidden_state
        assert torch.equal(body.model(**batch).last_hidden_state, states)
    if texts == LORA:  # whose changes are added to the maps: what is left is a plain model
        assert opened.capabilities == given.encoder.capabilities
    else:
        assert not {"fast-replay", "pruning"} & opened.capabilities
    assert texts[0] in (tmp_path / "made" / "README.md").read_text()
    again: Any = begin(body, YES_NO, STARTS["pretrained"], seed=1)
    assert torch.equal(again.base_model(**batch).last_hidden_state, states)


def test_what_is_changed_for_one_run_reaches_what_reads_the_layers() -> None:
    """A layer that is skipped gives what it was given, also to a mix of all layers."""
    given = by("layer_choice:which=1,how=mean")
    model, _ = tune(given)
    opened = Encoder(model, given.encoder.tokenizer, head="classification")
    batch = opened.encode(["cat dog owl", "fox"])
    with opened.doing(SkipLayer([0])):
        skipped = opened.run(batch).logits
    with opened.doing(SkipLayer([1, 2])):
        above = opened.run(batch).logits
    plain = opened.run(batch).logits
    assert torch.equal(above, plain)  # only layer 1 is read
    assert not torch.allclose(skipped, plain)


@pytest.mark.parametrize(
    "texts",
    [
        TOGETHER,
        LORA,
        (*LORA, "layer_mix", "substitution"),
        ("mixout", "adversarial:steps=2"),
        ("layer_choice:which=last-2",),
        ("siamese", "mixout"),
        ("hex", "layer_drop"),
    ],
)
def test_a_killed_run_goes_on_to_the_same_numbers(texts: tuple[str, ...], tmp_path: Path) -> None:
    given = by(*texts, settings=replace(FAST, epochs=2))
    whole = make_tuned(tmp_path / "whole", given)
    with pytest.raises(KilledError):
        make_tuned(tmp_path / "cut", given, progress=killed_at(8))
    cut = make_tuned(tmp_path / "cut", given)
    assert [e["loss"] for e in cut["history"]] == [e["loss"] for e in whole["history"]]
    one, other = (
        Encoder.load(str(tmp_path / name), head="classification", device="cpu").model
        for name in ("whole", "cut")
    )
    assert same(dict(one.state_dict()), dict(other.state_dict()))


def test_a_failed_run_leaves_no_trace_of_what_ways_put_in_place() -> None:
    given = by("mixout", "adversarial")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    before = {n: w.clone() for n, w in model.state_dict().items()}

    with pytest.raises(KilledError):
        finetune(
            model, given.encoder.tokenizer, given.train, given.validation,
            settings=given.settings, progress=killed_at(2),
        )  # fmt: skip
    assert same(dict(model.state_dict()), before)
    assert not any("forward" in vars(module) for module in model.modules())


# Stages ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    """A model with a masked-LM head in a folder, opened without it."""
    return with_its_head(tmp_path_factory.mktemp("pretrained") / "model")


def test_more_masked_lm_changes_the_body_before_the_task_is_learnt(
    saved: Encoder, tmp_path: Path
) -> None:
    ways = read_ways(["masked_lm:epochs=2,rate=0.003"], start="frozen-features")
    given = TuningJob(
        saved, corpus(0, 40), corpus(40, 70), STARTS["frozen-features"], replace(FAST, ways=ways)
    )
    whole = make_tuned(tmp_path / "whole", given)
    made = Encoder.load(str(tmp_path / "whole"), device="cpu")
    own, before = made.base.state_dict(), saved.base.state_dict()
    name = "encoder.layer.0.output.dense.weight"
    assert not torch.equal(own[name], before[name])
    # The body is frozen after the stage, so that only the stage's own file can bring it back.
    with pytest.raises(KilledError):
        make_tuned(tmp_path / "cut", given, progress=killed_at(8))
    [kept] = tmp_path.glob("cut-unfinished-*-stages")
    assert (kept / "masked_lm.safetensors").is_file()
    cut = make_tuned(tmp_path / "cut", given)
    again = Encoder.load(str(tmp_path / "cut"), device="cpu")
    assert same(dict(own), dict(again.base.state_dict()))
    assert [e["loss"] for e in cut["history"]] == [e["loss"] for e in whole["history"]]
    assert not list(tmp_path.glob("*-stages"))


def test_a_stage_on_the_same_texts_does_not_tokenize_them_again(
    saved: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[int]()

    def counted(*given: Any, **more: Any) -> Any:
        calls.append(len(given[1]))
        return tokenize(*given, **more)

    monkeypatch.setattr(encoded, "tokenize", counted)
    tune(replace(by("masked_lm"), encoder=saved, train=corpus(0, 41), validation=corpus(41, 72)))
    assert calls == [41, 31]


@pytest.mark.parametrize("text", ["masked_lm", "adversarial:steps=2", "substitution", "layer_mix"])
def test_ways_go_with_multiple_choice(saved: Encoder, text: str) -> None:
    """A batch then has one more dimension: the answers of each question."""
    task = Task("which", "multiple-choice", ("0", "1"), ("accuracy",), pair=True)
    answers = {"candidates": ["cat hen", "dog"]}
    examples = [
        replace(e, text_b="fox", label=int(e.label or 0), annotations=answers)
        for e in corpus(0, 16).examples
    ]
    fields = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.CANDIDATES})
    asked = Corpus("which", examples, fields, task, "train")
    settings = replace(ONCE, ways=read_ways([text]))
    _, history = tune(TuningJob(saved, asked, asked, STARTS["pretrained"], settings))
    assert np.isfinite(history.scores["accuracy"])


def test_masked_lm_needs_the_head_that_was_pre_trained() -> None:
    with pytest.raises(CapabilityError, match="not known where the model was loaded from"):
        tune(by("masked_lm"))


def test_another_task_first(tmp_path: Path) -> None:
    text = other_task(tmp_path)
    given = by(text)
    assert given.identity != by(f"intermediate:task={tmp_path},limit=20").identity
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    read_way(text).prepare(lesson_of(given, model))
    name = "bert.encoder.layer.1.output.dense.weight"
    assert not torch.equal(model.state_dict()[name], given.encoder.base.state_dict()[name[5:]])
    assert model.config.num_labels == 2
    whole = make_tuned(tmp_path / "whole", given)
    with pytest.raises(KilledError):
        make_tuned(tmp_path / "cut", given, progress=killed_at(3))
    assert make_tuned(tmp_path / "cut", given)["scores"] == whole["scores"]
    itself = replace(given, train=_data_of(tmp_path))
    with pytest.raises(ParameterError, match="be another task"):
        tune(itself)


def _data_of(folder: Path) -> Any:
    from bertology.data.loading import load_corpus

    return load_corpus(str(folder), split="train", limit=30)


def test_lora_is_merged_into_a_plain_model() -> None:
    given = by("lora:rank=2")
    model, history = tune(given)
    assert history.trained == 3 * 2 * 2 * (2 * 24) + 50
    before = begin(given.encoder, YES_NO, given.start, seed=0).state_dict()
    after = model.state_dict()
    changed = {n for n in after if not torch.equal(after[n], before[n])}
    assert after.keys() == before.keys()
    assert changed == HEAD | {n for n in after if n.endswith(("query.weight", "value.weight"))}


@pytest.mark.parametrize("stage", ["masked_lm", "intermediate"])
def test_lora_is_drawn_by_the_seed_also_where_a_stage_is_read_from_its_file(
    saved: Encoder, stage: str, tmp_path: Path
) -> None:
    """A stage that is done draws random numbers, and one that is read does not."""
    text = other_task(tmp_path) if stage == "intermediate" else stage
    given = replace(by(text, *LORA), encoder=saved)
    whole = make_tuned(tmp_path / "whole", given)
    with pytest.raises(KilledError):
        make_tuned(tmp_path / "cut", given, progress=killed_at(1))  # no epoch is kept yet
    [kept] = tmp_path.glob("cut-unfinished-*-stages")
    assert (kept / f"{stage}.safetensors").is_file()
    cut = make_tuned(tmp_path / "cut", given)
    assert [e["loss"] for e in cut["history"]] == [e["loss"] for e in whole["history"]]
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_lora_leaves_torchs_own_generator_alone_and_draws_by_seed() -> None:
    given = by(*LORA)
    drawn = []
    for state, seed in ((1, 0), (2, 0), (1, 3)):
        lesson = prepared(replace(by(), settings=replace(ONCE, seed=seed)))[1]
        torch.manual_seed(state)
        before = torch.get_rng_state()
        given.settings.ways[0].prepare(lesson)
        assert torch.equal(torch.get_rng_state(), before)
        named = dict(lesson.model.named_parameters())
        drawn.append(torch.cat([w.flatten() for n, w in named.items() if "lora_A" in n]))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_lora_may_follow_itself_on_one_model() -> None:
    model, _ = prepared(by())
    given = by(*LORA)
    for _ in range(2):
        finetune(
            model, given.encoder.tokenizer, given.train, given.validation, settings=given.settings
        )
    assert not hasattr(model, "peft_config")
    assert {type(m).__module__.partition(".")[0] for m in model.modules()} <= {
        "torch", "transformers", "bertology"
    }  # fmt: skip


def test_a_siamese_model_is_opened_and_says_the_same(tmp_path: Path) -> None:
    given = by("siamese")
    made = make_tuned(tmp_path / "made", given)
    opened = Encoder.load(str(tmp_path / "made"), head="classification", device="cpu")
    model: Any = tune(given)[0]
    rows = encode(given.validation, given.encoder.tokenizer, 64)
    batch, _ = rows.batch(range(len(rows)), torch.device("cpu"))
    with torch.no_grad():
        assert torch.equal(opened.model(**batch).logits, model(**batch).logits)
    assert made["scores"]


def test_without_peft_lora_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"bertology\[peft\]"):
        tune(by("masked_lm", "lora"))  # said before the stage, which would refuse this model


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("texts", [TOGETHER, ("mixout",), ("bias_only", "layer_choice")])
def test_steps_that_are_recorded_are_those_that_are_not(
    texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = encoder()
    there.model.cuda()
    for layer in there.model.modules():  # a recording draws other numbers than single calls
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    given = replace(by(*texts, settings=FAST), encoder=there)
    _, recorded = tune(given)
    monkeypatch.setattr("bertology.train.tuning.gains_by_recording", lambda model: False)
    _, plain = tune(given)
    for one, other in zip(recorded.epochs, plain.epochs, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=0.1)


# What is refused ---------------------------------------------------------------------------------
