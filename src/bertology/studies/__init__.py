"""The questions. One file each; the file name is the study's name."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from bertology.registry import Registry
from bertology.results.result import Result, find_kinds_with
from bertology.studies.study import Study

__all__ = ["JOINED", "STUDIES"]

# Results that join stored ones; nothing is run.
JOINED = {
    "head-profile": "bertology.studies.head_profile:HeadProfileResult",
    "task-comparison": "bertology.studies.task_comparison:TaskComparisonResult",
}
_NOT_STUDIES = {
    "study",
    "blocks",
    "checks",
    "trials",
    "answers",
    "map_examples",
    "answered",
    "spooled",
    *(n.replace("-", "_") for n in JOINED),
}


def _built_in() -> Mapping[str, str]:
    modules = (m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_STUDIES)
    return {
        m.replace("_", "-"): f"{__name__}.{m}:{''.join(w.capitalize() for w in m.split('_'))}"
        for m in modules
    }


STUDIES: Registry[type[Study[Any]]] = Registry(
    "study",
    group="bertology.studies",
    builtin=_built_in,
    elsewhere=dict.fromkeys(
        JOINED,
        "It joins results of other studies and is not run: `bertology reproduce dark-secrets` and "
        "`bertology verify` make it.",
    ),
)


def _kind_of_result(name: str) -> type[Result]:
    if name in JOINED:
        module, _, kind = JOINED[name].partition(":")
        found: type[Result] = getattr(import_module(module), kind)
        return found
    return STUDIES.get(name).result_type


# Stored results are read as what their study made them.
find_kinds_with(_kind_of_result)
