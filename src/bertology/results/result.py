"""What a study found: labelled arrays and tables, figures drawn from them, claims judged on them.

A result needs no model and no torch; it is read from a store and drawn again on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from bertology.errors import ParameterError, UnknownNameError
from bertology.results import html
from bertology.results.answers import default_answer
from bertology.results.compared import Compared, read_compared
from bertology.results.drawing import WIDTHS, Canvas, Drawing
from bertology.results.evidence import read_evidence, read_reasons
from bertology.results.hundredths import in_hundredths
from bertology.results.known_claims import judge
from bertology.results.measures import LayerGrid, Measure, Tracked
from bertology.results.provenance import Provenance, short
from bertology.results.ranking import Ranking, order_told, ranking_of, strongest_first
from bertology.results.rendering import render
from bertology.results.verdicts import Verdicts

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bertology.stats import Estimate


def _no_arrays() -> xr.Dataset:
    import xarray as xr

    return xr.Dataset()


@dataclass(eq=False)
class Result:
    """Subclass it beside the study: `answer`, `measures`, `drawings`, `headline`; add no fields.

    All are computed from `tables` and `arrays` alone, so that a stored result is drawn and judged
    again on any machine. What claims are judged on was declared by the study's `conclude`.
    """

    place: ClassVar[int] = 9
    """Where its measures stand in the atlas: what a newcomer understands first has a low number."""
    lead: ClassVar[int] = 9
    """Where its answer stands among the first lines of the atlas, which has room for about four."""
    strongest: ClassVar[Mapping[str, Ranking]] = {}
    """What the rows of a table are ranked by where they are shown, by table: `{"heads": "excess"}`.
    Tables of heads with a `difference` are ranked by its size when nothing is said."""

    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Columns of fractions that readers see times a hundred, as in figures, and the unit, by table:
    `{"links": {"share": "%", "excess": "points"}}`."""

    provenance: Provenance
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    arrays: xr.Dataset = field(default_factory=_no_arrays)

    # What a study's own class says ---------------------------------------------------------------

    def measures(self) -> Sequence[Measure]:
        """What it says of every head and of every layer, the main one first."""
        return ()

    def layer_grids(self) -> Sequence[LayerGrid]:
        """What it says of pairs of layers, of one model or of two."""
        return ()

    def drawings(self) -> Sequence[Drawing]:
        """The figures, the main one first."""
        return ()

    def over_training(self) -> Sequence[Tracked]:
        """What is followed over the steps of a training run; nothing where a reader must choose."""
        return ()

    def notes(self, model: str | None = None) -> list[str]:
        """What the reader must be warned of; mostly empty.

        `model` stands for the model's name, which may be a folder that does not belong on a page.
        """
        return self.provenance.text_notes(model)

    @property
    def answer(self) -> str:
        """The question answered in one or two plain sentences: the number, and how sure it is.

        It is shown before all else. Override it where the study can say better what it found.
        """
        measures, facts = self.measures(), self.facts
        return default_answer(measures, self.evidence(), self.verdicts(), facts)

    def with_sure(self, name: str) -> pd.DataFrame:
        """The table called `name`, with `sure` where that is decided when it is read.

        Sure rows are shown before others. Override it where neither a column `sure` nor the
        interval of the number that rows are ranked by says which ones are.
        """
        return self.tables[name]

    def headline(self) -> str:
        """What else a reader needs to understand the tables; empty where there is nothing."""
        return ""

    # What follows from it ------------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """The hash of what was asked; see `Provenance.identity`."""
        return self.provenance.identity

    @property
    def facts(self) -> dict[str, Any]:
        """Single numbers and words that `conclude` left, such as `level` and `examples`."""
        return {str(name): value for name, value in self.arrays.attrs.items()}

    @property
    def about(self) -> str:
        """`bertology-mini on grammar`, for titles."""
        return self.provenance.about

    def table(self, name: str | None = None) -> pd.DataFrame:
        """The table called `name`; the main one, which comes first, when no name is given."""
        return self.tables[_pick("table", name, self.tables)]

    def shown(self, name: str | None = None) -> pd.DataFrame:
        """The same table as it is shown: the strongest rows first (`strongest`)."""
        name = _pick("table", name, self.tables)
        table, ranking = self.with_sure(name), self.ranking(name)
        return table if ranking is None else strongest_first(table, ranking)

    def ranking(self, name: str) -> Ranking | None:
        """What the rows of the table called `name` are ranked by; None: they stay as stored."""
        return ranking_of(self.tables[name], self.strongest.get(name))

    def in_units(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Rows of the table called `name` for readers: scores and shares times a hundred."""
        return in_hundredths(table, self.hundredths.get(name, {}))

    def order_of(self, name: str) -> str:
        """How the rows of `shown` are ordered, in words; empty where they are as stored."""
        ranking = self.ranking(name)
        return "" if ranking is None else order_told(self.with_sure(name), ranking)

    def measure(self, name: str) -> Measure:
        """The measure called `name`."""
        by_name = {m.name: m for m in self.measures()}
        return by_name[_pick("measure", name, by_name)]

    def figures(self) -> dict[str, Drawing]:
        """The drawings by name."""
        return {drawing.name: drawing for drawing in self.drawings()}

    def plot(
        self,
        name: str | None = None,
        ax: Axes | None = None,
        title: str | None = None,
        width: str | None = None,
    ) -> Figure:
        """Draw the figure called `name`, or the main one.

        Args:
            name: One of `figures()`.
            ax: Axes to draw into, for figures of one panel; the note below is then left out.
            title: Instead of the figure's own; empty: none. What it shows in words is `caption`.
            width: `column` (3.3 inches) or `page` (6.9 inches), with type for that width.
        """
        if width is not None and width not in WIDTHS:
            raise UnknownNameError("width", width, WIDTHS)
        if ax is not None and width is not None:
            must = "be left out where `ax` is given, which has a width already"
            raise ParameterError("width", "plot", must, width)
        drawings = self.figures()
        drawing = drawings[_pick("figure", name, drawings)]
        return drawing.on(Canvas(ax, None if width is None else WIDTHS[width], title))

    def svg(self, name: str) -> bytes:
        """The figure called `name` as a file; drawn once, for the store and for a page alike."""
        drawn = _DRAWN.setdefault(self, {})
        if name not in drawn:
            stored = _STORED[self](name) if self in _STORED else None
            drawn[name] = render(self.plot(name)) if stored is None else stored
        return drawn[name]

    def drawn_before(self, find: Callable[[str], bytes | None]) -> None:
        """Let `find` give the figures that were stored, by name, as far as they hold."""
        _STORED[self] = find

    def caption(self, name: str | None = None) -> str:
        """What the figure called `name`, or the main one, shows in words: for below it."""
        drawings = self.figures()
        return drawings[_pick("figure", name, drawings)].caption

    def evidence(self) -> dict[str, Estimate]:
        """The quantities that claims are judged on, each with its interval."""
        return read_evidence(self.arrays)

    def compared(self) -> list[Compared]:
        """The numbers by which two models are set side by side, as `conclude` declared them."""
        return read_compared(self.arrays)

    def reasons(self) -> dict[str, str]:
        """Why quantities have no estimate, by quantity; under "" for all others."""
        return read_reasons(self.arrays)

    def verdicts(self) -> Verdicts:
        """What the literature claims about this study's question, judged on this result.

        A list that is shown as a small table; print one verdict for all that it rests on.
        """
        p = self.provenance
        found = judge(p.study, self.evidence(), reasons=self.reasons(), data=short(p.corpus_name))
        return Verdicts(found)

    def equals(self, other: Result) -> bool:
        """Whether provenance, tables and arrays are the same, NaN equal to NaN."""
        return self.provenance == other.provenance and self.same_content(other)

    def same_content(self, other: Result) -> bool:
        """Whether tables and arrays are the same, whenever and however they were made."""
        return (
            list(self.tables) == list(other.tables)
            and all(_same_table(t, other.tables[name]) for name, t in self.tables.items())
            and self.arrays.identical(other.arrays)
        )

    def summary(self) -> str:
        """A few lines for the terminal: what was asked, what is inside, what follows."""
        p = self.provenance
        over = "" if p.corpus is None else f" over {p.corpus.get('name')}"
        lines = [f"{p.study} of {p.model.get('name')}{over}  [{self.identity}]"]
        told = (self.answer, p.labels_note, *self.notes(), self.headline())
        lines += [f"  {line}" for line in told if line]
        for name, table in self.tables.items():
            lines.append(f"  table {name}: {len(table)} rows × {len(table.columns)} columns")
        if self.figures():
            lines.append(f"  figures: {', '.join(self.figures())}")
        lines += [f"  {verdict}" for verdict in self.verdicts()]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        drawings = self.drawings()
        pieces = [
            f'<p style="font-size:1.15em"><b>{escape(self.answer)}</b></p>',
            html.heading(self.provenance, self.notes()),
            html.main_figure(drawings),
            html.verdict_list(self.verdicts()),
            *[html.first_rows(self.in_units(name, self.shown())) for name in list(self.tables)[:1]],
            html.other_figures(drawings),
        ]
        return f'<div class="bertology-result">{"".join(pieces)}</div>'


_STORED: WeakKeyDictionary[Result, Callable[[str], bytes | None]] = WeakKeyDictionary()
_DRAWN: WeakKeyDictionary[Result, dict[str, bytes]] = WeakKeyDictionary()

Kinds = Callable[[str], "type[Result] | None"]
_find: Kinds | None = None


def find_kinds_with(find: Kinds) -> None:
    """Let `find` (study name to its Result class) decide what stored results are read as.

    This package comes before the studies and cannot look them up; the studies' package calls
    this once when it is imported.
    """
    global _find
    _find = find


def kind_of(study: str) -> type[Result]:
    """The Result class of `study`; the plain one where the study is not installed here."""
    try:
        found = None if _find is None else _find(study)
    except UnknownNameError:
        # A plugin's result is still data when the plugin is gone.
        found = None
    return found or Result


def _pick(kind: str, name: str | None, among: Mapping[str, object]) -> str:
    if name is None and among:
        return next(iter(among))
    if name is None or name not in among:
        raise UnknownNameError(kind, name or "", among)
    return name


def _same_table(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    return (
        one.equals(other)
        and one.index.equals(other.index)
        and list(one.index.names) == list(other.index.names)
        and one.columns.equals(other.columns)
        and bool((one.dtypes == other.dtypes).all())
    )
