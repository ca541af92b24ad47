"""`bertology.run`, and the one place that turns options into a session and loads what it needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import ParameterError, UnknownNameError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import KEEP_PARTS, following, size_of
from bertology.quiet import hush
from bertology.run.at_hand import ModelAtHand
from bertology.run.engine import Engine
from bertology.run.loading import LOADING, Data, ModelSource, resolve_corpus
from bertology.run.local import LocalEngine, cores
from bertology.run.others import separate_models
from bertology.run.progress import Progress, choose_progress
from bertology.run.requirements import check_corpus
from bertology.run.session import Session
from bertology.studies import STUDIES
from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.results.result import Result
    from bertology.results.store import Store

ENGINES = ("local", "ray")


def run(
    study: str | type[Study] | Study,
    encoder: Encoder | str | Path = DEFAULT_MODEL,
    *,
    task: str | Path | Corpus | None = None,
    corpus: Data | None = None,
    columns: Mapping[str, str] | None = None,
    languages: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    limit: int | None = None,
    split: str | None = None,
    root: str | Path | None = None,
    store: Store | str | None = None,
    engine: str | Engine = "local",
    workers: int = 1,
    batch_tokens: int | None = None,
    force: bool = False,
    progress: bool | Progress | None = None,
    keep_parts: str = KEEP_PARTS,
    **parameters: object,
) -> Result:
    """Run a study on a model and return its result; a stored result is not computed again.

    Args:
        study: A study's name (`"head-ablation"`), its class, or one with its parameters set.
        encoder: A loaded encoder, or a name or folder to load with the head the study needs;
            by default the bundled `bertology-mini`.
        task: A corpus with a task: its name (`"mrpc"`), a path, a hub id, or the corpus itself.
        corpus: The same for a corpus that needs no task, or your own texts: a list of texts or of
            pairs of texts. Give at most one of the two.
        columns: For your own file: which column holds which field, as
            `{"text": "review", "label": "stars"}`.
        languages: Of data in several languages, those to read, by their codes: `["de", "fr"]`.
        labels: What the model calls the labels of the data, where the two differ:
            `{"good": "positive", "poor": "negative"}`. The result says how they were matched.
        limit: So many examples, drawn at random; all if not given.
        split: The part of a named corpus, such as `"test"`.
        root: The folder with downloaded corpora.
        store: A store or its URL; by default the folder `results`.
        engine: `"local"`, `"ray"`, or your own engine.
        workers: Worker processes; with 1, this process does the work. Each worker holds the model.
        batch_tokens: Tokens in one batch; fewer need less memory. By default chosen for the device.
        force: Compute again, even if the result is in the store.
        progress: Show a progress bar; by default on a terminal and in a notebook, and elsewhere
            a line every 30 seconds on standard error.
        keep_parts: What was measured stays in the store: `"all"`, `"none"`, or measurements of at
            most so many bytes, as `"500MB"`. What stays is concluded again without the model.
        **parameters: The study's own parameters; for one that names another model you may also
            give an encoder. And how a named `encoder` is loaded, as `bt.load` takes it: `device`,
            `dtype`, `num_labels`, `allow_pickle`, `trust_remote_code`.

    Returns:
        The study's result, which is also in the store. To continue an interrupted run, repeat
        the call: finished parts are not measured again.

    Example:
        >>> result = bt.run("attention-maps", corpus="grammar")  # doctest: +SKIP
    """
    hush()
    model = _source(encoder, {n: parameters.pop(n) for n in LOADING if n in parameters})
    if not isinstance(study, Study):
        kind = STUDIES.get(study) if isinstance(study, str) else study
        parameters = following(kind, {"limit": limit}) | parameters
    name, made, others = resolve_study(study, parameters)
    if task is not None and corpus is not None:
        raise ParameterError("corpus", "run", "be left out when 'task' is given", corpus)
    data = task if corpus is None else corpus
    asked: dict[str, object] = {
        "limit": limit, "split": split, "root": root, "labels": labels, "columns": columns,
        "languages": languages or None,
    }  # fmt: skip
    chosen = None
    if data is not None:
        chosen = _chosen(
            data, task is not None, **{k: v for k, v in asked.items() if v is not None}
        )
    session = make_session(
        store,
        engine=engine,
        workers=workers,
        force=force,
        batch_tokens=batch_tokens,
        progress=progress,
        keep_parts=keep_parts,
    )
    return run_study(name, made, session, model=model, corpus=chosen, others=others)


def _chosen(data: Data, needs_task: bool, **asked: Any) -> Corpus:
    """The corpus of a call; one that is loaded already can only be drawn from."""
    if not isinstance(data, str | Path):
        for name in asked:
            if name not in ("limit", "labels"):
                must = "be left out where the corpus is loaded already"
                raise ParameterError(name, "run", must, asked[name])
    return resolve_corpus(data, must_have_task=needs_task, **asked)


def _source(encoder: Encoder | str | Path, loading: dict[str, Any]) -> Encoder | ModelSource:
    """The model of a call; one that is loaded already cannot be loaded otherwise."""
    if isinstance(encoder, str | Path):
        return ModelSource(str(encoder), **loading)
    for name, value in loading.items():
        must = "be left out where the encoder is loaded already"
        raise ParameterError(name, "run", must, value)
    return encoder


def run_study(
    name: str,
    study: Study,
    session: Session,
    *,
    model: Encoder | ModelSource,
    corpus: Corpus | None,
    others: Mapping[str, Encoder] | None = None,
    notify: Callable[[str], None] | None = None,
) -> Result:
    """Run the study, and tell `notify` what limits the result; load only what must be measured.

    Without `notify` the notes are Python warnings.
    """
    check_corpus(name, study, corpus)  # before a model is loaded, which takes longer
    if isinstance(model, ModelSource):
        asked: Encoder | ModelAtHand = ModelAtHand(model, study.needs.head, session.store)
    else:
        asked = model
    return session.run(name, study, asked, corpus, others=others, notify=notify or _warn)


def make_session(
    store: Store | str | None = None,
    *,
    engine: str | Engine = "local",
    workers: int = 1,
    force: bool = False,
    batch_tokens: int | None = None,
    progress: bool | Progress | None = None,
    keep_parts: str = KEEP_PARTS,
    command: str | None = None,
) -> Session:
    """A session from the options that `run` and the commands take; see `run` for each of them.

    `batch_tokens` is the size of a batch, and `command` the command line, for hints and provenance.
    """
    from bertology.results.store import Store

    return Session(
        engine=make_engine(engine, workers=workers),
        store=store if isinstance(store, Store) else Store() if store is None else Store(store),
        progress=choose_progress(progress),
        force=force,
        batch_tokens=batch_tokens,
        cpus=max(1, cores() // max(1, workers)),
        keep_parts=size_of(keep_parts),
        command=command,
    )


def _warn(note: str) -> None:
    warnings.warn(note, stacklevel=5)  # where the user called `run`


def resolve_study(
    study: str | type[Study] | Study, parameters: dict[str, object]
) -> tuple[str, Study, dict[str, Encoder]]:
    """The study's name, the study itself, and the encoders that were given as parameters."""
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
            raise UnknownNameError(f"parameter of {name!r}", given, known, hint=hint)
    plain, others = separate_models(kind, parameters)
    return name, kind(**plain), others


def _name_of(kind: type[Study]) -> str:
    for name in STUDIES.names():
        if STUDIES.get(name) is kind:
            return name
    # A class that is not registered, as in a notebook: HeadAblation is head-ablation.
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in kind.__name__).strip("-")


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
