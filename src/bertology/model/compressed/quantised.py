"""Linear maps and tables whose weights are stored as whole numbers of a few bits.

The file holds the packed numbers. Weights are made of them once, when they are first needed; with
`activations=8`, products of 8-bit maps on a CPU are computed in whole numbers instead, which is
faster. Elsewhere, and where gradients are asked for, inputs are rounded the same way in float.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from bertology.errors import BertologyError
from bertology.model.compressed.integer_product import rounded_input
from bertology.model.compressed.lean_layers import make_lean
from bertology.model.compressed.quantised_maps import (
    Quantised,
    QuantisedEmbedding,
    QuantisedLinear,
)
from bertology.model.compressed.rounding import SYMMETRIC, Format, rounded
from bertology.model.compressed.written import (
    check_tables,
    check_whole,
    layer_of,
    misfit,
    module_at,
    named_maps,
    put_module,
    write_form,
)

__all__ = [
    "FORM",
    "Quantised",
    "QuantisedEmbedding",
    "QuantisedLinear",
    "put_in",
    "quantise",
    "rehearsed",
    "rounded",
]

FORM = "quantised"
_EIGHT = 8


# Into a model ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wish:
    """How the maps of a model are to be stored."""

    bits: int
    scheme: str
    groups: str | int
    bits_of: Mapping[int | str, int]
    limit: float

    def format(self, model: Any, name: str, weight: Tensor) -> Format:
        bits = _bits_for(model, name, self.bits, self.bits_of)
        return Format.of(weight, bits, self.scheme, self.groups, self.limit)


def _bits_for(model: Any, name: str, bits: int, others: Mapping[int | str, int]) -> int:
    """Those of a map by its name, or of its layer, or of all."""
    layer = layer_of(model, name)
    return others.get(name, bits if layer is None else others.get(layer, bits))


def quantise(
    model: Any,
    bits: int = 8,
    *,
    scheme: str = SYMMETRIC,
    groups: str | int = "row",
    bits_of: Mapping[int | str, int] | None = None,
    maps: str = "all",
    activations: int | None = None,
    outlier_limit: float = -4.0,
) -> Any:
    """Store the maps and tables of a model's base in `bits` bits; the head stays as it is.

    `groups` is `row`, `tensor` or, for the scheme `groups`, a number of groups of rows in each
    matrix. `bits_of` gives layers (by number) or modules (by name) other bits. `outlier_limit` is
    the log density below which the dictionary keeps a weight as it is.
    """
    check_whole("bits", bits, 1, _EIGHT)
    if activations not in (None, _EIGHT):
        raise BertologyError(
            f"activations must be 8, or None for inputs as they are, not {activations!r}."
        )
    if isinstance(groups, int):
        check_whole("groups", groups, 1, 10**6)
    elif groups not in ("row", "tensor"):
        raise BertologyError(f"groups must be row, tensor or a number, not {groups!r}.")
    found = {n: m for n, m in named_maps(model, maps) if m.weight.numel()}
    others = dict(bits_of or {})
    layers = {layer_of(model, name) for name in found}
    for key, value in others.items():
        check_whole(f"bits of {key!r}", value, 1, _EIGHT)
        if key not in found and key not in layers:
            raise BertologyError(
                f"The model has no layer or map {key!r} to be stored in {value} bits."
            )
    wish = _Wish(bits, scheme, groups, others, outlier_limit)
    formats = {name: wish.format(model, name, m.weight) for name, m in found.items()}
    written = {name: _written(one) for name, one in formats.items()}
    put_in(model, maps=written, activations=activations)
    for name, old in found.items():
        new = model.base_model.get_submodule(name)
        new.fill(old.weight, outlier_limit)
        if getattr(old, "bias", None) is not None:
            new.bias = old.bias
    write_form(model, FORM, maps=written, activations=activations)
    return model


def put_in(model: Any, maps: dict[str, dict[str, Any]], activations: int | None = None) -> None:
    """Packed matrices in place of those that are named, without their numbers."""
    if not isinstance(maps, dict) or activations not in (None, _EIGHT):
        raise misfit(f"of {FORM!r}, maps are {maps!r:.60} and activations {activations!r:.20}")
    check_tables(model, list(maps))
    for name, options in maps.items():
        old = module_at(model, name)
        rows, columns = old.weight.shape
        try:
            stored = Format(**options)
        except (TypeError, BertologyError):
            raise misfit(f"{name!r} is stored as {options!r:.80}") from None
        if stored.groups > rows or stored.outliers > rows * columns:
            raise misfit(f"{name!r} has {rows} rows, which cannot be stored as {options!r:.80}")
        new: Quantised
        if isinstance(old, nn.Linear):
            biased = old.bias is not None
            new = QuantisedLinear(columns, rows, stored, bias=biased, activations=activations)
        else:
            new = QuantisedEmbedding(rows, columns, stored, padding=old.padding_idx)
        put_module(model, name, new.to(old.weight.device))
    if activations is not None:
        make_lean(model)


def _written(stored: Format) -> dict[str, Any]:
    """A format as the config keeps it: what is not said is as usual."""
    usual = asdict(Format(stored.scheme, stored.bits))
    plain = asdict(stored)
    return {k: v for k, v in plain.items() if k in ("scheme", "bits") or v != usual[k]}


# While training ----------------------------------------------------------------------------------


@dataclass(eq=False)
class _Rehearsal:
    """What a map computes while it is trained for the numbers it will be stored in."""

    module: nn.Linear | nn.Embedding
    bits: int
    scheme: str
    groups: str | int
    activations: int | None

    def __call__(self, states: Tensor) -> Tensor:
        weight = self.module.weight
        near = rounded(weight.detach(), self.bits, scheme=self.scheme, groups=self.groups)
        # The gradient of the rounded weight is taken for that of the weight.
        through = weight + (near - weight).detach()
        if isinstance(self.module, nn.Embedding):
            return functional.embedding(states, through, self.module.padding_idx)
        inputs = states if self.activations is None else rounded_input(states)
        return functional.linear(inputs, through, self.module.bias)


@contextmanager
def rehearsed(
    model: Any,
    bits: int = 8,
    *,
    scheme: str = SYMMETRIC,
    groups: str | int = "row",
    bits_of: Mapping[int | str, int] | None = None,
    maps: str = "all",
    activations: int | None = _EIGHT,
) -> Iterator[Any]:
    """Inside, the model computes as if it was quantised, and is trained for that (Q8BERT).

    Weights stay in full and keep their names; afterwards `quantise` with the same options.
    """
    found: dict[str, Any] = {n: m for n, m in named_maps(model, maps) if m.weight.numel()}
    for name, module in found.items():
        own = _bits_for(model, name, bits, bits_of or {})
        module.forward = _Rehearsal(module, own, scheme, groups, activations)
    try:
        yield model
    finally:
        for module in found.values():
            del module.forward
