"""Which examples rank parts, which say how much may go, and which only tell what it cost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertology.data.corpus import Corpus, Example
from bertology.data.loading import load_corpus
from bertology.errors import BertologyError, DataError
from bertology.train.checkpoint import read_record

__all__ = ["PruneData", "learned_texts", "split_training"]

_FEWEST = 20  # examples to rank by, and to select by
_RANKING = 5  # one of so many examples ranks; selection decides, and gets the others
_MOST_RANKING = 200  # more make a ranking slower, and hardly better

Texts = tuple[str, ...]


@dataclass(frozen=True)
class PruneData:
    """Training examples for two uses; no text of the held-out data is among them."""

    ranking: Corpus
    selection: Corpus
    training: Corpus  # all of the training data, for the recovery after the cut
    seen: bool  # whether the model was trained on those that rank and select, as far as is known


def split_training(
    train: Corpus,
    held_out: Corpus,
    *,
    seed: int,
    limit: int | None = None,
    learned: frozenset[Texts] = frozenset(),
) -> PruneData:
    """Split what is not held out; examples that the model did not learn from come first.

    A model answers what it learned from better than anything else, so the loss on such examples
    is not that on others.
    """
    unseen = {e.texts for e in held_out}
    kept = [e for e in train if e.texts not in unseen]
    fresh = [e for e in kept if e.texts not in learned] if learned else []
    usable = fresh if len(fresh) >= 2 * _FEWEST * _RANKING else list(kept)
    if len(usable) < 2 * _FEWEST:
        raise DataError(
            f"{len(usable)} training examples of {train.name!r} are not in the held-out data; "
            f"pruning needs {2 * _FEWEST}: some rank parts, the others select.",
            hint="Name other data (--validation) or splits (--train-split, --split), or raise "
            "--limit.",
        )
    random.Random(seed).shuffle(usable)
    drawn = usable[:limit]
    middle = min(max(_FEWEST, len(drawn) // _RANKING), _MOST_RANKING)
    return PruneData(
        _part(train, drawn[:middle]),
        _part(train, drawn[middle:]),
        _part(train, kept),
        seen=usable is not fresh,
    )


def _part(corpus: Corpus, examples: Sequence[Example]) -> Corpus:
    return replace(corpus, examples=examples, origin={}, drawn_from=None)


def learned_texts(model: str) -> frozenset[Texts]:
    """What a model of ours was fine-tuned on, by its record; nothing where that is not known."""
    try:
        record = read_record(Path(model).expanduser()) or {}
        origin = record["train"]["origin"] if "train" in record else {}
        corpus = load_corpus(**origin) if origin else None  # type: ignore[arg-type]
    except (BertologyError, KeyError, TypeError, OSError):
        return frozenset()  # the data are no longer where they were
    return frozenset(e.texts for e in corpus or ())
