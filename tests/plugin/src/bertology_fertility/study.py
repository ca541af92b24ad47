"""Tokenizer fertility: pieces per word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import xarray as xr

from bertology.parameters import parameter
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import mean_interval
from bertology.studies.study import Context, Needs, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


class FertilityResult(Result):
    """Pieces per word of every example."""

    def drawings(self) -> Sequence[Drawing]:
        caption = "Pieces per word to the right, and upwards the number of examples with so many."
        return [Drawing("histogram", self._histogram, caption)]

    def _histogram(self) -> Figure:
        from matplotlib.figure import Figure

        figure = Figure()
        axes = figure.add_subplot()
        axes.hist(self.arrays["fertility"].values)
        axes.set_xlabel("pieces per word")
        axes.set_ylabel("examples")
        return figure


@dataclass(frozen=True)
class Fertility(Study):
    """Into how many pieces does the tokenizer cut a word?

    Method: the number of wordpieces, special tokens left out, over the number of words that
    whitespace marks off; one value per example.

    Source: made up for the tests of bertology's plugin interface.

    Limits: says nothing about languages that do not put spaces between words.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}))
    result_type: ClassVar[type[Result]] = FertilityResult

    lowercase: bool = parameter(False, "Lowercase the text first.")

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        texts = [e.text.lower() if self.lowercase else e.text for e in corpus]
        pieces = [len(encoder.tokenizer(t, add_special_tokens=False)["input_ids"]) for t in texts]
        words = [len(t.split()) for t in texts]
        context.advance(1)
        return xr.Dataset(
            {"fertility": ("example", np.array(pieces) / np.array(words))},
            coords={"example": [e.id for e in corpus]},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        arrays = measured["all"]
        table = arrays["fertility"].to_dataframe().reset_index()
        found = mean_interval(arrays["fertility"].values)
        tables = {"fertility": table}
        return self.result(provenance, tables, evidence={"fertility": found}, arrays=arrays)
