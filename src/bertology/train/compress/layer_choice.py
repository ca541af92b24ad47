"""Some of the layers: the top or bottom ones, evenly spread ones, or those that matter most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import CapabilityError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import can_lose_layers, prune_layers
from bertology.parameters import parameter
from bertology.train.compress.method import EPOCHS, Method
from bertology.train.compress.work import Work
from bertology.train.part_ranking import GivenAnswers, without

_WHICH = ("even", "bottom", "top", "measured")
_TEXTS = 200  # more make a ranking slower, and hardly better


@dataclass(frozen=True)
class LayerChoice(Method):
    """Chosen layers stay, and are trained on.

    Layers in `which` are counted from 1: `1+3+5`. `even` spreads them as DistilBERT does, `bottom`
    leaves out the top ones, which are closest to the task, and `measured` takes layers away one by
    one, each time the one without which the answers to training examples move least.
    """

    summary: ClassVar[str] = "some layers stay and are trained on"
    source: ClassVar[str] = "Sajjad et al. 2020"

    layers: int | None = parameter(
        None, "How many layers stay; half of them if not given.", minimum=1
    )
    which: str = parameter("even", "even, bottom, top, measured, or layers from 1, as in 1+3+5.")
    epochs: int | None = parameter(None, EPOCHS, minimum=0)

    def check_fit(self, encoder: Encoder) -> None:
        """Only layers that are there can stay."""
        check_layers(encoder, self.which, self.layers)

    def apply(self, work: Work) -> Encoder:
        """Cut the other layers, and train what is left."""
        kept = chosen_layers(work, self.which, self.layers)
        smaller = keep_layers(work, work.encoder, kept)
        work.train_on(smaller, epochs=self.epochs)
        return smaller


def keep_layers(work: Work, encoder: Encoder, kept: list[int]) -> Encoder:
    """A model with these layers only, counted from 0."""
    count = encoder.shape.layers
    gone = [i for i in range(count) if i not in kept]
    work.say(f"of {count} layers, {', '.join(str(i + 1) for i in kept)} stay (counted from 1)")
    return work.around(prune_layers(encoder, gone)) if gone else encoder


def check_layers(encoder: Encoder, which: str, layers: int | None) -> None:
    """Refuse a choice of layers that the model does not have."""
    if not can_lose_layers(encoder):
        raise CapabilityError(
            f"Layers of {encoder.family.title} cannot be cut: they are shared, or depend on their "
            "number.",
            hint="BERT, RoBERTa, ELECTRA, DistilBERT and their like can lose layers.",
        )
    count = encoder.shape.layers
    if which not in _WHICH:
        _named(which, layers, count)
    elif layers is not None and layers > count:
        must = f"be at most {count}, as the model has no more"
        raise ParameterError("layers", "layer_choice", must, layers)


def chosen_layers(work: Work, which: str, layers: int | None) -> list[int]:
    """The layers that stay, counted from 0."""
    check_layers(work.encoder, which, layers)
    count = work.encoder.shape.layers
    if which not in _WHICH:
        return _named(which, layers, count)
    size = max(1, count // 2) if layers is None else layers
    if which == "measured":
        return _measured(work, size)
    first = count - size if which == "top" else 0
    return even(count, size) if which == "even" else list(range(first, first + size))


def even(count: int, size: int) -> list[int]:
    """So many of `count` layers at even distances, the first one always: 0, 2, 4 of 6."""
    return [number * count // size for number in range(size)]


def _named(which: str, layers: int | None, count: int) -> list[int]:
    try:
        found = sorted({int(piece) - 1 for piece in which.split("+")})
    except ValueError:
        found = []
    if not found or found[0] < 0 or found[-1] >= count:
        must = f"be one of {', '.join(_WHICH)}, or layers from 1 to {count}, as in 1+3"
        raise ParameterError("which", "layer_choice", must, which)
    if layers is not None and layers != len(found):
        must = f"be left out where `which` names {len(found)} layers"
        raise ParameterError("layers", "layer_choice", must, layers)
    return found


def _measured(work: Work, size: int) -> list[int]:
    """Layers go one by one, each time the one whose loss moves the answers least."""
    encoder = work.encoder
    answers = GivenAnswers(encoder, work.choosing[:_TEXTS].texts, tokens_per_batch=4096)
    left = list(range(encoder.shape.layers))
    while len(left) > size:
        moved = {
            at: answers.change(encoder, without("layers", at)) for at in range(encoder.shape.layers)
        }
        least = min(moved, key=lambda at: (moved[at], at))
        work.watch.tell(f"without layer {left[least] + 1}: answers move by {moved[least]:.3g}")
        encoder = work.around(prune_layers(encoder, [least]))
        del left[least]
    return left
