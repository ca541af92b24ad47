"""Pages in every script: which way words run, and letters that no font of this machine has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bertology as bt
import tiny
from bertology.model.encoder import Encoder
from browser import Browser, find_browser
from pages import idle, keep, text, texts

ARABIC, HINDI, JAPANESE = "القط ##ات كبيرة 2019", "नमस्ते दुनिया", "日本"
STATIC = Path(bt.__file__).parent


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    find_browser()
    with Browser(width=1280, height=900) as made:
        yield made


def shown(browser: Browser, words: str, to: Path, name: str) -> None:
    pieces = [*ARABIC.split(), *HINDI.split(), *JAPANESE]
    pieces += [f"word{i}" for i in range(tiny.VOCAB - 5 - len(pieces))]
    encoder = Encoder(tiny.model("bert"), tiny.tokenizer(pieces), name="tiny")
    browser.open(f"file://{bt.view(encoder, words).save(to / 'page.html')}")
    idle(browser)
    keep(browser, f"{name}.png")


def boxes(browser: Browser, selector: str) -> list[Any]:
    """The left edges of elements."""
    found: list[Any] = browser.evaluate(
        f"[...document.querySelectorAll({selector!r})].map(e => e.getBoundingClientRect().left)"
    )
    return found


def test_arabic_runs_from_right_to_left(browser: Browser, tmp_path: Path) -> None:
    shown(browser, "القطات كبيرة 2019", tmp_path, "arabic")
    lefts = boxes(browser, "#tokens > li")
    assert lefts == sorted(lefts, reverse=True)
    words = texts(browser, "#tokens > li")
    assert words[:3] == ["[CLS]", "القط", "##ات"]
    direction = "getComputedStyle(document.querySelector({!r})).direction"
    piece = "#tokens > li:nth-child(3) > *"
    assert browser.evaluate(direction.format(piece)) == "rtl"
    assert browser.evaluate(direction.format("#kept-text")) == "rtl"
    assert browser.evaluate(direction.format("#tokens > li > .special")) == "ltr"
    assert browser.evaluate(direction.format("#matrix .side span:nth-child(2)")) == "rtl"
    assert browser.evaluate("document.getElementById('fonts-note').hidden")


def test_other_scripts_run_from_left_to_right(browser: Browser, tmp_path: Path) -> None:
    shown(browser, HINDI, tmp_path, "hindi")
    lefts = boxes(browser, "#tokens > li")
    assert lefts == sorted(lefts)
    upright = "getComputedStyle(document.querySelector('#matrix .top span')).textOrientation"
    assert browser.evaluate(upright) == "sideways"  # or Chinese characters stand on their heads


def test_letters_without_a_font_are_told_by_number(browser: Browser, tmp_path: Path) -> None:
    """Or shown: some machines have fonts for them, others have none."""
    shown(browser, JAPANESE, tmp_path, "japanese")
    words, note = texts(browser, "#tokens > li"), text(browser, "#fonts-note")
    if note:
        assert words == ["[CLS]", "U+65E5", "U+672C", "[SEP]"]
        assert text(browser, "#kept-text") == "U+65E5·U+672C"
        assert "such as U+65E5" in note
        assert "fonts-noto-cjk" in note
    else:
        assert words == ["[CLS]", "日", "本", "[SEP]"]


def test_texts_in_fields_tables_and_planes_run_as_their_letters_do() -> None:
    page = (STATIC / "server" / "static" / "explore" / "index.html").read_text("utf-8")
    areas = page.split("<textarea")[1:]
    assert len(areas) == 3
    assert all('dir="auto"' in area.partition(">")[0] for area in areas)
    style = (STATIC / "report" / "templates" / "page.css").read_text("utf-8")
    assert "td { min-width: 4.5rem; unicode-bidi: plaintext; }" in style
    points = (STATIC / "report" / "atlas" / "static" / "points.js").read_text("utf-8")
    assert 'node("bdi", {}' in points
