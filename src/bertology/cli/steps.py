"""`bertology steps MODEL`: any measure of any study over the steps of a training run."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from bertology.cli.command import command
from bertology.cli.console import say
from bertology.cli.option_groups import (
    MODEL_HELP,
    CorpusOptions,
    DeviceOptions,
    EngineOptions,
    StoreOptions,
)
from bertology.cli.typer_options import argument, required
from bertology.errors import ParameterError, UnknownNameError
from bertology.parameters import flag, following, parameter

if TYPE_CHECKING:
    from bertology.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class StepsOptions(EngineOptions, StoreOptions, CorpusOptions, DeviceOptions):
    """The options of `steps`."""

    panel: ClassVar[str | None] = None
    model: str = argument(f"{MODEL_HELP} It must have kept steps of its training.")
    study: str = required("The study that measures, such as token-classes.")
    measure: str = parameter(
        "",
        "A quantity or a measure of the study, such as sep_weight. If not given: those that the "
        "study itself would follow, such as every task of edge-probes.",
    )
    at: str = parameter("", "Of a measure: a head (3.7), a layer (5), or max for the largest.")
    steps: tuple[int, ...] = parameter((), "Only these steps; all that were kept if not given.")
    parameters: tuple[str, ...] = parameter(
        (), "Parameters of the study, as level=0.99,tasks=pos,relation.", option="set"
    )
    force: bool = flag("Compute again, even if results are stored.")


@command(
    "steps",
    [StepsOptions],
    examples=[
        "bertology steps bertology-mini --study token-classes --measure sep_weight "
        "--corpus grammar --limit 200",
        "bertology steps bertology-mini --study minimal-pairs --measure pair_accuracy "
        "--corpus grammar-agreement --limit 200",
        "bertology steps bertology-mini --study edge-probes --corpus grammar --limit 300 "
        "--set tasks=pos,relation",
        "bertology steps my-run --study outlier-dimensions --measure largest_sigma "
        "--corpus grammar --set draws=0",
    ],
    needs_input=True,
)
def steps(options: StepsOptions) -> None:
    """Draw a measure of a study over the steps of a training run, and say when it emerges.

    The study is run at each step that was kept; steps whose result is stored are not measured
    again.
    """
    from bertology.cli.results import show_result
    from bertology.run.loading import ModelSource
    from bertology.run.over_steps import over_steps
    from bertology.studies.joins.training_steps import TrainingSteps

    session = options.session(options.store, force=options.force)
    results = over_steps(
        options.study,
        _study(options),
        session,
        model=ModelSource(options.model, device=options.device),
        corpus=options.load_corpus("steps"),
        join=TrainingSteps(measure=options.measure, at=options.at, steps=options.steps),
        notify=lambda text: say(f"{options.study}: {text}"),
    )
    for result in results:
        show_result(result)
        folder = session.store.folder(result.provenance)
        say(f"Result:  {folder}")
        say(f"Figures: {folder}/figures/ ({', '.join(result.figures())})")


def _study(options: StepsOptions) -> Study:
    """The study with the parameters of --set, which are read as JSON where they can be.

    What has no name belongs to the list before it: tasks=pos,relation.
    """
    from bertology.studies import STUDIES

    kind = STUDIES.get(options.study)
    known = {f.name: f for f in fields(kind)}
    given: dict[str, object] = {}
    last: list[object] | None = None  # the list that may go on
    for pair in options.parameters:
        name, equals, text = pair.partition("=")
        name = name.replace("-", "_")
        if not equals and last is not None:
            last.append(_read(pair))
            continue
        if not equals:
            raise ParameterError("--set", "steps", "be pairs such as level=0.99", pair)
        if name not in known:
            hint = f"See: bertology run {options.study} --help"
            raise UnknownNameError(f"parameter of {options.study!r}", name, known, hint=hint)
        last = [_read(text)] if isinstance(known[name].default, tuple) else None
        given[name] = _read(text) if last is None else last
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return kind(**(following(kind, {"limit": options.limit}) | given | lists))


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
