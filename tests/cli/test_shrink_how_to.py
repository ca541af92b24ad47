"""The road of docs/how-to/shrink.md, command by command, with a tiny model to save time."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import torch
import transformers as hf
from typer.testing import CliRunner

import bertology as bt
from bertology.cli.main import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "shrink.md"
# A tiny model that knows nothing learns by larger steps, and is done with fewer examples.
QUICKER = {
    "bertology-mini": "tiny",
    "--epochs 1": "--epochs 2 --limit 1500 --validation-limit 100",
    "--rate 1.5e-4": "--rate 3e-3",
    "--recover-limit 2000": "--recover-limit 200",
    "--limit 800": "--limit 400",
}


def commands() -> list[list[str]]:
    text = PAGE.read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for old, new in QUICKER.items():
            block = block.replace(old, new)
        found += [shlex.split(line) for line in block.splitlines()]
    return found


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tokens = bt.load(device="cpu").tokenizer
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=96,
    )  # fmt: skip
    hf.BertForMaskedLM(config).save_pretrained("tiny")
    tokens.save_pretrained("tiny")
    said = []
    for command in commands():
        assert command[0] == "bertology"
        done = CliRunner().invoke(app, command[1:], prog_name="bertology")
        assert done.exit_code == 0, (command, done.output)
        said.append(done.output)
    verbs = [command[1] for command in commands()]
    assert verbs == ["finetune", "score", "prune", "prune", "score", "prune", "export-model"]
    assert "surely better than a constant answer" in said[1]
    assert "held-out examples" in said[2]
    assert "after 1 epoch of training" in said[3].replace("\n", " ")
    # What the road ends with: two folders that load as the page says.
    small = bt.load("small", head="classification", device="cpu")
    record = json.loads(Path("small/bertology.json").read_text())
    assert record["pruning"]["parameters"][1] == sum(p.numel() for p in small.model.parameters())
    assert record["base"]["name"] == "tiny"
    plain = hf.AutoModelForSequenceClassification.from_pretrained("fewer-layers")
    assert plain.config.num_hidden_layers < 3
    assert "gives the same answer" in said[-1]
    assert Path("deploy/model.pt2").is_file()
    assert "AutoModelForSequenceClassification" in Path("fewer-layers/README.md").read_text()
