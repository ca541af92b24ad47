"""Studies whose parts are blocks of examples: how a corpus is cut, and what is drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import CapabilityError, DataError
from bertology.parameters import drawn, parameter
from bertology.stats.layer_orders import OfLayers, in_this_order
from bertology.stats.partial_means import PartialMeans, partial_means
from bertology.studies.study import Study

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.stats import Estimate
    from bertology.stats.multiplicity import RowBlocks


@dataclass(frozen=True)
class Blocks(Study):
    """One part for each block of examples, named by its first and the one after its last.

    So blocks of another size are other parts: `examples-000000-000128`.
    """

    block: ClassVar[int] = 128  # examples in one part of the work
    block_on_gpu: ClassVar[int | None] = None  # if more: given few at a time, a GPU waits
    fills_gpu: ClassVar[bool] = False  # whether batches may be large: little is kept of each
    all_heads: ClassVar[bool] = False  # whether models with pruned heads are refused
    fewest: ClassVar[int] = 1  # examples; an interval needs two
    finds_words: ClassVar[bool] = False  # whether it must be known which pieces make a word

    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999, concludes=True)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse models and corpora with too little in them, and tokenizers that hide words."""
        from bertology.annotated.words import require_offsets

        if self.all_heads and encoder.numbering.removed:
            raise CapabilityError(
                f"Some heads of {encoder.name!r} were pruned. This study needs all of them.",
                hint="Run it on the model that this one was pruned from.",
            )
        if len(corpus) < self.fewest:
            least = "two" if self.fewest == 2 else self.fewest
            raise DataError(
                f"An interval over examples needs {least} examples or more. {corpus.name!r} has "
                f"{len(corpus)}.",
                hint="Give more text; `bertology run attention-maps` and `bertology explore` "
                "show one."
                if self.fewest == 2
                else "Give more text, or a larger --limit.",
            )
        if self.finds_words:
            require_offsets(encoder)

    def shown(self, corpus: Corpus) -> Corpus:
        """The examples that are looked at; all of them if not overridden."""
        return corpus

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those of the examples that are looked at."""
        return self.shown(corpus).texts

    def tokens_on_gpu(self, shape: Shape) -> int:
        """Tokens in one batch on a GPU; more where they keep it busy while Python prepares.

        A narrow model needs more of them; a wide one is served better by fewer, padded less.
        """
        usual = super().tokens_on_gpu(shape)
        return max(usual, 2**15 * 192 // shape.hidden) if self.fills_gpu else usual

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
class Sampled(Blocks):
    """Looks at so many examples at most, drawn by a seed, and at two at least."""

    fewest: ClassVar[int] = 2

    examples: int = drawn(1000)
    seed: int = parameter(0, "Seed of all that is drawn: examples and resamples.", minimum=0)

    def shown(self, corpus: Corpus) -> Corpus:
        """As many as asked for, in the order of the corpus."""
        return corpus.take(self.examples, seed=self.seed)


@dataclass(frozen=True)
class Resampled(Sampled):
    """Means over examples whose bounds hold for all rows of a table together."""

    resamples: int = parameter(
        2000, "Resamples behind the correction.", minimum=100, concludes=True
    )

    def means(
        self,
        rows: ArrayLike | RowBlocks,
        *,
        within: tuple[float, float] = (-float("inf"), float("inf")),
        support: tuple[float, float] | None = None,
        reach: float = 0.0,
        families: int = 1,
    ) -> PartialMeans:
        """Means with their bounds; where several `families` are judged, bounds hold for all.

        `within` is where the means must lie, `support` where the value of every example must lie,
        `reach` how far one example may deviate where that is not known.
        """
        return partial_means(
            rows,
            within=within,
            support=support,
            reach=reach,
            level=1 - (1 - self.level) / families,
            resamples=self.resamples,
            seed=self.seed,
        )

    def by_depth(
        self,
        of_layers: NDArray[np.floating],
        contrast: OfLayers,
        *,
        within: tuple[float, float] = (-float("inf"), float("inf")),
    ) -> Estimate | None:
        """A contrast of layers (text, layer) over texts, sure only in this order of the layers."""
        there = of_layers[np.isfinite(of_layers).all(axis=1)].astype(np.float64)
        if len(there) < 2 or there.shape[1] < 2:
            return None
        found = self.means(contrast(there)[None], within=within).estimate(0)
        return found and in_this_order(found, there.mean(axis=0), contrast, seed=self.seed)


@dataclass(frozen=True)
class Tagged(Resampled):
    """Needs to know nouns from verbs, from the corpus or from a tagger."""

    tagger: str = parameter(
        "auto",
        "Who says what is a noun or verb: the corpus where it can, else the bundled tagger (auto).",
        choices=("auto", "gold", "bundled", "spacy", "stanza"),
    )

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The tagger that may be asked."""
        from bertology.annotated.tagged_batches import tagging_ingredients

        return tagging_ingredients(self.tagger)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse gold annotation that is not there, and what can have no interval."""
        from bertology.annotated.tagged_batches import check_tagging

        super().check(encoder, corpus)
        check_tagging(corpus, self.tagger)
