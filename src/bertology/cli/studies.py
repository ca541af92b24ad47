"""`bertology studies`: the list of studies."""

from __future__ import annotations

from bertology.cli.command import command
from bertology.cli.console import say, show_table


@command(
    "studies",
    examples=["bertology studies", "bertology run head-ablation --help"],
)
def list_studies() -> None:
    """List the studies by topic: the question of each, and what it needs."""
    from bertology.studies import table

    for topic, rows in table().groupby("topic", sort=False):
        shown = [(name, row.question, row.needs) for name, row in rows.iterrows()]
        show_table(("study", "question", "needs"), shown, title=str(topic))
    say("More about one of them: bertology run STUDY --help")
