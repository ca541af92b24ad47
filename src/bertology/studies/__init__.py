"""The questions. Every file in a topic folder is a study; the file name is the study's name.

A topic folder is a package here that says what it is about in `TOPIC`. `joins/` holds what is
combined from the results of studies; `designs/` holds the shapes of experiments that they share.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from bertology.registry import Registry
from bertology.results.result import Result, find_kinds_with
from bertology.studies.study import Study

__all__ = ["JOINED", "STUDIES", "topics"]

# Results that join stored ones; nothing is run.
JOINED = {
    "head-profile": "bertology.studies.joins.head_profile:HeadProfileResult",
    "task-comparison": "bertology.studies.joins.task_comparison:TaskComparisonResult",
}


def topics() -> dict[str, str]:
    """The topic folders, and what each is about."""
    packages = [m.name for m in pkgutil.iter_modules(__path__) if m.ispkg]
    found = {name: getattr(import_module(f"{__name__}.{name}"), "TOPIC", "") for name in packages}
    return {name: about for name, about in found.items() if about}


def _modules_of(package: str) -> Iterator[tuple[str, str]]:
    """Name and target of each file of a folder: `head_ablation.py` holds `HeadAblation`."""
    home = f"{__name__}.{package}"
    for module in pkgutil.iter_modules(import_module(home).__path__):
        kind = "".join(word.capitalize() for word in module.name.split("_"))
        yield module.name.replace("_", "-"), f"{home}.{module.name}:{kind}"


def _built_in() -> Mapping[str, str]:
    return {name: target for topic in topics() for name, target in _modules_of(topic)}


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
