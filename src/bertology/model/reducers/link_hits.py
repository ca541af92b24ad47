"""How often a head's most attended word, seen from a word, is the word it is linked with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.site_context import SiteContext

WordPieces = Sequence[Sequence[int]]  # the pieces of each word
WordLinks = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]  # source and target words


@dataclass(frozen=True)
class LinkedWords:
    """The links of a padded batch. W: one column for each word, then one for each special token."""

    queries: Tensor  # (B, K, T) weights of a link's source pieces; 0 for links that are not there
    members: Tensor  # (B, T, W) which piece belongs to which word
    sources: Tensor  # (B, K, W)
    targets: Tensor  # (B, K, W)
    special: Tensor  # (B, W)
    absent: Tensor  # (B, W) words without a piece, and columns that this example does not use

    @classmethod
    def over(
        cls, batch: Batch, words: Sequence[WordPieces], links: Sequence[WordLinks]
    ) -> LinkedWords:
        """From each example's words (as pieces, padding not counted) and its links of words."""
        real = batch.real.cpu()
        size, length = real.shape
        at = [torch.flatten(torch.nonzero(row)) for row in real]  # where the pieces stand
        alone = [sorted(set(range(len(a))) - {p for w in ws for p in w}) for a, ws in
                 zip(at, words, strict=True)]  # fmt: skip
        columns = max(len(ws) + len(s) for ws, s in zip(words, alone, strict=True))
        most = max(1, *(len(k) for k in links))
        queries = torch.zeros(size, most, length)
        members = torch.zeros(size, length, columns)
        sources, targets = (torch.zeros(size, most, columns, dtype=torch.bool) for _ in range(2))
        special = torch.zeros(size, columns, dtype=torch.bool)
        for row in range(size):
            groups = [*words[row], *([p] for p in alone[row])]
            for column, pieces in enumerate(groups):
                members[row, at[row][list(pieces)], column] = 1
            special[row, len(words[row]) : len(groups)] = True
            for k, (source, target) in enumerate(links[row]):
                for word in source:
                    pieces = list(words[row][word])
                    queries[row, k, at[row][pieces]] += 1 / len(pieces) / len(source)
                sources[row, k, list(source)] = True
                targets[row, k, list(target)] = True
        absent = members.sum(1) == 0
        made = (queries, members, sources, targets, special, absent)
        return cls(*(t.to(batch.real.device) for t in made))


class MostAttended:
    """In one batch, by layer and head: is the most attended word the target of the link?

    Attention to a word is the sum over its pieces, attention from a word the mean over them
    (Clark et al. 2019). The source itself does not count, nor do special tokens.
    """

    def __init__(self, linked: LinkedWords) -> None:
        self._linked = linked
        self._found: dict[int, Tensor] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        of = self._linked
        rows = of.queries[:, None].to(value.device) @ value.float()  # (B, H, K, S)
        weights = rows @ of.members[:, None]  # (B, H, K, W)
        barred = (of.sources | (of.absent | of.special)[:, None])[:, None]
        self._found[at.layer] = self._share(weights.masked_fill(barred, -1.0))

    def _share(self, weights: Tensor) -> Tensor:
        """(B, H): hits over links."""
        best = weights.argmax(-1, keepdim=True)  # (B, H, K, 1)
        targets = self._linked.targets[:, None].expand(weights.shape)
        hits = targets.gather(-1, best)[..., 0].float()
        there = self._linked.targets.any(-1)[:, None].float()  # (B, 1, K)
        return ((hits * there).sum(-1) / there.sum(-1)).cpu()  # 0 / 0 is NaN, as it should be

    def value(self) -> NDArray[np.float32]:
        """(B, layers, H): the share of each example's links; NaN without a link."""
        layers = [self._found[i] for i in sorted(self._found)]
        found: NDArray[np.float32] = torch.stack(layers, dim=1).numpy()
        return found
