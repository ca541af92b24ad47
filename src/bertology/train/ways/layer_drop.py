"""LayerDrop: layers that are left out at random in training (Fan et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from bertology.model.encoder import Encoder
from bertology.model.weight_depths import layer_modules
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way

_HOOKS = "_layer_drop_hooks"


@dataclass(frozen=True)
class LayerDrop(Way):
    """Trained: everything. In each batch, each layer is left out with a given probability.

    The model does not grow to need each of its layers, so that some can be cut out afterwards.
    """

    summary: ClassVar[str] = "layers are left out at random"
    order: ClassVar[int] = 4
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained", "random"})

    share: float = parameter(0.2, "How often each layer is left out.", minimum=0, maximum=0.9)

    def prepare(self, lesson: Lesson) -> None:
        """Let each layer give back what it is given, now and then."""
        layers = layer_modules(Encoder(lesson.model))
        if not self.share:
            return  # nothing is drawn, so a training is what it is without this way
        hooks = [
            layer.register_forward_hook(_Dropped(self.share), with_kwargs=True) for layer in layers
        ]
        setattr(lesson.model, _HOOKS, hooks)

    def finish(self, lesson: Lesson) -> None:
        """No layer is left out any more."""
        for hook in lesson.model.__dict__.pop(_HOOKS, ()):
            hook.remove()


@dataclass(eq=False)
class _Dropped:
    """In training, what a layer is given in place of what it makes of it."""

    share: float

    def __call__(
        self, module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any], output: Any
    ) -> Any:
        if not module.training:
            return output
        states: Tensor = given[0] if given else named["hidden_states"]
        # Drawn on the device and chosen there, so that a step can be recorded.
        out = torch.rand((), device=states.device) < self.share
        if isinstance(output, tuple):
            return (torch.where(out, states, output[0]), *output[1:])
        return torch.where(out, states, output)
