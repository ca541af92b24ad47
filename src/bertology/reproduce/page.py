"""The page of a reproduction: verdicts first, then section by section as the paper has them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bertology.report.web import (
    Html,
    anchor,
    chip,
    element,
    facts,
    figure,
    folded,
    items,
    joined,
    page,
    preformatted,
    table,
)
from bertology.reproduce.account import NOT_RUN, Account, Judged
from bertology.reproduce.numbers import evidence_numbers
from bertology.reproduce.paper import Exhibit, Found, Numbers, Section
from bertology.results.claims import Outcome, Verdict
from bertology.results.provenance import library_versions
from bertology.results.rendering import render, rendered
from bertology.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduction_page"]

_log = logging.getLogger(__name__)
_NARROW = 4  # columns of a table that fits into a third of the page


def reproduction_page(account: Account) -> str:
    """One HTML page that needs nothing but itself; drawn from results alone."""
    paper = account.reproduction
    pieces = [_header(account), _verdicts(account)]
    pieces += [_section(account, section) for section in paper.sections]
    pieces.append(_rest(account))
    return page(f"{paper.title}, done again", joined(pieces))


def _header(account: Account) -> Html:
    paper, model = account.reproduction, account.model
    shape = model.get("shape", {})
    built = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in shape.items() if value)
    versions = ", ".join(f"{name} {v}" for name, v in library_versions().items())
    links = [("#verdicts", "Verdicts")]
    links += [(f"#s{s.number}", f"{s.number} {s.title}") for s in paper.sections]
    links.append(("#rest", "What is left"))
    return element(
        "header",
        element("h1", f"{paper.title}, done again"),
        element("p", paper.about),
        facts(
            [
                ("Paper", joined([paper.citation, anchor(paper.address, paper.address)])),
                ("Model", f"{model.get('name')} ({model.get('family')}; {built})"),
                ("Fingerprint", model.get("fingerprint", "")),
                ("Tasks", ", ".join(d.title for d in account.plan.tasks)),
                ("Date", account.created),
                ("Command", element("code", account.command)),
                ("Made with", versions),
            ]
        ),
        element("nav", items(anchor(*link) for link in links)),
    )


# Verdicts ----------------------------------------------------------------------------------------


def _verdicts(account: Account) -> Html:
    counts = element(
        "ul", *(element("li", _tally(name, n)) for name, n in account.counts.items()), kind="counts"
    )
    rows = [(_statement(judged), judged.claim.published.text, _chips(judged))
            for judged in account.judged]  # fmt: skip
    return element(
        "section",
        element("h2", "What the paper says, and what we find"),
        counts,
        element(
            "p",
            "A claim holds if the whole interval of what was measured agrees with it, fails if all "
            "of it disagrees, and stays open (inconclusive) in between.",
            kind="soft",
        ),
        table(("statement", "published", "here"), rows, kind="verdicts"),
        id="verdicts",
    )


def _tally(name: str, n: int) -> Html:
    outcome = Outcome(name) if name in list(Outcome) else None
    label = f"{n} {name}"
    return chip(outcome, label) if outcome else element("span", label, kind="chip")


def _statement(judged: Judged) -> Html:
    where = judged.claim.source
    shown = f"section {where.section}" + (f", Figure {where.figure}" if where.figure else "")
    return joined([judged.claim.statement, element("div", shown, kind="soft")])


def _chips(judged: Judged) -> Html:
    if not judged.verdicts:
        return chip(None, NOT_RUN)
    told = judged.telling
    if not told:
        return chip(Outcome.NOT_APPLICABLE, "not judged")
    chips = (chip(v.outcome, f"{v.outcome.value}: {title}") for title, v in told)
    return element("div", *chips, kind="chips")


def _claim(judged: Judged) -> Html:
    claim = judged.claim
    rows = [(title, chip(v.outcome, v.outcome.value), _measured(v)) for title, v in judged.telling]
    below: Html = table(("data", "verdict", f"measured (must be {claim.rule.bound})"), rows)
    if not judged.verdicts:
        below = element("p", chip(None, NOT_RUN), f" {judged.reason}", kind="soft")
    elif not rows:
        reasons = dict.fromkeys(v.measured for _, v in judged.verdicts)
        below = element("p", "; ".join(reasons), kind="soft")
    why = folded(
        "What is tested",
        element("p", claim.explanation),
        element("p", f"Rule: {claim.rule}. ", element("code", claim.id), kind="soft"),
    )
    return element(
        "div", element("p", element("strong", claim.statement)), below, why, kind="claim"
    )


def _measured(verdict: Verdict) -> str:
    level = "" if verdict.estimate is None else f", {100 * verdict.estimate.level:g} % interval"
    shown = verdict.measured.replace("_", " ").replace("[nan, nan]", "(no interval)")
    return shown + ("" if "no interval" in shown else level)


# Sections ----------------------------------------------------------------------------------------


def _section(account: Account, section: Section) -> Html:
    judged = account.judged_in(section)
    differs = [*section.differs, *account.plan.notes_of(section.number)]
    pieces: list[object] = [
        element("h2", f"{section.number} {section.title}"),
        element(
            "div",
            element("div", element("h4", "What was done"), element("p", section.did)),
            element("div", element("h4", "What was found"), element("p", section.found)),
            kind="beside",
        ),
        *(_exhibit(account, exhibit) for exhibit in section.exhibits),
    ]
    if judged:
        pieces += [element("h3", "Verdicts"), *(_claim(j) for j in judged)]
    if differs:
        pieces += [element("h3", "What differs, and why"), items(differs)]
    return element("section", joined(pieces), id=f"s{section.number}")


def _exhibit(account: Account, exhibit: Exhibit) -> Html:
    found = account.found(exhibit.study)
    paper: list[object] = [element("h4", "In the paper"), element("p", exhibit.published)]
    if exhibit.numbers is not None:
        paper.append(_numbers(exhibit.numbers))
    ours: list[object] = [element("h4", "Here"), element("p", exhibit.caption)]
    if found:
        ours.append(_numbers((exhibit.ours or evidence_numbers)(found)))
    else:
        why = account.why_not(exhibit.study)
        ours.append(element("p", chip(None, NOT_RUN), f" {why}"))
    # A table of many columns wants the whole width; else the paper stands beside ours.
    wide = exhibit.numbers is not None and len(exhibit.numbers.columns) > _NARROW
    beside = "" if wide else "beside ours"
    pieces: list[object] = [
        element("h3", exhibit.label or exhibit.study),
        element("div", element("div", *paper), element("div", *ours), kind=beside),
        element("div", *_joint(found, exhibit), *_figures(found, exhibit.figures), kind="figures"),
    ]
    more = list(_figures(found, exhibit.more))
    if more:
        pieces.append(folded("More figures", element("div", *more, kind="figures")))
    commands = account.commands(exhibit)
    if commands and found:
        pieces.append(folded("Commands", preformatted("\n".join(commands))))
    return joined(pieces)


def _numbers(numbers: Numbers) -> Html:
    return table(numbers.columns, numbers.rows, note=numbers.note)


def _joint(found: Found, exhibit: Exhibit) -> Iterator[Html]:
    if exhibit.joint is not None and found:
        draw = exhibit.joint
        drawn = _tried(lambda: _rendered(draw(found)), f"all of {exhibit.study}")
        if drawn is not None:
            what = f"{exhibit.label} {exhibit.study.replace('-', ' ')}".strip()
            yield figure(drawn, caption=f"All data: {what}")


def _figures(found: Found, names: tuple[str, ...]) -> Iterator[Html]:
    for name in names:
        for title, result in found.items():
            drawn = _drawn(result, name)
            if drawn is not None:
                yield figure(drawn, caption=f"{title}: {name.replace('-', ' ')}{_size(result)}")


def _drawn(result: Result, name: str) -> bytes | None:
    if name not in result.figures():
        return None
    return _tried(lambda: rendered(result, name), f"{name} of {result.identity}")


def _rendered(drawn: Figure | None) -> bytes | None:
    return None if drawn is None else render(drawn)


def _tried(draw: Callable[[], bytes | None], name: str) -> bytes | None:
    try:
        return draw()
    except Exception as error:
        # The numbers are worth showing even where the picture cannot be drawn.
        _log.warning("figure %s was not drawn: %s", name, error)
        return None


def _size(result: Result) -> str:
    n = result.arrays.attrs.get("examples", result.arrays.attrs.get("sentences"))
    return "" if n is None else f", n = {n}"


# What is left ------------------------------------------------------------------------------------


def _rest(account: Account) -> Html:
    pieces: list[object] = [element("h2", "What is left")]
    missing = [f"{m.name}: {m.reason}" for m in account.plan.missing]
    missing += [f"{step.key}: {reason}" for step, reason in account.not_run()]
    if missing:
        pieces += [element("h3", "Not run"), items(missing)]
    unjudged = account.reproduction.unjudged
    if unjudged:
        rows = [(u.statement, u.section, u.why) for u in unjudged]
        pieces += [
            element("h3", "Statements without a verdict"),
            table(("statement", "section", "why"), rows),
        ]
    models = [
        (
            key.partition("@")[2],
            _scores(r["scores"]),
            _scores(r["baseline"]),
            f"{r['train']['size']:,}",
        )
        for key, r in account.carried.models.items()
    ]
    if models:
        columns = ("task", "score in points", "always the same answer", "examples learnt from")
        pieces += [element("h3", "The models that were fine-tuned"), table(columns, models)]
    cut = _cut(account)
    if cut:
        pieces += [element("h3", "Texts that were cut"), items(cut)]
    rows = [
        (key, r.identity, f"{r.provenance.duration:.0f} s")
        for key, r in account.carried.results.items()
    ]
    if rows:
        listed = table(("step", "result in the store", "computed in"), rows)
        pieces.append(folded("All results", listed))
    return element("section", joined(pieces), id="rest")


def _cut(account: Account) -> list[str]:
    """What was too long for the model, and the steps that read it."""
    steps: dict[str, list[str]] = {}
    for key, result in account.carried.results.items():
        note = result.provenance.cut_note("the model")
        if note:
            steps.setdefault(note, []).append(key)
    return [f"{', '.join(keys)}: {note}" for note, keys in steps.items()]


def _scores(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {100 * value:.1f}" for name, value in scores.items())
