"""Papers done again: what is run, in which order, and the page that lays it beside the paper."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bertology import papers
from bertology.registry import Registry

if TYPE_CHECKING:
    from bertology.reproduce.paper import Reproduction

__all__ = ["REPRODUCTIONS"]


def _built_in() -> Mapping[str, str]:
    return {
        m.name.replace("_", "-"): f"{papers.__name__}.{m.name}:REPRODUCTION"
        for m in pkgutil.iter_modules(papers.__path__)
    }


REPRODUCTIONS: Registry[Reproduction] = Registry(
    "reproduction", group="bertology.papers", builtin=_built_in
)
