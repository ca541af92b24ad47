"""Links that a corpus brings itself: any pairs of words, several for a word if need be.

The field `links` of an example is a list. Each entry is `[source, target]` or
`[source, target, name]`; source and target are positions of words, counted from 0, or lists of
positions where an end has several words:

    {"words": ["Rain", "fell", "so", "roads", "closed"], "links": [[4, 1, "cause"], [3, [0, 1]]]}

The relation `links` is all of them, `links:cause` those with this name.
"""

from __future__ import annotations

from collections.abc import Sequence

from bertology.errors import DataError

OWN = "links"

Ends = tuple[tuple[int, ...], tuple[int, ...], str]


def is_own(relation: str) -> bool:
    """Whether a relation is made of the field `links`."""
    return relation == OWN or relation.startswith(f"{OWN}:")


def own_ends(links: object, relation: str = OWN) -> list[Ends]:
    """Source, target and name of each link of the relation."""
    wanted = relation.partition(":")[2]
    entries = links if isinstance(links, Sequence) and not isinstance(links, str) else [links]
    found = [_ends(entry) for entry in entries]
    return [ends for ends in found if not wanted or ends[2] == wanted]


def check_links(links: object, words: int, at: str) -> None:
    """Refuse links that are not of this form, or that point outside the words; `at` is where."""
    try:
        found = own_ends(links)
    except DataError as error:
        raise DataError(f"{at}: {error}", hint=error.hint) from None
    for source, target, _ in found:
        outside = [position for position in (*source, *target) if not 0 <= position < words]
        if outside:
            raise DataError(
                f"{at}: a link names the word {outside[0]}, and there are {words} words.",
                hint="Words are counted from 0.",
            )


def _ends(entry: object) -> Ends:
    if isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) in (2, 3):
        sides = [_side(side) for side in entry[:2]]
        name = entry[2] if len(entry) == 3 else ""
        if sides[0] and sides[1] and isinstance(name, str):
            return sides[0], sides[1], name
    raise DataError(
        f"{entry!r} is not a link.",
        hint="A link is [source, target] or [source, target, name]: positions of words, or lists "
        'of positions, such as [5, 1] or [4, [0, 1], "cause"].',
    )


def _side(side: object) -> tuple[int, ...]:
    given = list(side) if isinstance(side, Sequence) and not isinstance(side, str) else [side]
    whole = [p for p in given if isinstance(p, int) and not isinstance(p, bool)]
    return tuple(sorted(set(whole))) if len(whole) == len(given) else ()
