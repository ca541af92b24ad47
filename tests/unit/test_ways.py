"""Ways to fine-tune: each trains what it says, they combine, and plain runs stay as they were."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import tiny
from bertology.data.corpus import Corpus, Field, Task
from bertology.errors import CapabilityError, MissingExtraError, ParameterError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.interventions import SkipLayer
from bertology.train.encoded import encode
from bertology.train.finetune import FinetuneSettings
from bertology.train.starts import STARTS, begin, default_rate, new_weights
from bertology.train.tuning import TuningJob, make_tuned, tune
from bertology.train.ways import WAYS, Lesson, compatible, read_way, read_ways
from made_tunings import FAST, YES_NO, KilledError, corpus, encoder, job, killed_at, same

ONCE = replace(FAST, epochs=1)


def by(*texts: str, settings: FinetuneSettings = ONCE, start: str = "pretrained") -> TuningJob:
    return job(start, replace(settings, ways=read_ways(texts, start=start)))


# Without a way -----------------------------------------------------------------------------------


def test_without_a_way_every_bit_is_as_it_always_was() -> None:
    """The trainer of before, in a few lines: it knows nothing of ways."""
    given = job(settings=replace(FAST, epochs=2))
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    matrices = [p for p in model.parameters() if p.dim() > 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=FAST.learning_rate, fused=True)
    rows = encode(given.train, given.encoder.tokenizer, 64)
    order = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        step = 0
        for _ in range(2):
            model.train()
            for chosen in list(rows.shuffled(8, order)):
                rate = (step + 1) / 2 if step < 1 else (10 - step) / 9
                for group in optimizer.param_groups:
                    group["lr"] = FAST.learning_rate * rate
                inputs, targets = rows.batch(chosen, torch.device("cpu"))
                loss = functional.cross_entropy(model(**inputs).logits, targets)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                step += 1
    tuned, history = tune(given)
    assert same(dict(model.state_dict()), dict(tuned.state_dict()))
    assert history.trained == model.num_parameters()


def test_without_a_way_a_job_has_the_name_it_always_had() -> None:
    given = job()
    settings = asdict(given.settings)
    del settings["ways"], settings["weights_seed"]  # which jobs of before did not know
    asked = {
        "model": given.encoder.fingerprint,
        "train": given.train.fingerprint,
        "validation": given.validation.fingerprint,
        "start": "pretrained",
        "settings": settings,
    }
    named = sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
    assert given.identity == named
    assert "ways" not in given.settings.as_record()
    names = {by(text).identity for text in ("mixout", "mixout:share=0.4", "bias_only")}
    assert len(names | {named}) == 4


# What is trained ---------------------------------------------------------------------------------

HEAD = {"classifier.weight", "classifier.bias"}
_LAYER = "bert.encoder.layer.{}."


def _in_layers(*layers: int) -> Callable[[str], bool]:
    places = tuple(_LAYER.format(i) for i in layers)
    return lambda name: name.startswith(places)


def _after_layers(name: str) -> bool:
    return name.startswith(("bert.pooler", "classifier", "bert.encoder.layer_reader"))


# What is trained of a model with 3 layers of width 24 and an MLP of 40: a rule for names, and how
# many numbers that is, counted by hand. A map of 24 to 24 has 600 with its bias, a LayerNorm 48.
LAYER = 4 * 600 + (24 * 40 + 40) + (40 * 24 + 24) + 2 * 48
EMBEDDINGS = (tiny.VOCAB + 512 + 2) * 24 + 48
ALL = EMBEDDINGS + 3 * LAYER + 600 + 50
BIASES = 24 + 3 * (4 * 24 + 40 + 24 + 2 * 24) + 24
TRAINED: dict[str, tuple[Callable[[str], bool], int]] = {
    "adapters:size=4": (
        lambda n: ".adapter." in n or "LayerNorm" in n or n in HEAD,
        6 * (24 * 4 + 4 + 4 * 24 + 24) + 7 * 48 + 50,
    ),
    "bias_only": (lambda n: n.endswith("bias") or n in HEAD, BIASES + 50),
    "frozen_bottom:layers=2": (lambda n: _in_layers(2)(n) or _after_layers(n), LAYER + 600 + 50),
    "frozen_bottom:layers=0": (lambda n: "embeddings" not in n, ALL - EMBEDDINGS),
    "layer_rates:decay=0.5": (lambda n: True, ALL),
    "top_again:layers=2": (lambda n: True, ALL),
    "layer_mix:rate=0.05": (lambda n: True, ALL + 4),
    "layer_choice:which=1+3,how=joined": (lambda n: True, ALL + 48 * 24 + 24),
    "layer_choice:which=last-2,how=mean": (lambda n: True, ALL),
    "mixout:share=0.5": (lambda n: True, ALL),
    "adversarial:steps=2": (lambda n: True, ALL),
    "substitution:share=0.2": (lambda n: True, ALL),
    "layer_drop:share=0.3": (lambda n: True, ALL),
    "bias_only layer_mix": (
        lambda n: n.endswith("bias") or n in HEAD or "layer_reader" in n,
        BIASES + 50 + 4,
    ),
    "adapters:size=2 frozen_bottom:layers=1": (
        lambda n: n in HEAD or (_in_layers(1, 2)(n) and (".adapter." in n or "LayerNorm" in n)),
        4 * (2 * 48 + 2 + 24) + 4 * 48 + 50,
    ),
}


def before_and_after(given: TuningJob) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Weights as the training begins, and after it: parts that ways add are there in both."""
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    lesson = lesson_of(given, model)
    for way in given.settings.ways:
        way.prepare(lesson)
    seen = {n: p.detach().clone() for n, p in model.named_parameters()}
    learning = {n for n, p in model.named_parameters() if p.requires_grad}
    tuned: Any
    tuned, history = tune(given)
    after = {n: p.detach() for n, p in tuned.named_parameters()}
    assert history.trained == sum(seen[n].numel() for n in learning)
    return {n: seen[n] for n in seen if n in learning}, after, history.trained


def lesson_of(given: TuningJob, model: Any) -> Lesson:
    settings, tokens = given.settings, given.encoder.tokenizer
    head = new_weights(given.encoder, model)
    return Lesson(model, tokens, given.train, settings.seed, settings.learning_rate, 8, None, head)


@pytest.mark.parametrize("texts", TRAINED)
def test_each_way_trains_exactly_what_it_says(texts: str) -> None:
    rule, count = TRAINED[texts]
    given = by(*texts.split())
    learning, after, trained = before_and_after(given)
    assert set(learning) == {n for n in after if rule(n)}
    assert trained == count
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    untouched = {n: p for n, p in model.named_parameters() if n not in learning}
    assert all(torch.equal(p, after[n]) for n, p in untouched.items())
    # Some embeddings and key biases have no gradient, or one that cancels; all maps must move.
    moved = {n for n, w in learning.items() if not torch.equal(w, after[n])}
    still = set(learning) - moved
    assert all("embeddings" in n or n.endswith(("key.bias", "down.weight")) for n in still), still


def test_features_only_is_a_start_and_goes_with_what_reads_layers() -> None:
    given = by("layer_mix:rate=0.1", start="frozen-features")
    learning, after, trained = before_and_after(given)
    assert set(learning) == {n for n in after if n in HEAD or "layer_reader" in n}
    assert trained == 50 + 4
    assert default_rate(STARTS["frozen-features"], 24, given.settings.ways) == 1e-3


def test_new_layers_are_new_and_those_below_are_not() -> None:
    given = by("top_again:layers=1")
    plain: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    read_way("top_again:layers=1").prepare(lesson_of(given, model))
    before = dict(plain.named_parameters())
    changed = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    matrices = {n for n in before if _in_layers(2)(n) and before[n].dim() > 1}
    assert changed >= matrices | {"bert.pooler.dense.weight"}
    assert all(_in_layers(2)(n) or "pooler" in n for n in changed)
    drawn = model.bert.encoder.layer[2].output.dense.weight
    assert float(drawn.detach().std()) == pytest.approx(0.02, rel=0.1)


def test_rates_fall_from_layer_to_layer() -> None:
    given = by("layer_rates:decay=0.5")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    factors = read_way("layer_rates:decay=0.5").rates(lesson_of(given, model))
    assert factors["classifier.weight"] == factors["bert.pooler.dense.bias"] == 1
    assert factors["bert.encoder.layer.2.output.dense.weight"] == 0.5
    assert factors["bert.encoder.layer.0.output.dense.weight"] == 0.125
    assert factors["bert.embeddings.word_embeddings.weight"] == 0.0625


def test_mixout_leaves_the_expected_weights_alone() -> None:
    given = by("mixout:share=0.7")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    way, lesson = read_way("mixout:share=0.7"), lesson_of(given, model)
    linear = model.bert.encoder.layer[0].output.dense
    way.prepare(lesson)
    with torch.no_grad():
        before = linear.weight.clone()
        linear.weight.add_(1.0)
        ones = torch.ones(1, 40)
        plain = functional.linear(ones, linear.weight, linear.bias)
        model.train()
        drawn = torch.stack([linear(ones) for _ in range(2000)])
        assert drawn.mean(0) == pytest.approx(plain, abs=1.5)  # of a spread of 40 / 0.3
        once = linear(torch.eye(40)) - linear.bias
        swapped = (0.3 * once.T + 0.7 * before - before).abs() < 1e-4
        assert float(swapped.float().mean()) == pytest.approx(0.7, abs=0.06)
        model.eval()
        assert torch.equal(linear(ones), plain)
    way.finish(lesson)
    assert "forward" not in vars(linear)
    assert "forward" not in vars(model.classifier)


def test_substitution_leaves_special_tokens_and_draws_ordinary_ones() -> None:
    given = by("substitution")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    lesson = lesson_of(given, model)
    ids = torch.tensor([[2, 5, 6, 7, 8, 9, 10, 3, 0, 0]] * 300)
    seen = read_way("substitution:share=0.5").inputs(lesson, {"input_ids": ids})["input_ids"]
    special = ids < 5
    assert torch.equal(seen[special], ids[special])
    assert set(seen[~special].tolist()) == set(range(5, len(lesson.tokenizer)))
    share = float((seen != ids)[~special].float().mean())
    assert share == pytest.approx(0.5 * 5 / 6, abs=0.05)  # one in six is the token itself
    masked = read_way("substitution:by=mask,share=1").inputs(lesson, {"input_ids": ids})
    assert set(masked["input_ids"][~special].tolist()) == {4}


def test_adversarial_passes_raise_the_loss_and_share_their_dropout() -> None:
    given = by("adversarial")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    model.train()
    lesson, losses = lesson_of(given, model), []

    def plain(inputs: dict[str, Any], targets: Any) -> Any:
        losses.append(functional.cross_entropy(model(**inputs).logits, targets))
        return losses[-1]

    rows = encode(given.train, given.encoder.tokenizer, 64)
    inputs, targets = rows.batch(range(8), torch.device("cpu"))
    still = read_way("adversarial:steps=2,start=0,rate=0")
    assert float(still.loss(lesson, plain, inputs, targets).detach()) == pytest.approx(
        float(losses[0].detach())
    )
    assert torch.equal(losses[0], losses[1])
    losses.clear()
    way = read_way("adversarial:steps=4,start=0.01,rate=0.3,limit=2")
    found = way.loss(lesson, plain, inputs, targets)
    assert float(found.detach()) == pytest.approx(float(torch.stack(losses).detach().mean()))
    assert losses[0] < losses[1] < losses[2] < losses[3]
    found.backward()
    assert model.bert.embeddings.word_embeddings.weight.grad is not None
    assert not model.bert.embeddings.word_embeddings._forward_hooks


# Saved, opened, resumed --------------------------------------------------------------------------

TOGETHER = ("adapters:size=4", "layer_mix", "layer_rates:decay=0.8", "substitution")
BUILT = [TOGETHER, ("layer_choice:which=1+3,how=joined",), ("layer_choice:which=2,how=mean",)]


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
    "texts", [TOGETHER, ("mixout", "adversarial:steps=2"), ("layer_choice:which=last-2",)]
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
    from bertology.train.finetune import finetune

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
    folder = tmp_path_factory.mktemp("pretrained") / "model"
    given = encoder(head="mlm")
    given.model.save_pretrained(folder)
    given.tokenizer.save_pretrained(folder)
    return Encoder.load(str(folder), device="cpu")


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
    for split, rows in (("train", range(40)), ("validation", range(40, 60))):
        texts = [f"{'cat dog' if i % 3 else 'owl'} fox,{'yes' if i % 3 else 'no'}" for i in rows]
        (tmp_path / f"{split}.csv").write_text("\n".join(["text,label", *texts]) + "\n")
    text = f"intermediate:task={tmp_path},limit=30"
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


def test_without_peft_lora_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"bertology\[peft\]"):
        tune(by("lora"))


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


def test_the_text_of_a_way_is_read_back() -> None:
    for name in WAYS:
        way = WAYS.get(name)()
        assert read_way(way.text) == way
        assert way.summary
        assert way.name == name
    assert read_way("layer-rates: decay = 0.5").text == "layer_rates:decay=0.5"
    given = read_ways(["layer_rates", "adapters:size=8", "masked_lm"])
    assert [w.name for w in given] == ["masked_lm", "adapters", "layer_rates"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adapter", "adapters"),
        ("adapters:width=3", "size=16"),
        ("adapters:size", "size=16"),
        ("adapters:size=0", "at least 1"),
        ("adapters:size=many", "a whole number"),
        ("mixout:share=1", "at most 0.99"),
        ("mixout:share=nan", "at least 0"),
        ("substitution:by=luck", "'random', 'mask'"),
        ("adapters:size=3,size=4", "give 'size' once"),
        ("bias_only:size=3", "without options"),
        ("features", "--start frozen-features"),
        ("early-stopping", "--early-stopping 2"),
    ],
)
def test_texts_that_say_nothing_sensible_are_refused(text: str, message: str) -> None:
    with pytest.raises((ParameterError, UnknownNameError), match=message):
        read_way(text)


@pytest.mark.parametrize(
    ("texts", "start", "message"),
    [
        (["adapters", "bias_only"], "pretrained", "which weights of the model are trained"),
        (["mixout", "bias_only"], "pretrained", "their pre-trained values already"),
        (["top_again", "adapters"], "pretrained", "must be trained"),
        (["layer_mix", "layer_choice"], "pretrained", "what the head reads"),
        (["mixout", "mixout:share=0.1"], "pretrained", "name 'mixout' once"),
        (["adapters"], "frozen", "nothing is trained"),
        (["layer_rates"], "frozen-features", "the head alone"),
        (["mixout"], "random", "no pre-trained weights"),
    ],
)
def test_nonsense_is_refused_in_words(texts: list[str], start: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        read_ways(texts, start=start)


def test_what_does_not_fit_the_model_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"below 3.*frozen-features"):
        tune(by("frozen_bottom:layers=3"))
    with pytest.raises(ParameterError, match="at most 3"):
        tune(by("top_again:layers=4"))
    for which in ("0", "4", "2-9", "two", "3-2"):
        with pytest.raises(ParameterError, match="from 1 to 3"):
            tune(by(f"layer_choice:which={which}"))
    shared = replace(by("layer_rates"), encoder=encoder("albert"))
    with pytest.raises(CapabilityError, match="share their weights"):
        tune(shared)
    for kind in ("albert", "modernbert"):
        with pytest.raises(CapabilityError, match="cannot have parts added"):
            tune(replace(by("adapters"), encoder=encoder(kind)))
    with pytest.raises(ParameterError, match="nothing is trained"):
        replace(by("layer_mix"), start=STARTS["frozen"])
    compatible((), start="frozen")


@pytest.mark.parametrize("kind", ["roberta", "electra", "distilbert"])
def test_other_families_take_the_same_ways(kind: str) -> None:
    for texts in (TOGETHER, ("bias_only", "frozen_bottom"), ("mixout", "top_again")[:1]):
        _, history = tune(replace(by(*texts), encoder=encoder(kind)))
        assert history.trained > 0
