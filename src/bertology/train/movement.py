"""Movement pruning (Sanh, Wolf and Rush, 2020): weights that training moves towards zero go.

Every weight W has a score S. A pass uses the weights with the highest scores of
each matrix, the others are zero in it. The choice has no gradient, so scores learn as if all had
been chosen (straight through): dL/dS = dL/dW · W. A score falls where training makes its weight
smaller in size, and rises where it makes it larger. So a large weight that the task does not need
goes, and a small one that the task makes larger stays; what is small by itself says nothing.

    movement = Movement(prunable_in_layers(encoder), share=0.3)
    finetune(model, tokenizer, train, validation, settings=settings, movement=movement)
    movement.chosen                 # WeightMask; the weights that are gone are zero in the model

The share that stays falls from 1 as a cubic (Zhu and Gupta, 2017): first fast, while there is much
to spare, then slowly; the first and last steps of a training leave it alone.

Scores have an Adam of their own, whose step does not depend on the size of gradients. Its rate is
that of the weights as a share of the highest, over the number of steps: a score that always moves
one way travels about half in a training of any length, and one that is moved by chance hardly.

In the paper, where a pre-trained model learns a task, scores begin at 0. Here the model knows the
task, gradients are mostly chance, and so would be what goes (`benchmarks/results/movement.md`). So
a score begins at a fifth of its weight's size, in units of its matrix: what no training moves goes
by size, what it does move goes by that. A share of 1 trains the same numbers as no movement pruning
at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bertology.errors import ParameterError
from bertology.model.weight_masks import WeightMask

_BEFORE, _AFTER = 0.1, 0.3  # shares of all steps: nothing goes yet, and no more goes
_SIZE = 0.2  # the first score of a weight of usual size (root mean square) in its matrix
_BETAS = (0.0, 0.999)  # no momentum: a score sums its steps, and momentum would repeat chance
_MEMORY = ("step", "exp_avg", "exp_avg_sq")


def share_at(done: float, target: float) -> float:
    """The share of weights that stays when this share of a training is done."""
    along = min(max((done - _BEFORE) / (1 - _BEFORE - _AFTER), 0.0), 1.0)
    return target + (1 - target) * (1 - along) ** 3


def highest(scores: Tensor, count: int) -> Tensor:
    """Which are the `count` highest, as truth values; of equal ones the first stay."""
    flat = scores.reshape(-1)
    if count >= flat.numel():
        return torch.ones_like(scores, dtype=torch.bool)
    if count == 0:
        return torch.zeros_like(scores, dtype=torch.bool)
    border = _border(flat, flat.numel() - count, sort=flat.is_cuda)
    stays, equal = flat > border, flat == border
    stays |= equal & (equal.cumsum(0) <= count - stays.sum())
    return stays.reshape(scores.shape)


def _border(flat: Tensor, place: int, *, sort: bool) -> Tensor:
    """The score at a place in their order, from 0.

    On a GPU all are sorted, since torch's kthvalue is slow there (its issue 75599).
    """
    return flat.sort().values[place] if sort else flat.kthvalue(place + 1).values


def _sizes(weight: Tensor) -> Tensor:
    usual = weight.square().mean().sqrt()
    return _SIZE * weight.abs() / usual.clamp(min=torch.finfo(weight.dtype).tiny)


class Movement:
    """Scores of the weights that may go, while their model is trained."""

    def __init__(self, weights: Mapping[str, nn.Parameter], share: float) -> None:
        if not 0 < share <= 1:
            raise ParameterError("share", "Movement", "be above 0 and at most 1", share)
        self.share = share
        self._weights = dict(weights)
        self._scores = {name: _sizes(w.detach()) for name, w in self._weights.items()}
        self._optimizer = torch.optim.Adam(list(self._scores.values()), lr=1.0, betas=_BETAS)
        self._whole: dict[str, Tensor] = {}
        self._stays: dict[str, Tensor] = {}

    def _copy(self, name: str) -> Tensor:
        """The weights of a matrix as they are now, none of them gone."""
        return self._weights[name].detach().clone()

    def _rank(self, name: str, whole: Tensor) -> Tensor:
        """What decides which weights of a matrix stay: the highest do."""
        return self._scores[name]

    def thin(self, done: float) -> None:
        """Put zeros where scores are low, until `restore`; `done` is how far the training is."""
        share = share_at(done, self.share)
        with torch.no_grad():
            for name, weight in self._weights.items():
                whole = self._copy(name)
                stays = highest(self._rank(name, whole), round(share * weight.numel()))
                self._whole[name], self._stays[name] = whole, stays
                torch.mul(whole, stays, out=weight)

    def restore(self) -> None:
        """Put back what `thin` took away."""
        with torch.no_grad():
            for name, whole in self._whole.items():
                self._weights[name].copy_(whole)
        self._whole.clear()

    def learn(self, rate: float) -> None:
        """Scores learn from the gradients of a thin pass; then the weights are whole again.

        Their gradients become those of the weights that were used: others do not learn.
        """
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        for name, weight in self._weights.items():
            if weight.grad is not None:
                self._scores[name].grad = weight.grad * self._whole[name]
                weight.grad.mul_(self._stays[name])
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.restore()

    @contextmanager
    def thinned(self, done: float) -> Iterator[None]:
        """The model as it would be if the training ended here."""
        self.thin(done)
        try:
            yield
        finally:
            self.restore()

    @property
    def chosen(self) -> WeightMask:
        """What stays at the end."""
        kept = {}
        for name in self._weights:
            scores = self._rank(name, self._copy(name))
            stays = highest(scores, round(self.share * scores.numel()))
            kept[name] = stays.cpu().numpy()
        return WeightMask.of(kept)

    def state(self) -> dict[str, Tensor]:
        """All that decides how it goes on."""
        found = {f"score/{name}": scores for name, scores in self._scores.items()}
        for name, scores in self._scores.items():
            memory = self._optimizer.state.get(scores, {})
            found |= {f"{key}/{name}": memory[key] for key in _MEMORY if key in memory}
        return found

    def take(self, kept: Mapping[str, Tensor]) -> None:
        """Go on from a `state`."""
        for name, scores in self._scores.items():
            scores.copy_(kept[f"score/{name}"])
            for key in _MEMORY:
                if f"{key}/{name}" in kept:
                    value = kept[f"{key}/{name}"].clone()
                    at = value if key == "step" else value.to(scores.device)  # Adam counts on CPU
                    self._optimizer.state[scores][key] = at


class GradualMagnitude(Movement):
    """Gradual magnitude pruning (Zhu and Gupta, 2017): the smallest weights go.

    Sizes are compared anew in each step, among all weights of a matrix: one that is gone keeps the
    value it had, as in the paper, so that it comes back where others become smaller than it. The
    optimizer would still move it, by its momentum and by weight decay; that is taken back before
    sizes are compared.
    """

    def __init__(self, weights: Mapping[str, nn.Parameter], share: float) -> None:
        super().__init__(weights, share)
        self._before: dict[str, Tensor] = {}  # the weights before the update, if there was one

    def _copy(self, name: str) -> Tensor:
        now, before = self._weights[name].detach(), self._before.get(name)
        if before is None:
            return now.clone()
        return torch.where(self._stays[name], now, before, out=before)

    def _rank(self, name: str, whole: Tensor) -> Tensor:
        return whole.abs()

    def thin(self, done: float) -> None:
        """Put zeros where weights are small, until `restore`."""
        super().thin(done)
        self._before.clear()

    def learn(self, rate: float) -> None:
        """Weights that were used learn; there are no scores."""
        for name, weight in self._weights.items():
            if weight.grad is not None:
                weight.grad.mul_(self._stays[name])
        self._before = dict(self._whole)
        self.restore()

    def state(self) -> dict[str, Tensor]:
        """Nothing but the weights decides how it goes on."""
        return {}

    def take(self, kept: Mapping[str, Tensor]) -> None:
        """Nothing to go on from."""
