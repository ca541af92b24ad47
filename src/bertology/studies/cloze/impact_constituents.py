"""Impact constituents: are phrases groups of words that change the guesses at each other?"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import CapabilityError, DataError
from bertology.parameters import drawn, parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.best_of_many import picked_on_other_half
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import gather, start_of
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.stats.partial_means import PartialMeans

RIGHT, RANDOM = "right-branching", "random tree"
IMPACT = "impact, last layer"
_DRAWN = 20  # random trees of a sentence, for their mean
_MEASURES = {
    "f1": ("Phrases in the tree of impact on the layer's states", "F1 (%)"),
    "gain": ("The same, beyond the best tree that knows no words", "points (F1)"),
}


class ImpactConstituentsResult(Result):
    """How many annotated phrases are in trees of impact.

    Table `layers`: unlabelled F1 of sentences, for the states after each layer, and the gain over
    the best baseline, with bounds for all layers together; `trees`: the last layer beside each
    baseline.
    """

    strongest: ClassVar[Mapping[str, str]] = {"layers": "gain"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "layers": {"f1": "%", "gain": "points"},
        "trees": {"f1": "%"},
    }

    @property
    def answer(self) -> str:
        """The last layer's F1, beside right-branching trees and the best baseline."""
        found = self.evidence()
        over = found["constituents_gain"]
        sure = "Some of them" if over.low > 0 else "Surely not" if over.high < 0 else "Not sure"
        return (
            f"{sure}: trees of impact have an F1 of {percent(found['constituents_f1'])} with "
            f"annotated phrases, {points(found['constituents_over_right_branching'], '.0f')} "
            f"against right-branching trees and {points(over, '.0f')} against the best baseline."
        )

    def measures(self) -> Sequence[Measure]:
        """F1 and gain by layer."""
        table = self.tables["layers"]
        sure = (table["gain_p"] < 1 - self.facts["level"]) & (table["gain"] > 0)
        return [
            Measure.of_column(
                table.assign(sure=sure),
                column,
                name=f"constituents-{column}",
                title=title,
                unit=unit,
                sure="sure" if column == "gain" else None,
                scale=100.0,
                middle=0.0 if column == "gain" else None,
                reading="High: words of a phrase change the guesses at each other more than at "
                "others.",
            )
            for column, (title, unit) in _MEASURES.items()
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Layers, and the last one beside the baselines."""
        f1, _ = self.measures()
        rows = self.tables["trees"]
        return [
            drawings.profile(
                "layers",
                [f1],
                self.about,
                title="Annotated phrases in trees of impact on each layer",
                reading="Where the line is high, words of a phrase change each other most.",
                labels=["F1"],
            ),
            drawings.dots(
                "trees",
                [Dots.of_columns("F1 (%)", rows, "f1")],
                rows["tree"],
                self.about,
                title="Phrases found by trees of impact",
                caption="One row for each way to make a tree: the F1 of its phrases with annotated "
                "ones, mean over sentences, in per cent, with intervals for all rows together. All "
                "trees but that of impact know only how many words there are.",
                note="Unlabelled; single words and the whole sentence are not counted.",
            ),
        ]


@dataclass(frozen=True)
class ImpactConstituents(Resampled):
    """Are the phrases of a sentence groups of words that change the model's guesses at each other?

    Method: impact is measured as in perturbed-masking: word i is masked, then word j as well, and
    the impact of j on i is how far the state at i moves. From the top down the sentence is split in
    two again and again, where the mean impact inside the two parts most exceeds that between them.
    The phrases of this tree are compared with the annotated ones: F1 of each sentence, without
    labels, single words and the whole sentence left out. Baselines: right-branching,
    left-branching and balanced trees, and the mean of random ones; the best is picked on one half
    of the sentences and scored on the other. Intervals are over sentences. Where a corpus has
    dependencies only, as the bundled grammar, a phrase is all that hangs on one word.

    Source: Wu et al. (2020), Perturbed Masking, their constituency probe. Limits: their formula
    weighs the parts of a split in another way; here all pairs of words count the same. A sentence
    of n words takes n (n + 1) / 2 passes, so long ones are left out, as in their WSJ10. A tree of
    two parts everywhere cannot agree with flat phrases. English branches to the right, so the
    right-branching tree is what must be beaten. Sentences must differ in form: a tree that fits one
    by chance fits all that are built alike.
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "words"}), head="mlm")
    finds_words: ClassVar[bool] = True
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = ImpactConstituentsResult
    block: ClassVar[int] = 32

    examples: int = drawn(200, "sentences")
    longest: int = parameter(
        10, "Leave out sentences of more words; punctuation is not counted.", minimum=3, maximum=60
    )

    def shown(self, corpus: Corpus) -> Corpus:
        """Sentences that are short enough, as many as asked for."""
        short = [e for e in corpus.examples if 2 < _words(e.get("words")) <= self.longest]
        if len(short) < self.fewest:
            raise DataError(
                f"{corpus.name!r} has fewer than {self.fewest} sentences of 3 to {self.longest} "
                "words.",
                hint="Allow longer ones with --longest.",
            )
        return super().shown(replace(corpus, examples=short))

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse corpora that know nothing of phrases, and tokenizers without offsets."""
        super().check(encoder, corpus)
        if not {"constituents", "heads"} & {str(f) for f in corpus.fields}:
            raise CapabilityError(
                f"{corpus.name!r} has neither constituents nor dependencies.",
                hint="Give trees in brackets (.mrg), a treebank such as ud-ewt, or the grammar.",
            )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """F1 of each sentence by layer, and of trees that know no words."""
        import xarray as xr

        from bertology.annotated.trees.constituents import (
            BASELINES,
            gold_spans,
            random_spans,
            span_f1,
            split_spans,
        )
        from bertology.annotated.trees.impact import word_impacts
        from bertology.annotated.words import word_batches

        block, layers = self.of_block(part, corpus), encoder.shape.layers
        found = np.full((len(block), layers), np.nan)
        base = np.full((len(block), len(BASELINES) + 1), np.nan)
        for read in word_batches(encoder, block, tokens_per_batch=context.batch_tokens):
            gold = [gold_spans(one) for one in read.examples]
            rows = [row for row, (_, spans) in enumerate(gold) if spans]
            asked = [(read.examples[row], gold[row][0]) for row in rows]
            maps = word_impacts(
                encoder, asked, tokens_per_batch=context.batch_tokens
            ) if asked else np.empty((0, layers, 0, 0))  # fmt: skip
            for row, matrices in zip(rows, maps, strict=True):
                (words, spans), at = gold[row], read.batch.indices[row]
                n = len(words)
                found[at] = [span_f1(split_spans(m[:n, :n]), spans) for m in matrices]
                rng = random.Random(f"{self.seed}-{start_of(part) + at}")
                drawn = [span_f1(random_spans(n, rng), spans) for _ in range(_DRAWN)]
                trivial = [span_f1(make(n), spans) for make in BASELINES.values()]
                base[at] = [*trivial, float(np.mean(drawn))]
            context.advance(len(read.batch))
        return xr.Dataset(
            {"f1": (("example", "layer"), found), "trivial": (("example", "baseline"), base)},
            coords={"baseline": [*BASELINES, RANDOM]},
            attrs={"layers": layers},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means over sentences, and gains over the best baseline, cross-fitted."""
        seen = gather(measured, concatenate=("f1", "trivial"))
        f1, trivial = np.asarray(seen["f1"], float), np.asarray(seen["trivial"], float)
        if np.isfinite(f1[:, -1]).sum() < 2:
            raise DataError(
                "Fewer than two sentences have a phrase beside the whole sentence.",
                hint="Give longer sentences, or more of them.",
            )
        best = picked_on_other_half(trivial[:, None])  # (N, 1)
        beaten = np.take_along_axis(trivial, best, axis=1)[:, 0]
        names = seen.labels("baseline")
        over_right = f1[:, -1] - trivial[:, names.index(RIGHT)]
        score, gain = self._means(f1.T), self._means((f1 - beaten[:, None]).T, least=-1.0)
        rows = self._means(np.vstack([f1[:, -1:].T, trivial.T]))
        tables = {
            "layers": labelled_table(
                {"layer": range(f1.shape[1])},
                {"n": score.n, **with_bounds("f1", score, p=False), **with_bounds("gain", gain)},
            ),
            "trees": labelled_table(
                {"tree": [IMPACT, *names]}, {"n": rows.n, **with_bounds("f1", rows, p=False)}
            ),
        }
        estimates = {
            "constituents_f1": self._means(f1[None, :, -1]),
            "constituents_gain": self._means((f1[:, -1] - beaten)[None], least=-1.0),
            "constituents_over_right_branching": self._means(over_right[None], least=-1.0),
        }
        evidence = {name: of.estimate(0) for name, of in estimates.items()}
        return self.result(
            provenance,
            tables,
            evidence={
                name: None if e is None else e.counting("sentences") for name, e in evidence.items()
            },
            facts={"examples": int(np.isfinite(f1[:, -1]).sum()), "longest": self.longest},
        )

    def _means(self, rows: NDArray[np.float64], *, least: float = 0.0) -> PartialMeans:
        """Of F1, or of what it exceeds another by."""
        return self.means(rows, within=(least, 1.0), support=(least, 1.0))


def _words(written: Sequence[str]) -> int:
    return sum(any(c.isalnum() for c in word) for word in written)
