"""The methods by name, and all of them for one batch.

    found = attribute(encoder, encoder.encode(texts), METHODS)      # an Attributed
    found.relevance["rollout"]                                      # (B, words)

Every method says how much each word matters to the class that the model answers with. Weights and
norms have no sign; gradients and leaving out do: below 0, a word speaks against the answer. What
is highest comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.errors import CapabilityError, UnknownNameError
from bertology.model.attributions.answering import Eraser, log_odds
from bertology.model.attributions.gradients import (
    gradient_times_input,
    integrated_gradients,
    path_to_masks,
)
from bertology.model.attributions.method_names import METHODS
from bertology.model.attributions.units import Units, units_of
from bertology.model.attributions.weights import attention_of_first
from bertology.model.batch import Batch
from bertology.model.families import Capability

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

_OF_WEIGHTS = {
    "attention": lambda found: found.last,
    "mean-attention": lambda found: found.mean,
    "rollout": lambda found: found.rollout,
    "norms": lambda found: found.norms,
}


@dataclass(frozen=True)
class Attributed:
    """What a classifier answers to each example of a batch, and why, by each method."""

    units: Units
    logits: Tensor  # (B, C)
    answers: Tensor  # (B,) the class that is explained
    relevance: Mapping[str, Tensor]  # by method: (B, words), 0 where an example has fewer words


def methods_of(encoder: Encoder) -> list[str]:
    """The methods that can be asked of a classifier.

    With adapters, what one word brings to the last layer is no sum over heads, so norms are not
    among them.
    """
    gives = Capability.CONTRIBUTIONS in encoder.capabilities
    return [name for name in METHODS if gives or name != "norms"]


def attribute(
    encoder: Encoder,
    batch: Batch,
    methods: Sequence[str],
    *,
    steps: int = 16,
    how: str = "hidden",
    tokens: int = 4096,
    answer: int | None = None,
) -> Attributed:
    """The classifier's answers and the relevance of words to them; or to the class `answer`.

    `steps`: gradients along the path of integrated gradients. `how` tokens are left out, see
    `Eraser`. `tokens` in one pass; a quarter of them where gradients are taken. Call
    `check_classifier` before.
    """
    for name in methods:
        if name not in METHODS:
            raise UnknownNameError("method", name, METHODS)
        if name not in methods_of(encoder):
            raise CapabilityError(
                f"{encoder.name!r} has adapters after its heads, so there is no telling what one "
                f"word brings through them: {name} cannot be asked of it.",
                hint=f"Choose another method ({', '.join(methods_of(encoder))}).",
            )
    units = units_of(batch, encoder.tokenizer.all_special_ids)
    weights, logits = attention_of_first(encoder, batch)
    answers = logits.argmax(-1) if answer is None else torch.full_like(logits[:, 0], answer).long()
    by_name: dict[str, Callable[[], Tensor]] = {
        name: lambda take=take: units.summed(take(weights))  # type: ignore[misc]
        for name, take in _OF_WEIGHTS.items()
    }
    if {"gradient-x-input", "integrated-gradients"} & set(methods):
        path = path_to_masks(encoder, batch, units)
        by_name["gradient-x-input"] = lambda: units.summed(
            gradient_times_input(encoder, batch, answers, path)
        )
        by_name["integrated-gradients"] = lambda: units.summed(
            integrated_gradients(encoder, batch, answers, path, steps=steps, tokens=tokens // 4)
        )
    by_name["left-out"] = lambda: left_out(
        Eraser(encoder, how, tokens), batch, units, logits, answers
    )
    return Attributed(units, logits, answers, {name: by_name[name]() for name in methods})


def left_out(eraser: Eraser, batch: Batch, units: Units, logits: Tensor, answers: Tensor) -> Tensor:
    """(B, words): how much less sure the answer is without each word, in log-odds."""
    device = units.ids.device
    rows = torch.tensor([b for b, n in enumerate(units.counts) for _ in range(n)], device=device)
    words = torch.tensor([w for n in units.counts for w in range(n)], device=device)
    found = torch.zeros(len(batch), units.most, device=device)
    if len(rows):
        chosen = torch.zeros(len(rows), units.most, dtype=torch.bool, device=device)
        chosen[torch.arange(len(rows)), words] = True
        without = eraser.logits(batch, rows, units.pieces(chosen, rows))
        whole = log_odds(logits, answers)[rows]
        found[rows, words] = whole - log_odds(without, answers[rows])
    return found
