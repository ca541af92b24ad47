"""The page and the summaries, from made-up results: nothing is run, nothing slips in unescaped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

from bertology.reproduce import account as account_module
from bertology.reproduce import page as page_module
from bertology.reproduce.account import Account
from bertology.reproduce.carrying import Carried
from bertology.reproduce.numbers import with_interval
from bertology.reproduce.page import reproduction_page
from bertology.reproduce.paper import Exhibit, Numbers, Reproduction, Section, Unjudged
from bertology.reproduce.plan import Ask, Data, Missing, Note, Plan, Teach, Wishes
from bertology.reproduce.summary import as_json, as_markdown
from bertology.results.claims import Claim, Outcome, Published, Relation, Rule, Source, judge
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate

EVIL = '<script>alert("x")</script> & | co'
TASK, OTHER = Data("some-task", sample=True), Data("other-task")


def claim(name: str, study: str) -> Claim:
    return Claim(
        f"paper.{name}", Source("A 2020", "4.1, Table 1"), f"{name} is so {EVIL}",
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

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        return {"heads": self._draw, "broken": self._fail}

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
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setattr(account_module, "load_claims", lambda: CLAIMS)
    published = Numbers(("data", "gain"), (("MRPC", f"1.2 {EVIL}"),))
    exhibits = (
        Exhibit(
            "Figure 8", "head-ablation", "Ours.", "Theirs.", published, figures=("heads", "broken")
        ),
        Exhibit("Figure 2", "map-types", "Types.", "Types.", figures=("heads",)),
    )
    paper = Reproduction(
        name="paper", title=f"A paper {EVIL}", citation="A 2020.", address="https://example.org",
        about="About.", tasks=("some-task",),
        sections=(Section("4.1", "Heads", "Did.", "Found.", exhibits, (f"Differs {EVIL}.",)),),
        plan=lambda wishes, shape: plan, unjudged=(Unjudged("Said.", "5", "No study."),),
    )  # fmt: skip
    steps = (
        Teach(TASK),
        Ask("head-ablation", TASK, of="finetune@some-task", parameters={"sets": ("0.1", "0.2")}),
        Ask("head-ablation", OTHER),
        Ask("map-types", TASK),
    )
    notes = (Note("4.1", "A sample only."),)
    plan = Plan((TASK, OTHER), steps, (Missing("mrpc", f"no folder {EVIL}"),), notes)
    carried = Carried(
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
    wishes = Wishes("/some/where/model", tasks=("some-task", "other-task"), examples=20)
    return Account(paper, wishes, plan, carried, model)


def test_texts_that_were_cut_are_told_once_for_all_steps(account: Account) -> None:
    assert "Texts that were cut" not in reproduction_page(account)
    for made in account.carried.results.values():
        cut = {"texts": 2, "of": 7, "tokens": 64, "asked": False}
        made.provenance = replace(made.provenance, cut=cut)
    page = reproduction_page(account)
    steps = ", ".join(account.carried.results)
    assert f"{steps}: 2 of 7 texts were cut to 64 tokens, the most that the model takes." in page


def test_claims_are_judged_by_data(account: Account) -> None:
    first, second = account.judged
    assert [(t, v.outcome) for t, v in first.telling] == [
        ("some-task (sample)", Outcome.HOLDS),
        ("other-task", Outcome.INCONCLUSIVE),
    ]
    assert first.in_short == "holds 1, inconclusive 1"
    assert second.in_short == "not run"
    assert account.counts == {"mixed": 1, "not run": 1}


def test_the_page_needs_nothing_but_itself_and_escapes(account: Account) -> None:
    page = reproduction_page(account)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 8
    assert not re.search(r'(?:src|href)="(?!data:|#|https://example\.org)', page)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert page.count("data:image/svg+xml,") == 2  # one figure cannot be drawn
    for words in (
        "holds: some-task (sample)", "inconclusive: other-task", "○ not run", "no patterns",
        "1.2 ", "A sample only.", "mrpc: no folder", "No study.", "f1 50.0", "1,200",
        "bertology run head-ablation --model /some/where/model-tuned --task some-task "
        "--store results --sets 0.1,0.2",
    ):  # fmt: skip
        assert words in page


def test_summaries_hold_no_paths(account: Account) -> None:
    record, text = json.loads(as_json(account)), as_markdown(account)
    assert "/some/where" not in text + json.dumps(record)
    assert record["command"] == (
        "bertology reproduce paper --model model --tasks some-task,other-task --examples 20"
    )
    first, second = record["claims"]
    assert first["verdicts"][0] == {
        "data": "some-task (sample)", "outcome": "holds", "n": 12, "value": 0.5, "low": 0.1,
        "high": 0.9, "level": 0.95,
    }  # fmt: skip
    assert second["in_short"] == "not run"
    assert record["not_run"] == ["map-types@some-task"]
    assert "some-task (sample): holds (0.5 [0.1, 0.9], n = 12)" in text
    assert "\\| co" in text
    assert "Here: not run." in text


def test_a_claim_without_a_verdict_says_why(account: Account) -> None:
    assert "not run (no patterns" in as_markdown(account)


def test_what_rounding_leaves_of_zero_is_zero() -> None:
    assert with_interval(-1e-13, -0.0, 0.0142) == "0 [0, 0.0142]"
    assert with_interval(6.81e-05, float("nan"), 1.0) == "6.81e-05"


def test_commands_switch_off_what_is_false() -> None:
    given = [("every", False), ("force", True), ("sets", ("0.1", "0.2"))]
    assert account_module._command("run", given) == "run --no-every --force --sets 0.1,0.2"


def test_one_figure_of_all_data_is_left_out_where_there_is_nothing_to_draw() -> None:
    found = {"some-task": result("some-task", 0.1)}

    def shown(draw: Callable[[Any], Figure | None]) -> list[str]:
        exhibit = Exhibit("Figure 1", "map-types", "Ours.", "Theirs.", joint=draw)
        return [str(piece) for piece in page_module._joint(found, exhibit)]

    assert shown(lambda given: None) == []
    (drawn,) = shown(lambda given: given["some-task"].plot("heads"))
    assert "All data: Figure 1 map types" in drawn
