"""Runs of fragments with known skills, and a model of words whose lessons can be foreseen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.training.fragments import Fragments
from bertology.studies.training.fragments.scores import (
    HYPOTHESIS,
    INOCULATED,
    OLD,
    TAUGHT,
    part_name,
)

Numbers = np.ndarray[Any, np.dtype[np.float64]]
AS_PUBLISHED = {
    "old": 0.85, "zero": 0.5, TAUGHT: 0.9, INOCULATED: 0.9, HYPOTHESIS: 0.5,
    "after-taught": 0.7, "after-inoculated": 0.845, "step": -0.04,
}  # fmt: skip
FRAGMENTS = ("boolean", "comparative", "negation")


def made_up(
    skills: dict[str, float] | None = None,
    *,
    seeds: int = 3,
    draw: int = 0,
    each: int = 150,
    old_size: int = 400,
    classes: int = 2,
    luck: float = 0.01,
    amounts: tuple[int, ...] = (0, 30, 100),
    steps: bool = True,
) -> Result:
    """Answers that are right with these probabilities; pairs are easy or hard for all models alike.

    `step` is added to the skill of a taught model for each step beyond the mean. After 30 examples
    half of the way from `zero` is gone. A wrong answer is any of the others.
    """
    skill = AS_PUBLISHED | (skills or {})
    rng = np.random.default_rng(draw)
    study = Fragments(seeds=seeds, amounts=amounts)
    size = each * len(FRAGMENTS)
    # Two labels are three of which two count as one, as in the bundled corpora.
    labels = np.minimum(np.arange(size) % 3, classes - 1).astype(float)
    group = np.arange(size) // each
    taken = rng.integers(1, 5, size) * 1.0
    old_labels = np.arange(old_size) % classes * 1.0
    hard, old_hard = rng.random(size), rng.random(old_size)

    def said(right: Numbers, truth: Numbers) -> Numbers:
        wrong = (truth + rng.integers(1, classes, len(truth))) % classes
        return np.where(right, truth, wrong)

    def answers(p: float, hardness: Numbers, truth: Numbers, more: Numbers | float = 0) -> Numbers:
        by_luck = rng.normal(0, luck)
        level = _mixed(np.clip(p + more + by_luck, 0.001, 0.999))
        return said((hardness + rng.random(len(truth))) / 2 < level, truth)

    parts: dict[str, xr.Dataset] = {}
    for seed in range(seeds):
        parts[f"{OLD}-seed-{seed}"] = xr.Dataset(
            {
                "said": ("example", answers(skill["zero"], hard, labels)),
                "old_said": ("old_example", answers(skill["old"], old_hard, old_labels)),
                "labels": ("example", labels),
                "old_labels": ("old_example", old_labels),
                "group": ("example", group),
                "steps": ("example", taken if steps else np.full(size, np.nan)),
            },
            {"fragment": list(FRAGMENTS)},
            {"classes": classes, "old_task": "made-up", "old_size": 1000, "train_fingerprint": "x"},
        )
        for at in range(len(FRAGMENTS)):
            here = group == at
            for k in amounts:
                if not k:
                    continue
                share = 1.0 if k == max(amounts) else 0.5
                rows = []
                for method in (TAUGHT, INOCULATED, HYPOTHESIS):
                    p = skill["zero"] + share * (skill[method] - skill["zero"])
                    more = 0.0 if method == HYPOTHESIS else skill["step"] * (taken[here] - 2.5)
                    rows.append(answers(p, hard[here], labels[here], more))
                kept = [
                    answers(
                        skill["old"] + share * (skill[f"after-{m}"] - skill["old"]),
                        old_hard,
                        old_labels,
                    )
                    for m in (TAUGHT, INOCULATED)
                ]
                parts[part_name(at, k, seed)] = xr.Dataset(
                    {
                        "said": (("method", "example"), rows),
                        "old_said": (("method", "old_example"), [*kept, np.full(old_size, np.nan)]),
                        "mixture": ("candidate", [0, 1]),
                        "epoch": ("candidate", [1, 1]),
                        "deciding_new": ("candidate", [0.5, 0.6]),
                        "deciding_old": ("candidate", [0.8, 0.8]),
                        "chosen": 1,
                    },
                    {"method": [TAUGHT, INOCULATED, HYPOTHESIS]},
                )
    about = {"name": "m", "fingerprint": "f"}
    corpus = {"name": "made-up", "fingerprint": "c"}
    return study.conclude(parts, Provenance("fragments", 1, {}, about, corpus))


def _mixed(share: Numbers) -> Numbers:
    """Where the mean of two uniform numbers lies below with this probability."""
    return np.where(share <= 0.5, np.sqrt(share / 2), 1 - np.sqrt((1 - share) / 2))


class WordSum(nn.Module):
    """Adds up a weight for each word: what a lesson does to each weight can be foreseen."""

    base_model_prefix = "words"

    def __init__(self, vocabulary: int, classes: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, classes)
        nn.init.zeros_(self.words.weight)
        self.config = SimpleNamespace(
            num_labels=classes, model_type="bert", max_position_embeddings=64, name_or_path="words",
            id2label={}, label2id={}, problem_type="", hidden_size=1000, num_hidden_layers=1,
            num_attention_heads=1,
        )  # fmt: skip

    @property
    def base_model(self) -> nn.Module:
        return self.words

    @property
    def device(self) -> torch.device:
        return self.words.weight.device

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **more: Tensor) -> SimpleNamespace:
        each = self.words(input_ids) * attention_mask[..., None]
        return SimpleNamespace(logits=each.sum(1))
