"""What probing studies have in common in their results: answer, measures and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertology.annotated.word_labels import COUNTED
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LOST = ("cut", "partly", "unseen")


class ProbingResult(Result):
    """What probes read off the states after each layer.

    Table `layers`: for each task and layer (-1 is what enters the first one) the share of right
    answers on sentences that did not train, that of the control task, `selectivity` (their
    difference), `shuffled` (of the same model with its weights in random order), the bits that a
    label takes (`bits`, by online coding) and `compression` (against a code that knows nothing);
    `selectivity_sd` and `bits_sd` are standard deviations over seeds, where there are several;
    `tasks`: the best layer, picked on one half of the test sentences and scored on the other,
    against the word's most frequent label, the input and shuffled weights. Bounds hold for all rows
    together. Column `title` of `tasks` says in words what was asked. The last columns count what
    trained and what was left out; facts have their sums.
    """

    strongest: ClassVar[Mapping[str, str]] = {"tasks": "gain", "layers": "selectivity"}

    @property
    def answer(self) -> str:
        """The tasks that some layer surely tells better than words alone, and where best."""
        tasks = self.tables["tasks"]
        sure = tasks[tasks["gain_low"] > 0].sort_values("gain", ascending=False)
        also = f" Not all could be asked: {left}." if (left := self.left_out()) else ""
        if alone := str(self.facts.get("one_word", "")):
            also += f" Spans of one word are as with means: {alone}."
        if sure.empty:
            return (
                f"{NOTHING_SURE}: no layer surely tells more than the words' most frequent label, "
                f"the input and shuffled weights do.{also}"
            )
        told = [
            f"{row['title']} (layer {int(row['layer'])}, "
            f"{percent(of_row(row, ('accuracy', 'accuracy_low', 'accuracy_high')))})"
            for _, row in sure.head(3).iterrows()
        ]
        gain = of_row(sure.iloc[0], ("gain", "gain_low", "gain_high"))
        return (
            f"Layers surely tell {listed(told)}; the largest gain over the words' most frequent "
            f"label, the input and shuffled weights is {points(gain, '.0f')}.{also}"
        )

    def left_out(self, *, all_counts: bool = False) -> str:
        """What could not be asked or answered, in words; with `all_counts` also what is rare."""
        shown = [n for n in COUNTED if n not in ("labels", "classes")] if all_counts else _LOST
        told = [
            f"{_one(n, COUNTED[name])}" for name in shown if (n := int(self.facts.get(name, 0)))
        ]
        if missing := int(self.facts["missing"]):
            told = [_one(missing, "words without a state"), *told]
        if unasked := str(self.facts.get("left_out", "")):
            told.append(f"{unasked} (in too few texts, or with one answer)")
        return ", ".join(told)

    @property
    def titles(self) -> Mapping[str, str]:
        """What the tasks ask, by name."""
        rows = self.tables["tasks"]
        return dict(zip(rows["task"].astype(str), rows["title"].astype(str), strict=True))

    def measures(self) -> Sequence[Measure]:
        """Accuracy and selectivity of each task by layer."""
        found = []
        for task, rows in self.by_task():
            found += [
                *self.told(task, rows),
                Measure.of_column(
                    rows,
                    "selectivity",
                    name=f"{task}-selectivity",
                    title=f"Right answers of a probe, beyond its control task: {self.titles[task]}",
                    unit="points (% of questions)",
                    bounds=("selectivity_low", "selectivity_high"),
                    scale=100.0,
                    middle=0.0,
                    reading="High: the probe reads it off the states and does not learn words by "
                    "heart.",
                ),
            ]
        return found

    def over_training(self) -> Sequence[Tracked]:
        """For each task what the best layer gains over its baselines, or tells; and all layers."""
        evidence, found = self.evidence(), []
        for task, title in self.titles.items():
            name, gain = f"{task}-accuracy", f"{task.replace('-', '_')}_gain"
            if gain in evidence:
                label = f"what the best layer tells beyond its baselines ({title})"
                found.append(Tracked(gain, label, name, scale=100.0, unit="points", gain=True))
            else:
                label = f"right answers at the best layer ({title})"
                found.append(Tracked(name, label, name, at="max", unit="points"))
        return found

    def by_task(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The rows of each task, by layer; without the input."""
        table = self.tables["layers"]
        for task, rows in table[table["layer"] >= 0].groupby("task", sort=False):
            yield str(task), rows

    def told(
        self,
        task: str,
        rows: pd.DataFrame,
        *,
        unit: str = "% of questions",
        reading: str = "High: the layer's states tell it.",
    ) -> list[Measure]:
        """Right answers of a task by layer: between the worst layer and the best, and plain."""
        title, above = self.titles[task], rows["accuracy"] - rows["accuracy"].min()
        return [
            Measure.of_column(
                rows.assign(place=above / (above.max() or 1.0)),
                "place",
                name=f"{task}-place",
                title=f"Between the worst layer and the best: {title}",
                unit="% of the way from the worst layer to the best",
                scale=100.0,
                reading="100: no layer tells it better.",
            ),
            Measure.of_column(
                rows,
                "accuracy",
                name=f"{task}-accuracy",
                title=f"Right answers of a probe: {title}",
                unit=unit,
                bounds=("accuracy_low", "accuracy_high"),
                scale=100.0,
                reading=reading,
            ),
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Tasks × layers, by accuracy and by selectivity; gains of the best layers."""
        by_name = {m.name: m for m in self.measures()}
        table = self.tables["tasks"]
        sure = table[table["gain_low"] > 0]
        shown = {"place": sure if len(sure) else table, "selectivity": table}
        found = [
            drawings.rows(
                column,
                [by_name[f"{task}-{column}"] for task in shown[column]["task"]],
                self.about,
                title=title,
                reading=reading,
                labels=list(shown[column]["title"]),
            )
            for column, title, reading in (
                (
                    "place",
                    "Which layers tell it best",
                    "Each row has its own worst and best layer; tasks that no layer surely tells "
                    "better than words alone do are left out, if there are others.",
                ),
                (
                    "selectivity",
                    "What probes read off each layer, beyond their control tasks",
                    "Control tasks give each word a label at random: what is left is not learnt "
                    "by heart. White: no more than the control task.",
                ),
            )
        ]
        return [
            *found,
            Drawing(
                "tasks",
                self._tasks,
                "For each task the share of right answers at its best layer, and the smallest "
                "gain over the words' most frequent label, the input and shuffled weights. The "
                "layer was picked on one half of the test sentences and scored on the other; "
                "intervals hold for all tasks together."
                + self._pooled()
                + (f" Counted: {left}." if (left := self.left_out(all_counts=True)) else ""),
            ),
        ]

    def _pooled(self) -> str:
        """How spans became one state, where it was not by the mean."""
        if "one_word" not in self.facts:
            return ""
        alone = str(self.facts["one_word"])
        return " Each probe learnt how much the words of a span count" + (
            f"; spans of one word leave nothing to learn ({alone})." if alone else "."
        )

    def _tasks(self) -> Figure:
        rows = self.tables["tasks"]
        return interval_dots(
            [
                Dots.of_columns("right (%)", rows, "accuracy"),
                Dots.of_columns("gain", rows, "gain", level=0.0),
            ],
            list(rows["title"]),
            title=f"What the best layer tells\n{self.about}",
            note="Gain: points over words alone, the input and shuffled weights, the smallest.",
        )


def _one(n: int, what: str) -> str:
    """`3 answers …`, and `1 answer …`."""
    first, rest = what.split(" ", 1)
    if n == 1:
        first = first.removesuffix("s") if first != "properties" else "property"
    return f"{n} {first} {rest}"
