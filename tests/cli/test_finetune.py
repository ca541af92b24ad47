"""`bertology finetune` from a task to models that load: stopped, resumed, refused, explained."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tiny
from bertology.cli.main import app
from bertology.model.encoder import Encoder
from bertology.results.store import Store
from bertology.train.history import Step
from bertology.train.tuned import is_at_chance
from bertology.train.ways import WAYS

WORDS = ("cat", "dog", "owl", "fox", "hen", "elk")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "start"
    tiny.model("bert", "mlm").save_pretrained(folder)
    tiny.tokenizer(list(WORDS)).save_pretrained(folder)
    return folder


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Does the text have a cat, and how long is it?"""
    folder = tmp_path / "task"
    folder.mkdir()
    for split, first, last in (("train", 0, 48), ("validation", 48, 80)):
        lines = ["sentence,gold,score"]
        for i in range(first, last):
            text = " ".join(WORDS[(i * 7 + j * j * (i % 11)) % 6] for j in range(1 + i % 5))
            lines.append(f"{text},{'cat' if 'cat' in text else 'other'},{len(text) / 7:.2f}")
        (folder / f"{split}.csv").write_text("\n".join(lines))
    return folder


def call(*arguments: Any) -> tuple[int, str]:
    words = ["finetune", *(str(a) for a in arguments)]
    done = CliRunner().invoke(app, words, prog_name="bertology")
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def test_from_a_task_to_models_that_load(
    model: Path, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So small a model does not learn; what is next for one that did is to be seen.
    monkeypatch.setattr("bertology.train.tuned.is_at_chance", lambda records: False)
    to = tmp_path / "out"
    given = (model, task, "--columns", "text=sentence,label=gold", "--to", to, "--epochs", 2)
    code, said = call(*given, "--seeds", "0,1", "--batch-size", 16, "--max-length", 4)
    assert code == 0, said
    for words in (
        "48 training examples, 32 validation examples",
        "2 epochs, batches of 16, rate 0.0002",
        "seed 1, epoch 2 of 2: loss",
        "95 % interval",
        "always the same label",
        "were too long and were cut",
        f"bertology run head-ablation --model {to}/seed-0 --task {task}",
    ):
        assert words in said
    loaded = Encoder.load(str(to / "seed-1"), head="classification", device="cpu")
    assert loaded.config.id2label == {0: "cat", 1: "other"}
    record = json.loads((to / "seed-1" / "bertology.json").read_text())
    assert (record["start"], record["settings"]["seed"]) == ("pretrained", 1)
    code, again = call(*given, "--seeds", "0,1,2", "--batch-size", 16, "--max-length", 4)
    assert code == 0, again
    assert again.count("was made on") == 2
    assert "seed 2, epoch 2" in again
    code, other = call(*given, "--seeds", 0)
    assert code == 2
    assert "other settings" in other
    assert "--force" in other


def made(score: float, size: int, *, metric: str = "accuracy") -> Any:
    return {"validation": {"size": size}, "baseline": {metric: 0.5}, "scores": {metric: score}}


def test_a_model_at_chance_is_not_sent_to_an_ablation(
    model: Path, task: Path, tmp_path: Path
) -> None:
    given = (model, task, "--columns", "text=sentence,label=gold", "--start", "frozen")
    code, said = call(*given, "--to", tmp_path / "out")
    assert code == 0, said
    assert "The model has not learnt the task" in said
    assert "head-ablation" not in said
    assert is_at_chance([made(0.58, 100)])
    assert not is_at_chance([made(0.58, 400)])
    assert not is_at_chance([made(0.9, 4)])
    assert is_at_chance([made(0.45, 4000), made(0.54, 4000)])
    assert is_at_chance([made(0.58, 400, metric="matthews")])


def test_a_regression_from_every_start(model: Path, task: Path, tmp_path: Path) -> None:
    for start in ("frozen", "frozen-features", "random"):
        code, said = call(
            model, task, "--columns", "text=sentence,label=score", "--start", start,
            "--epochs", 1, "--to", tmp_path / start, "--early-stopping", 1,
        )  # fmt: skip
        assert code == 0, said
        assert "pearson" in said
        assert ("trains nothing" in said) == (start == "frozen")
        assert ("rate 0.001" in said) == (start == "frozen-features")
        loaded = Encoder.load(str(tmp_path / start / "seed-0"), head="classification", device="cpu")
        assert loaded.config.num_labels == 1


def test_without_a_folder_models_go_to_the_results(
    model: Path, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = call(model, task, "--columns", "text=sentence,label=gold", "--start", "frozen")
    assert code == 0, said
    assert (tmp_path / "results/finetuned/start/task-frozen/seed-0/README.md").is_file()


def test_ctrl_c_says_how_to_go_on(
    model: Path, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertology.run.progress import TrainingLine

    show = TrainingLine.step

    def stop(line: Any, step: Step) -> None:
        show(line, step)
        if step.done == 3:
            raise KeyboardInterrupt

    given = (model, task, "--columns", "text=sentence,label=gold", "--to", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(TrainingLine, "step", stop)
        code, said = call(*given, "--epochs", 3, "--force")
    assert code == 130
    assert "finished epochs are kept. 0 of 1 models are finished." in said
    assert f"Continue with: bertology finetune {model} {task}" in said
    assert "--force" not in said.partition("Continue with")[2]
    code, said = call(*given, "--epochs", 3)
    assert code == 0, said
    assert "continuing after epoch 1 of 3" in said


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "no-such-model"}, "Unknown model 'no-such-model'"),
        ({"task": "mrcp"}, "Did you mean 'mrpc'"),
        ({"task": "grammar", "--limit": "5", "--validation-limit": "5"}, "has no task"),
        ({"--columns": "text=sentence,label=golden"}, "no column 'golden'"),
        ({"--columns": "gold"}, "pairs such as label=gold"),
        ({"--split": "nope"}, "Splits that are there: train, validation"),
        ({"--split": "train"}, "are the same examples"),
        ({"--max-length": "999"}, "at most 64"),
        ({"--seeds": "1,1"}, "name each seed once"),
        ({"--seeds": "one"}, "not of the form"),
        ({"--start": "thawed"}, "frozen-features"),
        ({"--precision": "bfloat16"}, "be float32 but on a GPU"),
        ({"--epochs": "0"}, "epochs"),
        ({"--rate": "0"}, "rate"),
    ],
)
def test_what_is_wrong_is_said(
    model: Path, task: Path, tmp_path: Path, change: dict[str, str], message: str
) -> None:
    given = {"model": str(model), "task": str(task), "--to": str(tmp_path / "out")}
    given |= {"--columns": "text=sentence,label=gold", "--device": "cpu"} | change
    if given["task"] != str(task):
        given.pop("--columns")
    options = [w for n, v in given.items() if n.startswith("--") for w in (n, v)]
    code, said = call(given["model"], given["task"], *options)
    assert code == 2, said
    assert message in said
    assert not (tmp_path / "out").exists()


def test_ways_are_composed_or_refused(model: Path, task: Path, tmp_path: Path) -> None:
    given = (model, task, "--columns", "text=sentence,label=gold", "--to", tmp_path / "out")
    few = (*given, "--epochs", 1)
    code, said = call(*few, "--way", "adapters:size=4", "--way", "layer-rates:decay=0.9")
    assert code == 0, said
    assert "adapters:size=4: small bottlenecks" in said
    assert "rate 0.001" in said
    record = json.loads((tmp_path / "out" / "seed-0" / "bertology.json").read_text())
    assert record["settings"]["ways"] == ["adapters:size=4", "layer_rates:decay=0.9"]
    code, said = call(*few, "--way", "adapters", "--way", "bias_only")
    assert code == 2
    assert "each says which weights of the model are trained" in said


def test_the_next_command_reads_the_same_data(model: Path, task: Path, tmp_path: Path) -> None:
    """It had lost the columns, and ended with: no column has one of the usual names of a text."""
    code, said = call(
        model, task / "train.csv", "--validation", task / "validation.csv", "--epochs", 40,
        "--columns", "text=sentence,label=gold", "--labels", "cat=has a cat,other=none",
        "--to", tmp_path / "out", "--rate", 0.01, "--device", "cpu",
    )  # fmt: skip
    assert code == 0, said
    line, change = [w for w in said.splitlines() if w.startswith("  bertology run")]
    words = shlex.split(line)
    assert shlex.split(change)[2] == "attention-change"
    assert words[words.index("--columns") + 1] == "text=sentence,label=gold"
    assert words[words.index("--labels") + 1] == "cat=has a cat,other=none"
    done = CliRunner().invoke(app, [*words[1:], "--store", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    assert "Labels (data = model, by name): cat = has a cat, other = none" in done.output
    assert "was fine-tuned for" not in done.output
    result = Store(str(tmp_path / "r")).load(Store(str(tmp_path / "r")).list()[0])
    assert result.about == "start fine-tuned on task (seed 0), over task"


def test_a_column_of_another_kind_is_another_task(model: Path, task: Path, tmp_path: Path) -> None:
    code, said = call(
        model, task / "train.csv", "--validation", task / "validation.csv",
        "--columns", "text=sentence,label=sentence", "--to", tmp_path / "out",
    )  # fmt: skip
    assert code == 2
    assert "must have the same task as train" in said


def test_help_has_examples_and_defaults() -> None:
    code, said = call("--help")
    assert code == 0
    assert "bertology finetune bertology-mini grammar-entailment" in said
    assert "[default: 32]" in said
    assert "1e-4 for a hidden size below 512" in said


def test_every_way_stands_in_the_help_and_on_its_page() -> None:
    said = "".join(call("--help")[1].split())
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "finetune.md").read_text("utf-8")
    for name in WAYS:
        way = WAYS.get(name)()
        assert way.text in said
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        for option in filter(None, way.text.partition(":")[2].split(",")):
            assert f"`{option}`" in row
