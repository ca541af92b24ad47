"""Attention along links: tables, figures, and what claims are judged on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.results.measures import Measure, column_grid, dashed
from bertology.results.result import Result
from bertology.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["RelationHeadsResult"]

_AGAINST = {
    "distance": "pairs that are as far apart",
    "key": "what other words give the same word",
    "query": "what the same word gives others",
    "place": "the same places of other sentences",
}

_CLAIMED = "frame"  # the relation that claims are about


class RelationHeadsResult(Result):
    """What each head gives to linked words, and how much more that is than to others.

    Table `heads`: one row per head; `weight` is the paper's score, `excess` the least of the four
    `excess_…`. Table `sentences`: how many are left after each limit. Arrays: `map`, all heads
    of the first sentence, as (layer, head, query, key).
    """

    def evidence(self) -> dict[str, Estimate]:
        """Quantities for claims; bounds hold for all heads and comparisons together.

        Their names open with the relation (`frame_best_excess`): a claim about one relation says
        nothing about another.
        """
        facts, heads = self.arrays.attrs, self.tables["heads"]
        n, level, margin = int(facts["compared"]), float(facts["level"]), float(facts["margin"])
        columns = ("excess", "simultaneous_low", "simultaneous_high")
        chosen = heads[heads["above_percentile"]]
        count = float(len(chosen))

        def of(numbers: Callable[[pd.Series[float]], float], table: pd.DataFrame) -> Estimate:
            value, low, high = (float(numbers(table[c])) for c in columns)
            return Estimate(value, low, high, n, level)

        found = {
            "heads_above_percentile": Estimate(count, count, count, n, level),
            "best_excess": of(lambda values: values.max(), heads),
        }
        if len(chosen):
            found["least_excess_above_percentile"] = of(lambda values: values.min(), chosen)
        if heads["sure"].any():  # or any share would be small, also that of a random model
            found["share_of_heads"] = of(lambda values: (values > margin).mean(), heads)
        relation = str(facts["relation"]).replace("-", "_").replace(":", "_")
        return {f"{relation}_{name}": estimate for name, estimate in found.items()}

    def why_not(self) -> str:
        """Claims are about one relation, and how many heads follow it is asked if one does."""
        relation = self.arrays.attrs["relation"]
        if relation != _CLAIMED or self.tables["heads"]["sure"].any():
            return f"not judged: this result is about {relation}"
        return f"not judged: no head surely attends along {relation}"

    def headline(self) -> str:
        """How many sentences, and what the two ways of judging a head find."""
        facts, heads = self.arrays.attrs, self.tables["heads"]
        above, sure = (", ".join(_names(heads[heads[c]])) for c in ("above_percentile", "sure"))
        return (
            f"{facts['relation']}: {facts['sentences']} sentences; heads above percentile "
            f"{facts['percentile']:g} of the weight: {above}; surely above every comparison: "
            f"{sure or 'none'}"
        )

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The paper's Figure 3, what is left of it beside the comparisons, and one sentence."""
        return {"weights": self._weights, "excess": self._excess, "example": self._example}

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        links = f"{self.arrays.attrs['relation']} links"
        return {
            "weights": f"One cell for each head: the largest attention weight among words that "
            f"{links} connect, from 0 to 1, mean over sentences; darker is more. A dark cell alone "
            "proves little: a head that looks at everything near is dark too.",
            "excess": "One cell for each head: the weight of linked pairs less that of unlinked "
            "pairs which are as far apart, of the same words, or at the same places; the least of "
            "these differences, and 0 where it is below. Outlined heads surely tell linked words "
            "from others, corrected for all heads and comparisons.",
            "example": "The attention map of the head with the largest excess, on one sentence: "
            f"rows attend to columns, darker is more. Pairs that {links} connect are framed; "
            "dark framed cells are links that the head follows.",
        }

    def measures(self) -> Sequence[Measure]:
        """What each head gives to linked words, and how much more that is than to others."""
        heads, facts = self.tables["heads"], self.arrays.attrs
        relation, weight = str(facts["relation"]), "attention weight"
        name = dashed(relation)
        found = [
            Measure(
                f"{name}-excess",
                f"Attention along {relation} links beyond other words",
                column_grid(heads, "excess"),
                unit=weight,
                low=column_grid(heads, "simultaneous_low"),
                high=column_grid(heads, "simultaneous_high"),
                sure=column_grid(heads, "sure").astype(bool),
                middle=0.0,
                reading="Above 0: linked words get more than any comparison; below 0: the head "
                "looks elsewhere.",
            ),
            Measure(
                f"{name}-weight",
                f"Attention along {relation} links",
                column_grid(heads, "weight"),
                unit=weight,
                low=column_grid(heads, "weight_low"),
                high=column_grid(heads, "weight_high"),
                reading="High: linked words attend to each other, though perhaps as all words do.",
            ),
            Measure(
                f"{name}-named",
                f"Named for {relation} by the paper's rule",
                column_grid(heads, "above_percentile").astype(float),
                kinds=("no", "yes"),
                reading=f"Yes: above percentile {facts['percentile']:g} of all heads' weights, as "
                "some heads of any model are.",
            ),
        ]
        for kind, against in _AGAINST.items():
            title = f"Attention along {relation} links beyond {against}"
            found.append(
                Measure(
                    f"{name}-excess-{kind}",
                    title,
                    column_grid(heads, f"excess_{kind}"),
                    unit=weight,
                    middle=0.0,
                    reading=f"Above 0: linked words get more than {against}.",
                )
            )
        return found

    def _weights(self) -> Figure:
        from bertology.report.figures import head_grid

        facts, heads = self.arrays.attrs, self.tables["heads"]
        above = ", ".join(_names(heads[heads["above_percentile"]]))
        return head_grid(
            column_grid(heads, "weight"),
            title=f"Attention between linked words, relation {facts['relation']}\n"
            f"{facts['sentences']} sentences of {self._corpus()}; highest (layer.head): {above}",
            label="largest weight among linked pairs,\nmean over sentences",
        )

    def _excess(self) -> Figure:
        from bertology.report.figures import head_grid

        facts, heads = self.arrays.attrs, self.tables["heads"]
        return head_grid(
            np.maximum(column_grid(heads, "excess"), 0.0),  # below it, a head only looks elsewhere
            title="Attention between linked words beyond that between others\n"
            f"relation {facts['relation']}, {facts['compared']} sentences of {self._corpus()}",
            label="weight of linked pairs, less that of unlinked ones;\n0 where it is no larger",
            marks=column_grid(heads, "sure").astype(bool),
        )

    def _example(self) -> Figure:
        from bertology.report.link_map import link_map

        heads, maps = self.tables["heads"], self.arrays["map"]
        best = int(heads["excess"].to_numpy().argmax())
        layer, head = int(heads["layer"].iloc[best]), int(heads["head"].iloc[best])
        flat = [int(i) for i in maps.attrs["pairs"]]
        model = str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]
        return link_map(
            maps.to_numpy()[layer, head],
            [str(t) for t in maps.attrs["tokens"]],
            list(zip(flat[::2], flat[1::2], strict=True)),
            title=f"Head {layer}.{head} of {model}",
            note=f"The head with the largest excess for {self.arrays.attrs['relation']}, on the "
            "first sentence. Layers and heads are numbered from 0.",
        )

    def _corpus(self) -> Any:
        return (self.provenance.corpus or {}).get("name")


def _names(heads: pd.DataFrame) -> list[str]:
    return [f"{layer}.{head}" for layer, head in zip(heads["layer"], heads["head"], strict=True)]
