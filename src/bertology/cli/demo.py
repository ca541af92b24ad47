"""`bertology demo`: from nothing to a first figure, offline, in about two minutes."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertology.cli.console import examples, say, show_table

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.results.result import Result
    from bertology.train.finetune import Step
    from bertology.train.from_scratch import Recipe

__all__ = ["add_to", "demo"]

_STUDY = "head-ablation"
_STRONGEST = 8  # heads in the table


def add_to(app: typer.Typer) -> None:
    """Put `demo` into the app."""
    app.command("demo", epilog=examples("bertology demo", "bertology demo --to /tmp/demo --fresh"))(
        demo
    )


def demo(
    to: Annotated[
        Path, typer.Option(help="The folder for the model, the results and the figures.")
    ] = Path("bertology-demo"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Train and measure again, even if it was done before.")
    ] = False,
) -> None:
    """Train a small BERT on the spot, switch off its heads one by one, show what happens.

    Needs no network and no data: sentences are made by the bundled grammar. Takes about two
    minutes on two cores; a second time it only shows what it found.
    """
    recipe = demo_recipe()
    validation = recipe.validation()
    _show_task(recipe, validation)
    _ready_model(to / "model", recipe, validation, fresh=fresh)
    result = _ablate(to, validation, fresh=fresh)
    _show_heads(result)
    _show_verdicts(result)
    _show_files(result, to, recipe.corpus)


def demo_recipe() -> Recipe:
    """A model that learns its task well, and learns to use its heads for it, in little time."""
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.fresh import Architecture
    from bertology.train.from_scratch import Recipe

    return Recipe(
        corpus="grammar-entailment",
        examples=10_000,
        # No dropout: so small a model does not overfit in so few steps. Wider first weights than
        # BERT's: attention that starts far from uniform finds words in the other sentence sooner.
        architecture=Architecture(
            layers=4, heads=4, hidden=64, vocab_size=2000, max_length=64, dropout=0.0, spread=0.12
        ),
        settings=FinetuneSettings(epochs=3, learning_rate=1e-3),
    )


def _show_task(recipe: Recipe, validation: Corpus) -> None:
    say(f"The task: {recipe.corpus}", style="bold")
    labels = validation.task.labels if validation.task else ()
    for example in validation[:4]:
        say(f"  {example.text} → {example.text_b}  ({labels[int(example.get('label'))]})")
    say()


def _ready_model(folder: Path, recipe: Recipe, validation: Corpus, *, fresh: bool) -> None:
    """Train the model, or say that it is there."""
    from bertology.run.progress import choose_progress
    from bertology.train.from_scratch import find_made, make

    say("The model", style="bold")
    record = None if fresh else find_made(folder, recipe, validation)
    if record is None:
        size = recipe.architecture
        say(
            f"  Training a BERT of {size.layers} layers × {size.heads} heads, {size.hidden} wide, "
            f"from random weights on {recipe.examples:,} pairs …"
        )
        bar = choose_progress(None)
        try:
            record = make(folder, recipe, validation, progress=_telling(bar, recipe))
        finally:
            bar.stop()
    else:
        say(
            f"  Reusing the one that was trained on {record['created'][:10]} (--fresh trains anew)."
        )
    metric, score = next(iter(record["scores"].items()))
    say(
        f"  Validation {metric}: {100 * score:.1f} %. "
        f"Always giving the most frequent answer: {100 * record['baseline'][metric]:.1f} %."
    )
    say()


def _telling(bar: Any, recipe: Recipe) -> Callable[[Step], None]:
    """Moves the bar with each step and says a line for each epoch."""

    def tell(step: Step) -> None:
        if step.done == 1:
            bar.start("training", step.total)
        bar.advance(1)
        if step.epoch is not None:
            metric, score = next(iter(step.epoch.scores.items()))
            say(
                f"  epoch {step.epoch.number} of {recipe.settings.epochs}: "
                f"loss {step.epoch.loss:.3f}, {metric} {100 * score:.1f} %"
            )

    return tell


def _ablate(to: Path, validation: Corpus, *, fresh: bool) -> Result:
    from bertology.model.encoder import Encoder
    from bertology.run.api import run

    # On the CPU everywhere: so small a model gains nothing from a GPU.
    encoder = Encoder.load(str(to / "model"), head="classification", device="cpu")
    return run(_STUDY, encoder, task=validation, store=str(to / "results"), force=fresh)


def _show_heads(result: Result) -> None:
    table, facts = result.tables["heads"], result.arrays.attrs
    say("Disabling one head at a time (it then attends to all tokens alike)", style="bold")
    order = table["difference"].abs().sort_values(ascending=False, kind="stable").index
    rows = [
        (
            row["layer"],
            row["head"],
            f"{100 * row['score']:.1f}",
            f"{100 * row['difference']:+.1f}",
            f"{100 * row['simultaneous_low']:+.1f} … {100 * row['simultaneous_high']:+.1f}",
            "yes" if row["sure"] else "no",
        )
        for row in table.loc[order[:_STRONGEST]].to_dict("records")
    ]
    metric, level = facts["metric"], f"{100 * float(facts['level']):g} %"
    show_table(
        ("layer", "head", f"{metric} in %", "change in points", f"{level} interval", "sure"),
        rows,
        title=f"The {len(rows)} strongest of {len(table)} heads (layers and heads from 0)",
    )
    say(
        f"Intact: {100 * float(facts['intact']):.1f} %. Intervals are of the change, and hold for "
        f"all {len(table)} heads together."
    )
    say()


def _show_verdicts(result: Result) -> None:
    verdicts = result.verdicts()
    if verdicts:
        show_table(
            ("verdict", "statement", "measured"),
            ((v.outcome.value, v.claim.statement, v.measured) for v in verdicts),
            title="What the literature says, judged on this model",
        )


def _show_files(result: Result, to: Path, corpus: str) -> None:
    from bertology.errors import StoreError
    from bertology.results.rendering import render

    say("The figure", style="bold")
    draw = result.figures()["heads"]
    for kind in ("png", "svg"):
        path = to / f"heads.{kind}"
        try:
            path.write_bytes(render(draw(), kind))
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written: {error.strerror or error}.",
                hint="Choose another folder with --to.",
            ) from error
        say(f"  {path}")
    store, model = shlex.quote(str(to / "results")), shlex.quote(str(to / "model"))
    say()
    say("Next", style="bold")
    say(f"  bertology show {result.identity[:8]} --store {store}")
    say(f"  bertology export {result.identity[:8]} --format csv --to tables --store {store}")
    say(f"  bertology run {_STUDY} --model {model} --task {corpus} --method zero --store {store}")
    say(f"  bertology claims --search {_STUDY}")
