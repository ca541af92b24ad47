"""`bertology explore`: see attention and switch parts off, on a page in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bertology.cli.annotate import DEFAULT_TASK, MapDraw, labelling_of, login
from bertology.cli.command import Command
from bertology.cli.console import say
from bertology.cli.option_groups import (
    MODEL_HELP,
    AnnotatorOptions,
    DeviceOptions,
    PageOptions,
    RootOptions,
)
from bertology.cli.typer_options import argument
from bertology.errors import BertologyError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

__all__ = ["ExploreOptions", "add_to", "explore"]


@dataclass(frozen=True, kw_only=True)
class ExploreOptions(PageOptions, AnnotatorOptions, RootOptions, DeviceOptions):
    """The options of `explore`."""

    model: str | None = argument(f"{MODEL_HELP} If not given: {DEFAULT_MODEL}.", None)
    port: int = parameter(8764, "The port of the page. 0: any free port.", minimum=0, maximum=65535)
    labels: Path | None = parameter(
        None, "Also label attention maps; the labels go to FILE (see bertology annotate).",
        metavar="FILE",
    )  # fmt: skip
    task: list[str] | None = parameter(
        None, "A corpus whose maps are labelled; may be given several times. "
        f"If not given: {DEFAULT_TASK}.",
    )  # fmt: skip


def add_to(app: typer.Typer) -> None:
    """Put `explore` into the app."""
    Command(
        "explore",
        explore,
        [ExploreOptions],
        examples=[
            "bertology explore",
            "bertology explore ./my-run/model --root ./data",
            "bertology explore --no-browser --port 9000",
            "bertology explore --labels labels.jsonl --annotator ann",
        ],
    ).add_to(app)


def explore(options: ExploreOptions) -> None:
    """See every head's attention on a page in your browser, and switch parts of the model off.

    Type a sentence, mask words, click heads, layers or dimensions, and see what the model predicts
    with and without them. Only this machine can open the page.
    """
    from bertology.server.serving import address_of, check_extra, claim_port, serve

    check_extra("bertology explore")
    from bertology.server.explore import explore_app

    if options.labels is None and (options.annotator is not None or options.task):
        raise BertologyError(
            f"{'--task' if options.task else '--annotator'} needs --labels FILE.",
            hint="It is for labelling maps, and the labels are written to FILE.",
        )
    root = None if options.root is None else Path(options.root)
    with claim_port(options.port) as claimed:  # before a model is loaded, which takes longer
        encoder = _load_encoder(options.model or DEFAULT_MODEL, options.device)
        labelling = None
        if options.labels is not None:
            tasks, who = options.task or [DEFAULT_TASK], options.annotator or login()
            drawn = MapDraw(count=options.count)
            labelling = labelling_of(
                encoder, tasks, options.labels, who, root=options.root, drawn=drawn
            )
        number = claimed.getsockname()[1]
        app = explore_app(encoder, port=number, root=root, labelling=labelling)
        say(f"Page: {address_of(claimed)}    Stop with Ctrl-C.")
        serve(app, claimed, open_browser=not options.no_browser)


def _load_encoder(name: str, device: str) -> Encoder:
    """The model with the head that it was saved with, so that it can predict."""
    from bertology.model.cores import leave_a_core
    from bertology.model.encoder import Encoder
    from bertology.model.loading.saved_head import saved_head

    leave_a_core()
    encoder = Encoder.load(name, head=saved_head(name), device=device)
    encoder.require_tokenizer()
    return encoder
