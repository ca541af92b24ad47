"""Small fine-tuning jobs by ways, and what ways prepare before a training."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.model.encoder import Encoder
from bertology.train.encoded import learnable
from bertology.train.finetune import FinetuneSettings
from bertology.train.starts import begin, new_weights
from bertology.train.tuning import TuningJob
from bertology.train.ways import Lesson, read_ways
from made_tunings import FAST, WORDS, encoder, job

ONCE = replace(FAST, epochs=1)
TOGETHER = ("adapters:size=4", "layer_mix", "layer_rates:decay=0.8", "substitution")
HEAD = {"classifier.weight", "classifier.bias"}


def in_layers(*layers: int) -> Callable[[str], bool]:
    """Whether a weight of a BERT lies in one of these layers, counted from 0."""
    places = tuple(f"bert.encoder.layer.{i}." for i in layers)
    return lambda name: name.startswith(places)


def by(*texts: str, settings: FinetuneSettings = ONCE, start: str = "pretrained") -> TuningJob:
    given = job(start, replace(settings, ways=read_ways(texts, start=start)))
    if {way.name for way in given.settings.ways} & {"siamese", "hex"}:
        return replace(given, train=pairs(0, 40), validation=pairs(40, 60))
    return given


def lesson_of(given: TuningJob, model: Any) -> Lesson:
    settings, tokens = given.settings, given.encoder.tokenizer
    head = new_weights(given.encoder, model)
    source = given.encoder.spec
    seed, rate = settings.seed, settings.learning_rate
    return Lesson(model, tokens, given.train, seed, rate, 8, None, head, source)


def prepared(given: TuningJob) -> tuple[Any, Lesson]:
    """The model as it is trained: all ways have prepared it."""
    task = learnable(given.train)
    model: Any = begin(given.encoder, task, given.start, seed=given.settings.seed)
    lesson = lesson_of(given, model)
    for way in given.settings.ways:
        way.prepare(lesson)
    return model, lesson


def pairs(first: int, last: int) -> Corpus:
    """Pairs of texts; those of class 1 begin with the same word."""
    task = Task("same-first", "classification", ("no", "yes"), ("accuracy",), pair=True)
    examples = []
    for i in range(first, last):
        drawn = random.Random(i)
        one, other = (drawn.choices(WORDS, k=drawn.randint(1, 4)) for _ in range(2))
        label = int(one[0] == other[0])
        examples.append(Example(str(i), " ".join(one), " ".join(other), label=label))
    fields = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL})
    return Corpus(task.name, examples, fields, task, "train")


def with_its_head(folder: Path) -> Encoder:
    """A model with a masked-LM head in a folder, opened without it."""
    given = encoder(head="mlm")
    given.model.save_pretrained(folder)
    given.tokenizer.save_pretrained(folder)
    return Encoder.load(str(folder), device="cpu")


def other_task(folder: Path) -> str:
    """Files of another task, and the way that learns it first."""
    for split, rows in (("train", range(40)), ("validation", range(40, 60))):
        # Longer than those of `corpus`: what is learnt first must not be scored.
        rest = "fox hen elk hen fox"
        texts = [f"{'cat' if i % 3 else 'owl'} {rest},{'yes' if i % 3 else 'no'}" for i in rows]
        (folder / f"{split}.csv").write_text("\n".join(["text,label", *texts]) + "\n")
    return f"intermediate:task={folder},limit=30"
