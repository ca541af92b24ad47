"""Options that several commands share, each declared once and mixed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from bertology.run.api import ModelSource

__all__ = [
    "MODEL_HELP",
    "AnnotatorOptions",
    "DeviceOptions",
    "EngineOptions",
    "LoadingOptions",
    "PageOptions",
    "RootOptions",
    "SourceOptions",
    "StoreOptions",
]

MODEL_HELP = "A bundled model, a folder or a Hugging Face id."


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Where the model computes."""

    panel: ClassVar[str | None] = "Model"
    device: str = parameter("auto", "cpu, cuda, cuda:1, … or mps. auto: a GPU if there is one.")


@dataclass(frozen=True, kw_only=True)
class _NamedModel:
    panel: ClassVar[str | None] = "Model"
    model: str = parameter(
        DEFAULT_MODEL, f"{MODEL_HELP} NAME@STEP: the model at an earlier training step."
    )
    allow_pickle: bool = flag(
        "Also read pickled weights. Only tensors are read; code in them is refused."
    )
    trust_remote_code: bool = flag("Run the code that comes with the model: trust the source.")


@dataclass(frozen=True, kw_only=True)
class LoadingOptions(DeviceOptions, _NamedModel):
    """Which model, and how it may be loaded."""

    def model_source(self) -> ModelSource:
        """The model by name, as the options allow it to be loaded."""
        from bertology.run.api import ModelSource

        return ModelSource(
            self.model,
            device=self.device,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )


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


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """The page that a command serves."""

    no_browser: bool = flag("Only print the address of the page; do not open a browser.")


@dataclass(frozen=True, kw_only=True)
class AnnotatorOptions:
    """Who labels attention maps, and how many."""

    annotator: str | None = parameter(None, "Who labels. If not given: your login name.")
    count: int = parameter(400, "How many maps to label.", minimum=1)
