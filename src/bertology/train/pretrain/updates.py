"""One step of the optimizer for all weights; on a GPU recorded once and replayed."""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.train.optimizers import make_optimizer
from bertology.train.pretrain.config import Pretraining
from bertology.train.pretrain.passes import BEFORE
from bertology.train.pretrain.processes import Processes
from bertology.train.pretrain.weights import Weights

__all__ = ["Updates"]


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
        )
        self._done = 0
        self._graph: tuple[int, torch.cuda.CUDAGraph, Tensor] | None = None

    def __call__(self, rate: float) -> Tensor:
        """Do it; gives the norm that the gradients had."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        live = self.weights.live
        self._done += 1
        if not self.record or self._done <= BEFORE:
            return self._plainly(live)
        if self._graph is None or self._graph[0] != len(live):  # a stage brought new weights
            norm = self._plainly(live)  # the first step makes the optimizer's memory of them
            self._graph = self._recorded(live)
            return norm
        self._graph[1].replay()
        return self._graph[2]

    def _recorded(self, live: list[Tensor]) -> tuple[int, torch.cuda.CUDAGraph, Tensor]:
        """The graph of a step; recording does not take the step."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            norm = self._plainly(live)
        return len(live), graph, norm

    def _plainly(self, live: list[Tensor]) -> Tensor:
        self.processes.average([w.grad for w in live if w.grad is not None])
        norm = torch.nn.utils.clip_grad_norm_(live, self.clip)
        self.optimizer.step()
        self.weights.publish()
        return norm
