"""How a model is pruned, and how much that may cost."""

from __future__ import annotations

from dataclasses import dataclass

from bertology.errors import ParameterError
from bertology.train.recovery import Recovery

PARTS = ("layers", "mlps", "heads")  # in the order of what they save
CUTTING = {"measured": PARTS, "importance": ("mlps", "heads")}  # method: what it can cut out
THINNING = ("magnitude", "movement")  # methods that put zeros in the place of single weights
METHODS = (*CUTTING, *THINNING)
_MAX_LOSS = 1.0  # points, where nothing else is asked for
MOVEMENT_EPOCHS = 6  # as in the paper
_BEFORE_TRAINING = 5  # times as much may be lost before a training wins some of it back


@dataclass(frozen=True)
class PruneSettings:
    """How a model is pruned: by which method, how far, and on which examples."""

    max_loss: float | None = None  # points (hundredths) of the task's main metric, in the end
    keep: float | None = None  # or: the share of the score that is kept
    weights: float | None = None  # or, where single weights go: the share of them that stays
    method: str = "measured"
    parts: tuple[str, ...] = ()  # what may be cut; all that the method can cut if not said
    seed: int = 0  # which training examples rank, and which select
    batch_tokens: int = 4096
    limit: int | None = None  # training examples that rank and select; None for all
    recovery: Recovery | None = None  # a training after the cut
    epochs: int | None = None  # of movement pruning
    learn_limit: int | None = None  # examples that movement pruning learns from; None for all

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError("method", "prune", f"be one of {', '.join(METHODS)}", self.method)
        self._check_limits()
        self._check_parts()
        moves = self.method == "movement"
        if self.epochs is not None and (not moves or self.epochs < 1):
            must = "be at least 1" if moves else "be left out unless the method is movement"
            raise ParameterError("epochs", "prune", must, self.epochs)
        if moves and self.recovery is not None:
            must = "be left out with the method movement, which trains while it prunes (epochs)"
            raise ParameterError("recover", "prune", must, self.recovery.epochs)

    def _check_limits(self) -> None:
        said = {n: getattr(self, n) for n in ("max_loss", "keep", "weights")}
        said = {name: value for name, value in said.items() if value is not None}
        if len(said) > 1:
            first, second = list(said)[:2]
            must = f"be left out where {first} is given: one of them says how far it goes"
            raise ParameterError(second, "prune", must, said[second])
        for name in ("keep", "weights"):
            if name in said and not 0 < said[name] < 1:
                raise ParameterError(name, "prune", "be above 0 and below 1", said[name])
        if "max_loss" in said and not 0 <= said["max_loss"] < 100:
            raise ParameterError("max_loss", "prune", "be from 0 to below 100", said["max_loss"])
        if "weights" in said and self.method not in THINNING:
            must = f"be left out unless the method is {' or '.join(THINNING)}"
            raise ParameterError("weights", "prune", must, said["weights"])

    def _check_parts(self) -> None:
        if not self.parts:
            return
        if self.method in THINNING:
            must = f"be left out with the method {self.method}, which removes single weights"
            raise ParameterError("parts", "prune", must, self.parts)
        can = CUTTING[self.method]
        if not {*self.parts} <= {*can}:
            must = f"be among {', '.join(can)} with the method {self.method}"
            raise ParameterError("parts", "prune", must, self.parts)

    @property
    def may_go(self) -> tuple[str, ...]:
        """The kinds of parts that may be cut, in the order of what they save."""
        can = CUTTING.get(self.method, ())
        return tuple(part for part in can if not self.parts or part in self.parts)

    @property
    def trained(self) -> int:
        """Epochs of movement pruning."""
        return MOVEMENT_EPOCHS if self.epochs is None else self.epochs

    def final_loss(self, score: float) -> float | None:
        """How many points of this score may be lost in the end; None where that does not count."""
        if self.weights is not None:
            return None
        if self.keep is not None:
            return 100 * (1 - self.keep) * max(score, 0.0)
        return _MAX_LOSS if self.max_loss is None else self.max_loss

    def cut_loss(self, score: float, constant: float) -> float | None:
        """How many points may be lost before any training that follows.

        Where a share of the score is kept, at most half of what the model is better than a constant
        answer may go: where most examples have one label, a model that says nothing else may have
        90 % of the score.
        """
        final = self.final_loss(score)
        if self.recovery is not None and self.recovery.cut_loss is not None:
            return self.recovery.cut_loss
        if final is None:
            return None
        if self.recovery is not None:
            final *= _BEFORE_TRAINING
        if self.keep is None:
            return final
        return min(final, 50 * (score - max(constant, 0.0)))
