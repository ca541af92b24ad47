"""Numbers and intervals as readers see them: the same in the terminal, in Markdown and in HTML.

An end of an interval is written so that one sees on which side of a limit it lies, of 0 if no other
is named: with more digits than usual if need be, or as `>0` where it says no more than that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

__all__ = ["interval_text", "number_text"]

_SPEC = re.compile(r"(\+?)\.(\d+)([gf])")
_MORE = 3  # digits
_ROUNDING = 1e-13  # less is no difference


def number_text(value: float, spec: str = ".3g") -> str:
    """A number by a format such as `.3g`, `.1f` or `+.1f`; NaN is a dash."""
    # What rounding leaves of a zero is shown as one, and without a minus.
    return "–" if math.isnan(value) else _written(value, spec)


def interval_text(
    low: float, high: float, spec: str = ".3g", *, limits: Sequence[float] = (0.0,)
) -> str:
    """`[0.28, 0.34]`; `limits` are the values of which one must see whether they lie inside."""
    return f"[{_end(low, spec, limits)}, {_end(high, spec, limits)}]"


def _end(value: float, spec: str, limits: Sequence[float]) -> str:
    text = number_text(value, spec)
    for limit in limits:
        if abs(value - limit) >= _ROUNDING and text == number_text(limit, spec):
            return _told_apart(value, limit, spec)
    return text


def _told_apart(value: float, limit: float, spec: str) -> str:
    sign, digits, kind = _parts(spec)
    for more in range(1, _MORE + 1):
        finer = f"{sign}.{digits + more}{kind}"
        if number_text(value, finer) != number_text(limit, finer):
            return number_text(value, finer)
    return f"{'>' if value > limit else '<'}{number_text(limit, spec.lstrip('+'))}"


def _parts(spec: str) -> tuple[str, int, str]:
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise ValueError(f"not a format of numbers: {spec!r}")
    return found[1], int(found[2]), found[3]


def _written(value: float, spec: str) -> str:
    text = f"{round(value, 9) + 0.0:{spec}}"
    return re.sub(r"^-(0(?:\.0*)?)$", r"+\1" if spec.startswith("+") else r"\1", text)
