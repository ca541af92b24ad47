"""The atlas in a real browser, opened from disk: by mouse, by keyboard, on a telephone, printed."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import toy_atlas as toy
from bertology.report.atlas.about import About, read_about
from bertology.report.atlas.compare import Side, two_models
from bertology.report.atlas.gathering import gather
from bertology.report.atlas.page import atlas_page
from bertology.report.latex import as_latex
from bertology.results.store import Store
from browser import Browser, find_browser
from toy_atlas import EVIL

AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
READY = "document.querySelectorAll('#grid td').length === 6"
CELL = "document.querySelectorAll('#grid td')[{}]"


def about(study: str) -> About:
    return read_about("Does it? Method: we look. Limits: none.", defaults={"seed": 0})


@pytest.fixture
def address(toy_store: Store, tmp_path: Path) -> str:
    """A report with a comparison, as a file."""
    find_browser()
    subject, other = gather(toy_store, "toy"), gather(toy_store, "other")
    path = tmp_path / "toy page.html"
    text = atlas_page(subject, about, two_models(subject, other))
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def text_of(browser: Browser, selector: str) -> str:
    return str(browser.evaluate(f"document.querySelector({selector!r}).textContent"))


def choose(browser: Browser, selector: str, value: str) -> None:
    """As a person does in a list or a field."""
    browser.evaluate(
        f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        f"(document.querySelector({selector!r}))"
    )


def option(browser: Browser, selector: str, ending: str) -> str:
    """The value of the first whose text ends so."""
    options = f"[...document.querySelectorAll({selector!r} + ' option')]"
    found = browser.evaluate(f"{options}.find(o => o.textContent.endsWith({ending!r})).value")
    return str(found)


def box_of(browser: Browser, element: str) -> list[float]:
    found: list[float] = browser.evaluate(
        f"(b => [b.left, b.top, b.width, b.height])({element}.getBoundingClientRect())"
    )
    return found


def keep(browser: Browser, name: str) -> None:
    """A picture to look at, where somebody asked for one."""
    if folder := os.environ.get("BERTOLOGY_SCREENSHOTS"):
        browser.screenshot(Path(folder) / name)


def test_heads_are_read_by_mouse_and_by_keyboard(address: str, tmp_path: Path) -> None:
    with Browser(width=1280) as browser:
        browser.open(address)
        browser.wait_for(READY)
        # The legend and its unit are there before anybody asks.
        assert "points of F1" in text_of(browser, "#legend")
        browser.evaluate("document.querySelector('#heads').scrollIntoView()")
        left, top, width, height = box_of(browser, CELL.format(5))
        assert abs(width - height) < 2  # square
        browser.point(left + width / 2, top + height / 2)
        browser.wait_for(
            "document.querySelector('#readout').textContent.includes('Layer 1, head 2')"
        )
        told = text_of(browser, "#readout")
        assert "0.2 points of F1, 95 % interval [0.1, 0.3]. Rank 1 of 6." in told
        assert "Holds after correction" in told

        browser.evaluate(f"{CELL.format(0)}.focus()")
        for key in ("ArrowDown", "ArrowRight"):
            browser.press(key)
        assert "Layer 1, head 1" in browser.evaluate("document.activeElement.ariaLabel")
        browser.press("Enter")
        assert text_of(browser, "#panel h3") == "Layer 1, head 1"
        assert browser.evaluate("document.activeElement.id") == "panel-title"
        assert browser.evaluate("document.querySelectorAll('#panel canvas').length") == 8
        browser.evaluate(f"{CELL.format(1)}.click()")
        assert text_of(browser, "#panel h3") == "Layer 0, head 1"

        # The map of that head, cell by cell.
        browser.evaluate("document.querySelector('#panel canvas').focus()")
        browser.press("ArrowRight")
        browser.wait_for("document.querySelector('.cell').textContent.includes('→ 38 %: 0')")
        browser.press("ArrowDown")
        browser.wait_for("document.querySelector('.cell').textContent === '38 % → 38 %: 1'")
        keep(browser, "atlas.png")

        # The address leads back to what is seen.
        choose(browser, "#measure", "toy-study/kind")
        assert "plain (2)" in text_of(browser, "#legend")
        assert EVIL in text_of(browser, "#legend")
        there = browser.evaluate("location.href")
        assert "head=0.1" in there
        assert "measure=toy-study/kind" in there
        browser.open("about:blank")
        browser.open(there)
        browser.wait_for(f"{READY} && document.querySelector('#panel h3')")
        assert text_of(browser, "#panel h3") == "Layer 0, head 1"
        assert browser.evaluate("document.querySelector('#measure').value") == "toy-study/kind"
        choose(browser, "#measure", "maps")
        assert browser.evaluate("document.querySelectorAll('#grid td canvas').length") == 6
        assert browser.evaluate("document.querySelectorAll('[onerror]').length") == 0
        assert browser.complaints == []


def test_claims_are_narrowed_and_lead_to_their_evidence(address: str, tmp_path: Path) -> None:
    with Browser() as browser:
        browser.open(address)
        browser.wait_for(READY)
        count = "#claims-count"
        assert text_of(browser, count) == "2 of 3 claims"  # those that were judged
        choose(browser, "#claims-verdict", "")
        assert text_of(browser, count) == "3 of 3 claims"
        choose(browser, "#claims-verdict", "not run")
        assert text_of(browser, count) == "1 of 3 claims"
        choose(browser, "#claims-verdict", "")
        choose(browser, "#claims-study", "toy-study")
        choose(browser, "#claims-text", "losses SO")
        assert text_of(browser, count) == "1 of 3 claims"
        choose(browser, "#claims-paper", "Paper of never-run")
        assert text_of(browser, count) == "0 of 3 claims"
        # A link to a claim shows it again; one to a result unfolds it.
        browser.evaluate("location.hash = '#claim-toy.gains'")
        browser.wait_for("!document.getElementById('claim-toy.gains').hidden")
        last = "[...document.querySelectorAll('details.entry')].at(-1)"
        assert not browser.evaluate(f"{last}.open")
        browser.evaluate(f"location.hash = '#' + {last}.id")
        browser.wait_for(f"{last}.open")

        # The comparison: two grids and their difference, with intervals.
        assert browser.evaluate("document.querySelectorAll('#compare .pane').length") == 3
        assert "Difference and interval" in text_of(browser, "#compare")
        assert "1 [0.8, 1.2] excludes 0" in text_of(browser, "#compare table:not(.heads)")
        choose(browser, "#compare-measure", "toy-study/kind/1")
        assert "The same kind for 5 of 6 heads." in text_of(browser, "#compare")
        assert browser.complaints == []


def test_figures_and_tables_are_saved_without_a_server(address: str, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    with Browser() as browser:
        browser.download_to(folder)
        browser.open(address)
        browser.wait_for(READY)
        for where in ("#legend", "#studies figure", ".numbers", ".profile"):
            names = browser.evaluate(
                f"[...document.querySelectorAll({where!r} + ' .buttons')[0].children]"
                ".map(b => b.textContent)"
            )
            for name in [n for n in names if n != "All rows"]:
                browser.evaluate(
                    f"[...document.querySelectorAll({where!r} + ' .buttons')[0].children]"
                    f".find(b => b.textContent === {name!r}).click()"
                )
                time.sleep(0.05)
        until = time.monotonic() + 30
        while len(saved := [p for p in folder.iterdir() if p.suffix != ".crdownload"]) < 8:
            assert time.monotonic() < until, saved
            time.sleep(0.05)
        assert browser.complaints == []
    by_kind: dict[str, list[bytes]] = {}
    for path in saved:
        by_kind.setdefault(path.suffix, []).append(path.read_bytes())
    assert {kind: len(files) for kind, files in by_kind.items()} == {
        ".svg": 3, ".png": 3, ".csv": 1, ".tex": 1,
    }  # fmt: skip
    assert all(b"<svg" in data for data in by_kind[".svg"])
    assert all(data.startswith(b"\x89PNG") for data in by_kind[".png"])
    lines = by_kind[".csv"][0].decode().splitlines()
    assert lines[0] == "layer,head,gain,gain_low,gain_high,p,note"
    assert lines[1].endswith('"</script><img src=""x"" onerror=alert(1)> & co"') or EVIL in lines[1]
    (tex,) = by_kind[".tex"]
    assert rb"$1.2 \times 10^{-7}$" in tex
    assert tex.decode() in [as_latex(r.tables["heads"]) for r in toy.results()]


def test_units_are_not_mixed_and_a_broken_address_asks_for_nothing(
    toy_store: Store, tmp_path: Path
) -> None:
    find_browser()
    far = toy.make(toy.MODEL, "far", 100.0, parameters={"level": 0.9})
    far.arrays.attrs["unit"] = "points of accuracy"
    toy_store.save(far)
    path = tmp_path / "page.html"
    subject = gather(toy_store, "toy")
    both = Side("a", subject.entries), Side("b", subject.entries)
    path.write_text(atlas_page(subject, about, both), encoding="utf-8")
    with Browser() as browser:
        for broken in ("#head=%zz", "#%zz"):
            browser.open("about:blank")
            browser.open(path.as_uri() + broken)
            browser.wait_for(f"{READY} && document.querySelector('#studies .buttons button')")
        choose(browser, "#of", option(browser, "#of", "plain"))
        assert text_of(browser, "#legend .ends") == "−0.800.8"  # of what is in points of F1
        choose(browser, "#compare-measure", option(browser, "#compare-measure", ", far"))
        browser.evaluate("document.querySelector('#compare-grids td').click()")
        assert "90 % interval" in text_of(browser, "#compare-grids .readout")
        assert "95 %" not in text_of(browser, "#compare-grids .readout")
        assert browser.complaints == []


def test_a_head_like_all_others_does_not_stand_out(toy_store: Store, tmp_path: Path) -> None:
    find_browser()
    same = toy.make(toy.MODEL, "same")
    same.arrays["gain"][:] = 0.0
    toy_store.save(same)
    path = tmp_path / "page.html"
    path.write_text(atlas_page(gather(toy_store, "toy"), about), encoding="utf-8")
    with Browser() as browser:
        browser.open(f"{path.as_uri()}#head=0.0")
        browser.wait_for(f"{READY} && document.querySelector('#panel .strip')")
        rows = browser.evaluate(
            "[...document.querySelectorAll('#panel table.scores tbody tr')].map(r => r.textContent)"
        )
        told = next(row for row in rows if "Gain" in row and "same" in row)
        assert "all equal" in told
        assert "highest" not in told
        assert "lowest" not in told
        own = next(row for row in rows if "Gain" in row and "plain" in row)
        assert "lowest" in own
        choose(browser, "#of", option(browser, "#of", "same"))
        over = "new Event('mouseover', {bubbles: true})"
        browser.evaluate(f"{CELL.format(1)}.dispatchEvent({over})")
        assert "All heads are equal." in text_of(browser, "#readout")
        assert browser.complaints == []


def test_a_tap_shows_a_figure_in_full_size(address: str, tmp_path: Path) -> None:
    with Browser(width=390, height=844) as browser:
        browser.open(address)
        browser.wait_for(READY)
        picture = "document.querySelector('.paper img')"
        browser.evaluate(f"{picture}.scrollIntoView()")
        before = box_of(browser, picture)[2]
        browser.evaluate(f"{picture}.click()")
        assert before < 390 < 800 < box_of(browser, picture)[2]
        assert browser.evaluate("document.querySelector('.paper').tabIndex") == 0
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
        keep(browser, "atlas-full-390.png")
        assert violations(browser) == [] if AXE.is_file() else True
        browser.evaluate(f"{picture}.click()")
        assert box_of(browser, picture)[2] == before


def test_it_fits_a_telephone_in_light_and_dark_and_prints(address: str, tmp_path: Path) -> None:
    with Browser(width=390, height=844) as browser:
        papers = set()
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.open("about:blank")
            browser.open(f"{address}#head=1.2")
            browser.wait_for(f"{READY} && document.querySelector('#panel h3')")
            assert browser.evaluate("document.documentElement.scrollWidth") <= 390
            papers.add(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
            keep(browser, f"atlas-{scheme}-390.png")
        assert len(papers) == 2
        printed = base64.b64decode(browser.call("Page.printToPDF")["data"])
        assert printed.startswith(b"%PDF")
        assert browser.complaints == []


def test_it_is_accessible(address: str, tmp_path: Path) -> None:
    if not AXE.is_file():
        pytest.skip("needs axe-core: npm ci --prefix tests")
    with Browser(width=1280) as browser:
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.open("about:blank")
            browser.open(f"{address}#head=1.2")
            browser.wait_for(f"{READY} && document.querySelector('#panel h3')")
            assert violations(browser) == []


def violations(browser: Browser) -> list[Any]:
    """What axe-core finds wrong, in short."""
    browser.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
    found = browser.evaluate("axe.run().then(r => JSON.stringify(r.violations))")
    return [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in json.loads(found)]
