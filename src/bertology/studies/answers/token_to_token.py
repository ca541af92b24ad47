"""Links that heads follow, and what [CLS] attends to: tables, figures, and evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bertology.data.words.classes import BY_CORPUS, TokenClass
from bertology.results.measures import Measure, column_grid, dashed
from bertology.stats import Estimate
from bertology.studies.designs.blocks import JudgedResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["TokenToTokenResult"]

KINDS = list(TokenClass)
# Column of `links`: title with a place for the relation, where colours part, reading.
_FOLLOWED = {
    "excess": (
        "{} links followed, beyond the best fixed offset",
        0.0,
        "Above 0: the head finds the linked word better than always looking so many words away.",
    ),
    "share": (
        "{} links followed",
        None,
        "High: the word that the source attends to most is the linked one.",
    ),
    "selectivity": (
        "{} links followed, beyond from other words",
        0.0,
        "Above 0: the head finds the word from its source more than from any other word.",
    ),
    "excess_with_special": (
        "{} links followed, [CLS] and [SEP] in the running, beyond the best fixed offset",
        0.0,
        "Above 0: the linked word gets more than special tokens, too, and the offset is beaten.",
    ),
}
NAMES = {"cls": "[CLS]", "sep": "[SEP]"}
_PUBLISHED = "punctuation_over_sep_from_cls_where_published"
_LEAD = "sep_lead_from_cls"
_PUNCTUATED = ("sts-b", "rte", "qnli")  # where the paper saw [CLS] attend to punctuation most


class TokenToTokenResult(JudgedResult):
    """How often each head's most attended word is the linked one, and what [CLS] attends to.

    Table `links`: a row for each relation and head; `offsets`: the fixed offsets they are set
    against; `first`: the weight that [CLS] gives to each class of tokens, by head.
    """

    def evidence(self) -> dict[str, Estimate]:
        """Quantities for claims; two are judged on the tasks that the paper says them of."""
        found = super().evidence()
        if (self.provenance.corpus or {}).get("name") in _PUNCTUATED:
            found.pop(_LEAD, None)
            if "punctuation_over_sep_from_cls" in found:
                found[_PUBLISHED] = found["punctuation_over_sep_from_cls"]
        return found

    def why_not(self) -> str:
        """Links must be annotated, and a head that does worse than any offset follows none."""
        if "links" not in self.tables:
            return "not judged: this corpus annotates no links between words"
        return "not judged: too few such links, or no head surely comes near the best fixed offset"

    def reasons(self) -> Mapping[str, str]:
        """The paper says one thing of three tasks only, and another of all but these."""
        if (self.provenance.corpus or {}).get("name") in _PUNCTUATED:
            return {_LEAD: "not judged: the paper excepts STS-B, RTE and QNLI"}
        return {_PUBLISHED: "not judged: the paper says it of STS-B, RTE and QNLI only"}

    def headline(self) -> str:
        """The best head of each relation beside the best offset."""
        shown = []
        for relation, rows in self._relations():
            if rows["share"].isna().all():
                shown.append(f"{relation}: no links")
                continue
            best = rows.iloc[int(np.nanargmax(rows["share"].to_numpy()))]
            offset = best["share"] - best["excess"]
            place = f"{int(best['layer'])}.{int(best['head'])}"
            shown.append(f"{relation}: head {place} {best['share']:.2f}, offset {offset:.2f}")
        return "; ".join(shown) + (f". {self._guessed}" if self._guessed else "")

    @property
    def _guessed(self) -> str:
        """Says so where a tagger decided what is linked."""
        who = str(self.arrays.attrs["tagger"])
        if who == BY_CORPUS or "noun-pronoun" not in dict(self._relations()):
            return ""
        return f"Nouns and pronouns: {who}; which belong together is guessed."

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The paper's Figure 7 for the final layer and over layers; a grid for each relation."""
        drawings: dict[str, Callable[[], Figure]] = {}
        if "first" in self.tables:
            drawings |= {"first-heads": self._last_layer, "first-layers": self._over_layers}
        for relation, _ in self._relations():
            drawings[relation.replace(":", "-")] = partial(self._grid, relation)
        return drawings

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        shown = (
            "the largest weight that [CLS] gives to a token of the class, from 0 to 1, mean over "
            "texts that have one; darker is more."
        )
        texts = {
            "first-heads": "What [CLS], on which classifiers rest, looks at in the last layer. One "
            f"row for each class of tokens, one column for each head: {shown}",
            "first-layers": "What [CLS] looks at on its way up. One row for each class of tokens, "
            f"one column for each layer (mean over heads): {shown}",
        }
        for relation, _ in self._relations():
            texts[dashed(relation)] = (
                f"One cell for each head: the share of {relation} links whose target is the word "
                "that the source attends to most, less the share that the best fixed offset (such "
                "as the word before) finds. Left among words, right with [CLS] and [SEP] in the "
                "running. Blue: better than the offset; outlined: surely, and by looking at the "
                "source."
            )
        return {name: texts[dashed(name)] for name in self.figures()}

    def measures(self) -> Sequence[Measure]:
        """How well each head follows each relation, and what it gives from [CLS] to classes."""
        found: list[Measure] = []
        for relation, rows in self._relations():
            found += self._followed(relation, rows)
        if "first" in self.tables:
            found += self._from_cls(self.tables["first"])
        return sorted(found, key=lambda m: not m.of_heads)

    def _followed(self, relation: str, rows: pd.DataFrame) -> list[Measure]:
        found = []
        for column, (title, middle, reading) in _FOLLOWED.items():
            found.append(
                Measure(
                    f"{dashed(relation)}-{dashed(column)}",
                    title.format(relation),
                    100 * column_grid(rows, column),
                    unit="% of links" if column == "share" else "points (% of links)",
                    low=100 * column_grid(rows, f"{column}_low"),
                    high=100 * column_grid(rows, f"{column}_high"),
                    sure=column_grid(self._judged(rows), "sure") if column == "excess" else None,
                    middle=middle,
                    reading=reading,
                )
            )
        return found

    def _from_cls(self, table: pd.DataFrame) -> list[Measure]:
        found = []
        for kind in (k for k in KINDS if k in set(table["class"])):
            rows, of = table[table["class"] == kind], kind.plural
            weight = column_grid(rows, "weight")
            for prefix, values in (("", weight), ("layer-", weight.mean(axis=1))):
                where = " in the layer" if prefix else ""
                found.append(
                    Measure(
                        f"{prefix}from-cls-to-{kind}",
                        f"Attention from [CLS] to {of}{where}",
                        values,
                        unit="attention weight",
                        reading=f"High: [CLS] attends much to {of}; the most attended one counts.",
                    )
                )
        return found

    def _judged(self, rows: pd.DataFrame) -> pd.DataFrame:
        """With a column `sure`: better than the offset and than from other words, corrected."""
        tests = rows[["excess_p", "selectivity_p"]].max(axis=1)
        gains = rows[["excess", "selectivity"]].min(axis=1)
        level = float(self.arrays.attrs["level"])
        return rows.assign(sure=(tests < (1 - level) / 2) & (gains > 0))

    def _relations(self) -> list[tuple[str, pd.DataFrame]]:
        if "links" not in self.tables:
            return []
        table = self.tables["links"]
        return [(str(r), table[table["relation"] == r]) for r in table["relation"].unique()]

    def _last_layer(self) -> Figure:
        table = self.tables["first"]
        rows = table[table["layer"] == table["layer"].max()]
        grid = rows.pivot(index="class", columns="head", values="weight")
        return self._classes(grid, "in the last layer", "head")

    def _over_layers(self) -> Figure:
        table = self.tables["first"]
        grid = table.groupby(["class", "layer"])["weight"].mean().unstack()
        return self._classes(grid, "by layer (mean over heads)", "layer")

    def _classes(self, grid: pd.DataFrame, where: str, xlabel: str) -> Figure:
        from bertology.report.class_figures import class_table

        order = [k for k in map(str, KINDS) if k in grid.index]
        return class_table(
            grid.reindex(order).to_numpy(),
            [NAMES.get(k, k) for k in order],
            title=f"What [CLS] attends to {where}: {self._about()}",
            label="mean weight of the most attended token of the class",
            xlabel=xlabel,
        )

    def _grid(self, relation: str) -> Figure:
        from bertology.report.class_figures import GridPanel, head_grids

        rows = self._judged(dict(self._relations())[relation])
        grids = {
            c: rows.pivot(index="layer", columns="head", values=c).to_numpy()
            for c in ("excess", "excess_with_special", "sure")
        }
        return head_grids(
            [
                GridPanel("among words", grids["excess"], grids["sure"]),
                GridPanel("special tokens too", grids["excess_with_special"]),
            ],
            title=f"Heads that follow {relation} links: {self._about()}",
            label="share of links followed, less that of the best fixed offset",
            center=0.0,
            note="Outlined: surely better than the offset, and than from other words; corrected. "
            + (self._guessed if relation == "noun-pronoun" else ""),
        )

    def _about(self) -> str:
        model = str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]
        return f"{model} on {(self.provenance.corpus or {}).get('name')}"
