"""Hostile files end in a clear message or in a right run: no traceback, no other code, no silence.

The cases are made in `hostile` and `hostile_cases`; the same seed gives the same case again:
`random_case(world, "model", 17)`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile import KINDS, World, call, random_case, wrong_with
from hostile_cases import NAMED

SECONDS = 30.0  # the longest silence, on a busy machine; most cases take a tenth of a second
QUICK = {"data": 8, "model": 8, "recipe": 16, "result": 16}
MANY = 150  # of each kind, in the long run
SLOW_NAMED = {
    "10 MB in one word",
    "catalogue nested deep",
    "recipe nested deep",
    "recipe's start of nobody",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "300")
        return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def check(arguments: list[str]) -> str:
    return wrong_with(call(arguments, seconds=SECONDS), seconds=SECONDS)


@pytest.mark.parametrize("name", [n for n in NAMED if n not in SLOW_NAMED])
def test_what_a_person_thought_of(world: World, name: str) -> None:
    assert not check(NAMED[name](world))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW_NAMED))
def test_what_takes_some_seconds_to_refuse(world: World, name: str) -> None:
    assert not check(NAMED[name](world))


@pytest.mark.parametrize("kind", KINDS)
def test_some_files_spoilt_at_random(world: World, kind: str) -> None:
    found = {seed: check(random_case(world, kind, seed)) for seed in range(QUICK[kind])}
    assert not {seed: wrong for seed, wrong in found.items() if wrong}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_files_spoilt_at_random(world: World, kind: str) -> None:
    found = {seed: check(random_case(world, kind, seed)) for seed in range(1000, 1000 + MANY)}
    assert not {seed: wrong for seed, wrong in found.items() if wrong}


def test_a_text_of_10_mb_is_cut_early_and_the_run_says_so(world: World) -> None:
    done = call(NAMED["10 MB in one line"](world), seconds=SECONDS)
    assert done.code == 0
    assert "1 of 1 texts was cut to 40 tokens" in done.shown
    assert done.seconds < SECONDS


def test_the_clock_stops_a_command_that_is_silent(tmp_path: Path) -> None:
    """The test of the tests: a hang is found, and so is a word of Python's own."""
    from hostile import Answer

    assert wrong_with(Answer(0, "", 31.0), seconds=30)
    assert wrong_with(Answer(1, "Error", 0.1), seconds=30)
    assert wrong_with(Answer(2, "'NoneType' object is not iterable is missing", 0.1), seconds=30)
    assert not wrong_with(Answer(2, "Error: there is no file.", 0.1), seconds=30)
