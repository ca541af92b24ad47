"""Attention to classes of tokens: what each receives, what is expected by chance, [CLS]'s own.

The classes are given as boolean masks over the batch's tokens; which token is a noun is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.site_context import SiteContext

if TYPE_CHECKING:
    from bertology.model.hooks.instrument import Reducer


@dataclass(frozen=True)
class Groups:
    """Masks of classes over a padded batch, and what is needed to compute expected scores.

    `masks` (B, C, T); `places` (B, T): tokens with the same number have similar positions, and
    random draws exchange them; `words` (B, T): tokens that are neither special nor punctuation.
    """

    masks: Tensor
    places: Tensor
    words: Tensor

    def only(self, rows: Sequence[int]) -> Groups:
        """The same for some rows of the batch."""
        at = list(rows)
        return Groups(self.masks[at], self.places[at], self.words[at])

    @classmethod
    def over(
        cls,
        batch: Batch,
        masks: Sequence[NDArray[np.bool_]],
        places: Sequence[NDArray[np.int64]],
        words: Sequence[NDArray[np.bool_]],
    ) -> Groups:
        """From what is known of each example's tokens (its padding not counted)."""
        real = batch.real
        size, length = real.shape
        out = torch.zeros(size, len(masks[0]), length, dtype=torch.bool)
        at, ordinary = torch.full((size, length), -1), torch.zeros(size, length, dtype=torch.bool)
        for row, where in enumerate(real.cpu()):
            out[row][:, where] = torch.from_numpy(masks[row])
            at[row][where] = torch.from_numpy(places[row])
            ordinary[row][where] = torch.from_numpy(words[row])
        return cls(out.to(real.device), at.to(real.device), ordinary.to(real.device))


class ClassAttention:
    """What each class receives in one batch, by layer and head.

    A token receives the attention from all tokens, divided by the number of tokens. The `score`
    of a class is what its strongest token receives; its `expected` score is the same for as many
    tokens drawn at random from similar positions; its `share` is what all its tokens receive
    together. `words` are the classes whose random tokens are words, `signs` those whose random
    tokens are words or punctuation; other classes have no expected score.
    """

    def __init__(self, groups: Groups, *, words: Sequence[int], signs: Sequence[int]) -> None:
        self._groups, self._words, self._signs = groups, list(words), list(signs)
        self._found: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        real = at.real.float()
        weight = real / real.sum(-1, keepdim=True)
        received = torch.einsum("bhts,bt->bhs", value.float(), weight)
        masks = self._groups.masks
        share = torch.einsum("bhs,bcs->bch", received, masks.float())
        expected = torch.full_like(share, torch.nan, dtype=torch.float64)
        for chosen, among in (
            (self._words, self._groups.words),
            (self._signs, self._groups.places >= 0),
        ):
            if chosen:
                places = self._groups.places.masked_fill(~among, -1)
                expected[:, chosen] = expected_maximum(received, places, masks[:, chosen])
        found = (_largest(received, masks), expected.float(), share)
        self._found[at.layer] = tuple(t.cpu() for t in found)  # type: ignore[assignment]

    def value(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Score, expected score and share, each (B, C, layers, H); NaN where a class is absent."""
        layers = [self._found[i] for i in sorted(self._found)]
        score, expected, share = (torch.stack(t, dim=2).numpy() for t in zip(*layers, strict=True))
        return score, expected, share


class FirstTokenAttention:
    """The first token's ([CLS]) attention to each class in one batch: largest weight and sum."""

    def __init__(self, masks: Tensor, first: Tensor) -> None:
        self._masks, self._first = masks, first  # (B, C, T), and (B, T) True at the first token
        self._found: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        row = torch.einsum("bhts,bt->bhs", value.float(), self._first.float())
        share = torch.einsum("bhs,bcs->bch", row, self._masks.float())
        there = self._first.any(-1)[:, None, None]  # False for a family without [CLS]
        found = (_largest(row, self._masks), share)
        self._found[at.layer] = tuple(  # type: ignore[assignment]
            torch.where(there, t, torch.nan).cpu() for t in found
        )

    def value(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Largest weight and share, each (B, C, layers, H)."""
        layers = [self._found[i] for i in sorted(self._found)]
        score, share = (torch.stack(t, dim=2).numpy() for t in zip(*layers, strict=True))
        return score, share


class Stripes:
    """The token that receives most in each map of a batch: of which class it is, and how much.

    `masks` (B, C, T) are classes of which a token has at most one; one without has the number C.
    """

    def __init__(self, masks: Tensor) -> None:
        self._masks = masks
        self._found: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        real = at.real.float()
        share = real / real.sum(-1, keepdim=True)
        received = torch.einsum("bhts,bt->bhs", value.float(), share)
        most, where = received.max(-1)  # (B, H)
        masks = self._masks.to(value.device)
        number = torch.where(masks.any(1), masks.long().argmax(1), masks.shape[1])  # (B, S)
        self._found[at.layer] = (most.cpu(), number.gather(1, where).cpu())

    def value(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """What it receives and its class, each (B, layers, H)."""
        layers = [self._found[i] for i in sorted(self._found)]
        most, number = (torch.stack(t, dim=1).numpy() for t in zip(*layers, strict=True))
        return most, number


class Several:
    """Several reducers at one site, each given the same values."""

    def __init__(self, reducers: Sequence[Reducer]) -> None:
        self._reducers = list(reducers)

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Pass one layer on."""
        for reducer in self._reducers:
            reducer.update(value, at)


def _largest(received: Tensor, masks: Tensor) -> Tensor:
    """The most that one token of each class receives: (B, C, H); NaN without such a token."""
    columns = []
    for i in range(masks.shape[1]):
        mask = masks[:, None, i]  # (B, 1, S)
        best = received.masked_fill(~mask, -torch.inf).amax(-1)
        columns.append(torch.where(mask.any(-1), best, torch.nan))
    return torch.stack(columns, dim=1)


def expected_maximum(values: Tensor, places: Tensor, masks: Tensor) -> Tensor:
    """The exact expected value of the largest value in a random draw: (B, K, H).

    A draw takes, from the tokens of each place (`places` (B, S), -1 for none), as many as the
    mask (B, K, S) has there. The largest is at most v if all drawn values are; the probability
    of that is a product over places of ratios of binomial coefficients.
    """
    kinds = int(places.max()) + 1
    blank = torch.full((*masks.shape[:2], values.shape[1]), torch.nan, dtype=torch.float64)
    if kinds < 1:
        return blank.to(values.device)
    member = torch.nn.functional.one_hot(places + 1, kinds + 1)[..., 1:]  # (B, S, G)
    totals = member.sum(1)  # (B, G)
    drawn = torch.einsum("bks,bsg->bkg", masks.double(), member.double()).long()
    ways = _log_binomials(int(totals.max()), values.device)
    hidden = values.masked_fill((places < 0)[:, None], -1.0)
    ordered, order = hidden.sort(dim=-1)  # (B, H, S)
    index = order[..., None].expand(*order.shape, kinds)
    below = member[:, None].expand(-1, values.shape[1], -1, -1).gather(2, index).cumsum(2)
    out = []
    for k in range(masks.shape[1]):
        n = drawn[:, k]  # (B, G)
        log = ways[below, n[:, None, None].expand_as(below)] - ways[totals, n][:, None, None]
        at_most = log.sum(-1).exp()  # (B, H, S)
        step = at_most.diff(dim=-1, prepend=torch.zeros_like(at_most[..., :1]))
        mean = (step * ordered.double()).sum(-1)
        out.append(torch.where((n.sum(-1) > 0)[:, None], mean, torch.nan))
    return torch.stack(out, dim=1)


def _log_binomials(most: int, device: torch.device) -> Tensor:
    """(most + 1, most + 1): log of n choose k; -inf where k > n."""
    n = torch.arange(most + 1, dtype=torch.float64, device=device)
    top, bottom = n[:, None], n[None, :]
    rest = top - bottom
    log = torch.lgamma(top + 1) - torch.lgamma(bottom + 1) - torch.lgamma(rest.clamp_min(0) + 1)
    return torch.where(rest >= 0, log, -torch.inf)
