"""Heads of words across languages, chosen by a probe of frozen states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Ints
from bertology.studies.languages.zero_shot_transfer.data import DEV, TEST, TRAIN, Taught
from bertology.studies.languages.zero_shot_transfer.probes import (
    KINDS,
    Features,
    Transfer,
    picked_layers,
)

if TYPE_CHECKING:
    import torch

_SCORED = 64  # sentences at a time


def parsed(
    features: Features,
    heads: Ints,
    taught: Taught,
    sources: Sequence[int],
    *,
    seeds: int,
    seed: int,
    device: torch.device,
) -> Transfer:
    """Of rows that are words; `heads` (R,) are places among the rows of a text, from 1, 0 the root.

    Negative where the head has no state: no question is asked there.
    """
    from bertology.train.probes.head_choice import Sentences, trained_heads

    texts = features.texts
    layers = range(features.layers)
    rows = [features.layer(number, language=None).astype(np.float16) for number in layers]
    states = Sentences(np.stack(rows), texts, heads, device)
    shape = (features.layers, seeds, len(KINDS), len(sources), len(taught.corpus))
    hits, held = np.zeros(shape, np.float32), np.zeros(shape[:4])
    for at, source in enumerate(sources):
        train, dev = (_places(taught, source, role) for role in (TRAIN, DEV))
        own = np.isin(texts, train)
        scale = states.scale(own)
        for run in range(seeds):
            rng = np.random.default_rng([seed, source, run])
            lesson = rng.choice(train, len(train))
            probe = trained_heads(states, lesson, scale, rng)
            for batch in _batches(dev):
                right = states.right(probe, batch, scale, None)
                held[:, run, :, at] += right.sum(1)[:, None]
            for code in range(len(taught.codes)):
                middle = states.middle(taught.language[texts] == code)
                for batch in _batches(_places(taught, code, TEST)):
                    for kind, name in enumerate(KINDS):
                        right = states.right(
                            probe, batch, scale, middle if name == "centred" else None
                        )
                        hits[:, run, kind, at, batch] = right
    counts = np.bincount(texts[heads >= 0], minlength=shape[4])
    return picked_layers(hits, held, counts, taught)


def _places(taught: Taught, code: int, role: int) -> Ints:
    return np.flatnonzero(taught.of(code, role))


def _batches(places: Ints) -> Iterator[Ints]:
    for start in range(0, len(places), _SCORED):
        yield places[start : start + _SCORED]
