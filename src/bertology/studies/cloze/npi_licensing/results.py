"""What was found of negative polarity items, by method, contrast, environment and layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Result
from bertology.studies.cloze.npi_licensing.scores import ACCEPTABLE, NEW, SEEN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ALL = "all"
ABSOLUTE, GRADIENT = "absolute pairs", "gradient pairs, classifier"
LIKELIHOOD, BEYOND = "gradient pairs, likelihood", "gradient pairs, likelihood beyond words"
CLOZE, CLOZE_LICENSOR = "cloze of the NPI", "cloze of the licensor"
_TITLES = {
    ACCEPTABLE: "acceptable or not",
    "licensor": "there is a licensor",
    "scope": "the NPI would be in scope",
    "npi_present": "there is an NPI",
}
_WAYS = {SEEN: "environments and NPIs seen", NEW: "environment or NPI new"}
_SHARE = ("share", "share_low", "share_high")


class NpiLicensingResult(Result):
    """What five methods tell of licensors, scope and negative polarity items.

    Table `methods`: for each method, contrast and environment (`all` first) the share of whole
    paradigms, or of their pairs, that are told right, beside chance; `classifier`: accuracy and
    Matthews correlation of acceptability, beside the more frequent label; `layers`: right answers
    of probes for each task and layer (-1 is what enters the first one), and the mean of copies with
    shuffled weights. `trained`: whether classifiers and probes saw the environment (`seen`) or not
    (`new`: of the task npi_present the NPI is new). Bounds hold for all rows together.
    """

    lead: ClassVar[int] = 3
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "methods": {"share": "%", "chance": "%"},
        "classifier": {"accuracy": "%", "frequent": "%"},
        "layers": {"accuracy": "%", "shuffled": "%"},
    }

    @property
    def answer(self) -> str:
        """What likelihoods tell of licensor and scope, and what probes tell better."""
        found, said = self.evidence(), []
        for name, words in (
            ("licensor_pairs", "a missing licensor is told"),
            ("scope_pairs", "an NPI outside its scope"),
        ):
            if (one := found.get(name)) is not None:
                said.append(f"{words} in {percent(one, limits=(0.5,))} of cases")
        text = ""
        if said:
            text = f"By likelihood beyond words, {' and '.join(said)}; chance would be 50 %. "
        compared = []
        for name, words in (("npi_over_scope", "a new NPI"), ("licensor_over_scope", "a licensor")):
            if (one := found.get(name)) is not None:
                compared.append(f"{words} {points(one, '.0f')} better than scope")
        if compared:
            text += (
                f"Probes in new surroundings tell {' and '.join(compared)}, beyond shuffled "
                "weights. "
            )
        return text.strip() or (
            f"Nothing is compared: there are {self.facts['environments']} environments and no "
            "likelihoods."
        )

    def measures(self) -> Sequence[Measure]:
        """Right answers of probes by layer, in environments seen and new."""
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0]
        return [
            Measure.of_column(
                some,
                "accuracy",
                name=f"{str(task).replace('_', '-')}-{trained}",
                title=f"Right answers of a probe: {_TITLES[str(task)]}, {_WAYS[str(trained)]}",
                unit="% of sentences",
                bounds=("accuracy_low", "accuracy_high"),
                scale=100.0,
                reading="High: the mean of the states after this layer tells it.",
            )
            for (task, trained), some in rows.groupby(["task", "trained"], sort=False)
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Methods × contrasts; environments; probes by layer."""
        found = [
            Drawing(
                "methods",
                self._draw_methods,
                "One row for each method and contrast: the per cent of minimal pairs told right "
                "over all environments. Pairs differ in the licensor, in scope, or in the NPI. "
                "Diamonds are chance. Beyond words: what the change does for the NPI more than "
                "for a plain word in its place.",
            ),
        ]
        if len(self._by_environment()[0]):
            found.append(
                Drawing(
                    "environments",
                    self._draw_environments,
                    "For each environment, the per cent of paradigms in which a missing licensor, "
                    "or an NPI outside its scope, is told by likelihood beyond words. Chance "
                    "would be 50. Intervals hold for all rows of the table together.",
                )
            )
        for trained, name in ((NEW, "layers"), (SEEN, "layers-seen")):
            if shown := [m for m in self.measures() if m.name.endswith(f"-{trained}")]:
                found.append(
                    drawings.profile(
                        name,
                        shown,
                        self.about,
                        title=f"What probes tell, {_WAYS[trained]}",
                        reading="In new surroundings no word that matters was seen before; where "
                        "they were seen, single words tell much."
                        if trained == NEW
                        else "Probes saw the same licensors and NPIs in other paradigms, so that "
                        "single words tell them.",
                        labels=[m.title.partition(": ")[2].partition(",")[0] for m in shown],
                    )
                )
        return found

    def _draw_methods(self) -> Figure:
        rows = self.tables["methods"]
        rows = rows[rows["environment"] == ALL]
        names = [
            f"{method}{f' ({trained})' if trained else ''}: {contrast}"
            for method, trained, contrast in rows[["method", "trained", "contrast"]].to_numpy()
        ]
        sides = (100 * rows[column].to_numpy() for column in _SHARE)
        return interval_dots(
            [Dots("pairs told right (%)", *sides, hollow=100 * rows["chance"].to_numpy())],
            names,
            title=f"Negative polarity items by five methods\n{self.about}",
            note="Diamonds: chance. Intervals over environments × NPIs, for all rows together.",
        )

    def _by_environment(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Pairs by likelihood beyond words: licensor, and scope with the same environments."""
        rows = self.tables["methods"]
        rows = rows[rows["method"] == BEYOND]
        one, other = (
            rows[rows["contrast"] == contrast].set_index("environment")
            for contrast in ("licensor", "scope")
        )
        return one, other.reindex(one.index)

    def _draw_environments(self) -> Figure:
        one, other = self._by_environment()
        return interval_dots(
            [
                Dots.of_columns("missing licensor told (%)", one, "share", level=50),
                Dots.of_columns("NPI outside scope told (%)", other, "share", level=50),
            ],
            [str(name) for name in one.index],
            title=f"Licensor and scope by environment\n{self.about}",
            note="Likelihood beyond words. Dashed: chance, 50 %.",
        )
