"""The tasks of GLUE and a few of their kin: the labels' order and the official scores.

Class ids follow the published convention of GLUE on the Hugging Face hub, so that a checkpoint
fine-tuned elsewhere predicts the classes we think it does.
"""

from __future__ import annotations

from dataclasses import replace

from bertology.data.corpus import Corpus, Task
from bertology.errors import CapabilityError, UnknownNameError

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


# Tasks of inference with two and with three labels, read as one task.

THREE_WAY = ("entailment", "neutral", "contradiction")
TWO_WAY = ("entailment", "not_entailment")
_KNOWN = {*THREE_WAY, "notentailment", "nonentailment"}


def has_neutral(corpus: Corpus) -> bool:
    """Whether a corpus of inference tells neutral pairs from contradictions."""
    return len(_labels(corpus)) == len(THREE_WAY)


def is_inference(corpus: Corpus) -> bool:
    """Whether a corpus asks what follows from a text, in two labels or in three."""
    try:
        return bool(_labels(corpus))
    except CapabilityError:
        return False


def inference_corpus(corpus: Corpus, *, three_way: bool) -> Corpus:
    """The corpus with the labels of `THREE_WAY`, or of `TWO_WAY`, in their order.

    With two labels, what is neutral or contradicted is not entailed.
    """
    own = _labels(corpus)
    if three_way and len(own) != len(THREE_WAY):
        raise CapabilityError(
            f"Corpus {corpus.name!r} has {len(own)} labels; three are needed: "
            f"{', '.join(THREE_WAY)}."
        )
    wanted = THREE_WAY if three_way else TWO_WAY
    places = [wanted.index(label) if label in wanted else 1 for label in own]
    examples = [replace(e, label=places[int(e.get("label"))]) for e in corpus]
    task = Task("inference", "classification", wanted, ("accuracy",), pair=True)
    return replace(corpus, examples=examples, task=task, origin={}, drawn_from=None)


def _labels(corpus: Corpus) -> list[str]:
    """The corpus's labels in plain spelling; refused where they are not those of inference."""
    task = corpus.task
    named = () if task is None else task.labels
    plain = [plain_name(label) for label in named]
    two = len(plain) == len(TWO_WAY) and "entailment" in plain
    three = set(plain) == set(THREE_WAY)
    if not (two or three) or not _KNOWN.issuperset(plain) or task is None or not task.pair:
        raise CapabilityError(
            f"Corpus {corpus.name!r} is no task of inference: its labels are "
            f"{', '.join(named) or 'none'}.",
            hint=f"Give pairs of texts with the labels {', '.join(THREE_WAY)}, or "
            f"{' and '.join(TWO_WAY)}; --labels renames those of your data.",
        )
    return plain
