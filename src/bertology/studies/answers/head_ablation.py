"""Scores without heads and layers: tables, figures, and what claims are judged on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bertology.results.comparison import extreme
from bertology.results.measures import Measure, column_grid
from bertology.results.result import Result
from bertology.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["HeadAblationResult"]


class HeadAblationResult(Result):
    """Scores with heads disabled, against the intact model, paired over examples.

    Tables: `heads`, `layers`, `sets` (those that were asked for). Arrays: `mean_head_gain` and
    `first_order_rank` as (value, low, high).
    """

    def evidence(self) -> dict[str, Estimate]:
        """Quantities for claims; none where the intact model is no better than a constant."""
        facts = self.arrays.attrs
        if not facts["informed"]:
            return {}
        n, level = int(facts["examples"]), float(facts["level"])
        found: dict[str, Estimate] = {}
        for name, unit in (("heads", "head"), ("layers", "layer")):
            if name in self.tables:
                table = self.tables[name]
                found[f"best_{unit}_gain"] = extreme(table, n=n, level=level)
                found[f"worst_{unit}_loss"] = extreme(table, n=n, level=level, largest=False)
        if "heads" in self.tables:
            table = self.tables["heads"]
            columns = ("difference", "simultaneous_low", "simultaneous_high")
            value, low, high = (float((table[c] > -facts["margin"]).mean()) for c in columns)
            found["share_of_harmless_heads"] = Estimate(value, low, high, n, level)
        for quantity in ("mean_head_gain", "first_order_rank"):
            if quantity in self.arrays:
                value, low, high = map(float, self.arrays[quantity].values)
                found[quantity] = Estimate(value, low, high, n, level)
        return found

    def headline(self) -> str:
        """The intact score, to which all differences are."""
        facts = self.arrays.attrs
        return f"Intact {facts['metric']}: {facts['intact']:.4g} over {facts['examples']} examples"

    def why_not(self) -> str | None:
        """Claims are about models that have learned their task."""
        if self.arrays.attrs["informed"]:
            return None
        return "not judged: the intact model does not surely beat a constant answer"

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The paper's Figure 8 (heads) and Figure 9 (layers), and what goes beyond it."""
        drawings: dict[str, Callable[[], Figure]] = {}
        if "heads" in self.tables:
            drawings["heads"] = self._draw_heads
        if "layers" in self.tables:
            drawings["layers"] = lambda: self._bars("layers", "Disabling one layer at a time")
        if "sets" in self.tables:
            drawings["sets"] = lambda: self._bars("sets", "Disabling sets of heads")
        if "heads" in self.tables and "first_order" in self.tables["heads"]:
            drawings["first-order"] = self._draw_first_order
        return drawings

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        facts = self.arrays.attrs
        score = f"{facts['metric']} of the task in points"
        texts = {
            "heads": f"One cell for each head: the change of the {score} when this head alone is "
            "disabled. Blue: the task is done better without it; brown: the task misses it. "
            "Outlined heads differ surely from 0, corrected for looking at all of them.",
            "layers": f"One bar for each layer: the {score} when all its heads are disabled, with "
            "its interval over examples. The line is the intact model; a bar that hangs down from "
            "it is what the task loses without the layer.",
            "sets": f"One bar for each set of heads that was asked for: the {score} when all heads "
            "of the set are disabled at once, with its interval. The line is the intact model.",
            "first-order": "One dot for each head. To the right: the rise of the loss that one "
            "backward pass expects when the head is disabled; upwards: the rise that is measured. "
            "The better the dots follow a rising line, the better the quick estimate ranks heads.",
        }
        return {name: texts[name] for name in self.figures()}

    def measures(self) -> Sequence[Measure]:
        """What the task loses or gains without each head and each layer."""
        found: list[Measure] = []
        if "heads" in self.tables:
            found += self._effects(self.tables["heads"], "head")
        if "heads" in self.tables and "first_order" in self.tables["heads"]:
            found.append(
                Measure(
                    "first-order-importance",
                    "Importance of the head by gradients",
                    column_grid(self.tables["heads"], "first_order"),
                    unit="rise of the loss per example",
                    middle=0.0,
                    reading="High: one backward pass expects the loss to rise without the head.",
                )
            )
        if "layers" in self.tables:
            found += self._effects(self.tables["layers"], "layer")
        return found

    def _effects(self, table: pd.DataFrame, one: str) -> list[Measure]:
        """Effects on the score and on the loss; `one` is what is disabled."""
        prefix = "" if one == "head" else "layer-"
        points, low, high = (
            100 * column_grid(table, c)
            for c in ("difference", "simultaneous_low", "simultaneous_high")
        )
        found = [
            Measure(
                f"{prefix}ablation-effect",
                f"Change of the score without the {one}",
                points,
                unit=f"points of {self.arrays.attrs['metric']}",
                low=low,
                high=high,
                sure=column_grid(table, "sure").astype(bool),
                middle=0.0,
                reading=f"Below 0: the task misses the {one}; above 0: it is done better without.",
            )
        ]
        if "loss_difference" in table:  # a race follows right and wrong answers only
            found.append(
                Measure(
                    f"{prefix}ablation-loss",
                    f"Rise of the loss without the {one}",
                    column_grid(table, "loss_difference"),
                    unit="rise of the loss per example",
                    middle=0.0,
                    reading=f"Above 0: answers are worse, or less certain, without the {one}.",
                )
            )
        return found

    @property
    def _title(self) -> str:
        corpus = (self.provenance.corpus or {}).get("name")
        model = str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]
        return f"{model} on {corpus}"

    def _draw_heads(self) -> Figure:
        from bertology.report.figures import head_grid

        facts, table = self.arrays.attrs, self.tables["heads"]
        grid, sure = (
            table.pivot(index="layer", columns="head", values=c).to_numpy()
            for c in ("difference", "sure")
        )
        return head_grid(
            100 * grid,
            title=f"Disabling one head at a time\n{self._title}",
            label=f"change of {facts['metric']} in points\n(intact: {100 * facts['intact']:.1f})",
            marks=sure,
            center=0,
        )

    def _bars(self, table: str, title: str) -> Figure:
        from bertology.report.figures import layer_bars

        rows, facts = self.tables[table], self.arrays.attrs
        return layer_bars(
            *(100 * rows[c].to_numpy() for c in ("score", "score_low", "score_high")),
            title=f"{title}\n{self._title}",
            label=f"{facts['metric']} in points",
            baseline=100 * float(facts["intact"]),
            names=None if table == "layers" else [str(s) for s in rows["set"]],
        )

    def _draw_first_order(self) -> Figure:
        from bertology.report.figures import scatter_with_rank

        table = self.tables["heads"]
        return scatter_with_rank(
            table["first_order"].to_numpy(),
            table["loss_difference"].to_numpy(),
            title=f"One backward pass against the exact sweep\n{self._title}",
            xlabel="rise of the loss, first-order estimate",
            ylabel="rise of the loss, exact",
        )
