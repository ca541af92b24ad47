"""The page of a reproduction: first the verdicts, then the sections of the paper."""

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
from bertology.reproduce.paper import Exhibit, PaperSection, ResultsByData, TextTable
from bertology.reproduce.plan import RunStudy
from bertology.reproduce.render.claims import claim_line, verdicts_section
from bertology.reproduce.report import ReproductionReport
from bertology.reproduce.tables import NOTHING, our_table
from bertology.results.provenance import library_versions
from bertology.results.rendering import render
from bertology.results.result import Result
from bertology.results.rules import NOT_RUN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_log = logging.getLogger(__name__)
_NARROW = 4  # columns of a table that fits into a third of the page


def reproduction_page(report: ReproductionReport) -> str:
    """One HTML page, complete in itself; made from results alone."""
    paper = report.paper
    pieces = [_header(report), verdicts_section(report)]
    pieces += [_section(report, section) for section in paper.sections]
    pieces.append(_rest(report))
    return page(f"{paper.title}, reproduced", joined(pieces))


def _header(report: ReproductionReport) -> Html:
    paper, model = report.paper, report.model
    shape = model.get("shape", {})
    built = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in shape.items() if value)
    versions = ", ".join(f"{name} {v}" for name, v in library_versions().items())
    links = [("#verdicts", "Verdicts")]
    links += [(f"#s{s.number}", f"{s.number} {s.title}") for s in paper.sections]
    links.append(("#rest", "The rest"))
    return element(
        "header",
        element("h1", f"{paper.title}, reproduced"),
        element("p", paper.about),
        element("p", element("strong", report.data_text)) if report.data_text else "",
        facts(
            [
                ("Paper", joined([paper.citation, anchor(paper.address, paper.address)])),
                ("Model", f"{model.get('name')} ({model.get('family')}; {built})"),
                *_data(report),
            ]
        ),
        folded(
            "How it was made",
            facts(
                [
                    ("Fingerprint", model.get("fingerprint", "")),
                    ("Date", report.created),
                    ("Command", element("code", report.command)),
                    ("Made with", versions),
                ]
            ),
        ),
        element("nav", items(anchor(*link) for link in links)),
    )


def _data(report: ReproductionReport) -> Iterator[tuple[str, str]]:
    """The tasks, and the texts that are read beside them."""
    tasks = [d.title for d in report.plan.tasks]
    read = [s.data.title for s in report.plan.steps if isinstance(s, RunStudy)]
    texts = [title for title in dict.fromkeys(read) if title not in tasks]
    for name, titles in (("Tasks", tasks), ("Texts", texts)):
        if titles:
            yield name, ", ".join(titles)


# Sections ----------------------------------------------------------------------------------------


def _section(report: ReproductionReport, section: PaperSection) -> Html:
    judged = report.judged_in(section)
    differs = report.differs_in(section)
    pieces: list[object] = [
        element("h2", f"{section.number} {section.title}"),
        element(
            "div",
            element("div", element("h4", "What was done"), element("p", section.did)),
            element("div", element("h4", "What was found"), element("p", section.found)),
            kind="beside",
        ),
        *(_exhibit(report, exhibit) for exhibit in section.exhibits),
    ]
    if judged:
        pieces += [element("h3", "Verdicts"), *(claim_line(j, report.paper) for j in judged)]
    if differs:
        pieces += [element("h3", "What differs, and why"), items(differs)]
    return element("section", joined(pieces), id=f"s{section.number}")


def _exhibit(report: ReproductionReport, exhibit: Exhibit) -> Html:
    results = report.results_of(exhibit.study)
    paper: list[object] = [element("h4", "In the paper"), element("p", exhibit.published)]
    if exhibit.published_table is not None:
        paper.append(_table(exhibit.published_table))
    ours: list[object] = [element("h4", "Here"), element("p", exhibit.caption)]
    made = our_table(exhibit, results)
    if made is not None:
        said = _table(made) if made.rows else element("p", NOTHING.capitalize())
        ours += [*_answers(results), said]
    else:
        why = report.why_not_run(exhibit.study)
        ours.append(element("p", chip(None, NOT_RUN), f" {why}"))
    # A table of many columns takes the whole width; else the paper stands beside ours.
    published = exhibit.published_table
    wide = published is not None and len(published.columns) > _NARROW
    beside = "" if wide else "beside ours"
    shown = _figures(results, exhibit.figures)
    pieces: list[object] = [
        element("h3", exhibit.label or exhibit.study),
        element("div", element("div", *paper), element("div", *ours), kind=beside),
        element("div", *_joint(results, exhibit), *shown, kind="figures"),
    ]
    more = list(_figures(results, exhibit.more_figures))
    if more:
        pieces.append(folded("More figures", element("div", *more, kind="figures")))
    commands = report.commands(exhibit)
    if commands and results:
        pieces.append(folded("Commands", preformatted("\n".join(commands))))
    return joined(pieces)


def _answers(results: ResultsByData) -> list[Html]:
    """What the results say, in a sentence each."""
    if len(results) == 1:
        return [element("p", element("b", result.answer)) for result in results.values()]
    told = [joined([element("b", f"{title}: "), r.answer]) for title, r in results.items()]
    return [folded(f"In a sentence: {len(told)} results", items(told))]


def _table(made: TextTable) -> Html:
    return table(made.columns, made.rows, note=made.note)


def _joint(results: ResultsByData, exhibit: Exhibit) -> Iterator[Html]:
    if exhibit.joint_figure is not None and results:
        draw = exhibit.joint_figure
        drawn = _tried(lambda: _rendered(draw(results)), f"all of {exhibit.study}")
        if drawn is not None:
            what = f"{exhibit.label} {exhibit.study.replace('-', ' ')}".strip()
            yield figure(drawn, caption=f"All data: {what}")


def _figures(results: ResultsByData, names: tuple[str, ...]) -> Iterator[Html]:
    for name in names:
        for title, result in results.items():
            drawn = _drawn(result, name)
            if drawn is not None:
                yield figure(drawn, caption=f"{title}: {name.replace('-', ' ')}{_size(result)}")


def _drawn(result: Result, name: str) -> bytes | None:
    if name not in result.figures():
        return None
    return _tried(lambda: result.svg(name), f"{name} of {result.identity}")


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


# The rest ----------------------------------------------------------------------------------------


def _rest(report: ReproductionReport) -> Html:
    pieces: list[object] = [element("h2", "The rest")]
    missing = [f"{m.name}: {m.reason}" for m in report.plan.missing]
    missing += [f"{step.key}: {reason}" for step, reason in report.not_run()]
    if missing:
        pieces += [element("h3", "Not run"), items(missing)]
    unjudged = report.paper.unjudged
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
        for key, r in report.done.models.items()
    ]
    if models:
        columns = ("task", "score in points", "majority baseline", "training examples")
        pieces += [element("h3", "Fine-tuned models"), table(columns, models)]
    if notes := _text_notes(report):
        pieces += [element("h3", "Texts that were cut or not known"), items(notes)]
    rows = [
        (key, r.identity, f"{r.provenance.duration:.0f} s")
        for key, r in report.done.results.items()
    ]
    if rows:
        listed = table(("step", "result in the store", "computed in"), rows)
        pieces.append(folded("All results", listed))
    return element("section", joined(pieces), id="rest")


def _text_notes(report: ReproductionReport) -> list[str]:
    """Texts that were too long for the model or not known to it, and the steps that read them."""
    steps: dict[str, list[str]] = {}
    for key, result in report.done.results.items():
        for note in result.notes("the model"):
            steps.setdefault(note, []).append(key)
    return [f"{', '.join(keys)}: {note}" for note, keys in steps.items()]


def _scores(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {100 * value:.1f}" for name, value in scores.items())
