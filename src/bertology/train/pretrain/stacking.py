"""Progressive stacking: a trained shallow model becomes a deeper one by copying its layers.

Gong et al. (2019): attention in higher layers resembles that in lower ones, so a stack of copies
is a better start than random weights, and shallow steps are cheap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")
_LAYER = re.compile(r"^(.*\bencoder\.layer\.)(\d+)(\..*)$")


def grown(values: Mapping[str, T], *, layers: int, to: int) -> dict[str, T]:
    """Values by name for `to` layers from those for `layers`: layer i is a copy of i mod `layers`.

    Serves weights and an optimizer's memory of them alike. A generator beside the model (its
    names begin with `losses.`) stays as deep as it is.
    """
    deeper: dict[str, T] = {}
    for name, value in values.items():
        found = None if name.startswith("losses.") else _LAYER.match(name)
        if found is None:
            deeper[name] = value
            continue
        before, number, after = found.groups()
        for layer in range(int(number), to, layers):
            deeper[f"{before}{layer}{after}"] = value
    return deeper
