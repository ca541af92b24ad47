"""Fixtures that every test folder shares."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from bertology.results.store import Store

# The same examples every time: a change is judged by what it changes, not by the draw.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
# Nor by numbers that stand in our sources: all would be parsed, to be tried as examples.
providers._get_local_constants = lambda: providers._local_constants

# `tiny` and `planted` make the models that tests of all folders use; benchmarks have worlds that
# are known, and what trains the bundled networks.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from toy_atlas import toy_store as toy_store  # noqa: E402

pytest_plugins = ["seconds_by_file"]

_DRAW = Store._draw


def pytest_collection_finish() -> None:
    """What is imported by now stays: it need not be looked through for garbage again and again.

    What tests make is looked through less often than Python would do it: a test makes many objects
    that are gone soon without it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def nothing_drawn() -> Iterator[None]:
    """A store draws all figures of what it saves, which takes longer than most tests.

    That stored results are drawn is tested once for each study (`ResultConformance`).
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "_draw", lambda *given: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_flushed() -> Iterator[None]:
    """A store waits until the disk has what it writes, thousands of times in all tests.

    Only a machine that loses its power would tell the difference; killed processes do not.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def all_cores() -> Iterator[None]:
    """`explore` changes how torch computes for the rest of its process; other tests share ours.

    With oneDNN switched off last bits differ, and what a killed process began, which has it on,
    would not be continued to the bit.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertology.model.cores.leave_a_core", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def little_timed() -> Iterator[None]:
    """How quick a tiny model is on a busy machine is nothing that a test could look at."""
    from bertology.train import speed

    with pytest.MonkeyPatch.context() as patch:
        for name, few in (("_BATCHES", 2), ("_ROUNDS", 1), ("_TIMES", 1), ("_ALONE", 2)):
            patch.setattr(speed, name, few)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_command() -> Iterator[None]:
    """typer's runner makes all commands anew for every line that a test types."""
    from typer import testing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", cache(testing._get_command))
        yield


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test have the figures drawn."""
    monkeypatch.setattr(Store, "_draw", _DRAW)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real datasets and checkpoints beside the project; absent elsewhere."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("needs the shared datasets and checkpoints beside the project folder")
    return folder
