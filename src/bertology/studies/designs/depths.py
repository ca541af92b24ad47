"""Where in a stack of layers something is looked for."""

from __future__ import annotations


def first_upper(layers: int) -> int:
    """A third of the depth: the fifth of twelve layers, which is number 4 (Clark et al. 2019)."""
    return round(layers / 3)
