"""The result of a run: the model's output and everything that was recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bertology.errors import BertologyError, UnknownNameError
from bertology.model.shape import Shape
from bertology.model.sites import HEAD_KINDS, Kind, Sites, parse_sites

if TYPE_CHECKING:
    import xarray as xr

    from bertology.model.batch import Batch

_AXES = {
    Kind.PATTERN: ("query", "key"),
    Kind.SCORES: ("query", "key"),
    Kind.CONTRIBUTION: ("token", "hidden"),
}


@dataclass
class Trace:
    """Recorded tensors by site name, keyed by position, never by token text.

    `trace["layer.3.head.7.pattern"]` is (example, query, key). A choice of layers puts a layer
    axis first, a choice of heads keeps the head axis after the examples:
    `trace["layer.*.head.*.pattern"]` is (layer, example, head, query, key).
    """

    batch: Batch
    output: Any  # the Hugging Face model output
    shapes: dict[str, Shape]
    main: str
    kept: dict[tuple[str, Kind, int], Tensor] = field(default_factory=dict)
    heads: dict[tuple[str, Kind, int], tuple[int, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = ", ".join(self.sites()[:4]) + (" …" if len(self.kept) > 4 else "")
        return f"Trace({len(self.batch)} examples; recorded: {shown or 'nothing'})"

    def keep(self, sites: Sites, layer: int, value: Tensor) -> None:
        """Remember a value; called by the run. Choices of the same kind are merged."""
        place = (str(sites.stack), sites.kind, layer)
        if sites.kind not in HEAD_KINDS:
            self.kept[place] = value
            return
        asked = tuple(sorted({*self.heads.get(place, ()), *sites.heads}))
        whole = asked == tuple(range(value.shape[1]))
        self.kept[place] = value if whole or value.requires_grad else value[:, list(asked)]
        everything = tuple(range(value.shape[1]))
        self.heads[place] = everything if whole or value.requires_grad else asked

    @property
    def logits(self) -> Tensor:
        """The head's scores, or the last hidden state of a model without a head."""
        for name in ("logits", "prediction_logits", "last_hidden_state"):
            found = getattr(self.output, name, None)
            if isinstance(found, Tensor):
                return found
        raise BertologyError(f"{type(self.output).__name__} has neither logits nor hidden states.")

    @property
    def tokens(self) -> list[list[str]]:
        return self.batch.tokens

    def __getitem__(self, site: str) -> Tensor:
        return self._collect(site, lambda value: value)

    def gradient(self, site: str) -> Tensor:
        """The gradient at a site, after `backward`; needs a run with `gradients=True`."""

        def grad_of(value: Tensor) -> Tensor:
            if value.grad is None:
                raise BertologyError(
                    f"There is no gradient at {site!r}.",
                    hint="Use encoder.run(…, gradients=True), then trace.backward(scalar).",
                )
            return value.grad

        return self._collect(site, grad_of)

    def backward(self, scalar: Tensor) -> None:
        """Compute gradients of a scalar at everything recorded; model weights get none."""
        leaves = [t for t in self.kept.values() if t.requires_grad]
        if not leaves:
            raise BertologyError(
                "Nothing was recorded that a gradient could reach.",
                hint="Use encoder.run(…, record=…, gradients=True).",
            )
        for leaf, grad in zip(
            leaves, torch.autograd.grad(scalar, leaves, retain_graph=True, allow_unused=True),
            strict=True,
        ):  # fmt: skip
            leaf.grad = torch.zeros_like(leaf) if grad is None else grad

    def _collect(self, site: str, get: Callable[[Tensor], Tensor]) -> Tensor:
        (sites,) = parse_sites(site, self.shapes, self.main)
        layers = []
        for layer in sites.layers:
            place = (str(sites.stack), sites.kind, layer)
            if place not in self.kept:
                raise UnknownNameError("recorded site", site, self.sites())
            value = get(self.kept[place])
            if sites.kind in HEAD_KINDS:
                value = self._choose(value, sites.heads, self.heads[place], site)
                value = value[:, 0] if sites.one_head else value
            layers.append(value)
        return layers[0] if sites.one_layer else torch.stack(layers)

    def _choose(
        self, value: Tensor, wanted: Sequence[int], have: Sequence[int], site: str
    ) -> Tensor:
        if tuple(wanted) == tuple(have):
            return value
        missing = [h for h in wanted if h not in have]
        if missing:
            raise UnknownNameError("recorded site", site, self.sites())
        return value[:, [have.index(h) for h in wanted]]

    def sites(self) -> list[str]:
        """Names of what was recorded, one per layer and kind."""
        names = []
        for stack, kind, layer in self.kept:
            prefix = "" if stack == self.main else f"{stack}."
            if kind is Kind.EMBEDDINGS:
                names.append(prefix + kind)
            elif kind in HEAD_KINDS:
                names.append(f"{prefix}layer.{layer}.head.*.{kind}")
            else:
                names.append(f"{prefix}layer.{layer}.{kind}")
        return names

    def to_xarray(self, site: str) -> xr.DataArray:
        """A recorded site as a labelled array; padding is NaN in attention maps."""
        import xarray as xr

        (sites,) = parse_sites(site, self.shapes, self.main)
        value = self[site].detach().float().cpu()
        dims: tuple[str, ...] = () if sites.one_layer else ("layer",)
        dims += ("example",)
        if sites.kind in HEAD_KINDS:
            dims += () if sites.one_head else ("head",)
            dims += _AXES.get(sites.kind, ("token", "feature"))
        else:
            dims += ("token", "hidden")
        coords: dict[str, list[int]] = {"example": list(self.batch.indices)}
        if not sites.one_layer:
            coords["layer"] = list(sites.layers)
        if sites.heads and not sites.one_head:
            coords["head"] = list(sites.heads)
        if sites.kind in (Kind.PATTERN, Kind.SCORES) and value.shape[-1] == value.shape[-2]:
            axis = dims.index("example")
            real = self.batch.real.cpu()  # (B, T)
            both = real[:, :, None] & real[:, None, :]
            shape = [1] * value.dim()
            shape[axis], shape[-2], shape[-1] = both.shape
            value = value.masked_fill(~both.view(shape), float("nan"))
        return xr.DataArray(value.numpy(), dims=dims, coords=coords, name=str(sites.kind))
