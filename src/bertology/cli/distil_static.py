"""`bertology distil-static MODEL --corpus TEXTS --to vectors.txt`: one vector for each word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.cli.command import command, command_line
from bertology.cli.console import say, say_next, warn
from bertology.cli.option_groups import MODEL_HELP, LoadingOptions, SourceOptions
from bertology.cli.typer_options import argument, required
from bertology.errors import InterruptedRunError, ParameterError
from bertology.parameters import flag, parameter, pooling_of

if TYPE_CHECKING:
    from pathlib import Path

    from bertology.run.distilling import StaticVectors

_ENOUGH_PAIRS = 100  # of 2,145, so that a thousand of them that are drawn hold enough


@dataclass(frozen=True, kw_only=True)
class DistilStaticOptions(SourceOptions, LoadingOptions):
    """The options of `distil-static`."""

    panel: ClassVar[str | None] = None
    model: str = argument(f"{MODEL_HELP} NAME@STEP: the model at an earlier training step.")
    corpus: str = required(
        "Where words are looked for: a corpus's name, a path or a hub id. Text files (.txt, also "
        ".gz, .xz, .bz2) are streamed, with a text in each line.",
        metavar="TEXTS",
    )
    to: str = required(
        "The file for the vectors, in word2vec's text format. With several layers, the layer is "
        "put into its name: vectors.layer-3.txt.",
        metavar="FILE",
    )
    layer: str = parameter(
        "",
        "Layers from 0, as 3 or 0,3,7; -1 is what enters the first one; all: every layer. If not "
        "given: the one a quarter of the way up.",
    )
    method: str = parameter(
        "mean",
        "mean: the mean of all occurrences of a word. component: their first principal component.",
        choices=("mean", "component"),
    )
    pooling: str = pooling_of("one occurrence")
    iterations: int = parameter(
        3,
        "Power iterations for the first component; each reads the corpus again.",
        minimum=1,
        maximum=100,
    )
    min_count: int = parameter(5, "Words that occur less often are left out.", minimum=1)
    case: str = parameter(
        "auto",
        "keep capitals, or lower all words. auto: lower where the model does not tell capitals.",
        choices=("auto", "keep", "lower"),
    )
    split: str = parameter("validation", "Which split of a named corpus.")
    limit: int | None = parameter(
        None,
        "So many texts at most: drawn at random, of text files the first ones. All if not given.",
        minimum=1,
    )
    batch_tokens: int | None = parameter(
        None, "Tokens in one batch. If not given: chosen for the device.", minimum=1
    )
    force: bool = flag("Replace files that are already there.")


@command(
    "distil-static",
    [DistilStaticOptions],
    examples=[
        "bertology distil-static bertology-mini --corpus grammar --to vectors.txt",
        "bertology distil-static bertology-mini --corpus texts.txt.gz --layer 0,3 --to v.txt",
        "bertology distil-static user/model-on-the-hub --corpus wikitext-2 --method component "
        "--to vectors.txt",
    ],
    needs_input=True,
)
def distil_static(options: DistilStaticOptions) -> None:
    """Distil static word vectors from a model, and write them to a file.

    Each word that occurs often enough becomes one vector: the mean of its states over all of its
    contexts, or their first principal component. Any tool that reads word2vec's text format takes
    the file. The corpus is streamed: memory grows with the number of different words, not with the
    length of the text.

    What was summed is kept beside the file; if the command is stopped, the same command continues.
    """
    from bertology.run.distilling import distil_static as distil

    try:
        found = distil(
            options.model_source(),
            options.corpus,
            options.to,
            layers=_layers(options.layer),
            method=options.method,
            pooling=options.pooling,
            iterations=options.iterations,
            min_count=options.min_count,
            case=options.case,
            split=options.split,
            limit=options.limit,
            batch_tokens=options.batch_tokens,
            force=options.force,
            **options.reading("distil-static"),
        )
    except InterruptedRunError as stopped:
        raise InterruptedRunError(
            stopped.problem, hint=f"Continue with: {command_line()}"
        ) from None
    _show(found, options)


def _layers(given: str) -> tuple[int, ...] | str:
    if given.strip() in ("", "all"):
        return given.strip() or ()
    try:
        return tuple(int(part) for part in given.split(","))
    except ValueError:
        must = "be numbers of layers, as 3 or 0,3,7, or all"
        raise ParameterError("--layer", "distil-static", must, given) from None


def _show(found: StaticVectors, options: DistilStaticOptions) -> None:
    say(
        f"{found.words:,} words × {found.width} dimensions, from {found.occurrences:,} occurrences "
        f"in {found.texts:,} texts. {found.rare:,} rarer words were left out."
    )
    if found.lost:
        warn(
            f"{found.lost:,} occurrences were not used: they were cut off in texts that are too "
            "long, or have no piece of their own."
        )
    if options.method == "component" and found.moved > 0.01:
        warn(
            f"The last power iteration still turned a word by {found.moved:.2g} (1 − cosine). More "
            "--iterations come nearer to the first component."
        )
    for file in found.files.values():
        say(f"Vectors: {file}")
    file = next(iter(found.files.values()))
    if _known_pairs(file) >= _ENOUGH_PAIRS:
        say_next(f"bertology run static-embeddings --corpus grammar-word-pairs --vectors {file}")
    else:  # of words that people scored: which pairs fit is for the reader to say
        say_next("bertology run static-embeddings --help")


def _known_pairs(vectors: Path) -> int:
    """How many of the bundled pairs of words have both words in a file of vectors."""
    from bertology.data.loading import load_corpus

    with vectors.open(encoding="utf-8") as lines:
        words = {line.partition(" ")[0] for line in lines}
    pairs = load_corpus("grammar-word-pairs")
    return sum(one.text in words and one.get("text_b") in words for one in pairs)
