"""`bertology demo`, with a model so small that it takes seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bertology.cli import demo
from bertology.cli.main import app
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.train.checkpoint import read_record
from bertology.train.finetune import FinetuneSettings
from bertology.train.fresh import Architecture
from bertology.train.from_scratch import Recipe, find_made, make


class SmallRecipe(Recipe):
    def validation(self) -> Corpus:
        return load_corpus(self.corpus, split="validation", limit=80)


SMALL = SmallRecipe(
    "grammar-entailment",
    96,
    Architecture(layers=2, heads=2, hidden=8, max_length=64, dropout=0.0),
    FinetuneSettings(epochs=1, learning_rate=1e-3),
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "demo_recipe", lambda: SMALL)


def run_demo(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["demo", *arguments])


def test_the_demo_ends_with_a_table_and_a_figure(tmp_path: Path) -> None:
    to = tmp_path / "out"
    first = run_demo("--to", str(to))
    assert first.exit_code == 0, first.output
    for words in (
        "2 layers × 2 heads",
        "epoch 1 of 1",
        "most frequent answer: 50.0 %",
        "change in points",
        "4 strongest of 4 heads",
        "judged on this model",
        f"bertology run head-ablation --model {to}/model",
    ):
        assert words in first.output
    for figure in ("heads.png", "heads.svg"):
        assert (to / figure).stat().st_size > 1000
        assert str(to / figure) in first.output
    record = read_record(to / "model")
    assert record is not None
    assert record["baseline"] == {"accuracy": 0.5}

    again = run_demo("--to", str(to))
    assert again.exit_code == 0, again.output
    assert "Reusing" in again.output
    assert "Training" not in again.output
    assert read_record(to / "model") == record
    found = first.output.partition("Disabling one head")[2]
    assert again.output.partition("Disabling one head")[2] == found

    anew = run_demo("--to", str(to), "--fresh")
    assert anew.exit_code == 0, anew.output
    assert "epoch 1 of 1" in anew.output
    assert "Reusing" not in anew.output


def test_another_recipe_is_trained_anew(tmp_path: Path) -> None:
    validation = SMALL.validation()
    made = make(tmp_path / "model", SMALL, validation)
    assert find_made(tmp_path / "model", SMALL, validation) == made
    other = SmallRecipe(SMALL.corpus, 95, SMALL.architecture, SMALL.settings)
    assert find_made(tmp_path / "model", other, validation) is None
    assert find_made(tmp_path / "model", SMALL, validation.take(70)) is None
    (tmp_path / "model" / "bertology.json").write_text("{")
    assert find_made(tmp_path / "model", SMALL, validation) is None


def test_ctrl_c_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        def tell(step: Any) -> None:
            raise KeyboardInterrupt

        return tell

    monkeypatch.setattr(demo, "_telling", interrupted)
    stopped = run_demo("--to", str(tmp_path / "out"))
    assert stopped.exit_code == 130
    assert "Training stopped at step 1 of 3" in stopped.output
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.txt").write_text("years of work")
    refused = run_demo("--to", str(tmp_path))
    assert refused.exit_code == 2
    assert "no model that bertology made" in refused.output
    assert "epoch" not in refused.output  # said before the work, not after it
    assert (tmp_path / "model" / "thesis.txt").exists()
