"""`bertology demo`: from the bundled model to a first figure, offline, in two to three minutes."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bertology.cli.command import Command
from bertology.cli.console import say, show_table
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.results.result import Result
    from bertology.run.progress import Progress
    from bertology.train.finetune import Step
    from bertology.train.finetune_plan import FinetunePlan

__all__ = ["DemoOptions", "add_to", "demo"]

_STUDY = "head-ablation"
_STRONGEST = 8  # heads in the table
_BLANK = "She opened the {mask} and went in."
_PAIR = ("The keys to the cabinet are here.", "The keys to the cabinet is here.")


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The options of `demo`."""

    to: Path = parameter(
        Path("bertology-demo"), "The folder for the model, the results and the figures.",
        metavar="FOLDER",
    )  # fmt: skip
    fresh: bool = flag("Fine-tune and measure again, even if it was done before.")


def add_to(app: typer.Typer) -> None:
    """Put `demo` into the app."""
    Command(
        "demo",
        demo,
        [DemoOptions],
        examples=["bertology demo", "bertology demo --to /tmp/demo --fresh"],
    ).add_to(app)


def demo(options: DemoOptions) -> None:
    """Fine-tune the bundled BERT, disable its heads one by one, and get a table and a figure.

    Needs no network and no data: the model is bundled, and the bundled grammar makes the
    sentences. Takes two to three minutes on two cores. If you run it again, it shows the same
    results without computing them again.
    """
    to, fresh = options.to, options.fresh
    plan = demo_plan()
    _show_knowledge(plan.start)
    validation = plan.validation()
    _show_task(plan, validation)
    _ready_model(to / "model", plan, validation, fresh=fresh)
    result = _ablate(to, validation, fresh=fresh)
    _show_heads(result)
    _show_verdicts(result)
    _show_files(result, to, plan)


def demo_plan() -> FinetunePlan:
    """Few enough examples for a short demo, and enough to see differences between heads."""
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.finetune_plan import FinetunePlan

    return FinetunePlan(
        corpus="grammar-entailment",
        examples=3000,
        unseen=160,
        # Small batches, since there is one epoch only; at twice this rate some runs learn nothing.
        settings=FinetuneSettings(epochs=1, batch_size=16, learning_rate=1.5e-4),
    )


def _show_knowledge(name: str) -> None:
    """What the model knows before fine-tuning: a masked word, and a minimal pair."""
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.scoring import cloze, compare_pairs

    encoder = Encoder.load(name, head="mlm", device="cpu")
    say(f"The model: {name}, {encoder.shape}", style="bold")
    (filled,) = cloze(encoder, _BLANK, top_k=3)
    found = ", ".join(f"{p.word} {100 * p.probability:.0f} %" for p in filled.predictions)
    say(f"  {_BLANK.format(mask='____')}  {found}")
    good, bad = _PAIR
    (difference,) = compare_pairs(encoder, [good], [bad])
    say(f"  {good}  {_odds(difference)} than")
    say(f"  {bad}")
    say()


def _odds(difference: float) -> str:
    """A difference of log-likelihoods as text."""
    times = math.exp(abs(difference))
    return f"{times:,.0f} times {'likelier' if difference > 0 else 'less likely'}"


def _show_task(plan: FinetunePlan, validation: Corpus) -> None:
    say(f"The task: {plan.corpus}", style="bold")
    labels = validation.task.labels if validation.task else ()
    for example in validation[:4]:
        say(f"  {example.text} → {example.text_b}  ({labels[int(example.get('label'))]})")


def _ready_model(folder: Path, plan: FinetunePlan, validation: Corpus, *, fresh: bool) -> None:
    """Fine-tune the model, or reuse the one that is there."""
    from bertology.run.progress import choose_progress
    from bertology.train.finetune_plan import find_made, make

    record = None if fresh else find_made(folder, plan, validation)
    if record is None:
        say(f"  Fine-tuning {plan.start} on {plan.examples:,} such pairs …")
        bar = choose_progress(None)
        try:
            record = make(folder, plan, validation, progress=_telling(bar, plan))
        finally:
            bar.stop()
    else:
        say(
            f"  Reusing the model that was fine-tuned on {record['created'][:10]} "
            "(--fresh fine-tunes again)."
        )
    metric, score = next(iter(record["scores"].items()))
    say(
        f"  {metric.capitalize()} on {len(validation)} other pairs: {100 * score:.1f} %. "
        f"Always predicting the most frequent label: {100 * record['baseline'][metric]:.1f} %."
    )
    say()


def _telling(bar: Progress, plan: FinetunePlan) -> Callable[[Step], None]:
    """Moves the bar with each step and prints a line for each epoch."""

    def tell(step: Step) -> None:
        if step.done == 1:
            bar.start("training", step.total)
        bar.advance(1)
        if step.epoch is not None:
            metric, score = next(iter(step.epoch.scores.items()))
            say(
                f"  epoch {step.epoch.number} of {plan.settings.epochs}: "
                f"loss {step.epoch.loss:.3f}, {metric} {100 * score:.1f} %"
            )

    return tell


def _ablate(to: Path, validation: Corpus, *, fresh: bool) -> Result:
    from bertology.model.encoder import Encoder
    from bertology.run.api import run

    # Always on the CPU, so that the demo gives the same numbers everywhere.
    encoder = Encoder.load(str(to / "model"), head="classification", device="cpu")
    return run(_STUDY, encoder, task=validation, store=str(to / "results"), force=fresh)


def _show_heads(result: Result) -> None:
    table, facts = result.tables["heads"], result.arrays.attrs
    say("Disabling one head at a time (it then attends to all tokens equally)", style="bold")
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
        title=f"The {len(rows)} largest effects of {len(table)} heads (layers and heads from 0)",
    )
    say(
        f"With all heads: {100 * float(facts['intact']):.1f} %. The intervals are for the change; "
        f"they hold for all {len(table)} heads at the same time."
    )
    say()


def _show_verdicts(result: Result) -> None:
    verdicts = result.verdicts()
    if verdicts:
        show_table(
            ("verdict", "statement", "measured"),
            ((v.outcome.in_words, v.claim.statement, v.measured) for v in verdicts),
            title="Claims of the literature, judged on this model",
        )


def _show_files(result: Result, to: Path, plan: FinetunePlan) -> None:
    from bertology.errors import StoreError
    from bertology.results.rendering import render

    say("The figure", style="bold")
    for kind in ("png", "svg"):
        path = to / f"heads.{kind}"
        try:
            path.write_bytes(render(result.plot("heads"), kind))
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
    data = f"--task {plan.corpus} --limit {plan.unseen} --store {store}"
    say(f"  bertology run {_STUDY} --model {model} {data} --method zero")
    say("  bertology run attention-maps --corpus grammar --limit 100")
    say(f"  bertology claims --search {_STUDY}")
