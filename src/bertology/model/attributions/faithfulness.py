"""What the classifier answers without the words that a method ranks highest, or with them alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.arrays import Floats, Ints
from bertology.model.attributions.units import Units
from bertology.model.batch import Batch

if TYPE_CHECKING:
    from bertology.model.attributions.answering import Eraser


def orders_of(relevance: Floats, *, seed: Sequence[int]) -> Ints:
    """Words from the highest relevance down; ties are broken by chance, drawn by the seed.

    In the order of the text, all methods that tell nothing would agree.
    """
    jitter = np.random.default_rng(list(seed)).permutation(len(relevance))
    return np.lexsort((jitter, -relevance))


def random_orders(words: int, count: int, *, seed: Sequence[int]) -> list[Ints]:
    """So many orders of words, drawn by the seed."""
    rng = np.random.default_rng([*seed, 1])
    return [rng.permutation(words) for _ in range(count)]


def top(share: float, words: int) -> int:
    """How many words a share of them is: one at least."""
    return max(1, math.ceil(share * words - 1e-9))


def answers_without(
    eraser: Eraser,
    batch: Batch,
    units: Units,
    orders: Sequence[Sequence[Ints]],
    shares: Sequence[float],
) -> list[Floats]:
    """Probabilities (orders, shares, 2, classes) of each example, by its own orders of words.

    Of the pair, first without the top words, then with these words only. Special tokens stay.
    """
    rows, chosen, sizes = list[int](), list[NDArray[np.bool_]](), list[tuple[int, ...]]()
    for row, own in enumerate(orders):
        words = units.counts[row]
        for order in own:
            for share in shares:
                first = np.zeros(units.most, bool)
                first[order[: top(share, words)]] = True
                alone = ~first
                alone[words:] = False
                chosen += [first, alone]
                rows += [row, row]
        sizes.append((len(own), len(shares), 2))
    device = units.ids.device
    if not rows:
        return [np.zeros((*size, eraser.encoder.config.num_labels)) for size in sizes]
    # Orders often begin alike, and small shares of a short text are the same words: once is enough.
    sets = np.column_stack([np.asarray(rows), np.stack(chosen)])
    _, which, back = np.unique(sets, axis=0, return_index=True, return_inverse=True)
    where = torch.from_numpy(sets[which, 0]).to(device)
    gone = units.pieces(torch.from_numpy(sets[which, 1:].astype(bool)).to(device), where)
    said = eraser.logits(batch, where, gone).softmax(-1).double().cpu().numpy()[back.ravel()]
    found, at = [], 0
    for size in sizes:
        count = math.prod(size)
        found.append(said[at : at + count].reshape(*size, -1))
        at += count
    return found
