"""The questions. Every file or folder in a topic folder is a study, whose name is the study's name.

A topic folder is a package here that says what it is about in `TOPIC`; `joins/` holds what is
combined from the results of studies. A study of one file is that file; a larger one is a folder
whose `__init__.py` holds the study, and whose other modules are what only it uses. What two
studies of one topic share lies in the folder of the older one or in the topic's `shared/`, which is
the one name in a topic that is no study. `designs/` holds the shapes of experiments that studies of
different topics share. `tests/unit/test_studies_are_tested.py` holds this.

A study is a frozen dataclass whose fields are its parameters, and says:

- question, method, source, limits: the class's docstring; help, docs and atlas show it
- parameters with limits and help: fields; common ones come from the design; those that only
  conclude (`level`, `resamples`, margins, what is drawn) are declared so, and cannot be read while
  measuring
- what the model and corpus must have: `needs`, checked before any work
- the work that needs the model: `measure`, part by part, labelled arrays
- statistics: `conclude`: `gather` reads the parts, `head_table` makes tables, `self.result` keeps
  them, with `evidence=` and `reasons=` (what claims are judged on: the number that is stated,
  `Estimate.with_controls` of what else could make it) and `compared=` (by which numbers two models
  are compared, with rows to pair; `compared_over`: the data that both are asked over)
- the answer in one sentence: `Result.answer`, of pieces in `results/answers.py`
- what it says of heads and layers: `Result.measures()`: values, unit, bounds, what is sure
- figures with captions: `Result.drawings()`

Parts are pure functions of model, corpus and parameters: that makes runs resumable, spreads them
over workers, and lets conclusions be drawn without a model. Memory hardly grows with examples:
`gather` holds little of each part and spools the rest to a temporary file.

A join names its `sources` and combines their results; plans, pages and the atlas treat its result
like any other. `training-steps` takes results of any one study at several steps of a training run
(`bertology steps` measures those that are not stored), `model-sizes` those of several models,
`variant-tasks` those of one model on several tasks; `bertology join NAME ID …` makes any of them.
"""

from __future__ import annotations

import inspect
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from bertology.registry import Registry
from bertology.results.result import Result, find_kinds_with
from bertology.studies.join import Join
from bertology.studies.study import Question, Study

if TYPE_CHECKING:
    import pandas as pd

SHARED = "shared"
"""The folder of a topic that holds no study, but what studies of the topic share."""


def topics() -> dict[str, str]:
    """The topic folders, and what each is about."""
    packages = [m.name for m in pkgutil.iter_modules(__path__) if m.ispkg]
    found = {name: getattr(import_module(f"{__name__}.{name}"), "TOPIC", "") for name in packages}
    return {name: about for name, about in found.items() if about}


def topic_of(kind: type[Study]) -> str:
    """What the topic of a study is about; those of installed packages have one of their own."""
    parent, _, folder = kind.__module__.rpartition(".")[0].rpartition(".")
    return topics()[folder] if parent == __name__ else "From installed packages"


def _modules_of(package: str) -> Iterator[tuple[str, str]]:
    """Name and target of each study of a folder: `head_ablation` holds `HeadAblation`."""
    home = f"{__name__}.{package}"
    for module in pkgutil.iter_modules(import_module(home).__path__):
        if module.name == SHARED:
            continue
        kind = "".join(word.capitalize() for word in module.name.split("_"))
        yield module.name.replace("_", "-"), f"{home}.{module.name}:{kind}"


def _studies() -> Mapping[str, str]:
    return {name: target for topic in topics() for name, target in _modules_of(topic)}


_REPLACED = {
    "norm-outliers": "It is now outlier-dimensions, which also disables them: bertology run "
    "outlier-dimensions --corpus grammar. With --draws 0 it only looks for them, as before.",
    "token-to-token": "It is now syntax-heads, which takes the same relations and more: bertology "
    "run syntax-heads. What [CLS] attends to is a study of its own: bertology run cls-attention",
}
"""Studies of before, and where their questions went."""


def _elsewhere(name: str) -> str:
    if name in _REPLACED:
        return _REPLACED[name]
    if name not in JOINS:
        return ""
    kind = JOINS.get(name)
    sources = ", ".join(kind.sources) or "any study"
    return f"{name} is not run on a model: it combines stored results of {sources}. {kind.made_by}"


STUDIES: Registry[type[Study]] = Registry(
    "study", group="bertology.studies", builtin=_studies, elsewhere=_elsewhere
)
JOINS: Registry[type[Join]] = Registry(
    "join", group="bertology.joins", builtin=lambda: dict(_modules_of("joins"))
)


def needs_of(kind: type[Study]) -> str:
    """What a study needs of model and corpus, in a few words."""
    head = kind.needs.head
    needs = [f"head {head}"] if head not in ("base", "saved") else []
    needs += ["a task"] if kind.needs.task else []
    return ", ".join([*needs, *sorted(kind.needs.fields)])


def table() -> pd.DataFrame:
    """The studies: name, question, what each needs, and its topic."""
    import pandas as pd

    kinds = {name: STUDIES.get(name) for name in STUDIES.names()}
    rows = [
        (name, (inspect.getdoc(kind) or "").partition("\n")[0], needs_of(kind), topic_of(kind))
        for name, kind in kinds.items()
    ]
    return pd.DataFrame(rows, columns=["study", "question", "needs", "topic"]).set_index("study")


class _CallablePackage(ModuleType):
    """As `bertology.run`: Python puts this package under the name of the function `bt.studies`."""

    __call__ = staticmethod(table)


sys.modules[__name__].__class__ = _CallablePackage


def find_question(name: str) -> type[Question]:
    """The study or the join called `name`."""
    return JOINS.get(name) if name in JOINS else STUDIES.get(name)


def _kind_of_result(name: str) -> type[Result]:
    return find_question(name).result_type


# Stored results are read as what their study made them.
find_kinds_with(_kind_of_result)
