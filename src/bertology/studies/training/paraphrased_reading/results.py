"""What a study of reading concludes: quantities for claims, the answer in words, and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, percent, points
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.studies.training.paraphrased_reading.data import BLIND, FULL
from bertology.studies.training.paraphrased_reading.scores import FEWEST, ReadingRuns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bertology.stats import Estimate

TITLES = {
    FULL: "model",
    BLIND: "model without the text",
    "without-question": "model without the question",
    "most-frequent-place": "most frequent place",
    "longest-answer": "longest answer",
    "word-overlap": "word overlap",
}
NOT_LEARNT = (
    "not judged: the model does not surely answer more than guessing does, so there is nothing to "
    "lose"
)
NOT_PAIRED = (
    "not judged: the challenge set has questions of its own, so that it is not known what "
    "rewording did to each"
)
TOO_FEW = (
    f"not judged: word overlap finds fewer than {FEWEST} answers that it loses by rewording, or "
    "fewer that it keeps"
)
_SHARES = {"original": "%", "paraphrased": "%", "drop": "points"}


class ParaphrasedReadingResult(Result):
    """How well questions are answered before and after rewording.

    Table `methods`: the model, the same without the text or the question, and rules. `types`: the
    model by type of question (`overlap_drop` is the drop of the rule). `overlap`: questions that
    word overlap answers, by whether it still does after rewording; of paired data only.
    """

    lead: ClassVar[int] = 6
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "methods": _SHARES,
        "types": {**_SHARES, "overlap_drop": "points"},
        "overlap": _SHARES,
    }

    @property
    def answer(self) -> str:
        """What is lost by rewording, and what is reached without reading."""
        found, facts = self.evidence(), self.facts
        seeds = f"over {facts['seeds']} seeds"
        blind = found.get("without_text_gain")
        told = (
            f"Without the text a model answers {points(blind)} more than guessing" if blind else ""
        )
        if "paraphrase_drop" not in found:
            why = self.reasons().get("paraphrase_drop", "nothing was measured")
            more = f" {told} ({seeds})." if told else ""
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}.{more}"
        drop, first = found["paraphrase_drop"], found["original_accuracy"]
        surely = "surely loses" if drop.low > 0 else "does not surely lose:"
        lost = (
            f"Of {percent(first, limits=())} right answers it {surely} {points(drop)} by rewording"
        )
        beyond = found.get("drop_beyond_blind")
        if beyond is not None and not facts["paired"]:
            lost += f", {points(beyond)} more than without the text"
        return f"{lost}. {told} ({seeds})." if told else f"{lost} ({seeds})."

    def headline(self) -> str:
        """What was learnt and asked."""
        facts = self.facts
        same = "the same questions about" if facts["paired"] else "and other questions about"
        kinds = [
            f"{what}: {facts[name]}"
            for what, name in (("learnt", "genres_learnt"), ("asked", "genres_asked"))
            if name in facts
        ]
        return "; ".join(
            [
                f"{facts['questions']} questions about {facts['texts']} texts, {same} "
                f"{facts['other_texts']} reworded",
                f"learnt from {facts['train_size']}",
                *kinds,
                *([self._across] if self._across else []),
                f"{facts['seeds']} seeds",
                f"guessing gives {100 / int(facts['answers']):.0f} %",
            ]
        )

    @property
    def _across(self) -> str:
        """That other kinds of text were learnt than are asked about; else nothing."""
        new = self.facts.get("genres_not_learnt")
        return f"nothing was learnt about {new}, so shares are across kinds of text" if new else ""

    def drawings(self) -> Sequence[Drawing]:
        """All methods, and the model by type of question."""
        rewording = (
            "the texts in other words" if self.facts["paired"] else "the challenge set's questions"
        )
        sides = (
            "From left to right: the share of right answers to the questions as they are, to "
            f"{rewording}, and how much less the second is. Dashed: guessing, or no loss."
        )
        if self._across:
            sides += f" {self._across[0].upper()}{self._across[1:]}."
        found = [
            Drawing(
                "methods",
                self._draw_methods,
                "One row for each method: the model, the same trained without the text or without "
                f"the question, and three rules that learn nothing. {sides} Intervals are over "
                "seeds and texts.",
            )
        ]
        if len(self.tables["types"]) > 1:
            found.append(
                Drawing(
                    "types",
                    self._draw_types,
                    f"One row for each type of question, the last for all. {sides} Intervals are "
                    "over seeds and texts, and hold for all types together.",
                )
            )
        return found

    def _panels(self, name: str) -> list[Dots]:
        rows, chance = self.tables[name], 100 / int(self.facts["answers"])
        return [
            Dots.of_columns("original (%)", rows, "original", level=chance),
            Dots.of_columns("reworded (%)", rows, "paraphrased", level=chance),
            Dots.of_columns("loss (points)", rows, "drop", level=0),
        ]

    def _draw_methods(self) -> Figure:
        return interval_dots(
            self._panels("methods"),
            [TITLES[str(name)] for name in self.tables["methods"]["method"]],
            title=f"Reading and rewording\n{self.about}",
            note="Dashed: guessing, or no loss. Intervals over seeds and texts.",
        )

    def _draw_types(self) -> Figure:
        return interval_dots(
            self._panels("types"),
            [str(name).replace("_", " ") for name in self.tables["types"]["type"]],
            title=f"Rewording by type of question\n{self.about}",
            note="Dashed: guessing, or no loss. Intervals hold for all types together.",
        )


def concluded(runs: ReadingRuns) -> tuple[dict[str, Estimate | None], dict[str, str]]:
    """Quantities, and reasons why something is not judged."""
    found: dict[str, Estimate | None] = {
        "original_accuracy": runs.score(FULL, 0),
        "paraphrased_accuracy": runs.score(FULL, 1),
        "reading_gain": runs.gain(FULL),
        "without_text_gain": runs.gain(BLIND),
    }
    learnt = found["reading_gain"]
    assert learnt is not None
    if len(runs.original[FULL]) > 1 and not learnt.low > 0:
        return found, dict.fromkeys(("paraphrase_drop", "overlap_drop"), NOT_LEARNT)
    found["paraphrase_drop"] = runs.drop(FULL)
    found["drop_beyond_blind"] = runs.drop_beyond(FULL, BLIND)
    more = found["overlap_drop"] = runs.overlap_drop()
    if more is not None:
        return found, {}
    return found, {"overlap_drop": TOO_FEW if runs.paired else NOT_PAIRED}
