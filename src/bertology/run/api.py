"""`bertology.run`: the one verb."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, ParameterError, UnknownNameError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.quiet import hush
from bertology.run.engine import Engine
from bertology.run.local import LocalEngine, cores
from bertology.run.others import names_instead
from bertology.run.progress import Progress, choose_progress
from bertology.run.session import Session
from bertology.studies import STUDIES
from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.results.result import Result
    from bertology.results.store import Store

__all__ = ["ENGINES", "make_engine", "run"]

_OF_CORPORA = ("limit", "split", "root", "columns")  # options of the command line

ENGINES = ("local", "ray")


def run(
    study: str | type[Study[Any]] | Study[Any],
    encoder: Encoder | str = DEFAULT_MODEL,
    *,
    task: str | Corpus | None = None,
    corpus: str | Corpus | None = None,
    store: Store | str | None = None,
    engine: str | Engine = "local",
    workers: int = 1,
    force: bool = False,
    progress: bool | Progress | None = None,
    **parameters: Any,
) -> Result:
    """Ask a study's question of a model; what was answered before is not computed again.

    Args:
        study: A study's name (`"head-ablation"`), its class, or one with its parameters set.
        encoder: A loaded encoder, or a name or folder to load with the head the study needs;
            by default the bundled `bertology-mini`.
        task: The name of a corpus that poses a task (`"mrpc"`), or the corpus itself.
        corpus: The same for a corpus that need not pose a task. Give at most one of the two.
        store: A store or its URL; by default the folder `results`.
        engine: `"local"`, `"ray"`, or an engine of your own.
        workers: Worker processes; 1 works in this process. Each worker holds the model.
        force: Do the work again even if the result is in the store.
        progress: Show a bar; by default only on a terminal.
        **parameters: The study's own parameters. One that names another model may also be given
            an encoder.

    Returns:
        The study's result, which is also in the store. An interrupted run is resumed by the same
        call: parts that were finished are not measured again.

    Example:
        >>> result = bt.run("attention-maps", corpus="grammar")  # doctest: +SKIP
    """
    hush()
    from bertology.results.store import Store

    name, made, others = resolve_study(study, parameters)
    if task is not None and corpus is not None:
        raise ParameterError("corpus", "run", "be left out when 'task' is given", corpus)
    chosen = resolve_corpus(task if corpus is None else corpus, poses_task=task is not None)
    session = Session(
        store=store if isinstance(store, Store) else Store() if store is None else Store(store),
        engine=make_engine(engine, workers=workers),
        progress=choose_progress(progress),
        force=force,
        cpus=max(1, cores() // max(1, workers)),
    )
    return session.run(name, made, resolve_encoder(encoder, made), chosen, others=others)


def resolve_study(
    study: str | type[Study[Any]] | Study[Any], parameters: dict[str, Any]
) -> tuple[str, Study[Any], dict[str, Encoder]]:
    """The study's name, the study with its parameters checked, and the models among them."""
    if isinstance(study, Study):
        if parameters:
            raise ParameterError(
                "study", "run", "be a name or a class when parameters are given", study
            )
        return _name_of(type(study)), study, {}
    name, kind = (study, STUDIES.get(study)) if isinstance(study, str) else ("", study)
    name = name or _name_of(kind)
    known = [f.name for f in fields(kind)]
    for given in parameters:
        if given not in known:
            hint = f"See: bertology run {name} --help"
            if given in _OF_CORPORA:
                hint = f"Give it to load_corpus: corpus=bt.load_corpus(…, {given}=…)."
            raise UnknownNameError(f"parameter of {name!r}", given, known, hint=hint)
    plain, others = names_instead(kind, parameters)
    return name, kind(**plain), others


def _name_of(kind: type[Study[Any]]) -> str:
    for name in STUDIES.names():
        if STUDIES.get(name) is kind:
            return name
    # A class that was never registered (a notebook's): HeadAblation is head-ablation.
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in kind.__name__).strip("-")


def resolve_corpus(given: str | Corpus | None, *, poses_task: bool) -> Corpus | None:
    """The corpus itself, loaded if it was named."""
    if given is None:
        return None
    if isinstance(given, str):
        from bertology.data.loading import load_corpus

        given = load_corpus(given)
    if not isinstance(given, Corpus):
        raise ParameterError(
            "task" if poses_task else "corpus",
            "run",
            "be a name, a path or a Corpus; save texts of your own in a file, one a line",
            type(given).__name__,
        )
    if poses_task and given.task is None:
        raise CapabilityError(
            f"{given.name!r} poses no task: it has {', '.join(sorted(given.fields))} and no label.",
            hint="Say which column holds the labels, as in label='gold' (--columns label=gold). "
            "A study that needs none takes it as corpus= (--corpus). See which corpora pose a task "
            "with: bertology datasets",
        )
    return given


def resolve_encoder(given: Encoder | str, study: Study[Any]) -> Encoder:
    """The encoder itself, loaded with the head the study needs if it was named."""
    if isinstance(given, str):
        from bertology.model.encoder import Encoder

        return Encoder.load(given, head=study.needs.head)
    return given


def make_engine(given: str | Engine, *, workers: int = 1) -> Engine:
    """The engine called `local` or `ray`, or the one that was given."""
    if not isinstance(given, str):
        return given
    if given == "local":
        return LocalEngine(workers=workers)
    if given == "ray":
        from bertology.run.ray import RayEngine

        return RayEngine(workers=workers)
    raise UnknownNameError("engine", given, ENGINES)
