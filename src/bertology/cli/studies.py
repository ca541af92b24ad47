"""`bertology studies`: the questions that can be asked."""

from __future__ import annotations

import typer

from bertology.cli.console import examples, say, show_table

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Put `studies` into the app."""
    app.command(
        "studies", epilog=examples("bertology studies", "bertology run head-ablation --help")
    )(list_studies)


def list_studies() -> None:
    """List the studies, what each asks, and what it needs."""
    from bertology.cli.run import summary_line
    from bertology.studies import STUDIES

    rows = []
    for name in STUDIES.names():
        kind = STUDIES.get(name)
        needs = [f"head {kind.needs.head}"] if kind.needs.head != "base" else []
        needs += ["a task"] if kind.needs.task else []
        needs += sorted(kind.needs.fields)
        rows.append((name, summary_line(kind), ", ".join(needs)))
    show_table(("study", "question", "needs"), rows)
    say("More about one: bertology run STUDY --help")
