"""The page and the summaries, from made-up results: nothing is run, nothing slips in unescaped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

from bertology.reproduce import report as report_module
from bertology.reproduce.execute import PlanResults
from bertology.reproduce.judged import counts_text
from bertology.reproduce.paper import Exhibit, Paper, PaperSection, TextTable, Unjudged
from bertology.reproduce.paper_plan import PaperPlan
from bertology.reproduce.plan import (
    Data,
    FineTune,
    MissingData,
    ReproductionOptions,
    RunStudy,
    StepPlan,
)
from bertology.reproduce.render import page as page_module
from bertology.reproduce.render.page import reproduction_page
from bertology.reproduce.render.summary import as_json, as_markdown
from bertology.reproduce.report import ReproductionReport
from bertology.results.drawing import Drawing
from bertology.results.known_claims import judge
from bertology.results.number_text import with_interval
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.verdicts import Claim, Published, Source, Verdict
from bertology.stats import Estimate

EVIL = '<script>alert("x")</script> & | co'
TASK, OTHER = Data("some-task", sample=True), Data("other-task")


def claim(name: str, study: str) -> Claim:
    return Claim(
        f"paper.{name}", Source(f"A 2020, A paper {EVIL}", "4.1, Table 1"), f"{name} is so {EVIL}",
        Published(f"about 3 {EVIL}"), study, Rule("gain", Relation.ABOVE, 0.0), f"Because {EVIL}.",
    )  # fmt: skip


CLAIMS = [claim("first", "head-ablation"), claim("second", "map-types")]


class Made(Result):
    """A result that says what it is told."""

    def evidence(self) -> dict[str, Estimate]:
        low = float(self.arrays.attrs["low"])
        return {"gain": Estimate(0.5, low, 0.9, 12)}

    def verdicts(self) -> Any:
        return judge(self.provenance.study, self.evidence(), CLAIMS)

    def drawings(self) -> Sequence[Drawing]:
        return [Drawing("heads", self._draw, "Heads."), Drawing("broken", self._fail, "Broken.")]

    def _draw(self) -> Figure:
        figure = Figure(figsize=(1, 1))
        figure.text(0, 0, "drawn")
        return figure

    def _fail(self) -> Figure:
        raise ValueError("cannot be drawn")


def result(task: str, low: float) -> Made:
    provenance = Provenance(
        "head-ablation", 1, {}, {"name": EVIL, "fingerprint": "m"},
        {"name": task, "fingerprint": task},
    )  # fmt: skip
    return Made(provenance, {"heads": pd.DataFrame({"x": [1]})}, xr.Dataset(attrs={"low": low}))


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ReproductionReport:
    monkeypatch.setattr(report_module, "load_claims", lambda: CLAIMS)
    published = TextTable(("data", "gain"), (("MRPC", f"1.2 {EVIL}"),))
    exhibits = (
        Exhibit(
            "head-ablation", "Ours.", "Theirs.", "Figure 8", published, figures=("heads", "broken")
        ),
        Exhibit("map-types", "Types.", "Types.", "Figure 2", figures=("heads",)),
    )
    paper = Paper(
        name="paper", title=f"A paper {EVIL}", citation="A 2020.", address="https://example.org",
        about="About.",
        sections=(PaperSection("4.1", "Heads", "Did.", "Found.", exhibits),),
        plan=PaperPlan(()), unjudged=(Unjudged("Said.", "5", "No study."),),
    )  # fmt: skip
    steps = (
        FineTune(TASK),
        RunStudy(
            "head-ablation",
            TASK,
            fine_tuned_by="finetune@some-task",
            parameters={"sets": ("0.1", "0.2")},
        ),
        RunStudy("head-ablation", OTHER),
        RunStudy("map-types", TASK),
    )
    notes = {"4.1": (f"Differs {EVIL}.", "A sample only.")}
    plan = StepPlan((TASK, OTHER), steps, (MissingData("mrpc", f"no folder {EVIL}"),), notes)
    done = PlanResults(
        results={steps[1].key: result("some-task", 0.1), steps[2].key: result("other-task", -0.1)},
        models={
            "finetune@some-task": {
                "scores": {"f1": 0.5}, "baseline": {"f1": 0.25}, "train": {"size": 1200},
            }
        },
        folders={"finetune@some-task": "/some/where/model-tuned"},
        reasons={"map-types@some-task": f"no patterns {EVIL}"},
    )  # fmt: skip
    model = {"name": "/some/where/model", "fingerprint": "m", "family": "bert", "shape": {}}
    options = ReproductionOptions(
        "/some/where/model", tasks=("some-task", "other-task"), examples=20
    )
    return ReproductionReport(paper, options, plan, done, model)


def test_texts_that_were_cut_are_told_once_for_all_steps(report: ReproductionReport) -> None:
    assert "Texts that were cut" not in reproduction_page(report)
    for made in report.done.results.values():
        cut = {"texts": 2, "of": 7, "tokens": 64, "asked": False}
        made.provenance = replace(made.provenance, cut=cut)
    page = reproduction_page(report)
    steps = ", ".join(report.done.results)
    assert f"{steps}: 2 of 7 texts were cut to 64 tokens, the most that the model takes." in page


def test_claims_are_judged_by_data(report: ReproductionReport) -> None:
    first, second = report.judged
    assert [(t, v.outcome) for t, v in first.decided] == [
        ("some-task (sample)", Outcome.HOLDS),
        ("other-task", Outcome.INCONCLUSIVE),
    ]
    assert first.overall == "inconclusive"  # on one of two tasks only, and none surely differs
    assert second.overall == "not run"
    assert report.counts == {"inconclusive": 1, "not run": 1}
    assert counts_text(report.judged) == "1 inconclusive, 1 not run"


def test_what_is_there_but_of_open_size_is_shown_as_such(
    report: ReproductionReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = replace(CLAIMS[0], rule=replace(CLAIMS[0].rule, margin=0.3))
    monkeypatch.setattr(report_module, "load_claims", lambda: [large])
    found = {"gain": Estimate(0.5, 0.1, 0.9, 12)}
    monkeypatch.setattr(Made, "verdicts", lambda self: judge("head-ablation", found, [large]))
    assert report.counts == {"size open": 1}
    page, text = reproduction_page(report), as_markdown(report)
    assert '<span class="chip size-open">◐ size open</span>' in page
    assert ".chip.size-open {" in page
    assert "Size open: what is claimed is surely there" in page
    assert "must be above 0 by 0.3 or more" in page
    assert "would settle the size" in page
    assert "| ◐ size open | first is so" in text


def test_the_page_says_how_many_claims_hold_by_chance(report: ReproductionReport) -> None:
    for text in (reproduction_page(report), as_markdown(report)):
        assert "Judged here: 1 claim, with 2 verdicts, 1 of them sure." in text
        assert "about 0.025 at most would still be said to hold" in text
    record = json.loads(as_json(report))
    assert (record["across_claims"], record["false_holds_at_most"]) == (False, 0.025)


def test_a_quick_page_says_that_it_read_less(report: ReproductionReport) -> None:
    quick = replace(report, options=replace(report.options, quick=True))
    for text in (reproduction_page(quick), as_markdown(quick)):
        assert "Quick: less data." in text
    for text in (reproduction_page(report), as_markdown(report)):
        assert "Quick" not in text
    assert quick.command.endswith("--limit 20 --quick")
    assert [json.loads(as_json(r))["quick"] for r in (quick, report)] == [True, False]


def test_the_error_can_be_held_over_all_claims(
    report: ReproductionReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [replace(CLAIMS[0], id=f"paper.c{n}") for n in range(40)]
    monkeypatch.setattr(report_module, "load_claims", lambda: many)

    def barely(self: Made) -> list[Verdict]:
        found, sure = Estimate(0.5, 0.1, 0.9, 12), Estimate(0.5, 0.45, 0.55, 12)
        first = judge("head-ablation", {"gain": found}, many[:20])
        return [*first, *judge("head-ablation", {"gain": sure}, many[20:])]

    monkeypatch.setattr(Made, "verdicts", barely)
    strict = replace(report, options=replace(report.options, across_claims=True))
    assert report.counts == {"holds": 40}
    assert strict.counts == {"holds": 20, "inconclusive": 20}
    assert "The error is held over all claims" in reproduction_page(strict)
    assert "--across-claims" in strict.command
    record = json.loads(as_json(strict))
    assert (record["across_claims"], record["false_holds_at_most"]) == (True, None)


def test_ours_are_counted_apart(
    report: ReproductionReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, ours = CLAIMS[0], replace(CLAIMS[1], ours=True)
    monkeypatch.setattr(report_module, "load_claims", lambda: [said, ours])
    assert report.counts == {"inconclusive": 1}
    assert counts_text(report.judged) == "1 inconclusive; ours: 1 not run"
    record = json.loads(as_json(report))
    assert record["counts_of_ours"] == {"not run": 1}
    assert [c["ours"] for c in record["claims"]] == [False, True]
    for text in (reproduction_page(report), as_markdown(report)):
        assert "Our own questions" in text


def test_a_claim_is_one_line_whose_numbers_open_on_demand(report: ReproductionReport) -> None:
    page = reproduction_page(report)
    summary = page.split('<details class="claim"><summary>')[1].split("</summary>")[0]
    for words in ("? inconclusive", "first is so", "✓ some-task (sample)", "? other-task"):
        assert words in summary
    assert "0.5 [0.1, 0.9]" not in summary
    assert "0.5 [0.1, 0.9], n = 12 examples" in page


def test_the_page_needs_nothing_but_itself_and_escapes(report: ReproductionReport) -> None:
    page = reproduction_page(report)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 8
    assert not re.search(r'(?:src|href)="(?!data:|#|https://example\.org)', page)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert page.count("data:image/svg+xml,") == 2  # one figure cannot be drawn
    for words in (
        "✓ some-task (sample)", "? other-task", "○ not run", "no patterns",
        "1.2 ", "A sample only.", "mrpc: no folder", "No study.", "f1 50.0", "1,200",
        "bertology run head-ablation --model /some/where/model-tuned --task some-task "
        "--store results --sets 0.1,0.2",
    ):  # fmt: skip
        assert words in page


def test_summaries_hold_no_paths(report: ReproductionReport) -> None:
    record, text = json.loads(as_json(report)), as_markdown(report)
    assert "/some/where" not in text + json.dumps(record)
    assert record["command"] == (
        "bertology reproduce paper --model model --tasks some-task,other-task --limit 20"
    )
    first, second = record["claims"]
    assert first["verdicts"][0] == {
        "data": "some-task (sample)", "outcome": "holds", "n": 12, "unit": "examples",
        "value": 0.5, "low": 0.1, "high": 0.9, "level": 0.95, "judged_at": 0.975,
        "needed": None,
    }  # fmt: skip
    assert second["overall"] == "not run"
    assert record["not_run"] == ["map-types@some-task"]
    assert "| ? inconclusive | first is so" in text
    assert "| ✓ some-task (sample); ? other-task |" in text
    assert "| some-task (sample) | holds | 0.5 [0.1, 0.9], n = 12 examples |" in text
    assert "\\| co" in text
    assert "Here: not run." in text


def test_a_result_that_judges_nothing_is_no_empty_table(
    report: ReproductionReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Made, "evidence", lambda self: {})
    assert "Here: nothing could be judged; the verdicts say why." in as_markdown(report)
    assert "<p>Nothing could be judged; the verdicts say why.</p>" in reproduction_page(report)


def test_a_claim_without_a_verdict_says_why(report: ReproductionReport) -> None:
    assert "| ○ not run | second is so" in as_markdown(report)
    assert "| 4.1, Table 1 | no patterns" in as_markdown(report)


def test_what_rounding_leaves_of_zero_is_zero() -> None:
    assert with_interval(-1e-13, -0.0, 0.0142) == "0 [0, 0.0142]"
    assert with_interval(6.81e-05, float("nan"), 1.0) == "6.81e-05"


def test_commands_switch_off_what_is_false() -> None:
    given = [("every", False), ("force", True), ("sets", ("0.1", "0.2"))]
    assert report_module._command("run", given) == "run --no-every --force --sets 0.1,0.2"


def test_one_figure_of_all_data_is_left_out_where_there_is_nothing_to_draw() -> None:
    found = {"some-task": result("some-task", 0.1)}

    def shown(draw: Callable[[Any], Figure | None]) -> list[str]:
        exhibit = Exhibit("map-types", "Ours.", "Theirs.", "Figure 1", joint_figure=draw)
        return [str(piece) for piece in page_module._joint(found, exhibit)]

    assert shown(lambda given: None) == []
    (drawn,) = shown(lambda given: given["some-task"].plot("heads"))
    assert "All data: Figure 1 map types" in drawn
