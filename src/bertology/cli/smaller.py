"""What commands that make a smaller model share: how they are watched, stopped, and answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from bertology.cli.command import command_line
from bertology.cli.console import say, show_table
from bertology.errors import InterruptedRunError

if TYPE_CHECKING:
    from bertology.train.compress.compressed import Compressed
    from bertology.train.compress.work import CompressWatch

Made = TypeVar("Made", bound="Compressed")


def made_smaller(make: Callable[[CompressWatch], Made]) -> Made:
    """The smaller model; a stop says how to go on."""
    from bertology.run.progress import TrainingLine, choose_progress, started_progress
    from bertology.train.compress.work import CompressWatch

    watch = CompressWatch(
        tell=lambda text: say(f"  {text}"),
        training=lambda name, epochs: TrainingLine(name, epochs, choose_progress(None), say),
        counting=started_progress,
        command=command_line(without="--force"),
    )
    try:
        return make(watch)
    except (InterruptedRunError, KeyboardInterrupt) as stopped:
        problem = getattr(stopped, "problem", "Stopped. What is finished is kept.")
        raise InterruptedRunError(problem, hint=f"Continue with: {command_line()}") from None


def show_smaller(found: Compressed) -> None:
    """What it saves and costs."""
    from bertology.train.compress.compressed import number_rows

    say(found.sentence, style="bold")
    show_table(("", "original", "this model"), number_rows(found))
    flips = found.measured["flips"]
    if "changed" in flips:
        say(
            f"{flips['changed']:,} of {flips['examples']:,} answers changed: {flips['lost']:,} "
            f"were right before, {flips['won']:,} are right now (flips.json)."
        )


def say_where(found: Compressed) -> None:
    """Where it is, and how it is loaded."""
    plain = "plain transformers" if found.measured["plain"] else "bt.load(…, head='classification')"
    say(f"The model: {found.folder} (its README.md tells all of this); load it with {plain}")
