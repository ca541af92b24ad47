"""Ray workers, also when they are killed for real."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bertology as bt
from bertology.errors import CapabilityError, MissingExtraError
from bertology.results.store import Store
from bertology.run.plan import Resources
from bertology.run.ray import RayEngine, _check_feasible
from bertology.studies import STUDIES
from toy.making import Diary, ToyWorld
from toy.study import ToyLengths

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own making, at import and at exit


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ToyWorld:
    return ToyWorld(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def cluster(world: ToyWorld) -> Iterator[Any]:
    """A Ray that is there already; the engine uses it and leaves it running."""
    os.environ["TOY_DIARY"] = str(world.folder / "diary")
    os.environ["TOY_PAUSE"] = "0.1"
    os.environ["TOY_FAULT"] = ""
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=80 * 1024 * 1024,
        log_to_driver=False,
    )
    yield ray
    ray.shutdown()
    for name in ("TOY_DIARY", "TOY_PAUSE", "TOY_FAULT"):
        os.environ.pop(name)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES._loaded, "toy-lengths", ToyLengths)


@pytest.mark.slow
def test_a_killed_ray_worker_changes_nothing(world: ToyWorld, cluster: Any, tmp_path: Path) -> None:
    """kill -9 from outside, at the worker that has begun the third part."""
    diary = Diary(world.folder / "diary")
    killed: list[int] = []

    def kill() -> None:
        process = diary.wait_for("part-2")
        os.kill(process, signal.SIGKILL)
        killed.append(process)

    killer = threading.Thread(target=kill)
    killer.start()
    store = Store(tmp_path / "results")
    result = bt.run(
        "toy-lengths", world.model, task=world.corpus, store=store, engine="ray", workers=2
    )
    killer.join()
    assert killed
    assert os.getpid() not in killed
    attempts = diary.attempts()
    assert attempts["part-2"] == 2
    assert attempts["part-0"] == attempts["part-1"] == 1
    assert cluster.is_initialized()
    undisturbed = bt.run("toy-lengths", world.model, task=world.corpus, store=str(tmp_path / "u"))
    pd.testing.assert_frame_equal(result.table(), undisturbed.table(), check_exact=True)


def test_a_part_that_fails_on_ray_says_why(world: ToyWorld, cluster: Any, tmp_path: Path) -> None:
    missing = world.folder / "gone"
    missing.mkdir(exist_ok=True)
    encoder = bt.load(world.model)
    encoder.spec = {"name": str(missing)}  # the workers will not find it
    with pytest.raises(bt.BertologyError, match=r"config\.json"):
        bt.run(
            "toy-lengths", encoder, task=world.corpus, store=str(tmp_path), engine="ray", workers=1
        )


def test_more_than_there_is_is_refused(cluster: Any, world: ToyWorld) -> None:
    class Asked:
        part = "part-0"
        resources = Resources(cpus=1000)

    with pytest.raises(CapabilityError, match="needs 1000 CPU; this Ray has 2"):
        _check_feasible(cluster, [Asked()])  # type: ignore[list-item]


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertology\[ray\]'"):
        next(RayEngine().run([], None, lambda steps: None))  # type: ignore[arg-type]
