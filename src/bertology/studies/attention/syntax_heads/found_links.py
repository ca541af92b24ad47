"""Which single links a head finds, and at which offsets they stand.

A head that looks so many words away finds links at that offset only; one that follows a relation
finds those at other offsets, too. Head and direction are picked on one half of the sentences and
asked on the other, as in `followed_links`. Offsets say where the head of a word stands, seen from
the word, so that two languages can be set side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats, Ints
from bertology.results.compared import Compared, row_mean
from bertology.stats.best_of_many import picked_on_other_half
from bertology.studies.attention.syntax_heads.link_counts import (
    FEWEST,
    Counts,
    LinkCounts,
    Question,
)
from bertology.studies.designs.parts import in_order
from bertology.studies.designs.shares import per_item, ratio_values

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SHARE, GAIN = "{} links found", "{} links found, beyond the best fixed offset"
ELSEWHERE, OFFSET = "{} links found at other offsets", "offset of {} links found"
_COLUMNS = ["relation", "offset", "links", "found"]


def found_links(
    measured: Mapping[str, xr.Dataset],
    counts: LinkCounts,
    questions: Sequence[Question],
    *,
    level: float,
) -> tuple[pd.DataFrame, list[Compared | None]]:
    """Links and those that were found at each offset; and rows of sentences, to be compared.

    Only relations of trees, in enough sentences.
    """
    import pandas as pd

    picked: dict[str, NDArray[np.int64]] = {}
    for question in questions:
        if question.of_trees and counts.sentences(question.names) >= FEWEST:
            of = counts.of(question.names)
            picked[question.relation] = np.zeros(counts.examples, np.int64)
            picked[question.relation][of.examples] = _picked(of)
    tables, rows = [pd.DataFrame(columns=_COLUMNS)], list[Compared | None]()
    links = {name: list[NDArray[np.int64]]() for name in picked}
    for part in in_order(measured):
        for name, of_part in _links(part, picked):
            links[name].append(of_part)
    for name, parts in links.items():
        example, offset, hit = np.concatenate(parts).T
        at, where = np.unique(offset, return_inverse=True)
        columns = np.bincount(where), np.bincount(where, weights=hit).astype(int)
        table = pd.DataFrame({"offset": at, "links": columns[0], "found": columns[1]})
        tables.append(table.assign(relation=name)[_COLUMNS])
        usual = offset == at[columns[0].argmax()]
        rows += _compared(name, example, offset, hit, usual, counts.examples, level)
    return pd.concat(tables, ignore_index=True).astype(
        {"offset": int, "links": int, "found": int}
    ), rows


def _picked(of: Counts) -> NDArray[np.int64]:
    """(n,): of both directions and all heads the one with most hits in the other half."""
    hits = of.hits.reshape(len(of.hits), 1, -1).astype(np.float32)
    return picked_on_other_half(hits)[:, 0]


def _links(
    part: xr.Dataset, picked: Mapping[str, NDArray[np.int64]]
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """(links, 3) of each relation: the sentence, the offset, and whether the head found it."""
    best = part["best"].to_numpy()
    best = best.reshape(len(best), -1).astype(np.int64)
    example, word = (part[name].to_numpy().astype(np.int64) for name in ("example", "word"))
    starts = np.searchsorted(example, example)
    names = [str(name) for name in part["relation"].to_numpy()]
    for name in picked:
        if name not in names:
            continue
        links = part["links"].to_numpy().astype(np.int64)
        _, head, dependent = links[links[:, 0] == names.index(name)].T
        sentence = int(part.attrs["first"]) + example[head]
        upwards, column = np.divmod(picked[name][sentence], best.shape[1])
        source = np.where(upwards == 1, dependent, head)
        target = np.where(upwards == 1, head, dependent)
        most = best[source, column]
        local = np.where(most < -1, -2 - most, most)  # a special token got more: words alone count
        hit = (most != -1) & (local + starts[source] == target)
        yield name, np.column_stack([sentence, word[head] - word[dependent], hit])


def _compared(
    name: str,
    example: Ints,
    offset: Ints,
    hit: Ints,
    usual: NDArray[np.bool_],
    n: int,
    level: float,
) -> Iterator[Compared | None]:
    def summed(values: NDArray[Any]) -> Floats:
        return np.bincount(example, weights=values.astype(np.float64), minlength=n).astype(float)

    links, found, elsewhere = summed(np.ones(len(hit))), summed(hit), summed(~usual)
    share = per_item(found, links)
    for title, rows in (
        (SHARE, share),
        (GAIN, share - per_item(summed(usual), links)),
        (ELSEWHERE, per_item(summed(hit * ~usual), elsewhere)),
    ):
        yield row_mean(title.format(name), rows, level=level, bounded=False)
    where = np.full(n, np.nan)
    there = found > 0
    if there.any():
        where[there] = ratio_values(summed(hit * offset)[there], found[there])
    yield row_mean(OFFSET.format(name), where, level=level, unit="words", bounded=False)
