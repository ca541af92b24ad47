"""A whole recipe: the text, the vocabulary, the training, and what the model card should say."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from bertology.errors import ParameterError
from bertology.plain_files import local_path
from bertology.train.pretrain.config import Pretraining, Vocabulary
from bertology.train.pretrain.shards import Dealing

OF_CORPORA = ("corpus", "split", "examples", "together")  # fields that make no sense with files


@dataclass(frozen=True)
class TextCredit:
    """Where text comes from, for the model card."""

    name: str
    licence: str
    words: int | None = None
    url: str | None = None


@dataclass(frozen=True)
class TextSource:
    """The training text: files, or a corpus that `load_corpus` knows."""

    files: tuple[str, ...] = ()  # paths and patterns
    corpus: str | None = None
    split: str = "train"  # of the corpus
    examples: int | None = None  # of the corpus; None for all
    together: int = 1  # how many successive examples make one document
    held_out: float = Dealing.held_out
    shards: int = Dealing.shards
    sources: tuple[TextCredit, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.files) == (self.corpus is not None):
            got = [*self.files] if self.files else self.corpus
            raise ParameterError("files", "TextSource", "be given, or else corpus, not both", got)
        for f in fields(self) if self.files else ():
            if f.name in OF_CORPORA and getattr(self, f.name) != f.default:
                got = getattr(self, f.name)
                raise ParameterError(f.name, "TextSource", "be left out where files are given", got)
        for name in ("examples", "together"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ParameterError(name, "TextSource", "be at least 1", value)
        self.dealing()  # checks held_out and shards

    def dealing(self) -> Dealing:
        """How documents are put into shards: the same for every seed, so that scores compare."""
        return Dealing(self.held_out, self.shards)


@dataclass(frozen=True)
class Card:
    """Facts for the model card that only the user knows; those not given are left out."""

    name: str | None = None
    license: str | None = None  # of the model, as the hub writes it: apache-2.0
    language: str | None = None  # of the text: en
    remarks: str | None = None  # a paragraph of your own


@dataclass(frozen=True)
class Recipe:
    """What a recipe file says. `base` is the folder that its paths start from."""

    text: TextSource
    vocabulary: Vocabulary | str = field(default_factory=Vocabulary)  # or a tokenizer's folder
    training: Pretraining = field(default_factory=Pretraining)
    card: Card = field(default_factory=Card)
    base: Path = field(default=Path(), compare=False)

    def with_steps(self, steps: int) -> Recipe:
        """The same, with another number of steps."""
        return replace(self, training=replace(self.training, steps=steps))

    def seen_from(self, folder: Path) -> Recipe:
        """The same, with paths that start from another folder."""
        moved = tuple(_moved(f, self.base, folder) for f in self.text.files)
        vocabulary = self.vocabulary
        if isinstance(vocabulary, str) and (self.base / vocabulary).exists():
            vocabulary = _moved(vocabulary, self.base, folder)
        training = self.training
        if training.start is not None:
            training = replace(training, start=_moved(training.start, self.base, folder))
        text = replace(self.text, files=moved)
        return replace(self, text=text, vocabulary=vocabulary, training=training, base=folder)

    def resolved(self) -> Pretraining:
        """The training, with the model to start from as an absolute path."""
        if self.training.start is None:
            return self.training
        start = (self.base / local_path(self.training.start)).resolve()
        return replace(self.training, start=str(start))


def _moved(path: str, old: Path, new: Path) -> str:
    place = local_path(path)
    return path if place.is_absolute() else os.path.relpath(old / place, new)
