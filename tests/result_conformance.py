"""What every result of a study must keep to. A study's own test subclasses `ResultConformance`.

`tests/unit/test_studies_are_tested.py` holds that every study and every join has such a test.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from matplotlib.figure import Figure

from bertology.report.atlas.about import About
from bertology.report.atlas.chapters import chapters
from bertology.report.atlas.naming import Entry
from bertology.report.latex import strongest_as_latex
from bertology.report.settled_layout import SettledLayout
from bertology.results.known_claims import load_claims
from bertology.results.measures import Measure
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.results.store import Store
from bertology.results.verdicts import Verdict
from bertology.studies.joins.training_steps import TrainingSteps
from found_states import STATES, State, contradictions, first_heads, in_state


class ResultConformance:
    """Measures, drawings, evidence and reading back, on the result that `make` gives."""

    measures: ClassVar[frozenset[str]] = frozenset()
    """Some of the measures that the result must have; none: it says nothing of heads and layers."""

    begins_with_named: ClassVar[bool] = True
    """Whether a table of heads begins with a head that the answer names, if it names any."""

    @staticmethod
    def make() -> Result:
        """A small result with as many tables and figures as there can be."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def result(cls) -> Result:
        return cls.make()

    @pytest.fixture
    def one_laid_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Making room for labels takes longer than drawing; only the main figure gets it here."""
        lay_out, done = SettledLayout.execute, list[Figure]()

        def only_first(layout: SettledLayout, fig: Figure) -> None:
            if not done:
                lay_out(layout, fig)
            done.append(fig)

        monkeypatch.setattr(SettledLayout, "execute", only_first)

    def test_measures_are_whole(self, result: Result) -> None:
        found = result.measures()
        names = [m.name for m in found]
        assert len(set(names)) == len(names)
        assert self.measures <= set(names)
        assert bool(names) == bool(self.measures)
        for measure in found:
            check_measure(measure)
        shapes = {m.values.shape for m in found if m.of_heads}
        assert len(shapes) <= 1
        by_layer = {m.values.shape for m in found if not m.of_heads}
        assert len(by_layer | {s[:1] for s in shapes}) <= 1

    def test_what_is_followed_over_training_is_there(self, result: Result) -> None:
        for one in result.over_training():
            value = TrainingSteps(measure=one.measure, at=one.at).value(result)
            assert value.low <= value.value <= value.high
            assert one.label
            assert not one.layers or result.measure(one.layers).values.ndim == 1

    def test_the_question_is_answered_in_plain_sentences(self, result: Result) -> None:
        check_answer(result.answer)

    def test_drawings_say_what_they_show(self, result: Result) -> None:
        drawings = result.drawings()
        names = [d.name for d in drawings]
        assert names
        assert len(set(names)) == len(names)
        for drawing in drawings:
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", drawing.name)
            assert drawing.caption.endswith(".")
            assert 60 < len(drawing.caption) < 600
            assert "{" not in drawing.caption

    def test_evidence_has_intervals_and_names_that_claims_use(self, result: Result) -> None:
        for name, found in result.evidence().items():
            assert re.fullmatch(r"[A-Za-z0-9_]+", name)
            assert 0 < found.level < 1
            if np.isfinite(found.low) and np.isfinite(found.high):
                assert found.low <= found.value + 1e-9
                assert found.value <= found.high + 1e-9
        claimed = [c for c in load_claims() if c.study == result.provenance.study]
        assert len(result.verdicts()) == len(claimed)

    @pytest.mark.parametrize("state", STATES)
    def test_what_it_says_is_true_whatever_is_sure(
        self, result: Result, state: State, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = in_state(result, state)
        monkeypatch.setattr(type(found), "answer", found.answer)  # it is told in many places
        check_answer(found.answer)
        assert not list(contradictions(found, state)), found.answer
        named = set(re.findall(r"[Hh]ead (\d+\.\d+)", found.answer))
        if self.begins_with_named and named and (first := first_heads(found)):
            assert named & first, "the tables begin with other heads"
        found.summary()
        for name in found.tables:
            strongest_as_latex(found, name)
        for drawing in found.drawings() if state == "nothing" else ():  # others as for the store
            drawing.draw()
        monkeypatch.setattr(Result, "svg", lambda self, name: b"<svg/>")
        page = chapters([Entry(found)], lambda study: About(), (1, 1))
        assert escape(found.answer) in str(page)

    @pytest.mark.usefixtures("drawn", "one_laid_out")
    def test_what_is_stored_is_read_back_and_drawn(self, result: Result, tmp_path: Path) -> None:
        store = Store(str(tmp_path))
        store.save(result)
        back = store.load(result.provenance)
        assert type(back) is type(result)
        assert back.equals(result)
        assert back.evidence() == result.evidence()
        assert back.reasons() == result.reasons()
        assert back.headline() == result.headline()
        assert back.answer == result.answer
        drawn = {path.stem for path in tmp_path.rglob("figures/*.svg")}
        assert drawn == set(back.figures())


def check_answer(answer: str) -> None:
    """One or two sentences, with a number and its interval, or plainly that nothing is sure."""
    assert re.match(r"[A-Z0-9\[]", answer), answer
    assert answer.endswith(".")
    assert 1 <= len(re.findall(r"[.!?](?:\s|$)", answer)) <= 2, answer
    assert 30 < len(answer) < 400, answer
    assert not re.search(r"\bnan\b|None(?! of)|[{}]|\s\s", answer), answer
    interval = re.search(r"\d( %| \w+)? \[[-+<>]?[\d.e-]+, [-+<>]?[\d.e-]+\]", answer)
    unsure = "Nothing is sure" in answer or "(no interval)" in answer
    exact = "exact: no interval" in answer
    assert interval or unsure or exact, answer


def check_measure(measure: Measure) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", measure.name)
    assert measure.values.ndim in (1, 2)
    assert measure.title
    assert "{" not in measure.title + measure.reading
    assert measure.reading.endswith(".")
    assert bool(measure.unit) != bool(measure.kinds)
    assert (measure.low is None) == (measure.high is None)
    if measure.kinds:
        assert set(np.unique(measure.values)) <= set(range(len(measure.kinds)))
    if measure.low is not None and measure.high is not None:
        known = np.isfinite(measure.low) & np.isfinite(measure.high)
        assert known.any()
        assert (measure.low <= measure.values + 1e-9)[known].all()
        assert (measure.values <= measure.high + 1e-9)[known].all()
    if measure.sure is not None:
        assert measure.sure.dtype == bool


def told(verdict: Verdict) -> Outcome:
    """The outcome, for tests of planted signals and of nulls: what is surely there holds."""
    return Outcome.HOLDS if verdict.outcome.is_there else verdict.outcome


def claims_of(result: Result) -> dict[str, Any]:
    """Outcomes by claim, as `told`."""
    return {v.claim.id: str(told(v)) for v in result.verdicts()}
