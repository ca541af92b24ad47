"""The answer, measures and figures of what is told across languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from bertology.data.languages import name_of
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.report.figures.named_grid import named_grid
from bertology.results.answers import NOTHING_SURE, of_row, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.result import Result
from bertology.studies.languages.zero_shot_transfer.data import TASKS

if TYPE_CHECKING:
    import pandas as pd

RELATIONS = {
    "shared": "shared pieces",
    "order": "shared orders of words",
    "family": "the same family",
    "data": "text in pre-training",
}
_GAIN = ("gain", "gain_low", "gain_high")


class ZeroShotTransferResult(Result):
    """What is told in languages that nothing was learnt in.

    Table `pairs`: for each language to learn in (`source`) and each other one (`target`) the
    share of right answers (`score`), the same after the mean of each language's states was
    taken off (`centred`), that of the best baseline (the most frequent answer for a word's
    pieces, or one answer for all), that of copies with shuffled weights, and of what was learnt
    in the target itself (`own`). `gain` is the score less the baseline, with bounds that hold
    for all pairs together; `sure`: it is surely above zero and surely more than in the copies.
    `shared` is the share of pieces that both languages' texts have, `order` the share of orders
    of words. Table `sources`: the same for the languages that were learnt in, where `gain` is
    the score less one answer for all; `learnt` says whether that is surely above zero.
    `layers`: right answers by layer (-1 is what enters the first one), in the language that was
    learnt in and in others. `relations`: Spearman's correlation of the score with what is known
    of pairs (`value`), and beyond what else is known (`partial`); p-values are those of a
    permutation of languages. `variants`: what other ways to transfer give.
    """

    strongest: ClassVar[Mapping[str, str]] = {"pairs": "gain"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        **dict.fromkeys(
            ("pairs", "sources"),
            dict.fromkeys(("score", "centred", "baseline", "shuffled", "own"), "%")
            | {"gain": "points"},
        ),
        "layers": dict.fromkeys(("source", "transfer", "centred"), "%"),
        "variants": {"gain": "points"},
    }

    @property
    def what(self) -> str:
        """`parts of speech`."""
        return TASKS[str(self.facts["task"])][0]

    @property
    def answer(self) -> str:
        """In how many other languages the task is surely told, and how far beyond the baseline."""
        rows, sources = self.tables["pairs"], self.tables["sources"]
        known = sources[sources["learnt"]]
        if known.empty:
            return (
                f"{NOTHING_SURE}: {self.what} are not surely told even in the language that they "
                "were learnt in."
            )
        rows = rows[rows["source"].isin(known["source"])]
        names = [name_of(str(one)) for one in known["source"]]
        learnt = names[0] if len(names) == 1 else f"{len(names)} languages"
        sure = rows[rows["sure"]].sort_values("gain", ascending=False)
        mean = self.evidence().get("transfer_gain")
        if sure.empty and mean is not None and mean.surely_there:
            return (
                f"Learnt in {learnt}, {self.what} are surely told in other languages by "
                f"{points(mean, '.0f')} more than by the baseline, on average; no single language "
                "is surely told."
            )
        if sure.empty:
            return (
                f"{NOTHING_SURE}: learnt in {learnt}, {self.what} are not surely told in any other "
                "language beyond the baseline and copies with shuffled weights."
            )
        best = sure.iloc[0]
        of = "other languages" if len(names) == 1 else "pairs of languages"
        return (
            f"Learnt in {learnt}, {self.what} are surely told in {len(sure)} of {len(rows)} {of} "
            "beyond the baseline and copies with shuffled weights; by most "
            f"in {name_of(str(best['target']))} after {name_of(str(best['source']))}, by "
            f"{points(of_row(best, _GAIN), '.0f')}."
        )

    def measures(self) -> Sequence[Measure]:
        """Right answers by layer."""
        rows = self._layers()
        if rows.empty:
            return ()
        counted = TASKS[str(self.facts["task"])][2]
        told = {
            "transfer": ("in other languages", "High: what was learnt in one language holds."),
            "centred": (
                "in other languages, less the mean of each language",
                "High: it holds where languages are laid upon each other.",
            ),
            "source": ("in the language that was learnt in", "High: the layer's states tell it."),
        }
        return [
            Measure.of_column(
                rows,
                name,
                name=f"right-{name}",
                title=f"Right answers {title}",
                unit=f"% of {counted}",
                scale=100.0,
                reading=reading,
            )
            for name, (title, reading) in told.items()
        ]

    def over_training(self) -> Sequence[Tracked]:
        """What is told in other languages beyond the baseline."""
        if "transfer_gain" not in self.evidence():
            return ()
        layers = "right-transfer" if self.measures() else ""
        label = f"what is told in other languages beyond the baseline ({self.what})"
        return [Tracked("transfer_gain", label, layers, scale=100.0, unit="points", gain=True)]

    def _layers(self) -> pd.DataFrame:
        rows = self.tables["layers"]
        return rows[rows["layer"] >= 0]

    def drawings(self) -> Sequence[Drawing]:
        """The matrix of transfer (or its one row), layers, relations and variants."""
        sources = self.tables["sources"]
        found = [self._row(str(sources["source"].iloc[0]))]
        if len(sources) > 1:
            found = [self._matrix("score"), self._matrix("gain")]
        if self.measures():
            found.append(self._by_layer())
        if len(relations := self.tables["relations"]):
            rows = [RELATIONS[str(name)] for name in relations["relation"]]
            found.append(
                drawings.dots(
                    "relations",
                    [
                        Dots.of_columns("correlation", relations, "value", scale=1.0, level=0.0),
                        Dots.of_columns("beyond others", relations, "partial", scale=1.0, level=0),
                    ],
                    rows,
                    self.about,
                    title="What transfer goes with",
                    caption="Spearman's correlation of right answers in a language with what is "
                    "known of it and of the language that was learnt in, over languages; on the "
                    "right beyond shared orders of words (for pieces), beyond pieces (for the "
                    "others) or beyond both (for text in pre-training). These things go together, "
                    "and languages are few, so intervals are wide.",
                    note="Intervals are over languages.",
                )
            )
        if len(variants := self.tables["variants"]):
            found.append(
                drawings.dots(
                    "variants",
                    [Dots.of_columns("gain (points)", variants, "gain", level=0.0)],
                    list(variants["title"]),
                    self.about,
                    title="Other ways to transfer",
                    caption="What other ways to transfer give, in points: centring and frozen "
                    "layers beyond the plain way, a new vocabulary beyond the baseline. Intervals "
                    "of means are over languages and runs.",
                )
            )
        return found

    def _row(self, source: str) -> Drawing:
        rows = self.tables["pairs"].sort_values("score", ascending=False)
        panels = [
            Dots(
                "right (%)",
                100 * rows["score"].to_numpy(float),
                bars=100 * rows["shuffled"].to_numpy(float),
                hollow=100 * rows["baseline"].to_numpy(float),
            ),
            Dots.of_columns("beyond the baseline (points)", rows, "gain", level=0.0),
        ]
        if rows["centred"].notna().any():
            more = 100 * (rows["centred"] - rows["score"]).to_numpy(float)
            panels.append(Dots("gain by centring (points)", more, level=0.0))
        return drawings.dots(
            "languages",
            panels,
            [name_of(str(code)) for code in rows["target"]],
            self.about,
            title=f"{self.what.capitalize()}, learnt in {name_of(source)} only",
            caption=f"For each language the share of right answers of what was learnt in "
            f"{name_of(source)}; grey bars are means of copies with shuffled weights, diamonds the "
            "better baseline (the most frequent answer for a word's pieces, or one answer for "
            "all). Beside it what is told beyond the baseline, and what centring adds. Intervals "
            "of gains hold for all languages together.",
            note="Grey bars: shuffled weights. Diamonds: the baseline.",
        )

    def _matrix(self, column: str) -> Drawing:
        whole = self.tables["pairs"]
        if column == "score":  # what was learnt in a language itself stands on the diagonal
            import pandas as pd

            own = self.tables["sources"].rename(columns={"source": "target"})
            whole = pd.concat([whole, own.assign(source=own["target"], sure=False)])
        wide = whole.pivot(index="source", columns="target", values=column)
        order = sorted(set(wide.index) | set(wide.columns), key=self._place)
        wide = wide.reindex(
            index=[one for one in order if one in wide.index],
            columns=[one for one in order if one in wide.columns],
        )
        sure = whole.pivot(index="source", columns="target", values="sure")
        marks = sure.reindex(index=wide.index, columns=wide.columns).fillna(False).astype(bool)
        scores = column == "score"
        return Drawing(
            "matrix" if scores else "gains",
            partial(
                named_grid,
                100 * wide.to_numpy(float),
                rows=[name_of(str(code)) for code in wide.index],
                columns=[name_of(str(code)) for code in wide.columns],
                title=f"{self.what.capitalize()} across languages\n{self.about}",
                label="% of right answers" if scores else "points beyond the baseline",
                axes_names=("learnt in", "asked in"),
                marks=marks.to_numpy(),
                center=None if scores else 0.0,
                note="Outlined: surely beyond the baseline and copies with shuffled weights.",
            ),
            "One row for each language that was learnt in, one column for each that was asked in: "
            + (
                "the share of right answers in per cent; on the diagonal both are the same. "
                if scores
                else "points beyond the better baseline (the most frequent answer for a word's "
                "pieces, or one answer for all). "
            )
            + "Outlined cells are surely beyond the baseline and beyond copies with shuffled "
            "weights, for all pairs together. Languages of one family stand together.",
        )

    def _place(self, code: object) -> tuple[str, str, str]:
        """Languages of a family, then of a genus, stand together; others come last."""
        from bertology.data.languages import languages

        one = languages().get(str(code))
        return ("~", "", str(code)) if one is None else (one.family, one.genus, one.name)

    def _by_layer(self) -> Drawing:
        return drawings.profile(
            "layers",
            self.measures(),
            self.about,
            title=f"{self.what.capitalize()} by layer",
            shaded="none",
            labels=["in other languages", "in other languages, centred", "where it was learnt"],
            caption="Right answers by layer, in per cent: in the language that was learnt in, in "
            "all others as they are, and in all others after the mean of each language's states "
            "was taken off. Means over languages.",
        )
