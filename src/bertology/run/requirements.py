"""Checks, before any work, that model and corpus have what a study needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bertology.errors import CapabilityError
from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus, Task
    from bertology.model.encoder import Encoder

_LABELLED_HEADS = {"classification", "token-classification"}


def check_needs(
    name: str, study: Study, encoder: Encoder, corpus: Corpus | None
) -> dict[str, object] | None:
    """Refuse, with the reason, a model and corpus on which the study cannot run.

    Returns how the corpus's labels are matched with the model's; None where none are needed.
    """
    check_model(name, study, encoder)
    check_corpus(name, study, corpus)
    if corpus is not None:
        encoder.require_tokenizer()
    head = encoder.head if study.needs.head == "saved" else study.needs.head
    task = None if corpus is None else study.task_for(encoder, corpus)
    match = None
    if head in _LABELLED_HEADS and corpus is not None and task is not None:
        _check_labels(encoder, task)
        match = _label_match(encoder, corpus, task) if head == "classification" else None
    given: Any = corpus  # one that needs no fields may get none
    study.check(encoder, given)
    return match


def check_model(name: str, study: Study, encoder: Encoder) -> None:
    """The checks of `check_needs` for the model."""
    if encoder.standing:
        raise CapabilityError(
            f"Study {name!r} was started inside `with encoder.doing(…)`: its result would be "
            "stored under the name of the unchanged model.",
            hint="Run it outside of the block, or on a model that was saved with the change.",
        )
    missing = sorted(study.needs.capabilities - {str(c) for c in encoder.capabilities})
    if missing:
        raise CapabilityError(
            f"Study {name!r} needs {', '.join(missing)}, which the {encoder.family.title} model "
            f"{encoder.name!r} does not support.",
            hint="See what each family supports with: bertology families",
        )
    head = study.needs.head
    if head not in ("base", "saved", encoder.head):
        raise CapabilityError(
            f"Study {name!r} needs a model with the head {head!r}; {encoder.name!r} was loaded "
            f"with {encoder.head!r}.",
            hint=f"Load it with: bt.load({encoder.name!r}, head={head!r})",
        )


def check_corpus(name: str, study: Study, corpus: Corpus | None) -> None:
    """The checks of `check_needs` for the corpus, which can come before the model is loaded."""
    needs = study.needs
    if corpus is None:
        if needs.task or needs.fields:
            what = "a task" if needs.task else f"a corpus with {', '.join(sorted(needs.fields))}"
            raise CapabilityError(
                f"Study {name!r} needs {what}; none was given.",
                hint="Give one by name, as in task='grammar-entailment' (--task "
                "grammar-entailment) or corpus='grammar' (--corpus grammar), which are bundled. "
                "See all with: bertology datasets",
            )
        return
    if needs.task and corpus.task is None:
        raise CapabilityError(
            f"Study {name!r} needs a corpus with a task; {corpus.name!r} has none.",
            hint="See which corpora have a task with: bertology datasets",
        )
    missing = sorted(needs.fields - {str(f) for f in corpus.fields})
    if missing:
        have = ", ".join(sorted(str(f) for f in corpus.fields)) or "none"
        raise CapabilityError(
            f"Study {name!r} needs the fields {', '.join(missing)}, which the corpus "
            f"{corpus.name!r} lacks.",
            hint=f"It has: {have}. See the fields of other corpora with: bertology datasets",
        )


def _label_match(encoder: Encoder, corpus: Corpus, task: Task) -> dict[str, object] | None:
    """Refuses, with the option that says it, labels of which it is not clear what they are."""
    found = encoder.match_labels(task.labels, ordered=task.ordered)
    if not found.by:
        return None
    renamed = corpus.origin.get("labels")  # the reader knows the names that the file has
    own = {new: old for old, new in renamed.items()} if isinstance(renamed, Mapping) else {}
    pairs = [(own.get(label, label), name) for label, name in found.pairs]
    return {"by": found.by, "pairs": pairs}


def _check_labels(encoder: Encoder, task: Task) -> None:
    given = getattr(encoder.model.config, "num_labels", None)
    wanted = 1 if task.kind == "regression" else len(task.labels)
    if given is None or not wanted or given == wanted:
        return
    raise CapabilityError(
        f"The task {task.name!r} has {wanted} {'output' if wanted == 1 else 'labels'}; the model "
        f"{encoder.name!r} gives {given}.",
        hint="Use a model that was fine-tuned on this task.",
    )
