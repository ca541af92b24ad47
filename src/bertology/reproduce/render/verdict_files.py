"""A verification for other programs: JSON with everything, CSV with a row for each verdict."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

from bertology.reproduce.judged import JudgedClaim, count_outcomes
from bertology.reproduce.render.summary import error_record, verdict_record
from bertology.reproduce.verify import Verification
from bertology.results.provenance import library_versions
from bertology.results.rules import NOT_RUN, Outcome
from bertology.results.verdicts import reason_text

SCHEMA_VERSION = 2
_COLUMNS = (
    "claim", "statement", "source", "study", "rule", "published", "data", "model", "outcome",
    "value", "low", "high", "level", "judged_at", "n", "unit", "needed", "overall", "ours",
    "result", "reason",
)  # fmt: skip


def as_json(found: Verification, *, model: dict[str, object], command: str | None) -> str:
    """Claims with all their verdicts, what was left out, and the command and versions used."""
    record = {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": library_versions(),
        "model": model,
        "counts": found.counts,
        "counts_of_ours": count_outcomes(j for j in found.judged if j.claim.ours),
        **error_record(found.judged, across_claims=found.across_claims),
        "claims": [_claim(found, judged) for judged in found.judged],
        "left_out": [{"id": c.id, "reason": why} for c, why in found.chosen.left_out],
        "missing": sorted({m.name for part in found.parts for m in part.plan.missing}),
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(found: Verification) -> str:
    """One row for each claim and corpus; claims without a verdict have one with the reason."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for judged in found.judged:
        claim = judged.claim
        about = {
            "claim": claim.id,
            "statement": claim.statement.strip(),
            "source": str(claim.source),
            "study": claim.study,
            "rule": str(claim.rule),
            "published": " ".join(claim.published.text.split()),
            "overall": judged.overall,
            "ours": claim.ours,
        }
        verdicts = _verdicts(found, judged)
        for verdict in verdicts or [{"outcome": NOT_RUN, "reason": found.why_open(judged)}]:
            writer.writerow(about | verdict)
    return text.getvalue()


def _claim(found: Verification, judged: JudgedClaim) -> dict[str, object]:
    claim = judged.claim
    return {
        "id": claim.id,
        "statement": claim.statement.strip(),
        "source": str(claim.source),
        "study": claim.study,
        "rule": str(claim.rule),
        "published": {
            "text": " ".join(claim.published.text.split()),
            "values": dict(claim.published.values),
        },
        "ours": claim.ours,
        "overall": judged.overall,
        "reason": None if judged.decided else found.why_open(judged),
        "verdicts": _verdicts(found, judged),
    }


def _verdicts(found: Verification, judged: JudgedClaim) -> list[dict[str, object]]:
    rows = []
    for title, verdict in judged.verdicts:
        result = found.result_of(judged.claim, title)
        why = reason_text(verdict) if verdict.outcome is Outcome.NOT_APPLICABLE else None
        about = {"model": result.provenance.model.get("name"), "result": result.identity}
        rows.append({**verdict_record(title, verdict), **about, "reason": why})
    return rows
