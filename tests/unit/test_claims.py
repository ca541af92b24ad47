"""Rules that rest on intervals, and claims read strictly from YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.errors import DataError, ParameterError, UnknownNameError
from bertology.reproduce.verify import choose_claims
from bertology.results import claim_files
from bertology.results.claim_files import parse_claims, read_all_claims
from bertology.results.evidence import evidence_array, read_evidence
from bertology.results.formats import arrays_from_bytes, arrays_to_bytes
from bertology.results.known_claims import claims_by_id, find_claims, judge, load_claims
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.verdicts import Claim, Tasks, Verdicts
from bertology.stats import Estimate

GOOD = """
- id: paper.some-claim
  source: {paper: A 2020, section: "3"}
  statement: Something is so.
  published: {text: about 3 points, values: {RTE: 0.03}}
  study: head-ablation
  rule: {quantity: gain, relation: between, values: [0, 0.1]}
  explanation: Because.
"""


def interval(low: float, high: float, n: int = 10) -> Estimate:
    return Estimate((low + high) / 2, low, high, n)


@pytest.mark.parametrize(
    ("relation", "low", "high", "outcome"),
    [
        ("above", 0.1, 0.2, "holds"),
        ("above", 0.0, 0.2, "inconclusive"),
        ("above", -0.1, 0.2, "inconclusive"),
        ("above", -0.1, 0.0, "fails"),
        ("above", 0.0, 0.0, "fails"),
        ("below", -0.2, -0.1, "holds"),
        ("below", -0.2, 0.0, "inconclusive"),
        ("below", 0.0, 0.1, "fails"),
        ("between", 0.0, 1.0, "holds"),
        ("between", 0.5, 1.1, "inconclusive"),
        ("between", -1.0, 2.0, "inconclusive"),
        ("between", 1.1, 2.0, "fails"),
        ("outside", 1.1, 2.0, "holds"),
        ("outside", -2.0, -0.1, "holds"),
        ("outside", 0.5, 1.1, "inconclusive"),
        ("outside", -1.0, 2.0, "inconclusive"),
        ("outside", 0.2, 0.8, "fails"),
        ("above", float("nan"), 1.0, "inconclusive"),
        ("above", 0.1, float("inf"), "holds"),
    ],
)
def test_rules_rest_on_the_whole_interval(
    relation: str, low: float, high: float, outcome: str
) -> None:
    pair = relation in ("between", "outside")
    rule = Rule("x", Relation(relation), None if pair else 0.0, (0.0, 1.0) if pair else None)
    assert rule.judge(interval(low, high)) == outcome


def test_without_evidence_a_rule_does_not_apply() -> None:
    rule = Rule("x", Relation.ABOVE, 0.0)
    assert rule.judge(None) is Outcome.NOT_APPLICABLE
    assert rule.judge(interval(0.1, 0.2, n=0)) is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("relation", "low", "high", "outcome"),
    [
        ("above", -2e-7, -1e-7, "fails"),  # surely not there, by however little
        ("above", 0.001, 0.004, "negligible"),
        ("above", -0.004, 0.004, "negligible"),
        ("above", -0.5, 0.004, "negligible"),  # a gain is surely small; losses are not asked about
        ("above", -0.5, 0.006, "inconclusive"),
        ("above", -0.5, 0.0, "fails"),
        ("below", -0.004, 0.5, "negligible"),
        ("below", 0.0, 0.5, "fails"),
        ("above", 0.001, 0.02, "size-open"),  # surely there, but perhaps too small
        ("above", 0.005, 0.02, "holds"),
        ("above", 0.001, float("inf"), "size-open"),
        ("above", -0.02, -0.001, "fails"),
        ("below", -0.004, 0.004, "negligible"),
        ("below", -0.02, -0.001, "size-open"),
        ("below", -0.02, -0.006, "holds"),
        ("below", 0.001, 0.02, "fails"),
        ("below", 0.001, 0.002, "fails"),
        ("above", float("nan"), 0.001, "inconclusive"),
    ],
)
def test_less_than_the_margin_is_negligible(
    relation: str, low: float, high: float, outcome: str
) -> None:
    rule = Rule("x", Relation(relation), 0.0, margin=0.005)
    assert rule.judge(interval(low, high)) == outcome
    assert str(rule).endswith("0 (less than 0.005 does not matter)")


@pytest.mark.parametrize("claim", [c for c in load_claims() if c.rule.margin], ids=lambda c: c.id)
def test_what_texts_say_of_negligible_is_what_the_rule_does(claim: Claim) -> None:
    """All of them ask for one side only: surely less than the margin is claimed."""
    rule, margin = claim.rule, claim.rule.margin or 0.0
    side = -1 if rule.relation is Relation.BELOW else 1
    for end, outcome in ((0.9, Outcome.NEGLIGIBLE), (1.1, Outcome.INCONCLUSIVE)):
        ends = sorted((rule.value or 0.0) + far * side * margin for far in (-100, end))
        assert rule.judge(interval(*ends)) is outcome
    assert re.search(
        r"negligible if (it is |the mean gain is )?surely|surely less .* is negligible",
        claim.explanation,
    )
    assert "by the margin" in claim.explanation


@pytest.mark.parametrize("claim", [c for c in load_claims() if c.rule.margin], ids=lambda c: c.id)
def test_no_margin_is_larger_than_what_the_paper_counts_as_an_effect(claim: Claim) -> None:
    """A gain of 0.1 points was published as one, and would have been called negligible."""
    assert "margin" in claim.explanation  # and where it comes from
    side = -1 if claim.rule.relation is Relation.BELOW else 1
    for effect in map(abs, claim.published.values.values()):
        assert claim.rule.margin is not None
        assert claim.rule.margin <= effect
        for half in (1e-6, effect / 2):
            ends = sorted(side * end for end in (effect - half, effect + half))
            found = claim.rule.judge(interval(*ends))
            assert found in (Outcome.HOLDS, Outcome.SIZE_OPEN)


def test_the_margin_is_around_the_value_of_the_rule() -> None:
    rule = Rule("x", Relation.ABOVE, 0.5, margin=0.1)
    assert rule.judge(interval(0.45, 0.55)) is Outcome.NEGLIGIBLE
    assert rule.judge(interval(-0.05, 0.05)) is Outcome.FAILS


def test_readers_see_from_where_on_a_claim_holds() -> None:
    rule = Rule("gain", Relation.ABOVE, 0.5, margin=0.1, unit="points")
    assert rule.bound == "above 50 points by 10 points or more"
    assert rule.limits == (0.5, 0.6)
    assert Rule("x", Relation.BELOW, 0.0, margin=0.1).limits == (0.0, -0.1)
    assert Rule("x", Relation.OUTSIDE, values=(0.0, 1.0)).bound == "outside 0 and 1"


@pytest.mark.parametrize("margin", [0.0, -0.1, float("nan"), float("inf")])
def test_senseless_margins_are_refused(margin: float) -> None:
    with pytest.raises(ParameterError, match="'margin' parameter of the rule on 'x'"):
        Rule("x", Relation.ABOVE, 0.0, margin=margin)
    with pytest.raises(ParameterError, match="'margin'"):
        Rule("x", Relation.BETWEEN, values=(0.0, 1.0), margin=0.1)


FINITE = st.floats(-1e6, 1e6)


@given(FINITE, FINITE, FINITE, FINITE, st.floats(0, 1))
def test_a_wider_interval_never_decides_more(
    a: float, b: float, c: float, d: float, wider: float
) -> None:
    (low, high), values = sorted((a, b)), tuple(sorted((c, d)))
    for relation in Relation:
        pair = relation in (Relation.BETWEEN, Relation.OUTSIDE)
        rule = Rule("x", relation, None if pair else c, (values[0], values[1]) if pair else None)
        narrow, wide = (
            rule.judge(interval(low, high)),
            rule.judge(interval(low - wider, high + wider)),
        )
        assert wide in (narrow, Outcome.INCONCLUSIVE)


@given(st.lists(FINITE, min_size=4, max_size=4), FINITE, st.floats(1e-3, 1e6), st.booleans())
def test_more_data_take_no_word_back(
    ends: list[float], value: float, margin: float, below: bool
) -> None:
    """A narrower interval within a wider one says more, and nothing against it."""
    least, low, high, most = sorted(ends)
    relation = Relation.BELOW if below else Relation.ABOVE
    rule = Rule("x", relation, value, margin=margin)
    before, after = (rule.judge(interval(*ends)) for ends in ((least, most), (low, high)))
    may_become = {
        Outcome.HOLDS: {Outcome.HOLDS},
        Outcome.FAILS: {Outcome.FAILS},
        Outcome.SIZE_OPEN: {Outcome.SIZE_OPEN, Outcome.HOLDS, Outcome.NEGLIGIBLE},
        Outcome.NEGLIGIBLE: {Outcome.NEGLIGIBLE, Outcome.FAILS},
    }
    assert after in may_become.get(before, set(Outcome))


@pytest.mark.parametrize(
    ("relation", "value", "values"),
    [
        ("above", None, None),
        ("above", None, (0.0, 1.0)),
        ("above", float("nan"), None),
        ("between", 0.0, None),
        ("between", None, (1.0, 0.0)),
        ("between", None, (0.0, float("inf"))),
        ("near", 0.0, None),
    ],
)
def test_senseless_rules_are_refused(
    relation: str, value: float | None, values: tuple[float, float] | None
) -> None:
    with pytest.raises(ParameterError, match="the rule on 'x'"):
        Rule("x", relation, value, values)  # type: ignore[arg-type]


def test_a_good_file_is_read() -> None:
    (claim,) = parse_claims(GOOD, label="a.yaml")
    assert claim.rule == Rule("gain", Relation.BETWEEN, values=(0.0, 0.1))
    assert str(claim.rule) == "gain between 0 and 0.1"
    assert claim.published.values == {"RTE": 0.03}
    assert str(claim.source) == "A 2020, section 3"
    assert parse_claims("", label="empty.yaml") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("study: head-ablation", "", "a.yaml, line 2: the field 'study' is missing"),
        ("  study:", "  stduy:", "line 6: unknown field 'stduy'.\nDid you mean 'study'?"),
        ("explanation:", "colour: red\n  explanation:", "line 8: unknown field 'colour'"),
        ('section: "3"', "section: 3", "line 3: 'source.section' must be text"),
        ("{paper: A 2020, section", "{papr: A, paper: B, section", "unknown field 'source.papr'"),
        ("relation: between", "relation: near", "'rule.relation' must be one of above, below"),
        ("values: [0, 0.1]", "value: 0", "line 7: The 'values' parameter of the rule on 'gain'"),
        ("values: [0, 0.1]", "values: [0]", "'rule.values' must be a list of 2 values"),
        ("values: [0, 0.1]", "values: [0, yes]", "'rule.values[1]' must be a number"),
        ("values: [0, 0.1]", "values: [0, .nan]", "'rule.values[1]' must be a number"),
        ("RTE: 0.03", "RTE: much", "line 5: 'published.values.RTE' must be a number"),
        ("paper.some-claim", "Paper Claim", "line 2: 'id' must be lower-case words"),
        ("statement: Something is so.", "statement:", "line 4: 'statement' must be text"),
        ("rule: {quantity: gain,", "rule: [{quantity: gain,", "not valid YAML"),
        ("study:", "study: x\n  study:", "line 7: the field 'study' is given twice"),
        ('source: {paper: A 2020, section: "3"}', "source: A", "'source' must be a mapping"),
    ],
)
def test_a_mistake_is_told_with_its_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(DataError, match=re.escape(message)):
        parse_claims(GOOD.replace(old, new), label="a.yaml")


def test_what_is_ours_and_which_tasks_are_meant() -> None:
    (plain,) = parse_claims(GOOD, label="a.yaml")
    assert not plain.ours
    assert plain.tasks is None
    more = "  ours: true\n  tasks: {except: [QQP]}\n"
    (claim,) = parse_claims(GOOD + more, label="a.yaml")
    assert claim.ours
    assert claim.tasks == Tasks(excepted=("QQP",))
    (some,) = parse_claims(GOOD + "  tasks: {only: [STS-B, RTE, QNLI]}\n", label="a.yaml")
    for data, of in {"sts-b": some, "mrpc": claim, "": claim}.items():
        (verdict,) = judge("head-ablation", {"gain": interval(0.01, 0.02)}, [of], data=data)
        assert verdict.outcome is Outcome.HOLDS
    (verdict,) = judge("head-ablation", {"gain": interval(0.01, 0.02)}, [claim], data="qqp")
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert verdict.estimate is None
    assert verdict.measured == "the paper says it of all tasks but QQP"
    (verdict,) = judge("head-ablation", {}, [some], data="mrpc", reasons={"": "no links"})
    assert verdict.measured == "the paper says it of STS-B, RTE and QNLI only"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("  tasks: {but: [QQP]}\n", "line 9: unknown field 'tasks.but'"),
        ("  tasks: {only: [RTE], except: [QQP]}\n", "line 9: The 'tasks' parameter of a claim"),
        ("  tasks: {only: QQP}\n", "line 9: 'tasks.only' must be a list"),
        ("  ours: maybe\n", "line 9: 'ours' must be true or false"),
    ],
)
def test_mistakes_in_tasks_are_told(more: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        parse_claims(GOOD + more, label="a.yaml")


def test_units_are_kept_with_the_evidence() -> None:
    found = {
        "a": interval(0.1, 0.2).counting("sentences"),
        "b": Estimate(0.1, 0.0, 0.2, 3, unit="seeds", needed=40),
    }
    kept = evidence_array(found)
    assert read_evidence(kept) == found
    for key in ("units", "needed"):  # as in results that were stored before there were units
        del kept["evidence"].attrs[key]
    assert {e.unit for e in read_evidence(kept).values()} == {"examples"}


def test_how_an_estimate_was_made_is_kept_with_it() -> None:
    plain = interval(0.1, 0.2)
    more = replace(plain, tested=(0.0, 0.01), lasting=0.5, counted=True, remedy="Ask.", needed=7)
    stored = arrays_from_bytes(arrays_to_bytes(evidence_array({"a": plain, "b": more})))
    assert read_evidence(stored) == {"a": plain, "b": more}


def test_other_mistakes() -> None:
    with pytest.raises(DataError, match="must be a list of claims"):
        parse_claims("id: x", label="a.yaml")
    with pytest.raises(DataError, match=r"line 10: the id .* is given again, after line 2"):
        parse_claims(GOOD + GOOD, label="a.yaml")


# What is bundled


def test_bundled_claims_about_head_ablation() -> None:
    claims = {c.id: c for c in load_claims() if c.study == "head-ablation"}
    assert {c.rule.quantity for c in claims.values()} == {
        "best_head_gain",
        "worst_head_loss",
        "best_layer_gain",
        "worst_layer_loss",
        "mean_head_gain",
        "share_of_harmless_heads",
        "worst_head_share_worse",
        "best_head_share_better",
        "worst_layer_share_worse",
    }
    # Of the best of many, "above 0" alone could never be refuted.
    assert all(c.rule.margin for c in claims.values() if c.rule.value == 0)
    best = claims["dark-secrets.disabling-some-heads-helps"]
    assert best.published.values == {"STS-B": 0.001, "MRPC": 0.012}
    assert claims["dark-secrets.disabling-a-layer-helps"].published.values["RTE"] == 0.032
    assert all(len(c.explanation.split()) > 30 for c in claims.values())


def test_verdicts_name_estimate_and_n() -> None:
    evidence = {"best_head_gain": interval(0.001, 0.02, 408), "worst_head_loss": interval(-1, 1)}
    verdicts = {v.claim.id.partition(".")[2]: v for v in judge("head-ablation", evidence)}
    assert verdicts["disabling-some-heads-helps"].outcome is Outcome.HOLDS
    assert verdicts["disabling-some-heads-helps"].n == 408
    assert "points, 95 % interval [0.1, 2], n = 408" in str(verdicts["disabling-some-heads-helps"])
    assert verdicts["disabling-some-heads-hurts"].outcome is Outcome.INCONCLUSIVE
    assert verdicts["disabling-a-layer-helps"].outcome is Outcome.NOT_APPLICABLE
    assert judge("another-study", evidence) == []


def test_claims_are_found_by_words() -> None:
    assert [c.id for c in find_claims("LAYER improve")] == ["dark-secrets.disabling-a-layer-helps"]
    assert len(find_claims("kovaleva head-ablation")) >= 5
    assert find_claims("kovaleva nonsense") == []
    assert find_claims("") == load_claims()


def test_ids_that_a_claim_had_before_still_name_it() -> None:
    """Ids are in papers' notes and scripts; "some-heads-help" meant that disabling them does."""
    known = claims_by_id()
    renamed = [c for c in load_claims() if c.aliases]
    assert len(renamed) > 40
    for claim in renamed:
        for alias in claim.aliases:
            assert known[alias] is claim
            assert alias not in {c.id for c in load_claims()}
            assert [c.id for c in choose_claims([alias]).claims] == [claim.id]
            assert claim in find_claims(alias)
            assert claim in find_claims(alias.partition(".")[2])  # a part of an id
    assert known["dark-secrets.some-heads-help"].id == "dark-secrets.disabling-some-heads-helps"


def test_an_alias_may_not_be_the_id_of_another_claim() -> None:
    other = GOOD.replace("id: ", "id: other-", 1)
    name = parse_claims(GOOD, label="a.yaml")[0].id
    twice = other.rstrip("\n") + f"\n  aliases: [{name}]\n"
    with pytest.raises(DataError, match="given again"):
        parse_claims(f"{GOOD}\n{twice}", label="a.yaml")


def test_rules_say_their_unit_as_figures_and_tables_do() -> None:
    rule = Rule("gain", Relation.ABOVE, 0.01, margin=0.002, unit="points")
    assert str(rule) == "gain above 1 point (less than 0.2 points does not matter)"
    shares = Rule("share", Relation.BETWEEN, values=(0.32, 0.61), unit="%")
    assert shares.bound == "between 32 % and 61 %"
    assert str(Rule("weight", Relation.BELOW, 0.25)) == "weight below 0.25"
    with pytest.raises(ParameterError, match="unit"):
        Rule("x", Relation.ABOVE, 0.0, unit="percent")


def test_verdicts_are_short_in_python_and_whole_when_printed() -> None:
    evidence = {"best_head_gain": interval(0.001, 0.02, 408), "worst_head_loss": interval(-1, 1)}
    found = Verdicts(judge("head-ablation", evidence))
    lines = repr(found).splitlines()
    assert len(lines) == len(found)
    assert all(len(line) < 150 for line in lines)
    first = found[0]
    assert first.claim.id in lines[0]
    assert "points [0.1, 2]" in lines[0]
    assert repr(first) == f"<holds: {first.claim.id}, 1.05 points [0.1, 2]>"
    assert "n = 408" not in repr(first)
    assert "n = 408" in str(first)
    table = found.table()
    assert table["verdict"].tolist() == [v.outcome.in_words for v in found]
    assert table.loc[first.claim.id, "measured"] == first.measured
    assert found._repr_html_().count("<tr>") == len(found)
    assert repr(Verdicts()) == "No claim of the literature is about this result."


@pytest.fixture
def fresh() -> Iterator[None]:
    read_all_claims.cache_clear()
    yield
    read_all_claims.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_plugins_bring_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_plugin_claims").mkdir()
    file = tmp_path / "some_plugin_claims" / "mine.yaml"
    file.write_text(GOOD, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("mine", "some_plugin_claims", claim_files.GROUP)
    monkeypatch.setattr(claim_files, "entry_points", lambda group: [entry])
    assert [c.id for c in find_claims("paper.some-claim")] == ["paper.some-claim"]

    read_all_claims.cache_clear()
    file.write_text(GOOD.replace("paper.some-claim", "dark-secrets.disabling-a-layer-helps"))
    with pytest.raises(DataError, match=r"is in claims/dark-secrets\.yaml and again in some_plug"):
        load_claims()


@pytest.mark.usefixtures("fresh")
def test_a_broken_plugin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("mine", "no_such_package_here", claim_files.GROUP)
    monkeypatch.setattr(claim_files, "entry_points", lambda group: [entry])
    with pytest.raises(DataError, match="plugin 'mine' cannot be found"):
        load_claims()


def test_claims_are_found_by_paper_and_by_study() -> None:
    of_paper = find_claims(paper="dark-secrets")
    of_authors = find_claims(paper="Kovaleva 2019")  # with those about what they left open
    assert of_paper == [c for c in of_authors if c.id.startswith("dark-secrets.")]
    ablation = find_claims(paper="dark-secrets", study="head-ablation")
    assert {c.study for c in ablation} == {"head-ablation"}
    assert ablation == [c for c in of_paper if c.study == "head-ablation"]
    assert find_claims("layer", study="head-ablation") == [c for c in ablation if "layer" in c.id]
    with pytest.raises(UnknownNameError, match="Did you mean 'head-ablation'"):
        find_claims(study="head-ablations")
    with pytest.raises(UnknownNameError, match="Did you mean 'dark-secrets'"):
        find_claims(paper="dark-secret")


def built_in() -> list[Claim]:
    texts = sorted((Path(claim_files.__file__).parents[1] / "claims").glob("*.yaml"))
    return [c for path in texts for c in parse_claims(path.read_text("utf-8"), label=path.name)]


@pytest.mark.parametrize("claim", built_in(), ids=lambda claim: claim.id)
def test_every_claim_is_explained(claim: Claim) -> None:
    """What is looked at, when it holds, and when it fails: in a paragraph."""
    text = " ".join(claim.explanation.split())
    assert 2 <= len(re.findall(r"[.!?](?: |$)", text)) <= 5
    for word in ("quantity", "holds", "fails"):
        assert word in text
