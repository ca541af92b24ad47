"""The bundled model: complete, small, the default, loaded offline; and it has learnt something."""

from __future__ import annotations

import json
import subprocess
import sys
from inspect import signature
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import bertology as bt
from bertology.cli.run import RunOptions
from bertology.errors import ModelError
from bertology.model.encoder import Encoder
from bertology.model.loading.names import DEFAULT_MODEL, bundled_models

FOLDER = bundled_models()[DEFAULT_MODEL]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def mini() -> Encoder:
    return bt.load(head="mlm", device="cpu")


def size(*paths: Path) -> float:
    """In megabytes."""
    return sum(p.stat().st_size for p in paths) / 1e6


def test_it_is_what_is_loaded_by_default(mini: Encoder) -> None:
    assert mini.name == DEFAULT_MODEL
    shape = mini.shape
    assert (shape.layers, shape.heads, shape.hidden) == (12, 12, 192)
    assert mini.tokenizer.tokenize("The KEYS") == ["the", "keys"]
    assert not mini.new_weights
    assert bt.steps() == bt.steps(DEFAULT_MODEL)


def test_it_is_small_enough_to_come_along() -> None:
    assert size(FOLDER / "model.safetensors") <= 18
    assert size(*FOLDER.rglob("*.safetensors")) <= 62


@pytest.mark.slow
def test_the_wheel_is_small_and_the_steps_are_another(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    for project in (root, root / "steps"):
        subprocess.run(build, cwd=project, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("bertology-[0-9]*.whl")
    (steps,) = tmp_path.glob("bertology_steps-*.whl")
    assert size(wheel) <= 30
    inside = {name for name in ZipFile(wheel).namelist() if name.endswith(".safetensors")}
    parts = ("bertology-mini/model", "map-types/model", "tagger/tagger")
    assert inside == {f"bertology/checkpoints/{part}.safetensors" for part in parts}
    inside = {name for name in ZipFile(steps).namelist() if name.endswith(".safetensors")}
    assert inside == {
        f"bertology_steps/bertology-mini/{path.name}" for path in (FOLDER / "steps").iterdir()
    }


def test_its_tokenizer_is_of_a_class_that_versions_4_and_5_of_transformers_know() -> None:
    config = json.loads((FOLDER / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_its_card_says_what_it_was_made_from() -> None:
    card = (FOLDER / "README.md").read_text(encoding="utf-8").lower()
    assert "license:" in card
    assert "licence" in card
    assert "corpus" in card


def test_it_knows_agreement_and_at_its_first_step_it_did_not(mini: Encoder) -> None:
    made = bt.load_corpus("grammar-agreement", limit=200)
    pairs = sorted(made, key=lambda example: len(example.get("words")))[:30]  # quick to score
    good, bad = [e.text for e in pairs], [e.get("contrast") for e in pairs]
    untrained = bt.load(f"{DEFAULT_MODEL}@0", head="mlm", device="cpu")
    right, guessed = (np.mean(bt.compare_pairs(e, good, bad) > 0) for e in (mini, untrained))
    # Of 30 coins, fewer than 9 or more than 21 come up heads about once in 60 times.
    assert right > 0.8
    assert 0.3 <= guessed <= 0.7


def test_its_steps_are_models_of_their_own(mini: Encoder) -> None:
    assert bt.steps(DEFAULT_MODEL) == [0, 764, 2416, 7640, 24160]
    step = bt.load(f"{DEFAULT_MODEL}@2416", head="mlm", device="cpu")
    assert step.shape == mini.shape
    assert step.fingerprint != mini.fingerprint
    (blank,) = bt.cloze(step, "She opened the {mask} and went in.", top_k=3)
    assert len(blank.predictions) == 3


def test_every_run_has_it_by_default() -> None:
    assert RunOptions().model == DEFAULT_MODEL
    assert signature(bt.run).parameters["encoder"].default == DEFAULT_MODEL


def test_a_task_needs_a_head_that_it_does_not_have() -> None:
    with pytest.raises(ModelError, match="no trained classification head") as caught:
        bt.load(head="classification", device="cpu")
    assert "`bertology finetune MODEL TASK`" in str(caught.value.hint)
