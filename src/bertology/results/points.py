"""Points in planes, as a table of a result holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

NAMED_GROUPS = 10
"""Groups that have a colour and a shape of their own: nobody tells more of them apart."""


@dataclass(frozen=True)
class PointColumns:
    """Which columns of a table say where each row's point lies, and what is told of it.

    Rows that agree in all `planes`, such as word, layer and method, are the points of one plane.
    Colours and shapes are those of `group`. `text` is what a reader sees at a point, with the
    characters from `start` to before `end` marked.
    """

    table: str
    planes: tuple[str, ...]
    group: str
    text: str = "text"
    start: str = "start"
    end: str = "end"
    x: str = "x"
    y: str = "y"

    def as_dict(self) -> dict[str, object]:
        """For a page's scripts."""
        return asdict(self)


def ranked_groups(groups: Iterable[str]) -> list[tuple[str, int]]:
    """Groups with their numbers of points, the largest first: the order of colours and shapes."""
    counts = Counter(groups)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
