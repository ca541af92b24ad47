"""A tiny teacher with answers of its own, and data that it is asked about."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus
from bertology.train.distil.teacher import Teacher
from bertology.train.finetune import FinetuneSettings
from bertology.train.fit import name_labels
from bertology.train.ways import Lesson
from made_tunings import WORDS, YES_NO, corpus

TOKENS = tiny.tokenizer(list(WORDS))
QUICK = FinetuneSettings(epochs=2, batch_size=8, learning_rate=2e-3)


def teacher_model(kind: str = "BertForSequenceClassification", *, layers: int = 4) -> Any:
    """A random BERT whose answers differ between texts, and which says "yes" to some of them."""
    torch.manual_seed(7)
    model: Any = getattr(hf, kind)(
        hf.BertConfig(
            vocab_size=len(TOKENS), hidden_size=16, num_hidden_layers=layers,
            num_attention_heads=4, intermediate_size=24, max_position_embeddings=32, num_labels=2,
        )
    ).eval()  # fmt: skip
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(0.3 / weight.std())
    if hasattr(model, "classifier"):
        name_labels(model, YES_NO)
    return model


def train_data(size: int = 24) -> Corpus:
    return corpus(0, size)


def batch(model: Any, size: int = 8) -> dict[str, torch.Tensor]:
    """Inputs of different lengths, padded."""
    texts = train_data(size).texts
    return dict(TOKENS(list(texts), padding=True, return_tensors="pt"))


def lesson_of(student: Any, data: Corpus | None = None, **more: Any) -> Lesson:
    given = {"seed": 0, "rate": 1e-3, "batch_size": 8, "max_length": None, "head": ()} | more
    return Lesson(student, TOKENS, data or train_data(), **given)


def asking(keep: str = "memory", model: Any = None, **more: Any) -> Teacher:
    return Teacher(teacher_model() if model is None else model, keep=keep, **more)
