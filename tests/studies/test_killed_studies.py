"""Kill -9 in the middle of a study, run it again, and all numbers are those of an undisturbed run.

What was done before the kill is not done again: every loss of every step is written down, and the
lines of a run that was killed and continued are those of the undisturbed one, but for what was
lost, which each case says.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from multiprocessing import forkserver, get_context
from pathlib import Path
from typing import Any

import pytest

import killed_runs
from bertology.results.result import Result
from bertology.results.store import Store
from killed_runs import CASES, Kill

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has neither fork nor SIGKILL")
IMPORTED = [
    "killed_runs", "bertology.run.api", "h5netcdf", "pandas", "pyarrow.parquet", "rich.progress",
    "scipy.stats", "sklearn.linear_model", "xarray",
]  # fmt: skip
CLOCKED = ["seconds", "time"]  # columns that no two runs have in common


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models and data; and a process that has imported everything, from which runs are forked.

    It has done nothing else: no thread of torch and no tokenizer is copied.
    """
    made = tmp_path_factory.mktemp("given")
    killed_runs.prepare(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.setenv("OMP_NUM_THREADS", "1")
        get_context("forkserver").set_forkserver_preload(IMPORTED)
        forkserver.ensure_running()
    return made


# The others go on by the same ways as these, and take the most time.
QUICK = ("layer-restoring",)
ALL = [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES]


@pytest.mark.parametrize("name", ALL)
def test_a_killed_study_resumes_to_the_same_numbers(
    name: str, folder: Path, tmp_path: Path
) -> None:
    whole = ran(name, folder, tmp_path / "whole", None)
    place, continued = tmp_path / "killed", list[str]()
    for kill in CASES[name].kills:
        continued += kept(ran(name, folder, place, kill), kill)
    continued += ran(name, folder, place, None)
    assert continued == whole
    if name in killed_runs.STAGES:
        assert model(place) == model(tmp_path / "whole")
        return
    one, other = (result(at) for at in (tmp_path / "whole", place))
    assert one.identity == other.identity
    assert list(one.tables) == list(other.tables)
    for title, table in one.tables.items():
        both = (t.drop(columns=CLOCKED, errors="ignore") for t in (table, other.table(title)))
        assert next(both).equals(next(both)), title
    assert one.arrays.identical(other.arrays)
    assert repr(one.evidence()) == repr(other.evidence())
    assert one.reasons() == other.reasons()
    assert weights(place) == weights(tmp_path / "whole")


def ran(name: str, folder: Path, place: Path, kill: Kill | None) -> list[str]:
    """Run a case in a process of its own, to its end or its kill; what it wrote down."""
    diary = place.with_name("diary")
    diary.unlink(missing_ok=True)
    given = (name, folder, place, diary, kill)
    process = get_context("forkserver").Process(target=killed_runs.work, args=given)
    process.start()
    process.join(120)
    assert process.exitcode == (0 if kill is None else -signal.SIGKILL)
    return diary.read_text(encoding="utf-8").splitlines()


def kept(done: list[str], kill: Kill) -> list[str]:
    """The lines of a killed process without those that the next one must do again."""
    lost, found = Counter(kill.lost), []
    for line in reversed(done):
        event = line.partition(":")[0]
        if lost[event]:
            lost[event] -= 1
        else:
            found.append(line)
    assert not lost.total()
    return found[::-1]


def result(place: Path) -> Result:
    store = Store(str(place))
    (only,) = store.list()
    return store.load(only)


def weights(place: Path) -> dict[str, bytes]:
    """All that lies beside the result: models, walks, adversaries; and nothing unfinished."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted((place / "trained").rglob("*"))
        if path.suffix in (".safetensors", ".draft") or ("rows" in path.parts and path.is_file())
    }


def model(place: Path) -> tuple[bytes, Any]:
    """A model's weights, and what its record tells of its training but times."""
    (made,) = (place / "model").iterdir()
    record = json.loads((made / "bertology.json").read_text(encoding="utf-8"))
    history = [{k: v for k, v in e.items() if k not in CLOCKED} for e in record["history"]]
    return (made / "model.safetensors").read_bytes(), history
