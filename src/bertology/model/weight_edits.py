"""Changes of a model's weights for one run, undone after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from bertology.errors import CapabilityError, ParameterError, UnknownNameError
from bertology.model.interventions import check_dimensions, check_layers

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

__all__ = ["ReplaceWeights", "WeightEdit", "ZeroLayerNorm"]


class WeightEdit(ABC):
    """A change of parameters, undone after the run."""

    @abstractmethod
    def weights(self, encoder: Encoder) -> dict[str, Tensor]:
        """Full parameter name -> the tensor to use instead."""


@dataclass(frozen=True, eq=False)
class ReplaceWeights(WeightEdit):
    """Use other tensors for some parameters; weights that are tied to them change as well."""

    tensors: Mapping[str, Tensor]

    def weights(self, encoder: Encoder) -> dict[str, Tensor]:
        known = dict(encoder.model.named_parameters())
        for name, new in self.tensors.items():
            if name not in known:
                raise UnknownNameError("parameter", name, known)
            if new.shape != known[name].shape:
                raise ParameterError(
                    name, "ReplaceWeights", f"have shape {tuple(known[name].shape)}",
                    tuple(new.shape),
                )  # fmt: skip
        return dict(self.tensors)


@dataclass(frozen=True, eq=False)
class ZeroLayerNorm(WeightEdit):
    """Zero entries of LayerNorm scales and biases, the "outlier dimensions" experiment."""

    dimensions: Sequence[int]
    layers: Sequence[int] | None = None
    norms: Sequence[str] = ("attention", "output")
    scale: bool = True
    bias: bool = True

    def weights(self, encoder: Encoder) -> dict[str, Tensor]:
        changed: dict[str, Tensor] = {}
        check_dimensions(self.dimensions, encoder.shape.hidden)
        layers = range(encoder.shape.layers) if self.layers is None else self.layers
        if self.layers is not None and encoder.shares_layers:
            raise CapabilityError(
                f"{encoder.family.title} uses the same norms in several layers; they cannot be "
                "changed in some of them only.",
                hint="Leave out `layers`.",
            )
        for layer in check_layers(tuple(layers), encoder, None):
            for norm in self.norms:
                for part in [p for p, on in (("weight", self.scale), ("bias", self.bias)) if on]:
                    found = encoder.norm_parameter(layer, norm, part)
                    if found is None:
                        continue  # some norms have no bias, or are the identity
                    name, parameter = found
                    new = parameter.detach().clone()
                    new[list(self.dimensions)] = 0
                    changed[name] = new
        return changed
