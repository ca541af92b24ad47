"""Parts that a model of transformers does not have: adapters, and other ways to read its layers.

Which parts a model has stands in its config: `bertology_added_parts = {"adapters": {"size": 16}}`.
They are put into the modules that are there, so every other weight keeps its name; training and
loading (`loading/pruning.py`) both do it with `add_part`. Hooks are objects that hold their module,
not closures: so a deep copy of a model has hooks of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.errors import CapabilityError, ModelError
from bertology.model.families import Capability, Stack, family_of
from bertology.model.hooks.walking import submodule
from bertology.model.siamese import PairTokens, Siamese, add_siamese

KEY = "bertology_added_parts"
READER = "layer_reader"  # what the module is called that reads the layers
ADAPTERS, SIAMESE = "adapters", "siamese"
_ADAPTER = "adapter"
_SPREAD = 0.02  # of an adapter's first map


def added_parts(config: object) -> dict[str, dict[str, Any]]:
    """Which parts a model has that its family has not, with their options."""
    written = getattr(config, KEY, None) or {}
    known = isinstance(written, dict) and all(
        name in _PARTS and isinstance(options, dict) for name, options in written.items()
    )
    if not known:
        raise ModelError(
            f"The config's {KEY!r} does not fit: {written!r}.",
            hint=f"It maps some of {', '.join(_PARTS)} to their options.",
        )
    return dict(written)


def check_one_pass(config: object) -> None:
    """Refuse to look into a model that takes two passes for one input."""
    if SIAMESE in added_parts(config):
        raise CapabilityError(
            "A Siamese model reads the two texts of a pair apart: there is no one pass over a pair "
            "that could be looked into.",
            hint="It can be scored: bertology score.",
        )


def put_in_parts(model: Any) -> None:
    """Give a model that was just made the parts that its config names, without their weights."""
    for name, options in added_parts(model.config).items():
        try:
            _PARTS[name](_Places.of(model), **options)
        except TypeError as error:
            raise ModelError(
                f"The config's {KEY!r} does not fit: {name} has no such options {options!r}.",
            ) from error


def add_part(model: Any, name: str, generator: torch.Generator, **options: Any) -> list[str]:
    """Add a part, write it into the config, and say what its new weights are called.

    New adapters leave the model's output as it was; a part that reads other layers does not.
    """
    had = added_parts(model.config)
    alike = [other for other in had if _is_reader(other) == _is_reader(name)]
    if alike:
        raise CapabilityError(
            f"The model has a part {alike[0]!r} already, so {name!r} cannot be added.",
            hint="Begin with a model without it.",
        )
    before = {n for n, _ in model.named_parameters()}
    _PARTS[name](_Places.of(model), **options)
    where = next(iter(model.parameters())).device
    new = [n for n, _ in model.named_parameters() if n not in before]
    for module in model.modules():
        new_here = {ADAPTERS: Adapter, SIAMESE: Siamese}.get(name)
        if isinstance(module, Adapter | Siamese) and type(module) is new_here:
            module.draw(generator)
        if isinstance(module, Adapter | _Reader | Siamese):
            module.to(where)
    setattr(model.config, KEY, had | {name: options})
    return new


@dataclass(frozen=True)
class _Places:
    """Where a model has what parts are put into."""

    base: nn.Module
    stack: Stack
    layers: int
    hidden: int

    @classmethod
    def of(cls, model: Any) -> _Places:
        config: Any = model.config
        family = family_of(config.model_type)
        stack = family.stacks[family.main_stack]
        # The same families as can lose layers: each layer is a module of its own, in plain order.
        plain = Capability.FAST_REPLAY in family.capabilities
        plain = plain and "{i}" in stack.block  # ALBERT's layers share theirs
        if not plain or stack.projection is None or stack.mlp is None:
            raise CapabilityError(
                f"{family.title} models cannot have parts added.",
                hint="BERT, RoBERTa, ELECTRA, DistilBERT and their like can.",
            )
        base: nn.Module = model.base_model
        return cls(base, stack, int(getattr(config, stack.layers)), int(config.hidden_size))

    def each(self, template: str) -> Iterator[nn.Module]:
        for i in range(self.layers):
            yield submodule(self.base, template.format(i=i))

    @property
    def container(self) -> nn.Module:
        """The module that runs all layers: `encoder` of `encoder.layer.{i}`."""
        return submodule(self.base, self.stack.block.rsplit(".", 2)[0])


# Adapters ----------------------------------------------------------------------------------------


class Adapter(nn.Module):
    """A bottleneck beside the identity (Houlsby et al. 2019); it begins as the identity."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, size), nn.Linear(size, width)

    def forward(self, states: Tensor) -> Tensor:
        """(B, T, width) -> the same."""
        inner = functional.gelu(self.down(states))  # (B, T, size)
        change: Tensor = self.up(inner)
        return states + change

    def draw(self, generator: torch.Generator) -> None:
        """First weights: a random map down, and nothing comes up."""
        with torch.no_grad():
            self.down.weight.normal_(0.0, _SPREAD, generator=generator)
            for zero in (self.down.bias, self.up.weight, self.up.bias):
                zero.zero_()


def _adapted(module: nn.Module, given: object, output: Tensor) -> Tensor:
    adapter: Callable[[Tensor], Tensor] = getattr(module, _ADAPTER)
    return adapter(output)


def _add_adapters(places: _Places, size: int) -> None:
    """One after the attention's and one after the MLP's last map, before they are added."""
    assert places.stack.projection is not None
    assert places.stack.mlp is not None
    for template in (places.stack.projection, places.stack.mlp):
        for module in places.each(template):
            if not isinstance(module, nn.Linear):
                raise CapabilityError(f"There is a {type(module).__name__} in place of a Linear.")
            module.add_module(_ADAPTER, Adapter(module.out_features, size))
            module.register_forward_hook(_adapted)


# Readers of layers -------------------------------------------------------------------------------


class _Reader(nn.Module):
    """Makes one state of those of all layers; what comes after the layers reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []  # states of this pass, layer by layer

    def forward(self, states: list[Tensor]) -> Tensor:
        """States (B, T, hidden) of all layers, the lowest first -> one such state."""
        raise NotImplementedError


class _Mix(_Reader):
    """A mean of all layers with weights that are learnt, and a learnt scale (as in ELMo)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, states: list[Tensor]) -> Tensor:
        shares = self.weights.softmax(0)
        mixed = sum(share * state for share, state in zip(shares, states, strict=True))
        assert isinstance(mixed, Tensor)
        return self.scale * mixed


class _Mean(_Reader):
    """The plain mean of some layers; of one layer, its state."""

    def __init__(self, layers: list[int]) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, states: list[Tensor]) -> Tensor:
        return torch.stack([states[i] for i in self.layers]).mean(0)


class _Joined(_Reader):
    """Some layers side by side, and a map of them that is learnt; it begins as their mean."""

    def __init__(self, layers: list[int], hidden: int) -> None:
        super().__init__()
        self.layers = layers
        self.map = nn.Linear(len(layers) * hidden, hidden)
        with torch.no_grad():
            self.map.bias.zero_()
            self.map.weight.copy_(torch.eye(hidden).repeat(1, len(layers)) / len(layers))

    def forward(self, states: list[Tensor]) -> Tensor:
        joined: Tensor = self.map(torch.cat([states[i] for i in self.layers], dim=-1))
        return joined


@dataclass(eq=False)
class _Forget:
    """Before a pass: what a pass that failed had seen goes."""

    reader: _Reader

    def __call__(self, module: nn.Module, given: object) -> None:
        self.reader.seen.clear()


@dataclass(eq=False)
class _Note:
    """What a layer is given is the state of the layer below, whatever was changed there."""

    reader: _Reader

    def __call__(
        self, module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any], output: object
    ) -> None:
        self.reader.seen.append(given[0] if given else named["hidden_states"])


@dataclass(eq=False)
class _Read:
    """After the layers: another state in place of the last one's."""

    reader: _Reader

    def __call__(self, module: nn.Module, given: object, output: Any) -> Any:
        states = [*self.reader.seen, output[0]]
        self.reader.seen.clear()
        if isinstance(output, tuple):
            return (self.reader(states), *output[1:])
        output["last_hidden_state"] = self.reader(states)
        return output


def _add_reader(places: _Places, reader: _Reader) -> None:
    container = places.container
    container.add_module(READER, reader)
    container.register_forward_pre_hook(_Forget(reader))
    for layer in list(places.each(places.stack.block))[1:]:
        layer.register_forward_hook(_Note(reader), with_kwargs=True)
    container.register_forward_hook(_Read(reader))


def _add_mix(places: _Places) -> None:
    _add_reader(places, _Mix(places.layers))


def _add_choice(places: _Places, layers: list[int], how: str) -> None:
    joined = how == "joined"
    _add_reader(places, _Joined(layers, places.hidden) if joined else _Mean(layers))


def _add_siamese(places: _Places, first: int, separator: int, padding: int) -> None:
    add_siamese(places.base, READER, places.hidden, PairTokens(first, separator, padding))


_PARTS: Mapping[str, Callable[..., None]] = {
    ADAPTERS: _add_adapters,
    "layer_mix": _add_mix,
    "layer_choice": _add_choice,
    SIAMESE: _add_siamese,
}


def _is_reader(name: str) -> bool:
    return name != ADAPTERS
