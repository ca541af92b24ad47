"""One step of the optimizer for all weights; on a GPU recorded once and replayed."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.train.optimizers import make_optimizer, set_rate
from bertology.train.pretrain.config import Pretraining
from bertology.train.pretrain.processes import Processes
from bertology.train.pretrain.weights import Weights
from bertology.train.recorded import Recorded


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
