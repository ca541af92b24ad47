"""Which data are on this machine; known before any work begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bertology.data import catalog
from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.reproduce.plan import Data, MissingData

BUNDLED_TASKS = ("grammar-entailment", "grammar-acceptability")
"""Used where nobody names tasks: one of pairs, one of single sentences; small models learn both."""

_SAMPLES = {"train": "train_sample", "validation": "train_sample_validation"}
_PROBE = 2  # examples that show whether a split is there


def find_tasks(
    names: Sequence[str], *, root: str | None = None
) -> tuple[list[Data], list[MissingData]]:
    """The tasks that are here, and those that are not; an error if none is."""
    found = [find_task(name, root=root) for name in names]
    missing = [f for f in found if isinstance(f, MissingData)]
    tasks = [f for f in found if isinstance(f, Data)]
    if not tasks:
        reasons = " ".join(m.reason for m in missing)
        raise DataError(
            f"None of the tasks is on this machine. {reasons}",
            hint="Give the folder that holds the data (--root), or leave out --tasks for those "
            "that the bundled grammar makes.",
        )
    return tasks, missing


def find_task(name: str, *, root: str | None = None) -> Data | MissingData:
    """The splits of a task that are here; a sample of a split is taken where the whole is missing.

    Unknown names are errors, and so are corpora without a task. Files that are not on this machine
    are no error.
    """
    whole = Data(name, root=root)
    train, validation = (_split_of(whole, split) for split in _SAMPLES)
    for found in (train, validation):
        if isinstance(found, MissingData):
            return found
    sample = (train, validation) != tuple(_SAMPLES)
    return replace(whole, train_split=str(train), split=str(validation), sample=sample)


def _split_of(data: Data, split: str) -> str | MissingData:
    try:
        _check_has_task(data, split)
    except DataError as error:
        sample = _SAMPLES[split]
        try:
            _check_has_task(data, sample)
        except (DataError, UnknownNameError):
            return MissingData(data.name, error.problem)
        return sample
    return split


def _check_has_task(data: Data, split: str) -> None:
    corpus = load_corpus(data.name, split=split, root=data.root, limit=_PROBE)
    if corpus.task is None or corpus.task.kind not in ("classification", "regression"):
        raise CapabilityError(
            f"{data.name!r} has no classification or regression task.",
            hint="List the corpora and their tasks with: bertology datasets",
        )


def find_first(choices: Sequence[Data]) -> int:
    """Which of several corpora is the first that is here; the last one needs no looking."""
    for i, data in enumerate(choices[:-1]):
        try:
            load_corpus(data.name, split=data.split, root=data.root, limit=_PROBE)
        except DataError:
            continue
        return i
    return len(choices) - 1


def is_made(name: str) -> bool:
    """Whether the bundled grammar makes the corpus, so that there are no files of it."""
    try:
        return not catalog.get(name).folder
    except UnknownNameError:
        return False
