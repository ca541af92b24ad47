"""The table of an exhibit that has no function of its own: what its claims are judged on."""

from __future__ import annotations

from bertology.reproduce.paper import Exhibit, ResultsByData, TextTable
from bertology.results.known_claims import quantity_units
from bertology.results.verdicts import estimate_text

NOTHING = "nothing could be judged; the verdicts say why."  # of a table without rows


def our_table(exhibit: Exhibit, results: ResultsByData) -> TextTable | None:
    """Our numbers for an exhibit; None where nothing was run."""
    return (exhibit.our_table or evidence_table)(results) if results else None


def evidence_table(results: ResultsByData) -> TextTable:
    """What claims are judged on, a column for each corpus."""
    evidence = {title: result.evidence() for title, result in results.items()}
    units = {
        q: unit for r in results.values() for q, unit in quantity_units(r.provenance.study).items()
    }
    measured = dict.fromkeys(q for entry in evidence.values() for q in entry)
    # What no claim speaks of is in the result's own tables; without any claim, all is shown.
    quantities = [q for q in measured if q in units] or list(measured)
    rows = [
        (
            q.replace("_", " "),
            *(estimate_text(evidence[title].get(q), unit=units.get(q, "")) for title in results),
        )
        for q in quantities
    ]
    return TextTable(
        ("quantity", *results),
        tuple(rows),
        note="In brackets: the intervals that claims are judged on; n: what they are over.",
    )
