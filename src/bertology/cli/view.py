"""`bertology view "text" --to page.html`: the attention of one text as a page in one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.cli.command import command
from bertology.cli.console import say
from bertology.cli.explore import load_to_show
from bertology.cli.option_groups import MODEL_HELP, DeviceOptions
from bertology.cli.typer_options import argument, required
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import flag, parameter


@dataclass(frozen=True, kw_only=True)
class ViewOptions(DeviceOptions):
    """The options of `view`."""

    panel: ClassVar[str | None] = None
    text: str = argument("The text to show.")
    pair: str | None = argument("A second text, for a pair.", None, metavar="SECOND")
    to: str = required("The file to write.", metavar="FILE")
    model: str = parameter(DEFAULT_MODEL, MODEL_HELP)
    force: bool = flag("Replace a file that is already there.")


@command(
    "view",
    [ViewOptions],
    examples=[
        'bertology view "The keys to the old cabinet are on the table." --to page.html',
        'bertology view "The keys to the old cabinet [MASK] here." --to verbs.html',
        'bertology view "A man is playing." "Somebody makes music." --to pair.html',
    ],
    needs_input=True,
)
def view(options: ViewOptions) -> None:
    """Write every head's attention on a text to one HTML file, to send to a class.

    The file needs no network, no server and no Python: any browser opens it. All heads are small
    maps, one is enlarged, and a tour explains them. Write the mask token, such as [MASK], for a
    word, and the page shows what the model puts there.
    """
    from bertology.server.view_page import check_page
    from bertology.server.view_page import view as view_of

    check_page(options.to, force=options.force)
    encoder = load_to_show(options.model, options.device)
    text = options.text if options.pair is None else (options.text, options.pair)
    made = view_of(encoder, text)
    to = made.save(options.to, force=options.force)
    size = f"{made.size / 1000:,.0f} kB, {made.tokens} tokens"
    say(f"Written: {to} ({size}). Any browser opens it; it needs no network.")
