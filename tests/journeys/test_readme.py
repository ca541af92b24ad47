"""The README: the demo of its sixty seconds, then its five things to try."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from printed import commands, run

# Why a command is not run here: it is still parsed, in test_printed_commands.
LEFT_OUT = {
    "reproduce": "takes eleven minutes; tests/cli/test_reproduce.py runs it on a tiny model",
    "verify": "takes as long; tests/cli/test_verify.py",
    "explore": "serves until Ctrl-C; test_teacher",
}


@pytest.mark.slow
def test_the_five_things(reviews: Callable[..., None]) -> None:
    reviews(600, 120)
    printed = commands("README.md", "Five things to try")
    verbs = [command.split()[1] for command in printed]
    assert set(verbs) >= {"finetune", "run", "export", "score", "prune", "export-model", "view"}
    assert "bertology-mini" in run("bertology demo").said  # what `make demo` runs
    for verb, command in zip(verbs, printed, strict=True):
        if verb not in LEFT_OUT:
            run(command)
    made = ("bertology-mini.html", "reviews.html", "keys.html", "deploy/model.pt2")
    assert [name for name in made if not Path(name).is_file()] == []
