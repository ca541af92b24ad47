"""Attention to classes of tokens: tables, figures, and what claims are judged on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from bertology.data.words.classes import LINGUISTIC, SPECIAL, TokenClass
from bertology.results.measures import Measure, column_grid, dashed
from bertology.studies.designs.blocks import JudgedResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MATCHED", "PARTS", "TokenClassesResult"]

MATCHED = [*LINGUISTIC, TokenClass.PUNCTUATION]  # classes that other tokens can stand in for
PARTS = ("cls", "sep", "punctuation", "words")  # what attention is divided among
NAMES = {"cls": "[CLS]", "sep": "[SEP]"}
# Column of `heads`: title and reading of the measure, with a place for the class.
_MEASURED = {
    "weight": (
        "Attention to {0}",
        "High: much attention of all tokens goes to {0}; the most attended one counts.",
    ),
    "excess": (
        "Attention to {0} beyond matched words",
        "Above 0: more goes to {0} than to as many other words at such places.",
    ),
    "change": (
        "Change of the attention to {0} from {1}",
        "Above 0: the head attends more to {0} than the same head of {1}.",
    ),
}


class TokenClassesResult(JudgedResult):
    """Attention to each class of tokens, by head.

    Table `heads`: a row for each class and head with its weight, the weight that matched tokens
    would get, and the excess; against another model also the change. Table `layers`: how each
    layer divides its attention among [CLS], [SEP], punctuation and words.
    """

    def headline(self) -> str:
        """How attention is divided, in the first and the last layer."""
        table = self.tables["layers"].pivot(index="layer", columns="part", values="share")
        shown = [
            f"{NAMES.get(p, p)} {table[p].iloc[0]:.2f} → {table[p].iloc[-1]:.2f}" for p in PARTS
        ]
        return f"Share of attention, first → last layer: {', '.join(shown)}"

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The paper's Figure 6, the layers' profile, then grids of the other classes."""
        there = list(dict.fromkeys(self.tables["heads"]["class"]))
        others = [c for c in there if c not in SPECIAL]
        drawings: dict[str, Callable[[], Figure]] = {
            "special": partial(self._grids, [str(c) for c in reversed(SPECIAL) if c in there]),
            "layers": self._profile,
            "classes": partial(self._grids, others),
            "excess": partial(self._grids, [c for c in others if c in MATCHED], "excess"),
        }
        if "change" in self.tables["heads"]:
            drawings["change"] = partial(self._grids, there, "change")
        shown = {"special": set(SPECIAL), "classes": set(others), "excess": set(MATCHED)}
        return {k: d for k, d in drawings.items() if shown.get(k, set(there)) & set(there)}

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        weight = (
            "One grid for each class of tokens, one cell for each head: the share of all attention "
            "that goes to the most attended token of the class, mean over the n texts that have "
            "one; darker is more."
        )
        surely = "Outlined cells are surely not 0, corrected for all heads and classes."
        texts = {
            "special": f"{weight} Dark columns or rows are heads that rest on [CLS] or [SEP].",
            "layers": "Layers to the right, upwards the share of all attention that goes to "
            "[CLS], [SEP], punctuation and words; bands are intervals over examples. The four "
            "add up to 1: where one rises, the others must fall.",
            "classes": f"{weight} Words of a frequent class get more by number alone; see excess.",
            "excess": "The same, less what as many words drawn at random from the same stretches "
            f"of the text would get. Blue: the head prefers the class; brown: avoids it. {surely}",
            "change": "The same, less what the other model's head gives. Blue: the head attends "
            f"more to the class than there; brown: less. {surely}",
        }
        return {name: texts[name] for name in self.figures()}

    def measures(self) -> Sequence[Measure]:
        """Attention to each class, beyond matched words, and against the other model."""
        table = self.tables["heads"]
        there = list(dict.fromkeys(table["class"]))
        order = [c for c in map(str, SPECIAL) if c in there]
        order += [c for c in there if c not in order]
        other = self.provenance.others.get("other", {}).get("name", "the other model")
        found = []
        for column, (title, reading) in _MEASURED.items():
            for name in order if column in table else ():
                rows = table[table["class"] == name]
                if rows[column].isna().all():  # nothing can stand in for [SEP]
                    continue
                names = (TokenClass(name).plural, str(other).rstrip("/").rsplit("/", 1)[-1])
                sure = None
                if column != "weight":
                    p = column_grid(rows, f"{column}_p")
                    sure = p < 1 - float(self.arrays.attrs["level"])
                found.append(
                    Measure(
                        f"{column}-{dashed(name)}",
                        title.format(*names),
                        column_grid(rows, column),
                        unit="share of all attention",
                        low=column_grid(rows, f"{column}_low"),
                        high=column_grid(rows, f"{column}_high"),
                        sure=sure,
                        middle=None if column == "weight" else 0.0,
                        reading=reading.format(*names),
                    )
                )
        return [*found, *self._layer_measures()]

    def _layer_measures(self) -> list[Measure]:
        table, found = self.tables["layers"], []
        for part in PARTS:
            rows, of = table[table["part"] == part], NAMES.get(part, part)
            share, low, high = (column_grid(rows, c) for c in ("share", "low", "high"))
            found.append(
                Measure(
                    f"layer-share-{part}",
                    f"Attention of the layer to {of}",
                    share,
                    unit="share of all attention",
                    low=low,
                    high=high,
                    reading=f"High: much of the layer's attention goes to {of}.",
                )
            )
        return found

    def _grids(self, classes: Sequence[str], column: str = "weight") -> Figure:
        from bertology.report.class_figures import GridPanel, head_grids

        titles = {
            "weight": "Attention to token classes",
            "excess": "Attention to token classes beyond matched words",
            "change": "Change of attention to token classes",
        }
        panels = []
        for name in classes:
            rows = self.tables["heads"]
            rows = rows[rows["class"] == name]
            grid = rows.pivot(index="layer", columns="head", values=column).to_numpy()
            marks = None
            if column != "weight":
                sure = rows[f"{column}_p"] < 1 - float(self.arrays.attrs["level"])
                cells = rows.assign(sure=sure).pivot(index="layer", columns="head", values="sure")
                marks = cells.to_numpy()
            label = f"{NAMES.get(name, name)} (n = {int(rows['n'].max())})"
            panels.append(GridPanel(label, grid, marks))
        corpus = (self.provenance.corpus or {}).get("name")
        return head_grids(
            panels,
            title=f"{titles[column]}: {self._model()} on {corpus}",
            label="mean weight of the most attended token of the class"
            if column == "weight"
            else f"{column} of the mean weight",
            center=None if column == "weight" else 0.0,
            note=""
            if column == "weight"
            else "Outlined: surely not 0, corrected for all heads and classes.",
        )

    def _profile(self) -> Figure:
        from bertology.report.class_figures import Band, layer_profile

        table = self.tables["layers"]
        bands = []
        for part in PARTS:
            rows = table[table["part"] == part].sort_values("layer")
            values = (rows[c].to_numpy() for c in ("share", "low", "high"))
            bands.append(Band(NAMES.get(part, part), *values))
        corpus = (self.provenance.corpus or {}).get("name")
        return layer_profile(
            bands,
            title=f"What each layer attends to: {self._model()} on {corpus}",
            label="share of all attention",
        )

    def _model(self) -> str:
        return str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]
