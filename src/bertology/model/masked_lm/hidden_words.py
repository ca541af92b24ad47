"""One batch with some of its words hidden, run again and again under changes of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.masked_lm.narrow_head import run_predicting
from bertology.model.reducers.carried import CarriedShares

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.model.hooks.instrument import Reducer
    from bertology.model.interventions import Intervention
    from bertology.model.weight_edits import WeightEdit

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Predicted:
    """What the model says of the hidden words."""

    losses: Floats  # (B,) mean over an example's hidden words, in nats; NaN where it has none
    best: NDArray[np.int64]  # (B, K) the likeliest piece at each place


def draw_hidden(
    words: NDArray[np.bool_], numbers: Sequence[int], *, share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which of the `words` (B, T) of each text are hidden: places and which are there, both (B, K).

    They are drawn by the text's number, so that they do not depend on the batch.
    """
    drawn = []
    for row, number in zip(words, numbers, strict=True):
        open_ = np.flatnonzero(row)
        some = min(len(open_), max(1, round(share * len(open_))))
        rng = np.random.default_rng([seed, number])
        drawn.append(np.sort(rng.choice(open_, some, replace=False)) if some else open_)
    most = max(1, *(len(d) for d in drawn))
    places = np.zeros((len(drawn), most), np.int64)
    there = np.zeros((len(drawn), most), bool)
    for row, chosen in enumerate(drawn):
        places[row, : len(chosen)], there[row, : len(chosen)] = chosen, True
    return places, there


@dataclass(frozen=True)
class AttentionSeen:
    """What classes of tokens get, each (B, C, layers, H)."""

    weights: Floats  # share of the attention
    carried: Floats  # share of the norms ‖α·f(x)‖
    slopes: Floats  # mean |d loss / d weight| over queries and the class's tokens; NaN without one


@dataclass(frozen=True, eq=False)
class HiddenWords:
    """A batch whose tokens at `places` (B, K) are masked; `there` (B, K) tells padding apart.

    In a model that sees only what comes before (GPT-2) nothing is masked: each is predicted from
    the tokens before it, and no place may be the first of its text.
    """

    encoder: Encoder
    batch: Batch
    places: NDArray[np.int64]
    there: NDArray[np.bool_]

    @cached_property
    def _places(self) -> Tensor:
        return torch.as_tensor(self.places, device=self.encoder.device)

    @cached_property
    def _there(self) -> Tensor:
        return torch.as_tensor(self.there, device=self.encoder.device)

    @cached_property
    def read_at(self) -> Tensor:
        """(B, K) where the hidden words are predicted."""
        if not self.encoder.family.causal:
            return self._places
        return torch.where(self._there, self._places - 1, 0)

    @cached_property
    def _wanted(self) -> Tensor:
        return self.batch.inputs["input_ids"].gather(1, self._places)

    @cached_property
    def masked(self) -> Batch:
        """The batch as the model reads it."""
        if self.encoder.family.causal:
            return self.batch
        ids = self.batch.inputs["input_ids"].clone()
        rows = torch.nonzero(self._there)[:, 0]
        ids[rows, self._places[self._there]] = self.encoder.tokenizer.mask_token_id
        return replace(self.batch, inputs={**self.batch.inputs, "input_ids": ids})

    @property
    def wanted(self) -> NDArray[np.int64]:
        """(B, K) the pieces that are hidden."""
        return self._wanted.cpu().numpy()

    def predict(
        self, *changes: Intervention | WeightEdit, reduce: Mapping[str, Reducer] | None = None
    ) -> Predicted:
        """What is predicted under these changes; reducers see the same run."""
        _, logits = run_predicting(
            self.encoder, self.masked, self.read_at, do=changes, reduce=reduce
        )
        return self._predicted(logits)

    def watch(self, masks: Tensor) -> tuple[Predicted, AttentionSeen]:
        """What is predicted, and what the classes (B, C, T) get, in one run with gradients."""
        encoder, pattern = self.encoder, "layer.*.head.*.pattern"
        layers = range(encoder.shape.layers)
        shares = CarriedShares(masks, [encoder.projection_weight(layer) for layer in layers])
        sites = {"layer.*.head.*.value": shares, pattern: shares}
        trace, logits = run_predicting(
            encoder, self.masked, self._places, record=[pattern], reduce=sites, gradients=True
        )
        trace.backward(self.losses(logits).nansum())
        slopes = [
            self._slopes(trace.gradient(f"layer.{layer}.head.*.pattern"), masks) for layer in layers
        ]
        weights, carried = shares.value()
        seen = AttentionSeen(weights, carried, torch.stack(slopes, dim=2).cpu().numpy())
        return self._predicted(logits.detach()), seen

    def _slopes(self, gradient: Tensor, masks: Tensor) -> Tensor:
        """(B, C, H): of one layer."""
        queries, keys = self.batch.real.float(), masks.float()
        sums = torch.einsum("bhts,bt,bcs->bch", gradient.float().abs(), queries, keys)
        return sums / (queries.sum(-1)[:, None] * keys.sum(-1))[..., None]

    def losses(self, logits: Tensor) -> Tensor:
        """(B,) of logits (B, K, V) at the places: the mean over a text's hidden words."""
        logs = torch.log_softmax(logits.float(), dim=-1).gather(-1, self._wanted[..., None])
        logs = logs[..., 0].masked_fill(~self._there, 0.0)
        return -logs.sum(-1) / self._there.sum(-1)

    def _predicted(self, logits: Tensor) -> Predicted:
        return Predicted(self.losses(logits).cpu().numpy(), logits.argmax(-1).cpu().numpy())
