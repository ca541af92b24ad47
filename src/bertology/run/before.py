"""The model before fine-tuning, where a study compares with it and nobody has named it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from bertology.errors import BertologyError, ModelError, ParameterError
from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder


def find_before(
    study: Study,
    encoder: Encoder,
    given: Mapping[str, Encoder],
    *,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> tuple[Study, dict[str, Encoder]]:
    """The study with its parameters `before` filled in, and the models that they name.

    A parameter declared with `before=True` that names no model means the one that `encoder` was
    fine-tuned from, as its record says. It must still be what it was. With `before="if known"` it
    may stay empty: where no such model is recorded, or it is not here as it was.
    """
    from bertology.model.encoder import Encoder

    found = dict(given)
    for f in fields(study):
        if not f.metadata.get("before") or getattr(study, f.name):
            continue
        if_known = f.metadata["before"] == "if known"
        try:
            name, fingerprint = recorded_before(study, f.name, encoder.name)
        except ParameterError:
            if if_known:
                continue
            raise
        dtype = (encoder.spec or {}).get("dtype", "float32")
        try:
            before = Encoder.load(
                name,
                head=study.needs.head,
                device=str(encoder.device),
                dtype=dtype,
                allow_pickle=allow_pickle,
                trust_remote_code=trust_remote_code,
            )
        except BertologyError as error:
            if if_known:
                continue
            raise ModelError(
                f"{encoder.name!r} was fine-tuned from {name!r}, which cannot be loaded here: "
                f"{error.problem}",
                hint=f"Name the place where it is now with --{f.name} MODEL (in Python: "
                f"{f.name}=…).",
            ) from error
        if dtype == "float32" and before.fingerprint != fingerprint:
            if if_known:
                continue
            raise ModelError(
                f"{name!r} has changed since {encoder.name!r} was fine-tuned from it.",
                hint=f"To compare with it as it is now, name it: --{f.name} {name} (in Python: "
                f"{f.name}={name!r}).",
            )
        found[f.name] = before
        study = replace(study, **{f.name: name})
    return study, found


def recorded_before(study: Study, parameter: str, model: str) -> tuple[str, str]:
    """Name and fingerprint of the model before, by the record of a fine-tuned one."""
    from bertology.train.checkpoint import RECORD, read_record

    record = read_record(model)
    base: Mapping[str, object] = {} if record is None else record.get("base") or {}
    if record is None:
        why = f"{model!r} has no {RECORD} that would tell it"
    elif not base.get("name"):
        why = f"the {RECORD} of {model!r} does not tell it"
    elif record.get("start") == "random":
        why = f"{model!r} was trained from random weights, so there is none"
    else:
        return str(base["name"]), str(base.get("fingerprint"))
    must = (
        f"name the model to compare with, such as the one before fine-tuning; {why} "
        f"(--{parameter} MODEL on the command line)"
    )
    raise ParameterError(parameter, type(study).__name__, must, "")
