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
from bertology.train.prune_settings import THINNING

_FEWEST = 20  # examples to rank by, and to select by
_RANKING = 5  # one of so many examples ranks; selection decides, and gets the others
_DECIDING = 5  # of movement pruning: one of so many examples selects, the others are learnt from
_MOST_RANKING = 200  # more make a ranking slower, and hardly better

Texts = tuple[str, ...]


@dataclass(frozen=True)
class PruneData:
    """Training examples for two uses; no text of the held-out data is among them."""

    ranking: Corpus | None  # of parts; single weights are ranked without any
    selection: Corpus
    training: Corpus  # what a training may learn from
    seen: bool  # whether the model was trained on those that rank and select, as far as is known


def split_training(
    train: Corpus,
    held_out: Corpus,
    *,
    seed: int,
    limit: int | None = None,
    learned: frozenset[Texts] = frozenset(),
    method: str = "measured",
) -> PruneData:
    """Split what is not held out; examples that the model did not learn from come first.

    A model answers what it learned from better than anything else, so the loss on such examples
    is not that on others. A training after the cut may learn from all, since nothing is chosen by
    what it gives. Movement pruning trains models that are then chosen from: those that select are
    at most a fifth of the data there, and no training learns from them.
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
    if method == "movement":
        fifth = max(2 * _FEWEST, len(kept) // _DECIDING)
        limit = fifth if limit is None else min(limit, fifth)
    drawn = usable[:limit]
    middle = 0 if method in THINNING else min(max(_FEWEST, len(drawn) // _RANKING), _MOST_RANKING)
    selection = drawn[middle:]
    if method == "movement":
        deciding = {e.texts for e in selection}
        kept = [e for e in kept if e.texts not in deciding]
    return PruneData(
        _part(train, drawn[:middle]) if middle else None,
        _part(train, selection),
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
        corpus = load_corpus(**origin) if "name_or_path" in origin else None  # type: ignore[arg-type]
    except (BertologyError, KeyError, TypeError, OSError):
        return frozenset()  # the data are no longer where they were
    return frozenset(e.texts for e in corpus or ())
