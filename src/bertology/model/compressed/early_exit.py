"""A classifier that answers after the first layer that is sure enough (as in DeeBERT).

Some layers have a head of their own. When a model is evaluated, a row leaves after the first of
them whose answer has an entropy below the limit; the layers above see only the rows that are left,
and none of them runs when all have left. In training all rows go through all layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from bertology.errors import BertologyError, CapabilityError
from bertology.model.compressed.layers import layer_list
from bertology.model.compressed.written import KEY, check_new, misfit, write_form, written_forms

FORM = "early_exit"
EXITS = "early_exits"  # what the heads are called in the base model
_SPREAD = 0.02  # of first weights


class EarlyExit(nn.Module):
    """A head over the first token's state, like that of BERT."""

    def __init__(self, hidden: int, labels: int) -> None:
        super().__init__()
        self.dense, self.out = nn.Linear(hidden, hidden), nn.Linear(hidden, labels)

    def forward(self, states: Tensor) -> Tensor:
        """(B, T, hidden) -> (B, labels)"""
        logits: Tensor = self.out(self.dense(states[:, 0]).tanh())
        return logits

    def draw(self, generator: torch.Generator | None) -> None:
        """First weights: small ones."""
        with torch.no_grad():
            for linear in (self.dense, self.out):
                drawn = torch.empty(linear.weight.shape).normal_(0, _SPREAD, generator=generator)
                linear.weight.copy_(drawn)
                linear.bias.zero_()


@dataclass(eq=False)
class _Passage:
    """What is known in one pass."""

    entropy: float
    leaving: bool = False  # whether rows leave in this pass
    rows: Tensor | None = None  # (left,): which rows of the batch are still here; None for all
    answers: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # rows, logits
    seen: list[Tensor] | None = None  # the logits of all exits, when they are asked for


class EarlyExits(nn.Module):
    """The heads of all exits, in the order of their layers."""

    def __init__(self, layers: list[int], hidden: int, labels: int, entropy: float) -> None:
        super().__init__()
        self.layers = layers
        self.heads = nn.ModuleList(EarlyExit(hidden, labels) for _ in layers)
        self.passage = _Passage(entropy)


def add_exits(
    model: Any,
    layers: Sequence[int],
    *,
    entropy: float = 0.3,
    generator: torch.Generator | None = None,
) -> Any:
    """Give some layers of a classifier heads of their own, which still have to be trained.

    `entropy` is in nats: 0 lets no row leave, and from log(labels) on all leave at the first exit.
    """
    chosen = sorted(set(layers))
    if not _fits(chosen, len(layer_list(model))):
        raise BertologyError(
            f"Exits stand after layers below the last one, of the {len(layer_list(model))} from 0; "
            f"not after {list(layers)!r:.60}."
        )
    if int(model.config.num_labels) < 2 or model is model.base_model:
        raise CapabilityError("Only a classifier with two labels or more can leave early.")
    check_new(model, FORM, "eliminated_tokens", "shared_layers")
    _check_entropy(entropy)
    put_in(model, layers=chosen, entropy=float(entropy))
    exits = exits_of(model)
    for head in exits.heads:
        assert isinstance(head, EarlyExit)
        head.draw(generator)
    first = next(iter(model.parameters()))
    exits.to(first.device, first.dtype)
    write_form(model, FORM, layers=chosen, entropy=float(entropy))
    return model


def put_in(model: Any, layers: list[int], entropy: float) -> None:
    """Heads without their weights, and layers that know when a row may leave."""
    held = layer_list(model)
    if not _fits(layers, len(held)) or type(entropy) is not float or not entropy >= 0:
        raise misfit(f"of {FORM!r}, layers are {layers!r:.60} and entropy {entropy!r:.20}")
    hidden, labels = int(model.config.hidden_size), int(model.config.num_labels)
    exits = EarlyExits(layers, hidden, labels, entropy)
    model.base_model.add_module(EXITS, exits)
    heads = dict(zip(layers, exits.heads, strict=True))
    for number, layer in enumerate(held):
        usual = layer.__dict__.get("forward")  # where it has one of its own already
        layer.forward = _Stage(layer, heads.get(number), exits.passage, usual)
    if model is not model.base_model:
        model.register_forward_pre_hook(_Begin(exits.passage), with_kwargs=True)
        model.register_forward_hook(_Answer(exits.passage))


def exits_of(model: Any) -> EarlyExits:
    """The heads of a model's exits."""
    found = getattr(model.base_model, EXITS, None)
    if not isinstance(found, EarlyExits):
        raise CapabilityError("The model has no early exits.", hint="add_exits gives it some.")
    return found


def set_entropy(model: Any, entropy: float) -> None:
    """Another limit below which a row leaves; also in the config."""
    _check_entropy(entropy)
    exits_of(model).passage.entropy = float(entropy)
    forms = [
        one | ({"entropy": float(entropy)} if one["form"] == FORM else {})
        for one in written_forms(model.config)
    ]
    setattr(model.config, KEY, forms)


def all_logits(model: Any, **inputs: Tensor) -> list[Tensor]:
    """The logits of each exit and then those of the model's own head; no row leaves."""
    passage = exits_of(model).passage
    passage.seen = []
    try:
        last: Tensor = model(**inputs).logits
        return [*passage.seen, last]
    finally:
        passage.seen = None


def _fits(layers: object, count: int) -> bool:
    if not isinstance(layers, list) or not layers:
        return False
    whole = all(type(i) is int and 0 <= i < count - 1 for i in layers)
    return whole and layers == sorted(set(layers))


def _check_entropy(entropy: float) -> None:
    if not isinstance(entropy, float | int) or not entropy >= 0:
        raise BertologyError(f"entropy must be a number of nats, 0 or more, not {entropy!r:.40}.")


@dataclass(eq=False)
class _Stage:
    """A layer that only sees the rows that are left, and the exit after it."""

    layer: nn.Module
    head: nn.Module | None
    passage: _Passage
    usual: Callable[..., Tensor] | None = None  # the layer's own way, unless that of its class

    def __call__(self, states: Tensor, *given: Any, **named: Any) -> Tensor:
        rows = self.passage.rows
        if rows is not None:
            if not len(rows):
                return states
            given = tuple(_of_rows(value, rows) for value in given)
            named = {name: _of_rows(value, rows) for name, value in named.items()}
        if self.usual is not None:
            output = self.usual(states, *given, **named)
        else:
            output = type(self.layer).forward(self.layer, states, *given, **named)
        if self.head is None:
            return output
        if self.passage.seen is not None:
            self.passage.seen.append(self.head(output))
            return output
        return self._left(output) if self.passage.leaving else output

    def _left(self, states: Tensor) -> Tensor:
        """Those rows whose answer is not sure yet."""
        assert self.head is not None
        logits: Tensor = self.head(states)  # (B, labels)
        shares = logits.float().softmax(-1)
        sure = torch.special.entr(shares).sum(-1) < self.passage.entropy
        if not bool(sure.any()):
            return states
        rows = self.passage.rows
        if rows is None:
            rows = torch.arange(len(states), device=states.device)
        self.passage.answers.append((rows[sure], logits[sure]))
        self.passage.rows = rows[~sure]
        return states[~sure]


def _of_rows(value: Any, rows: Tensor) -> Any:
    """Masks have a row for each row of the batch, or one for all of them."""
    if not isinstance(value, Tensor) or value.dim() < 2 or len(value) == 1:
        return value
    return value[rows]


@dataclass(eq=False)
class _Begin:
    """Before a pass: all rows are here."""

    passage: _Passage

    def __call__(self, module: nn.Module, given: object, named: Mapping[str, Any]) -> None:
        passage = self.passage
        passage.rows, passage.answers = None, []
        passage.leaving = not module.training and passage.seen is None
        if passage.leaving and named.get("labels") is not None:
            raise CapabilityError(
                "A model with early exits gives answers, but no loss, outside of training.",
                hint="Compute the loss from its logits.",
            )


@dataclass(eq=False)
class _Answer:
    """After a pass: the answers of all rows, wherever they left."""

    passage: _Passage

    def __call__(self, module: nn.Module, given: object, output: Any) -> Any:
        rows, answers = self.passage.rows, self.passage.answers
        self.passage.rows, self.passage.answers = None, []
        if rows is None:
            return output
        last = output[0]
        count = len(rows) + sum(len(some) for some, _ in answers)
        logits = last.new_zeros((count, last.shape[-1]))
        for some, given_there in [(rows, last), *answers]:
            logits = logits.index_copy(0, some, given_there)
        if isinstance(output, tuple):
            return (logits, *output[1:])
        output["logits"] = logits
        return output
