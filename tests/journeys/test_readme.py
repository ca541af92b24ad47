"""The sixty seconds of the README: the demo, then the commands below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from printed import commands, run

# Why a command is not run here: it is still parsed, in test_printed_commands.
LEFT_OUT = {
    "mrpc": "needs data that cannot be bundled",
    "my-checkpoint": "stands for a model of the reader",
    "reproduce": "takes eleven minutes; tests/cli/test_reproduce.py runs it on a tiny model",
    "verify": "takes as long; tests/cli/test_verify.py",
    "explore": "serves until Ctrl-C; test_teacher",
}


@pytest.mark.slow
def test_the_sixty_seconds(here: Path) -> None:
    printed = commands("README.md", "Sixty seconds")
    assert printed
    assert "bertology-mini" in run("bertology demo").said  # what `make demo` runs
    for command in printed:
        if not any(word in command for word in LEFT_OUT):
            run(command)
    assert Path("bertology-mini.html").is_file()
