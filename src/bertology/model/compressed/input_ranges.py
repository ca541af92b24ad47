"""Between which numbers the inputs of maps lie, learnt from texts.

A range that is known before makes the answer to a text the same alone, in company and padded. It is
seen on real tokens only. In a training it follows the batches slowly, as the weights change (a
running mean, as in Q8BERT); of a model as it is, all texts count alike, and the ends are the
furthest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bertology.model.compressed import early_exit
from bertology.model.compressed.integer_product import Range
from bertology.model.compressed.written import named_maps, written_forms
from bertology.model.hooks.walking import evaluating

NAME = "input_range"  # of the stored tensor of a map
_KEPT = 0.99  # of a running range, with each batch


def empty_range() -> Range:
    """One of which nothing is known."""
    return torch.zeros(2)


@dataclass(eq=False)
class RealTokens:
    """Which tokens of the batch that is read now are real."""

    mask: Tensor | None = None  # (B, T)

    @contextmanager
    def followed(self, model: nn.Module) -> Iterator[RealTokens]:
        """Inside, every pass of the model says it."""
        hook = model.register_forward_pre_hook(self._note, with_kwargs=True)
        try:
            yield self
        finally:
            hook.remove()
            self.mask = None

    def _note(self, module: nn.Module, given: object, named: Mapping[str, Any]) -> None:
        found = named.get("attention_mask")
        self.mask = found if isinstance(found, Tensor) and found.dim() == 2 else None

    def only(self, states: Tensor) -> Tensor:
        """The states with zeros for padding; zero is in every range."""
        if self.mask is None or states.shape[:-1] != self.mask.shape:
            return states  # of one token for each text, or of those that are left
        return states.masked_fill(~self.mask.bool()[..., None], 0)


def seen_range(states: Tensor) -> Range:
    """The least and the largest of these inputs, and zero."""
    held = states.detach().float()
    return torch.stack([held.min().clamp(max=0), held.max().clamp(min=0)])


def _widened(span: Range, seen: Range) -> Range:
    """Both ranges in one."""
    return torch.stack([torch.minimum(span[0], seen[0]), torch.maximum(span[1], seen[1])])


def followed_slowly(span: Range, seen: Range) -> Range:
    """The running mean of ranges; the first one seen is taken as it is."""
    return torch.where(span[1] > span[0], _KEPT * span + (1 - _KEPT) * seen, seen)


def watched_ranges(
    model: Any, batches: Iterable[Mapping[str, Tensor]], *, maps: str = "all"
) -> dict[str, Range]:
    """The ranges of the inputs of all maps, over these batches. The model answers as ever.

    Where texts may leave early, all of them are read by all layers here, and by all exits.
    """
    found: dict[str, Range] = {}
    exits = any(one["form"] == early_exit.FORM for one in written_forms(model.config))
    with ExitStack() as held:
        held.enter_context(evaluating(model))
        held.enter_context(torch.no_grad())
        real = held.enter_context(RealTokens().followed(model))
        for name, module in named_maps(model, maps):
            if isinstance(module, nn.Linear):
                hook = module.register_forward_pre_hook(_watch(found, name, real))
                held.callback(hook.remove)
        for inputs in batches:
            if exits:
                early_exit.all_logits(model, **inputs)
            else:
                model(**inputs)
    return found


def _watch(
    found: dict[str, Range], name: str, real: RealTokens
) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
    def watch(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        if given[0].numel():
            seen = seen_range(real.only(given[0]))
            found[name] = _widened(found.get(name, seen), seen)

    return watch
