"""Hooks and replaced methods that record and change one run of a model, all undone at its end.

Layers are told apart by counting calls, not by what a module calls itself: ALBERT calls one
module for every layer, and encoder-decoder models number both stacks from 0.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from bertology.errors import CapabilityError
from bertology.model.addressing import AddressedModel
from bertology.model.hooks.attention import IMPLEMENTATION, KEYWORD
from bertology.model.hooks.walking import every_module
from bertology.model.interventions import Intervention
from bertology.model.site_context import SiteContext
from bertology.model.sites import HEAD_KINDS, Kind, Sites
from bertology.model.trace import Trace

_Arguments = tuple[tuple[object, ...], dict[str, object]]  # by position, by name
_Output = Tensor | tuple[Tensor, *tuple[object, ...]]  # of a block: the residual stream is first


class Reducer(Protocol):
    """Is given values during a run and keeps only what it needs of them."""

    def update(self, value: Tensor, at: SiteContext) -> None:
        """See one layer's value of one batch: (B, H, T, …) or (B, T, width)."""
        ...


@dataclass
class _Counter:
    """Which layer of a stack is running, and what it was given."""

    layer: int = -1
    entry: Tensor | None = None


@dataclass
class _Tap:
    """One stack's view of a run."""

    stack: str
    counter: _Counter
    instrument: Instrument

    def watches(self, *kinds: Kind) -> bool:
        return any((self.stack, kind) in self.instrument.watched for kind in kinds)

    def edits(self, kind: Kind) -> bool:
        return bool(self.instrument.edits_at(self.stack, kind, self.counter.layer))

    def visit(
        self,
        kind: Kind,
        value: Tensor,
        *,
        values: Tensor | None = None,
        allowed: Callable[[], Tensor] | None = None,
    ) -> Tensor:
        if self.watches(kind):
            value = self.instrument.visit(self, kind, value, values=values, allowed=allowed)
        if kind is Kind.OUTPUT and self.watches(Kind.CONTRIBUTION):
            self.instrument.contribute(self, value)
        return value


@dataclass
class Instrument:
    """Everything one run was asked to record, reduce and change."""

    encoder: AddressedModel
    edits: Sequence[Intervention]
    records: Sequence[Sites]
    reducers: Sequence[tuple[Sites, Reducer]]
    trace: Trace
    gradients: bool = False
    watched: set[tuple[str, Kind]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._edit_sites = [(s, e) for e in self.edits for s in e.sites(self.encoder)]
        everything = [s for s, _ in self._edit_sites] + list(self.records)
        everything += [s for s, _ in self.reducers]
        self.watched = {(str(s.stack), s.kind) for s in everything}
        self._projected: dict[str, Tensor] = {}
        self.encoder.check_sites(everything)
        if (
            self.gradients
            and any(kind is Kind.CONTRIBUTION for _, kind in self.watched)
            and any(s.projection is None for s in self.encoder.family.stacks.values())
        ):
            raise CapabilityError(
                f"{self.encoder.family.title} has no projection module whose input could be split: "
                "gradients of contributions cannot be computed.",
                hint="Record 'output' instead.",
            )

    # What happens to a value -----------------------------------------------------------------

    def edits_at(self, stack: str, kind: Kind, layer: int) -> list[Intervention]:
        return [
            e
            for s, e in self._edit_sites
            if s.stack == stack and s.kind is kind and layer in s.layers
        ]

    def visit(
        self,
        tap: _Tap,
        kind: Kind,
        value: Tensor,
        *,
        values: Tensor | None = None,
        allowed: Callable[[], Tensor] | None = None,
    ) -> Tensor:
        layer = tap.counter.layer
        by_head, numbering = kind in HEAD_KINDS, self.encoder.numbering
        if by_head:  # pruned layers are seen and edited in the original head numbers
            value = numbering.spread(value, tap.stack, layer, kind)
            if values is not None:
                values = numbering.spread(values, tap.stack, layer, Kind.OUTPUT)
        at = self._context(tap, kind, value)
        at.values, at.allowed = values, allowed
        for edit in self.edits_at(tap.stack, kind, layer):
            value = edit.apply(value, at)
        value = self.see(at, value)
        return numbering.gather(value, tap.stack, layer) if by_head else value

    def _context(self, tap: _Tap, kind: Kind, value: Tensor) -> SiteContext:
        batch = self.trace.batch
        real = batch.real
        if tap.stack != self.encoder.family.main_stack:
            # The decoder's tokens are its own: masked as the caller says, or not at all.
            length = value.shape[2 if kind in HEAD_KINDS else 1]
            given = batch.inputs.get("decoder_attention_mask")
            whole = real.new_ones((value.shape[0], length))
            real = whole if given is None else given.bool()
        entry = tap.counter.entry
        return SiteContext(tap.stack, tap.counter.layer, kind, real, len(batch), entry)

    def see(self, at: SiteContext, value: Tensor) -> Tensor:
        """Record and reduce; in a run with gradients the value becomes a node to ask them of."""
        wanted = [s for s in self.records if self._is_at(s, at)]
        if self.gradients and wanted and not value.requires_grad:
            value = value.detach().requires_grad_()
        for sites in wanted:
            self.trace.keep(sites, at.layer, value)
        for sites, reducer in self.reducers:
            if self._is_at(sites, at):
                partial = at.kind in HEAD_KINDS and len(sites.heads) != value.shape[1]
                seen = value[:, list(sites.heads)] if partial else value
                reducer.update(seen, at)
        return value

    @staticmethod
    def _is_at(sites: Sites, at: SiteContext) -> bool:
        same = sites.stack == at.stack and sites.kind is at.kind
        return same and at.layer in sites.layers

    def contribute(self, tap: _Tap, output: Tensor) -> None:
        """Each head's output through its own slice of the output projection."""
        layer = tap.counter.layer
        weight = self.encoder.projection_weight(layer, tap.stack)  # (H, D, M)
        value = torch.einsum("bhtd,hdm->bhtm", output, weight)
        at = self._context(tap, Kind.CONTRIBUTION, value)
        value = self.encoder.numbering.spread(value, tap.stack, layer, Kind.CONTRIBUTION)
        value = self.see(at, value)
        if self.gradients:
            self._projected[tap.stack] = value.sum(1)

    # Putting it in place ---------------------------------------------------------------------

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Hooks and replaced methods, for the time of one forward pass."""
        with ExitStack() as undo:
            counters: dict[str, _Counter] = {}
            for name, stack in self.encoder.family.stacks.items():
                shared = stack.block in counters
                counter = counters.setdefault(stack.block, _Counter())
                tap = _Tap(name, counter, self)
                if not shared and self.watched:
                    self._hook_blocks(name, tap, undo)
                self._hook_parts(name, tap, undo)
                if tap.watches(*HEAD_KINDS):
                    self._lead_attention(name, tap, undo)
            if any(kind in HEAD_KINDS for _, kind in self.watched):
                undo.enter_context(switched_configs(self.encoder.model, IMPLEMENTATION))
            yield

    def _modules(self, template: str | None, stack: str) -> list[nn.Module]:
        return [] if template is None else self.encoder.unique_modules(template, stack)

    def _hook_blocks(self, name: str, tap: _Tap, undo: ExitStack) -> None:
        stack = self.encoder.family.stacks[name]

        def entering(
            module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
        ) -> _Arguments | None:
            tap.counter.layer += 1
            hidden, put = hidden_argument(args, kwargs)
            value = self._batch_first(hidden)
            if tap.counter.layer == 0:
                new = tap.visit(Kind.EMBEDDINGS, value)
                tap.counter.entry = new
                return put(self._batch_first(new)) if new is not value else None
            tap.counter.entry = value
            return None

        def leaving(module: nn.Module, args: object, output: _Output) -> _Output | None:
            hidden = output[0] if isinstance(output, tuple) else output
            value = self._batch_first(hidden)
            new = tap.visit(Kind.RESIDUAL, value)
            if new is value:
                return None
            hidden = self._batch_first(new)
            return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

        for module in self._modules(stack.block, name):
            undo.callback(module.register_forward_pre_hook(entering, with_kwargs=True).remove)
        if tap.watches(Kind.RESIDUAL):
            for module in self._modules(stack.exit or stack.block, name):
                undo.callback(module.register_forward_hook(leaving).remove)

    def _hook_parts(self, name: str, tap: _Tap, undo: ExitStack) -> None:
        stack = self.encoder.family.stacks[name]

        def projected(module: nn.Module, args: object, output: Tensor) -> Tensor | None:
            summed = self._projected.pop(name, None)
            bias = getattr(module, "bias", None)
            value = output if summed is None else summed if bias is None else summed + bias
            new = tap.visit(Kind.ATTENTION, value)
            return None if new is output else new

        def mlp_out(module: nn.Module, args: object, output: Tensor) -> Tensor | None:
            new = tap.visit(Kind.MLP, self._batch_first(output))
            return None if new is output else self._batch_first(new)

        def mlp_in(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            new = tap.visit(Kind.ACTIVATION, self._batch_first(args[0]))
            return None if new is args[0] else (self._batch_first(new), *args[1:])

        if tap.watches(Kind.ATTENTION) or (self.gradients and tap.watches(Kind.CONTRIBUTION)):
            for module in self._modules(stack.projection, name):
                undo.callback(module.register_forward_hook(projected).remove)
        for module in self._modules(stack.mlp, name):
            if tap.watches(Kind.MLP):
                undo.callback(module.register_forward_hook(mlp_out).remove)
            if tap.watches(Kind.ACTIVATION):
                undo.callback(module.register_forward_pre_hook(mlp_in).remove)

    def _lead_attention(self, name: str, tap: _Tap, undo: ExitStack) -> None:
        family = self.encoder.family
        for module in self._modules(family.stacks[name].attention, name):
            if family.adapter is None:
                hook = _passing(tap)
                undo.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)
            else:
                path, _, function = family.adapter.partition(":")
                methods = getattr(import_module(path), function)(module, tap)
                undo.enter_context(standing_in(module, methods))

    def _batch_first(self, value: Tensor) -> Tensor:
        """Swap time and batch for the families that put time first; its own inverse."""
        return value.transpose(0, 1) if self.encoder.family.time_first else value


def _passing(tap: _Tap) -> Callable[..., _Arguments]:
    def pass_on(
        module: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> _Arguments:
        return args, {**kwargs, KEYWORD: tap}

    return pass_on


@contextmanager
def standing_in(module: nn.Module, methods: Mapping[str, Callable[..., object]]) -> Iterator[None]:
    """Put methods in place of a module's own, on this one module only."""
    before = {name: module.__dict__[name] for name in methods if name in module.__dict__}
    try:
        module.__dict__.update(methods)
        yield
    finally:
        for name in methods:
            module.__dict__.pop(name, None)
        module.__dict__.update(before)


def hidden_argument(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Tensor, Callable[[Tensor], _Arguments]]:
    """The residual stream among a block's arguments, and how to put another in its place."""
    if args:
        return args[0], lambda new: ((new, *args[1:]), kwargs)
    name = next(k for k in ("hidden_states", "output_h", "input") if k in kwargs)
    return kwargs[name], lambda new: (args, {**kwargs, name: new})


@contextmanager
def swapped_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Other tensors in place of some parameters, with all that is tied to them."""
    owners: list[tuple[nn.Module, str, nn.Parameter, nn.Parameter]] = []
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for full_name, tensor in tensors.items():
        old = parameters[full_name]
        new = nn.Parameter(tensor.to(old), requires_grad=old.requires_grad)
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if parameter is old:
                    owners.append((module, name, old, new))
    try:
        for module, name, _, new in owners:
            module._parameters[name] = new
        yield
    finally:
        for module, name, old, _ in owners:
            module._parameters[name] = old


@contextmanager
def switched_configs(model: nn.Module, implementation: str) -> Iterator[None]:
    """Copies of the config that name another attention implementation, the originals untouched.

    Two models may share one config object, so it is never written to.
    """
    copies: dict[int, Any] = {}
    changed: list[tuple[nn.Module, object]] = []
    try:
        for module in every_module(model):
            config = module.__dict__.get("config")
            if config is None:
                continue
            if id(config) not in copies:
                if not hasattr(config, "_attn_implementation"):
                    continue
                copies[id(config)] = copy.copy(config)
                # The property's setter would walk into sub-configs, which the copy still shares.
                copies[id(config)]._attn_implementation_internal = implementation
            changed.append((module, config))
            module.__dict__["config"] = copies[id(config)]
        yield
    finally:
        for module, config in changed:
            module.__dict__["config"] = config
