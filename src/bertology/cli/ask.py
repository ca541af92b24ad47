"""`bertology ask "text with a {mask}"`: the model's answers, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.cli.command import command
from bertology.cli.console import check_file, say, show_table
from bertology.cli.option_groups import MODEL_HELP, DeviceOptions, StoreOptions
from bertology.cli.typer_options import argument
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.report.reply import Reply

_WORDS = 3  # of each layer, in the terminal


@dataclass(frozen=True, kw_only=True)
class AskOptions(StoreOptions, DeviceOptions):
    """The options of `ask`."""

    panel: ClassVar[str | None] = None
    text: str = argument("A text with one blank: {mask}, or the model's own mask token.")
    model: str = argument(MODEL_HELP, DEFAULT_MODEL)
    top: int = parameter(5, "How many answers.", minimum=1, maximum=50)
    candidates: tuple[str, ...] = parameter(
        (), "Choose among these words only, as are,is. They may have several pieces."
    )
    lens: str = parameter(
        "logit",
        "How layers are read. logit: the model's head on each layer's states. affine: the same "
        "after a map that is fitted to text, once. none: only the model itself.",
        choices=("logit", "affine", "none"),
    )
    lens_text: str = parameter(
        "grammar-sentences", "The corpus or file that an affine lens is fitted to."
    )
    by: str = parameter(
        "left-to-right",
        "How candidates of several pieces are scored: piece after piece, all pieces at once "
        "(joint), one piece only (single), or the whole sentence.",
        choices=("left-to-right", "joint", "single", "sentence"),
    )
    subject: str | None = parameter(
        None, "What the text is about: compare candidates with the same text without it."
    )
    prior: str = parameter("{mask}", "What stands in place of the subject, such as something.")
    figure: str | None = parameter(
        None, "Also draw the best words of all layers: .svg, .pdf or .png.", metavar="FILE"
    )


@command(
    "ask",
    [AskOptions],
    examples=[
        'bertology ask "The capital of France is {mask}."',
        'bertology ask "The keys to the cabinet {mask} here." --candidates are,is',
        'bertology ask "Paris is in {mask}." --candidates France,Italy,England --subject Paris',
        'bertology ask "She wrote a {mask}." --top 3 --lens none --figure answers.svg',
    ],
    needs_input=True,
)
def ask(options: AskOptions) -> None:
    """Ask a masked language model what fills a blank, and see the answer come about.

    Beside each answer stands what each layer gives to it, from the first to the last.
    Then come the best words of each layer. With candidates, shares are among these.
    """
    from bertology.report.reply import figure_format
    from bertology.run.asking import ask as ask_model

    check_file(options.figure, "--figure")
    if options.figure is not None:
        figure_format(options.figure)
    reply = ask_model(
        options.text,
        options.model,
        candidates=options.candidates,
        top=options.top,
        lens=options.lens,
        method=options.by,
        subject=options.subject,
        prior=options.prior,
        lens_text=options.lens_text,
        store=options.store,
        device=options.device,
    )
    show_reply(reply)
    if options.figure is not None:
        say(f"Written: {reply.save(options.figure)}")


def show_reply(reply: Reply) -> None:
    """Print answers with bars, and the best words of each layer."""
    say(f"{reply.model}: {reply.text}", style="bold")
    layers = len(reply.shares) > 1
    name = "share" if reply.closed else reply.unit
    columns = ("answer", name, "", *((f"layers 0 … {len(reply.shares) - 1}",) * layers))
    rows = [
        (word, share, bar, *((heights,) * layers)) for word, share, bar, heights in reply.bars()
    ]
    show_table(columns, rows)
    if reply.closed:
        say(f"A {reply.unit}.")
    if layers:
        say(f"Best words of each layer ({reply.lens} lens), from 0; the last one is the model:")
        show_table(
            ("layer", *(str(i + 1) for i in range(min(_WORDS, len(reply.best[0]))))),
            [
                (layer, *(f"{word} {100 * share:.0f} %" for word, share in row[:_WORDS]))
                for layer, row in enumerate(reply.best)
            ],
        )
