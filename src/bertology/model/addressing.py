"""Where the parts of a model are: stacks, layers, heads, modules and weights by name and number.

What changes a model, cuts it or looks into it needs no more of an encoder than this.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from torch import Tensor, nn

from bertology.errors import CapabilityError, UnknownNameError
from bertology.model.added_parts import ADAPTERS, added_parts
from bertology.model.compressed.forms import compressed_forms
from bertology.model.families import Capability, Family, family_of
from bertology.model.hooks.walking import submodule
from bertology.model.numbering import HeadNumbering, layers_without_mlp
from bertology.model.shape import Shape
from bertology.model.sites import Kind, Sites

_NEEDED = {
    Kind.PATTERN: Capability.PATTERNS,
    Kind.SCORES: Capability.PATTERNS,
    Kind.QUERY: Capability.QKV,
    Kind.KEY: Capability.QKV,
    Kind.VALUE: Capability.QKV,
    Kind.OUTPUT: Capability.HEADS,
    Kind.CONTRIBUTION: Capability.CONTRIBUTIONS,
    Kind.ATTENTION: Capability.HEADS,
    Kind.RESIDUAL: Capability.RESIDUAL,
    Kind.EMBEDDINGS: Capability.RESIDUAL,
    Kind.MLP: Capability.MLP,
    Kind.ACTIVATION: Capability.MLP,
}


class AddressedModel:
    """A Hugging Face model whose parts have the same names in every family."""

    def __init__(self, model: Any, *, head: str = "base", name: str | None = None) -> None:
        self.model, self.head = model, head
        self.family: Family = family_of(model.config.model_type)
        self.name: str = name or model.config.name_or_path or self.family.title
        self._names: dict[int, str] = {}  # of parameters, by identity; looked up once

    @property
    def config(self) -> Any:
        return self.model.config

    @property
    def base(self) -> nn.Module:
        """The model without its head."""
        base: nn.Module = self.model.base_model
        return base

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each stack."""
        found = {}
        for name, stack in self.family.stacks.items():
            layers = getattr(self.config, stack.layers)
            if self.family.model_type == "albert":
                layers *= self.config.inner_group_num
            heads = getattr(self.config, stack.heads)
            hidden = self.config.hidden_size
            mlp = getattr(self.config, stack.mlp_size, None) if stack.mlp_size else None
            size = getattr(self.config, "d_kv", None) or getattr(self.config, "d_head", None)
            width = getattr(self.config, "true_hidden_size", hidden)
            found[name] = Shape(layers, heads, hidden, size or width // heads, mlp or 4 * hidden)
        return found

    def stack_name(self, stack: str | None) -> str:
        """A stack's name, checked; the main one's when none is given."""
        name = stack or self.family.main_stack
        if name not in self.shapes:
            raise UnknownNameError("stack", name, self.shapes)
        return name

    @property
    def shape(self) -> Shape:
        """The shape of the main stack."""
        return self.shapes[self.family.main_stack]

    @cached_property
    def numbering(self) -> HeadNumbering:
        """Which heads a pruned model still has; an unpruned one has them all."""
        return HeadNumbering(self.config, self.family, self.shapes)

    @cached_property
    def capabilities(self) -> frozenset[Capability]:
        """What this model can give: its family's, less what its head cannot."""
        found = set(self.family.capabilities)
        if self.head not in ("mlm", "pretraining"):
            found.discard(Capability.MASKED_LM)
        if getattr(self.config, "is_decoder", False) and self.family.model_type != "gpt2":
            found.discard(Capability.FAST_REPLAY)
        if self.numbering.removed or layers_without_mlp(self.config):
            found.discard(Capability.FAST_REPLAY)  # it takes all layers to be alike
        if (parts := added_parts(self.config)) or compressed_forms(self.config):
            # They know no adapters, no readers of other layers than the last, no packed weights.
            found -= {Capability.FAST_REPLAY, Capability.PRUNING}
            if ADAPTERS in parts:  # a function of all heads together
                found.discard(Capability.CONTRIBUTIONS)
        return frozenset(found)

    def require(self, *capabilities: Capability | str) -> None:
        """Raise an error, before any work, if this model lacks one of these capabilities."""
        missing = sorted({Capability(c) for c in capabilities} - self.capabilities)
        if missing:
            raise CapabilityError(
                f"{self.name!r} ({self.family.title}, head {self.head!r}) cannot give "
                f"{', '.join(missing)}.",
                hint="Load it with head='mlm'."
                if missing == [Capability.MASKED_LM]
                else "`bertology families` shows what each family can give.",
            )

    def check_sites(self, sites: Iterable[Sites]) -> None:
        """Raise an error for sites that this model does not have."""
        for s in sites:
            self.require(_NEEDED[s.kind])
            if s.one_layer and s.one_head:
                self.numbering.check(str(s.stack), s.layers[0], s.heads[0])
            stack = self.family.stacks[str(s.stack)]
            # Cross-attention lies inside the decoder's blocks: the stream there is the decoder's.
            shares = next(n for n, o in self.family.stacks.items() if o.block == stack.block)
            inside = s.kind in (Kind.RESIDUAL, Kind.EMBEDDINGS) and shares != s.stack
            if (
                inside
                or (s.kind in (Kind.MLP, Kind.ACTIVATION) and stack.mlp is None)
                or (s.kind is Kind.ATTENTION and stack.projection is None)
            ):
                raise CapabilityError(
                    f"{self.family.title} has no site {s.kind.value!r} in its {s.stack} stack."
                )

    def module(self, template: str, layer: int) -> nn.Module:
        """The module a family's path template names for a layer."""
        return submodule(self.base, self.family.path(template, self.config, layer))

    def unique_modules(self, template: str, stack: str) -> list[nn.Module]:
        """All modules a template names, each once, in the order of the layers."""
        layers = range(self.shapes[stack].layers)
        return list(dict.fromkeys(self.module(template, i) for i in layers))

    @property
    def shares_layers(self) -> bool:
        """Whether one module serves several layers, as in ALBERT."""
        block = self.family.stacks[self.family.main_stack].block
        modules = self.unique_modules(block, self.family.main_stack)
        return len(modules) < self.shape.layers

    def parameter_name(self, wanted: nn.Parameter) -> str:
        """The full name of one of the model's parameters, the first where it has several."""
        name = self._names.get(id(wanted))
        if name is None or self.model.get_parameter(name) is not wanted:
            self._names = {id(p): n for n, p in self.model.named_parameters()}
            name = self._names[id(wanted)]
        return name

    def projection_weight(self, layer: int, stack: str | None = None) -> Tensor:
        """The output projection cut into the heads the layer has: (H, D, M)."""
        name = stack or self.family.main_stack
        row, shape = self.family.stacks[name], self.shapes[name]
        if row.projection is None:  # XLNet keeps it as a bare parameter (M, H, D)
            return self.module(row.attention, layer).get_parameter("o").permute(1, 2, 0)
        module: Any = self.module(row.projection, layer)
        # (H·D, M); Conv1D, which has no `in_features`, already lies this way
        weight: Tensor = module.weight.T if hasattr(module, "in_features") else module.weight
        return weight.reshape(-1, shape.head_size, weight.shape[-1])
