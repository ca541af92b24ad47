"""The questions. One file each; the file name is the study's name."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any

from bertology.registry import Registry
from bertology.results.result import Result, find_kinds_with
from bertology.studies.study import Study

__all__ = ["STUDIES"]

_NOT_STUDIES = {"study", "checks", "trials", "head_profile"}


def _built_in() -> Mapping[str, str]:
    modules = (m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_STUDIES)
    return {
        m.replace("_", "-"): f"{__name__}.{m}:{''.join(w.capitalize() for w in m.split('_'))}"
        for m in modules
    }


STUDIES: Registry[type[Study[Any]]] = Registry(
    "study", group="bertology.studies", builtin=_built_in
)


def _kind_of_result(name: str) -> type[Result]:
    if name == "head-profile":  # joins stored results; nothing is run
        from bertology.studies.head_profile import HeadProfileResult

        return HeadProfileResult
    return STUDIES.get(name).result_type


# Stored results are read as what their study made them.
find_kinds_with(_kind_of_result)
