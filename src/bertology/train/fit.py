"""Whether a model, a task and data fit together, asked before any training."""

from __future__ import annotations

from bertology.data.corpus import Corpus, Task
from bertology.errors import ModelError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.families import FAMILIES
from bertology.train.encoded import CHOICE, learnable
from bertology.train.protocols import Model, Tokenizer

_NO_LIMIT = 10**9  # tokenizers without a limit name a number beyond this


def check_fit(model: Model, task: Task, validation: Corpus) -> None:
    """Refuse validation data of another task, and a model with another number of outputs."""
    other = learnable(validation)
    if (other.kind, other.labels) != (task.kind, task.labels):
        must = f"have the same task as train, {_described(task)}"
        raise ParameterError("validation", "finetune", must, f"{other.name}, {_described(other)}")
    if task.kind == CHOICE:
        return  # one output, whatever the number of answers
    wanted = 1 if task.kind == "regression" else len(task.labels)
    if model.config.num_labels != wanted:
        raise ModelError(
            f"The model has {model.config.num_labels} outputs; {task.name!r} needs {wanted}.",
            hint=f"Load it with num_labels={wanted} (--num-labels {wanted}).",
        )


def _described(task: Task) -> str:
    classes = f" into {', '.join(task.labels)}" if task.labels else ""
    return f"a {task.kind}{classes}"


def row_limit(model: Model, tokenizer: Tokenizer, wanted: int | None) -> int | None:
    """The longest row in tokens: what was asked for, if the model takes it."""
    most = _most(model, tokenizer)
    if wanted is None or most is None:
        return wanted or most
    if wanted > most:
        raise ParameterError(
            "max_length", "FinetuneSettings", f"be at most {most}, which the model takes", wanted
        )
    return wanted


def _most(model: Model, tokenizer: Tokenizer) -> int | None:
    """What the model takes; one of no family, such as a BiLSTM, what its tokenizer gives."""
    if model.config.model_type in FAMILIES:
        return Encoder(model, tokenizer, head="classification").max_length
    return tokenizer.model_max_length if tokenizer.model_max_length < _NO_LIMIT else None


def name_labels(model: Model, task: Task) -> None:
    """Write the classes into the config, so that the saved model says what it predicts."""
    if task.kind == CHOICE:
        return  # answers have no names of their own
    if task.kind == "regression":
        model.config.problem_type = "regression"
        return
    model.config.problem_type = "single_label_classification"
    model.config.id2label = dict(enumerate(task.labels))
    model.config.label2id = {name: i for i, name in enumerate(task.labels)}
