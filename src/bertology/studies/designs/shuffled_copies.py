"""Studies that read the model, and copies of it with shuffled weights: a part for each.

What a study finds in a model that learnt nothing is no knowledge. Such a model is made of the
studied one: the numbers of each of its matrices in random order (`model/weight_noise.py`). Several
copies tell how much of it is chance: the model is set against their mean, by how they scatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.studies.designs.blocks import Sampled

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

MODEL = "model"
COPIES = 10
"""With four, Student's quantile is 3.2 in place of 2.3, and little of what a model knows is sure
(`benchmarks/verdict_errors.py`)."""
_SHUFFLED = "shuffled"


@dataclass(frozen=True)
class ShuffledCopies(Sampled):
    """One part for the model, and one for each copy; `measure` asks `reader` which one it is."""

    @property
    def copies(self) -> int:
        """How many there are: a number of the class, or a parameter."""
        raise NotImplementedError

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """The model, and each copy."""
        return [MODEL, *(f"{_SHUFFLED}-{copy}" for copy in range(self.copies))]

    def reader(self, encoder: Encoder, part: str) -> Encoder:
        """The model, or the copy that a part is of."""
        from bertology.model.weight_noise import shuffled_copy

        if part == MODEL:
            return encoder
        copy = int(part.removeprefix(f"{_SHUFFLED}-"))
        return shuffled_copy(encoder, seed=self.copies * self.seed + copy)  # seeds share none

    def of_copies(self, measured: Mapping[str, xr.Dataset]) -> list[xr.Dataset]:
        """What was measured of copies, in their order."""
        return [measured[part] for part in measured if part != MODEL]
