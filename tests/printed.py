"""Commands as pages and commands print them: taken out, and run as they stand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from bertology.cli.main import app

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Done:
    """A command that was run, and what it said."""

    command: str
    said: str

    @property
    def verb(self) -> str:
        return shlex.split(self.command)[1]

    @property
    def proposed(self) -> list[str]:
        """The commands that it proposes as the next ones."""
        _, _, after = self.said.partition("\nNext:\n")
        return [line.strip() for line in after.splitlines() if line.startswith("  bertology ")]


def printed(page: str, language: str = "sh", section: str | None = None) -> list[str]:
    """The blocks of a page in a language; of one section, if it is named."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if section is not None:
        _, found, rest = text.partition(f"\n## {section}\n")
        assert found, f"{page} has no section {section!r}"
        text = rest.partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(page: str, section: str | None = None) -> list[str]:
    """The commands of `bertology` that a page prints for a shell, in their order."""
    whole = (re.sub(r"\s*\\\n\s*", " ", block) for block in printed(page, "sh", section))
    lines = [line for block in whole for line in block.splitlines()]
    return [line for line in lines if line.startswith("bertology ")]


def run(command: str) -> Done:
    """Run one command in this process; it must end well."""
    name, *words = shlex.split(command, comments=True)
    assert name == "bertology"
    done = CliRunner().invoke(app, words, prog_name="bertology")
    assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception!r}"
    return Done(command, done.output)


def run_all(page: str, swaps: Mapping[str, str] | None = None) -> list[Done]:
    """Run the commands of a page one after the other.

    `swaps` replaces words of them, to save time: a smaller model, fewer examples.
    """
    found = []
    for command in commands(page):
        for old, new in (swaps or {}).items():
            command = command.replace(old, new)
        found.append(run(command))
    return found
