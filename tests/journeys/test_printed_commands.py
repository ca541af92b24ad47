"""Every command that README and pages print for a shell is one that this version understands.

The journeys beside this file run whole pages; here no command is run, so that all can be looked at.
"""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer

from bertology.cli.main import app
from printed import ROOT, commands

PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]
PRINTED = [(page, command) for page in PAGES for command in commands(page)]


def parse(command: Any, name: str, words: list[str]) -> None:
    """Parse as the command line does; groups hand on to their commands."""
    context = command.make_context(name, list(words))
    with context:
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if hasattr(command, "resolve_command") and rest:
            found, inner, more = command.resolve_command(context, rest)
            parse(inner, found, more)


def test_pages_print_commands() -> None:
    assert len(PRINTED) > 60


@pytest.mark.parametrize("page", sorted({page for page, _ in PRINTED}))
def test_the_commands_of_a_page_are_understood(
    page: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = typer.main.get_command(app)
    for at, command in PRINTED:
        if at == page:
            words = shlex.split(command.partition(" > ")[0], comments=True)[1:]
            if words and words[-1] != "--help":
                parse(whole, "bertology", words)


@pytest.mark.parametrize("wrong", ["run head-ablation --taks mrpc", "export latest --to x", "shwo"])
def test_a_command_that_is_not_understood_is_noticed(wrong: str) -> None:
    with pytest.raises(Exception, match=r"taks|format|shwo"):
        parse(typer.main.get_command(app), "bertology", wrong.split())
