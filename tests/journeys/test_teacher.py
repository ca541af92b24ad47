"""The teacher: pages for a class, as docs/how-to/teach.md prints them."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from printed import commands, printed, run

PAGE = "docs/how-to/teach.md"


def of(verb: str) -> list[str]:
    return [command for command in commands(PAGE) if command.split()[1] == verb]


def test_the_files_for_everybody(here: Path) -> None:
    assert len(of("view")) == 3
    for command in of("view"):
        words = shlex.split(command)
        page = Path(words[words.index("--to") + 1])
        assert str(page) in run(command).said
        text = page.read_text(encoding="utf-8")
        assert text.startswith("<!doctype html>")
        # It works without a network: nothing is fetched from elsewhere.
        assert 'src="http' not in text
        assert 'href="http' not in text
        assert all(word in text.lower() for word in words[2].lower().split()[:2])
    assert "[MASK]" in Path("guess.html").read_text(encoding="utf-8")


def test_the_same_as_a_cell_of_a_notebook(here: Path) -> None:
    (block,) = printed(PAGE, "python")
    names: dict[str, Any] = {}
    exec(compile(block, PAGE, "exec"), names)
    assert "keys" in names["page"]._repr_html_()
    names["page"].save("keys.html")
    assert Path("keys.html").is_file()


def test_the_live_page(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is printed, but on any free port and looked at by a test instead of a browser."""
    testing = pytest.importorskip("fastapi.testclient")
    seen: list[str] = []

    def look(app: Any, claimed: socket.socket, *, open_browser: bool) -> None:
        assert open_browser
        client = testing.TestClient(app, base_url=f"http://127.0.0.1:{claimed.getsockname()[1]}")
        answer = client.get("/")
        assert answer.status_code == 200
        seen.append(answer.text)

    monkeypatch.setattr("bertology.server.serving.serve", look)
    (command,) = of("explore")
    assert "Page: http://127.0.0.1:" in run(f"{command} --port 0").said
    assert "Tour" in seen[0]
    assert "Present" in seen[0]
