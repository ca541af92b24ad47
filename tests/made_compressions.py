"""Small compressions of the planted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers as hf

import planted
import prune_killed
import tiny
from bertology.model.encoder import Encoder
from bertology.train.compress import read_methods
from bertology.train.compress.compressing import CompressJob
from bertology.train.compress.settings import CompressSettings
from bertology.train.compress.work import CompressWatch, Work
from bertology.train.history import Step
from made_tunings import KilledError

TRAIN, HELD_OUT = planted.corpus(120, seed=1), planted.corpus(60, seed=2)
TEXTS = ["the up down good up up", "a down bad", "the good down"]
ONCE = CompressSettings(epochs=1, batch_size=16, rate=1e-3)


def clean() -> Encoder:
    """The planted model without any noise: one head carries the answer."""
    model = planted.model()
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    return Encoder(model, planted.tokenizer(), head="classification", name="planted")


def masked_lm(
    folder: Path, *, hidden: int = 16, layers: int = 2, words: Sequence[str] = planted.WORDS
) -> Encoder:
    """A model before any task, on the disk with its head for hidden words."""
    torch.manual_seed(3)
    tokens = tiny.tokenizer(list(words), max_length=40)
    config = hf.BertConfig(
        vocab_size=len(tokens), hidden_size=hidden, num_hidden_layers=layers,
        num_attention_heads=4, intermediate_size=8, max_position_embeddings=40,
    )  # fmt: skip
    hf.BertForMaskedLM(config).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return Encoder.load(str(folder), device="cpu")


def work(encoder: Encoder | None = None, **more: Any) -> Work:
    given = encoder or prune_killed.encoder()
    made = Work(encoder=given, teacher=prune_killed.encoder(), train=TRAIN, settings=ONCE, **more)
    made.encoder = made.copy()
    return made


def applied(text: str, given: Work | None = None) -> Encoder:
    [method] = read_methods([text])
    return method.apply(given or work())


def logits(encoder: Encoder) -> torch.Tensor:
    """Of the model itself: some forms cannot be looked into."""
    with torch.no_grad():
        found: torch.Tensor = encoder.model(**encoder.encode(TEXTS).inputs).logits
    return found


def job(*methods: str, settings: CompressSettings = ONCE, **more: Any) -> CompressJob:
    found = CompressJob(prune_killed.encoder(), TRAIN, HELD_OUT, read_methods(methods), settings)
    return replace(found, **more)


def stop_at(number: int, method: str = "") -> CompressWatch:
    """Gone in the middle of a training: nothing but what is on the disk remains.

    A stage before the training of a method is shown as a training of its own: `tiny first stage`.
    """

    class Line:
        def __init__(self, name: str, epochs: int) -> None:
            self.counts = method in ("", name)

        def step(self, step: Step) -> None:
            if self.counts and step.done == number:
                raise KilledError

        def stop(self) -> None:
            """Nothing was shown."""

    return CompressWatch(training=Line)
