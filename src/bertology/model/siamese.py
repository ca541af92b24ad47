"""A model that reads the two texts of a pair apart, and compares what it made of each.

As in InferSent and Sentence-BERT: both texts go through the same encoder, each by itself; the mean
states u and v, |u - v| and u * v are mapped to one state, which the classifier reads in place of
that of [CLS]. Rows come as pairs, as for any model, and are taken apart here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bertology.errors import CapabilityError

_SPREAD = 0.02  # of first weights


class PairTokens(NamedTuple):
    """The tokens by which a row shows where its texts begin and end."""

    first: int
    separator: int
    padding: int


def split_pairs(ids: Tensor, mask: Tensor, tokens: PairTokens) -> tuple[Tensor, Tensor]:
    """Rows of pairs (B, T) as rows of single texts (2 B, T), all first ones first, and their mask.

    `[CLS] a [SEP] b [SEP]` becomes `[CLS] a [SEP]` and `[CLS] b [SEP]`. On a CPU rows end with the
    longest of them; elsewhere asking for its length would wait for the device, and a file that is
    made of the model cannot ask.
    """
    width = ids.shape[1]
    place = torch.arange(width, device=ids.device)[None]  # (1, T)
    real = mask.bool()
    length = real.sum(1, keepdim=True)  # (B, 1)
    ends = (ids == tokens.separator) & real
    end = ends.int().argmax(1, keepdim=True)  # (B, 1): the first separator
    after = ids.gather(1, (end + 1).clamp(max=width - 1)) == tokens.separator
    start = end + 1 + after.int()  # RoBERTa has two separators between texts
    at = start + place - 1
    second = ids.gather(1, at.clamp(0, width - 1))
    second = torch.where(place == 0, tokens.first, second)
    inside = torch.cat([(place <= end) & real, (place == 0) | (at < length)])
    rows = torch.where(inside, torch.cat([ids, second]), tokens.padding)
    if ids.device.type == "cpu" and not torch.compiler.is_compiling():
        longest = int(inside.sum(1).max())
        rows, inside = rows[:, :longest], inside[:, :longest]
    return rows, inside.to(mask.dtype)


class Siamese(nn.Module):
    """From the mean states of two texts to one state."""

    def __init__(self, hidden: int, tokens: PairTokens) -> None:
        super().__init__()
        self.tokens = tokens
        self.map = nn.Linear(4 * hidden, hidden)
        self.mask: Tensor | None = None  # of the rows that the encoder reads now

    def draw(self, generator: torch.Generator) -> None:
        """First weights: small ones."""
        with torch.no_grad():
            self.map.weight.normal_(0.0, _SPREAD, generator=generator)
            self.map.bias.zero_()

    def forward(self, states: Tensor) -> Tensor:
        """(2 B, T, hidden) -> (B, hidden)."""
        assert self.mask is not None
        inside = self.mask[..., None].to(states.dtype)
        u, v = ((states * inside).sum(1) / inside.sum(1)).chunk(2)  # (B, hidden) each
        compared: Tensor = self.map(torch.cat([u, v, (u - v).abs(), u * v], dim=-1))
        return compared.tanh()


@dataclass(eq=False)
class _TakeApart:
    """Before the encoder: two rows in place of each."""

    reader: Siamese

    def __call__(
        self, module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        inputs = dict(named)
        ids = given[0] if given else inputs.get("input_ids")
        if ids is None or inputs.get("attention_mask") is None:
            raise CapabilityError("A Siamese model reads tokens with their mask, nothing else.")
        rows, mask = split_pairs(ids, inputs["attention_mask"], self.reader.tokens)
        self.reader.mask = mask
        inputs |= {"input_ids": rows, "attention_mask": mask}
        if inputs.get("token_type_ids") is not None:
            inputs["token_type_ids"] = torch.zeros_like(rows)
        return (), inputs


@dataclass(eq=False)
class _Compare:
    """After the encoder: one state in place of those of two texts."""

    reader: Siamese

    def __call__(self, module: nn.Module, given: object, output: Any) -> Any:
        state = self.reader(output[0])
        self.reader.mask = None
        if isinstance(output, tuple):
            return (state[:, None], state)
        output["last_hidden_state"] = state[:, None]
        if output.get("pooler_output") is not None:
            output["pooler_output"] = state
        return output


def add_siamese(base: nn.Module, name: str, hidden: int, tokens: PairTokens) -> None:
    """Let an encoder take pairs apart; `name` is what the new module is called in it."""
    reader = Siamese(hidden, tokens)
    base.add_module(name, reader)
    base.register_forward_pre_hook(_TakeApart(reader), with_kwargs=True)
    base.register_forward_hook(_Compare(reader))
