"""Iterative pruning: planted parts are what is left, and a killed run ends with the same mask."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import planted_parts
from bertology.data.corpus import Corpus, Example
from bertology.errors import DataError, ParameterError, StoreError
from bertology.model.nested_masks import NestedParts
from bertology.model.part_masks import PartMask
from bertology.model.weight_masks import WeightMask
from bertology.stats.survivors import fleiss_kappa
from bertology.train import iterative_pruning
from bertology.train.finetune import FinetuneSettings
from bertology.train.iterative_pruning import (
    Importance,
    Magnitude,
    PruningJob,
    prune,
    split_deciding,
)
from bertology.train.starts import STARTS
from bertology.train.tuning import TuningJob

QUICK = FinetuneSettings(epochs=1, batch_size=32, learning_rate=1e-5)


def job(
    method: Importance | Magnitude,
    *,
    settings: FinetuneSettings = QUICK,
    seed: int = 0,
    size: int = 200,
) -> PruningJob:
    report = planted_parts.corpus(size // 2, seed=5)
    learn, decide = split_deciding(planted_parts.corpus(size), report)
    tuning = TuningJob(
        planted_parts.encoder(), learn, decide, STARTS["pretrained"], replace(settings, seed=seed)
    )
    return PruningJob(tuning, report, "accuracy", method)


@pytest.fixture
def knowing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted model counts as fine-tuned: training would only blur what is planted."""
    monkeypatch.setattr(
        iterative_pruning, "tuned_encoder", lambda job, folder, progress: planted_parts.encoder()
    )


@pytest.mark.usefixtures("knowing")
@pytest.mark.parametrize("by_layer", [True, False])
def test_planted_heads_and_mlps_are_what_is_left(by_layer: bool) -> None:
    asked = job(Importance(share=5 / 12, by_layer=by_layer))
    found, labels = prune(asked), np.array(asked.tuning.validation.labels)
    assert isinstance(found.mask, PartMask)
    assert [tuple(map(int, p)) for p in np.argwhere(found.mask.heads)] == [*planted_parts.HEADS]
    assert np.flatnonzero(found.mask.mlps).tolist() == [*planted_parts.MLPS]
    assert found.learnt
    assert [s.left for s in found.kept] == [
        {"heads": 12, "mlps": 3}, {"heads": 7, "mlps": 2}, {"heads": 2, "mlps": 1}
    ]  # fmt: skip
    assert len(found.steps) == 4  # the last one fell below, and nothing is left
    assert found.kept[-1].reported == 1.0
    assert found.steps[-1].reported < 0.9
    for step, mask in zip(found.steps, map(found.masks.at, range(4)), strict=True):
        assert (int(mask.heads.sum()), int(mask.mlps.sum())) == tuple(step.left.values())  # type: ignore[union-attr]
        assert np.mean(np.array(step.answers) == labels) == step.score


@pytest.mark.usefixtures("knowing")
@pytest.mark.parametrize("threshold", ["global", "matrix"])
def test_weights_that_carry_the_task_are_what_is_left(threshold: str) -> None:
    """Of the planted model all other weights are 0, so that they are the smallest."""
    found = prune(job(Magnitude(share=0.5, threshold=threshold)))
    assert isinstance(found.mask, WeightMask)
    model = planted_parts.model()
    needed = {n: model.get_parameter(n).detach().numpy() != 0 for n in found.mask.shapes}
    if threshold == "global":
        assert all(found.mask.keeps(n)[of].all() for n, of in needed.items())
        assert found.mask.kept < 2.5 * sum(int(of.sum()) for of in needed.values())
    assert found.kept[-1].score >= 0.9 > found.steps[len(found.kept)].score
    assert len(found.steps) == len(found.kept) + 3  # two more than the one that fell
    masks = [found.masks.at(step) for step in range(len(found.steps))]
    assert [mask.kept for mask in masks] == [step.left["weights"] for step in found.steps]  # type: ignore[union-attr]


@pytest.mark.usefixtures("knowing")
def test_a_model_that_learnt_nothing_is_not_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    ignorant = planted_parts.encoder()
    with torch.no_grad():
        ignorant.model.classifier.weight.zero_()
    monkeypatch.setattr(iterative_pruning, "tuned_encoder", lambda job, folder, progress: ignorant)
    found = prune(job(Importance()))
    assert not found.learnt
    assert len(found.steps) == 1
    assert found.mask.equals(PartMask.full(ignorant))  # type: ignore[union-attr]


def test_a_constant_answer_is_not_what_is_kept() -> None:
    """Where 19 of 20 examples have one label, a constant answer has more than 90 % of any score."""
    asked = job(Importance())
    full = planted_parts.corpus(2000).examples
    one, other = ([e for e in full if e.label == label] for label in (0, 1))
    uneven = replace(planted_parts.corpus(2), examples=[*one[:285], *other[:15]])
    course = iterative_pruning._Judged(
        replace(asked, tuning=replace(asked.tuning, train=uneven, validation=uneven)),
        planted_parts.encoder(),
    )
    found = course.first(NestedParts.begin(PartMask.full(planted_parts.encoder())), {})
    assert found.floor == pytest.approx((1 + 0.95) / 2)


@pytest.mark.parametrize("method", [Magnitude(share=0.6), Magnitude(share=0.8, rewound=True)])
def test_what_is_kept_is_not_done_again(
    method: Magnitude, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = job(method, settings=replace(QUICK, learning_rate=3e-3), size=120)
    first, alone = prune(asked, folder=tmp_path), prune(asked)
    assert isinstance(first.mask, WeightMask)
    assert isinstance(alone.mask, WeightMask)
    assert first.mask.digest == alone.mask.digest
    assert first.steps == alone.steps
    assert len(first.kept) > 1
    monkeypatch.setattr(iterative_pruning, "tuned_encoder", None)
    again = prune(asked, folder=tmp_path)
    assert again.steps == first.steps
    (folder,) = (tmp_path / "prunings").iterdir()
    planes = {f"plane-{i}.safetensors" for i in range((len(first.steps) - 1).bit_length())}
    assert {p.name for p in folder.iterdir()} == {"steps.json", "mask.safetensors"} | planes
    for step in range(len(first.steps)):
        assert again.masks.at(step).digest == alone.masks.at(step).digest  # type: ignore[union-attr]
    (folder / "steps.json").write_text("{}")
    with pytest.raises(StoreError, match="Delete that folder"):
        prune(asked, folder=tmp_path)


def test_rewound_weights_start_from_the_first_ones_and_stay_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[float] = []
    real = iterative_pruning.without_smallest

    def watch(model: torch.nn.Module, mask: WeightMask, **options: object) -> WeightMask:
        gone = [
            float(model.get_parameter(n).detach().abs().numpy()[~mask.keeps(n)].sum())
            for n in mask.shapes
        ]
        seen.append(sum(gone))
        return real(model, mask, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(iterative_pruning, "without_smallest", watch)
    settings = replace(QUICK, learning_rate=3e-3)
    prune(job(Magnitude(share=0.8, rewound=True), settings=settings, size=120))
    assert len(seen) > 1
    assert not any(seen)


def test_data_that_decide_are_neither_learnt_nor_reported() -> None:
    report, train = planted_parts.corpus(50, seed=1), planted_parts.corpus(300)
    learn, decide = split_deciding(train, report, deciding=40)
    texts = [{e.texts for e in c} for c in (learn, decide, report)]
    assert len(decide) == 40
    assert not texts[0] & texts[2]
    assert not texts[1] & texts[2]
    assert {e.id for e in learn}.isdisjoint({e.id for e in decide})
    with pytest.raises(DataError, match="100 are needed"):
        split_deciding(train[:60], report)


def test_odd_settings_are_refused() -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        Magnitude(share=0)
    with pytest.raises(ParameterError, match="global or matrix"):
        Magnitude(threshold="row")
    with pytest.raises(ParameterError, match="between 0 and 1"):
        replace(job(Importance()), keep=1.0)


_KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import unit.test_iterative_pruning as t
from bertology.train import iterative_pruning
write = iterative_pruning.PruningState.write
def slowly(self, kept, weights):
    write(self, kept, weights)
    print(len(kept.steps), flush=True)
    if len(kept.steps) == 2:
        import time; time.sleep(60)  # the next step is on its way, and the process is killed in it
iterative_pruning.PruningState.write = slowly
iterative_pruning.prune(t.killed_job(), folder=Path(sys.argv[1]))
"""


def killed_job() -> PruningJob:
    settings = replace(QUICK, learning_rate=3e-3)
    asked = job(Magnitude(share=0.8, rewound=True), settings=settings, size=120)
    return replace(asked, keep=0.6)


@pytest.mark.slow  # other trainings that are killed are quicker, and go on by the same ways
def test_killed_in_the_middle_it_ends_with_the_same_mask(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    killed = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(tmp_path), tests],
        stdout=subprocess.PIPE, text=True, cwd=tests,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])},
    )  # fmt: skip
    assert killed.stdout is not None
    with killed:
        for line in killed.stdout:
            if line.strip() == "2":
                break
        killed.send_signal(signal.SIGKILL)
    (folder,) = (tmp_path / "prunings").iterdir()
    assert len(iterative_pruning.PruningState(folder, folder.name).read().steps) == 2  # type: ignore[union-attr]
    began = time.monotonic()
    found, whole = prune(killed_job(), folder=tmp_path), prune(killed_job())
    assert time.monotonic() - began < 60
    assert isinstance(found.mask, WeightMask)
    assert isinstance(whole.mask, WeightMask)
    assert found.mask.digest == whole.mask.digest
    assert found.steps == whole.steps
    assert len(found.steps) > 3


@pytest.mark.slow
def test_random_models_have_no_stable_survivors() -> None:
    """Five models that share no weights learn the task; which heads they need is chance."""
    report = easy(60, seed=5)
    learn, decide = split_deciding(easy(250), report)
    settings = FinetuneSettings(epochs=8, batch_size=16, learning_rate=1e-2)
    survived = []
    for seed in range(5):
        tuning = TuningJob(
            planted_parts.encoder(), learn, decide, STARTS["random"], replace(settings, seed=seed)
        )
        found = prune(PruningJob(tuning, report, "accuracy", Importance(share=0.25, mlps=0)))
        assert isinstance(found.mask, PartMask)
        assert found.learnt
        assert len(found.kept) > 1
        survived.append(found)
    at = min(len(found.kept) for found in survived) - 1  # as many heads are left in each
    heads = [found.masks.at(at).heads.ravel() for found in survived]  # type: ignore[union-attr]
    kappa = fleiss_kappa(np.stack(heads))
    assert kappa.low < 0 < kappa.high


def easy(size: int, *, seed: int = 0) -> Corpus:
    """The label is a word of the text, among words that tell nothing."""
    rng, examples = random.Random(seed), []
    for i in range(size):
        label = rng.randrange(2)
        words = [rng.choice(["the", "a", "up", "down"]) for _ in range(3)]
        words.insert(rng.randrange(4), ("bad", "good")[label])
        examples.append(Example(str(i), " ".join(words), label=label))
    return replace(planted_parts.corpus(2), examples=examples)
