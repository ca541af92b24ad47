"""Each way trains exactly the weights that it says, and leaves all others as they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from bertology.train.starts import STARTS, default_rate
from bertology.train.tuning import TuningJob, tune
from bertology.train.ways import WAYS, read_way, read_ways
from made_tunings import corpus
from made_ways import HEAD, ONCE, by, in_layers, other_task, prepared
from made_ways import with_its_head as with_its_head_in

# What is trained of a model with 3 layers of width 24 and an MLP of 40: a rule for names, and how
# many numbers that is, counted by hand. A map of 24 to 24 has 600 with its bias, a LayerNorm 48.
LAYER = 4 * 600 + (24 * 40 + 40) + (40 * 24 + 24) + 2 * 48
EMBEDDINGS = (tiny.VOCAB + 512 + 2) * 24 + 48
ALL = EMBEDDINGS + 3 * LAYER + 600 + 50
BIASES = 24 + 3 * (4 * 24 + 40 + 24 + 2 * 24) + 24
COMPARED = 4 * 24 * 24 + 24  # from what Siamese models compare to one state
BAGS = ((4 * 24 + 2) * 24 + 24) + 50  # the superficial model of hex
Rule = Callable[[str], bool]


@dataclass(frozen=True)
class Says:
    """What a way says that it trains."""

    learns: Rule
    """Names of what is trained, while it is."""
    count: int
    changes: Rule | None = None
    """Names of what is another one in the model that is left, where these are not the same."""
    start: str = "pretrained"
    patience: int | None = None


def everything(name: str) -> bool:
    return True


def of_lora(name: str) -> bool:
    return "lora_" in name or name in HEAD


def after_layers(name: str) -> bool:
    return name.startswith(("bert.pooler", "classifier", "bert.encoder.layer_reader"))


def unless_pooler(name: str) -> bool:
    return "pooler" not in name


def merged(name: str) -> bool:
    return name.endswith(("query.weight", "value.weight")) or name in HEAD


TRAINED: dict[str, Says] = {
    "adapters:size=4": Says(
        lambda n: ".adapter." in n or "LayerNorm" in n or n in HEAD,
        6 * (24 * 4 + 4 + 4 * 24 + 24) + 7 * 48 + 50,
    ),
    "bias_only": Says(lambda n: n.endswith("bias") or n in HEAD, BIASES + 50),
    "frozen_bottom:layers=2": Says(lambda n: in_layers(2)(n) or after_layers(n), LAYER + 600 + 50),
    "frozen_bottom:layers=0": Says(lambda n: "embeddings" not in n, ALL - EMBEDDINGS),
    "layer_rates:decay=0.5": Says(everything, ALL),
    "top_again:layers=2": Says(everything, ALL),
    "layer_mix:rate=0.05": Says(everything, ALL + 4),
    "layer_choice:which=1+3,how=joined": Says(everything, ALL + 48 * 24 + 24),
    "layer_choice:which=last-2,how=mean": Says(everything, ALL),
    "layer_choice:which=1,how=mean": Says(lambda n: not in_layers(1, 2)(n), ALL - 2 * LAYER),
    "mixout:share=0.5": Says(everything, ALL),
    "adversarial:steps=2": Says(everything, ALL),
    "substitution:share=0.2": Says(everything, ALL),
    "layer_drop:share=0.3": Says(everything, ALL),
    "lora:rank=2": Says(of_lora, 3 * 2 * 2 * (2 * 24) + 50, merged),
    "siamese": Says(unless_pooler, ALL - 600 + COMPARED),
    "siamese frozen": Says(
        lambda n: "layer_reader" in n or n in HEAD, COMPARED + 50, start="frozen-features"
    ),
    "hex": Says(everything, ALL + BAGS),
    "masked_lm:epochs=1": Says(everything, ALL),
    "intermediate": Says(everything, ALL),
    "early stopping": Says(everything, ALL, patience=1),
    "bias_only layer_mix": Says(
        lambda n: n.endswith("bias") or n in HEAD or "layer_reader" in n, BIASES + 50 + 4
    ),
    "adapters:size=2 frozen_bottom:layers=1": Says(
        lambda n: n in HEAD or (in_layers(1, 2)(n) and (".adapter." in n or "LayerNorm" in n)),
        4 * (2 * 48 + 2 + 24) + 4 * 48 + 50,
    ),
    "lora:rank=2 frozen_bottom:layers=1 layer_mix": Says(
        lambda n: ("lora_" in n and in_layers(1, 2)(n)) or n in HEAD or "layer_reader" in n,
        2 * 2 * 2 * (2 * 24) + 50 + 4,
        lambda n: (merged(n) and not in_layers(0)(n)) or "layer_reader" in n,
    ),
}
NO_WAYS = {"early", "stopping", "frozen"}  # words of the table that are options of the trainer


def job_of(texts: str, folder: Path) -> TuningJob:
    """The job of a row: with a masked-LM head or another task where it needs them."""
    says, names = TRAINED[texts], [t for t in texts.split() if t not in NO_WAYS]
    written = [other_task(folder) if name == "intermediate" else name for name in names]
    given = by(*written, start=says.start)
    given = replace(given, settings=replace(given.settings, early_stopping=says.patience))
    if "masked_lm" in texts:
        return replace(given, encoder=with_its_head_in(folder / "model"))
    return given


def test_the_table_has_every_way() -> None:
    assert {word.partition(":")[0] for row in TRAINED for word in row.split()} - NO_WAYS == {*WAYS}


@pytest.mark.parametrize("texts", TRAINED)
def test_each_way_trains_exactly_what_it_says(texts: str, tmp_path: Path) -> None:
    says, given = TRAINED[texts], job_of(texts, tmp_path)
    model, lesson = prepared(given)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    learning = {n for n, p in model.named_parameters() if p.requires_grad}
    assert learning == {n for n in before if says.learns(n)}
    for way in given.settings.ways:
        way.finish(lesson)
    left = set(dict(model.named_parameters()))
    tuned: Any
    tuned, history = tune(given)
    after = {n: p.detach() for n, p in tuned.named_parameters()}
    assert history.trained == sum(before[n].numel() for n in learning) == says.count
    assert after.keys() == left
    # A map that LoRA changes has another name while it does.
    before |= {n.replace(".base_layer", ""): w for n, w in before.items()}
    moved = {n for n, w in after.items() if not torch.equal(w, before[n])}
    changing = {n for n in after if (says.changes or says.learns)(n)}
    assert moved <= changing
    # Some embeddings and key biases have no gradient, or one that cancels; all maps must move.
    still = changing - moved
    assert all("embeddings" in n or n.endswith(("key.bias", "down.weight")) for n in still), still


STAGES = {
    # The masked-LM head reads the last layer: it knows no pooler.
    "masked_lm:epochs=1": lambda n: n.startswith("bert.") and unless_pooler(n),
    "intermediate": lambda n: n.startswith("bert."),
}


@pytest.mark.parametrize("text", STAGES)
@pytest.mark.parametrize("start", ["pretrained", "frozen-features"])
def test_each_stage_trains_the_whole_body_and_leaves_no_head(
    text: str, start: str, tmp_path: Path
) -> None:
    written = other_task(tmp_path) if text == "intermediate" else text
    ways = read_ways([written], start=start)
    there = with_its_head_in(tmp_path / "model")
    settings = replace(ONCE, ways=ways)
    given = TuningJob(there, corpus(0, 40), corpus(40, 70), STARTS[start], settings)
    before, _ = prepared(replace(given, settings=ONCE))
    model, _ = prepared(given)
    old, rule = dict(before.named_parameters()), STAGES[text]
    for name, weight in model.named_parameters():
        assert weight.requires_grad == old[name].requires_grad, name
    moved = {n for n, p in model.named_parameters() if not torch.equal(p, old[n])}
    wanted = {n for n in old if rule(n)}
    assert moved <= wanted
    assert all("embeddings" in n or n.endswith("key.bias") for n in wanted - moved)


def test_features_only_is_a_start_and_goes_with_what_reads_layers() -> None:
    given = by("layer_mix:rate=0.1", start="frozen-features")
    model, _ = prepared(given)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    learning = {n for n, p in model.named_parameters() if p.requires_grad}
    assert learning == {n for n in before if n in HEAD or "layer_reader" in n}
    tuned: Any
    tuned, history = tune(given)
    moved = {n for n, p in tuned.named_parameters() if not torch.equal(p, before[n])}
    assert moved == learning
    assert history.trained == 50 + 4
    assert default_rate(STARTS["frozen-features"], 24, given.settings.ways) == 1e-3


def test_what_is_new_beside_lora_is_trained_too() -> None:
    """peft freezes all but its own: also what another way added before it."""
    model, lesson = prepared(by())
    model.add_module("training_helper", torch.nn.Linear(2, 2))
    read_way("lora:rank=2").prepare(lesson)
    learning = {n for n, p in model.named_parameters() if p.requires_grad}
    assert learning >= {"training_helper.weight", "training_helper.bias"} | HEAD
    assert all(of_lora(n) or "training_helper" in n for n in learning)


def test_mixout_is_for_maps_that_were_pre_trained(tmp_path: Path) -> None:
    body = {
        f"bert.encoder.layer.{i}.{place}"
        for i in range(3)
        for place in (
            "attention.self.query", "attention.self.key", "attention.self.value",
            "attention.output.dense", "intermediate.dense", "output.dense",
        )
    }  # fmt: skip
    pooler = {"bert.pooler.dense"}
    joined = by("mixout", "layer_choice:which=1+3,how=joined")
    assert mixed(by("mixout")) == body | pooler
    assert mixed(joined) == body | pooler
    assert mixed(by("mixout", "hex")) == body | pooler
    assert mixed(by("mixout", "siamese")) == body  # nobody reads the pooler
    assert mixed(by("mixout", "frozen_bottom:layers=2")) == {n for n in body if ".2." in n} | pooler
    # A checkpoint of masked LM alone holds no pooler: it is drawn with the head.
    assert mixed(replace(by("mixout"), encoder=with_its_head_in(tmp_path))) == body


def mixed(given: TuningJob) -> set[str]:
    model, lesson = prepared(given)
    found = {n for n, module in model.named_modules() if "forward" in vars(module)}
    for way in given.settings.ways:
        way.finish(lesson)
    assert not any("forward" in vars(module) for module in model.modules())
    return found
