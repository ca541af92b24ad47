"""The table of claims: what the literature says, what was found here, and on what."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bertology.report.atlas.naming import Entry, in_words
from bertology.report.web import Html, anchor, chip, element, folded, option, titled_chip
from bertology.results.answers import listed
from bertology.results.known_claims import load_claims
from bertology.results.over_claims import page_text, together
from bertology.results.over_tasks import overall
from bertology.results.rules import NOT_RUN, OUTCOMES
from bertology.results.verdicts import EXPLAINED, OURS, OVER_TASKS, Claim, Verdict

_OPEN = 2  # verdicts of one claim that are shown from the start
_NO_VERDICT = (NOT_RUN, "not judged")


@dataclass(frozen=True)
class Judged:
    """A claim, and its verdict on each result that bears on it, corrected for their number."""

    claim: Claim
    verdicts: tuple[tuple[Entry, Verdict], ...]

    @property
    def overall(self) -> str:
        """The one outcome over all results; `not run` where there is none."""
        return overall([verdict for _, verdict in self.verdicts])


def judged_on(
    entries: Iterable[Entry],
    claims: Sequence[Claim] | None = None,
    *,
    across_claims: bool = False,
) -> list[Judged]:
    """Every known claim with its verdicts, in the order of the claims' files."""
    known = load_claims() if claims is None else claims
    verdicts: dict[str, list[tuple[Entry, Verdict]]] = {claim.id: [] for claim in known}
    given = [(entry, v) for entry in entries for v in entry.result.verdicts()]
    given = [(entry, v) for entry, v in given if v.claim.id in verdicts]
    corrected = together((v for _, v in given), across_claims=across_claims)
    for (entry, _), verdict in zip(given, corrected, strict=True):
        verdicts[verdict.claim.id].append((entry, verdict))
    return [Judged(claim, tuple(verdicts[claim.id])) for claim in known]


def claims_piece(judged: Sequence[Judged], model: str, *, across_claims: bool = False) -> Html:
    """The section: counts, filters, and a row for each claim."""
    known = {j.overall for j in judged}
    rows = [_row(j, model) for j in judged]
    errs = page_text((v for j in judged for _, v in j.verdicts), across_claims=across_claims)
    columns = ("What the literature says", "Published", "Found here")
    head = element("tr", *(Html(f'<th scope="col">{c}</th>') for c in columns))
    made = element(
        "table", element("thead", head), element("tbody", *rows), kind="verdicts", id="claims-table"
    )
    return element(
        "section",
        element("h2", "Claims"),
        tally(judged),
        element("p", f"{EXPLAINED} {OVER_TASKS} {errs}", kind="soft"),
        _filters(judged, [n for n in OUTCOMES if n in known]),
        element("p", id="claims-count", kind="soft", role="status"),
        element("div", made, kind="wide"),
        id="claims",
    )


def tally(judged: Sequence[Judged]) -> Html:
    """How many claims have which verdict; what no paper says is counted apart."""
    lists = []
    for ours in (False, True):
        counts = Counter(j.overall for j in judged if j.claim.ours is ours)
        chips = [titled_chip(n, f"{counts[n]} {n}") for n in OUTCOMES if counts[n]]
        if chips and ours:
            chips.insert(0, element("span", "Our own questions:", kind="soft"))
        lists += [element("li", one) for one in chips]
    return element("ul", *lists, kind="counts")


def _filters(judged: Sequence[Judged], outcomes: Sequence[str]) -> Html:
    studies = sorted({j.claim.study for j in judged})
    papers = sorted({j.claim.source.paper for j in judged})
    text = Html('<input type="search" id="claims-text" placeholder="words">')
    return element(
        "form",
        _verdicts(outcomes),
        _choice("claims-study", "Study", [(s, in_words(s)) for s in studies]),
        _choice("claims-paper", "Paper", [(p, p) for p in papers]),
        element("label", "Text", text),
        kind="filters",
        id="claims-filters",
    )


def _verdicts(outcomes: Sequence[str]) -> Html:
    """What was not run, or could not be judged, is listed when it is asked for."""
    if not set(outcomes) - {*_NO_VERDICT}:
        return _choice("claims-verdict", "Verdict", [(o, o) for o in outcomes])
    tested = element("option", "judged here", value="judged", selected="")
    rest = [option("", "all"), *(option(o, o) for o in outcomes)]
    return element("label", "Verdict", element("select", tested, *rest, id="claims-verdict"))


def _choice(id: str, label: str, options: Sequence[tuple[str, str]]) -> Html:
    choices = [option("", "all"), *(option(value, text) for value, text in options)]
    return element("label", label, element("select", *choices, id=id))


def _row(judged: Judged, model: str) -> Html:
    claim = judged.claim
    before = [element("span", id=f"claim-{alias}") for alias in claim.aliases]  # for old links
    told = element(
        "td",
        *before,
        element("div", claim.statement),
        element("div", f"Ours: {OURS}", kind="soft") if claim.ours else "",
        folded(
            "What is tested",
            element("p", str(claim.source), kind="soft"),
            element("p", claim.explanation),
            element("p", f"Rule: {claim.rule}. ", element("code", claim.id), kind="soft"),
        ),
    )
    found = [_found(entry, verdict) for entry, verdict in judged.verdicts]
    if len(found) > 1:
        over_all = element("div", titled_chip(judged.overall, judged.overall), " over all data")
        each = [folded(f"{len(found)} results", *found)] if len(found) > _OPEN else found
        found = [over_all, *each]
    if not found:
        command = element("code", f"bertology verify {shlex.quote(model)} --claims {claim.id}")
        found = [element("div", chip(None, NOT_RUN), element("div", command, kind="soft"))]
    return element(
        "tr",
        told,
        element("td", claim.published.text),
        element("td", *found),
        id=f"claim-{claim.id}",
        data_verdict=judged.overall,
        data_study=claim.study,
        data_paper=claim.source.paper,
    )


def _found(entry: Entry, verdict: Verdict) -> Html:
    return element(
        "div",
        chip(verdict.outcome, verdict.outcome.in_words),
        " ",
        anchor(f"#{entry.anchor}", entry.label),
        element("div", verdict.measured, kind="soft"),
        kind="found",
    )


# The first lines of the atlas: what is most worth knowing of the model, one sentence each.

_LINES = 5  # the last one is about claims
# An outcome over all tasks, said of one claim and of several.
_FORMS = {
    "holds": ("holds", "hold"),
    "size open": ("has an open size", "have an open size"),
    "fails": ("fails", "fail"),
    "negligible": ("is about something negligible", "are about something negligible"),
    "mixed": ("differs over tasks", "differ over tasks"),
    "inconclusive": ("is open", "are open"),
    "not judged": ("cannot be judged", "cannot be judged"),
}
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\[0-9])")


def in_short(entries: Sequence[Entry], judged: Sequence[Judged]) -> Html:
    """A section of about five sentences; empty where there is no result."""
    lines = [_line(entry) for entry in first_entries(entries)]
    lines += [line for line in [_of_claims(judged)] if line]
    if not lines:
        return Html("")
    return element(
        "section",
        element("h2", "In short"),
        element("ul", *(element("li", line) for line in lines), kind="first-lines"),
        id="short",
    )


def first_entries(entries: Sequence[Entry]) -> list[Entry]:
    """One result for each of the studies that tell most of a model.

    Of several results of one study that of the model itself counts, before those of fine-tuned
    ones; then the one over the most examples.
    """
    best: dict[str, Entry] = {}
    for entry in entries:
        held = best.get(entry.study)
        if held is None or _weight(entry) > _weight(held):
            best[entry.study] = entry
    ordered = sorted(best.values(), key=lambda e: (e.result.lead, e.result.place, e.study))
    return ordered[: _LINES - 1]


def _weight(entry: Entry) -> tuple[bool, int]:
    size = (entry.result.provenance.corpus or {}).get("size")
    return not entry.task, size if isinstance(size, int) else 0


def _line(entry: Entry) -> Html:
    # The question does not stand beside it.
    sentence = _SENTENCE.split(entry.result.answer)[0].replace("Surely yes: ", "Surely: ")
    source = anchor(f"#{entry.anchor}", f"{in_words(entry.study)}, {entry.label}")
    return element("span", sentence, " ", element("span", "(", source, ")", kind="soft"))


def _of_claims(judged: Sequence[Judged]) -> Html | None:
    counts = Counter(j.overall for j in judged if j.overall != NOT_RUN and not j.claim.ours)
    if not counts:
        return None
    told = [f"{counts[w]} {_FORMS[w][counts[w] > 1]}" for w in OUTCOMES if counts[w]]
    n = sum(counts.values())
    text = f"Of {n} claim{'s' * (n > 1)} of the literature that were tested here, {listed(told)}."
    return element("span", f"{text} ", element("span", anchor("#claims", "Claims"), kind="soft"))
