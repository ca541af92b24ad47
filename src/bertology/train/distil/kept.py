"""A teacher's answers to all examples, side by side in flat arrays: in memory or on disk.

What is known of an example once is a row; what is known of each token is a row for each token, and
so for each pair of tokens. Batches gather their rows, whatever they are padded to. On disk the
arrays are memory maps, filled batch by batch: a process that was killed goes on after the last one
it noted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertology.drafts import alone_with
from bertology.errors import StoreError
from bertology.train.distil.seen import FIRST, LOGITS, SCORES, STATES, VALUES

_PER_EXAMPLE, _PER_TOKEN, _PER_PAIR = (LOGITS, FIRST), (STATES,), (SCORES, VALUES)
_NOTED_EVERY = 20  # batches

Answers = Callable[[Sequence[int]], tuple[dict[str, Tensor], Tensor]]
"""From examples to what the teacher says of them, and which of their tokens are real."""


@dataclass(frozen=True)
class Layout:
    """How large each answer is, and how long each example."""

    widths: Mapping[str, tuple[int, ...]]
    """Of one row: (classes,), (layers, hidden), (layers, heads)."""
    lengths: Tensor
    """(N,) tokens."""

    def rows(self, name: str) -> int:
        """How many rows the array has."""
        if name in _PER_EXAMPLE:
            return len(self.lengths)
        return int((self.lengths if name in _PER_TOKEN else self.lengths**2).sum())

    @property
    def bytes(self) -> int:
        """All of it, in float32."""
        return sum(4 * self.rows(n) * int(np.prod(w)) for n, w in self.widths.items())


@dataclass(frozen=True)
class Kept:
    """The arrays, and how batches find their rows."""

    layout: Layout
    arrays: Mapping[str, Tensor]

    @cached_property
    def _begins(self) -> tuple[Tensor, Tensor, Tensor]:
        """Lengths, and where the rows of each example begin; moved to the arrays once."""
        lengths = self.layout.lengths.to(self._where)
        squares = lengths**2
        return lengths, lengths.cumsum(0) - lengths, squares.cumsum(0) - squares

    @property
    def _where(self) -> torch.device:
        return next(iter(self.arrays.values())).device

    def put(self, chosen: Sequence[int], answers: Mapping[str, Tensor], real: Tensor) -> None:
        """Keep the answers to these examples."""
        numbers, real = torch.tensor(chosen, device=self._where), real.to(self._where)
        for name, array in self.arrays.items():
            places, inside = self._places(name, numbers, real)
            rows = _rows_first(name, answers[name].to(self._where))
            array[places[inside]] = rows[inside].to(array.dtype)

    def batch(self, chosen: Sequence[int], real: Tensor) -> dict[str, Tensor]:
        """The answers to these examples, as padded as `real` (B, T) is, and where it is."""
        numbers = torch.tensor(chosen).to(self._where, non_blocking=True)
        at = real.to(self._where)
        found = {}
        for name, array in self.arrays.items():
            places, inside = self._places(name, numbers, at)
            rows = array[places] * inside.view(*inside.shape, *[1] * (array.dim() - 1))
            found[name] = _rows_last(name, rows).to(real.device, non_blocking=True)
        return found

    def _places(self, name: str, numbers: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Which row is whose: (B,), (B, T) or (B, T, T), and where there is one at all."""
        if name in _PER_EXAMPLE:
            return numbers, torch.ones_like(numbers).bool()
        lengths, tokens, pairs_at = self._begins
        j = (real.long().cumsum(1) - 1).clamp(min=0)  # (B, T)
        if name in _PER_TOKEN:
            return torch.where(real, tokens[numbers][:, None] + j, 0), real
        starts, length = pairs_at[numbers], lengths[numbers]
        pairs = real[:, :, None] & real[:, None]  # (B, T, T)
        places = starts[:, None, None] + j[:, :, None] * length[:, None, None] + j[:, None]
        return torch.where(pairs, places, 0), pairs


def _rows_first(name: str, answers: Tensor) -> Tensor:
    """(B, K, T, hidden) -> (B, T, K, hidden), (B, K, heads, T, T) -> (B, T, T, K, heads)."""
    if name in _PER_EXAMPLE:
        return answers
    return answers.transpose(1, 2) if name in _PER_TOKEN else answers.permute(0, 3, 4, 1, 2)


def _rows_last(name: str, rows: Tensor) -> Tensor:
    """The way back."""
    if name in _PER_EXAMPLE:
        return rows
    return rows.transpose(1, 2) if name in _PER_TOKEN else rows.permute(0, 3, 4, 1, 2)


def fill_memory(
    layout: Layout, device: torch.device, batches: Sequence[list[int]], answers: Answers
) -> Kept:
    """Ask about all examples, and keep the answers on a device."""
    arrays = {
        name: torch.zeros((layout.rows(name), *width), device=device)
        for name, width in layout.widths.items()
    }
    kept = Kept(layout, arrays)
    for chosen in batches:
        kept.put(chosen, *answers(chosen))
    return kept


def fill_folder(
    folder: Path, layout: Layout, batches: Sequence[list[int]], answers: Answers
) -> Kept:
    """The same on disk, where it is filled once; a killed process goes on where it was."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone_with(folder / "lock"):
            done = _noted(folder)
            maps = {n: _map(folder / f"{n}.npy", layout, n, new=done == 0) for n in layout.widths}
            kept = Kept(layout, {n: torch.from_numpy(m) for n, m in maps.items()})
            for number in range(done, len(batches)):
                kept.put(batches[number], *answers(batches[number]))
                if number + 1 == len(batches) or not (number + 1) % _NOTED_EVERY:
                    for one in maps.values():
                        one.flush()
                    _note(folder, number + 1)
    except OSError as error:
        raise StoreError(
            f"A teacher's answers cannot be kept in {folder}: {error.strerror or error}.",
            hint="Choose a folder on a disk with space, or keep='never'.",
        ) from error
    return kept


def _map(path: Path, layout: Layout, name: str, *, new: bool) -> Any:
    shape = (layout.rows(name), *layout.widths[name])
    if new:
        return np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    try:
        found = np.lib.format.open_memmap(path, mode="r+")
    except ValueError:
        found = None
    if found is None or found.shape != shape or found.dtype != np.float32:
        raise StoreError(
            f"{path} is damaged: it does not hold {' × '.join(map(str, shape))} numbers.",
            hint=f"Delete {path.parent}; it is made again.",
        )
    return found


def _noted(folder: Path) -> int:
    """How many batches are done."""
    try:
        return int(json.loads((folder / "done.json").read_text())["batches"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _note(folder: Path, batches: int) -> None:
    draft = folder / "done.draft"
    draft.write_text(json.dumps({"batches": batches}))
    draft.replace(folder / "done.json")
