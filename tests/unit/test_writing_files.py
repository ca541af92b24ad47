"""Files that are written: whole or not at all, and nothing that is no file is replaced."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bertology.drafts import draft_file, write_whole


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "told.txt"
    place.write_text("before")

    def fail() -> None:
        with draft_file(place) as draft:
            draft.write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert place.read_text() == "before"
    assert list(tmp_path.iterdir()) == [place]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("before")
    link = tmp_path / "link"
    link.symlink_to("there")
    write_whole(link, "after")
    assert link.is_symlink()
    assert (tmp_path / "there").read_text() == "after"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "told")
    reader.join(10)
    assert got == ["told"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_a_device() -> None:
    write_whole(Path("/dev/null"), "told")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_the_standard_output_is_not_replaced_where_it_goes_to_a_file(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from bertology.drafts import write_whole\n"
        "print('one', flush=True); write_whole(Path('/dev/stdout'), 'two\\n'); print('three')"
    )
    place = tmp_path / "out"
    with place.open("a") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert place.read_text().split() == ["one", "two", "three"]
    assert Path("/dev/stdout").is_symlink()
