"""`bertology studies`: the list of studies."""

from __future__ import annotations

import typer

from bertology.cli.command import Command
from bertology.cli.console import say, show_table

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Put `studies` into the app."""
    Command(
        "studies",
        list_studies,
        examples=["bertology studies", "bertology run head-ablation --help"],
    ).add_to(app)


def list_studies() -> None:
    """List the studies by topic: the question of each, and what it needs."""
    from bertology.cli.run import summary_line
    from bertology.studies import STUDIES, topic_of

    by_topic: dict[str, list[tuple[str, str, str]]] = {}
    for name in STUDIES.names():
        kind = STUDIES.get(name)
        needs = [f"head {kind.needs.head}"] if kind.needs.head != "base" else []
        needs += ["a task"] if kind.needs.task else []
        needs += sorted(kind.needs.fields)
        row = (name, summary_line(kind), ", ".join(needs))
        by_topic.setdefault(topic_of(kind), []).append(row)
    for topic, rows in by_topic.items():
        show_table(("study", "question", "needs"), rows, title=topic)
    say("More about one of them: bertology run STUDY --help")
