"""Pruning by importance, magnitude and movement: what goes is known, and all of it is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertology as bt
import planted
import prune_killed
from bertology.data.corpus import Corpus, Task
from bertology.errors import (
    CapabilityError,
    InterruptedRunError,
    JobError,
    ParameterError,
    StoreError,
)
from bertology.model.compressed import quantised
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import prunable
from bertology.train import prune_weights
from bertology.train.compress import read_methods
from bertology.train.compress.work import CompressWatch
from bertology.train.history import Step
from bertology.train.prune import shrink
from bertology.train.prune_judge import Judge, split_training
from bertology.train.prune_settings import PruneSettings
from bertology.train.pruned import Pruned

TRAIN, HELD_OUT = prune_killed.TRAIN, prune_killed.HELD_OUT


def encoder(spoil: float = 0.0) -> Encoder:
    model = planted.model(spoil=spoil)
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    return Encoder(model, planted.tokenizer(), head="classification", name="planted")


def share_of_zeros(model: Any) -> float:
    weights = torch.cat([w.detach().ravel() for w in prunable(model).values()])
    return float((weights == 0).float().mean())


def share_left(found: Pruned) -> float:
    weights: dict[str, int] = found.found["weights"]
    return weights["kept"] / weights["of"]


def test_importance_leaves_the_head_that_carries_the_answer() -> None:
    data = split_training(TRAIN, seed=0)
    assert data.ranking is not None
    settings = PruneSettings(keep=0.99, method="importance")
    found = shrink(encoder(), data.ranking, data.selection, settings)
    heads = {(i, h) for i in range(2) for h in range(4)} - {planted.CARRIER}
    assert {*found.cut.heads} == heads
    assert found.cut.mlps == (0, 1)
    assert found.cut.layers == ()
    only = shrink(encoder(), data.ranking, data.selection, replace(settings, parts=("mlps",)))
    assert (only.cut.heads, only.cut.mlps) == ((), (0, 1))


def test_magnitude_leaves_the_weights_that_carry_the_answer(tmp_path: Path) -> None:
    given = encoder()
    to = tmp_path / "x"
    found = bt.prune(given, TRAIN, HELD_OUT, to=to, max_loss=0.0, method="magnitude", limit=60)
    needed = {n: w.detach() for n, w in prunable(given.model).items()}
    left = prunable(bt.load(str(to), head="classification").model)
    assert all(torch.equal(left[name], weight) for name, weight in needed.items())
    assert found.found["weights"]["kept"] < 1.2 * sum(int((w != 0).sum()) for w in needed.values())
    assert found.loss.value == 0.0
    assert given.run(["good up"]).logits.isfinite().all(), "the given model stays as it is"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pruned]:
    """All methods, without a stop."""
    folder = tmp_path_factory.mktemp("whole")
    return {
        method: prune_killed.prune(
            folder, method, CompressWatch(command=f"bertology prune --method {method}")
        )
        for method in prune_killed.SETTINGS
    }


def test_killed_and_continued_is_the_same_model(made: dict[str, Pruned], tmp_path: Path) -> None:
    tests = Path(planted.__file__).parent
    paths = [str(tests), *sys.path]
    done = subprocess.run(
        [sys.executable, str(tests / "prune_killed.py"), str(tmp_path)],
        capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    assert done.stdout.split() == ["importance", "9", "magnitude", "9", "movement", "9"]
    for method in prune_killed.SETTINGS:
        place, said = tmp_path / method, list[str]()
        assert not place.exists()
        prune_killed.prune(tmp_path, method, CompressWatch(tell=said.append))
        assert any("made before the stop" in line for line in said), said
        files = [folder / "model.safetensors" for folder in (place, made[method].folder)]
        assert files[0].read_bytes() == files[1].read_bytes(), method
    assert sorted(p.name for p in tmp_path.iterdir()) == ["importance", "magnitude", "movement"]


def test_every_result_loads_and_its_card_tells_what_it_is(made: dict[str, Pruned]) -> None:
    texts = ["the up down good up up", "down bad"]
    for method, found in made.items():
        again = bt.load(str(found.folder), head="classification")
        assert again.run(texts).logits.isfinite().all()
        card = (found.folder / "README.md").read_text()
        told = json.loads((found.folder / "bertology.json").read_text())["compression"]
        [step] = told["steps"]
        record = step["found"]
        assert record["settings"]["method"] == method
        assert "better than a constant answer" in card
        assert f"bertology prune --method {method}" in card
        assert found.max_loss == pytest.approx(
            100 * (1 - prune_killed.SETTINGS[method]["keep"]) * found.before.value
        )
        if "weights" not in record:
            assert not share_of_zeros(again.model) > 0.99
            continue
        assert told["plain"]
        zeros = sum(int((w == 0).sum()) for w in prunable(again.model).values())
        assert record["weights"]["kept"] == record["weights"]["of"] - zeros
        assert told["bytes_on_disk"][0] == told["bytes_on_disk"][1], "zeros take as much room"
        assert told["packed_bytes"][1] < told["packed_bytes"][0]
        for words in (
            "only when it is packed",
            "not faster",
            "packed with gzip",
            "`attention.self",
        ):
            assert words in card
        assert "zeros save no time" in found.sentence
    assert (
        "moved towards zero (movement pruning"
        in (made["movement"].folder / "README.md").read_text()
    )


def test_the_share_of_weights_may_be_given(tmp_path: Path) -> None:
    found = bt.prune(
        encoder(1.0), TRAIN, HELD_OUT, to=tmp_path / "m", method="magnitude", weights=0.5
    )
    assert share_left(found) == pytest.approx(0.5, abs=0.001)
    assert found.max_loss is None
    assert "at most" not in found.sentence
    assert "was given (0.5 of all)" in (found.folder / "README.md").read_text()
    moved = bt.prune(
        encoder(1.0), TRAIN, HELD_OUT, to=tmp_path / "v", method="movement", weights=0.3, epochs=1
    )
    assert share_left(moved) == pytest.approx(0.3, abs=0.01)
    assert moved.settings.trained == 1


def test_no_training_learns_from_what_selects() -> None:
    data = split_training(TRAIN, seed=0, method="movement")
    assert data.ranking is None
    assert len(data.selection) == 40
    assert not {e.texts for e in data.selection} & {e.texts for e in data.training}


def test_a_share_of_the_score_is_not_what_a_constant_answer_has() -> None:
    """Of nine in ten examples with one label, 90 % of the score are had without any knowledge."""
    rare = [e for e in TRAIN if e.label == 1][:10]
    corpus = replace(TRAIN, examples=[*rare, *[e for e in TRAIN if e.label == 0][:90]])
    judge = Judge(encoder(), corpus, PruneSettings(keep=0.5))
    assert judge.intact.score == 1.0
    assert judge.allowed == pytest.approx(5.0), "half of the ten points above a constant answer"
    assert PruneSettings(keep=0.95).allowed(0.8, 0.5) == pytest.approx(4.0)
    assert PruneSettings(keep=0.9, recover=1).allowed(0.8, 0.5) == pytest.approx(15.0)
    assert PruneSettings(max_loss=2.0, recover=1).allowed(0.8, 0.5) == 10.0
    assert PruneSettings(max_loss=2.0, recover=1, cut_loss=3.0).allowed(0.8, 0.5) == 3.0


def test_the_hint_fits_the_method_where_nothing_can_go() -> None:
    for method, more in (("movement", "train longer"), ("magnitude", "more examples")):
        judge = Judge(encoder(), TRAIN, PruneSettings(keep=0.9, method=method))
        assert more in str(judge.nothing_fits().hint)


def as_numbers(corpus: Corpus) -> Corpus:
    task = Task("planted-numbers", "regression", (), ("pearson", "spearman"))
    rng = np.random.default_rng(0)
    examples = [
        replace(e, label=2.0 * float(e.get("label")) - 1 + float(rng.normal(0, 0.2)))
        for e in corpus
    ]
    return replace(corpus, examples=examples, task=task)


@pytest.mark.parametrize("method", ["importance", "magnitude", "movement"])
def test_a_task_of_numbers(method: str, tmp_path: Path) -> None:
    given = prune_killed.encoder()
    model = given.model
    model.config.problem_type, model.config.num_labels = "regression", 1
    model.num_labels = 1
    head = torch.nn.Linear(16, 1)
    with torch.no_grad():
        head.weight.zero_()
        head.weight[0, 0] = 1.0
    model.classifier = head
    asked: dict[str, dict[str, Any]] = {
        "importance": {"keep": 0.5},
        "magnitude": {"weights": 0.3},
        "movement": {"weights": 0.6, "epochs": 2},
    }
    train, held_out = as_numbers(TRAIN), as_numbers(HELD_OUT)
    found = bt.prune(given, train, held_out, to=tmp_path / "x", method=method, **asked[method])
    assert found.metric == "pearson"
    assert found.before.value > 0.8
    assert found.after.value > 0.4 or method == "movement", "which needs more of a training"
    assert found.loss.n == len(HELD_OUT)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"method": "moovement"}, "be one of 'measured', 'importance', 'magnitude', 'movement'"),
        ({"keep": 1.0}, "'keep' parameter of prune must be above 0 and below 1"),
        ({"keep": -0.1}, "be above 0 and below 1"),
        ({"keep": float("nan")}, "be above 0 and below 1"),
        ({"keep": 0.9, "max_loss": 1.0}, "be left out where max_loss is given"),
        ({"keep": 0.9, "weights": 0.3, "method": "movement"}, "be left out where keep is given"),
        ({"weights": 0.3}, "be left out unless the method is magnitude or movement"),
        ({"weights": 1.0, "method": "magnitude"}, "be above 0 and below 1"),
        ({"method": "movement", "parts": ("heads",)}, "which removes single weights"),
        ({"method": "importance", "parts": ("layers",)}, "be among mlps, heads"),
        ({"parts": ("legs",)}, "be among layers, mlps, heads"),
        ({"epochs": 3}, "be left out unless the method is movement"),
        ({"method": "movement", "epochs": 0}, "be at least 1"),
        ({"method": "movement", "recover": 1}, "which trains while it prunes"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=said):
        bt.prune(encoder(), TRAIN, HELD_OUT, to=tmp_path / "x", **wrong)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["measured", "importance", "magnitude", "movement"])
def test_models_that_cannot_be_judged_are_refused(method: str, tmp_path: Path) -> None:
    ignorant = encoder()
    with torch.no_grad():
        ignorant.model.classifier.weight.zero_()
    with pytest.raises(CapabilityError, match="does not surely beat a constant answer"):
        bt.prune(ignorant, TRAIN, HELD_OUT, to=tmp_path / "x", method=method)
    if method in ("measured", "importance"):
        packed = Encoder(
            quantised.quantise(encoder().model), planted.tokenizer(), head="classification"
        )
        with pytest.raises(CapabilityError, match=r"compressed parts \(quantised\) cannot lose"):
            bt.prune(packed, TRAIN, HELD_OUT, to=tmp_path / "x", method=method)
    headless = Encoder(encoder().base, planted.tokenizer(), name="headless")
    with pytest.raises(CapabilityError, match="'headless' was loaded without a head for a task"):
        bt.prune(headless, TRAIN, HELD_OUT, to=tmp_path / "x", method=method)
    assert not any(tmp_path.iterdir()), "nothing is left of what was refused"


def test_where_no_share_is_good_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune_weights, "SHARES", (0.001,))
    asked: dict[str, Any] = {"to": tmp_path / "x", "method": "movement", "epochs": 1}
    with pytest.raises(JobError, match=r"Nothing can be cut .* \(1 smaller model was tried\)"):
        bt.prune(encoder(0.9), TRAIN, HELD_OUT, max_loss=0.0, **asked)
    assert not any(tmp_path.iterdir()), "so that another limit can be tried"


def test_an_unfinished_run_of_other_settings_is_not_mixed_in(tmp_path: Path) -> None:
    def stop(step: Step) -> None:
        if step.done > 0.6 * step.total:
            raise KeyboardInterrupt

    given, place = prune_killed.encoder(), tmp_path / "x"
    asked: dict[str, Any] = {"to": place, "weights": 0.5, "method": "movement", "epochs": 2}
    with pytest.raises(InterruptedRunError, match="finished epochs are kept"):
        bt.prune(given, TRAIN, HELD_OUT, **asked, watch=prune_killed.trainings(stop))
    assert (tmp_path / "x-unfinished/1-prune-trainings/0.5").is_dir()
    with pytest.raises(StoreError, match="unfinished run with other methods, settings"):
        bt.prune(given, TRAIN, HELD_OUT, **asked, seed=1)
    said: list[str] = []
    bt.prune(given, TRAIN, HELD_OUT, **asked, force=True, watch=CompressWatch(tell=said.append))
    assert any("after epoch 1 of 2" in line for line in said), "the same run goes on by force, too"
    with pytest.raises(InterruptedRunError):
        bt.prune(given, TRAIN, HELD_OUT, **asked, force=True, watch=prune_killed.trainings(stop))
    bt.prune(given, TRAIN, HELD_OUT, **asked, seed=1, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_records_of_earlier_releases_are_no_obstacle(
    made: dict[str, Pruned], tmp_path: Path
) -> None:
    """A pruned model whose record is that of release 0.2 is scored, pruned and compressed."""
    old = tmp_path / "old"
    shutil.copytree(made["importance"].folder, old)
    record = {
        "schema": 1, "method": "prune", "task": "planted",
        "base": {"name": "planted-base", "fingerprint": "y"},
        "pruned_from": {"name": "planted", "fingerprint": "x"}, "scores": {"accuracy": 1.0},
        "pruning": {"settings": {"method": "importance"}, "cut": {"heads": [[0, 1]]}},
    }  # fmt: skip
    (old / "bertology.json").write_text(json.dumps(record))
    given = bt.load(str(old), head="classification")
    assert bt.score(given, HELD_OUT).scores["accuracy"].value > 0.9
    again = bt.prune(given, TRAIN, HELD_OUT, to=tmp_path / "x", method="magnitude", weights=0.9)
    assert again.record["base"] == record["base"]
    bt.compress(given, TRAIN, HELD_OUT, to=tmp_path / "y", method="half")


def test_pruning_is_a_method_of_compression(made: dict[str, Pruned], tmp_path: Path) -> None:
    text = "prune:method=importance,keep=0.95,limit=100"
    found = bt.compress(prune_killed.encoder(), TRAIN, HELD_OUT, method=text, to=tmp_path / "x")
    assert found.methods == made["importance"].methods
    files = [one.folder / "model.safetensors" for one in (found, made["importance"])]
    assert files[0].read_bytes() == files[1].read_bytes()
    [parts] = read_methods(["prune:parts=heads+mlps,max_loss=2"])
    assert parts.text == "prune:method=measured,max_loss=2,parts=heads+mlps,recover=0,limit=2000"
    with pytest.raises(ParameterError, match="would fill the zeros"):
        read_methods(["prune:method=magnitude,soft_labels"])
