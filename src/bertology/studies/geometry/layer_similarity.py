"""Layer similarity: which layers, of one model or of two, hold the same?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.results.answers import largest_row, listed, of_row, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import LayerGrid, Measure, Tracked
from bertology.results.provenance import Provenance, short_model
from bertology.results.result import Result
from bertology.stats import Estimate, mean_interval
from bertology.stats.similarity import (
    alikeness_of,
    cka,
    cka_of_texts,
    held_out_cca,
    own_products,
    paired_cka,
    paired_products,
    samples_of,
)
from bertology.studies.designs.layer_places import bounds_of
from bertology.studies.designs.noise import (
    NO_NOISE,
    NoiseControlled,
    ProfileInfluences,
    as_large_as,
    last_layers,
)
from bertology.studies.designs.parts import Gathered, gather, start_of
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


_READING = {
    "cka": "1: the same up to rotation and size; 0: nothing in common.",
    "cca": "1: each main direction of one is found in the other; 0: none is.",
    "rv": "As CKA, but too high where words are few.",
    "rv_modified": "As CKA; products of a word with itself are left out.",
    "shuffled_weights": "What the same network has in common without training.",
}
_TITLES = {
    "cka": "How alike layers are (CKA)",
    "cca": "How alike the main directions of layers are (CCA)",
    "rv": "How alike layers are (RV)",
    "rv_modified": "How alike layers are (modified RV)",
    "shuffled_weights": "How alike layers are where weights are shuffled (CKA)",
}
_UNITS = {
    "cka": "CKA",
    "cca": "mean canonical correlation",
    "rv": "RV",
    "rv_modified": "modified RV",
    "shuffled_weights": "CKA",
}
_ALIKE = 0.9  # CKA of all layers of a run that is called alike


class LayerSimilarityResult(Result):
    """How alike layers are.

    Table `layers`: CKA with the layer before (`neighbour`), with the layer of the same depth in the
    other model (`same`), and `change`, 1 − `same`. Table `nearest`: the most alike layer of the
    other model, picked on every second text, and its CKA in the rest. Table `pairs`: for each layer
    (-1 is what enters the first one) and each `other` layer, of the model `against` or of the same:
    `cka` without bias and `cca` on held-out texts, each with bounds that hold for all pairs
    together; `rv` and `rv_modified`; CKA with words in shuffled order (`shuffled_words`) and with
    shuffled weights (`shuffled_weights`: of the other model, or, where there is none, of both
    sides). Table `noise`: the change of each layer in noisy copies, and by training (`trained`) in
    the same texts.
    """

    @property
    def answer(self) -> str:
        """How alike the two are, and which layer differs most; or which layers are alike."""
        found, layers = self.evidence(), self.tables["layers"]
        if not self._between:
            alike = _runs(self._grid("cka_low"), _ALIKE)
            told = (
                f"all pairs surely above {_ALIKE} in {listed(alike)}"
                if alike
                else (f"no two layers are surely above {_ALIKE}")
            )
            return (
                f"Successive layers of {self._ours} have a CKA of {_shown(found, 'neighbours')} "
                f"(1: alike; shuffled weights: {self._neighbours_shuffled():.2f}); {told}."
            )
        row = largest_row(layers, "change")
        changed = plain(of_row(row, bounds_of("change")), ".3f")
        return (
            f"Layers of {self._ours} and {self._theirs} at the same depth have a mean CKA of "
            f"{_shown(found, 'same_depth')} (1: alike up to rotation and size; 0: nothing in "
            f"common); layer {int(row['layer'])} differs most, by {changed}."
        )

    def headline(self) -> str:
        """How many texts, and how far the weights moved where that can be said."""
        facts = self.facts
        told = f"Over {facts['examples']} {facts['unit']}; canonical correlations of "
        told += f"{facts['components']} components"
        if "weight_change" in facts:
            told += f"; the weights differ by {100 * facts['weight_change']:.2g} % of their length"
        return told

    def layer_grids(self) -> Sequence[LayerGrid]:
        """CKA and CCA of all pairs."""
        return [self._layer_grid(name) for name in ("cka", "cca")]

    def measures(self) -> Sequence[Measure]:
        """Each layer with the one before, and with the same layer of the other model."""
        found = []
        if self._between:
            found += [
                self._measure(
                    "same",
                    f"CKA with the layer of {self._theirs} at the same depth",
                    _READING["cka"],
                ),
                self._measure(
                    "change",
                    f"How far the layer is from that of {self._theirs}",
                    "0: the same up to rotation and size; 1: nothing in common.",
                    unit="1 − CKA",
                ),
            ]
        return [*found, self._measure("neighbour", "CKA with the layer before", _READING["cka"])]

    def over_training(self) -> Sequence[Tracked]:
        """Likeness with the other model, or of successive layers."""
        if self._between:
            label = f"likeness (CKA) of layers with those of {self._theirs}"
            return [Tracked("same_depth", label, layers="same", unit="CKA")]
        label = "likeness (CKA) of successive layers"
        return [Tracked("neighbours", label, layers="neighbour", unit="CKA")]

    def drawings(self) -> Sequence[Drawing]:
        """The grid of pairs, all measures of it, and what layers moved."""
        models = (self._ours, self._theirs)
        shown = [self._layer_grid(n) for n in ("cka", "cca", "rv", "shuffled_weights")]
        labels = ["CKA", "CCA, held out", "RV (too high)", "CKA, shuffled weights"]
        found = [
            drawings.layer_grids("pairs", shown[:1], self.about, models=models),
            drawings.layer_grids(
                "measures",
                shown,
                self.about,
                models=models,
                title="How alike layers are, by several measures",
                labels=labels,
            ),
        ]
        if not self._between:
            return [*found, drawings.bars(self.measure("neighbour"), self.about, name="layers")]
        return [*found, self._profile()]

    # --------------------------------------------------------------------------------------------

    @property
    def _between(self) -> bool:
        return "same" in self.tables["layers"]

    @property
    def _noise(self) -> bool:
        return "noise" in self.tables

    @property
    def _ours(self) -> str:
        return short_model(str(self.provenance.model.get("name")))

    @property
    def _theirs(self) -> str:
        if not self._between:
            return self._ours
        given = self.provenance.others.get("against", {}).get("name")
        return short_model(str(given or self.provenance.parameters["against"]))

    def _grid(self, column: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        table = self.tables["pairs"]
        rows = int(table["layer"].max()) + 2
        return table[column].to_numpy().reshape(rows, -1)

    def _layer_grid(self, column: str) -> LayerGrid:
        bounds = f"{column}_low" in self.tables["pairs"]
        return LayerGrid(
            name=column.replace("_", "-"),
            title=_TITLES[column],
            values=self._grid(column),
            unit=_UNITS[column],
            reading=_READING[column],
            low=self._grid(f"{column}_low") if bounds else None,
            high=self._grid(f"{column}_high") if bounds else None,
            other="against" if self._between else "",
        )

    def _measure(self, column: str, title: str, reading: str, unit: str = "CKA") -> Measure:
        return Measure.of_column(
            self.tables["layers"],
            column,
            name=column,
            title=title,
            unit=unit,
            reading=reading,
        )

    def _profile(self) -> Drawing:
        """What layers moved; also by noise, as it is and as claims are judged."""
        title = f"How far layers are from those of {self._theirs}"
        reading = "0: the same up to rotation and size."
        change = self.measure("change")
        if not self._noise:
            return drawings.profile(
                "layers", [change], self.about, title=title, reading=reading, labels=["change"]
            )
        return drawings.profile(
            "layers",
            [change, self._of_noise(scaled=False), self._of_noise(scaled=True)],
            self.about,
            title=title,
            reading=f"{reading} Claims are judged against the scaled noise: it moves states as "
            "much on average over layers, so that the question is where.",
            labels=["by training", "by noise of the same size", "noise, scaled"],
            shaded="intervals over examples; of noise, the range of copies",
        )

    def _of_noise(self, *, scaled: bool) -> Measure:
        """The mean of copies and their range; `scaled` to the mean change by training."""
        table = self.tables["noise"]
        moved, trained = (
            table.pivot(index="copy", columns="layer", values=name).to_numpy(float)
            for name in ("change", "trained")
        )
        if scaled:
            moved = as_large_as(trained, moved)
        return Measure(
            "scaled-noise" if scaled else "noise",
            "How far noise moves the layer",
            moved.mean(axis=0),
            unit="1 − CKA",
            low=moved.min(axis=0),
            high=moved.max(axis=0),
        )

    def _neighbours_shuffled(self) -> float:
        return float(np.diagonal(self._grid("shuffled_weights"), offset=1).mean())


def _shown(found: Mapping[str, object], name: str) -> str:
    from bertology.stats import Estimate

    known = found.get(name)
    return plain(known, ".3f") if isinstance(known, Estimate) else "unknown size (no interval)"


def _runs(low: np.ndarray[tuple[int, int], np.dtype[np.float64]], least: float) -> list[str]:
    """Longest runs of layers of which all pairs surely reach `least`; the input is named so."""
    found, start, size = [], 0, len(low)
    while start < size:
        end = start
        while end + 1 < size and (low[start : end + 1, end + 1] > least).all():
            end += 1
        if end > start:
            first = "the input" if start == 0 else f"layer {start - 1}"
            found.append(f"{first} to layer {end - 1}")
        start = end + 1
    return found


States = NDArray[np.float32]
Places = NDArray[np.int64]
_COMPARED = ((0, 0), (1, 1), (0, 1), (2, 2), (0, 2))  # of before, a noisy copy, after
_GROUPS = 2048  # at most so many texts, or groups of them, have numbers of their own
_BY_HALVES = ("half_products", "half_rows", "half_columns", "first_half")
_ALONE = "not judged: the layers were compared with each other and with no model before"
_SAME = "not judged: this is the same model twice"
_OTHERWISE = "not judged: the two models are built in different ways"
_UNRELATED = (
    "not judged: the weights of the two models differ by more than half of their length, so "
    "one was not fine-tuned from the other"
)
_FARTHEST = 0.5  # of the length of all weights; fine-tuning moves them by a few hundredths of it


@dataclass(frozen=True)
class LayerSimilarity(NoiseControlled):
    """Which layers hold the same, in one model, in two, or before and after training?

    Method: at most `words` words of each text are drawn, and their states (means over pieces) are
    taken from every layer. Two layers are compared over the same words; with `against`, those of
    another model, whose width, depth and vocabulary may differ: words are compared, not tokens.
    Three measures are given. Linear CKA (1: alike up to rotation and size; 0: nothing in common)
    with the unbiased HSIC, as the plain one is far too high where words are few; it is summed over
    samples that have at most one word of a text. RV, which is CKA with the plain HSIC of these same
    samples, and modified RV. And the mean canonical correlation of the first `components` principal
    components: found on half of the texts of each block, correlated on the other half, so that 0 is
    what unrelated states give. Intervals of CKA and CCA are over texts; those of a table hold for
    all its rows together.

    Beside them stand what words in shuffled order give (0 but for chance) and what a model with
    shuffled weights gives: neighbours in any network with residual connections are alike. Where a
    model was trained from the other, the change of a layer is 1 − CKA, and `noise` copies of the
    earlier one with weights moved at random as far as by training show what any change of that
    size does. If training were noise, the trained model would be one more copy: the interval
    predicts one more (Student's), and adds the error over texts of "trained less noise" in the same
    texts. A copy reads 128 texts or more, where there are so many, since in fewer it is texts that
    make copies differ. The layer of the other model that is nearest is picked on every second text
    and measured on the rest, in samples that have no text of the other half.

    Source: Kornblith et al. (2019) on CKA, Nguyen et al. (2021) on sums over samples, Raghu et al.
    (2017) on SVCCA; on fine-tuning the Primer (2020), section 5.2. Limits: CKA and RV weigh
    directions by their variance, so a few dimensions with large values may decide them; intervals
    are over texts, and another training may move other layers. Shuffled weights are those of one
    copy, and its own chance is in no interval.
    """

    version: ClassVar[int] = 3  # controls are gates; "most in the last layers" asks for their order
    by_words: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(capabilities=frozenset({"residual"}), fields=frozenset({"text"}))
    finds_words: ClassVar[bool] = True
    help_options: ClassVar[tuple[str, str]] = ("--against bertology-mini@2416", "")
    result_type: ClassVar[type[Result]] = LayerSimilarityResult
    block: ClassVar[int] = 256
    block_on_gpu: ClassVar[int | None] = None  # samples are drawn within blocks
    fewest: ClassVar[int] = 8
    fewest_by_copy: ClassVar[int] = 128  # with fewer texts these, not noise, make draws differ

    against: str = parameter(
        "",
        "Another model, whose layers are compared with those of MODEL. If not given: the one that "
        "MODEL was fine-tuned from where that is known, else layers of MODEL with each other.",
        model=True,
        before="if known",
        concludes=True,
    )
    noise: int = parameter(
        20,
        "Copies of the earlier model with weight noise as large as the change; 0: none. Up to 5 "
        "read all texts, more of them a random part each: five times the texts in all, and 128 "
        "texts each at least.",
        minimum=0,
        maximum=100,
    )
    words: int = parameter(8, "Draw so many words of each text at most.", minimum=1, maximum=100)
    components: int = parameter(
        20,
        "Principal components that canonical correlations are of; fewer where words are few.",
        minimum=1,
        maximum=200,
    )

    def _blocks(self, corpus: Corpus, size: int) -> list[str]:
        """Blocks as even as can be: samples of a small last one would tell little."""
        n = len(self.shown(corpus))
        ends = np.linspace(0, n, max(1, n // size) + 1).astype(int)
        return [f"examples-{a:06d}-{b:06d}" for a, b in pairwise(ends)]

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Products of all pairs of layers in one block, by text."""
        import xarray as xr

        from bertology.annotated.drawn_states import drawn_words, states_of_words
        from bertology.model.weight_noise import shuffled_copy

        start, block = start_of(part), self.of_block(part, corpus)
        other = context.others.get("against")
        both = [encoder] if other is None else [encoder, other]
        words = drawn_words(both, block, most=self.words, seed=self.seed, start=start)
        read = partial(
            states_of_words, corpus=block, words=words, batch_tokens=context.batch_tokens
        )
        texts = np.repeat(np.arange(len(block)), list(map(len, words)))
        seed = (self.seed, start)
        taken = _Samples(texts, texts // self._group(corpus), samples_of(texts, seed=seed), seed)
        ours = read(encoder, advance=context.advance)
        theirs = ours if other is None else read(other)
        shuffled = read(shuffled_copy(both[-1], seed=self.seed))
        found = taken.compared("", ours, theirs)
        found |= taken.compared("untrained_", shuffled if other is None else ours, shuffled)
        if other is not None:
            found["within"] = ("text", "row", "row_too"), taken.products(ours, ours)
            found |= taken.by_halves(ours, theirs)
        cca, components = held_out_cca(ours, theirs, taken.groups, components=self.components)
        found["cca"] = ("text", "row", "column"), cca.astype(np.float32)
        moved = _weight_change(other, encoder)
        found["noise"] = (
            ("text", "copy", "product", "depth"),
            self._noise(encoder, other, block, words, (theirs, ours), part, corpus, context)
            if 0 < moved < 1 and other is not None
            else np.zeros((len(cca), 0, len(_COMPARED), 0)),
        )
        found["components"] = ("block",), np.array([components], np.float64)
        return xr.Dataset(found, attrs={"weight_change": moved, "group": self._group(corpus)})

    def _group(self, corpus: Corpus) -> int:
        """How many texts have one number together: memory does not grow with the corpus."""
        return min(-(-len(self.shown(corpus)) // _GROUPS), self.block // 4)

    def _noise(
        self,
        encoder: Encoder,
        before: Encoder,
        block: Corpus,
        words: Sequence[Sequence[int]],
        states: tuple[States, States],
        part: str,
        corpus: Corpus,
        context: Context,
    ) -> Floats:
        """(text, copy, product, layer): of noisy copies, and of training, in the same texts.

        Products are those of before, noise, both; after, before and after.
        """
        from dataclasses import replace

        from bertology.annotated.drawn_states import states_of_words
        from bertology.model.weight_noise import noisy_copies

        earlier, trained = states
        texts = np.repeat(np.arange(len(block)), list(map(len, words)))
        groups = texts // self._group(corpus)
        size = int(groups.max(initial=-1)) + 1
        found = np.zeros((size, self.noise, len(_COMPARED), len(earlier)))
        copies = noisy_copies(before, encoder, draws=self.noise, seed=self.seed, even=True)
        read = self.read_by_copies(part, corpus)
        for at, noisy in enumerate(copies):
            here = np.isin(texts, read[at])
            chosen = [words[i] for i in read[at]]
            some = replace(block, examples=[block[int(i)] for i in read[at]])
            samples = samples_of(texts[here], seed=(self.seed, start_of(part), at))
            if not samples:
                continue
            moved = states_of_words(noisy, some, chosen, batch_tokens=context.batch_tokens)
            sides = (earlier[:, here], moved, trained[:, here])
            found[:, at] = paired_products(
                sides, _COMPARED, groups[here], samples=samples, size=size
            )
        return found

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Ratios of sums with their intervals; what layers moved, beyond noise."""
        by_text = [
            f"{of}{name}" for of in ("", "untrained_") for name in ("products", "rows", "columns")
        ]
        sums = ["shuffled", "plain", "plain_rows", "plain_columns"]
        between = bool(self.against)
        more = ["within", *_BY_HALVES] if between else []
        by_text += [*more, "cca", "components", "noise"]
        seen = gather(measured, concatenate=by_text, add=sums)
        values = cka_of_texts(seen["products"], seen["rows"], seen["columns"])
        untrained = cka_of_texts(
            *(seen[f"untrained_{name}"] for name in ("products", "rows", "columns"))
        )
        own = cka_of_texts(seen["within"], seen["rows"], seen["rows"]) if between else values
        group, moved = int(seen.facts["group"]), float(seen.facts["weight_change"])
        unit = "texts" if group == 1 else f"groups of {group} texts"
        same = _same_depth(values)
        evidence: dict[str, Estimate | None] = {}
        neighbours = np.stack([own[:, i + 1, i] for i in range(own.shape[1] - 1)], 1)
        if between:
            evidence["same_depth"] = self._mean(same.mean(1), unit)
            beyond = same - _same_depth(untrained)
        else:
            evidence["neighbours"] = self._mean(neighbours.mean(1), unit)
            plain = np.stack([untrained[:, i + 1, i] for i in range(own.shape[1] - 1)], 1)
            beyond = neighbours - plain
        evidence["beyond_shuffled_weights"] = self._mean(beyond.mean(1), unit)
        noise, matched, influences = _changes(seen["noise"], unit)
        why = self._why_not(provenance, values, moved, between)
        if not why and len(noise):
            means = partial(self.means, within=(-1, 1))
            evidence |= last_layers(1 - same, noise, matched, means, influences)
        tables = {"layers": self._layers(neighbours, same if between else None)}
        if between:
            tables["nearest"] = self._nearest(seen)
        tables["pairs"] = self._pairs(values, untrained, seen)
        if len(noise) and not why:
            tables["noise"] = labelled_table(
                {"copy": range(len(noise)), "layer": range(noise.shape[1])},
                {"change": noise, "trained": matched},
            )
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons={"": why} if why else {},
            facts={
                "examples": len(values),
                "unit": unit,
                "components": int(seen["components"].min()),
                "same_layers": int(values.shape[1] == values.shape[2]),
                **({"weight_change": moved} if np.isfinite(moved) else {}),
            },
        )

    def _why_not(self, provenance: Provenance, values: Floats, moved: float, between: bool) -> str:
        """Why what training moved is not judged; empty where it is."""
        if not between:
            return _ALONE
        other = provenance.others.get("against", {}).get("fingerprint", "")
        if other == provenance.model["fingerprint"] or moved == 0:
            return _SAME
        if np.isinf(moved):
            return _OTHERWISE
        return _UNRELATED if moved >= _FARTHEST else "" if self.noise else NO_NOISE

    def _mean(self, rows: Floats, unit: str) -> Estimate | None:
        """The mean over texts."""
        if len(rows) < 2 or not np.isfinite(rows).all():
            return None
        return mean_interval(rows, self.level).counting(unit)

    def _pairs(self, values: Floats, untrained: Floats, seen: Gathered) -> pd.DataFrame:
        rows, columns = values.shape[1:]
        flat = values.reshape(len(values), -1).T
        of_cka = self.means(flat, within=(-1, 1))
        of_cca = self.means(seen["cca"].astype(float).reshape(len(values), -1).T, within=(-1, 1))
        chance = cka(seen["shuffled"], seen["rows"].sum(0), seen["columns"].sum(0))
        rv, modified = (
            cka(seen["plain"][kind], seen["plain_rows"][kind], seen["plain_columns"][kind])
            for kind in (0, 1)
        )
        return labelled_table(
            {"layer": range(-1, rows - 1), "other": range(-1, columns - 1)},
            {
                **with_bounds("cka", of_cka, p=False),
                **with_bounds("cca", of_cca, p=False),
                "rv": rv,
                "rv_modified": modified,
                "shuffled_words": chance,
                "shuffled_weights": untrained.mean(0),
            },
        )

    def _layers(self, neighbours: Floats, same: Floats | None) -> pd.DataFrame:
        found = {**with_bounds("neighbour", self.means(neighbours.T, within=(-1, 1)), p=False)}
        if same is not None:
            found |= with_bounds("same", self.means(same.T, within=(-1, 1)), p=False)
            found |= with_bounds("change", self.means(1 - same.T, within=(0, 2)), p=False)
        return labelled_table({"layer": range(neighbours.shape[1])}, found)

    def _nearest(self, seen: Gathered) -> pd.DataFrame:
        """The most alike layer of the other model, picked on half of the texts; CKA in the rest."""
        first = seen["first_half"] > 0
        picked, rest = (
            cka_of_texts(*(seen[name][half] for name in _BY_HALVES[:3])) for half in (first, ~first)
        )
        at = np.nanargmax(np.nan_to_num(picked.mean(0)), axis=1)
        chosen = np.stack([rest[:, row, column] for row, column in enumerate(at)], 1)
        return labelled_table(
            {"layer": range(-1, len(at) - 1)},
            {"other": at - 1, **with_bounds("cka", self.means(chosen.T, within=(-1, 1)), p=False)},
        )


@dataclass(frozen=True)
class _Samples:
    """The words of a block: their texts, the groups these belong to, and samples of them."""

    texts: Places
    groups: Places
    samples: list[Places]
    seed: tuple[int, int]

    def products(self, x: States, y: States) -> Floats:
        return alikeness_of(x, y, self.groups, samples=self.samples, seed=self.seed).products

    def by_halves(self, x: States, y: States) -> dict[str, tuple[tuple[str, ...], Floats]]:
        """Products in samples of even and of odd texts: what one half says, the other cannot know.

        In samples of all texts each product is of two texts, which may be of different halves.
        """
        even = self.groups % 2 == 0
        halves = [np.flatnonzero(even), np.flatnonzero(~even)]
        samples = [
            half[sample]
            for half in halves
            for sample in samples_of(self.texts[half], seed=(*self.seed, 1))
        ]
        size = int(self.groups.max(initial=-1)) + 1
        products = alikeness_of(x, y, self.groups, samples=samples, seed=self.seed).products
        rows, columns = (own_products(side, self.groups, samples=samples)[0] for side in (x, y))
        return {
            _BY_HALVES[0]: (("text", "row", "column"), products),
            _BY_HALVES[1]: (("text", "row"), rows),
            _BY_HALVES[2]: (("text", "column"), columns),
            _BY_HALVES[3]: (("text",), (np.arange(size) % 2 == 0).astype(float)),
        }

    def compared(self, of: str, x: States, y: States) -> dict[str, tuple[tuple[str, ...], Floats]]:
        """All that is kept of two models."""
        found = alikeness_of(x, y, self.groups, samples=self.samples, seed=self.seed)
        (rows, plain_rows), (columns, plain_columns) = (
            own_products(side, self.groups, samples=self.samples) for side in (x, y)
        )
        down, across = f"{of}row", f"{of}column"
        kept: dict[str, tuple[tuple[str, ...], Floats]] = {
            "products": (("text", down, across), found.products),
            "rows": (("text", down), rows),
            "columns": (("text", across), columns),
            "shuffled": ((down, across), found.shuffled),
            "plain": (("kind", down, across), found.plain),
            "plain_rows": (("kind", down), plain_rows),
            "plain_columns": (("kind", across), plain_columns),
        }
        return {f"{of}{name}": value for name, value in kept.items()}


def _changes(noise: Floats, unit: str) -> tuple[Floats, Floats, ProfileInfluences]:
    """(copy, layer): 1 − CKA of noisy copies with the model before, and of the trained one.

    Also what each text does to both.
    """
    before, noisy, both, after, trained = np.moveaxis(noise, 2, 0)[..., 1:]
    (alike, of_noise), (matched, of_matched) = (
        paired_cka(products, before, own) for products, own in ((both, noisy), (trained, after))
    )
    return 1 - alike, 1 - matched, ProfileInfluences(-of_noise, -of_matched, unit)


def _same_depth(values: Floats) -> Floats:
    """(text, layer): each layer with the one at the same share of the other model's depth."""
    layers, others = values.shape[1] - 1, values.shape[2] - 1
    return np.stack(
        [values[:, i, round(i * others / layers)] for i in range(1, layers + 1)], axis=1
    )


def _weight_change(before: Encoder | None, after: Encoder) -> float:
    """How long the change of the weights is, by their length; infinite where they do not match."""
    if before is None:
        return float("inf")
    one, two = (dict(e.base.named_parameters()) for e in (before, after))
    shared = {n: w for n, w in one.items() if n in two and two[n].shape == w.shape}
    if len(shared) < 0.9 * len(one) or before.shape.layers != after.shape.layers:
        return float("inf")
    moved = sum(
        float((two[n].detach().to(w) - w.detach()).double().square().sum())
        for n, w in shared.items()
    )
    whole = sum(float(w.detach().double().square().sum()) for w in shared.values())
    return float((moved / max(whole, 1e-30)) ** 0.5)
