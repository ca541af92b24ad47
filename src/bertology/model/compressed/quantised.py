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

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.errors import BertologyError
from bertology.model.compressed.integer_product import Product, integer_product, rounded_input
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


class Quantised(nn.Module):
    """A matrix stored in some format; its weight is made of that when it is first asked for."""

    def __init__(self, rows: int, columns: int, stored: Format) -> None:
        super().__init__()
        self.rows, self.columns, self.format = rows, columns, stored
        self._names = []
        for name, tensor in stored.empty(rows, columns).items():
            self._names.append(name)
            self.register_buffer(name, tensor)
        self._made: Tensor | None = None

    @property
    def numbers(self) -> int:
        """How many numbers the matrix is made of, whatever they take."""
        return self.rows * self.columns

    def unpacked(self) -> dict[str, Tensor]:
        """The stored tensors, a byte for each weight."""
        held = {name: self.get_buffer(name) for name in self._names}
        return self.format.unpacked(held, self.rows, self.columns)

    def fill(self, weight: Tensor, limit: float) -> None:
        """Store a matrix."""
        held = self.format.packed(self.format.of_weight(weight, limit=limit))
        for name, tensor in held.items():
            self.get_buffer(name).copy_(tensor)
        self.forget()

    @property
    def weight(self) -> Tensor:
        """(rows, columns) in float."""
        if self._made is None:
            self._made = self.format.values(self.unpacked())
        return self._made

    def forget(self) -> None:
        """What was made of the stored numbers is made anew when it is next needed."""
        self._made = None

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.forget()  # which would stay where it is while the module moves
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *given: Any) -> None:
        self.forget()
        super()._load_from_state_dict(*given)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}


class QuantisedLinear(Quantised):
    """A linear map; `activations` is the bits of its inputs, None for inputs as they are."""

    def __init__(
        self, inputs: int, outputs: int, stored: Format, *, bias: bool, activations: int | None
    ) -> None:
        super().__init__(outputs, inputs, stored)
        self.in_features, self.out_features = inputs, outputs
        self.activations = activations
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self._product: tuple[int, Product] | None = None

    def forward(self, states: Tensor) -> Tensor:
        if self.activations is None:
            return functional.linear(states, self.weight, self.bias)
        if self._in_integers(states):
            return self._ready()(states)
        return functional.linear(rounded_input(states), self.weight, self.bias)

    def _in_integers(self, states: Tensor) -> bool:
        plain = states.device.type == "cpu" and states.dtype == torch.float32
        able = self.format.scheme == SYMMETRIC and self.format.bits == _EIGHT
        free = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
        return plain and able and free and states.numel() > 0

    def _ready(self) -> Product:
        """The product in whole numbers; made anew when the bias was trained meanwhile."""
        version = 0 if self.bias is None else self.bias._version
        if self._product is None or self._product[0] != version:
            held = self.unpacked()
            codes = (held["codes"].to(torch.int16) - self.format.middle).to(torch.int8)
            step = held["step"].float().expand(self.rows).contiguous()
            bias = None if self.bias is None else self.bias.detach()
            self._product = version, integer_product(codes.contiguous(), step, bias)
        return self._product[1]

    def forget(self) -> None:
        super().forget()
        self._product = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_product": None}

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, {self.format}"


class QuantisedEmbedding(Quantised):
    """A table; of one with a step for each row, only the rows that are asked for are made."""

    def __init__(self, rows: int, columns: int, stored: Format, *, padding: int | None) -> None:
        super().__init__(rows, columns, stored)
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, columns, padding

    def forward(self, pieces: Tensor) -> Tensor:
        by_row = self.format.scheme == SYMMETRIC and self.format.groups == self.rows
        if not by_row or self.format.bits != _EIGHT:
            return functional.embedding(pieces, self.weight)
        codes, step = self.get_buffer("codes"), self.get_buffer("step")
        found = codes.view(self.rows, self.columns)[pieces].to(step.dtype)
        return found.sub_(self.format.middle).mul_(step[pieces][..., None])


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
        layer = layer_of(model, name)
        bits = self.bits_of.get(
            name, self.bits_of.get(layer, self.bits) if layer is not None else self.bits
        )
        return Format.of(weight, bits, self.scheme, self.groups, self.limit)


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
    maps: str = "all",
    activations: int | None = _EIGHT,
) -> Iterator[Any]:
    """Inside, the model computes as if it was quantised, and is trained for that (Q8BERT).

    Weights stay in full and keep their names; afterwards `quantise` with the same options.
    """
    found: list[Any] = [m for _, m in named_maps(model, maps) if m.weight.numel()]
    for module in found:
        module.forward = _Rehearsal(module, bits, scheme, groups, activations)
    try:
        yield model
    finally:
        for module in found:
            del module.forward
