"""The summary of a reproduction: numbers and verdicts, as JSON and as Markdown.

It has no paths, durations or figures, so that it is the same wherever it was run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from bertology.reproduce.judged import JudgedClaim, all_verdicts, count_outcomes, counts_text
from bertology.reproduce.paper import Exhibit, TextTable
from bertology.reproduce.report import ReproductionReport, short_name
from bertology.reproduce.tables import NOTHING, our_table
from bertology.results.over_claims import false_holds
from bertology.results.provenance import library_versions
from bertology.results.rules import NOT_RUN, OUTCOMES, Outcome, look_of, named_look
from bertology.results.verdicts import EXPLAINED, OURS, OVER_TASKS, Verdict, found_text, reason_text

SCHEMA_VERSION = 2


def as_json(report: ReproductionReport) -> str:
    """For other programs; NaN is null."""
    paper = report.paper
    record = {
        "schema_version": SCHEMA_VERSION,
        "reproduction": paper.name,
        "paper": paper.citation,
        "command": report.command,
        "quick": report.options.quick,
        "created": report.created,
        "versions": library_versions(),
        "model": {**report.model, "name": short_name(str(report.model.get("name", "")))},
        "tasks": [{"name": d.name, "sample": d.sample} for d in report.plan.tasks],
        "counts": report.counts,
        "counts_of_ours": count_outcomes(j for j in report.judged if j.claim.ours),
        **error_record(report.judged, across_claims=report.options.across_claims),
        "claims": [_claim(judged) for judged in report.judged],
        "exhibits": [
            {"label": e.label, "study": e.study, "columns": n.columns, "rows": n.rows}
            for s in paper.sections
            for e in s.exhibits
            if (n := _ours(report, e)) is not None
        ],
        "missing": [m.name for m in report.plan.missing],
        "not_run": sorted(report.done.reasons),
        "results": {key: r.identity for key, r in report.done.results.items()},
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def error_record(judged: Sequence[JudgedClaim], *, across_claims: bool) -> dict[str, object]:
    """Whether the error is held over all claims; else how many would at most hold by chance."""
    by_chance = None if across_claims else round(false_holds(all_verdicts(judged)), 4)
    return {"across_claims": across_claims, "false_holds_at_most": by_chance}


def _claim(judged: JudgedClaim) -> dict[str, object]:
    claim = judged.claim
    return {
        "id": claim.id,
        "statement": claim.statement.strip(),
        "section": claim.source.section,
        "rule": str(claim.rule),
        "ours": claim.ours,
        "overall": judged.overall,
        "verdicts": [verdict_record(title, v) for title, v in judged.verdicts],
    }


def verdict_record(title: str, verdict: Verdict) -> dict[str, object]:
    """A verdict for other programs; NaN is None."""
    e = verdict.estimate
    about: dict[str, object] = {"data": title, "outcome": verdict.outcome.value, "n": verdict.n}
    if e is None:
        return about
    numbers = {"value": e.value, "low": e.low, "high": e.high, "level": e.level}
    plain = {name: v if math.isfinite(v) else None for name, v in numbers.items()}
    needed = None if verdict.settling is None else verdict.settling.needed
    judged_at = e.level if verdict.level is None else verdict.level
    return {**about, "unit": e.unit, **plain, "judged_at": judged_at, "needed": needed}


def _ours(report: ReproductionReport, exhibit: Exhibit) -> TextTable | None:
    return our_table(exhibit, report.results_of(exhibit.study))


# Markdown ----------------------------------------------------------------------------------------


def as_markdown(report: ReproductionReport) -> str:
    """For readers: a few hundred lines at most."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: ReproductionReport) -> Iterator[str]:
    paper, model = report.paper, report.model
    name = short_name(str(model.get("name", "")))
    yield f"# {paper.title}: {name}"
    yield ""
    yield f"{paper.citation} Reproduced on {report.created} with:"
    yield ""
    yield "```sh"
    yield report.command
    yield "```"
    yield ""
    tasks = ", ".join(d.title for d in report.plan.tasks)
    told = f" Tasks: {tasks}." if tasks else ""
    yield f"Model: `{name}`, fingerprint `{model.get('fingerprint')}`.{told}"
    yield ""
    if report.data_text:
        yield report.data_text
        yield ""
    yield from _verdict_lines(report)
    for section in paper.sections:
        yield f"## {section.number} {section.title}"
        yield ""
        for exhibit in section.exhibits:
            yield from _exhibit_lines(report, exhibit)
        yield from [f"- {text}" for text in report.differs_in(section)]
        yield ""
    yield from _number_lines(report)
    yield from _rest_lines(report)


def _verdict_lines(report: ReproductionReport) -> Iterator[str]:
    yield "## Verdicts"
    yield ""
    yield counts_text(report.judged) + "."
    yield ""
    for judged in ([j for j in report.judged if j.claim.ours is ours] for ours in (False, True)):
        if judged:
            rows = [
                (_sign(j), j.claim.statement, report.paper.place_of(j.claim), _by_task(j))
                for j in sorted(judged, key=lambda j: OUTCOMES.index(j.overall))
            ]
            said = f"Our own questions: {OURS}." if judged[0].claim.ours else "Said in the paper:"
            yield said
            yield ""
            yield from _table(("verdict", "claim", "section", "on which data"), rows)
            yield ""
    yield f"{EXPLAINED} {OVER_TASKS} {report.page_text}".rstrip()
    yield "What is measured: `bertology claims show ID`; `bertology claims` lists the ids."
    yield ""


def _sign(judged: JudgedClaim) -> str:
    return f"{named_look(judged.overall).sign} {judged.overall}"


def _by_task(judged: JudgedClaim) -> str:
    """`✓ mrpc, rte; ? qqp`, or why there is no verdict."""
    if not judged.decided:
        return _not_judged(judged)
    titles = {o: [t for t, v in judged.verdicts if v.outcome is o] for o in Outcome}
    return "; ".join(f"{look_of(o).sign} {', '.join(of)}" for o, of in titles.items() if of)


def _number_lines(report: ReproductionReport) -> Iterator[str]:
    """What the verdicts rest on, below everything that most readers look for."""
    rows = [
        (j.claim.id.partition(".")[2], j.claim.rule.bound, title, v.outcome.in_words, found_text(v))
        for j in report.judged
        for title, v in j.decided
    ]
    if rows:
        yield "## Numbers behind the verdicts"
        yield ""
        yield from _table(("claim", "holds if", "data", "verdict", "measured"), rows)
        yield ""


def _not_judged(judged: JudgedClaim) -> str:
    """Why there is no verdict."""
    titles: dict[str, list[str]] = {}
    for title, verdict in judged.verdicts:
        titles.setdefault(reason_text(verdict), []).append(title)
    reasons = list(titles) or [judged.reason]
    if len(titles) > 1:
        reasons = [f"{', '.join(of)}: {why}" for why, of in titles.items()]
    return "; ".join(reasons)


def _exhibit_lines(report: ReproductionReport, exhibit: Exhibit) -> Iterator[str]:
    yield f"### {exhibit.label or exhibit.study}"
    yield ""
    yield exhibit.caption
    yield ""
    for title, shown in (("Published", exhibit.published_table), ("Here", _ours(report, exhibit))):
        if shown is not None and not shown.rows:
            yield f"{title}: {NOTHING}"
            yield ""
        elif shown is not None:
            yield f"{title}:"
            yield ""
            yield from _table(shown.columns, shown.rows)
            yield ""
            if shown.note:
                yield shown.note
                yield ""
        elif title == "Here":
            yield f"Here: {NOT_RUN}."
            yield ""


def _rest_lines(report: ReproductionReport) -> Iterator[str]:
    missing = [m.name for m in report.plan.missing] + sorted(report.done.reasons)
    if missing:
        yield "## Not run"
        yield ""
        yield from [f"- {name}" for name in missing]
        yield ""
    if report.paper.unjudged:
        yield "## Statements without a verdict"
        yield ""
        rows = [(u.statement, u.section, u.why) for u in report.paper.unjudged]
        yield from _table(("statement", "section", "why"), rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(map(_cell, columns)) + " |"
    yield "|" + " --- |" * len(columns)
    for row in rows:
        yield "| " + " | ".join(map(_cell, row)) + " |"


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
