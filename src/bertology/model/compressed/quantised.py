"""Linear maps and tables whose weights are stored as whole numbers of a few bits.

The file holds the packed numbers. Weights are made of them once, when they are first needed; with
`activations=8`, products of 8-bit maps on a CPU are computed in whole numbers instead, which is
faster. Elsewhere, and where gradients are asked for, inputs are rounded the same way in float.
Inputs are rounded in ranges that are stored with the model (`input_ranges.py`), or, where none are
given, in the range that they have in the batch: then an answer depends on the company of its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn

from bertology.errors import BertologyError
from bertology.model.compressed.input_ranges import NAME
from bertology.model.compressed.integer_product import Range
from bertology.model.compressed.lean_layers import make_lean
from bertology.model.compressed.quantised_maps import Quantised, QuantisedEmbedding, QuantisedLinear
from bertology.model.compressed.rounding import SYMMETRIC, Format
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

FORM = "quantised"
EIGHT = 8
FIXED, DYNAMIC = "fixed", "dynamic"
RANGES = (FIXED, DYNAMIC)  # of inputs: stored with the model, or those of each batch


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
        bits = bits_for(model, name, self.bits, self.bits_of)
        return Format.of(weight, bits, self.scheme, self.groups, self.limit)


def bits_for(model: Any, name: str, bits: int, others: Mapping[int | str, int]) -> int:
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
    ranges: Mapping[str, Range] | None = None,
    outlier_limit: float = -4.0,
) -> Any:
    """Store the maps and tables of a model's base in `bits` bits; the head stays as it is.

    `groups` is `row`, `tensor` or, for the scheme `groups`, a number of groups of rows in each
    matrix. `bits_of` gives layers (by number) or modules (by name) other bits. With `activations`,
    `ranges` are those of the inputs of maps, by name; without them, they are those of each batch.
    `outlier_limit` is the log density below which the dictionary keeps a weight as it is.
    """
    check_whole("bits", bits, 1, EIGHT)
    if activations not in (None, EIGHT):
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
        check_whole(f"bits of {key!r}", value, 1, EIGHT)
        if key not in found and key not in layers:
            raise BertologyError(
                f"The model has no layer or map {key!r} to be stored in {value} bits."
            )
    wish = _Wish(bits, scheme, groups, others, outlier_limit)
    formats = {name: wish.format(model, name, m.weight) for name, m in found.items()}
    written = {name: _written(one) for name, one in formats.items()}
    own: dict[str, Any] = {"activations": activations}
    if ranges is not None and activations is not None:
        own["ranges"] = FIXED
    put_in(model, maps=written, **own)
    for name, old in found.items():
        new = model.base_model.get_submodule(name)
        new.fill(old.weight, outlier_limit)
        if isinstance(new, QuantisedLinear) and new.fixed and ranges and name in ranges:
            new.get_buffer(NAME).copy_(ranges[name])
        if getattr(old, "bias", None) is not None:
            new.bias = old.bias
    write_form(model, FORM, maps=written, **own)
    return model


def put_in(
    model: Any,
    maps: dict[str, dict[str, Any]],
    activations: int | None = None,
    ranges: str = DYNAMIC,
) -> None:
    """Packed matrices in place of those that are named, without their numbers."""
    if not isinstance(maps, dict) or activations not in (None, EIGHT):
        raise misfit(f"of {FORM!r}, maps are {maps!r:.60} and activations {activations!r:.20}")
    if ranges not in RANGES or (ranges == FIXED and activations is None):
        raise misfit(f"of {FORM!r}, ranges are {ranges!r:.20} and activations {activations!r:.20}")
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
            new = QuantisedLinear(
                columns,
                rows,
                stored,
                bias=biased,
                activations=activations,
                fixed=ranges == FIXED,
            )
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
