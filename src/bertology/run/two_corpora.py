"""Data to learn or to choose from, and other data to score on: never the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from bertology.data.corpus import Corpus
from bertology.run.loading import resolve_corpus


class Asked(NamedTuple):
    """Which data; None: another split of the others."""

    data: Corpus | str | Path | None
    split: str
    limit: int | None


def seen_and_unseen(train: Asked, held_out: Asked, **reading: Any) -> tuple[Corpus, Corpus]:
    """Two splits of one source, or two sources, each with a task."""
    from bertology.data.loading import load_split
    from bertology.train.encoded import learnable
    from bertology.train.tuning import check_apart

    if held_out.data is None:
        same = train.data
        other = load_split(same, held_out.split) if isinstance(same, Corpus) else same
        held_out = held_out._replace(data=other)
    seen, unseen = (
        resolve_corpus(data or "", must_have_task=True, split=split, limit=limit, **reading)
        for data, split, limit in (train, held_out)
    )
    for corpus in (seen, unseen):
        learnable(corpus)
    check_apart(seen, unseen)
    return seen, unseen
