"""Numbers and intervals as readers see them: the same in the terminal, in Markdown and in HTML.

There is one rule of rounding: what lies half-way goes away from zero, as people and browsers round,
so that 1.25 and -1.25 are 1.3 and -1.3. An end of an interval is written so that one sees on which
side of a limit it lies, of 0 if no other is named: with more digits than usual if need be, or as
`>0` where it says no more than that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

UNITS = ("", "%", "points")
"""What quantities are shown in: as they are, or times a hundred."""
_SPEC = re.compile(r"(\+?)\.(\d+)([gf])")
_MORE = 3  # digits
_TINY = 1e-9  # what is less is shown as 0 beside larger numbers
_LONG = 1e9  # from here on powers of ten are shorter
_CELL = 4  # digits in a cell of a table, which has powers of ten as LaTeX does
_ROUNDING = 1e-13  # less is no difference


def number_text(value: float, spec: str = ".3g") -> str:
    """A number by a format such as `.3g`, `.1f` or `+.1f`; NaN is a dash."""
    # What rounding leaves of a zero is shown as one, and without a minus.
    return "–" if math.isnan(value) else _written(value, spec)


def whole_number_text(value: float, spec: str = ".4g") -> str:
    """The same for a cell of a table: a p-value of 1e-12 is not shown as 0."""
    return f"{value:{spec}}" if not abs(value) >= _TINY else number_text(value, spec)


def interval_text(
    low: float, high: float, spec: str = ".3g", *, limits: Sequence[float] = (0.0,)
) -> str:
    """`[0.28, 0.34]`; `limits` are the values of which one must see whether they lie inside."""
    return f"[{_end(low, spec, limits)}, {_end(high, spec, limits)}]"


def with_interval(
    value: float,
    low: float,
    high: float,
    spec: str = ".3g",
    *,
    scale: float = 1.0,
    unit: str = "",
    limits: Sequence[float] = (0.0,),
) -> str:
    """`0.31 [0.28, 0.34]`; the bare value where there is no interval.

    A `unit` (`%`, `points`) goes with the value, which is then shown times a hundred.
    """
    shown = in_unit(scale * value, unit, spec)
    scale = scale * times_of(unit)
    if math.isnan(low) or math.isnan(high):
        return shown
    ends = interval_text(scale * low, scale * high, spec, limits=[scale * x for x in limits])
    return f"{shown} {ends}"


def in_unit(value: float, unit: str, spec: str = ".3g") -> str:
    """`0.012` of points as `1.2 points`, of % as `1.2 %`; without a unit as it is."""
    shown = number_text(times_of(unit) * value, spec)
    if unit == "points" and shown.lstrip("+-") == "1":
        unit = "point"
    return f"{shown} {unit}" if unit else shown


def times_of(unit: str) -> float:
    """What a quantity is multiplied by where readers see it in this unit."""
    return 100.0 if unit else 1.0


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
    rounded = _rounded(round(value, 9), spec) + 0.0
    text = f"{rounded:{spec}}"
    if "e+" in text and abs(rounded) < _LONG and _parts(spec)[1] < _CELL:
        text = f"{rounded:{spec[: spec.startswith('+')]}.0f}"  # 6000, not 6e+03
    return re.sub(r"^-(0(?:\.0*)?)$", r"+\1" if spec.startswith("+") else r"\1", text)


def _rounded(value: float, spec: str) -> float:
    """To as many digits as the format shows; Python's own rounds 1.25 down and 1.35 up."""
    if not math.isfinite(value) or value == 0:
        return value
    _, digits, kind = _parts(spec)
    exact = Decimal(repr(float(value)))
    last = -digits if kind == "f" else exact.adjusted() - max(digits, 1) + 1
    return float(exact.quantize(Decimal(1).scaleb(last), ROUND_HALF_UP))
