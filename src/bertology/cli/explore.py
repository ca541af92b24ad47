"""`bertology explore`: see attention and switch parts off, on a page in the browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.cli.annotate import DEFAULT_TASK, MapDraw, labelling_of, load_corpora, login
from bertology.cli.command import command
from bertology.cli.console import say
from bertology.cli.option_groups import (
    MODEL_HELP,
    AnnotatorOptions,
    DeviceOptions,
    PageOptions,
    SourceOptions,
    StoreOptions,
)
from bertology.cli.typer_options import argument
from bertology.errors import BertologyError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


@dataclass(frozen=True, kw_only=True)
class ExploreOptions(StoreOptions, PageOptions, AnnotatorOptions, SourceOptions, DeviceOptions):
    """The options of `explore`."""

    model: str | None = argument(f"{MODEL_HELP} If not given: {DEFAULT_MODEL}.", None)
    port: int = parameter(8764, "The port of the page. 0: any free port.", minimum=0, maximum=65535)
    task: list[str] | None = parameter(
        None, "Your own data, or any corpus, to begin with: name, path or hub id. May be given "
        "several times.",
    )  # fmt: skip
    split: str = parameter("validation", "Which split of --task.")
    limit: int = parameter(
        200, "Draw so many examples of --task at random (always the same ones).", minimum=1
    )
    annotate: Path | None = parameter(
        None, "Also label attention maps, of --task or else of "
        f"{DEFAULT_TASK}; the labels go to FILE (see bertology annotate).",
        metavar="FILE",
    )  # fmt: skip


@command(
    "explore",
    [ExploreOptions],
    examples=[
        "bertology explore",
        "bertology explore ./my-run/model --root ./data",
        "bertology explore --no-browser --port 9000",
        "bertology explore my-model --task my.csv --columns text=review,label=stars",
        "bertology explore --annotate labels.jsonl --annotator ann",
    ],
)
def explore(options: ExploreOptions) -> None:
    """See every head's attention on a page in your browser, and switch parts of the model off.

    Type a sentence, mask words, click heads, layers or dimensions, and see what the model predicts
    with and without them. With --task the page begins with your own data: the gold label stands
    beside what a classifier says, and a menu keeps only its wrong answers. A tour explains the page
    in six steps, and "Present" shows it in large type. If the store has a result of
    structural-probe for this model, trees by it can be shown. Only this machine can open the page.
    """
    from bertology.server.serving import address_of, check_extra, claim_port, serve

    check_extra("bertology explore")
    from bertology.server.explore import explore_app
    from bertology.server.trees import find_probe

    if options.annotate is None and options.annotator is not None:
        raise BertologyError(
            "--annotator needs --annotate FILE.",
            hint="It is for labelling maps, and the labels are written to FILE.",
        )
    root = None if options.root is None else Path(options.root)
    with claim_port(options.port) as claimed:  # before a model is loaded, which takes longer
        own = _load_own(options)
        encoder = load_to_show(options.model or DEFAULT_MODEL, options.device)
        for corpus in own:
            _say_labels(encoder, corpus)
        labelling = None
        if options.annotate is not None:
            # All of the examples, so that `annotate` with the same data goes on with the same maps.
            whole = load_corpora(options.task or [DEFAULT_TASK], **_reading(options))
            who, drawn = options.annotator or login(), MapDraw(count=options.count)
            labelling = labelling_of(encoder, whole, options.annotate, who, drawn=drawn)
        number = claimed.getsockname()[1]
        probe = find_probe(options.store, encoder)
        if probe is not None:
            say(f"Structural probe: trained on {probe.corpus}, best in layer {probe.best}.")
        app = explore_app(
            encoder, port=number, root=root, own=own, labelling=labelling, probe=probe
        )
        say(f"Page: {address_of(claimed)}    Stop with Ctrl-C.")
        serve(app, claimed, open_browser=not options.no_browser)


def _reading(options: ExploreOptions) -> dict[str, Any]:
    return {"split": options.split, **options.reading("explore")}


def _load_own(options: ExploreOptions) -> list[Corpus]:
    """The data to begin with, before a model is loaded."""
    from bertology.data.corpus import Field

    own = load_corpora(options.task or (), limit=options.limit, **_reading(options))
    for corpus in own:
        corpus.require(Field.TEXT)
    return own


def _say_labels(encoder: Encoder, corpus: Corpus) -> None:
    """How many examples there are, and which label is which of the model's, if any is."""
    from bertology.server.judging import classes_of

    renamed = corpus.origin.get("labels")  # by --labels; the file has other names
    own = {new: old for old, new in renamed.items()} if isinstance(renamed, Mapping) else {}
    known = classes_of(encoder, corpus)
    pairs = ", ".join(f"{own.get(label, label)} = {name}" for label, name in known.items())
    told = f"; labels, and what the model calls them: {pairs}" if pairs else ""
    say(f"{corpus.name}: {len(corpus):,} examples{told}")


def load_to_show(name: str, device: str) -> Encoder:
    """The model with the head that it was saved with, so that it can predict."""
    from bertology.model.cores import leave_a_core
    from bertology.model.encoder import Encoder
    from bertology.model.loading.saved_head import saved_head

    leave_a_core()
    encoder = Encoder.load(name, head=saved_head(name), device=device)
    encoder.require_tokenizer()
    return encoder
