"""The claims of this package and of its plugins: find them, and judge them on evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bertology.errors import UnknownNameError
from bertology.results.claim_files import read_all_claims
from bertology.results.evidence import ALL_OTHERS
from bertology.results.verdicts import Claim, Verdict

if TYPE_CHECKING:
    from bertology.stats import Estimate


def judge(
    study: str,
    evidence: Mapping[str, Estimate],
    claims: Iterable[Claim] | None = None,
    *,
    reasons: Mapping[str, str] | None = None,
    data: str = "",
) -> list[Verdict]:
    """Judge the claims about `study` (all known ones unless `claims` are given) on `evidence`.

    `reasons` says why a quantity has no estimate, by its name; under "" for all others. `data` is
    the name of the corpus: a claim that is not made of it is not judged.
    """
    known = reasons or {}
    return [
        _judged(claim, evidence, known, data)
        for claim in (load_claims() if claims is None else claims)
        if claim.study == study
    ]


def _judged(
    claim: Claim, evidence: Mapping[str, Estimate], reasons: Mapping[str, str], data: str
) -> Verdict:
    quantity = claim.rule.quantity
    excepted = None if claim.tasks is None else claim.tasks.why_not(data)
    found = None if excepted else evidence.get(quantity)
    if found is None:
        why = excepted or reasons.get(quantity, reasons.get(ALL_OTHERS))
        return Verdict(claim, claim.rule.judge(None), None, 0, why)
    return Verdict(claim, claim.rule.judge(found), found, found.n)


def claims_by_id() -> dict[str, Claim]:
    """Every claim by its id, and by the ids that it had before."""
    claims = load_claims()
    before = {alias: claim for claim in claims for alias in claim.aliases}
    return {claim.id: claim for claim in claims} | before


def quantity_units(study: str) -> dict[str, str]:
    """The units of a study's quantities, as far as claims say them."""
    return {c.rule.quantity: c.rule.unit for c in load_claims() if c.study == study}


def load_claims() -> list[Claim]:
    """All claims of this package and of installed plugins, checked against the schema."""
    return list(read_all_claims())


def find_claims(query: str = "", *, paper: str = "", study: str = "") -> list[Claim]:
    """Claims that have every word of `query` in their id, statement, source or study.

    `paper` is how ids open (dark-secrets), or words of the source; `study` is a study's name.
    """
    claims = load_claims()
    if study:
        claims = _named("study", study, [(c.study, c) for c in claims])
    if paper:
        openings = [(c.id.partition(".")[0], c) for c in claims]
        of_source = [c for c in claims if _has(c.source.paper, paper)]
        claims = of_source or _named("paper", paper, openings)
    return [claim for claim in claims if _has(_haystack(claim), query)]


def _named(kind: str, name: str, named: Iterable[tuple[str, Claim]]) -> list[Claim]:
    by_name: dict[str, list[Claim]] = {}
    for given, claim in named:
        by_name.setdefault(given, []).append(claim)
    if name not in by_name:
        raise UnknownNameError(kind, name, by_name, hint="See all claims with: bertology claims")
    return by_name[name]


def _has(text: str, query: str) -> bool:
    lower = text.casefold()
    return all(word in lower for word in query.casefold().split())


def _haystack(claim: Claim) -> str:
    return f"{claim.id} {' '.join(claim.aliases)} {claim.statement} {claim.source} {claim.study}"
