"""A reproduction in small: numbers and verdicts as JSON and as Markdown, fit to be kept with code.

No paths, no durations and no figures: what is the same wherever it was run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from bertology.reproduce.account import NOT_RUN, Account, Judged, short_name
from bertology.reproduce.numbers import evidence_numbers, with_interval
from bertology.reproduce.paper import Exhibit, Numbers
from bertology.results.claims import Verdict
from bertology.results.provenance import library_versions

__all__ = ["as_json", "as_markdown", "verdict_record"]

SCHEMA_VERSION = 1


def as_json(account: Account) -> str:
    """For other programs; NaN is null."""
    paper = account.reproduction
    record = {
        "schema_version": SCHEMA_VERSION,
        "reproduction": paper.name,
        "paper": paper.citation,
        "command": account.command,
        "created": account.created,
        "versions": library_versions(),
        "model": {**account.model, "name": short_name(str(account.model.get("name", "")))},
        "tasks": [{"name": d.name, "sample": d.sample} for d in account.plan.tasks],
        "counts": account.counts,
        "claims": [_claim(judged) for judged in account.judged],
        "exhibits": [
            {"label": e.label, "study": e.study, "columns": n.columns, "rows": n.rows}
            for s in paper.sections
            for e in s.exhibits
            if (n := _ours(account, e)) is not None
        ],
        "missing": [m.name for m in account.plan.missing],
        "not_run": sorted(account.carried.reasons),
        "results": {key: r.identity for key, r in account.carried.results.items()},
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _claim(judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    return {
        "id": claim.id,
        "statement": claim.statement.strip(),
        "section": claim.source.section,
        "rule": str(claim.rule),
        "in_short": judged.in_short,
        "verdicts": [verdict_record(title, v) for title, v in judged.verdicts],
    }


def verdict_record(title: str, verdict: Verdict) -> dict[str, Any]:
    """A verdict for other programs; NaN is None."""
    e = verdict.estimate
    numbers = (
        {} if e is None else {"value": e.value, "low": e.low, "high": e.high, "level": e.level}
    )
    plain = {name: v if math.isfinite(v) else None for name, v in numbers.items()}
    return {"data": title, "outcome": verdict.outcome.value, "n": verdict.n, **plain}


def _ours(account: Account, exhibit: Exhibit) -> Numbers | None:
    found = account.found(exhibit.study)
    return (exhibit.ours or evidence_numbers)(found) if found else None


# Markdown ----------------------------------------------------------------------------------------


def as_markdown(account: Account) -> str:
    """For readers; a page of a few hundred lines at most."""
    return "\n".join(_lines(account)).rstrip() + "\n"


def _lines(account: Account) -> Iterator[str]:
    paper, model = account.reproduction, account.model
    name = short_name(str(model.get("name", "")))
    yield f"# {paper.title}: {name}"
    yield ""
    yield f"{paper.citation} Done again on {account.created} with:"
    yield ""
    yield "```sh"
    yield account.command
    yield "```"
    yield ""
    yield (
        f"Model: `{name}`, fingerprint `{model.get('fingerprint')}`. Tasks: "
        + ", ".join(d.title for d in account.plan.tasks)
        + "."
    )
    yield ""
    yield from _verdict_lines(account)
    for section in paper.sections:
        yield f"## {section.number} {section.title}"
        yield ""
        for exhibit in section.exhibits:
            yield from _exhibit_lines(account, exhibit)
        differs = [*section.differs, *account.plan.notes_of(section.number)]
        yield from [f"- {text}" for text in differs]
        yield ""
    yield from _rest_lines(account)


def _verdict_lines(account: Account) -> Iterator[str]:
    yield "## Verdicts"
    yield ""
    yield ", ".join(f"{n} {name}" for name, n in account.counts.items()) + "."
    if "mixed" in account.counts:
        yield "Mixed: not the same on all tasks."
    yield "A claim holds if all of the interval is as it must be, and fails if none of it is."
    yield "What is measured: `bertology claims show ID`; `bertology claims` lists the ids."
    yield ""
    rows = []
    for judged in account.judged:
        told = [f"{title}: {v.outcome.value} ({_short(v)})" for title, v in judged.telling]
        rest = [title for title, v in judged.verdicts if (title, v) not in judged.telling]
        if told and rest:
            told.append(f"not judged: {', '.join(rest)}")
        rows.append(
            (
                judged.claim.statement,
                judged.claim.source.section,
                judged.claim.rule.bound,
                "; ".join(told) or _untold(judged),
            )
        )
    yield from _table(("claim", "section", "holds if", "verdict"), rows)
    yield ""


def _untold(judged: Judged) -> str:
    """Why there is no verdict."""
    said: dict[str, list[str]] = {}
    for title, verdict in judged.verdicts:
        why = verdict.measured.removeprefix(f"{judged.in_short}: ")
        said.setdefault(why, []).append(title)
    told = list(said) or [judged.reason]
    if len(said) > 1:
        told = [f"{', '.join(titles)}: {why}" for why, titles in said.items()]
    reasons = "; ".join(told)
    return f"{judged.in_short} ({reasons})" if reasons else judged.in_short


def _short(verdict: Verdict) -> str:
    e = verdict.estimate
    return "" if e is None else f"{with_interval(e.value, e.low, e.high)}, n = {verdict.n}"


def _exhibit_lines(account: Account, exhibit: Exhibit) -> Iterator[str]:
    yield f"### {exhibit.label or exhibit.study}"
    yield ""
    yield exhibit.caption
    yield ""
    for title, numbers in (("Published", exhibit.numbers), ("Here", _ours(account, exhibit))):
        if numbers is not None:
            yield f"{title}:"
            yield ""
            yield from _table(numbers.columns, numbers.rows)
            yield ""
            if numbers.note:
                yield numbers.note
                yield ""
        elif title == "Here":
            yield f"Here: {NOT_RUN}."
            yield ""


def _rest_lines(account: Account) -> Iterator[str]:
    missing = [m.name for m in account.plan.missing] + sorted(account.carried.reasons)
    if missing:
        yield "## Not run"
        yield ""
        yield from [f"- {name}" for name in missing]
        yield ""
    if account.reproduction.unjudged:
        yield "## Statements without a verdict"
        yield ""
        rows = [(u.statement, u.section, u.why) for u in account.reproduction.unjudged]
        yield from _table(("statement", "section", "why"), rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(map(_cell, columns)) + " |"
    yield "|" + " --- |" * len(columns)
    for row in rows:
        yield "| " + " | ".join(map(_cell, row)) + " |"


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
