"""How fast models answer, measured side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.model.encoder import Encoder
    from bertology.train.token_rows import Encoded

_BATCHES = 16  # timed in one round; taken evenly from the longest texts to the shortest
_ROUNDS = 3
_TIMES = 7  # that each model is timed at least: with one batch, chance decides among three
_ALONE = 24  # texts that are timed one by one
_TIMED = 192  # texts in batches of one size, but at least two batches


@dataclass(frozen=True)
class Speed:
    """What a model gets through in a second; tokens are those of texts, without padding."""

    examples_per_second: float
    tokens_per_second: float
    device: str
    threads: int

    def __str__(self) -> str:
        where = f"{self.device}, {self.threads} threads" if self.device == "cpu" else self.device
        return (
            f"{self.examples_per_second:,.0f} examples and {self.tokens_per_second:,.0f} tokens a "
            f"second ({where})"
        )


def measure_speeds(
    encoders: Sequence[Encoder], encoded: Encoded, *, batch_tokens: int = 4096
) -> list[Speed]:
    """The speed of each model on the same texts: the median of a few rounds, after one unmeasured.

    Reading and cutting texts into tokens is not counted.
    """
    batches = list(encoded.in_order_of_length(batch_tokens))
    batches = batches[:: -(-len(batches) // _BATCHES)]
    rounds = max(_ROUNDS, _TIMES // len(batches))
    spent = _spent([(encoder, encoded) for encoder in encoders], batches, rounds)
    lengths = encoded.lengths
    examples = sum(len(chosen) for chosen in batches)
    tokens = sum(lengths[i] for chosen in batches for i in chosen)
    return [
        Speed(
            examples / median(own),
            tokens / median(own),
            _device(encoder.device),
            torch.get_num_threads(),
        )
        for own, encoder in zip(spent, encoders, strict=True)
    ]


def measure_batches(
    models: Sequence[tuple[Encoder, Encoded]], *, size: int, rounds: int = _ROUNDS
) -> list[float]:
    """Texts a second in batches of `size`: the median of some rounds, models taking turns.

    Each model reads the same texts in tokens of its own. Batches hold texts of similar length.
    """
    texts, spent = timed_rounds(models, size=size, rounds=rounds)
    return [texts / median(own) for own in spent]


def timed_rounds(
    models: Sequence[tuple[Encoder, Encoded]], *, size: int, rounds: int
) -> tuple[int, list[list[float]]]:
    """How many texts a round has, and the seconds of each model for each round."""
    first = models[0][1]
    order = sorted(range(len(first)), key=lambda i: -first.lengths[i])
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    most = _ALONE if size == 1 else max(2, _TIMED // size)
    batches = batches[:: -(-len(batches) // most)]
    return sum(len(chosen) for chosen in batches), _spent(models, batches, rounds)


def _spent(
    models: Sequence[tuple[Encoder, Encoded]], batches: Sequence[Sequence[int]], rounds: int
) -> list[list[float]]:
    """The seconds of each model for each round after a first one, which warms up.

    Models take turns at every batch, so that a machine that slows down slows all of them; and the
    first of a batch is the last of the next, since who comes first may be slower.
    """
    spent: list[list[float]] = [[] for _ in models]
    for number in range(rounds + 1):
        sums = [0.0 for _ in models]
        for turn, chosen in enumerate(batches):
            for at, (encoder, encoded) in list(enumerate(models))[:: -1 if turn % 2 else 1]:
                inputs, _ = encoded.batch(chosen, encoder.device)
                sums[at] += _seconds(encoder, inputs)
        if number:
            for own, seconds in zip(spent, sums, strict=True):
                own.append(seconds)
    return spent


def _seconds(encoder: Encoder, inputs: dict[str, Tensor]) -> float:
    on_gpu = encoder.device.type == "cuda"
    with encoder.turn(), torch.no_grad():
        if on_gpu:
            torch.cuda.synchronize(encoder.device)
        started = time.perf_counter()
        encoder.model(**inputs)
        if on_gpu:
            torch.cuda.synchronize(encoder.device)
        return time.perf_counter() - started


def _device(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
