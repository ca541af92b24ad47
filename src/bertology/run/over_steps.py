"""A study at every step of a training run: each result is stored, and the curve made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bertology.errors import ModelError, ParameterError
from bertology.model.loading.names import home_of, steps
from bertology.run.api import run_study
from bertology.run.loading import ModelSource
from bertology.studies.joins.training_steps import TrainingSteps

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.results.result import Result
    from bertology.run.session import Session
    from bertology.studies.study import Study


def steps_of(model: str, chosen: Sequence[int] = ()) -> dict[int, str]:
    """The names of a model at its training steps, the finished model last where its step is known.

    `chosen` are those to take; all if none are given.
    """
    found = {step: f"{model}@{step}" for step in steps(model)}
    last = _last_step(model)
    if last is not None:
        found[last[0]] = last[1]
    wrong = [step for step in chosen if step not in found]
    if wrong:
        must = f"be of {', '.join(map(str, sorted(found)))}"
        raise ParameterError("steps", "over_steps", must, wrong[0])
    kept = {step: found[step] for step in sorted(found) if not chosen or step in chosen}
    if len(kept) < 2:
        raise ModelError(
            f"{model!r} has {len(kept)} training steps to compare; a curve needs two or more.",
            hint="Pre-train with `milestones` in the recipe, which keeps steps on the way.",
        )
    return kept


def _last_step(model: str) -> tuple[int, str] | None:
    """The finished model and its step, by the record that pre-training left."""
    from bertology.train.checkpoint import read_record

    home = home_of(model)
    record = None if home is None else read_record(home)
    step = None if record is None else record.get("step")
    # A run's folder is no model; the model in it is.
    name = model if home is None or home.name != "model" else str(home)
    return None if step is None else (int(step), name)


def over_steps(
    name: str,
    study: Study,
    session: Session,
    *,
    model: ModelSource,
    corpus: Corpus | None,
    join: TrainingSteps,
    notify: Callable[[str], None] | None = None,
) -> list[Result]:
    """Run the study at the steps of `join`, or at all there are, and combine what it measured.

    One result for the measure that `join` names, or for each that the study itself would follow. A
    step whose result is stored is not measured again. What cannot be read off the first result is
    refused before the other steps are measured.
    """
    named = steps_of(model.name, join.steps)
    results: list[Result] = []
    for step, at_step in named.items():
        if notify is not None:
            notify(f"step {step:,}")
        source = replace(model, name=at_step)
        results.append(run_study(name, study, session, model=source, corpus=corpus))
        if len(results) == 1:
            asked = _asked(results[0], join)
    found = [replace(one, steps=tuple(named)).join(results) for one in asked]
    for result in found:
        session.store.save(result)
    return found


def _asked(result: Result, join: TrainingSteps) -> list[TrainingSteps]:
    """The join for the measure that it names, or for all that the study would follow."""
    followed = [
        replace(join, measure=one.measure, at=one.at)
        for one in result.over_training()
        if not join.measure
    ]
    asked = followed or [join]
    for one in asked:
        one.value(result)
    return asked
