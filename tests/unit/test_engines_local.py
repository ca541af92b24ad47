"""Worker processes on this machine, also when they are killed for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

import bertology as bt
from bertology.errors import JobError
from bertology.results.store import Store
from bertology.run.local import LocalEngine, Pool
from bertology.studies import STUDIES
from toy.making import Diary, ToyWorld


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ToyWorld:
    return ToyWorld(tmp_path_factory.mktemp("world"))


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Diary:
    from toy.study import ToyLengths

    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    monkeypatch.setitem(STUDIES._loaded, "toy-lengths", ToyLengths)
    return Diary(tmp_path / "diary")


@pytest.fixture(scope="module")
def undisturbed(world: ToyWorld, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    from toy.study import ToyLengths

    folder = tmp_path_factory.mktemp("undisturbed")
    return bt.run(ToyLengths, world.model, task=world.corpus, store=str(folder)).table()


def in_background(action: object) -> threading.Thread:
    assert callable(action)
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_a_worker_killed_in_mid_job_changes_nothing(
    world: ToyWorld,
    diary: Diary,
    undisturbed: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kill -9 from outside, at a worker that has begun the third part."""
    monkeypatch.setenv("TOY_PAUSE", "0.1")
    # One worker at a time: each takes many seconds to start.
    monkeypatch.setattr("bertology.run.local.Pool", lambda workers, **more: Pool(1, **more))
    killed: list[int] = []

    def kill() -> None:
        process = diary.wait_for("part-2")
        os.kill(process, signal.SIGKILL)
        killed.append(process)

    killer = in_background(kill)
    store = Store(tmp_path / "results")
    result = bt.run("toy-lengths", world.model, task=world.corpus, store=store, workers=2)
    killer.join()
    assert killed
    assert os.getpid() not in killed
    assert diary.attempts() == {"part-0": 1, "part-1": 1, "part-2": 2, "part-3": 1}
    pd.testing.assert_frame_equal(result.table(), undisturbed, check_exact=True)
    assert len(store.measured.parts(str((result.provenance.measured or {})["key"]))) > 1


@pytest.mark.slow  # starts five processes
def test_a_job_that_always_kills_its_worker_is_given_up(
    world: ToyWorld, diary: Diary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAULT", "part-1=always-die")
    engine = LocalEngine(workers=2, retries=1)
    with pytest.raises(JobError, match="tried 2 times") as caught:
        bt.run("toy-lengths", world.model, task=world.corpus, store=str(tmp_path), engine=engine)
    assert "killed by signal 9 (SIGKILL)" in caught.value.problem
    assert "Finished parts are kept" in str(caught.value.hint)
    monkeypatch.delenv("TOY_FAULT")
    bt.run("toy-lengths", world.model, task=world.corpus, store=str(tmp_path))
    assert diary.attempts() == {"part-0": 1, "part-1": 3, "part-2": 1, "part-3": 1}


@pytest.mark.slow  # starts three processes
def test_a_part_survives_the_death_of_the_parent(
    world: ToyWorld, diary: Diary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker finishes the part it is at, saves it, and leaves. The script needs no guard."""
    monkeypatch.setenv("TOY_PAUSE", "0.1")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, bertology as bt\n"
        "from toy.study import ToyLengths\n"
        "bt.run(ToyLengths, sys.argv[1], task=sys.argv[2], store=sys.argv[3], workers=2)\n"
    )
    store = tmp_path / "results"
    parent = subprocess.Popen(
        [sys.executable, str(script), world.model, world.corpus, str(store)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    workers = [diary.wait_for("part-0"), diary.wait_for("part-1")]
    parent.kill()
    parent.wait()
    end = time.monotonic() + 30
    while any(is_alive(process) for process in workers) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(is_alive(process) for process in workers)
    monkeypatch.delenv("TOY_PAUSE")
    bt.run("toy-lengths", world.model, task=world.corpus, store=str(store))
    assert diary.attempts()["part-0"] == 1
    assert diary.attempts()["part-1"] == 1


def is_alive(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
