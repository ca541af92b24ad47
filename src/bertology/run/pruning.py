"""`bertology.prune`: a smaller model for a task, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import ParameterError, StoreError
from bertology.quiet import hush
from bertology.run.loading import Asked, ModelSource, seen_and_unseen

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.prune_settings import PruneSettings
    from bertology.train.pruned import Pruned, PruneWatch
    from bertology.train.recovery import Recovery


def prune(
    model: Encoder | ModelSource | str,
    task: Corpus | str,
    validation: Corpus | str | None = None,
    *,
    to: str | Path,
    method: str = "measured",
    max_loss: float | None = None,
    keep: float | None = None,
    weights: float | None = None,
    parts: Sequence[str] = (),
    epochs: int | None = None,
    recover: int = 0,
    cut_loss: float | None = None,
    recover_limit: int | None = None,
    seed: int = 0,
    batch_tokens: int = 4096,
    limit: int | None = 2000,
    validation_limit: int | None = None,
    train_split: str = "train",
    split: str = "validation",
    force: bool = False,
    watch: PruneWatch | None = None,
    **reading: Any,
) -> Pruned:
    """Prune a classifier for a task, as far as the score allows, and save it to a folder.

    Args:
        model: A loaded encoder, or a name or folder, with a head for the task.
        task: The training data: some examples rank parts, the others say how much may go. Those
            that the model was not trained on are used where its record tells which these are.
        validation: The held-out data that the smaller model is scored on once; by default another
            split of `task`.
        to: The folder for the smaller model.
        method: `measured` cuts layers, MLPs and heads, ranked by what happens without each.
            `importance` cuts heads and MLPs by the gradients of their gates. `magnitude` zeroes the
            smallest weights, `movement` those that training moves to zero: nothing gets faster.
        max_loss: How many points (hundredths) of the main metric may be lost; 1 if none is given.
        keep: Or: which share of the score must be kept, such as 0.9.
        weights: Or, with `magnitude` and `movement`: which share of the weights stays.
        parts: What may be cut, of layers, mlps and heads; all that the method can cut if empty. A
            model without some layers is one that plain transformers loads.
        epochs: Of `movement`: how long each training is; 6 if not given.
        recover: Train what is left for so many epochs, on all of the training data.
        cut_loss: With `recover`: how many points may be lost before it; by default five times more.
        recover_limit: `recover` and `movement` train on so many examples, drawn at random.
        seed: Which training examples rank, and which select.
        batch_tokens: Tokens in one batch.
        limit: So many training examples rank and select, drawn at random; None for all.
        validation_limit: So many held-out examples; None for all.
        train_split: The split to rank and select on.
        split: The split to score on.
        force: Replace a model that is already in the folder.
        watch: Is told each cut and each step of the training.
        **reading: How data that are named are read, as `load_corpus` takes it: `root`, columns.

    A run that was stopped goes on where it was when it is started again.

    Returns:
        What was cut and what it cost; `sentence` says it.

    Example:
        >>> print(bt.prune("my-model", "mrpc", to="my-model-small").sentence)  # doctest: +SKIP
    """
    hush()
    from bertology.train.pruned import prune_to

    settings = _settings(
        method, recover, cut_loss, recover_limit, max_loss=max_loss, keep=keep, weights=weights,
        parts=tuple(parts), seed=seed, batch_tokens=batch_tokens, limit=limit, epochs=epochs,
    )  # fmt: skip
    place = _place(to, force)
    train, held_out = seen_and_unseen(
        Asked(task, train_split, None), Asked(validation, split, validation_limit), **reading
    )
    source = ModelSource(model) if isinstance(model, str) else model
    encoder = source.load("classification") if isinstance(source, ModelSource) else source
    return prune_to(place, encoder, train, held_out, settings, force=force, watch=watch)


def _place(to: str | Path, force: bool) -> Path:
    place = Path(to)
    if not force and place.is_dir() and any(place.iterdir()):
        raise StoreError(
            f"{place} is not empty.", hint="Choose another folder, or replace it with --force."
        )
    return place


def _settings(
    method: str, recover: int, cut_loss: float | None, fewer: int | None, **more: Any
) -> PruneSettings:
    """`fewer` examples train what is left, or, with `movement`, train while weights go."""
    from bertology.train.prune_settings import PruneSettings

    moving = method == "movement"
    recovery = _recovery(recover, cut_loss, None if moving else fewer)
    return PruneSettings(
        method=method, recovery=recovery, learn_limit=fewer if moving else None, **more
    )


def _recovery(epochs: int, cut_loss: float | None, limit: int | None) -> Recovery | None:
    from bertology.train.recovery import Recovery

    if epochs < 0:
        raise ParameterError("recover", "prune", "be at least 0", epochs)
    if epochs:
        return Recovery(epochs, cut_loss, limit)
    for name, value in (("cut_loss", cut_loss), ("recover_limit", limit)):
        if value is not None:
            must = "be left out without a training after the cut (recover, --recover)"
            raise ParameterError(name, "prune", must, value)
    return None
