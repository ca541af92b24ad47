"""The first lines of the atlas: what is most worth knowing of the model, one sentence each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bertology.report.atlas.claims import Judged
from bertology.report.atlas.naming import Entry, in_words
from bertology.report.web import Html, anchor, element
from bertology.results.answers import listed
from bertology.results.verdict_view import NOT_RUN, OUTCOMES

_LINES = 5  # the last one is about claims
# An outcome over all tasks, said of one claim and of several.
_FORMS = {
    "holds": ("holds", "hold"),
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
