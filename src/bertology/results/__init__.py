"""What came out: results, the claims judged on them, and the store that keeps them. No torch."""

from __future__ import annotations

from bertology.results.claims import Claim, Outcome, Rule, Verdict
from bertology.results.known_claims import find_claims, judge, load_claims
from bertology.results.provenance import Provenance, identity_of
from bertology.results.result import Result
from bertology.results.store import Store

__all__ = [
    "Claim",
    "Outcome",
    "Provenance",
    "Result",
    "Rule",
    "Store",
    "Verdict",
    "find_claims",
    "identity_of",
    "judge",
    "load_claims",
]
