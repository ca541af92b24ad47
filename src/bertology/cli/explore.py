"""`bertology explore`: look at attention and switch parts off, on a page of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli.annotate import DEFAULT_TASK, Drawn, labelling_of, login
from bertology.cli.console import examples, say
from bertology.errors import BertologyError

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

__all__ = ["add_to", "explore"]


def add_to(app: typer.Typer) -> None:
    """Put `explore` into the app."""
    app.command(
        "explore",
        epilog=examples(
            "bertology explore",
            "bertology explore ./my-run/model --root ./data",
            "bertology explore --no-browser --port 9000",
            "bertology explore --labels labels.jsonl --annotator ann",
        ),
    )(explore)


def explore(
    model: Annotated[
        str | None,
        typer.Argument(help="A bundled model, a folder or a Hugging Face id.", show_default=False),
    ] = None,
    port: Annotated[
        int, typer.Option(help="Where the page is served; 0: any free port.", min=0, max=65535)
    ] = 8764,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Say where the page is, and do not open it.")
    ] = False,
    root: Annotated[
        Path | None, typer.Option(help="The folder that holds the data of catalogue entries.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Offer map types to label too; the labels go to FILE (see bertology annotate).",
        ),
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(help="Who labels; you, if left out.", show_default=False)
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="A corpus whose maps are labelled; may be given several times.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="How many maps to label.", min=1)] = 400,
) -> None:
    """Look at every head's attention, hide words, switch off heads, layers and dimensions.

    Opens a page: type a sentence, click a head, and see what the model predicts with and without
    it. The page is served to this machine only.
    """
    from bertology.server.serving import address_of, check_extra, claim_port, serve

    check_extra("bertology explore")
    from bertology.server.explore import explore_app

    if labels is None and (annotator is not None or task):
        raise BertologyError(
            f"{'--task' if task else '--annotator'} needs --labels FILE.",
            hint="It is about labelling maps, and the labels go to FILE.",
        )
    with claim_port(port) as claimed:  # cheaper to be told before a model is loaded
        encoder = _load_encoder(model, device)
        labelling = None
        if labels is not None:
            tasks, who = task or [DEFAULT_TASK], annotator or login()
            drawn = Drawn(count=count)
            labelling = labelling_of(encoder, tasks, labels, who, root=root, drawn=drawn)
        number = claimed.getsockname()[1]
        app = explore_app(encoder, port=number, root=root, labelling=labelling)
        say(f"Page: {address_of(claimed)}    Stop with Ctrl-C.")
        serve(app, claimed, open_browser=not no_browser)


def _load_encoder(model: str | None, device: str) -> Encoder:
    """The model with the head it was saved with, so that it can answer too."""
    from bertology.model.cores import leave_a_core
    from bertology.model.encoder import Encoder
    from bertology.model.loading.names import DEFAULT_MODEL
    from bertology.model.loading.saved_head import saved_head

    leave_a_core()
    name = model or DEFAULT_MODEL
    encoder = Encoder.load(name, head=saved_head(name), device=device)
    encoder.require_tokenizer()
    return encoder
