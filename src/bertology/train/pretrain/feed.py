"""Endless batches of rows, pass after pass over all shards; the same for the same seed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch

from bertology.arrays import Ints
from bertology.errors import DataError
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.pairings import Pairing
from bertology.train.pretrain.rows import RowPlan, Rows, ShardText, fill
from bertology.train.pretrain.shards import Shards


@dataclass(frozen=True)
class FeedPosition:
    """Where a feed is; enough to continue from there."""

    turn: int = 0  # which pass over the shards
    shard: int = 0  # which shard of the pass
    row: int = 0  # the next row, in the order of the pass
    length: int = 0

    def as_dict(self) -> dict[str, int]:
        """Plain numbers."""
        return asdict(self)


@dataclass(frozen=True)
class RowBatch:
    """Rows, and the source of the random numbers for hiding some of their tokens."""

    rows: Rows
    chance: Chance


class Library:
    """Shards on the device. `keep`: how many at a time, one for each feed that reads them."""

    def __init__(self, shards: Shards, device: torch.device, *, keep: int = 1) -> None:
        self.shards, self.device, self.keep = shards, device, keep
        self._kept: dict[str, ShardText] = {}  # the most recently used one is last

    def text(self, name: str) -> ShardText:
        """The tokens of a shard."""
        text = self._kept.pop(name, None)
        if text is None:
            while len(self._kept) >= self.keep:
                self._kept.pop(
                    next(iter(self._kept))
                )  # free memory before the next shard is loaded
            text = ShardText.of(self.shards.open(name), self.shards, self.device)
        self._kept[name] = text
        return text


class Feed:
    """The rows of one pairing. With several processes each takes its share of every batch."""

    def __init__(
        self,
        library: Library,
        pairing: Pairing,
        chance: Chance,
        *,
        copies: int = 0,
        cuts: int = 0,
        share: tuple[int, int] = (0, 1),  # rank, and number of processes
    ) -> None:
        self.library, self.pairing, self.chance = library, pairing, chance
        self.copies, self.cuts, self.share = copies, cuts or copies, share
        self.place = FeedPosition()
        self._pass: tuple[FeedPosition, RowPlan, Ints] | None = None
        # Planning a pass takes about a second for 100 M tokens; it is done during the pass before.
        self._planner = ThreadPoolExecutor(1)
        self._ahead: tuple[FeedPosition, Future[tuple[RowPlan, Ints]]] | None = None

    def next(self, rows: int, length: int) -> RowBatch:
        """`rows` rows of `length` tokens (of which this process gets its share)."""
        if self.place.length != length:
            started = self.place.turn + (1 if self.place.length else 0)
            self.place = FeedPosition(turn=started, length=length)
        plan, order = self._current()
        skipped = 0
        while self.place.row + rows > len(order):  # the rest of a pass is less than a batch
            if skipped > len(self.library.shards.names):
                raise self._too_little(rows, length, len(order))
            self.place = self._following(self.place)
            plan, order = self._current()
            skipped += 1
        rank, world = self.share
        chosen = order[self.place.row : self.place.row + rows][rank::world]
        place, self.place = self.place, replace(self.place, row=self.place.row + rows)
        name = self._shard(place)
        text = self.library.text(name)
        chance = self.chance("rows", _of(self.copies, place.turn), name, length)
        return RowBatch(fill(text, plan.take(chosen), chosen, length), chance)

    def check(self, rows: int, length: int) -> None:
        """Before any training: an error if the text is too short for a batch of this length."""
        names = range(len(self.library.shards.names))
        most = max(len(self._planned(FeedPosition(shard=i, length=length))[0]) for i in names)
        if most < rows:
            raise self._too_little(rows, length, most)

    def _too_little(self, rows: int, length: int, found: int) -> DataError:
        return DataError(
            f"The text gives no batch of {rows} rows of {length} tokens "
            f"({self.pairing.name}: {found} rows in a pass).",
            hint="Give more text, smaller batches (batch_tokens), or fewer shards.",
        )

    def close(self) -> None:
        """Stop planning ahead."""
        self._planner.shutdown(wait=True, cancel_futures=True)

    def _shard(self, place: FeedPosition) -> str:
        names = self.library.shards.names
        order = self._draw("shards", place.turn).permutation(len(names))
        return names[int(order[place.shard])]

    def _draw(self, *path: int | str) -> np.random.Generator:
        return np.random.default_rng(abs(self.chance(*path).key))

    def _current(self) -> tuple[RowPlan, Ints]:
        here = replace(self.place, row=0)
        if self._pass is None or self._pass[0] != here:
            if self._ahead is not None and self._ahead[0] == here:
                self._pass = (here, *self._ahead[1].result())
            else:
                self._pass = (here, *self._planned(here))
            after = self._following(here)
            self._ahead = after, self._planner.submit(self._planned, after)
        return self._pass[1], self._pass[2]

    def _following(self, place: FeedPosition) -> FeedPosition:
        last = place.shard + 1 == len(self.library.shards.names)
        turn, shard = (place.turn + 1, 0) if last else (place.turn, place.shard + 1)
        return FeedPosition(turn=turn, shard=shard, length=place.length)

    def _planned(self, place: FeedPosition) -> tuple[RowPlan, Ints]:
        """The rows of a pass over one shard, and the order they are used in."""
        name = self._shard(place)
        version = _of(self.cuts, place.turn)
        draw = self._draw("plan", version, name, place.length)
        plan = self.pairing.plan(self.library.shards.open(name), place.length, draw)
        order = self._draw("order", place.turn, name, place.length).permutation(len(plan))
        return plan, order.astype(np.int64)


def _of(versions: int, turn: int) -> int:
    """Which of `versions` this pass uses; with 0 versions every pass has its own."""
    return turn % versions if versions else turn
