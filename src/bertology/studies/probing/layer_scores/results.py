"""Where in the model tasks are told: the answer, measures and figures of layer-scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import short_model
from bertology.studies.designs.mix_scores import bounds_of
from bertology.studies.designs.probe_results import ProbingResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLACES = ("expected", "centre", "unevenness")
_LINES = 4  # tasks in a figure of lines


class LayerScoresResult(ProbingResult):
    """Where in the model each task is told.

    Table `layers`: for each task and layer (-1 is what enters the first one) the share of right
    answers of a probe of this layer alone (`accuracy`), whether it is `among_best` (not surely
    worse than the best layer), its `weight` in a mix of all layers, the share of right answers from
    this layer and all before it (`cumulative`), and what it adds to them (`gain`, maybe below 0).
    Table `tasks`: the best layer and its gain over baselines, the expected layer, the centre of
    gravity of the weights, and how uneven these are (0: all layers alike, in nats). Table `pairs`:
    how much later the second task is than the first, by expected layers (`later`) and by centres of
    gravity (`centre`); bounds of each hold for all pairs together. Table `change`,
    where a model `before` is given: what each layer tells more or less than there.
    """

    strongest: ClassVar[Mapping[str, str]] = {"tasks": "expected", "pairs": "later"}

    @property
    def answer(self) -> str:
        """Tasks in the order of their expected layers, and the surest of the differences."""
        tasks = self.tables["tasks"]
        known = tasks[(tasks["gain_low"] > 0) & tasks["expected_low"].notna()]
        if known.empty:
            return (
                f"{NOTHING_SURE}: of no task it is known from which layers it is told, beyond "
                "words, the input and shuffled weights."
            )
        told = [
            f"{row['title']} {plain(of_row(row, bounds_of('expected')), '.1f')}"
            for _, row in known.sort_values("expected").iterrows()
        ]
        shown = [told[0], told[-1]] if len(told) > 1 else told
        return f"Expected layers, from 0: {listed(shown)}{self._order()}."

    def _order(self) -> str:
        pairs = self.tables["pairs"]
        if pairs.empty:
            return ""
        # What is easier seems to be earlier by its expected layer: centres must say the same.
        lows, highs = pairs[["later_low", "centre_low"]], pairs[["later_high", "centre_high"]]
        sure = ((lows > 0).all(axis=1) | (highs < 0).all(axis=1)).sum()
        return f"; of {len(pairs)} pairs of tasks, the order of {sure} is sure"

    def measures(self) -> Sequence[Measure]:
        """Right answers, weight and gain of each layer, by task."""
        found = []
        for task, rows in self.by_task():
            title = self.titles[task]
            found += [
                *self.told(task, rows),
                Measure.of_column(
                    rows,
                    "weight",
                    name=f"{task}-weight",
                    title=f"Weight of the layer in a mix of all: {title}",
                    unit="% of the weights",
                    bounds=bounds_of("weight")[1:],
                    scale=100.0,
                    reading="High: a probe that sees all layers looks at this one.",
                ),
                Measure.of_column(
                    rows,
                    "gain",
                    name=f"{task}-gain",
                    title=f"What the layer adds to those before it: {title}",
                    unit="points (% of questions)",
                    bounds=bounds_of("gain")[1:],
                    scale=100.0,
                    middle=0.0,
                    reading="Above 0: with it a probe gives more right answers; it may be below 0.",
                ),
            ]
        if "change" in self.tables:
            found += self._changes()
        return found

    def _changes(self) -> list[Measure]:
        named = self.provenance.others.get("before", {}).get("name", "the model before")
        before = short_model(str(named))
        table = self.tables["change"]
        return [
            Measure.of_column(
                rows,
                "change",
                name=f"{task}-change",
                title=f"Right answers more than in {before}: {self.titles[str(task)]}",
                unit="points (% of questions)",
                bounds=bounds_of("change")[1:],
                scale=100.0,
                middle=0.0,
                reading="Below 0: the layer told it better before.",
            )
            for task, rows in table[table["layer"] >= 0].groupby("task", sort=False)
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Tasks × layers three times; expected layers and centres; pairs."""
        by_name = {m.name: m for m in self.measures()}
        tasks = self.tables["tasks"]
        told = tasks[tasks["gain_low"] > 0]
        told = told if len(told) else tasks
        found = [
            drawings.rows(
                name,
                [by_name[f"{task}-{column}"] for task in told["task"]],
                self.about,
                title=title,
                reading=f"{reading} Tasks that no layer surely tells are left out, if there are "
                "others.",
                labels=list(told["title"]),
            )
            for name, column, title, reading in (
                (
                    "transfer",
                    "place",
                    "Which layers tell it best",
                    "Each row has its own worst and best layer.",
                ),
                (
                    "weights",
                    "weight",
                    "Which layers a probe of all layers looks at",
                    "Weights of the input make the rest of 100.",
                ),
                (
                    "gains",
                    "gain",
                    "What each layer adds to those before it",
                    "The first layer adds to the input; losses are drawn as 0.",
                ),
            )
        ]
        found.append(
            Drawing(
                "tasks",
                partial(self._placed, told),
                "For each task the expected layer (the mean layer of what layers add), the centre "
                "of gravity of the weights in a mix of all layers, and how uneven these weights "
                "are (0: all alike). Intervals hold for all tasks together: those of expected "
                "layers are over test and training sentences, the others over training sentences.",
            )
        )
        if "change" in self.tables:
            sizes = self.tables["change"].groupby("task")["change"].agg(lambda x: x.abs().max())
            most = list(sizes.nlargest(_LINES).index)
            found.append(
                drawings.profile(
                    "change",
                    [by_name[f"{task}-change"] for task in most],
                    self.about,
                    title="What layers tell more than before",
                    reading="Below 0: the layer told it better before. At most four tasks are "
                    "shown, those that changed most.",
                    labels=[self.titles[str(task)] for task in most],
                )
            )
        if len(self.tables["pairs"]):
            found.append(
                Drawing(
                    "pairs",
                    self._pairs,
                    "By how many layers the second task of each pair is later than the first, by "
                    "expected layers and by centres of gravity. To the right of 0: later, as in a "
                    "classical pipeline. Intervals of each kind hold for all pairs together.",
                )
            )
        return found

    def _placed(self, rows: pd.DataFrame) -> Figure:
        labels = ("expected layer", "centre of gravity", "unevenness (nats)")
        panels = [
            Dots(label, *(rows[column].to_numpy() for column in bounds_of(name)))
            for label, name in zip(labels, PLACES, strict=True)
        ]
        return interval_dots(
            panels,
            list(rows["title"]),
            title=f"Where in the model tasks are told\n{self.about}",
            note="Layers are numbered from 0; what enters the first one counts as -1.",
        )

    def _pairs(self) -> Figure:
        rows, titles = self.tables["pairs"], self.titles
        return interval_dots(
            [
                Dots(label, *(rows[column].to_numpy() for column in bounds_of(name)), level=0.0)
                for label, name in (("expected layer", "later"), ("centre of gravity", "centre"))
            ],
            [f"{titles[a]} → {titles[b]}" for a, b in rows[["first", "second"]].to_numpy()],
            title=f"The order of tasks\n{self.about}",
            note="Differences in layers: right of 0, the second task is later.",
        )
