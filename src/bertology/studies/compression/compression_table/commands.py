"""The one command that makes the model of a row of the table of compression again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bertology.data.command_words import nearby, reading_words
from bertology.studies.compression.compression_table.rows import SMALL, TEACHER, Row

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.studies.designs.task_trials import TaskTrials

_PERMISSIONS = ("allow_pickle", "trust_remote_code")
_USUAL = {"epochs": 3, "batch-size": 32, "train-split": "train"}  # of both commands


def told_of(encoder: Encoder, corpus: Corpus) -> dict[str, str]:
    """What commands must say of the model and of the data, as attributes of a part.

    Nothing is told of a model or of data that were made in Python, or of a model in another type of
    number: no command can name them.
    """
    from bertology.model.loading.saved_head import saved_head

    spec = encoder.spec or {}
    model: dict[str, object] = {}
    if spec and spec.get("dtype", "float32") == "float32":
        allowed = [name for name in _PERMISSIONS if spec.get(name)]
        headed = saved_head(str(spec["name"])) == "classification"
        model = {"name": spec["name"], "flags": allowed + ["finetune"] * headed}
    return {"model": json.dumps(model), "data": json.dumps(dict(corpus.origin), default=str)}


def row_command(row: Row, told: Mapping[str, object], study: TaskTrials) -> str:
    """What makes the row's model of the first seed; another `--seed` makes that of another one.

    `told` are the attributes of one of its parts. Empty where no command can say it.
    """
    model, origin = (json.loads(str(told.get(name, "{}"))) for name in ("model", "data"))
    name, data = reading_words(origin)
    if not (model and name) or (study.train and "only" in origin):
        return ""
    tuned = row.kind in (TEACHER, SMALL)
    task = study.train or name
    start = ["finetune", _model_name(row, model), task] if tuned else [
        "compress", _model_name(row, model), "--task", task,
        *(word for text in row.methods for word in ("--method", text)),
    ]  # fmt: skip
    said = {
        "validation": name if study.train else None,
        "epochs": study.epochs,
        "batch-size": study.batch_size,
        "rate": study.learning_rate,
        "max-length": study.max_length,
        "limit": study.examples,
        "validation-limit": data.pop("--limit", None),
        "train-split": study.train_split,
    }
    words = ["bertology", *start]
    for option, value in said.items():
        if value is not None and value != _USUAL.get(option):
            words += [f"--{option}", str(value)]
    words += [word for pair in data.items() for word in pair]
    words += [f"--{flag.replace('_', '-')}" for flag in _flags(row, model, tuned=tuned)]
    return shlex.join([*words, "--seeds" if tuned else "--seed", "0", "--to", row.name])


def _model_name(row: Row, model: Mapping[str, object]) -> str:
    return nearby(row.text if row.kind == SMALL else str(model["name"]))


def _flags(row: Row, model: Mapping[str, list[str]], *, tuned: bool) -> list[str]:
    """How the model is loaded; `bertology finetune` needs no word to fine-tune."""
    flags = [] if row.kind == SMALL else model["flags"]
    return [flag for flag in flags if not (tuned and flag == "finetune")]
