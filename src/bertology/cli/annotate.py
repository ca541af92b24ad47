"""`bertology annotate`: label attention maps by eye, on a page of this machine."""

from __future__ import annotations

import getpass
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli.console import examples, say, show_table
from bertology.errors import DataError, ParameterError

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.data.map_labels import Comparison, MapRecipe
    from bertology.model.encoder import Encoder
    from bertology.server.labelling import Labelling

__all__ = ["DEFAULT_TASK", "Drawn", "add_to", "annotate", "labelling_of", "login"]

DEFAULT_TASK = "grammar-entailment"  # it is bundled, and pairs are where blocks can be seen


def add_to(app: typer.Typer) -> None:
    """Put `annotate` into the app."""
    app.command(
        "annotate",
        epilog=examples(
            "bertology annotate --count 50",
            "bertology annotate ./my-run/model --task mrpc --task sst-2 --to labels.jsonl",
            "bertology annotate ./my-run/model --task mrpc --to labels.jsonl --pass 2",
            "bertology annotate --agreement labels.jsonl",
        ),
    )(annotate)


def annotate(
    model: Annotated[
        str | None,
        typer.Argument(help="A bundled model, a folder or a Hugging Face id.", show_default=False),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="A corpus to take examples from; may be given several times.", show_default=False
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Which part of the corpora.")] = "validation",
    root: Annotated[
        Path | None, typer.Option(help="The folder that holds the data of catalogue entries.")
    ] = None,
    to: Annotated[
        Path, typer.Option(help="The file for the labels; one that is there grows.")
    ] = Path("map-labels.jsonl"),
    count: Annotated[int, typer.Option(help="How many maps.", min=1)] = 400,
    seed: Annotated[int, typer.Option(help="Which maps are drawn, and their order.")] = 0,
    annotator: Annotated[
        str | None, typer.Option(help="Who labels; you, if left out.", show_default=False)
    ] = None,
    turn: Annotated[
        int, typer.Option("--pass", help="2, 3, …: the same maps anew, in another order.", min=1)
    ] = 1,
    port: Annotated[
        int, typer.Option(help="Where the page is served; 0: any free port.", min=0, max=65535)
    ] = 8765,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Say where the page is, and do not open it.")
    ] = False,
    agreement: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Serve nothing: show how those who labelled FILE agree."),
    ] = None,
) -> None:
    """Label attention maps by eye: vertical, diagonal, both, block or heterogeneous.

    Opens a page with map after map; keys 1 to 5 label. Every label is kept at once, and the same
    command goes on where you stopped. The page is served to this machine only.
    """
    if agreement is not None:
        _show_agreement(agreement)
        return
    from bertology.server.serving import address_of, check_extra, claim_port, serve

    check_extra("bertology annotate")
    from bertology.server.annotate import annotate_app

    with claim_port(port) as claimed:  # cheaper to be told before a model is loaded
        encoder = _load_encoder(model)
        drawn = Drawn(split, count, seed, turn)
        labelling = labelling_of(
            encoder, task or [DEFAULT_TASK], to, annotator or login(), root=root, drawn=drawn
        )
        _say_state(labelling, to)
        say(f"Page: {address_of(claimed)}    Stop with Ctrl-C; the same command goes on.")
        app = annotate_app(labelling, encoder, port=claimed.getsockname()[1])
        serve(app, claimed, open_browser=not no_browser)
    _say_state(labelling, to)
    say(f"Agreement: bertology annotate --agreement {shlex.quote(str(to))}")


def _say_state(labelling: Labelling, to: Path) -> None:
    done = labelling.state()
    who = f"{done['annotator']}, pass {done['pass']}"
    say(f"{who}: {done['labelled']} of {done['total']} maps are labelled in {to}")


@dataclass(frozen=True)
class Drawn:
    """Which maps are drawn from the corpora, and in which order they come."""

    split: str = "validation"
    count: int = 400
    seed: int = 0
    turn: int = 1


def labelling_of(
    encoder: Encoder,
    tasks: list[str],
    to: Path,
    annotator: str,
    *,
    root: Path | None = None,
    drawn: Drawn,
) -> Labelling:
    """The maps to label and where their labels go, for this command and for the explorer."""
    from bertology.server.labelling import Labelling

    encoder.require("patterns")
    corpora = _load_corpora(tasks, drawn.split, root)
    plan = _plan(encoder, corpora, drawn.count, seed=drawn.seed, turn=drawn.turn)
    return Labelling(plan, to, annotator=annotator, turn=drawn.turn)


def login() -> str:
    """The name of whoever is logged in."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user without a name
        raise ParameterError(
            "--annotator", "annotate", "be given, since your login has no name", None
        ) from None


def _load_corpora(names: list[str], split: str, root: Path | None) -> list[Corpus]:
    from bertology.data.loading import load_corpus

    return [load_corpus(name, split=split, root=root) for name in names]


def _load_encoder(model: str | None) -> Encoder:
    from bertology.model.encoder import Encoder

    encoder = Encoder.load() if model is None else Encoder.load(model)
    encoder.require("patterns")
    encoder.require_tokenizer()
    return encoder


def _plan(
    encoder: Encoder, corpora: list[Corpus], count: int, *, seed: int, turn: int
) -> list[MapRecipe]:
    """The maps of this pass: as many of each corpus, up to one."""
    from bertology.data.map_sampling import in_order_of, sample_maps

    shape, numbering = encoder.shape, encoder.numbering
    gone = {
        (layer, head)
        for (stack, layer), heads in numbering.removed.items()
        if stack == encoder.family.main_stack
        for head in heads
    }
    whole = [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]
    places = [place for place in whole if place not in gone]
    recipes: list[MapRecipe] = []
    for at, corpus in enumerate(corpora):
        share = count * (at + 1) // len(corpora) - count * at // len(corpora)
        if share:
            recipes += sample_maps(encoder.name, corpus, places, share, seed=seed)
    return in_order_of(recipes, seed=seed, turn=turn)


def _show_agreement(path: Path) -> None:
    from bertology.data.map_labels import MAP_TYPES, agreements, given_by_map, read_labels
    from bertology.stats.agreement import krippendorffs_alpha

    labels = read_labels(path)
    if not labels:
        raise DataError(f"{path} holds no labels.")
    coders = sorted({label.coder for label in labels})
    rows = []
    for coder in coders:
        own = [label.label for label in labels if label.coder == coder]
        rows.append((*coder, *(own.count(name) for name in MAP_TYPES), len(own)))
    show_table(("annotator", "pass", *MAP_TYPES, "all"), rows, title="Labels given")
    shared = [given for given in given_by_map(labels).values() if len(given) > 1]
    if len({annotator for annotator, _ in coders}) > 2 and shared:
        alpha = krippendorffs_alpha(shared)
        say(f"All annotators: Krippendorff's α = {alpha or 'not defined'}, {len(shared)} maps")
        counts = [len(given) for given in shared]
        if min(counts) < max(counts):
            say(
                f"Maps have {min(counts)} to {max(counts)} labels. Where more were asked for "
                "because annotators differed, α comes out too low."
            )
    found = agreements(labels)
    if not found:
        say("Nothing to compare: it takes two annotators, or two passes, with the same maps.")
    for comparison in found:
        _show_comparison(comparison)


def _show_comparison(comparison: Comparison) -> None:
    agreement = comparison.agreement
    first, second = (f"{a}, pass {p}" for a, p in (comparison.first, comparison.second))
    kappa = agreement.kappa
    shown = f"κ = {kappa}" if kappa else "κ is not defined (both used one and the same type only)"
    say(f"{first} (rows) and {second} (columns)", style="bold")
    say(f"{shown}; the same label for {agreement.same:.0%} of {agreement.n} maps")
    rows = [(name, *row) for name, row in zip(agreement.classes, agreement.table, strict=True)]
    show_table(("", *agreement.classes), rows)
