"""The word that each word attends to most, layer by layer: one number for each word and head.

That is all that is needed to count how often heads find linked words, whatever the links are and
whichever way they lead, so that one pass answers for all relations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.model.batch import Batch
from bertology.model.site_context import SiteContext

WordPieces = Sequence[Sequence[int]]  # the pieces of each word
Phrases = Sequence[Sequence[int]]  # the words of each phrase
_BARRED = -1e6  # added to weights, which are sums over a few pieces


class MostAttendedWords:
    """In one batch, by layer and head: the most attended word of each word and phrase.

    Attention to a word is the sum over its pieces, attention from a word the mean over them
    (Clark et al. 2019), attention from a phrase the mean over its words. The source itself does not
    count. Words are the rows of `words`, example by example, each with a piece; pieces of no word
    are special tokens.
    """

    def __init__(
        self, batch: Batch, words: Sequence[WordPieces], phrases: Sequence[Phrases]
    ) -> None:
        real, device = batch.real.cpu().numpy(), batch.real.device
        size, length = real.shape
        self._sizes = [(len(ws), len(ps)) for ws, ps in zip(words, phrases, strict=True)]
        most = max(w for w, _ in self._sizes)
        places = [np.flatnonzero(row) for row in real]  # where the pieces stand
        # Of each example its words, and what stands alone: columns that attention is given to.
        alone = [
            sorted(set(range(len(at))) - {p for group in groups for p in group})
            for at, groups in zip(places, words, strict=True)
        ]
        columns = np.zeros((size, length, most + max(map(len, alone))), np.float32)
        barred = np.zeros((size, most + max(p for _, p in self._sizes), columns.shape[2]), bool)
        barred[:, :most, :most] = np.eye(most, dtype=bool)
        first = np.zeros((size, most), np.int64)
        further: dict[int, list[tuple[int, int, int]]] = {}
        for row, (at, groups) in enumerate(zip(places, words, strict=True)):
            for word, pieces in enumerate(groups):
                first[row, word] = at[pieces[0]]
                columns[row, at[list(pieces)], word] = 1
                for k, piece in enumerate(pieces[1:]):
                    further.setdefault(k, []).append((row, word, int(at[piece])))
            for k, piece in enumerate(alone[row]):
                columns[row, at[piece], most + k] = 1
            barred[row, :, len(groups) : most] = True
            barred[row, :, most + len(alone[row]) :] = True
            for k, phrase in enumerate(phrases[row]):
                barred[row, most + k, list(phrase)] = True
        self._words, self._columns = most, torch.from_numpy(columns).to(device)
        self._bar = torch.from_numpy(np.where(barred, _BARRED, 0).astype(np.float32)).to(device)
        self._first = torch.from_numpy(first).to(device)
        # The second pieces of all words, then the third ones: no row twice in one sum, so that the
        # order of additions, and with it the result, is the same on every device.
        self._further = [torch.tensor(of, device=device).T for of in further.values()]
        self._counts = torch.from_numpy(columns[:, :, :most].sum(1)).to(device).clamp_min(1)
        self._phrases = phrases if any(p for _, p in self._sizes) else None
        self._found: dict[int, Tensor] = {}

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Take one layer: (B, H, T, S)."""
        value = value.float()
        size, heads, _, length = value.shape
        example = torch.arange(size, device=value.device)[:, None]
        rows = value[example, :, self._first]  # (B, W, H, S)
        for row, word, piece in self._further:
            rows[row, word] += value[row, :, piece]
        if self._phrases is not None:
            rows = torch.cat([rows, self._of_phrases(rows)], dim=1)
        # One large product for each example: (R·H, S) @ (S, columns).
        weights = torch.bmm(rows.view(size, -1, length), self._columns)
        weights = weights.view(size, -1, heads, weights.shape[-1])
        weights += self._bar[:, :, None]
        most, word = weights[..., : self._words].max(-1)  # (B, R, H)
        found = word.to(torch.int16)
        if weights.shape[-1] > self._words:
            beaten = weights[..., self._words :].amax(-1) > most
            found = torch.where(beaten, -2 - found, found)
        found[~(most >= 0)] = -1  # also where a head is gone, whose weights are NaN
        self._found[at.layer] = found.cpu()

    def _of_phrases(self, rows: Tensor) -> Tensor:
        """(B, P, H, S): the mean over the words of each phrase, each the mean over its pieces."""
        size, _, heads, length = rows.shape
        most = self._bar.shape[1] - self._words
        found = rows.new_zeros(size, most, heads, length)
        means = rows / self._counts[:, :, None, None]
        for row, phrases in enumerate(self._phrases or ()):
            for k, phrase in enumerate(phrases):
                found[row, k] = means[row, list(phrase)].mean(0)
        return found

    def value(self) -> list[NDArray[np.int16]]:
        """Of each example (words, then phrases; layers; H), once all layers were seen.

        It is the number of the word; -2 less that number where a special token gets more than the
        word; -1 where there is no other word, or the head is gone.
        """
        layers = [self._found[i] for i in sorted(self._found)]
        every = torch.stack(layers, dim=2).numpy()  # (B, R, layers, H)
        phrases = every[:, self._words :]
        return [
            np.concatenate([every[row, :w], phrases[row, :p]]) if p else every[row, :w]
            for row, (w, p) in enumerate(self._sizes)
        ]
