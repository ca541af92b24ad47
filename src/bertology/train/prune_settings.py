"""How a model is pruned, and how much that may cost: declared once, for the commands and Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bertology.errors import ParameterError
from bertology.parameters import check_parameters, parameter

PARTS = ("layers", "mlps", "heads")  # in the order of what they save
CUTTING = {"measured": PARTS, "importance": ("mlps", "heads")}  # method: what it can cut out
THINNING = ("magnitude", "movement")  # methods that put zeros in the place of single weights
_MAX_LOSS = 1.0  # points, where nothing else is asked for
_MOVEMENT_EPOCHS = 6  # as in the paper
_BEFORE_TRAINING = 5  # times as much may be lost before a training wins some of it back


@dataclass(frozen=True, kw_only=True)
class PruneSettings:
    """By which method, how far, and on how many examples."""

    method: str = parameter(
        "measured",
        "measured: layers, MLPs and heads are cut, by what happens without each. importance: heads "
        "and MLPs, by gradients. magnitude: the smallest weights become zero. movement: weights "
        "that a training moves towards zero.",
        choices=(*CUTTING, *THINNING),
    )
    max_loss: float | None = parameter(
        None,
        "How many points of the task's main score may be lost: 1 is 0.01. If neither this nor "
        "--keep nor --weights is given: 1.",
        minimum=0.0,
    )
    keep: float | None = parameter(
        None, "In place of --max-loss: the share of the score that must be kept, such as 0.9."
    )
    weights: float | None = parameter(
        None, "In place of --max-loss, for magnitude and movement: the share of weights that stays."
    )
    parts: tuple[str, ...] = parameter(
        (),
        "What may be cut: layers,mlps,heads or some of them; all that the method can cut if not "
        "given. With layers alone, plain transformers loads the model.",
    )
    epochs: int | None = parameter(
        None,
        f"For movement: how many epochs each training has; {_MOVEMENT_EPOCHS} if not given.",
        minimum=1,
    )
    recover: int = parameter(
        0, "Train what is left for so many epochs, on all of the training data.", minimum=0
    )
    cut_loss: float | None = parameter(
        None,
        "With --recover: how many points may be lost before the training. If not given: 5 times "
        "as many as in the end.",
        minimum=0.0,
    )
    recover_limit: int | None = parameter(
        None,
        "With --recover, and for movement: train on so many examples, drawn at random; all if not "
        "given.",
        minimum=1,
    )
    limit: int | None = parameter(
        2000, "Rank and select on so many training examples, drawn at random.", minimum=40
    )

    def __post_init__(self) -> None:
        check_parameters(self, of="prune")
        self._check_limits()
        self._check_parts()
        moves = self.method == "movement"
        if not moves:
            self._left_out("epochs", "unless the method is movement")
        elif self.recover:
            self._left_out("recover", "with the method movement, which trains while it prunes")
        if not self.recover:
            for name in ("cut_loss", *(() if moves else ("recover_limit",))):
                self._left_out(name, "without a training after the cut (recover, --recover)")

    def _left_out(self, name: str, why: str) -> None:
        """Refuse a value that is given where it means nothing."""
        value = getattr(self, name)
        if value != type(self).__dataclass_fields__[name].default:
            raise ParameterError(name, "prune", f"be left out {why}", value)

    def _check_limits(self) -> None:
        said: dict[str, Any] = {n: getattr(self, n) for n in ("max_loss", "keep", "weights")}
        said = {name: value for name, value in said.items() if value is not None}
        if len(said) > 1:
            first, second = list(said)[:2]
            self._left_out(second, f"where {first} is given: one of them says how far it goes")
        for name in {"keep", "weights"} & {*said}:
            if not 0 < said[name] < 1:
                raise ParameterError(name, "prune", "be above 0 and below 1", said[name])
        for name in ("max_loss", "cut_loss"):
            if not 0 <= (getattr(self, name) or 0) < 100:
                raise ParameterError(name, "prune", "be from 0 to below 100", getattr(self, name))
        if self.method not in THINNING:
            self._left_out("weights", f"unless the method is {' or '.join(THINNING)}")

    def _check_parts(self) -> None:
        if self.method in THINNING:
            why = f"with the method {self.method}, which removes single weights"
            self._left_out("parts", why)
        elif not {*self.parts} <= {*(can := CUTTING[self.method])}:
            must = f"be among {', '.join(can)} with the method {self.method}"
            raise ParameterError("parts", "prune", must, self.parts)

    @property
    def may_go(self) -> tuple[str, ...]:
        """The kinds of parts that may be cut, in the order of what they save."""
        can = CUTTING.get(self.method, ())
        return tuple(part for part in can if not self.parts or part in self.parts)

    @property
    def trained(self) -> int:
        """Epochs of the training that gave the model: in which weights went, or after the cut."""
        return (self.epochs or _MOVEMENT_EPOCHS) if self.method == "movement" else self.recover

    def final_loss(self, score: float) -> float | None:
        """How many points of this score may be lost in the end; None where that does not count."""
        if self.weights is not None:
            return None
        if self.keep is not None:
            return 100 * (1 - self.keep) * max(score, 0.0)
        return _MAX_LOSS if self.max_loss is None else self.max_loss

    def allowed(self, score: float, constant: float) -> float | None:
        """How many points may be lost before any training that follows.

        Where a share of the score is kept, at most half of what the model is better than a constant
        answer may go: where most examples have one label, a model that says nothing else may have
        90 % of the score.
        """
        final = self.final_loss(score)
        if self.recover and self.cut_loss is not None:
            return self.cut_loss
        if final is None:
            return None
        if self.recover:
            final *= _BEFORE_TRAINING
        if self.keep is None:
            return final
        return min(final, 50 * (score - max(constant, 0.0)))
