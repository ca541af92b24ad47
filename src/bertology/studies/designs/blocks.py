"""Studies whose parts are blocks of examples: how a corpus is cut, and what is drawn from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.study import R, Study

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

__all__ = [
    "BlockStudy",
    "JudgedResult",
    "SampledStudy",
    "TaggedStudy",
    "evidence_array",
    "in_order",
    "need_two_examples",
    "start_of",
    "tokens_that_fill_a_gpu",
]


@dataclass(frozen=True)
class BlockStudy(Study[R]):
    """One part for each block of examples, named by its first and the one after its last.

    So blocks of another size are other parts: `examples-000000-000128`.
    """

    block: ClassVar[int] = 128  # examples in one part of the work
    block_on_gpu: ClassVar[int | None] = (
        None  # if more: given few at a time, a GPU waits for Python
    )

    def shown(self, corpus: Corpus) -> Corpus:
        """The examples that are looked at; all of them if not overridden."""
        return corpus

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those of the examples that are looked at."""
        return self.shown(corpus).texts

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Blocks of examples."""
        return self._blocks(corpus, self.block)

    def plan(self, encoder: Encoder, corpus: Corpus) -> Sequence[str]:
        """Blocks of examples, as large as suits the device."""
        if self.block_on_gpu is None or encoder.device.type == "cpu":
            return super().plan(encoder, corpus)
        return self._blocks(corpus, self.block_on_gpu)

    def _blocks(self, corpus: Corpus, size: int) -> list[str]:
        n = len(self.shown(corpus))
        return [f"examples-{at:06d}-{min(at + size, n):06d}" for at in range(0, n, size)]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each example."""
        return len(self.of_block(part, corpus))

    def of_block(self, part: str, corpus: Corpus) -> Corpus:
        """The examples of one part."""
        _, start, stop = part.split("-")
        return self.shown(corpus)[int(start) : int(stop)]


@dataclass(frozen=True)
class SampledStudy(BlockStudy[R]):
    """Looks at so many examples at most, drawn by a seed."""

    examples: int = parameter(1000, "Draw at most so many of the examples there are.", minimum=2)
    seed: int = parameter(0, "Seed of all that is drawn: examples and resamples.", minimum=0)

    def shown(self, corpus: Corpus) -> Corpus:
        """As many as asked for, in the order of the corpus."""
        return corpus.take(self.examples, seed=self.seed)


@dataclass(frozen=True)
class TaggedStudy(SampledStudy[R]):
    """Needs to know nouns from verbs, from the corpus or from a tagger."""

    tagger: str = parameter(
        "auto",
        "Who says what is a noun: the corpus where it can, else the bundled tagger (auto).",
        choices=("auto", "gold", "bundled", "spacy", "stanza"),
    )

    def ingredients(self, corpus: Corpus | None) -> dict[str, str]:
        """The tagger that may be asked."""
        from bertology.annotated.tagged_batches import tagging_ingredients

        return tagging_ingredients(self.tagger)

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Refuse gold annotation that is not there, and what can have no interval."""
        from bertology.annotated.tagged_batches import check_tagging

        need_two_examples(corpus)
        if corpus is not None:
            check_tagging(corpus, self.tagger)


class JudgedResult(Result):
    """A result whose quantities for claims were left in its arrays by `evidence_array`."""

    def evidence(self) -> dict[str, Estimate]:
        """Quantities for claims, as `conclude` left them."""
        level, quantities = float(self.arrays.attrs["level"]), self.arrays["evidence"]
        found = {}
        for name in quantities["quantity"].to_numpy():
            value, low, high, n = map(float, quantities.sel(quantity=name).to_numpy())
            found[str(name)] = Estimate(value, low, high, int(n), level)
        return found


def evidence_array(found: Mapping[str, Estimate], facts: Mapping[str, Any]) -> xr.Dataset:
    """Quantities for claims as arrays, with `facts` (the level among them) as attributes."""
    import xarray as xr

    rows = [(e.value, e.low, e.high, float(e.n)) for e in found.values()]
    return xr.Dataset(
        {"evidence": (("quantity", "bound"), np.reshape(rows, (-1, 4)))},
        coords={"quantity": list(found), "bound": ["value", "low", "high", "n"]},
        attrs=dict(facts),
    )


def need_two_examples(corpus: Corpus | None) -> None:
    """Refuse, before any work, what can have no interval."""
    if corpus is not None and len(corpus) < 2:
        raise DataError(
            f"An interval over examples needs two examples or more. {corpus.name!r} has 1.",
            hint="Give more text; `bertology run attention-maps` and `bertology explore` show one.",
        )


def tokens_that_fill_a_gpu(shape: Shape) -> int:
    """Tokens in one batch that keep a large GPU busy while Python prepares the next.

    A narrow model needs more of them; a wide one is served better by fewer, which are padded less.
    """
    return max(4096, 2**15 * 192 // shape.hidden)


def start_of(part: str) -> int:
    """The number of the first example of a part."""
    return int(part.split("-")[1])


def in_order(measured: Mapping[str, xr.Dataset]) -> Iterator[xr.Dataset]:
    """The parts in the order of their examples, one at a time: they are read as they are asked for.

    What goes through them once and keeps little needs no more memory for more examples.
    """
    return (measured[part] for part in sorted(measured, key=start_of))
