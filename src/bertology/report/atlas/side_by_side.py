"""Numbers of two models beside each other, with their differences; and examples that flip."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bertology.report.atlas.compare import Side, asked_of
from bertology.report.atlas.naming import Entry, in_words
from bertology.report.web import Html, element, folded, items, joined, table
from bertology.results.compared import PERCENT, Compared, Difference, difference
from bertology.results.flips import Flips, flips
from bertology.results.number_text import interval_text, number_text

if TYPE_CHECKING:
    import pandas as pd

    from bertology.stats import Estimate

_ENDS = ("", "_low", "_high")
_SHOWN = 10  # examples that are told at once
_MOST = 500  # and when asked for
_LONGEST = 240  # characters of their texts
_SHORT = 6  # characters of a fingerprint
_HOW = (
    "Where both models were asked the same examples, a difference is paired: its interval is over "
    "the differences of single examples (sentences, nouns). Else it runs from the smallest to the "
    "largest difference that the two intervals allow. Each interval is for itself: of twenty rows "
    "that have not changed, one may be marked by chance."
)


@dataclass(frozen=True)
class LeftOut:
    """A study that a model could not be asked, and why."""

    study: str
    data: str  # empty: whatever data it reads
    why: str


@dataclass(frozen=True)
class Row:
    """A number that both models have."""

    study: str
    data: str
    first: Compared
    second: Compared
    apart: Difference


@dataclass(frozen=True)
class Beside:
    """All that two models were asked alike, and what they were not."""

    names: tuple[str, str]
    rows: tuple[Row, ...]
    flips: Mapping[str, Flips]  # by data
    lacking: tuple[str, ...]
    """What cannot be compared, and why, in sentences."""


def side_by_side(first: Side, second: Side, left_out: Sequence[LeftOut] = ()) -> Beside:
    """Everything that both models have numbers of, from the same study, settings and examples.

    `left_out` says why studies could not be run just now.
    """
    theirs = {_key(second, e): e for e in reversed(second.entries)}
    pairs = [(e, theirs[key]) for e in first.entries if (key := _key(first, e)) in theirs]
    names = _data_names([one for one, _ in pairs])
    named = list(zip(names, pairs, strict=True))
    rows = [row for name, pair in named for row in _rows(name, *pair)]
    flipped = dict[str, Flips]()
    for name, (one, other) in named:
        if (found := flips(one.result, other.result)) is not None:
            flipped[f"{name}, {in_words(one.study)}" if name in flipped else name] = found
    aside = {one.study for one in left_out}
    lacking = [
        *_reasons(left_out),
        *_one_sided(first, second, aside),
        *_other_shape(first, second),
    ]
    return Beside((first.name, second.name), tuple(rows), flipped, tuple(lacking))


def _key(side: Side, entry: Entry) -> tuple[object, ...]:
    corpus = entry.result.provenance.corpus or {}
    task = entry.task if side.by_task else ""
    return entry.study, corpus.get("fingerprint"), asked_of(entry), task


def _data_names(entries: Sequence[Entry]) -> list[str]:
    """The data of each entry, with what tells them apart where a study has the same name twice.

    So it is with two sizes of one corpus, or of two tasks that models were fine-tuned on.
    """
    alike: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        alike.setdefault((entry.study, entry.data), []).append(entry)
    found = {}
    for (_, data), group in alike.items():
        details, told = [_details(entry) for entry in group], [""] * len(group)
        for column in zip(*details, strict=True):
            if len(set(told)) < len(group) and len(set(column)) > 1:
                pairs = zip(told, column, strict=True)
                told = [", ".join(filter(None, pair)) for pair in pairs]
        for entry, detail in zip(group, told, strict=True):
            found[entry.result.identity] = f"{data} ({detail})" if detail else data
    return [found[entry.result.identity] for entry in entries]


def _details(entry: Entry) -> tuple[str, ...]:
    """What may tell two results over data of one name apart, what says most to readers first."""
    corpus = entry.result.provenance.corpus or {}
    return (
        f"fine-tuned on {entry.task}" if entry.task else "",
        f"{corpus.get('size')} examples",
        str(corpus.get("fingerprint"))[:_SHORT],
        entry.result.identity[:_SHORT],
    )


def _rows(data: str, one: Entry, other: Entry) -> Iterator[Row]:
    theirs = {(c.title, c.unit): c for c in other.result.compared()}
    for mine in one.result.compared():
        if (found := theirs.get((mine.title, mine.unit))) is not None:
            yield Row(one.study, data, mine, found, difference(mine, found))


def _reasons(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Each reason once, after all that could not be asked for it."""
    found: dict[str, list[str]] = {}
    for one in left_out:
        name = in_words(one.study) + (f" over {one.data}" if one.data else "")
        found.setdefault(one.why, []).append(name)
    for why, names in found.items():
        told = ", ".join(dict.fromkeys(names))
        yield f"{told[:1].upper()}{told[1:]}: {why}"


def _one_sided(first: Side, second: Side, aside: Collection[str]) -> Iterator[str]:
    """Studies that could be compared, and of which one model has no result.

    Of those `aside` it is told already why.
    """
    has = [{e.study for e in side.entries if e.result.compared()} for side in (first, second)]
    for ours, theirs, name in (
        (has[0], has[1], second.name),
        (has[1], has[0], first.name),
    ):
        if missing := sorted(ours - theirs - set(aside)):
            yield f"{name} has no numbers of {', '.join(missing)} here."


def _other_shape(first: Side, second: Side) -> Iterator[str]:
    """Models of another depth or with other heads have no heads of the same number."""
    one, other = _shape(first), _shape(second)
    if one is not None and other is not None and one != other:
        shown = [f"{layers} layers of {heads} heads" for layers, heads in (one, other)]
        yield (
            f"Single heads and layers: {first.name} has {shown[0]}, {second.name} {shown[1]}. "
            "Shares over all heads, and probes of the best layer, are compared all the same."
        )


def _shape(side: Side) -> tuple[int, int] | None:
    """Layers and heads, as results tell; None of a model without attention."""
    for entry in side.entries:
        if any(m.of_heads for m in entry.result.measures()):
            shape = entry.result.provenance.model.get("shape") or {}
            return int(shape.get("layers") or 0), int(shape.get("heads") or 0)
    return None


# As text ------------------------------------------------------------------------------------------


def beside_tables(found: Beside) -> Iterator[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """Title, columns and rows for readers, of each study and data."""
    one, other = found.names
    columns = ("number", one, other, f"{other} − {one}", "interval over")
    for (study, data), rows in groupby(found.rows, key=lambda row: (row.study, row.data)):
        title = f"{in_words(study)}{f' over {data}' if data else ''}"
        yield title[:1].upper() + title[1:], columns, [_cells(row) for row in rows]


def _cells(row: Row) -> tuple[str, ...]:
    unit = row.first.unit
    apart = _told(row.apart.estimate, unit, points=True)
    return (
        row.first.title,
        _told(row.first.estimate, unit),
        _told(row.second.estimate, unit),
        f"{apart} *" if row.apart.sure else apart,
        _over(row),
    )


def _told(found: Estimate, unit: str, *, points: bool = False) -> str:
    scale, spec = (100.0, ".1f") if unit == PERCENT else (1.0, ".3g")
    value, low, high = (scale * x for x in (found.value, found.low, found.high))
    shown = f"{number_text(value, spec)} {'points' if points and unit == PERCENT else unit}"
    if low == high:
        return shown
    if math.isnan(low) or math.isnan(high):
        return f"{shown} (no interval)"
    return f"{shown} {interval_text(low, high, spec)}"


def _over(row: Row) -> str:
    e = row.apart.estimate
    if e.low == e.high:
        return "exact"
    return f"{e.n:,} {e.unit}, paired" if row.apart.paired else f"{e.n:,} {e.unit}, not paired"


def flip_tables(found: Flips, names: tuple[str, str]) -> list[tuple[str, pd.DataFrame]]:
    """A title and a table for each kind of flip that there is."""
    one, other = names
    titles = {
        "only_second": f"Only {other} is right",
        "only_first": f"Only {one} is right",
        "neither": "Both are wrong, each in its way",
        "moved": "Furthest apart",
    }
    groups = {str(kind): rows for kind, rows in found.table.groupby("kind", sort=False)}
    return [(f"{titles[kind]}: {len(rows):,}", rows) for kind, rows in groups.items()]


def export_beside(found: Beside, folder: str | os.PathLike[str]) -> list[Path]:
    """The numbers and the flips as CSV files, with all digits; shares are fractions."""
    import pandas as pd

    rows = [
        [
            *(row.study, row.data, row.first.title, row.first.unit),
            *(x for e in (row.first.estimate, row.second.estimate, row.apart.estimate)
              for x in (e.value, e.low, e.high)),
            *(row.apart.paired, row.apart.estimate.n),
        ]
        for row in found.rows
    ]  # fmt: skip
    sides = [f"{side}{end}" for side in ("first", "second", "difference") for end in _ENDS]
    columns = ["study", "data", "number", "unit", *sides, "paired", "n"]
    tables = {"numbers": pd.DataFrame(rows, columns=columns)}
    for data, flipped in found.flips.items():
        tables[f"flips-{re.sub(r'[^A-Za-z0-9_.-]+', '-', data).strip('-')}"] = flipped.table
    place = Path(folder) / "comparison"
    place.mkdir(parents=True, exist_ok=True)
    for name, made in tables.items():
        made.to_csv(place / f"{name}.csv", index=False)
    return [place / f"{name}.csv" for name in tables]


# As a page ----------------------------------------------------------------------------------------


def numbers_piece(found: Beside) -> Html:
    """The table, and the examples that flip; empty where nothing was asked of both."""
    pieces: list[object] = []
    for title, columns, rows in beside_tables(found):
        pieces += [element("h3", title), table(columns, rows, kind="compared")]
    if found.rows:
        pieces.append(
            element("p", f"* The interval of the difference excludes 0. {_HOW}", kind="soft")
        )
    for data, flipped in found.flips.items():
        pieces += [
            element("h3", f"Examples that flip: {data}"),
            element("p", flipped.sentence(*found.names)),
            *(
                _flips(title, rows, found.names)
                for title, rows in flip_tables(flipped, found.names)
            ),
        ]
    return joined(pieces)


def lacking_piece(found: Beside) -> Html:
    """What cannot be compared; empty where there is nothing."""
    if not found.lacking:
        return Html("")
    return joined([element("h3", "What cannot be compared"), items(found.lacking)])


def _flips(title: str, rows: pd.DataFrame, names: tuple[str, str]) -> Html:
    columns = ("Texts", "Right answer", *names)
    told = [
        (_shortened(row.texts), _word(row.right), _said(row.first, row.first_sure),
         _said(row.second, row.second_sure))
        for row in cast(Any, rows.head(_MOST).itertuples())
    ]  # fmt: skip
    pieces: list[object] = [element("h4", title), table(columns, told[:_SHOWN])]
    if len(told) > _SHOWN:
        pieces.append(folded(f"The next {len(told) - _SHOWN:,}", table(columns, told[_SHOWN:])))
    return joined(pieces)


def _word(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _said(answer: object, sure: float) -> str:
    return _word(answer) if math.isnan(sure) else f"{answer} ({100 * sure:.0f} %)"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
