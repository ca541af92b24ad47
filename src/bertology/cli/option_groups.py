"""Options that several commands share, each declared once and mixed in."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from bertology.cli.command import command_line
from bertology.cli.typer_options import pairs_of, required
from bertology.errors import ParameterError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import KEEP_PARTS, flag, parameter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from bertology.data.corpus import Corpus
    from bertology.run.loading import ModelSource
    from bertology.run.session import Session

MODEL_HELP = "A bundled model, a folder or a Hugging Face id."
ACROSS_CLAIMS = (
    "Judge so strictly that of all claims with a verdict, on average 5 % at most have a false one "
    "(Benjamini and Yekutieli). If not given: each claim may err in 5 %."
)


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Where the model computes."""

    panel: ClassVar[str | None] = "Model"
    device: str = parameter("auto", "cpu, cuda, cuda:1, … or mps. auto: a GPU if there is one.")


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model, and how it may be loaded, on the CPU."""

    panel: ClassVar[str | None] = "Model"
    model: str = parameter(
        DEFAULT_MODEL, f"{MODEL_HELP} NAME@STEP: the model at an earlier training step."
    )
    allow_pickle: bool = flag(
        "Also read pickled weights. Only tensors are read; code in them is refused."
    )
    trust_remote_code: bool = flag("Run the code that comes with the model: trust the source.")

    def model_source(self) -> ModelSource:
        """The model by name, as the options allow it to be loaded."""
        from bertology.run.loading import ModelSource

        return ModelSource(
            self.model,
            device="cpu",
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )


@dataclass(frozen=True, kw_only=True)
class LoadingOptions(DeviceOptions, ModelOptions):
    """Which model, how it may be loaded, and where it computes."""

    def model_source(self) -> ModelSource:
        """The model by name, as the options allow it to be loaded."""
        return replace(super().model_source(), device=self.device)


@dataclass(frozen=True, kw_only=True)
class RootOptions:
    """Where data lie that cannot be bundled."""

    panel: ClassVar[str | None] = "Data"
    root: str | None = parameter(
        None, "The folder with downloaded corpora (see bertology datasets).", metavar="FOLDER"
    )


@dataclass(frozen=True, kw_only=True)
class SourceOptions(RootOptions):
    """How data are read."""

    panel: ClassVar[str | None] = "Data"
    columns: tuple[str, ...] = parameter(
        (), "For your own file: which column holds which field, as text=sentence,label=gold."
    )
    languages: tuple[str, ...] = parameter(
        (), "Of data in several languages, those to read, by their codes, as de,fr."
    )
    labels: tuple[str, ...] = parameter(
        (), "What the model calls the labels of the data, as good=positive,poor=negative."
    )

    def reading(self, command: str) -> dict[str, Any]:
        """How data are read, as `load_corpus` takes it; `command` is named in errors."""
        found: dict[str, Any] = pairs_of(self.columns, "--columns", command, "label=gold")
        if names := pairs_of(self.labels, "--labels", command, "good=positive"):
            found["labels"] = names
        if self.languages:
            found["languages"] = ",".join(self.languages)
        return {"root": self.root, **found}


@dataclass(frozen=True, kw_only=True)
class SmallerModelOptions:
    """The task that a smaller model is made for, its folder, and what it is scored on."""

    panel: ClassVar[str | None] = None
    task: str = required("The task: a name such as mrpc, a file, a folder or a hub id.")
    to: str = required("The folder for the smaller model.", metavar="FOLDER")
    validation: str | None = parameter(
        None, "Other data to score on: a name, file, folder or hub id."
    )
    validation_limit: int | None = parameter(
        None, "Score on so many examples, drawn at random; all if not given.", minimum=2
    )
    split: str = parameter("validation", "The split to score on.")
    force: bool = flag("Replace a model that is already in the folder.")

    def scored_again(self, folder: str, reading: Mapping[str, Any]) -> str:
        """The command that scores the model in this folder on the same data."""
        data = {"name_or_path": self.validation or self.task, "split": self.split, **reading}
        return f"bertology score {folder} {data_words(data)}"


@dataclass(frozen=True, kw_only=True)
class _NamedCorpus:
    panel: ClassVar[str | None] = "Data"
    task: str | None = parameter(None, "A corpus with a task, such as mrpc: name, path or hub id.")
    corpus: str | None = parameter(
        None, "Any other corpus, in place of --task: name, path or hub id."
    )
    split: str = parameter("validation", "Which split of the corpus.")
    limit: int | None = parameter(
        None,
        "Draw so many examples at random (always the same ones). If not given: all, or at most "
        "1,000 where a study averages over them.",
        minimum=1,
    )


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(SourceOptions, _NamedCorpus):
    """Which data, with a task or without, and how they are read."""

    def load_corpus(self, command: str) -> Corpus | None:
        """The data that were named, if any; `command` is named in errors."""
        from bertology.run.loading import resolve_corpus

        if self.task is not None and self.corpus is not None:
            must = "be left out when --task is given"
            raise ParameterError("--corpus", command, must, self.corpus)
        wanted = self.task if self.corpus is None else self.corpus
        if wanted is None:
            return None
        return resolve_corpus(
            wanted,
            must_have_task=self.task is not None,
            split=self.split,
            limit=self.limit,
            **self.reading(command),
        )


def values_of(options: DataclassInstance, *kinds: type[DataclassInstance]) -> dict[str, Any]:
    """The values of the fields that these classes declare, as a function takes them by name."""
    return {f.name: getattr(options, f.name) for kind in kinds for f in fields(kind)}


def data_words(origin: Mapping[str, object], option: str = "--task") -> str:
    """The options of a command that reads the same data again, from a corpus's `origin`.

    All of them, so that a proposed command does what it says; empty where nothing is known.
    """
    from bertology.data.command_words import reading_words

    name, options = reading_words(origin)
    said = {option: name, **options} if name else {}
    return " ".join(f"{word} {shlex.quote(value)}" for word, value in said.items())


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Where results are."""

    panel: ClassVar[str | None] = None  # among the command's own options
    store: str = parameter("results", "Where results are stored: a folder or an fsspec URL.")


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How the work is done; nothing here changes a number."""

    panel: ClassVar[str | None] = "Computing"
    engine: str = parameter(
        "local", "local: this machine. ray: a Ray cluster, at RAY_ADDRESS if that is set.",
        choices=("local", "ray"),
    )  # fmt: skip
    workers: int = parameter(1, "Worker processes. Each of them holds the model.", minimum=0)
    batch_tokens: int | None = parameter(
        None, "Tokens in one batch. Fewer need less memory. If not given: chosen for the device.",
        minimum=1,
    )  # fmt: skip
    keep_parts: str = parameter(
        KEEP_PARTS,
        "What was measured stays, so that bertology conclude needs no model: all, none, or "
        "measurements of at most so many bytes, as 500MB.",
        metavar="all|none|SIZE",
    )

    def session(self, store: str, *, force: bool = False) -> Session:
        """Where results are stored, and how the work is done."""
        from bertology.run.api import make_session

        return make_session(
            store,
            engine=self.engine,
            workers=self.workers,
            force=force,
            batch_tokens=self.batch_tokens,
            keep_parts=self.keep_parts,
            command=command_line(),
        )


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """The page that a command serves."""

    no_browser: bool = flag("Only print the address of the page; do not open a browser.")


@dataclass(frozen=True, kw_only=True)
class AnnotatorOptions:
    """Who labels attention maps, and how many."""

    annotator: str | None = parameter(None, "Who labels. If not given: your login name.")
    count: int = parameter(400, "How many maps to label.", minimum=1)
