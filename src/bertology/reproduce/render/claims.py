"""Claims on the page of a reproduction: a line each, whose numbers open on demand."""

from __future__ import annotations

from collections.abc import Sequence

from bertology.report.web import Html, anchor, chip, element, joined, table, titled_chip
from bertology.reproduce.judged import JudgedClaim, count_outcomes
from bertology.reproduce.paper import Paper
from bertology.reproduce.report import ReproductionReport
from bertology.results.rules import OUTCOMES, Outcome
from bertology.results.verdicts import EXPLAINED, OURS, OVER_TASKS, found_text, reason_text

_MANY = 1  # tasks; a single one needs no chip beside the overall verdict


def verdicts_section(report: ReproductionReport) -> Html:
    """First how many claims came out how, then each in one line, the sure ones first."""
    said = [j for j in report.judged if not j.claim.ours]
    ours = [j for j in report.judged if j.claim.ours]
    pieces: list[object] = [
        element("h2", "What the paper says, and what we found"),
        _tally(said),
        *_groups(said, report.paper),
    ]
    if ours:
        pieces += [element("h3", "Our own questions"), element("p", f"Here {OURS}.", kind="soft")]
        pieces += [_tally(ours), *(claim_line(j, report.paper) for j in _in_order(ours))]
    pieces.append(element("p", f"{EXPLAINED} {OVER_TASKS} {report.page_text}", kind="soft"))
    return element("section", joined(pieces), id="verdicts")


def claim_line(judged: JudgedClaim, paper: Paper) -> Html:
    """Verdict, statement and a chip for each task; what was measured opens with a click."""
    line = element(
        "summary",
        titled_chip(judged.overall, judged.overall),
        element("span", judged.claim.statement, " ", _where(judged, paper), kind="statement"),
        _task_chips(judged),
    )
    return element("details", line, _numbers(judged), kind="claim")


def _tally(judged: Sequence[JudgedClaim]) -> Html:
    counts = count_outcomes(judged).items()
    chips = (element("li", titled_chip(name, f"{n} {name}")) for name, n in counts)
    return element("ul", *chips, kind="counts")


def _groups(judged: Sequence[JudgedClaim], paper: Paper) -> list[Html]:
    """Lines under the name of their outcome."""
    pieces = []
    for name in OUTCOMES:
        some = [j for j in judged if j.overall == name]
        if some:
            lines = (claim_line(j, paper) for j in some)
            pieces.append(element("div", element("h3", name.capitalize()), *lines, kind="group"))
    return pieces


def _in_order(judged: Sequence[JudgedClaim]) -> list[JudgedClaim]:
    return sorted(judged, key=lambda j: OUTCOMES.index(j.overall))


def _where(judged: JudgedClaim, paper: Paper) -> Html:
    sections, told = paper.sections_of(judged.claim), paper.place_of(judged.claim)
    told = f"§\u00a0{told}" if paper.is_source_of(judged.claim) else told
    return element(
        "span", anchor(f"#s{sections[0].number}", told) if sections else told, kind="soft"
    )


def _task_chips(judged: JudgedClaim) -> Html:
    if len(judged.verdicts) <= _MANY:
        only = [element("span", title, kind="soft") for title, _ in judged.verdicts]
        return element("span", *only, kind="chips")
    chips = [chip(v.outcome, title) for title, v in judged.decided]
    left = len(judged.verdicts) - len(judged.decided)
    if left:
        chips.append(chip(Outcome.NOT_APPLICABLE, f"{left} not judged"))
    return element("span", *chips, kind="chips")


def _numbers(judged: JudgedClaim) -> Html:
    """What is behind a line: what was published, what was measured, and what is tested."""
    claim = judged.claim
    quantity = claim.rule.quantity.replace("_", " ")
    rows = [
        (title, chip(v.outcome, v.outcome.in_words), found_text(v)) for title, v in judged.decided
    ]
    pieces: list[object] = [element("p", element("b", "Published: "), claim.published.text)]
    if rows:
        columns = ("data", "verdict", f"{quantity} (must be {claim.rule.bound})")
        pieces.append(table(columns, rows))
    left: dict[str, list[str]] = {}
    for title, verdict in judged.verdicts:
        if (title, verdict) not in judged.decided:
            left.setdefault(reason_text(verdict), []).append(title)
    notes = [f"Not judged on {', '.join(titles)}: {why}." for why, titles in left.items()]
    if not judged.verdicts:
        notes = [f"Not run: {judged.reason}."]
    pieces += [element("p", note, kind="soft") for note in notes]
    rule = f"Rule: {claim.rule}. "
    pieces += [
        element("p", element("b", "What is tested: "), claim.explanation),
        element("p", rule, element("code", claim.id), kind="soft"),
    ]
    return element("div", *pieces, kind="behind")
