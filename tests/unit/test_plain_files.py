"""Paths, UTF-8 and JSON from outside, read in one place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bertology.errors import DataError, ModelError
from bertology.plain_files import local_path, parse_json, read_bytes, read_utf8


def test_paths_are_expanded_and_nobodys_home_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert local_path("~/a.csv") == Path("/home/ann/a.csv")
    assert local_path("~nouser/a.csv") == Path("~nouser/a.csv")
    with pytest.raises(ModelError, match="too long"):
        local_path("x" * 300, error=ModelError)
    with pytest.raises(DataError, match="too long"):
        local_path("/".join(["x" * 100] * 50))
    with pytest.raises(DataError, match="NUL"):
        local_path("a\x00b")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="a pipe or a device"):
        read_bytes(tmp_path / "pipe")
    with pytest.raises(DataError, match="a folder"):
        read_bytes(tmp_path)
    with pytest.raises(DataError, match="no file"):
        read_bytes(tmp_path / "nothing")
    (tmp_path / "a").write_bytes(b"up\n\xff")
    with pytest.raises(DataError, match="0xff in line 2"):
        read_utf8(tmp_path / "a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deep"),
        ("9" * 5000, "too many digits"),
        ('{"a": "\\ud800"}', "half a character"),
        ('{"\\udc00": 1}', "half a character"),
        ("[1,\n2,\n}", r"f, line 9: not JSON"),
    ],
)
def test_json_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_json(text, label="f", first_line=7)


def test_whole_characters_beyond_the_first_plane_are_read() -> None:
    assert parse_json('"\\ud83d\\ude00"', label="f") == "\U0001f600"
