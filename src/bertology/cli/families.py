"""`bertology families`: the supported model families."""

from __future__ import annotations

from bertology.cli.command import command
from bertology.cli.console import say, show_table


@command(
    "families",
    examples=["bertology families"],
)
def list_families() -> None:
    """List the supported model families, and what can be read and changed in each."""
    from bertology.model.families import FAMILIES, Capability

    rows = []
    for name in FAMILIES.names():
        family = FAMILIES.get(name)
        marks = ["yes" if c in family.capabilities else "-" for c in Capability]
        rows.append((name, family.title, *marks))
    show_table(("family", "models", *(c.value for c in Capability)), rows)
    say("A study that needs what a family does not have says so before it starts.")
