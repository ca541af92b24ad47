"""`bertology annotate`: label attention maps on a page in the browser."""

from __future__ import annotations

import getpass
import random
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.cli.command import command
from bertology.cli.console import say, show_table
from bertology.cli.option_groups import MODEL_HELP, AnnotatorOptions, PageOptions, RootOptions
from bertology.cli.typer_options import argument
from bertology.errors import DataError, ParameterError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.data.map_labels import Comparison, MapRecipe
    from bertology.model.encoder import Encoder
    from bertology.server.labelling import Labelling
    from bertology.server.map_pictures import MapPicture

    Draw = Callable[[MapRecipe], MapPicture]

DEFAULT_TASK = (
    "grammar-entailment"  # it is bundled, and blocks are visible only in pairs of sentences
)


@dataclass(frozen=True, kw_only=True)
class AnnotateOptions(PageOptions, AnnotatorOptions, RootOptions):
    """The options of `annotate`."""

    model: str | None = argument(f"{MODEL_HELP} If not given: {DEFAULT_MODEL}.", None)
    task: list[str] | None = parameter(
        None, f"A corpus with examples; may be given several times. If not given: {DEFAULT_TASK}."
    )
    bundled: bool = parameter(
        False, "Label maps that come with the package. No model and no corpus is needed."
    )
    split: str = parameter("validation", "Which split of the corpora.")
    to: Path = parameter(
        Path("map-labels.jsonl"), "The file for the labels. Labels are added if it exists.",
        metavar="FILE",
    )  # fmt: skip
    seed: int = parameter(0, "Decides which maps are drawn, and their order.")
    turn: int = parameter(
        1, "2, 3, …: label the same maps again, in another order.", minimum=1, option="pass"
    )
    port: int = parameter(8765, "The port of the page. 0: any free port.", minimum=0, maximum=65535)
    agreement: Path | None = parameter(
        None, "No page: show how well the annotators of FILE agree.", metavar="FILE"
    )


@command(
    "annotate",
    [AnnotateOptions],
    examples=[
        "bertology annotate --count 50",
        "bertology annotate ./my-run/model --task mrpc --task sst-2 --to labels.jsonl",
        "bertology annotate ./my-run/model --task mrpc --to labels.jsonl --pass 2",
        "bertology annotate --bundled --count 50 --to labels.jsonl",
        "bertology annotate --agreement labels.jsonl",
    ],
)
def annotate(options: AnnotateOptions) -> None:
    """Label attention maps on a page in your browser, and get a file of labels.

    Keys 1 to 5 label a map as vertical, diagonal, both, block or heterogeneous. Every label is
    saved at once. If you stop, the same command continues. Only this machine can open the page.
    """
    if options.agreement is not None:
        _show_agreement(options.agreement)
        return
    from bertology.server.serving import address_of, check_extra, claim_port, serve

    check_extra("bertology annotate")
    from bertology.server.annotate import annotate_app

    with claim_port(options.port) as claimed:  # before a model is loaded, which takes longer
        labelling, draw = _of_package(options) if options.bundled else _of_model(options)
        _say_state(labelling, options.to)
        say(f"Page: {address_of(claimed)}    Stop with Ctrl-C. The same command continues.")
        app = annotate_app(labelling, draw, port=claimed.getsockname()[1])
        serve(app, claimed, open_browser=not options.no_browser)
    _say_state(labelling, options.to)
    say(f"Agreement: bertology annotate --agreement {shlex.quote(str(options.to))}")


def _of_model(options: AnnotateOptions) -> tuple[Labelling, Draw]:
    """Maps of a model, which must run to show them."""
    from bertology.server.map_pictures import picture_of

    encoder = _load_encoder(options.model)
    labelling = labelling_of(
        encoder,
        load_corpora(options.task or [DEFAULT_TASK], split=options.split, root=options.root),
        options.to,
        options.annotator or login(),
        drawn=MapDraw(options.count, options.seed, options.turn),
    )
    return labelling, partial(picture_of, encoder)


def _of_package(options: AnnotateOptions) -> tuple[Labelling, Draw]:
    """Maps that are stored in the package."""
    from bertology.annotated.map_types.labelled import bundled_labels, bundled_maps
    from bertology.data.map_sampling import in_order_of
    from bertology.server.labelling import Labelling
    from bertology.server.map_pictures import stored_picture

    if options.model is not None or options.task:
        raise ParameterError(
            "--bundled", "annotate", "be given without a model and without --task", True
        )
    known = {label.recipe.key: label.recipe for label in bundled_labels()}
    chance = random.Random(f"bundled maps {options.seed}")
    chosen = chance.sample([known[key] for key in sorted(known)], min(options.count, len(known)))
    plan = in_order_of(chosen, seed=options.seed, turn=options.turn)
    who = options.annotator or login()
    labelling = Labelling(plan, options.to, annotator=who, turn=options.turn)
    return labelling, partial(stored_picture, bundled_maps())


def _say_state(labelling: Labelling, to: Path) -> None:
    done = labelling.state()
    who = f"{done['annotator']}, pass {done['pass']}"
    say(f"{who}: {done['labelled']} of {done['total']} maps are labelled in {to}")


@dataclass(frozen=True)
class MapDraw:
    """Which maps are drawn from the corpora, and in which order they come."""

    count: int = 400
    seed: int = 0
    turn: int = 1


def labelling_of(
    encoder: Encoder,
    corpora: Sequence[Corpus],
    to: Path,
    annotator: str,
    *,
    drawn: MapDraw,
) -> Labelling:
    """The maps to label and the file for their labels, for `annotate` and `explore`."""
    from bertology.server.labelling import Labelling

    encoder.require("patterns")
    plan = _plan(encoder, corpora, drawn.count, seed=drawn.seed, turn=drawn.turn)
    return Labelling(plan, to, annotator=annotator, turn=drawn.turn)


def login() -> str:
    """The login name of the user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # in a container the user may have no name
        raise ParameterError(
            "--annotator",
            "annotate",
            "be given, because your login has no name",
            None,
        ) from None


def load_corpora(names: Sequence[str], **reading: Any) -> list[Corpus]:
    """Several corpora, all read in the same way."""
    from bertology.data.loading import load_corpus

    return [load_corpus(name, **reading) for name in names]


def _load_encoder(model: str | None) -> Encoder:
    from bertology.model.encoder import Encoder

    encoder = Encoder.load(model or DEFAULT_MODEL)
    encoder.require("patterns")
    encoder.require_tokenizer()
    return encoder


def _plan(
    encoder: Encoder, corpora: Sequence[Corpus], count: int, *, seed: int, turn: int
) -> list[MapRecipe]:
    """The maps of this pass; each corpus has the same number, plus or minus one."""
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
        raise DataError(f"{path} has no labels.")
    coders = sorted({label.coder for label in labels})
    rows = []
    for coder in coders:
        own = [label.label for label in labels if label.coder == coder]
        rows.append((*coder, *(own.count(name) for name in MAP_TYPES), len(own)))
    show_table(("annotator", "pass", *MAP_TYPES, "all"), rows, title="Labels of each annotator")
    shared = [given for given in given_by_map(labels).values() if len(given) > 1]
    if len({annotator for annotator, _ in coders}) > 2 and shared:
        alpha = krippendorffs_alpha(shared)
        say(f"All annotators: Krippendorff's α = {alpha or 'not defined'}, {len(shared)} maps")
        counts = [len(given) for given in shared]
        if min(counts) < max(counts):
            say(
                f"Maps have {min(counts)} to {max(counts)} labels. If some have more because "
                "annotators disagreed, α is too low."
            )
    found = agreements(labels)
    if not found:
        say("Nothing to compare: that needs two annotators, or two passes, with the same maps.")
    for comparison in found:
        _show_comparison(comparison)


def _show_comparison(comparison: Comparison) -> None:
    agreement = comparison.agreement
    first, second = (f"{a}, pass {p}" for a, p in (comparison.first, comparison.second))
    kappa = agreement.kappa
    shown = f"κ = {kappa}" if kappa else "κ is not defined (both used only one type)"
    say(f"{first} (rows) and {second} (columns)", style="bold")
    say(f"{shown}; the same label for {agreement.same:.0%} of {agreement.n} maps")
    rows = [(name, *row) for name, row in zip(agreement.classes, agreement.table, strict=True)]
    show_table(("", *agreement.classes), rows)
