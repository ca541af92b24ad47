"""Ways of sorting heads into classes, each by limits on what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.data.map_labels import MAP_TYPES
from bertology.stats.agreement import cohens_kappa
from bertology.studies.designs.tables import head_table

if TYPE_CHECKING:
    import pandas as pd

    from bertology.stats.partial_means import PartialMeans

SPECIAL = "special"
"""Measured beside the classes of Clark et al.: [CLS], [SEP] and punctuation together."""

Floats = NDArray[np.float64]
COARSE = ("position", "token", "other")
"""What all three tell apart: where a token stands, which token it is, or neither."""
_POSITION, _TOKEN, _OTHER = COARSE
_GREY = "#d9d9d9"


@dataclass(frozen=True)
class Sorted:
    """The kind of each head (K,), an index into the names of a taxonomy, and where it is sure."""

    kinds: NDArray[np.int64]
    sure: NDArray[np.bool_]


@dataclass(frozen=True)
class Taxonomy:
    """Classes of heads. A head is of a class where its share there is above a limit."""

    name: str
    title: str
    classes: tuple[str, ...]
    """What is measured: keys."""
    names: tuple[str, ...]
    """The same for readers, then what heads of no class are called, if there can be any."""
    colours: tuple[str, ...]
    coarse: tuple[str, ...]
    """What each name amounts to in `COARSE`."""

    def sort(self, value: Floats, low: Floats, high: Floats, limits: Floats) -> Sorted:
        """From shares (classes, K) with bounds that hold for all of them, and limits (classes,).

        A head is of the class that is farthest above its limit. It is surely so if the lower bound
        is above, and surely of no class if all upper bounds are below.
        """
        above = value - limits[:, None]
        kinds = above.argmax(0)
        sure = np.take_along_axis(low - limits[:, None], kinds[None], axis=0)[0] > 0
        if len(self.names) > len(self.classes):
            none = ~(above > 0).any(0)
            kinds = np.where(none, len(self.classes), kinds)
            sure = np.where(none, (high < limits[:, None]).all(0), sure)
        return Sorted(kinds.astype(np.int64), sure)


CLARK = Taxonomy(
    "clark",
    "Clark et al.",
    ("previous", "next", "self", "cls", "sep", "punctuation", "entropy"),
    ("previous", "next", "self", "[CLS]", "[SEP]", "punctuation", "broad", "other"),
    ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#f0e442", "#cc79a7", _GREY),
    (_POSITION,) * 3 + (_TOKEN,) * 3 + (_OTHER,) * 2,
)
RAGANATO = Taxonomy(
    "raganato",
    "Raganato and Tiedemann",
    ("self", "previous", "next", "end"),
    ("itself", "previous", "next", "end of sentence", "mixed"),
    ("#009e73", "#0072b2", "#56b4e9", "#d55e00", _GREY),
    (_POSITION,) * 3 + (_TOKEN, _OTHER),
)
MAPS = Taxonomy(
    "map_type",
    "map types",
    MAP_TYPES,
    MAP_TYPES,
    ("#d55e00", "#0072b2", "#6b6b6b", "#f0e442", _GREY),
    (_TOKEN, _POSITION, _OTHER, _OTHER, _OTHER),
)
TAXONOMIES = (CLARK, RAGANATO, MAPS)


def class_table(
    found: Mapping[Taxonomy, Sorted], places: Floats, shape: tuple[int, int]
) -> pd.DataFrame:
    """The class of each head by each taxonomy, and its place in the plane."""
    columns: dict[str, ArrayLike] = {}
    for taxonomy, of in found.items():
        columns[taxonomy.name] = np.array(taxonomy.names)[of.kinds]
        columns[f"{taxonomy.name}_sure"] = of.sure
    return head_table(shape, columns | {"x": places[:, 0], "y": places[:, 1]})


def share_table(by_name: Mapping[Taxonomy, PartialMeans], shape: tuple[int, int]) -> pd.DataFrame:
    """What classes rest on, one row for each of them and each head."""
    import pandas as pd

    tables = []
    for taxonomy, means in by_name.items():
        classes = [*taxonomy.classes, SPECIAL][: means.value.size // (shape[0] * shape[1])]
        columns: dict[str, ArrayLike] = {
            "share": means.value,
            "low": means.simultaneous_low,
            "high": means.simultaneous_high,
            "n": means.n,
        }
        table = head_table(shape, columns, groups=("class", classes))
        table.insert(0, "taxonomy", taxonomy.name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def crossed_table(found: Mapping[Taxonomy, Sorted]) -> pd.DataFrame:
    """How many heads have which three classes, the most first."""
    import pandas as pd

    named = {t.name: np.array(t.names)[of.kinds] for t, of in found.items()}
    counts = pd.DataFrame(named).value_counts().rename("heads").reset_index()
    order = ["heads", *named]
    found_rows: pd.DataFrame = counts.sort_values(
        order, ascending=[False, *(True for _ in named)], ignore_index=True
    )
    return found_rows


def agreement_table(found: Mapping[Taxonomy, Sorted], *, level: float, seed: int) -> pd.DataFrame:
    """Of each two taxonomies, on whether a head attends to places, to tokens, or neither."""
    import pandas as pd

    rows = []
    for one, other in combinations(found, 2):
        first, second = ([t.coarse[k] for k in found[t].kinds] for t in (one, other))
        agreed = cohens_kappa(first, second, COARSE, level=level, seed=seed)
        kappa = agreed.kappa
        ends = (np.nan,) * 3 if kappa is None else (kappa.value, kappa.low, kappa.high)
        rows.append((one.title, other.title, agreed.same, *ends, agreed.n))
    columns = ["one", "other", "same", "kappa", "kappa_low", "kappa_high", "heads"]
    return pd.DataFrame(rows, columns=columns)
