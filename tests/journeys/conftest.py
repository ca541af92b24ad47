"""A small model that learns quickly, and data as a user has them."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers as hf

from tiny import bundled_tokens

_GOOD = "warm clever funny moving lovely honest".split()
_POOR = "dull slow silly empty tired noisy".split()
_THINGS = "film story play book song scene".split()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, offline, with a terminal that is wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path


@pytest.fixture
def tiny(here: Path) -> Path:
    """A model called `tiny`, with the tokenizer of the bundled one."""
    tokens = bundled_tokens()
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=96,
    )  # fmt: skip
    hf.BertForMaskedLM(config).save_pretrained("tiny")
    tokens.save_pretrained("tiny")
    return here / "tiny"


@pytest.fixture
def reviews(here: Path) -> Callable[..., None]:
    """Writes reviews-train and reviews-test; some labels are wrong, as in real data."""

    def write(train: int, test: int, ending: str = "csv") -> None:
        chance = random.Random(0)
        for part, size in (("train", train), ("test", test)):
            rows = [_review(chance) for _ in range(size)]
            with open(f"reviews-{part}.{ending}", "w", encoding="utf-8", newline="") as file:
                if ending == "csv":
                    writer = csv.writer(file, delimiter=";")
                    writer.writerow(rows[0])
                    writer.writerows(row.values() for row in rows)
                else:
                    file.writelines(json.dumps(row) + "\n" for row in rows)

    return write


def _review(chance: random.Random) -> dict[str, str]:
    good = chance.random() < 0.5
    words = [chance.choice(_GOOD if good else _POOR) for _ in range(2)]
    things = [chance.choice(_THINGS) for _ in range(2)]
    # A comma in the text: only the semicolon separates.
    text = f"A {words[0]} {things[0]}, and the {things[1]} is {words[1]} too."
    said = good if chance.random() < 0.95 else not good
    return {"review": text, "opinion": "good" if said else "poor"}
