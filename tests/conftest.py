"""Fixtures that every test folder shares."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples every time: a change is judged by what it changes, not by the draw.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# `tiny` and `planted` make the models that tests of all folders use.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real datasets and checkpoints beside the project; absent elsewhere."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("needs the shared datasets and checkpoints beside the project folder")
    return folder
