"""`bertology.score`: any model on any task, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.quiet import hush
from bertology.run.loading import ModelSource, resolve_corpus

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.score import Score


def score(
    model: Encoder | ModelSource | str | Path,
    task: Corpus | str | Path,
    *,
    batch_tokens: int = 4096,
    device: str = "auto",
    **reading: Any,
) -> Score:
    """Score a classifier on a task: every metric with its interval, and its speed.

    Args:
        model: A loaded encoder, or a name or folder; also one that was pruned.
        task: A corpus with a task: its name, a path, a hub id, or the corpus itself.
        batch_tokens: Tokens in one batch.
        device: Where a named model is loaded: `"cpu"`, `"cuda"`, …
        **reading: How data that are named are read, as `load_corpus` takes it: `split`, `limit`,
            `root`, `columns` (as `{"text": "review"}`), `labels`.

    Returns:
        A `Score`; print it, or ask for its `table()`.

    Example:
        >>> print(bt.score("my-model", "mrpc", limit=200))  # doctest: +SKIP
    """
    hush()
    from bertology.train.score import score_model

    corpus = resolve_corpus(task, must_have_task=True, **reading)
    if isinstance(model, str | Path):
        model = ModelSource(str(model), device=device)
    encoder = model.load("classification") if isinstance(model, ModelSource) else model
    return score_model(encoder, corpus, batch_tokens=batch_tokens)
