"""A small model trained from nothing on one task, by a recipe that can be followed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import ModelError
from bertology.train.checkpoint import check_folder, read_record, record_of, save_checkpoint
from bertology.train.encoded import task_of
from bertology.train.evaluate import baseline
from bertology.train.finetune import FinetuneSettings, Step, finetune
from bertology.train.fresh import Architecture, fresh_model

__all__ = ["Recipe", "find_made", "make"]


@dataclass(frozen=True)
class Recipe:
    """All that decides what the model will be."""

    corpus: str  # a name for load_corpus
    examples: int | None = None  # to learn from; None for all there are
    architecture: Architecture = field(default_factory=Architecture)
    settings: FinetuneSettings = field(default_factory=FinetuneSettings)

    def train(self) -> Corpus:
        """What the model learns from."""
        return load_corpus(self.corpus, split="train", limit=self.examples)

    def validation(self) -> Corpus:
        """What it is judged by."""
        return load_corpus(self.corpus, split="validation")


def find_made(folder: str | Path, recipe: Recipe, validation: Corpus) -> dict[str, Any] | None:
    """The record of the model in `folder`, if it was made by this recipe for this data."""
    try:
        record = read_record(folder)
    except ModelError:
        return None  # what cannot be read cannot be reused
    if record is None or record.get("recipe") != asdict(recipe):
        return None
    same = record["validation"]["fingerprint"] == validation.fingerprint
    return record if same else None


def make(
    folder: str | Path,
    recipe: Recipe,
    validation: Corpus,
    *,
    progress: Callable[[Step], None] = lambda step: None,
) -> dict[str, Any]:
    """Train by the recipe, save the model to `folder`, and give its record.

    The record of `save_checkpoint` has two more entries here: `recipe`, and `baseline`, the
    scores of always giving the same answer.
    """
    check_folder(folder)
    train = recipe.train()
    model, tokenizer = fresh_model(
        train.texts,
        recipe.architecture,
        labels=task_of(train).labels,
        seed=recipe.settings.seed,
    )
    history = finetune(
        model, tokenizer, train, validation, settings=recipe.settings, progress=progress
    )
    record = record_of(train, validation, recipe.settings, history)
    record |= {
        "method": "from-scratch",
        "recipe": asdict(recipe),
        "baseline": baseline(train, validation),
    }
    save_checkpoint(folder, model, tokenizer, record=record)
    return record
