"""What we show a model: corpora, the readers and the catalogue they come from, alignment."""

from __future__ import annotations

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.loading import describe, load_corpus

__all__ = ["Corpus", "Example", "Field", "Task", "describe", "load_corpus"]
