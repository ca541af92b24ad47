"""Drafts of killed processes are removed; those of living ones are left alone."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from bertology.drafts import draft_folder, locked, put_in_place, remove_abandoned
from bertology.results.files import LocalFiles


def aged(path: Path) -> Path:
    """As if it had been written a minute ago."""
    os.utime(path, (time.time() - 60,) * 2)
    return path


def left_behind(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "half").write_text("half")
    return aged(path)


def test_the_next_draft_removes_what_a_killed_run_left(tmp_path: Path) -> None:
    dead = left_behind(tmp_path / ".model.01234567")
    other = left_behind(tmp_path / ".other.01234567")
    fresh = tmp_path / ".model.89abcdef"  # of a process that has not locked it yet
    fresh.mkdir()
    with draft_folder(tmp_path / "model") as draft:
        assert draft.is_dir()
        assert not dead.exists()
        assert other.exists()
        assert fresh.exists()
    assert not draft.exists()


def test_a_draft_in_use_is_left_alone(tmp_path: Path) -> None:
    with draft_folder(tmp_path / "model") as first:
        aged(first)
        with draft_folder(tmp_path / "model") as second:
            assert first.is_dir()
            assert second != first


def test_killed_between_two_moves_the_old_one_is_put_back(tmp_path: Path) -> None:
    left_behind(tmp_path / ".model.01234567.old")
    with draft_folder(tmp_path / "model"):
        assert (tmp_path / "model" / "half").read_text() == "half"
    left_behind(tmp_path / ".model.01234567.old")
    with draft_folder(tmp_path / "model"):
        assert not (tmp_path / ".model.01234567.old").exists()


def test_files_of_a_store_are_swept_when_the_run_goes_on(tmp_path: Path) -> None:
    dead = tmp_path / "study" / ".arrays.nc.0123.tmp"
    dead.parent.mkdir()
    dead.write_bytes(b"half")
    aged(dead)
    used = tmp_path / "study" / ".heads.parquet.4567.tmp"
    used.write_bytes(b"half")
    aged(used)
    with locked(used):
        LocalFiles(str(tmp_path), str(tmp_path)).write("study/result.json", b"{}")
    assert sorted(p.name for p in dead.parent.iterdir()) == [used.name, "result.json"]


def test_nothing_happens_where_nothing_is(tmp_path: Path) -> None:
    remove_abandoned(tmp_path / "nowhere", "*")
    with pytest.raises(FileNotFoundError), locked(tmp_path / "nothing"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_weights_are_as_readable_as_their_folder(tmp_path: Path) -> None:
    """safetensors writes files that only their owner may read."""
    with draft_folder(tmp_path / "model") as draft:
        (draft / "model.safetensors").touch(mode=0o600)
        draft.chmod(0o750)
        put_in_place(draft, tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").stat().st_mode & 0o777 == 0o640
