"""Attributions by gradients of the answer's log-odds at what enters the first layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bertology.errors import MissingExtraError
from bertology.model.attributions.answering import frozen, log_odds
from bertology.model.batch import Batch
from bertology.model.interventions import Patch

if TYPE_CHECKING:
    from bertology.model.attributions.units import Units
    from bertology.model.encoder import Encoder

SITE = "embeddings"


@dataclass(frozen=True)
class Path:
    """From what enters the first layer of a text without its words, to that of the text."""

    start: Tensor  # (B, T, M)
    end: Tensor  # (B, T, M)


def path_to_masks(encoder: Encoder, batch: Batch, units: Units) -> Path:
    """The baseline has a mask (or padding, where there is none) in the place of every word.

    Special tokens and positions are the same at both ends, so that nothing is attributed to them.
    """
    tokenizer = encoder.tokenizer
    blank = tokenizer.mask_token_id if tokenizer.mask_token_id is not None else 0
    ids = batch.inputs["input_ids"].masked_fill(units.ids >= 0, int(blank))
    start = encoder.run({**batch.inputs, "input_ids": ids}, record=SITE)[SITE]
    return Path(start, encoder.run(batch, record=SITE)[SITE])


def _slopes(encoder: Encoder, batch: Batch, states: Tensor, answers: Tensor) -> Tensor:
    """The gradient (B, T, M) of the answers' log-odds where `states` enter the first layer."""
    states = states.detach().requires_grad_()
    trace = encoder.run(batch, do=Patch(SITE, states), gradients=True)
    (slopes,) = torch.autograd.grad(log_odds(trace.logits, answers).sum(), states)
    return slopes


def gradient_times_input(encoder: Encoder, batch: Batch, answers: Tensor, path: Path) -> Tensor:
    """(B, T): the gradient at what enters the first layer, times what enters.

    That is counted from the baseline: LayerNorm undoes a change of scale, so that through it the
    gradient along the input itself is zero, whatever the word does.
    """
    with encoder.turn(), frozen(encoder.model):
        slopes = _slopes(encoder, batch, path.end, answers)
    return ((path.end - path.start) * slopes).sum(-1).float()


def integrated_gradients(
    encoder: Encoder,
    batch: Batch,
    answers: Tensor,
    path: Path,
    *,
    steps: int = 16,
    tokens: int = 0,
) -> Tensor:
    """(B, T): the mean gradient along the path, times its length (Sundararajan et al. 2017).

    By the Gauss-Legendre rule. Sums over tokens are what the log-odds are at the text less what
    they are at the baseline (completeness), but for what the rule leaves out. `tokens`: so many may
    go through the model together, points of the path side by side.
    """
    points, shares = np.polynomial.legendre.leggauss(steps)
    points = (1 + points) / 2
    total = torch.zeros_like(path.end)
    together = max(1, tokens // batch.inputs["input_ids"].numel())
    with encoder.turn(), frozen(encoder.model):
        for first in range(0, steps, together):
            some = torch.from_numpy(points[first : first + together]).to(path.end)
            weight = torch.from_numpy(shares[first : first + together] / 2).to(path.end)
            states = path.start + some[:, None, None, None] * (path.end - path.start)
            inputs = {n: t.repeat(len(some), *[1] * (t.dim() - 1)) for n, t in batch.inputs.items()}
            many = Batch(inputs, range(len(some) * len(batch)), batch.tokenizer)
            slopes = _slopes(encoder, many, states.flatten(0, 1), answers.repeat(len(some)))
            total += torch.einsum("p,pbtm->btm", weight, slopes.view_as(states))
    return ((path.end - path.start) * total).sum(-1).float()


def log_odds_at(encoder: Encoder, batch: Batch, answers: Tensor, states: Tensor) -> Tensor:
    """The answers' log-odds (B,) where other states enter the first layer."""
    return log_odds(encoder.run(batch, do=Patch(SITE, states)).logits, answers)


def captum_gradients(
    encoder: Encoder, batch: Batch, answers: Tensor, path: Path, *, steps: int = 16
) -> Tensor:
    """The same as `integrated_gradients`, computed by Captum; to check ours against."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise MissingExtraError(
            "captum", needed_for="Checking integrated gradients against Captum"
        ) from None
    forward = _forward(encoder, batch, answers)
    with encoder.turn(), frozen(encoder.model):
        found: Tensor = IntegratedGradients(forward, multiply_by_inputs=True).attribute(
            path.end, baselines=path.start, n_steps=steps, internal_batch_size=len(path.end)
        )
    return found.sum(-1).float()


def _forward(encoder: Encoder, batch: Batch, answers: Tensor) -> Callable[[Tensor], Tensor]:
    def forward(states: Tensor) -> Tensor:
        trace = encoder.run(batch, do=Patch(SITE, states), gradients=True)
        return log_odds(trace.logits, answers)

    return forward
