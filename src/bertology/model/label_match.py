"""Which output of a classifier stands for which label of the data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bertology.errors import CapabilityError

_NUMBER = re.compile(r"(label-?)?-?\d+")  # 0, or LABEL_0, as transformers calls what has no name
_FEW = 2  # classes: all ways to match so many are proposed


@dataclass(frozen=True)
class LabelMatch:
    """An output of the model for each label of the data."""

    order: tuple[int, ...]  # the number of the output, label by label
    pairs: tuple[tuple[str, str], ...]  # the label, and what the model calls it
    by: str  # "name" or "order"; empty where there are no classes


def match_labels(
    named: Mapping[int, str], outputs: int, labels: Sequence[str], *, ordered: bool, model: str
) -> LabelMatch:
    """Match labels with outputs: by name; by order where one side has numbers for names.

    `ordered` says that the order of `labels` has a meaning and is not that of the alphabet. Names
    that differ are refused, and so is an order without a meaning: the score would be that of
    another question. Where all names but one are found on both sides, that one is what is left.
    """
    if len(labels) != outputs or outputs == 1:
        return LabelMatch(tuple(range(outputs)), (), "")
    names = [str(named.get(i, f"LABEL_{i}")) for i in range(outputs)]
    wanted, given = [_plain(n) for n in labels], [_plain(n) for n in names]
    if len(set(wanted)) == len(set(given)) == outputs:
        found = _by_name(wanted, given)
        if found is not None:
            pairs = tuple((label, names[i]) for label, i in zip(labels, found, strict=True))
            return LabelMatch(tuple(found), pairs, "name")
        # A number that both sides have, in another place, contradicts the order.
        if not set(wanted) & set(given) and (_numbers(wanted) or (ordered and _numbers(given))):
            return LabelMatch(
                tuple(range(outputs)), tuple(zip(labels, names, strict=True)), "order"
            )
    raise _ambiguous(labels, names, model)


def _by_name(wanted: Sequence[str], given: Sequence[str]) -> list[int] | None:
    rest = [i for i, name in enumerate(given) if name not in wanted]
    if len(rest) > 1 or (rest and _numbers(wanted)):
        return None
    return [given.index(name) if name in given else rest[0] for name in wanted]


def _numbers(names: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(name) for name in names)


def _ambiguous(labels: Sequence[str], names: Sequence[str], model: str) -> CapabilityError:
    ways = [_option(labels, names)]
    if len(labels) == _FEW:
        ways.insert(0, _option(labels, names[::-1]))
        proposed = f"{ways[0]} or {ways[1]}"
    else:
        proposed = f"such as {ways[0]}, with each name in its place"
    return CapabilityError(
        f"Which label is which? The data have {', '.join(labels)}; the model {model!r} gives "
        f"{', '.join(names)}.",
        hint=f"Say it: {proposed} (in Python: labels={{{labels[0]!r}: …}}).",
    )


def _option(labels: Sequence[str], names: Sequence[str]) -> str:
    return "--labels " + ",".join(f"{a}={b}" for a, b in zip(labels, names, strict=True))


def _plain(name: str) -> str:
    """A name without what spellings differ in: `Not_Equivalent` is `not-equivalent`."""
    return name.strip().lower().replace("_", "-").replace(" ", "-")
