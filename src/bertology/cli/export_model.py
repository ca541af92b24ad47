"""`bertology export-model MODEL --to FOLDER`: a model as one file, equal to the original."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.cli.command import command
from bertology.cli.console import say, show_table
from bertology.cli.option_groups import MODEL_HELP, ModelOptions, SourceOptions
from bertology.cli.typer_options import argument, required
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from bertology.train.exporting import Exported


@dataclass(frozen=True, kw_only=True)
class ExportModelOptions(SourceOptions, ModelOptions):
    """The options of `export-model`."""

    panel: ClassVar[str | None] = None
    model: str = argument(f"{MODEL_HELP} It must have a head for a task; pruned models too.")
    to: str = required("The folder for the file, its tokenizer and its card.", metavar="FOLDER")
    format: str = parameter(
        "pt2",
        "pt2: PyTorch's own, which PyTorch alone runs. onnx: for ONNX Runtime and others; needs "
        "pip install 'bertology[onnx]'.",
        choices=("pt2", "onnx"),
    )
    texts: str = parameter(
        "grammar-entailment",
        "The texts to compare and time on: a corpus's name, a path or a hub id.",
    )
    split: str = parameter("validation", "Which split of the texts.")
    force: bool = flag("Replace what is already in the folder.")


@command(
    "export-model",
    [ExportModelOptions],
    examples=[
        "bertology export-model small --to deploy",
        "bertology export-model small --format onnx --texts mrpc --to deploy",
    ],
    needs_input=True,
)
def export_model(options: ExportModelOptions) -> None:
    """Write a classifier as one file that runs without its Python classes.

    Pruned models, whose layers differ in size, can be used everywhere in this way. The file takes
    any number of texts of any length that the model takes. It is compared with the model on real
    texts, and nothing is written where they differ. The folder also gets the tokenizer, the labels
    and a card that shows how to load it.
    """
    from bertology.run.exporting import export_model as write

    found = write(
        options.model_source(),
        options.to,
        format=options.format,
        texts=options.texts,
        force=options.force,
        split=options.split,
        **options.reading("export-model"),
    )
    _show(found)


def _show(found: Exported) -> None:
    say(found.sentence, style="bold")
    say(found.size_text)
    rows = [
        (f"{t.texts} in one call", f"{t.torch_ms:.1f}", f"{t.exported_ms:.1f}", f"{t.ratio:.2f}")
        for t in found.timings
    ]
    show_table(
        ("texts", "PyTorch (ms)", f"{found.format} (ms)", "times as fast"),
        rows,
        title=f"Time of one call (CPU, {found.threads} threads)",
    )
    if found.plain:
        say(f"Plain transformers also loads {found.model} as it is.")
    say(f"How to load the file: {found.folder / 'README.md'}")
