"""Ctrl-C for real: SIGINT to the whole foreground, as a terminal sends it; and TERM to the one
process that a batch system knows."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import bertology as bt
from toy.making import Diary, ToyWorld, make_metadata
from toy.study import ToyLengths


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ToyWorld:
    return ToyWorld(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize(
    "stop", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_stopping_leaves_a_state_that_the_said_command_resumes(
    stop: signal.Signals, world: ToyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_metadata(tmp_path / "site")
    diary = Diary(tmp_path / "diary")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(site), *sys.path]),
        "TOY_DIARY": str(diary.folder),
        "TOY_PAUSE": "0.5",  # long enough to be interrupted on a busy machine
    }
    start = [sys.executable, "-m", "bertology.cli.main"]
    store = ["--store", str(tmp_path / "results")]
    asked = ["run", "toy-lengths", "--model", world.model, "--task", world.corpus, *store]
    running = subprocess.Popen(
        [*start, *asked, "--workers", "1"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a process group of its own, to be interrupted as a whole
        # Tests that were started in the background would hand down that SIGINT is ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    diary.wait_for("part-1", seconds=120)
    if stop is signal.SIGINT:
        os.killpg(running.pid, stop)
    else:
        running.terminate()
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    # Quiet: what happened and what to do, no noise of the libraries below, no bar. A busy machine
    # may have taken so long that the run has said how far it is.
    said = [line for line in errors.strip().splitlines() if not line.startswith("toy-lengths: ")]
    assert len(said) == 2, errors
    assert "parts of 'toy-lengths' are kept" in errors
    kept = {path.stem for path in tmp_path.glob("results/**/part-*.nc")}
    assert kept
    begun = diary.attempts()
    command = shlex.split(errors.partition("with: ")[2].strip())
    assert command == ["bertology", *asked, "--workers", "1"]

    monkeypatch.setenv("TOY_DIARY", str(diary.folder))
    result = bt.run(ToyLengths, world.model, task=world.corpus, store=store[1])
    ended = diary.attempts()
    assert len(ended) == 4
    assert {part: ended[part] for part in kept} == {part: begun[part] for part in kept}
    monkeypatch.delenv("TOY_DIARY")
    whole = bt.run(ToyLengths, world.model, task=world.corpus, store=str(tmp_path / "other"))
    assert result.table().equals(whole.table())
