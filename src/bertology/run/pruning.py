"""`bertology.prune`: a smaller model for a task, in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import StoreError
from bertology.quiet import hush
from bertology.run.loading import ModelSource, resolve_corpus

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.pruned import Pruned

__all__ = ["prune"]


def prune(
    model: Encoder | ModelSource | str,
    task: Corpus | str,
    validation: Corpus | str | None = None,
    *,
    to: str | Path,
    max_loss: float = 1.0,
    parts: Sequence[str] = ("layers", "heads", "mlps"),
    seed: int = 0,
    batch_tokens: int = 4096,
    limit: int | None = 2000,
    validation_limit: int | None = None,
    train_split: str = "train",
    split: str = "validation",
    force: bool = False,
    tell: Callable[[str], None] | None = None,
    **reading: Any,
) -> Pruned:
    """Cut a classifier for a task, as far as the score allows, and save it to a folder.

    Args:
        model: A loaded encoder, or a name or folder, with a head for the task.
        task: The training data: half of the examples rank parts, the others say how much may go.
        validation: The held-out data that the smaller model is scored on once; by default another
            split of `task`.
        to: The folder for the smaller model.
        max_loss: How many points (hundredths) of the task's main metric may be lost.
        parts: What may be cut. A model without some layers is one that plain transformers loads.
        seed: Which training examples rank, and which select.
        batch_tokens: Tokens in one batch.
        limit: So many training examples, drawn at random; None for all.
        validation_limit: So many held-out examples; None for all.
        train_split: The split to rank and select on.
        split: The split to score on.
        force: Replace a model that is already in the folder.
        tell: Is told each cut.
        **reading: How data that are named are read, as `load_corpus` takes it: `root`, columns.

    Returns:
        What was cut and what it cost; `sentence` says it.

    Example:
        >>> print(bt.prune("my-model", "mrpc", to="my-model-small").sentence)  # doctest: +SKIP
    """
    hush()
    from bertology.train.prune import PruneSettings
    from bertology.train.pruned import prune_to

    settings = PruneSettings(max_loss, tuple(parts), seed, batch_tokens)
    place = Path(to)
    if not force and place.is_dir() and any(place.iterdir()):
        raise StoreError(
            f"{place} is not empty.", hint="Choose another folder, or replace it with --force."
        )
    train, held_out = (
        resolve_corpus(data, must_have_task=True, split=part, limit=most, **reading)
        for data, part, most in (
            (task, train_split, limit),
            (task if validation is None else validation, split, validation_limit),
        )
    )
    source = ModelSource(model) if isinstance(model, str) else model
    encoder = source.load("classification") if isinstance(source, ModelSource) else source
    return prune_to(place, encoder, train, held_out, settings, tell=tell or (lambda text: None))
