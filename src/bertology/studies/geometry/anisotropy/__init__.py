"""Anisotropy: do states lie in a narrow cone, and is it more than a few dimensions?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.arrays import Floats, Ints
from bertology.data.words.piece_words import mixed, run_starts
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked, dashed
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.blocks_left_out import left_out_arms
from bertology.stats.layer_orders import in_this_order
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn
from bertology.studies.designs.shuffled_copies import MODEL
from bertology.studies.designs.tables import labelled_table
from bertology.studies.geometry.anisotropy.direction_geometry import (
    REMOVED,
    REPAIRS,
    LayerSums,
    SampledWords,
    geometry,
)
from bertology.studies.geometry.shared.text_blocks import (
    CHANCE,
    INPUT,
    SITES,
    TextBlocks,
    WordsOfBatch,
    change,
    word_batches_of,
    words_of_texts,
)
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import torch
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.reducers.word_sums import DirectionPlaces, DirectionSums


_DIMENSIONS = 12  # rows of a figure


class AnisotropyResult(Result):
    """How evenly states fill their space after each layer, and what is left of a cone.

    Table `layers` (-1 is what enters the first one); bounds hold for all layers together: mean
    cosine of different words of different texts (`cosine`), that of copies with shuffled weights,
    their mean (`shuffled`), and without the dimensions that add most to it (`without_1`,
    `without_3`, `without_5`); `isoscore`; `participation`, the number of directions that have
    variance; `first_share`, `three_share`, `ten_share` of the first principal components;
    `partition` and `partition_spread` of Mu and Viswanath, and both for a mean squared length of 1
    (`_scaled`). Table `dimensions`: the five that add most to the mean cosine of each layer. Table
    `repairs`: the same measures after centring, taking off top components, standardising and
    whitening. Array `contributions` (layer, dimension).
    """

    @property
    def answer(self) -> str:
        """How large the mean cosine is, and without the dominating dimensions."""
        found = self.evidence()
        whole, left, beyond = (
            found[n] for n in ("mean_cosine", "cosine_without_3", "cosine_beyond_shuffled")
        )
        sure, shuffled = beyond.excludes(0), whole.value - beyond.value
        surely = "Surely" if sure else NOTHING_SURE
        rest = (
            f" (with shuffled weights {number_text(shuffled, '.2f')})"
            if sure
            else ", not surely other than with shuffled weights"
        )
        return (
            f"{surely}: different words of different texts have a mean cosine of "
            f"{plain(whole, '.2f')} over all layers{rest}; without three dimensions of "
            f"{self.facts['width']}, {plain(left, '.2f')}."
        )

    def measures(self) -> Sequence[Measure]:
        """Cosines by layer, then other measures of isotropy."""
        table = self.tables["layers"]
        table = table[table["layer"] >= 0]
        return [
            *line_measures(table, _COSINES, of="cone", unit="cosine"),
            *line_measures(table, _SHARES, of="cone"),
            *line_measures(table, _COUNTS, of="cone", unit="directions"),
        ]

    def over_training(self) -> Sequence[Tracked]:
        """The mean cosine."""
        return [
            Tracked(
                "mean_cosine", "mean cosine of random words", layers="cone-cosine", unit="cosine"
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Cosines, dominating dimensions, repairs, and other measures over layers."""
        named = {measure.name: measure for measure in self.measures()}
        found = [
            lines_drawn(
                [named[f"cone-{dashed(name)}"] for name in _COSINES],
                _COSINES,
                self.about,
                title="How alike random words are",
                reading="0 would be the same in all directions. Dimensions are chosen on one half "
                "of the texts and taken off on the other. Bands hold for all layers together.",
            ),
            lines_drawn(
                [named[f"cone-{dashed(name)}"] for name in _SHARES],
                _SHARES,
                self.about,
                name="isotropy",
                title="How evenly states fill their space",
                reading="IsoScore is 100 where all directions vary alike; the first component has "
                "most where one direction has nearly all the variance.",
            ),
            drawings.bars(named["cone-participation"], self.about, name="participation"),
            self._dimensions(),
        ]
        return [*found, self._repairs()]

    def _dimensions(self) -> Drawing:
        table = self.tables["dimensions"]
        table = table[table["layer"] >= 0]
        largest = table.groupby("dimension")["contribution"].max().nlargest(_DIMENSIONS)
        values = self.arrays["contributions"].to_numpy()[1:]
        measures = [
            Measure(
                name=f"dimension-{int(d)}",
                title=f"dimension {int(d)}",
                values=values[:, int(d)],
                unit="cosine",
                reading="High: this dimension alone makes random words alike.",
            )
            for d in sorted(largest.index)
        ]
        return drawings.rows(
            "dimensions",
            measures,
            self.about,
            title="What single dimensions add to the mean cosine",
            reading="A dark cell: one dimension makes random words alike.",
            labels=[str(int(d)) for d in sorted(largest.index)],
        )

    def _repairs(self) -> Drawing:
        table = self.tables["repairs"]
        table = table[(table["layer"] >= 0) & (table["repair"] != "centred")]
        shown = [
            Measure.of_column(
                rows,
                "isoscore",
                name=f"repair-{at}",
                title=str(repair),
                unit="%",
                scale=100.0,
                reading="High: all directions vary alike.",
            )
            for at, (repair, rows) in enumerate(table.groupby("repair", sort=False))
        ]
        return drawings.profile(
            "repairs",
            shown,
            self.about,
            title="IsoScore after repairs",
            reading="Each repair is found on one half of the texts and used on the other. IsoScore "
            "is of variances, which centring leaves as they are; what each repair does to the mean "
            "cosine is in the table of repairs.",
        )


_COSINES = {
    "cosine": Line(
        "Mean cosine of random words", "all dimensions", "High: states lie in a narrow cone."
    ),
    **{
        f"without_{count}": Line(
            f"Mean cosine without the {count} dimension{'s' * (count > 1)} that add most",
            f"without {count}",
            "Low: these dimensions alone made words alike.",
        )
        for count in REMOVED
    },
    "shuffled": Line(
        "Mean cosine with shuffled weights",
        "shuffled weights",
        "What the same weights give without their order.",
    ),
}
_SHARES = {
    "isoscore": Line("IsoScore", "IsoScore", "High: all directions vary alike."),
    "first_share": Line(
        "Variance of the first principal component",
        "first component",
        "High: one direction has most of the variance.",
    ),
    "ten_share": Line(
        "Variance of the first ten principal components",
        "ten components",
        "High: few directions have most of the variance.",
    ),
}
_COUNTS = {
    "participation": Line(
        "Participation ratio", "directions", "Low: few directions have nearly all the variance."
    ),
}


CONE = 0.1
"""The mean cosine from which states are said to lie in a cone; the claims have the same border."""
_NO_CONE = (
    f"not judged: the mean cosine is not surely above {CONE:g} and above that of shuffled weights, "
    "so there is no cone that training made"
)
_LETTERS = 6  # of a word, with the space after it: a guess of how many words there are
FREQUENT = 256  # words; pairs of a word with itself are left out, and rarer words hardly meet
_TOP = 5  # dimensions that the table names


@dataclass(frozen=True)
class Anisotropy(TextBlocks):
    """Do states lie in a narrow cone, and is it more than a few dimensions?

    Method: in one pass, sums over all words (as the tokenizer cuts texts, the mean of a word's
    pieces) of unit vectors, of states and of their outer products. They give for each layer the
    mean cosine of all pairs of different words of different texts, and what each dimension adds to
    it (a word is not set against itself; this is told of the 256 most frequent ones, punctuation
    too, since rarer ones hardly meet themselves); the covariance, and so the shares of principal
    components, the participation ratio and IsoScore. A sample of words gives what must be
    normalised again: the mean cosine without the 1, 3 or 5 dimensions that add most to it, and
    after repairs (centring; taking off the first principal components too, one for each 100
    dimensions; standardising; whitening), and Mu and Viswanath's partition function over the
    eigenvectors of the second moments, both ways: the smallest over the largest, and the spread
    over the mean. Dimensions and repairs are found on one half of the texts and measured on the
    other. Growth is that of the line that fits all layers best, from the output of the first to
    that of the last; what enters the first one is in the tables (-1) only.
    The same cosines are measured on copies with shuffled weights: a model that learnt nothing may
    have a cone, and only one that is surely narrower than that of one more copy bears out a claim.
    Intervals are over texts (one of ten blocks left out at a time, with dimensions found anew;
    repairs are taken as given). A text that is there twice is read once.

    Source: Ethayarajh (2019); Mu and Viswanath (2018); Rudman et al. (2022) on IsoScore; Timkey and
    van Schijndel (2021) on dominating dimensions. Limits: frequent words have more weight, as in
    texts (`random` of self-similarity has each word once). The partition function changes with the
    unit of states; so it is also given for a mean squared length of 1. Shares of components and the
    partition function have no interval.
    """

    version: ClassVar[int] = 4  # controls are gates; growth asks for the order of layers
    result_type: ClassVar[type[Result]] = AnisotropyResult

    sampled: int = parameter(
        4000, "Words for cosines after a change, drawn at random.", minimum=200, maximum=100_000
    )

    def one_pass(
        self, encoder: Encoder, corpus: Corpus, context: Context, *, whole: bool
    ) -> xr.Dataset:
        """Sums by block, then the geometry of each layer."""
        import torch
        import xarray as xr

        from bertology.annotated.recurring_words import frequent_kinds, number_among
        from bertology.model.reducers.word_sums import DirectionSums

        texts, layers = corpus.texts, encoder.shape.layers
        frequent = self.chosen_once(
            encoder, corpus, lambda: frequent_kinds(words_of_texts(encoder, texts), FREQUENT)
        )
        sums = DirectionSums(
            layers, encoder.shape.hidden, encoder.device, frequent=len(frequent), moments=whole
        )
        sample = _Sample(self.sampled if whole else 0, _letters(texts), self.seed)
        taken, counts, pairs, by_kind, tokens = [], [], [], [], 0
        for number, block in enumerate(self.blocks(corpus)):
            count, squares, of_kinds = 0, 0.0, np.zeros(len(frequent))
            for read in word_batches_of(encoder, texts, block, tokens=context.batch_tokens):
                kinds = number_among(frequent, read.words.kinds)
                keep = sample.next(read, number, kinds) if whole else None
                places, twice = direction_places(read, kinds, encoder.device, keep)
                sums.start(read.pooled(encoder), places)
                encoder.run(read.batch, reduce=dict.fromkeys(SITES, sums))
                sample.trim(sums)
                count += len(read.words)
                squares += float((np.bincount(read.words.texts) ** 2).sum()) - twice
                of_kinds += np.bincount(kinds[kinds >= 0], minlength=len(frequent))
                tokens += int(read.words.lengths.sum())
                context.advance(len(read.batch))
            taken.append(sums.taken())
            counts.append(count)
            pairs.append(squares)
            by_kind.append(of_kinds)
        of_layers = [
            LayerSums(
                counts=np.array(counts, np.float64),
                pairs=np.array(pairs),
                kind_counts=np.array(by_kind),
                **{
                    name: torch.stack([one[name][layer] for one in taken]).double().numpy()
                    for name in taken[0]
                },
            )
            for layer in range(layers + 1)
        ]
        cosines = np.stack([one.cosines() for one in of_layers], axis=1)
        data = xr.Dataset(
            {"cosine": (("left", "layer"), cosines)},
            coords={"layer": [INPUT, *range(layers)]},
            attrs={"texts": len(texts), "words": int(sum(counts)), "tokens": tokens},
        )
        if not whole:
            return data
        states = sample.states(sums)
        found = [
            geometry(one, sample.words(of_layer))
            for one, of_layer in zip(of_layers, states, strict=True)
        ]
        for name, dims in _DIMS.items():
            data[name] = ((*dims, "layer"), np.stack([one[name] for one in found], axis=-1))
        data.attrs["sampled"] = len(sample.texts)
        return data

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Cosines, measures of isotropy, dominating dimensions and repairs by layer."""
        import xarray as xr

        model, n = measured[MODEL], int(measured[MODEL].attrs["texts"])
        cosines = model["cosine"].to_numpy()
        copies = [one["cosine"].to_numpy()[0] for one in self.of_copies(measured)]
        mean = self.over_texts(cosines[:, 1:].mean(axis=1), n)
        growth = self.over_texts(change(cosines[:, 1:]), n)
        beyond = self.beyond_copies(mean, [float(one[1:].mean()) for one in copies])
        grown = self.beyond_copies(growth, [float(change(one[1:])) for one in copies])
        without = {
            count: self.over_texts(model["without"].to_numpy()[at][:, 1:].mean(axis=1), n)
            for at, count in enumerate(REMOVED)
        }
        centred = model["repaired"].to_numpy()[REPAIRS.index("centred")]
        cone = mean.with_controls({CHANCE: beyond})
        there = cone.low > CONE and not cone.missed
        evidence: dict[str, Estimate | None] = {
            "narrow_cone": cone,
            "cone_growth": in_this_order(growth, cosines[0, 1:], change).with_controls(
                {CHANCE: grown}
            ),
            "cone_without_dominating": without[3] if there else None,
            "mean_cosine": mean,
            "cosine_beyond_shuffled": beyond,
            "cosine_growth": growth,
            "growth_beyond_shuffled": grown,
            **{f"cosine_without_{count}": found for count, found in without.items()},
            "cosine_centred": self.over_texts(centred[:, 1:].mean(axis=1), n),
            "mean_isoscore": self.over_texts(model["isoscore"].to_numpy()[:, 1:].mean(axis=1), n),
        }
        contributions = model["contributions"].to_numpy().T  # (layer, dimension)
        return self.result(
            provenance,
            {
                "layers": self._layers(model, np.mean(copies, axis=0)),
                "dimensions": _dimensions(model, contributions),
                "repairs": self._repairs(model),
            },
            evidence=evidence,
            reasons={"cone_without_dominating": _NO_CONE},
            facts={
                "examples": n,
                "width": contributions.shape[1],
                **{name: int(model.attrs[name]) for name in ("words", "tokens", "sampled")},
            },
            arrays=xr.Dataset({"contributions": (("layer", "dimension"), contributions)}),
        )

    def _layers(self, model: xr.Dataset, shuffled: Floats) -> pd.DataFrame:
        layers = model["layer"].to_numpy()
        columns: dict[str, Any] = self._bounded("cosine", model["cosine"].to_numpy())
        for at, count in enumerate(REMOVED):
            columns |= self._bounded(f"without_{count}", model["without"].to_numpy()[at])
        columns["shuffled"] = shuffled
        for name in ("isoscore", "participation"):
            columns |= self._bounded(name, model[name].to_numpy())
        for at, name in enumerate(("first", "three", "ten")):
            columns[f"{name}_share"] = model["shares"].to_numpy()[at]
        for name in ("partition", "partition_spread"):
            columns[name], columns[f"{name}_scaled"] = model[name].to_numpy()
        return labelled_table({"layer": layers}, columns)

    def _repairs(self, model: xr.Dataset) -> pd.DataFrame:
        """Bounds hold for all layers of one repair."""
        layers, repaired = model["layer"].to_numpy(), model["repaired"].to_numpy()
        each = [self._bounded("cosine", values) for values in repaired]
        columns: dict[str, Any] = {name: [one[name] for one in each] for name in each[0]}
        scores = model["repaired_scores"].to_numpy()  # (repair, score, layer)
        for at, name in enumerate(("isoscore", "participation", "first_share")):
            columns[name] = scores[:, at]
        return labelled_table({"repair": REPAIRS, "layer": layers}, columns)

    def _bounded(self, name: str, values: Floats) -> dict[str, Floats]:
        """Of (1 + blocks, layers)."""
        arm = left_out_arms(values[1:], level=self.level, families=values.shape[1])
        return {name: values[0], f"{name}_low": values[0] - arm, f"{name}_high": values[0] + arm}


_DIMS: dict[str, tuple[str, ...]] = {
    "isoscore": ("left",),
    "participation": ("left",),
    "shares": ("count",),
    "contributions": ("dimension",),
    "partition": ("unit",),
    "partition_spread": ("unit",),
    "without": ("removed", "left"),
    "repaired": ("repair", "left"),
    "repaired_scores": ("repair", "score"),
}


def direction_places(
    read: WordsOfBatch, kinds: Ints, device: torch.device, keep: Ints | None = None
) -> tuple[DirectionPlaces, float]:
    """What the sums must know of a batch, on the device.

    And the number of pairs, each way, of one frequent word in one text.
    """
    from bertology.model.reducers.word_sums import DirectionPlaces
    from bertology.model.transfer import sent_together

    places = np.flatnonzero(kinds >= 0)
    # One number for word and text: sorting one column is many times as quick as sorting two.
    same = read.words.texts[places] * (kinds.max(initial=0) + 1) + kinds[places]
    order = np.argsort(same, kind="stable")
    places, groups = places[order], run_starts(same[order])
    arrays = [run_starts(read.words.texts), places, groups, kinds[places[groups]]]
    found = DirectionPlaces(*sent_together(arrays if keep is None else [*arrays, keep], device))
    sizes = np.diff(groups, append=len(places))
    return found, float((sizes**2).sum())


def _letters(texts: Sequence[Any]) -> int:
    return sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts)


def _dimensions(model: xr.Dataset, contributions: Floats) -> pd.DataFrame:
    """Those that add most to the mean cosine of each layer."""
    order = np.argsort(-contributions, axis=1, kind="stable")[:, :_TOP]
    largest = np.take_along_axis(contributions, order, axis=1)
    whole = model["cosine"].to_numpy()[0][:, None]
    return labelled_table(
        {"layer": model["layer"].to_numpy(), "rank": range(1, order.shape[1] + 1)},
        {"dimension": order, "contribution": largest, "share": largest / whole},
    )


class _Sample:
    """Words drawn at random from a stream whose length is not known: those with smallest keys."""

    def __init__(self, most: int, letters: int, seed: int) -> None:
        self._most, self._seed = most, seed
        # Twice as many as are wanted, by a guess; too many are thinned out on the way.
        share = min(1.0, 2 * most * _LETTERS / max(letters, 1))
        self._border = np.uint64(min(int(share * 2.0**64), 2**64 - 1))
        self._keys, self.texts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._blocks, self._kinds = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def next(self, read: WordsOfBatch, block: int, kinds: Ints) -> Ints:
        """Which words of a batch are kept."""
        words = read.words
        place = np.arange(len(words)) - np.searchsorted(words.texts, words.texts)
        texts = read.texts[words.texts]
        keys = mixed(texts, place, self._seed)
        kept = np.flatnonzero(keys <= self._border) if self._most else np.zeros(0, np.int64)
        self._keys = np.concatenate([self._keys, keys[kept]])
        self.texts = np.concatenate([self.texts, texts[kept]])
        self._blocks = np.concatenate([self._blocks, np.full(len(kept), block)])
        self._kinds = np.concatenate([self._kinds, kinds[kept]])
        return kept

    def trim(self, sums: DirectionSums, *, last: bool = False) -> None:
        """Let go of those with the largest keys, if there are far too many, or at the end."""
        if len(self._keys) <= (self._most if last else 4 * self._most):
            return
        import torch

        order = np.sort(np.argsort(self._keys, kind="stable")[: self._most])
        held = torch.cat(sums.kept, dim=1)
        sums.kept[:] = [held[:, torch.as_tensor(order, device=held.device)]]
        self._keys, self.texts = self._keys[order], self.texts[order]
        self._blocks, self._border = self._blocks[order], self._keys.max()
        self._kinds = self._kinds[order]

    def states(self, sums: DirectionSums) -> torch.Tensor:
        """(L + 1, words, width) of what was drawn, off the device."""
        import torch

        self.trim(sums, last=True)
        return torch.cat(sums.kept, dim=1).cpu()

    def words(self, states: torch.Tensor) -> SampledWords:
        """The states of one layer, with texts, blocks and frequent words."""
        return SampledWords(states.double().numpy(), self.texts, self._blocks, self._kinds)
