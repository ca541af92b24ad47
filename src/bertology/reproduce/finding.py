"""Which data a task has on this machine, told before any work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.reproduce.plan import Data, Missing

__all__ = ["BUNDLED_TASKS", "find_or_take", "find_task", "find_tasks"]

BUNDLED_TASKS = ("grammar-entailment", "grammar-acceptability")
"""What is used where nobody names tasks: a pair and a single sentence that small models learn."""

_SAMPLES = {"train": "train_sample", "validation": "train_sample_validation"}
_PROBE = 2  # examples that show whether a split is there


def find_tasks(
    names: Sequence[str], *, root: str | None = None
) -> tuple[list[Data], list[Missing]]:
    """The tasks that are here, and those that are not; an error if none is."""
    found = [find_task(name, root=root) for name in names]
    missing = [f for f in found if isinstance(f, Missing)]
    tasks = [f for f in found if isinstance(f, Data)]
    if not tasks:
        reasons = " ".join(m.reason for m in missing)
        raise DataError(
            f"None of the tasks is on this machine. {reasons}",
            hint="Give the folder that holds the data (--root), or leave out --tasks for those "
            "that the bundled grammar makes.",
        )
    return tasks, missing


def find_task(name: str, *, root: str | None = None) -> Data | Missing:
    """Where a task's two splits are; a sample of a split counts where the whole is not here.

    Names that nobody knows and corpora that pose no task are errors; files that are not on this
    machine are not.
    """
    whole = Data(name, root=root)
    train, validation = (_split_of(whole, split) for split in _SAMPLES)
    for found in (train, validation):
        if isinstance(found, Missing):
            return found
    sample = (train, validation) != tuple(_SAMPLES)
    return replace(whole, train_split=str(train), split=str(validation), sample=sample)


def _split_of(data: Data, split: str) -> str | Missing:
    try:
        _check_poses_task(data, split)
    except DataError as error:
        sample = _SAMPLES[split]
        try:
            _check_poses_task(data, sample)
        except (DataError, UnknownNameError):
            return Missing(data.name, error.problem)
        return sample
    return split


def _check_poses_task(data: Data, split: str) -> None:
    corpus = load_corpus(data.name, split=split, root=data.root, limit=_PROBE)
    if corpus.task is None or corpus.task.kind not in ("classification", "regression"):
        raise CapabilityError(
            f"{data.name!r} poses no task of classification or regression.",
            hint="See which corpora do with: bertology datasets",
        )


def find_or_take(wanted: Data, instead: Data) -> Data:
    """The corpus if it is here, else another."""
    try:
        load_corpus(wanted.name, split=wanted.split, root=wanted.root, limit=_PROBE)
    except DataError:
        return instead
    return wanted
