"""Numbers decoded from states: a value by regression, the largest of a list by a score for each.

All layers are fitted at once, for each group of numbers and each seed, which draws four fifths of
the numbers that are learnt from. Baselines are decoded the same way from other features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.numbers import DEV, FAR, NEAR, TRAIN, Numbers
from bertology.arrays import Floats

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from bertology.annotated.states import States
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


def tuned(
    encoder: Encoder,
    texts: Corpus,
    numbers: Numbers,
    groups: Sequence[str],
    *,
    epochs: int,
    seed: int,
    advance: Callable[[int], None],
) -> Floats:
    """(examples,): what models say of all examples; NaN of groups that are left out.

    Values are learnt in units of their spread, since no head of a small learning rate reaches
    9,999. `advance` is told the examples of each group.
    """
    from bertology.train.encoded import encode, task_of
    from bertology.train.evaluate import predict
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.fit import row_limit
    from bertology.train.starts import default_rate, find_start
    from bertology.train.tuning import TuningJob, tune

    start, said = find_start("pretrained"), np.full(len(numbers.target), np.nan)
    settings = FinetuneSettings(
        epochs=epochs, learning_rate=default_rate(start, encoder.shape.hidden), seed=seed
    )
    for group in groups:
        own = np.flatnonzero(numbers.group == group)
        learnt = numbers.target[own[numbers.role[own] == TRAIN]]
        middle, unit = (0.0, 1.0) if numbers.lists else (learnt.mean(), learnt.std() or 1.0)

        of = partial(_of_group, texts, numbers, own, middle, unit)
        job = TuningJob(encoder, of(TRAIN), of(DEV), start, settings)
        model, _ = tune(job)
        unseen = of(NEAR, FAR)
        limit = row_limit(model, encoder.tokenizer, settings.max_length)
        found = predict(model, encode(unseen, encoder.tokenizer, limit), task_of(unseen))
        said[own[np.isin(numbers.role[own], (NEAR, FAR))]] = middle + unit * found
        advance(len(own))
    return said


def _of_group(
    texts: Corpus,
    numbers: Numbers,
    own: NDArray[np.int64],
    middle: float,
    unit: float,
    *roles: str,
) -> Corpus:
    """The examples of some roles, values in units of their spread."""
    made = []
    for at in own[np.isin(numbers.role[own], roles)].tolist():
        value = float((numbers.target[at] - middle) / unit)
        made.append(texts[at] if numbers.lists else replace(texts[at], label=value))
    return replace(texts, examples=made)


Features = NDArray[np.floating]
_LEARNT = 0.8  # of the training examples are drawn by each seed


@dataclass(frozen=True)
class Decoded:
    """What was said of each example; NaN of groups that were left out."""

    said: Floats  # (seeds, layers, examples)
    dev: Floats  # (seeds, groups, layers): share right, or less mean squares; high is good


def features_of(states: States, layers: int, numbers: Numbers) -> Features:
    """(layers, examples, numbers, width), of states in the order of the texts."""
    found = np.stack([states.layer(layer) for layer in range(layers)])
    return found.reshape(layers, len(numbers.target), numbers.words.shape[1], -1)


def lengths(numbers: Numbers) -> Features:
    """How long a number is written: its count of characters, and one feature for each count."""
    size = np.char.str_len(numbers.words)
    kinds = size[..., None] == np.unique(size)
    return np.concatenate([size[..., None], kinds], axis=-1)[None].astype(np.float64)


def random_vectors(
    encoder: Encoder, texts: Corpus, numbers: Numbers, *, pooling: str, seeds: Sequence[int]
) -> Iterator[Features]:
    """For each seed a random vector for each piece, pooled over the pieces of a number."""
    from bertology.annotated.words import words_of

    ids = encoder.tokenize([example.given for example in texts]).rows["input_ids"]
    kept = []  # example, place of the number in it, its pieces; the same for all seeds
    for at, one in enumerate(words_of(encoder, texts)):
        for place in range(numbers.words.shape[1]):
            pieces = list(one.alignment.pieces_of(place))
            some = {"first": pieces[:1], "last": pieces[-1:]}.get(pooling, pieces)
            if some:
                kept.append((at, place, np.asarray(ids[at])[some]))
    shape = int(encoder.config.vocab_size), encoder.shape.hidden
    for seed in seeds:
        table = np.random.default_rng([seed, 1]).normal(size=shape).astype(np.float32)
        found = np.zeros((1, *numbers.words.shape, shape[1]), np.float32)
        for at, place, of in kept:
            found[0, at, place] = table[of].mean(axis=0)
        yield found


def constant(numbers: Numbers) -> Floats:
    """(examples,): the mean of a group's training values, or its most frequent place."""
    found = np.full(len(numbers.target), np.nan)
    for group in numbers.groups:
        own = numbers.group == group
        learnt = numbers.target[own & (numbers.role == TRAIN)]
        places = np.bincount(learnt.astype(int)) if numbers.lists else np.zeros(1)
        found[own] = places.argmax() if numbers.lists else learnt.mean()
    return found


def decode(
    features: Features,
    numbers: Numbers,
    groups: Sequence[str],
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
) -> Decoded:
    """Fit all layers of (layers, examples, numbers, width) for each group and seed."""
    import torch

    said = np.full((len(seeds), len(features), len(numbers.target)), np.nan)
    dev = np.full((len(seeds), len(numbers.groups), len(features)), np.nan)
    for group in groups:
        own = np.flatnonzero(numbers.group == group)
        rows = torch.from_numpy(np.ascontiguousarray(features[:, own])).to(device).double()
        of = _Group(rows, numbers, own)
        for number, seed in enumerate(seeds):
            found, score = of.fitted(seed)
            said[number][:, own] = found
            dev[number, numbers.groups.index(group)] = score
    return Decoded(said, dev)


class _Group:
    """The examples of one group, and fits to some of them."""

    def __init__(self, rows: Tensor, numbers: Numbers, own: NDArray[np.int64]) -> None:
        import torch

        self.lists = numbers.lists
        self.role, self.target = numbers.role[own], numbers.target[own]
        layers, self.examples, self.listed, width = rows.shape
        if self.lists:
            # Only what tells the numbers of a list apart: (L, N × 5, D)
            rows = rows - rows.mean(dim=2, keepdim=True)
            self.rows = rows.reshape(layers, -1, width)
            places = np.arange(self.listed) == self.target[:, None]
            wanted = (places - 1 / self.listed).ravel()
        else:
            self.rows = rows.reshape(layers, self.examples, -1)
            wanted = self.target
        self.wanted = torch.from_numpy(wanted.astype(np.float64)).to(rows.device)

    def fitted(self, seed: int) -> tuple[Floats, Floats]:
        """What is said of all examples (layers, N), and how well of dev (layers,)."""
        from bertology.train.probes.ridge import fit_ridge

        learnt = np.flatnonzero(self.role == TRAIN)
        some = max(2, round(_LEARNT * len(learnt)))
        drawn = np.sort(np.random.default_rng([seed, 0]).permutation(learnt)[:some])
        learnt, dev = self._places(drawn), self._places(np.flatnonzero(self.role == DEV))
        fit = fit_ridge(
            self.rows[:, learnt], self.wanted[learnt],
            self.rows[:, dev], self.wanted[dev], centred=self.lists,
        )  # fmt: skip
        found: Floats = fit(self.rows).cpu().numpy()
        if not self.lists:
            return found, -fit.dev_error.cpu().numpy()
        places: Floats = found.reshape(len(found), self.examples, self.listed).argmax(axis=-1)
        right = places[:, self.role == DEV] == self.target[self.role == DEV]
        return places.astype(np.float64), right.mean(axis=1)

    def _places(self, examples: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of some examples: each number of a list has one."""
        if not self.lists:
            return examples
        found: NDArray[np.int64] = examples[:, None] * self.listed + np.arange(self.listed)
        return found.ravel()
