"""Examples as rows of tokens with what is to be predicted, cut into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from bertology.model.batch import by_length
from bertology.train.protocols import Tokenizer

_CHUNK = 50  # batches that are sorted by length together: little padding, still well mixed
Targets = list[int] | list[float]


@dataclass(frozen=True)
class Encoded:
    """Tokenized examples and what is to be predicted for them."""

    rows: dict[str, list[list[int]]]  # input_ids, attention_mask, …: a list per example
    targets: Targets
    tokenizer: Tokenizer
    truncated: int = 0  # examples that were cut to the longest that is allowed
    limit: int | None = None  # the longest that is allowed
    _moved: dict[torch.device, dict[str, Tensor]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def lengths(self) -> list[int]:
        return [len(ids) for ids in self.rows["input_ids"]]

    def batch(
        self, chosen: Sequence[int], device: torch.device, *, multiple: int = 1
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs padded to the longest of the chosen examples, and their targets.

        Lengths are multiples of `multiple`, but for the longest that is allowed.
        """
        if not self._fills.keys() >= self.rows.keys():
            return self._padded_by_tokenizer(chosen, device)
        text = self._on(device)
        numbers = torch.tensor(chosen)
        longest = -(-int(self._lengths[numbers].max()) // multiple) * multiple
        longest = min(longest, self.limit or longest)
        # Nothing here waits for a GPU, which may still be busy with the last batch.
        numbers = numbers.to(device, non_blocking=True)
        j = torch.arange(longest, device=device)  # (T,)
        length = text["lengths"][numbers][:, None]  # (B, 1)
        if self.tokenizer.padding_side == "left":
            j = j - (longest - length)  # (B, T)
        inside = (j >= 0) & (j < length)
        where = torch.where(inside, text["starts"][numbers][:, None] + j, 0)
        inputs = {
            name: torch.where(inside, text[name][where], self._fills[name]) for name in self.rows
        }
        return inputs, text["targets"][numbers]

    def _padded_by_tokenizer(
        self, chosen: Sequence[int], device: torch.device
    ) -> tuple[dict[str, Tensor], Tensor]:
        part = {name: [values[i] for i in chosen] for name, values in self.rows.items()}
        padded = self.tokenizer.pad(part, return_tensors="pt")
        targets = torch.tensor([self.targets[i] for i in chosen])  # int64 or float32
        return {name: value.to(device) for name, value in padded.items()}, targets.to(device)

    @cached_property
    def _fills(self) -> dict[str, int]:
        """What inputs are padded with, as far as we know their names."""
        known = {
            "input_ids": self.tokenizer.pad_token_id,
            "token_type_ids": self.tokenizer.pad_token_type_id,
            "attention_mask": 0,
        }
        return {name: fill for name, fill in known.items() if fill is not None}

    @cached_property
    def _lengths(self) -> Tensor:
        return torch.tensor(self.lengths)

    @cached_property
    def _flat(self) -> dict[str, Tensor]:
        """All examples in one row for each input, and where each of them begins."""
        made = {
            name: torch.from_numpy(np.fromiter(chain.from_iterable(values), np.int64))
            for name, values in self.rows.items()
        }
        starts = self._lengths.cumsum(0) - self._lengths
        targets = torch.tensor(self.targets)  # int64 or float32
        return {**made, "starts": starts, "lengths": self._lengths, "targets": targets}

    def _on(self, device: torch.device) -> dict[str, Tensor]:
        """The same on a device, moved there once."""
        if device not in self._moved:
            self._moved[device] = {name: value.to(device) for name, value in self._flat.items()}
        return self._moved[device]

    def shuffled(self, batch_size: int, generator: torch.Generator) -> Iterator[list[int]]:
        """Every example once, in random batches of similar length."""
        lengths = self.lengths
        order = torch.randperm(len(self), generator=generator).tolist()
        step = batch_size * _CHUNK
        batches = []
        for start in range(0, len(order), step):
            chunk = sorted(order[start : start + step], key=lambda i: lengths[i])
            batches += [chunk[i : i + batch_size] for i in range(0, len(chunk), batch_size)]
        for i in torch.randperm(len(batches), generator=generator).tolist():
            yield batches[i]

    def in_order_of_length(self, tokens_per_batch: int) -> Iterator[list[int]]:
        """Every example once, in batches of similar length, the longest first."""
        yield from by_length(self.lengths, tokens_per_batch)


def with_noise(encoded: Encoded, share: float, *, seed: int) -> Encoded:
    """The same rows; each token but the special ones is any ordinary one with this probability."""
    tokens = encoded.tokenizer
    special = set(tokens.all_special_ids)
    ordinary = np.array([i for i in range(len(tokens)) if i not in special])
    rng = np.random.default_rng(seed)
    rows = []
    for row in encoded.rows["input_ids"]:
        ids = np.asarray(row)
        chosen = (rng.random(len(ids)) < share) & ~np.isin(ids, list(special))
        drawn = rng.choice(ordinary, len(ids))
        rows.append(np.where(chosen, drawn, ids).tolist())
    return replace(encoded, rows={**encoded.rows, "input_ids": rows})
