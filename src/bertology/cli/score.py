"""`bertology score MODEL --task TASK`: the score, how sure it is, and how fast the model is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.cli.command import command
from bertology.cli.console import check_file, say, show_table, warn, write_file
from bertology.cli.option_groups import MODEL_HELP, LoadingOptions, SourceOptions
from bertology.cli.typer_options import argument, required
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.train.score import Score


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(SourceOptions, LoadingOptions):
    """The options of `score`."""

    panel: ClassVar[str | None] = None
    model: str = argument(f"{MODEL_HELP} It must have a head for the task; pruned models too.")
    task: str = required("A corpus with a task, such as mrpc: name, path or hub id.")
    split: str = parameter("validation", "Which split of the corpus.")
    limit: int | None = parameter(
        None, "Draw so many examples at random (always the same ones); all if not given.", minimum=1
    )
    batch_tokens: int = parameter(
        4096, "Tokens in one batch. More is faster on a GPU, fewer need less memory.", minimum=1
    )
    json: str | None = parameter(None, "Also write all numbers to this JSON file.", metavar="FILE")


@command(
    "score",
    [ScoreOptions],
    examples=[
        "bertology score bertology-demo/model --task grammar-entailment",
        "bertology score my-model --task held-out.csv --columns text=review,label=stars",
        "bertology score user/model-on-the-hub --task sst-2 --limit 200 --json score.json",
    ],
    needs_input=True,
)
def score(options: ScoreOptions) -> None:
    """Score a model on a task: every metric with its interval, and the speed.

    Beside each score stands that of a constant answer, the best that a model can do without
    looking at the text. The speed is measured after a warm-up; it holds for this machine only.
    """
    from bertology.run.loading import resolve_corpus
    from bertology.run.scoring import score as score_on

    check_file(options.json, "--json")
    corpus = resolve_corpus(
        options.task,
        must_have_task=True,
        split=options.split,
        limit=options.limit,
        **options.reading("score"),
    )
    found = score_on(options.model_source(), corpus, batch_tokens=options.batch_tokens)
    show_score(found)
    if options.json is not None:
        write_file(options.json, json.dumps(found.as_record(), indent=2) + "\n")


def show_score(found: Score) -> None:
    """Print a score: the sentence, the table, the speed, and what the reader must know."""
    say(found.sentence, style="bold")
    rows = [
        (name, f"{e.value:.3f}", f"{e.low:.3f} … {e.high:.3f}", f"{found.constant[name]:.3f}")
        for name, e in found.scores.items()
    ]
    show_table(("metric", "score", "95 % interval", "constant answer"), rows)
    say(f"Examples: {found.examples:,}" + (f" ({found.split})" if found.split else ""))
    say(f"Size:     {found.parameters:,} parameters")
    say(f"Speed:    {found.speed}; another machine has another speed")
    if found.matched:
        say(f"Labels:   data = model: {found.matched}")
    if found.truncated:
        warn(f"{found.truncated:,} texts were too long for the model and were cut.")
    if found.against_constant < 0:
        warn(
            "The model is surely worse than always giving the same answer: look whether each label "
            "of the data is matched with the right one of the model (--labels says it)."
        )
    elif not found.against_constant:
        warn(
            "The model is not surely better than always giving the same answer. Was it fine-tuned "
            "on this task? More examples would make the score surer."
        )
