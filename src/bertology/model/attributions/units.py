"""Words as units of attribution: which pieces spell each, and where it stands in its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bertology.model.batch import Batch

Place = tuple[int, int, int]
"""Of which text (0 or 1), its first character, its last + 1."""


@dataclass(frozen=True)
class Units:
    """The words of each example of a batch; special tokens and padding belong to none."""

    ids: Tensor  # (B, T) the number of the word, -1 for none
    places: Sequence[Sequence[Place]]
    """By example and word; empty where the tokenizer does not say what its pieces spell."""

    @cached_property
    def counts(self) -> list[int]:
        """How many words each example has."""
        return [int(n) + 1 for n in self.ids.max(dim=1).values]

    @property
    def most(self) -> int:
        """The most words of an example; one at least, so that there is an axis of them."""
        return max(1, *self.counts)

    def summed(self, values: Tensor) -> Tensor:
        """Values of pieces (B, T) as sums over the pieces of each word: (B, most)."""
        padded = values.new_zeros(len(values), self.most + 1)
        return padded.scatter_add(1, self._columns, values)[:, :-1]

    def pieces(self, words: Tensor, rows: Tensor) -> Tensor:
        """Words that are chosen (V, most), each of the example in `rows` (V,), as pieces (V, T)."""
        none = torch.zeros(len(words), 1, dtype=torch.bool, device=words.device)
        return torch.cat([words, none], dim=1).gather(1, self._columns[rows])

    @cached_property
    def _columns(self) -> Tensor:
        """The number of the word; one beyond the last where there is none."""
        return torch.where(self.ids < 0, self.most, self.ids)


def units_of(batch: Batch, special_ids: Sequence[int]) -> Units:
    """The words as the tokenizer cuts them before it spells them; else every piece is one."""
    real = batch.real
    ids = torch.full(real.shape, -1, dtype=torch.long)
    places: list[list[Place]] = []
    rows = batch.inputs["input_ids"].cpu()
    for row in range(len(batch)):
        where = torch.nonzero(real[row].cpu())[:, 0].tolist()
        own: list[Place] = []
        if batch.encodings is None:
            kept = [at for at in where if int(rows[row, at]) not in special_ids]
            for number, at in enumerate(kept):
                ids[row, at] = number
        else:
            known = batch.encodings[row]
            numbers: dict[tuple[int, int], int] = {}
            given = zip(where, known.sequence_ids, known.word_ids, known.offsets, strict=True)
            for at, text, word, (first, last) in given:
                if text is None or word is None:
                    continue
                number = numbers.setdefault((text, word), len(numbers))
                ids[row, at] = number
                if number == len(own):
                    own.append((text, first, last))
                else:
                    own[number] = (text, min(own[number][1], first), max(own[number][2], last))
        places.append(own)
    return Units(ids.to(real.device), places)
