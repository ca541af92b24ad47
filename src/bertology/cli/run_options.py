"""The options that every `bertology run STUDY` has."""

from __future__ import annotations

from dataclasses import dataclass, field

from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import parameter

__all__ = ["RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """What every run may be given beside the study's own parameters."""

    model: str = parameter(
        DEFAULT_MODEL, "A bundled model, a folder or a Hugging Face id; NAME@STEP for a step."
    )
    task: str | None = parameter(None, "A corpus that poses a task, such as mrpc.")
    corpus: str | None = parameter(None, "A corpus by name, path or hub id; instead of --task.")
    split: str = parameter("validation", "Which part of the corpus.")
    limit: int | None = parameter(None, "Take at most so many examples of the data.", minimum=1)
    columns: tuple[str, ...] = parameter(
        (), "Columns of a file of your own: text=sentence,label=gold."
    )
    root: str | None = parameter(None, "The folder that holds the data of catalogue entries.")
    store: str = parameter("results", "Where results are kept: a folder or an fsspec URL.")
    engine: str = parameter(
        "local", "Who does the work. ray joins the cluster at RAY_ADDRESS, if set.",
        choices=("local", "ray"),
    )  # fmt: skip
    workers: int = parameter(1, "Worker processes; each holds the model.", minimum=0)
    force: bool = field(
        default=False, metadata={"help": "Do the work again if it is stored.", "flag": True}
    )
    num_labels: int | None = parameter(
        None, "Start a head with so many labels at random, if it has none.", minimum=1
    )
    dtype: str = parameter(
        "float32", "Numbers to compute with.", choices=("float32", "bfloat16", "float16", "auto")
    )
    allow_pickle: bool = field(
        default=False,
        metadata={"help": "Load pickled weights, which can run code.", "flag": True},
    )
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run code that comes with the model.", "flag": True}
    )
    device: str = parameter("auto", "cpu, cuda, cuda:1, mps; auto takes what is there.")
    batch_tokens: int | None = parameter(
        None, "Tokens in one batch; less saves memory. Without: as suits the device.", minimum=1
    )
