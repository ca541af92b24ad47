"""`bertology.prune`: a smaller model for a task, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import StoreError
from bertology.quiet import hush
from bertology.run.loading import Asked, ModelSource, seen_and_unseen

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.compress.work import CompressWatch
    from bertology.train.pruned import Pruned


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
    watch: CompressWatch | None = None,
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
        watch: Is told each cut and each step of a training.
        **reading: How data that are named are read, as `load_corpus` takes it: `root`, columns.

    A run that was stopped goes on where it was when it is started again.

    Returns:
        What was cut and what it cost; `sentence` says it.

    Example:
        >>> print(bt.prune("my-model", "mrpc", to="my-model-small").sentence)  # doctest: +SKIP
    """
    hush()
    from bertology.train.compress.compressing import CompressJob, compress_to
    from bertology.train.compress.prune import Prune
    from bertology.train.compress.settings import CompressSettings
    from bertology.train.pruned import Pruned

    pruning = Prune(
        method=method, max_loss=max_loss, keep=keep, weights=weights, parts=tuple(parts),
        epochs=epochs, recover=recover, cut_loss=cut_loss, recover_limit=recover_limit, limit=limit,
    )  # fmt: skip
    place = Path(to)
    if not force and place.is_dir() and any(place.iterdir()):
        raise StoreError(
            f"{place} is not empty.", hint="Choose another folder, or replace it with --force."
        )
    train, held_out = seen_and_unseen(
        Asked(task, train_split, None), Asked(validation, split, validation_limit), **reading
    )
    source = ModelSource(model) if isinstance(model, str) else model
    encoder = source.load("classification") if isinstance(source, ModelSource) else source
    job = CompressJob(
        encoder, train, held_out, (pruning,), CompressSettings(seed=seed), batch_tokens=batch_tokens
    )
    made = compress_to(place, job, force=force, watch=watch)
    return Pruned(made.folder, made.record)
