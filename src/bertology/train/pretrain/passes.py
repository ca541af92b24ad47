"""Passes of one batch, forward and back, and steps of the optimizer for all weights.

On a GPU both are recorded once (CUDA graph) and replayed.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial

import torch
from torch import Tensor

from bertology.train.optimizers import make_optimizer, set_rate
from bertology.train.pretrain.config import Pretraining
from bertology.train.pretrain.losses import LossInput, LossOutcome
from bertology.train.pretrain.masking import Hidden, MaskableVocabulary
from bertology.train.pretrain.network import Network
from bertology.train.pretrain.processes import Processes
from bertology.train.pretrain.rows import Rows
from bertology.train.pretrain.weights import Weights
from bertology.train.recorded import Recorded

_ROWS = tuple(f.name for f in fields(Rows))
_HIDDEN = tuple(f.name for f in fields(Hidden))
LossOutcomes = dict[str, LossOutcome]


class Passes:
    """Computes the losses of batches and adds their gradients to those of the trained weights."""

    def __init__(self, network: Network, weights: Weights, *, record: bool) -> None:
        self.network, self.weights, self.record = network, weights, record
        self._recorded: dict[tuple[int, float], Recorded[LossOutcomes]] = {}

    def __call__(self, view: LossInput, stage: int, share: float) -> LossOutcomes:
        """The losses of a batch; the gradients are those of `share` times the loss.

        The returned tensors are overwritten by the next call.
        """
        # A loss that changes the batch at random cannot be recorded.
        if not (self.record and self.network.plain(stage)):
            return self._judged(view, stage, share)
        if (stage, share) not in self._recorded:
            work = partial(self._from_tensors, view.pieces, stage, share)
            self._recorded[stage, share] = Recorded(work, record=True)
        tensors = [getattr(view.rows, n) for n in _ROWS]
        tensors += [getattr(view.hidden, n) for n in _HIDDEN]
        return self._recorded[stage, share](*tensors)

    def _from_tensors(
        self, pieces: MaskableVocabulary, stage: int, share: float, *tensors: Tensor
    ) -> LossOutcomes:
        rows = Rows(**dict(zip(_ROWS, tensors, strict=False)))
        hidden = Hidden(**dict(zip(_HIDDEN, tensors[len(_ROWS) :], strict=True)))
        return self._judged(LossInput.masked(rows, hidden, pieces), stage, share)

    def _judged(self, view: LossInput, stage: int, share: float) -> LossOutcomes:
        outcomes = self.network.judge(view, stage)
        loss = torch.stack([o.loss for o in outcomes.values()]).sum()
        (loss * share).backward()  # type: ignore[no-untyped-call]
        self.weights.collect()
        return outcomes


class Updates:
    """Clips the gradients, moves the weights, and gives the network what they became."""

    def __init__(
        self, recipe: Pretraining, weights: Weights, processes: Processes, *, record: bool
    ) -> None:
        self.weights, self.processes, self.clip = weights, processes, recipe.clip
        # LAMB reads a number on its way, which a graph cannot.
        self.record = record and recipe.optimizer == "adamw" and processes.count == 1
        self.optimizer = make_optimizer(
            recipe.optimizer,
            weights.learning,
            rate=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            betas=recipe.betas,
            capturable=self.record,
            exempt=weights.positions,  # decay would erase those that short rows do not reach
        )
        self._step = Recorded(self._taken, record=self.record)

    def __call__(self, rate: float) -> Tensor:
        """Take a step; gives the norm that the gradients had."""
        set_rate(self.optimizer, rate)
        # A stage may bring weights that had no gradient before: that is another step to record.
        return self._step(key=len(self.weights.live))

    def _taken(self) -> Tensor:
        live = self.weights.live
        self.processes.average([w.grad for w in live if w.grad is not None])
        norm = torch.nn.utils.clip_grad_norm_(live, self.clip)
        self.optimizer.step()
        self.weights.publish()
        return norm
