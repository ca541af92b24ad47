"""Linear maps and tables whose weights are stored as whole numbers of a few bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.model.compressed.input_ranges import NAME, empty_range
from bertology.model.compressed.integer_product import (
    Product,
    Range,
    integer_product,
    is_known,
    rounded_input,
)
from bertology.model.compressed.rounding import SYMMETRIC, Format

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

    @property
    def zeros(self) -> int:
        """How many of them stand for zero."""
        return int((self.format.values(self.unpacked()) == 0).sum())

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
        if self._made is not None:
            return self._made
        made = self.format.values(self.unpacked())
        if not torch.compiler.is_compiling():  # where there are no values to keep
            self._made = made
        return made

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
    """A linear map; `activations` is the bits of its inputs, None for inputs as they are.

    With `fixed`, the range of its inputs is stored beside its numbers. A map that no text reached
    when ranges were learnt has none, and its inputs are rounded in their own, as without `fixed`.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stored: Format,
        *,
        bias: bool,
        activations: int | None,
        fixed: bool = False,
    ) -> None:
        super().__init__(outputs, inputs, stored)
        self.in_features, self.out_features = inputs, outputs
        self.activations = activations
        self.fixed = fixed
        if fixed:
            self.register_buffer(NAME, empty_range())
        self._known: tuple[object, bool] | None = None  # whether there is a range
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        eight = stored.scheme == SYMMETRIC and stored.bits == _EIGHT
        self.able = activations is not None and eight
        self._generation = 0  # how often the stored numbers may have changed
        self._product: tuple[object, Product] | None = None

    def forward(self, states: Tensor) -> Tensor:
        if self.activations is None:
            return functional.linear(states, self.weight, self.bias)
        if self.in_integers(states):
            return self.product()(states)
        return functional.linear(rounded_input(states, self.span()), self.weight, self.bias)

    def span(self) -> Range | None:
        """The range of the inputs; None where they are rounded in their own."""
        if not self.fixed:
            return None
        stored = self.get_buffer(NAME)
        mark = self._generation, stored._version
        if self._known is None or (mark != self._known[0] and not torch.compiler.is_compiling()):
            # It asks the device, so once; and before a model is traced, where nothing can be asked.
            self._known = mark, is_known(stored)
        return stored if self._known[1] else None

    def in_integers(self, states: Tensor) -> bool:
        """Whether the product with these inputs is computed in whole numbers."""
        plain = states.device.type == "cpu" and states.dtype == torch.float32
        free = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
        return self.able and plain and free and states.numel() > 0

    @property
    def mark(self) -> tuple[int, int, int]:
        """What changes when the numbers, the bias or the range have changed."""
        bias = -1 if self.bias is None else self.bias._version
        return self._generation, bias, self.get_buffer(NAME)._version if self.fixed else -1

    def whole_numbers(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Numbers from -127 to 127 (outputs, inputs), a step for each output, and the bias."""
        held = self.unpacked()
        codes = (held["codes"].to(torch.int16) - self.format.middle).to(torch.int8)
        step = held["step"].float().expand(self.rows).contiguous()
        return codes.contiguous(), step, None if self.bias is None else self.bias.detach()

    def product(self) -> Product:
        """The product in whole numbers; made anew when the bias was trained meanwhile."""
        mark = self.mark
        if self._product is None or self._product[0] != mark:
            self._product = mark, integer_product(*self.whole_numbers(), self.span())
        return self._product[1]

    def forget(self) -> None:
        super().forget()
        self._product = None
        self._generation += 1
        self._known = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_product": None, "_known": None}

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, {self.format}"


class QuantisedEmbedding(Quantised):
    """A table; of one with a step for each row, only the rows that are asked for are made."""

    def __init__(self, rows: int, columns: int, stored: Format, *, padding: int | None) -> None:
        super().__init__(rows, columns, stored)
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, columns, padding

    @property
    def by_row(self) -> bool:
        """Whether rows can be made one by one."""
        steps = self.format.scheme == SYMMETRIC and self.format.groups == self.rows
        return steps and self.format.bits == _EIGHT

    def forward(self, pieces: Tensor) -> Tensor:
        if not self.by_row:
            return functional.embedding(pieces, self.weight)
        codes, step = self.get_buffer("codes"), self.get_buffer("step")
        found = codes.view(self.rows, self.columns)[pieces].to(step.dtype)
        return found.sub_(self.format.middle).mul_(step[pieces][..., None])
