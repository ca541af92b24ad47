"""What diagnostics found: which completions are preferred, how often first guesses are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Result
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GOOD, RELATED_FIRST, ROLE = "good over bad", "related over unrelated", "fitting role over reversed"
_HIGH = "High: read from this layer, the head already completes as it should."
_LINES = {  # columns of the table of layers
    "accuracy": Line(
        "Contexts whose expected word is among the first guesses", "first guesses", _HIGH
    ),
    "good": Line("Contexts whose good completion is the likeliest", GOOD, _HIGH),
    "related": Line("Contexts whose related wrong completion is likelier", RELATED_FIRST, _HIGH),
    "role": Line("Pairs whose verb is likelier where it fits", ROLE, _HIGH),
}
_SAID = {
    "good_preference_gain": "the good completion is the likeliest in {} more contexts than chance",
    "related_preference": "a related wrong one is likelier than an unrelated one in {}",
    "role_preference": "a verb is likelier where the roles fit in {} of pairs",
    "negation_loss": "negation costs {} of right preferences",
}


class DiagnosticsResult(Result):
    """How the model completes contexts.

    Table `preferences`: how often the right one of two or more completions, or contexts, is
    likelier, and how often clearly so; `accuracy`: how often the expected word is among the first k
    guesses; `pairs`: both versions of items, with McNemar's exact test; `layers`: by layer;
    `contexts`: each of them, with the first guesses.
    """

    lead: ClassVar[int] = 3
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "preferences": {"share": "%", "clear": "%", "chance": "%", "human": "%"},
        "accuracy": {"share": "%", "human": "%"},
        "layers": dict.fromkeys(_LINES, "%"),
    }

    @property
    def answer(self) -> str:
        """The share of expected words among the first guesses, then what is preferred."""
        found, k = self.evidence(), self.facts["k"]
        said = []
        if (first := found.get(f"accuracy_at_{k}")) is not None:
            said.append(
                f"the expected word is among the first {k} guesses in {percent(first, '.1f')} of "
                f"{first.n:,} contexts"
            )
        for name, words in _SAID.items():
            if (one := found.get(name)) is not None:
                shares = name in ("related_preference", "role_preference")
                number = percent(one, ".1f", limits=(0.5,)) if shares else points(one)
                said.append(words.format(number))
        if not said:
            return "Nothing is sure: no expected word is a single piece, and nothing was compared."
        text = "; ".join(said) + "."
        return text[0].upper() + text[1:]

    def measures(self) -> Sequence[Measure]:
        """What is preferred by layer; nothing where only the model itself was asked."""
        return line_measures(self.tables["layers"], _LINES, of="diagnostics")

    def drawings(self) -> Sequence[Drawing]:
        """Preferences, accuracies, and both by layer."""
        found = []
        if len(self.tables["preferences"]):
            found.append(
                Drawing(
                    "preferences",
                    self._draw_preferences,
                    "One row for each kind of comparison: the per cent in which the right side is "
                    "likelier, and in which it is clearly so, more probable by the threshold. "
                    "Intervals hold for all rows together; diamonds are chance.",
                )
            )
        if len(self.tables["accuracy"]):
            found.append(
                Drawing(
                    "accuracy",
                    self._draw_accuracy,
                    "The per cent of contexts whose expected word is among the first guesses of "
                    "the whole vocabulary, by how many guesses are looked at. Diamonds: the mean "
                    "share of people who gave that word, where the corpus tells it.",
                )
            )
        if shown := self.measures():
            found.append(
                lines_drawn(
                    shown,
                    _LINES,
                    self.about,
                    title="Completions, read from each layer",
                    reading="Layers are read by a lens, so that a low line says only that the "
                    "head cannot read it there.",
                )
            )
        return found

    def _draw_preferences(self) -> Figure:
        rows = self.tables["preferences"]
        names = [_named(str(r.group), str(r.condition), str(r.test)) for r in rows.itertuples()]
        likelier = (100 * rows[f"share{end}"].to_numpy() for end in ("", "_low", "_high"))
        clearly = Dots.of_columns("clearly likelier (%)", rows, "clear")
        return interval_dots(
            [Dots("likelier (%)", *likelier, hollow=100 * rows["chance"].to_numpy()), clearly],
            names,
            title=f"Which completion is likelier\n{self.about}",
            note=f"Diamonds: chance. Clearly: more probable by {self.facts['threshold']:g}.",
        )

    def _draw_accuracy(self) -> Figure:
        rows = self.tables["accuracy"]
        sizes = sorted(rows["k"].unique())
        names = [_named(r.group, r.condition) for r in rows[rows["k"] == sizes[0]].itertuples()]
        panels = []
        for k in sizes:
            some = rows[rows["k"] == k]
            sides = (100 * some[f"share{end}"].to_numpy() for end in ("", "_low", "_high"))
            label = "first guess (%)" if k == 1 else f"first {k} guesses (%)"
            panels.append(Dots(label, *sides, hollow=100 * some["human"].to_numpy()))
        return interval_dots(
            panels,
            names,
            title=f"Expected words among the first guesses\n{self.about}",
            note="Diamonds: mean share of people who gave the word. Intervals hold for all rows.",
        )


def _named(group: str, condition: str, test: str = "") -> str:
    return ", ".join(part for part in (group, condition, test) if part) or "all"
