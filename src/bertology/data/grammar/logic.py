"""A small model checker: does a hypothesis follow from premises, in every possible world?

A formula is a nested tuple: `("is", key)`, `("not", f)`, `("all", f, g, …)`, `("any", f, g, …)`,
`("if", f, g)`, `("least", n, f, g, …)` (at least n of them). The worlds of a space are numbered,
and a set of worlds is one whole number with a bit for each: so a formula is worked out in all
worlds at once, and a label is a proof, not an opinion.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product
from typing import Any, Literal

ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2
Formula = tuple[Any, ...]
SpaceName = tuple[Literal["facts", "order"], int]
"""`("facts", n)`: n facts that hold or not; `("order", n)`: the orders of n things, with ties."""


@cache
def _everywhere(space: SpaceName) -> int:
    kind, n = space
    worlds = 2**n if kind == "facts" else n**n
    return int((1 << worlds) - 1)


@cache
def _where(space: SpaceName, key: Any) -> int:
    """The worlds in which a fact (its number) holds, or one thing comes before another (a pair)."""
    kind, n = space
    if kind == "facts":
        # Blocks of 2**key worlds, in turn with the fact and without it.
        return _everywhere(space) // ((1 << int(2**key)) + 1)
    one, other = key
    ranks = product(range(n), repeat=n)
    return sum(1 << world for world, rank in enumerate(ranks) if rank[one] > rank[other])


def _worlds(formula: Formula, space: SpaceName) -> int:
    """The worlds in which a formula holds."""
    kind, *parts = formula
    everywhere = _everywhere(space)
    if kind == "is":
        return _where(space, parts[0])
    if kind == "least":
        return _at_least(parts[0], [_worlds(part, space) for part in parts[1:]], everywhere)
    sets = [_worlds(part, space) for part in parts]
    if kind == "not":
        return everywhere & ~sets[0]
    if kind == "if":
        return (everywhere & ~sets[0]) | sets[1]
    found = everywhere if kind == "all" else 0
    for one in sets:
        found = found & one if kind == "all" else found | one
    return found


def _at_least(n: int, sets: list[int], everywhere: int) -> int:
    """Worlds that are in n of the sets or more."""
    reached = [everywhere, *[0] * n]  # by how many of the sets so far
    for one in sets:
        for count in range(n, 0, -1):
            reached[count] |= reached[count - 1] & one
    return reached[n]


@lru_cache(maxsize=100_000)
def verdict(space: SpaceName, premises: tuple[Formula, ...], hypothesis: Formula) -> int:
    """Whether the hypothesis holds in all, some or none of the worlds of the premises.

    Premises that no world satisfies entail everything: they are a mistake of who wrote them.
    """
    given = _worlds(("all", *premises), space)
    so = _worlds(hypothesis, space)
    if not given:
        raise ValueError(f"no world satisfies {premises!r:.200}")
    if given & so == given:
        return ENTAILMENT
    return NEUTRAL if given & so else CONTRADICTION


def both_ways(formula: Formula, *, holds: bool) -> Formula:
    """The formula, or its negation."""
    return formula if holds else ("not", formula)
