"""`bertology demo` and its plan, with a model so small that it takes seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import tiny
from bertology.cli import demo
from bertology.cli.main import app
from bertology.report.atlas.gathering import gather
from bertology.results.store import Store
from bertology.train.checkpoint import read_record
from bertology.train.finetune import FinetuneSettings
from bertology.train.tuning import FinetunePlan, find_made, make


@pytest.fixture
def small(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> FinetunePlan:
    """A plan for a tiny model, which the demo uses instead of its own."""
    start = tmp_path_factory.mktemp("start")
    tiny.model("bert", "mlm").save_pretrained(start)
    tiny.tokenizer("the keys to cabinet are is here .".split()).save_pretrained(start)
    settings = FinetuneSettings(epochs=1, learning_rate=1e-3)
    plan = FinetunePlan("grammar-entailment", 96, 80, start=str(start), settings=settings)
    monkeypatch.setattr(demo, "demo_plan", lambda: plan)
    monkeypatch.setattr(demo, "_SENTENCES", 30)
    monkeypatch.setattr(demo, "_PAIRS", 10)
    monkeypatch.setattr(demo, "_RANKED_ON", 20)
    return plan


def run_demo(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["demo", *arguments])


@pytest.mark.usefixtures("small")
def test_the_demo_tells_what_its_results_show_and_draws_figures(tmp_path: Path) -> None:
    to = tmp_path / "out"
    first = run_demo("--to", str(to))
    assert first.exit_code == 0, first.output
    for words in (
        "3 layers × 4 heads",
        "She opened the ____ and went in.",
        "than\n  The keys to the cabinet is here.",
        "on 96 such pairs",
        "epoch 1 of 1",
        "Accuracy on 80 other pairs",
        "most frequent label: 50.0 %",
        "pairs that differ in one such verb",
        "What its heads attend to, in 30 sentences",
        "verb → object:",
        "[SEP] is ",
        "What is lost without layers and heads",
        "12 heads surely change",
        "3 layers surely change",
        "the 3 heads that matter most by gradients on other pairs",
        f"bertology run head-ablation --model {to}/model",
    ):
        assert words in first.output
    for figure in ("heads.png", "heads-loss.svg", "layers.png", "layers.svg"):
        assert (to / figure).stat().st_size > 1000
        assert str(to / figure) in first.output
    record = read_record(to / "model")
    assert record is not None
    assert record["baseline"] == {"accuracy": 0.5}
    start = record["base"]["name"]
    subject = gather(Store(str(to / "results")), start)  # the page of the model before
    assert subject.tasks == ("grammar-entailment",)
    assert {e.label for e in subject.entries} == {"grammar", "fine-tuned on grammar-entailment"}

    again = run_demo("--to", str(to))
    assert again.exit_code == 0, again.output
    assert "Reusing" in again.output
    assert "Fine-tuning" not in again.output
    assert read_record(to / "model") == record
    for words in ("What its heads", "What is lost"):
        found = first.output.partition(words)[2].partition("\n\n")[0]
        assert again.output.partition(words)[2].partition("\n\n")[0] == found

    anew = run_demo("--to", str(to), "--fresh")
    assert anew.exit_code == 0, anew.output
    assert "epoch 1 of 1" in anew.output
    assert "Reusing" not in anew.output


def test_another_plan_makes_another_model(tmp_path: Path, small: FinetunePlan) -> None:
    validation, folder = small.validation(), tmp_path / "model"
    made = make(folder, small, validation)
    assert find_made(folder, small, validation) == made
    assert find_made(folder, replace(small, examples=95), validation) is None
    assert find_made(folder, small, validation.take(70)) is None
    tiny.model("bert", "mlm", seed=1).save_pretrained(small.start)
    assert find_made(folder, small, validation) is None  # its name is all that stayed
    (folder / "bertology.json").write_text("{")
    assert find_made(folder, small, validation) is None


def test_a_plan_gives_the_same_model_again(tmp_path: Path, small: FinetunePlan) -> None:
    validation = small.validation()
    for name in ("one", "two"):
        make(tmp_path / name, small, validation)
    one, two = ((tmp_path / n / "model.safetensors").read_bytes() for n in ("one", "two"))
    assert one == two


@pytest.mark.usefixtures("small")
def test_ctrl_c_leaves_nothing_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        def tell(step: Any) -> None:
            raise KeyboardInterrupt

        return tell

    monkeypatch.setattr(demo, "_telling", interrupted)
    stopped = run_demo("--to", str(tmp_path / "out"))
    assert stopped.exit_code == 130
    assert "Training stopped at step 1 of 3" in stopped.output
    assert not (tmp_path / "out" / "model").exists()


@pytest.mark.usefixtures("small")
def test_a_folder_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.txt").write_text("years of work")
    refused = run_demo("--to", str(tmp_path))
    assert refused.exit_code == 2
    assert "not a model that bertology made" in refused.output
    assert "The model:" not in refused.output  # said before the work, not after it
    assert (tmp_path / "model" / "thesis.txt").exists()
