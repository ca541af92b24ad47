"""The engineer: score, cut, score again, load elsewhere, as docs/how-to/shrink.md prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transformers as hf

import bertology as bt
from bertology.train import speed
from printed import Done, printed, run, run_all

PAGE = "docs/how-to/shrink.md"
# A tiny model that knows nothing learns by larger steps, and is done with fewer examples.
QUICKER = {
    "bertology-mini": "tiny",
    "--epochs 1": "--epochs 2 --limit 1500 --validation-limit 100",
    "--rate 1.5e-4": "--rate 3e-3",
    "--recover-limit 2000": "--recover-limit 200",
    "--keep 0.9 --limit 800 --validation-limit 400": "--keep 0.9 --limit 99 --validation-limit 99",
    "--epochs 2 --validation-limit 400 --to by-movement": "--epochs 1 --recover-limit 200 "
    "--validation-limit 100 --to by-movement",
    "--limit 800": "--limit 400",
}


def check(done: list[Done], layers: int) -> None:
    """What the commands of the page say and leave behind: folders that load as it says."""
    verbs = [one.verb for one in done]
    assert verbs == ["finetune", "score", *["prune"] * 5, "score", "prune", "export-model"]
    assert "surely better than a constant answer" in done[1].said
    assert "held-out examples" in done[2].said
    for one in done[4:6]:
        assert "zeros save no time" in one.said.replace("\n", " ")
    for folder in ("by-importance", "by-magnitude", "by-movement"):
        bt.load(folder, head="classification", device="cpu")
    assert "after 1 epoch of training" in done[6].said.replace("\n", " ")
    small = bt.load("small", head="classification", device="cpu")
    record = json.loads(Path("small/bertology.json").read_text())
    sizes = record["compression"]["parameters"]
    assert sizes[1] == sum(p.numel() for p in small.model.parameters()) < sizes[0]
    plain = hf.AutoModelForSequenceClassification.from_pretrained("fewer-layers")
    assert plain.config.num_hidden_layers < layers
    assert "gives the same answer" in done[-1].said
    assert Path("deploy/model.pt2").is_file()
    assert "AutoModelForSequenceClassification" in Path("fewer-layers/README.md").read_text()


def test_the_commands_of_the_page(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "_ROUNDS", 1)  # how quick they are is not looked at
    monkeypatch.setattr(speed, "_TIMES", 1)
    done = run_all(PAGE, QUICKER)
    check(done, layers=3)
    assert json.loads(Path("small/bertology.json").read_text())["base"]["name"] == "tiny"
    # What is proposed on the way can be pasted; exports of pruned models have tests of their own.
    score, export = done[2].proposed
    assert run(score).verb == "score"
    assert export.startswith("bertology export-model small ")
    # And the smaller model in Python, as the page has it.
    for block in printed(PAGE, "python"):
        exec(compile(block, PAGE, "exec"), {})


@pytest.mark.slow
def test_the_page_as_it_stands(here: Path) -> None:
    check(run_all(PAGE), layers=12)
