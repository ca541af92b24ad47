"""Changes of a model's weights for one run, undone after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertology.errors import CapabilityError, ParameterError, UnknownNameError
from bertology.model.addressing import AddressedModel
from bertology.model.families import Capability
from bertology.model.interventions import check_dimensions, check_layers


class WeightEdit(ABC):
    """A change of parameters, undone after the run."""

    @abstractmethod
    def weights(self, encoder: AddressedModel) -> dict[str, Tensor]:
        """Full parameter name -> the tensor to use instead."""


@dataclass(frozen=True, eq=False)
class ReplaceWeights(WeightEdit):
    """Use other tensors for some parameters; weights that are tied to them change as well."""

    tensors: Mapping[str, Tensor]

    def weights(self, encoder: AddressedModel) -> dict[str, Tensor]:
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

    def weights(self, encoder: AddressedModel) -> dict[str, Tensor]:
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
                    found = _norm_parameter(encoder, layer, norm, part)
                    if found is None:
                        continue  # some norms have no bias, or are the identity
                    name, parameter = found
                    new = parameter.detach().clone()
                    new[list(self.dimensions)] = 0
                    changed[name] = new
        return changed


@dataclass(frozen=True, eq=False)
class ZeroLastOperation(WeightEdit):
    """Zero what the last operation of every layer has for some dimensions, as in BERT Busters.

    That is the scale and the bias of the output LayerNorm. Where norms come first in a layer
    (GPT-2), the MLP's last map ends it: its weights to the dimension, and its bias there. `norms`
    may name the LayerNorm after the attention as well; it is left alone where norms come first.
    """

    dimensions: Sequence[int]
    scale: bool = True
    bias: bool = True
    norms: Sequence[str] = ("output",)

    def weights(self, encoder: AddressedModel) -> dict[str, Tensor]:
        check_dimensions(self.dimensions, encoder.shape.hidden)
        if not encoder.family.stacks[encoder.family.main_stack].pre_norm:
            norms = ZeroLayerNorm(
                self.dimensions, norms=self.norms, scale=self.scale, bias=self.bias
            )
            return norms.weights(encoder)
        changed: dict[str, Tensor] = {}
        for name, axis, parameter in _last_maps(encoder):
            if self.scale if parameter.dim() > 1 else self.bias:
                new = parameter.detach().clone()
                new.index_fill_(axis, torch.tensor(list(self.dimensions), device=new.device), 0)
                changed[name] = new
        return changed

    def touched(self, encoder: AddressedModel) -> int:
        """How many weights are set to zero."""
        width, dimensions = encoder.shape.hidden, len(set(self.dimensions))
        return sum(t.numel() // width * dimensions for t in self.weights(encoder).values())


def _norm_parameter(
    encoder: AddressedModel, layer: int, norm: str, part: str
) -> tuple[str, nn.Parameter] | None:
    """The full name and tensor of a LayerNorm's weight or bias, where there is one."""
    encoder.require(Capability.NORMS)
    norms = encoder.family.stacks[encoder.family.main_stack].norms
    if norm not in norms:
        raise ParameterError("norms", "ZeroLayerNorm", f"be among {sorted(norms)}", norm)
    found = getattr(encoder.module(norms[norm], layer), part, None)
    return (encoder.parameter_name(found), found) if isinstance(found, nn.Parameter) else None


def _last_maps(encoder: AddressedModel) -> Iterator[tuple[str, int, Tensor]]:
    """Name, axis of the stream's dimensions, and tensor of the MLPs' last weights and biases."""
    name = encoder.family.main_stack
    template = encoder.family.stacks[name].mlp
    for module in [] if template is None else encoder.unique_modules(template, name):
        for part in ("weight", "bias"):
            found = getattr(module, part, None)
            if isinstance(found, Tensor) and not isinstance(found, nn.Parameter):
                raise CapabilityError(
                    "Weights of a map that is stored in another form cannot be edited.",
                    hint="Edit the model that it was compressed from.",
                )
            if isinstance(found, nn.Parameter):
                # A Linear has its outputs first; transformers' Conv1D has them last.
                yield (
                    encoder.parameter_name(found),
                    0 if isinstance(module, nn.Linear) else -1,
                    found,
                )
