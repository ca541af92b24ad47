"""The tasks of GLUE and a few of their kin: the labels' order and the official scores.

Class ids follow the published convention of GLUE on the Hugging Face hub, so that a checkpoint
fine-tuned elsewhere predicts the classes we think it does.
"""

from __future__ import annotations

from bertology.data.corpus import Task
from bertology.errors import UnknownNameError

_ENTAILMENT = ("entailment", "not_entailment")
_CORRELATIONS = ("pearson", "spearman")

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("cola", "classification", ("unacceptable", "acceptable"), ("matthews", "accuracy")),
        Task("sst-2", "classification", ("negative", "positive"), ("accuracy",)),
        Task(
            "mrpc",
            "classification",
            ("not_equivalent", "equivalent"),
            ("f1", "accuracy"),
            pair=True,
        ),
        Task("sts-b", "regression", (), _CORRELATIONS, pair=True),
        Task(
            "qqp", "classification", ("not_duplicate", "duplicate"), ("f1", "accuracy"), pair=True
        ),
        Task(
            "mnli",
            "classification",
            ("entailment", "neutral", "contradiction"),
            ("accuracy",),
            pair=True,
        ),
        Task("qnli", "classification", _ENTAILMENT, ("accuracy",), pair=True),
        Task("rte", "classification", _ENTAILMENT, ("accuracy",), pair=True),
        # WNLI alone counts entailment as class 1.
        Task("wnli", "classification", ("not_entailment", "entailment"), ("accuracy",), pair=True),
        Task("hans", "classification", ("entailment", "non-entailment"), ("accuracy",), pair=True),
    )
}


def plain_name(name: str) -> str:
    """A name without case, hyphens and underscores: `SST-2`, `sst2` and `sst_2` are one."""
    return name.lower().replace("-", "").replace("_", "")


def get_task(name: str) -> Task:
    """The task called `name` in any usual spelling; an UnknownNameError offers the nearest."""
    for task in TASKS.values():
        if plain_name(task.name) == plain_name(name):
            return task
    raise UnknownNameError("task", name, TASKS)
