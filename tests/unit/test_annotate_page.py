"""The labelling page in a real browser: by keyboard, by mouse, on a telephone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.map_labels import read_labels
from bertology.data.map_sampling import sample_maps
from bertology.model.encoder import Encoder
from bertology.server.annotate import annotate_app
from bertology.server.labelling import Labelling
from bertology.server.map_pictures import picture_of
from browser import Browser, find_browser
from explorer import served

EVIL = "<img src=x onerror=alert(1)>"
PIECES = "the keys to cabinet are here < > = ( ) img src x alert 1".split()


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


@pytest.fixture
def address(labels: Path) -> Iterator[str]:
    """The page, served by a thread of this process."""
    find_browser()
    encoder = Encoder(tiny.model("bert"), tiny.tokenizer(PIECES), name="tiny")
    fields = frozenset({Field.TEXT, Field.TEXT_B})
    texts = [f"the keys to the cabinet are here {EVIL}"] * 4
    examples = [Example(str(i), text, "the keys are here") for i, text in enumerate(texts)]
    places = [(layer, head) for layer in range(3) for head in range(4)]
    plan = sample_maps("tiny", Corpus("small", examples, fields), places, 4)
    labelling = Labelling(plan, labels, annotator="ann <b>", turn=1)
    with served(
        lambda port: annotate_app(labelling, partial(picture_of, encoder), port=port)
    ) as where:
        yield where


READY = "document.getElementById('work').ariaBusy === 'false'"


def ready(browser: Browser, said: str) -> None:
    browser.wait_for(f"document.getElementById('status').textContent.includes({said!r}) && {READY}")


def keep(browser: Browser, name: str) -> None:
    """A picture to look at, where somebody asked for one."""
    if folder := os.environ.get("BERTOLOGY_SCREENSHOTS"):
        browser.screenshot(Path(folder) / name)


def test_maps_are_labelled_by_keyboard(address: str, labels: Path, tmp_path: Path) -> None:
    with Browser() as browser:
        browser.open(address)
        ready(browser, "0 of 4 labelled")
        browser.press("1")
        ready(browser, "Labelled vertical. 1 of 4")
        browser.evaluate("document.querySelectorAll('#types button')[3].focus()")
        browser.press("Enter")
        ready(browser, "Labelled block. 2 of 4")
        assert browser.evaluate("document.activeElement.dataset.label") == "block"
        browser.press("u")
        ready(browser, "Back to the previous map. 1 of 4")
        assert [x.label for x in read_labels(labels)] == ["vertical"]
        browser.press("2")
        ready(browser, "2 of 4")
        browser.press("s")
        ready(browser, "Skipped. 2 of 4 labelled, 1 skipped.")

        # Tokens at the mouse, and by arrow keys once the map has the focus.
        box = browser.evaluate(
            "(b => [b.left, b.top, b.width, b.height])"
            "(document.getElementById('map').getBoundingClientRect())"
        )
        browser.point(box[0] + 2, box[1] + 2)
        cell = "document.getElementById('cell').textContent"
        browser.wait_for(f"{cell}.startsWith('[CLS] → [CLS]: 0.')")
        browser.evaluate("document.getElementById('map').focus()")
        browser.press("ArrowRight")
        browser.wait_for(f"{cell}.startsWith('[CLS] → the: 0.')")
        keep(browser, "annotate.png")

        # A text is a text, whatever it says.
        assert browser.evaluate("document.images.length") == 0
        assert EVIL in browser.evaluate("document.getElementById('text').textContent")
        assert "ann <b>" in browser.evaluate("document.getElementById('who').textContent")

        browser.press("5")
        browser.wait_for("!document.getElementById('finished').hidden")
        assert browser.evaluate("document.activeElement.id") == "finished-title"
        browser.evaluate("document.querySelector('#finished a').click()")
        browser.wait_for("document.querySelector('table')")
        assert "ann <b>, pass 1" in browser.evaluate("document.body.textContent")
        assert browser.complaints == []
    assert [x.label for x in read_labels(labels)] == ["vertical", "diagonal", "heterogeneous"]


def test_it_fits_a_telephone_in_light_and_dark(address: str, tmp_path: Path) -> None:
    with Browser(width=390, height=844) as browser:
        papers = set()
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.open(address)
            ready(browser, "0 of 4 labelled")
            assert browser.evaluate("document.documentElement.scrollWidth") <= 390
            last = "[...document.querySelectorAll('#types button')].at(-1)"
            assert browser.evaluate(f"{last}.getBoundingClientRect().bottom") < 844
            papers.add(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
            canvas = "getComputedStyle(document.getElementById('map')).backgroundColor"
            assert browser.evaluate(canvas) == "rgb(255, 255, 255)"
            keep(browser, f"annotate-{scheme}-390.png")
        assert len(papers) == 2
        assert browser.complaints == []
