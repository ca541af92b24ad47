"""How good distilled static vectors are: the answer, measures and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import of_row, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked, dashed
from bertology.results.result import Result
from bertology.studies.geometry.shared.pair_scores import smaller_gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIMILARITY = "similarity"
_METHODS = {"mean": "mean over contexts", "component": "first component"}


class StaticEmbeddingsResult(Result):
    """How good vectors of words are that were distilled from a model, by layer and method.

    Table `comparisons`, which the answer and the claim `distilled_gain` speak of: the best layer
    and method (`best`), picked on other questions than it is scored on, against the model's table
    of input embeddings, files that were given, and shuffled weights at their best; the claim rests
    on the smaller gain of the first and the last (each row has its interval; for the smaller of two
    the upper bound is a little higher). Table `vectors`: for each score the best layer of
    each method (`best_layer` is that of all questions), the input embeddings and the files, all
    scored on the same questions, and what they are over the input embeddings. Table `layers`: the
    score of each method and layer (-1 is what enters the first one), and that of shuffled weights.
    Table `coverage`: the shares of words and of questions that each of them has; only questions
    that all have are scored. Table `sections`, for analogies: right answers by section. Scores are
    Spearman's correlation (pairs), or shares of right answers (analogies, of which the first score
    is the claim's). Bounds in `vectors` and `layers` hold for all rows of a score together.
    """

    strongest: ClassVar[Mapping[str, str]] = {"vectors": "value", "layers": "value"}

    @property
    def answer(self) -> str:
        """The best distilled vectors beside the table of the model, and shuffled weights."""
        table = self.tables["comparisons"]
        best, compared = table.iloc[0], table.iloc[[0, -1]]
        gains = " and ".join(
            f"{points(of_row(row, ('gain', 'gain_low', 'gain_high')))} over {row['against']} "
            f"({100 * row['value']:.0f})"
            for _, row in compared.iterrows()
        )
        told = "".join(
            f"; {row['against']}: {100 * row['value']:.0f}" for _, row in table[1:-1].iterrows()
        )
        what = "agree with people by" if self._similarity else "find of the fourth words"
        unit = "(correlation × 100)" if self._similarity else "%"
        return (
            f"Static vectors at their best ({_METHODS[str(best['method'])]}, layer "
            f"{best['layer']}) {what} {100 * best['best']:.0f} {unit}: {gains}{told}. "
            f"{smaller_gain(self.evidence()['distilled_gain'])}."
        )

    @property
    def _similarity(self) -> bool:
        return bool((self.tables["layers"]["score"] == _SIMILARITY).all())

    @property
    def _unit(self) -> str:
        return "Spearman's correlation × 100" if self._similarity else "% of right answers"

    def measures(self) -> Sequence[Measure]:
        """The score of each method by layer."""
        table = self.tables["layers"]
        return [
            Measure.of_column(
                rows,
                "value",
                name=f"{dashed(str(score))}-{method}",
                title=f"Static vectors of the layer, {score}: {_METHODS[str(method)]}",
                unit=self._unit,
                bounds=("value_low", "value_high"),
                scale=100.0,
                reading="High: vectors of words made of this layer's states are good ones.",
            )
            for (score, method), rows in table[table["layer"] >= 0].groupby(
                ["score", "method"], sort=False
            )
        ]

    def over_training(self) -> Sequence[Tracked]:
        """What distilled vectors gain over the table."""
        return [
            Tracked(
                "distilled_gain",
                "the gain of distilled vectors over input embeddings and shuffled weights",
                layers=self.measures()[0].name,
                scale=100.0,
                unit="points",
                gain=True,
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Scores by layer; all vectors beside each other, for each score."""
        by_name, table = {m.name: m for m in self.measures()}, self.tables["layers"]
        scores = list(dict.fromkeys(table["score"]))
        methods = list(dict.fromkeys(table["method"]))
        names = [f"{dashed(score)}-{method}" for score in scores for method in methods]
        labels = [
            _METHODS[method] if len(scores) == 1 else f"{_METHODS[method]}, {score}"
            for score in scores
            for method in methods
        ]
        found = [
            drawings.profile(
                "layers",
                [by_name[name] for name in names],
                self.about,
                title="How good static vectors of a layer are",
                reading="Each word is one vector, made of its states in many contexts.",
                labels=labels,
            )
        ]
        for score in scores:
            found.append(
                Drawing(
                    f"vectors-{dashed(score)}",
                    partial(self._vectors, score),
                    f"{score.capitalize()}: the best layer of each method (picked on other "
                    "questions than it is scored on; grey bars: weights in random order), "
                    "the model's table of input embeddings, and files of vectors, in "
                    f"{self._unit}; and their gains over the table. Intervals hold for all rows "
                    "together.",
                )
            )
        return found

    def _vectors(self, score: str) -> Figure:
        rows = self.tables["vectors"]
        rows = rows[rows["score"] == score]
        value = Dots.of_columns(self._unit, rows, "value")
        return interval_dots(
            [
                Dots(
                    value.label,
                    value.values,
                    value.low,
                    value.high,
                    bars=100 * rows["shuffled"].to_numpy(),
                ),
                Dots.of_columns(
                    "gain over input embeddings (points)", rows, "over_input", level=0.0
                ),
            ],
            [str(name) for name in rows["vectors"]],
            title=f"Static vectors: {score}\n{self.about}",
            note="Grey bars: weights in random order.",
        )
