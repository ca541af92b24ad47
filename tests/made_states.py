"""States of words that no model computed, for probes whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertology.annotated.states import States


class MadeStates(States):
    """One block of states (layers, words, width) of texts with so many words."""

    def __init__(self, values: np.ndarray, counts: Sequence[int]) -> None:
        self._values, self.counts = values.astype(np.float16), np.array(counts)
        self.there, self.folder = np.ones(sum(counts), bool), Path()

    @property
    def block_sizes(self) -> list[int]:
        return [len(self)]

    def block(self, number: int) -> Any:
        return self._values
