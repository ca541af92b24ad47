"""`bertology families`: which models can be looked into, and how far."""

from __future__ import annotations

import typer

from bertology.cli.console import examples, say, show_table

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Put `families` into the app."""
    app.command("families", epilog=examples("bertology families"))(list_families)


def list_families() -> None:
    """List the supported model families and what each can give."""
    from bertology.model.families import FAMILIES, Capability

    rows = []
    for name in FAMILIES.names():
        family = FAMILIES.get(name)
        marks = ["yes" if c in family.capabilities else "-" for c in Capability]
        rows.append((name, family.title, *marks))
    show_table(("family", "models", *(c.value for c in Capability)), rows)
    say("A study that needs what a family cannot give says so before any work.")
