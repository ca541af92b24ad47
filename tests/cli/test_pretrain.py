"""`bertology pretrain` from a recipe to a model that loads, stopped and resumed on the way."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bertology.cli import pretrain as command
from bertology.cli.main import app

RECIPE = """\
text: {files: [text/*.txt], held_out: 0.2, sources: [{name: Made up, licence: CC0}]}
vocabulary: {size: 60}
model: {layers: 1, heads: 2, hidden: 16, max_length: 16, dropout: 0.1}
training:
  steps: 6
  batch_tokens: 64
  phases: [{length: 16}]
  log_every: 1
  evaluate_every: 3
  save_every: 2
  milestones: 2
card: {license: cc0-1.0, language: en}
"""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    words = "the a cat dog bird sees hears likes old young it runs".split()
    lines = []
    for i in range(240):
        lines.append(" ".join(words[(i * k + k) % len(words)] for k in (1, 3, 5, 7, 2)) + " .")
        if i % 6 == 5:
            lines.append("")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "made-up.txt").write_text("\n".join(lines))
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def call(*arguments: Any) -> tuple[int, str]:
    words = ["pretrain", *(str(a) for a in arguments)]
    done = CliRunner().invoke(app, words, prog_name="bertology")
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def steps_of(log: Path) -> list[int]:
    return [json.loads(line)["step"] for line in log.read_text().splitlines()]


def test_from_a_recipe_to_a_model_that_loads(recipe: Path) -> None:
    from bertology.model.encoder import Encoder

    to = recipe.parent / "out"
    asked = ("--config", recipe, "--to", to, "--device", "cpu")
    code, before = call(*asked, "--dry-run")
    assert code == 0, before
    assert "known once the text is prepared" in before
    assert not to.exists()

    code, output = call(*asked)
    assert code == 0, output
    for words in ("vocabulary of 60", "Preparing the text", "for 6 steps", "step 3, held out: mlm"):
        assert words in output
    assert steps_of(to / "log.jsonl") == [1, 2, 3, 4, 5, 6]
    assert len(list((to / "checkpoints").iterdir())) == 2
    card = (to / "model" / "README.md").read_text()
    for words in ("license: cc0-1.0", "| Made up | CC0 |", "| made-up.txt | 40 | 240 |"):
        assert words in card
    encoder = Encoder.load(str(to / "model"), head="mlm", device="cpu")
    assert encoder.max_length == 16
    record = json.loads((to / "model" / "bertology.json").read_text())
    assert record["parameters"] == encoder.model.num_parameters() + _heads_of_pretraining(encoder)

    code, again = call(*asked)
    assert code == 0, again
    assert "Trained already" in again
    assert "Preparing" not in again
    code, after = call(*asked, "--dry-run")
    assert "passes over the text" in after
    assert "known once" not in after

    # What was run can be run again elsewhere, and is the same.
    code, output = call("--config", to / "as-run.yaml", "--to", recipe.parent / "other")
    assert code == 0, output
    other = recipe.parent / "other" / "model" / "model.safetensors"
    assert other.read_bytes() == (to / "model" / "model.safetensors").read_bytes()

    code, refused = call(*asked, "--steps", 4)
    assert code == 2
    assert "training by another recipe" in refused
    code, output = call(*asked, "--steps", 4, "--fresh")
    assert code == 0, output
    assert "Making" not in output
    assert "for 4 steps" in output
    assert steps_of(to / "log.jsonl") == [1, 2, 3, 4]


def _heads_of_pretraining(encoder: Any) -> int:
    """What a model for masked words does not have: the pooler and the relation of sentences."""
    width = encoder.model.config.hidden_size
    return int(width * width + width + 2 * width + 2)


def test_ctrl_c_saves_and_the_said_command_goes_on(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = recipe.parent / "out"
    show = command._Line.show

    def stop_at_three(line: Any, report: Any) -> None:
        show(line, report)
        if report.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(command._Line, "show", stop_at_three)
        code, stopped = call("--config", recipe, "--to", to, "--device", "cpu")
    assert code == 130, stopped
    assert "stopped at step 3 of 6; everything is saved" in stopped
    assert f"Continue with: bertology pretrain --config {recipe} --to {to} --device cpu" in stopped

    code, resumed = call("--config", recipe, "--to", to, "--device", "cpu")
    assert code == 0, resumed
    assert "Continuing from step 3 of 6" in resumed
    assert "Making" not in resumed
    assert steps_of(to / "log.jsonl") == [1, 2, 3, 4, 5, 6]

    with (recipe.parent / "text" / "made-up.txt").open("a") as text:
        text.write("\n\nthe old cat .\n")
    code, refused = call("--config", recipe, "--to", to, "--device", "cpu")
    assert code == 2
    assert "begun on other text" in refused
    assert "--fresh" in refused


def test_ctrl_c_while_the_text_is_prepared(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("bertology.train.pretrain.materials.prepare", interrupted)
    code, stopped = call("--config", recipe, "--to", recipe.parent / "out", "--fresh")
    assert code == 130
    assert "Continue with: bertology pretrain --config" in stopped
    assert "--fresh" not in stopped


def test_a_tokenizer_that_is_there_is_used(recipe: Path) -> None:
    to = recipe.parent / "out"
    assert call("--config", recipe, "--to", to, "--steps", 1)[0] == 0
    text = RECIPE.replace("{size: 60}", "{from: out/model}").replace("steps: 6", "steps: 1")
    recipe.write_text(text)
    code, output = call("--config", recipe, "--to", recipe.parent / "second")
    assert code == 0, output
    assert not (recipe.parent / "second" / "tokenizer").exists()
    vocabularies = [
        json.loads((recipe.parent / f / "model" / "tokenizer.json").read_text())["model"]["vocab"]
        for f in ("out", "second")
    ]
    assert vocabularies[0] == vocabularies[1]


def test_the_example_and_the_help() -> None:
    assert call("--example") == (0, command.EXAMPLE)
    code, shown = call("--help")
    assert code == 0
    for words in ("--config", "--dry-run", "--fresh", "torchrun --nproc-per-node"):
        assert words in shown


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("steps: 6", "stepz: 6"), ["recipe.yaml, line 5", "'training.stepz'", "'steps'"]),
        (("training:", "objective: {pairing: nspp}\ntraining:"), ["line 4", "'nspp'", "'nsp'"]),
        (("{size: 60}", "{size: 60"), ["not valid YAML"]),
        (("text/*.txt", "texts/*.txt"), ["no text file", "texts/*.txt"]),
        (("{size: 60}", "{from: ./nowhere}"), ["No tokenizer", "nowhere"]),
        (("files: [text/*.txt]", "corpus: grammer"), ["'grammer'"]),
        (("held_out: 0.2", "held_out: 0.0001"), ["too few", "held-out"]),
    ],
)
def test_bad_recipes_are_told(recipe: Path, change: tuple[str, str], words: list[str]) -> None:
    assert change[0] in RECIPE
    recipe.write_text(RECIPE.replace(*change))
    code, output = call("--config", recipe, "--to", recipe.parent / "out", "--device", "cpu")
    assert code == 2, output
    for word in words:
        assert word in output


def test_what_is_missing_is_asked_for(recipe: Path) -> None:
    code, output = call()
    assert code == 2
    assert "--example" in output
    code, output = call("--config", recipe)
    assert code == 2
    assert "--to my-bert" in output
    code, output = call("--config", recipe.parent / "none.yaml", "--to", recipe.parent / "out")
    assert code == 2
    assert "There is no recipe" in output


def test_folders_that_cannot_be_used_are_refused_before_any_work(recipe: Path) -> None:
    to = recipe.parent / "thesis"
    to.mkdir()
    (to / "thesis.txt").write_text("years of work")
    code, output = call("--config", recipe, "--to", to)
    assert code == 2
    assert "holds no pre-training" in output
    assert [p.name for p in to.iterdir()] == ["thesis.txt"]
    code, output = call("--config", recipe, "--to", to / "thesis.txt" / "out")
    assert code == 2
    assert "not a folder you may write to" in output
