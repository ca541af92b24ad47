"""The explorer in a real browser: as a person uses it, by mouse, by keyboard, on a telephone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from accessibility import find_barriers, need_axe
from bertology.model.encoder import Encoder
from browser import Browser, find_browser
from explorer import serving
from pages import IDLE, idle, text, texts

OUTLIER = 7
EVIL = "<img src=x onerror=alert(1)>"
PIECES = (
    "the keys to old cabinet are on table . dog that chased cats was barking because it hungry "
    "nurse thanked doctor , but she never heard from him again a man is playing guitar somebody "
    "makes music here < > = ( ) img src x alert 1 one two three four five"
).split()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The page, served by a thread of this process."""
    find_browser()
    made = tiny.model("bert", "mlm")
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            layer.output.LayerNorm.weight[OUTLIER] = 5.0
    encoder = Encoder(made, tiny.tokenizer(PIECES), head="mlm", name="tiny <b>")
    with serving(encoder) as found:
        yield found


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(width=1280, height=900) as made:
        yield made


FIRST = f"{IDLE} && document.querySelector('#predictions td')"


def cell(layer: int, head: int) -> str:
    """A head in the grid; -1 is the heading."""
    return f"#grid [role=row]:nth-child({layer + 2}) > :nth-child({head + 2})"


def write(browser: Browser, words: str) -> None:
    """Replace the text, as one does: into the field, select all, type."""
    browser.click("#text")
    browser.evaluate("document.getElementById('text').select()")
    browser.type(words)


def pick(browser: Browser, menu: str, value: str) -> None:
    browser.evaluate(
        f"(m => {{ m.value = {json.dumps(value)}; m.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById({menu!r}))"
    )


def sort_by(browser: Browser, title: str) -> None:
    pick(browser, "search", str(texts(browser, "#search option").index(title)))
    idle(browser, "document.querySelectorAll('#ranking li').length === 10")


def keep(browser: Browser, name: str) -> None:
    """A picture to look at, where somebody asked for one."""
    if folder := os.environ.get("BERTOLOGY_SCREENSHOTS"):
        browser.screenshot(Path(folder) / name)


def test_a_newcomer_sees_maps_and_predictions_at_once(address: str, browser: Browser) -> None:
    browser.open(address)
    browser.wait_for(FIRST)
    assert text(browser, "#model").startswith("tiny <b>: BERT, 3 layers × 4 heads, 24 dimensions")
    assert len(texts(browser, "#grid [role=gridcell]")) == 12
    assert texts(browser, "#tokens [aria-pressed=true]") == ["are"]
    assert "Instead of are" in text(browser, "#predictions caption")
    assert "Click a map" in text(browser, "#status")
    painted = (
        "(c => new Set(new Uint32Array(c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.buffer)).size)"
        "(document.querySelector('#grid canvas'))"
    )
    assert browser.evaluate(painted) > 20  # colours: there is something on the canvas
    marks = browser.evaluate("performance.getEntriesByType('mark').map(m => m.name)")
    wanted = {"maps-asked", "maps-drawn", "predictions-asked", "predictions-drawn"}
    assert wanted <= set(marks)
    keep(browser, "explore.png")
    assert browser.complaints == []


def test_a_head_is_switched_off_and_predictions_change(address: str, browser: Browser) -> None:
    browser.open(address)
    browser.wait_for(FIRST)
    write(browser, "the dog chased cats")
    idle(browser, "document.querySelectorAll('#tokens li').length === 6")
    assert "Click a token above" in text(browser, "#no-predictions")
    browser.click("#tokens li:nth-child(3) button")
    idle(browser, "document.querySelectorAll('#predictions tbody tr').length === 8")
    assert texts(browser, "#predictions thead th") == ["Word", "Probability"]

    browser.point(*browser.middle(cell(1, 2)))
    browser.wait_for("document.getElementById('pointed').textContent.startsWith('Layer 1, head 2')")
    browser.click(cell(1, 2))
    idle(browser, "document.getElementById('chosen-title').textContent === 'Layer 1, head 2'")
    browser.point(*browser.middle("#matrix canvas"))
    browser.wait_for(
        "/→.*: .* % of its attention/.test(document.getElementById('cell').textContent)"
    )

    browser.click("input[value=switch] + span")
    browser.click(cell(1, 2))
    idle(browser, "document.querySelector('#predictions .both')")
    assert texts(browser, "#off-list button") == ["Layer 1, head 2 ×"]
    assert browser.evaluate(f"document.querySelector('{cell(1, 2)}').classList.contains('off')")
    changes = [
        float(row.replace("−", "-"))
        for row in texts(browser, "#predictions tbody tr td:last-child")
    ]
    assert changes[0] != 0
    assert [abs(c) for c in changes] == sorted([abs(c) for c in changes], reverse=True)
    assert "before" in text(browser, "#status")
    keep(browser, "explore-off.png")

    before = texts(browser, "#predictions tbody tr")
    pick(browser, "how", "zero")
    idle(browser, "true")
    browser.wait_for(f"{json.dumps(before)}.join() !== [...document.querySelectorAll("
                     "'#predictions tbody tr')].map(e => e.textContent).join()")  # fmt: skip
    browser.click(cell(0, -1))  # a whole layer
    browser.evaluate("document.getElementById('dimension').value = 7")
    browser.click("#dimension-form button")
    idle(browser, "document.querySelectorAll('#off-list li').length === 3")
    assert texts(browser, "#off-list button")[0::2] == ["Layer 0 ×", "Dimension 7 ×"]
    browser.click("#all-on")
    idle(browser, "!document.querySelector('#predictions .both')")
    assert browser.complaints == []


def test_tokens_can_be_followed_averaged_and_searched(address: str, browser: Browser) -> None:
    browser.open(address)
    browser.wait_for(FIRST)
    browser.click("#matrix .side span:nth-child(3)")
    idle(browser, "document.getElementById('pointed').textContent.startsWith('Stripes: attention')")
    assert browser.evaluate("document.getElementById('filter-token').value") == "2"
    browser.click("input[value=lines] + span")
    idle(browser, "document.querySelector('#lines .left .kept')")
    browser.click("#lines .right button:nth-child(4)")
    idle(browser, "document.getElementById('filter-direction').value === 'to'")
    browser.click("#lines .right button:nth-child(4)")  # again: let go
    idle(browser, "document.getElementById('filter-token').value === ''")

    browser.click(cell(2, -1))
    idle(browser, "document.getElementById('chosen-title').textContent.startsWith('Layer 2, mean')")
    browser.click(cell(-1, -1))
    idle(browser, "document.getElementById('chosen-title').textContent === 'Mean of all heads'")
    pick(browser, "averaging", "grammar")
    idle(browser, "!document.getElementById('averaged').hidden")
    assert texts(browser, "#lines .left button")[0] == "0 %"
    pick(browser, "averaging", "")
    idle(browser, "document.getElementById('averaged').hidden")

    browser.click(cell(1, 1))
    sort_by(browser, "the token before")
    sort_by(browser, "like layer 1, head 1")
    assert browser.evaluate(f"document.querySelector('{cell(1, 1)}').dataset.rank") == "1"
    browser.click("#ranking li:nth-child(2) button")
    idle(browser, "document.getElementById('chosen-title').textContent !== 'Layer 1, head 1'")
    browser.click("#outliers summary")
    idle(browser, "document.getElementById('outlier-rule').textContent !== 'Looking …'")
    assert texts(browser, "#outlier-list li")[0].startswith(f"{OUTLIER}, of the weights; weights")
    browser.click("#outlier-list li:first-child input")
    idle(browser, f"document.getElementById('off-list').textContent.includes('{OUTLIER} ×')")
    assert browser.evaluate("document.querySelector('#outlier-list input').checked")
    browser.click("#outlier-list li:first-child input")
    idle(browser, "document.getElementById('off-list').textContent === ''")
    browser.click("input[value=words] + span")
    idle(browser, "location.hash.includes('words')")
    assert browser.complaints == []


STATE = """JSON.stringify([
  ...['#text', '#pair', '#how', '#filter-token', '#filter-direction', '#scale', '#search']
    .map(s => document.querySelector(s).value),
  ...['#chosen-title', '#predictions', '#off-list', '#ranking', '#tokens', '#legend-most']
    .map(s => document.querySelector(s).textContent),
  ...[...document.querySelectorAll('[aria-pressed=true], .off, input:checked')]
    .map(e => e.getAttribute('aria-label') ?? e.value),
])"""


def test_a_link_shows_the_same_again(address: str, browser: Browser) -> None:
    browser.open(address)
    browser.wait_for(FIRST)
    pick(browser, "examples", "example 3")  # a pair
    idle(browser, "!document.getElementById('pair-field').hidden")
    browser.click("#tokens li:nth-child(6) button")
    browser.click(cell(1, 3))
    browser.click("input[value=lines] + span")
    pick(browser, "filter-token", "3")
    pick(browser, "scale", "common")
    sort_by(browser, "the token after")
    browser.evaluate("document.activeElement.blur()")
    browser.press("o")
    idle(browser, "document.querySelector('#predictions .both') && document.querySelector('.off')")
    seen, link = browser.evaluate(STATE), browser.evaluate("location.href")
    browser.open("about:blank")
    browser.open(link)
    idle(browser, "document.querySelector('#predictions .both')")
    assert browser.evaluate(STATE) == seen
    browser.open("about:blank")
    browser.open(address + "#%7Bnonsense")
    browser.wait_for("document.getElementById('trouble').textContent.includes('cannot be read')")
    assert texts(browser, "#tokens [aria-pressed=true]") == ["are"]
    assert browser.complaints == []


def wait_for_file(folder: Path, name: str) -> bytes:
    until = time.monotonic() + 60
    while not (folder / name).exists():
        assert time.monotonic() < until, f"{name} never came; {list(folder.iterdir())}"
        time.sleep(0.02)
    return (folder / name).read_bytes()


def test_what_is_seen_can_be_kept(address: str, browser: Browser, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    browser.download_to(saved)
    browser.open(address)
    browser.wait_for(FIRST)
    write(browser, f"the keys {EVIL}")
    # The old text may still be there, and the new one takes away what was said before it came.
    img = "[...document.querySelectorAll('#tokens li')].some(li => li.textContent === 'img')"
    idle(browser, img)
    browser.click(cell(0, 0))
    idle(browser, "document.getElementById('chosen-title').textContent === 'Layer 0, head 0'")
    for subject in ("chosen", "grid"):
        for kind in ("png", "svg"):
            browser.click(f"[data-save='{subject} {kind}']")
            idle(browser, f"document.getElementById('status').textContent.endsWith('.{kind}.')")
    names = ["tiny-b-layer-0-head-0-matrix", "tiny-b-all-heads"]
    for name in names:
        assert wait_for_file(saved, f"{name}.png").startswith(b"\x89PNG")
        drawn = wait_for_file(saved, f"{name}.svg").decode()
        assert drawn.startswith("<svg")
        assert "tiny &lt;b&gt;" in drawn
    assert drawn.count("<image") == 12
    browser.click("input[value=lines] + span")
    idle(browser, "document.querySelector('#lines .left button')")  # all below it has moved
    browser.click("[data-save='chosen svg']")
    idle(browser, "document.getElementById('status').textContent.endsWith('lines.svg.')")
    assert b"<line" in wait_for_file(saved, "tiny-b-layer-0-head-0-lines.svg")

    browser.click("#copy-python")
    browser.wait_for("document.getElementById('code-dialog').open")
    assert "layer.0.head.0.pattern" in text(browser, "#code")
    browser.click("#code-close")
    browser.click("#copy-link")
    browser.wait_for("/link/i.test(document.getElementById('status').textContent)")
    assert browser.complaints == []


def dimmed(browser: Browser) -> list[str]:
    return texts(browser, "#stale-note") if browser.evaluate(DIMMED) else []


DIMMED = "['tokens', 'panes'].every(i => getComputedStyle(document.getElementById(i)).opacity < 1)"


def test_bad_input_is_answered_calmly(address: str, browser: Browser) -> None:
    browser.open(address)
    browser.wait_for(FIRST)
    shown = texts(browser, "#tokens li")
    write(browser, "keys " * 70)
    browser.wait_for("!document.getElementById('trouble').hidden")
    assert "tokens" in text(browser, "#trouble")
    assert texts(browser, "#tokens li") == shown  # the last good view stays
    assert dimmed(browser) == ["Shown below: the last text that could be read."]
    assert browser.evaluate("document.getElementById('trouble').getAttribute('role')") == "alert"
    write(browser, "x" * 5000)
    browser.wait_for("/characters/.test(document.getElementById('trouble').textContent)")
    assert all("400" in c or "413" in c or "422" in c for c in browser.complaints)
    browser.complaints.clear()

    write(browser, EVIL)
    idle(browser, "document.getElementById('trouble').hidden")
    assert "".join(texts(browser, "#tokens li")).count("img") == 1
    assert dimmed(browser) == []
    assert browser.evaluate("document.images.length") == 0
    write(browser, "   ")
    browser.wait_for("document.getElementById('status').textContent.startsWith('Type a text')")
    assert dimmed(browser)
    write(browser, EVIL)
    browser.wait_for("!document.querySelector('.stale')")
    assert browser.complaints == []


NEVER_ANSWERED = """(real => { window.fetch = (address, options) =>
  options.body?.includes('never') ? new Promise((_, refuse) =>
    options.signal.addEventListener('abort', () => { window.dropped = true; refuse(); }))
  : real(address, options); })(window.fetch)"""


def test_a_slow_answer_holds_nobody_up(address: str, browser: Browser) -> None:
    browser.open(address)
    browser.wait_for(FIRST)
    browser.evaluate(NEVER_ANSWERED)
    write(browser, "the dog never heard")
    browser.wait_for("document.getElementById('panes').ariaBusy === 'true'")
    browser.click(cell(2, 0))  # one can look around meanwhile
    browser.wait_for("document.getElementById('chosen-title').textContent === 'Layer 2, head 0'")
    assert not browser.evaluate("'dropped' in window")
    write(browser, "the cats")
    idle(browser, "window.dropped && document.querySelectorAll('#tokens li').length === 4")
    assert browser.evaluate("document.getElementById('trouble').hidden")
    assert browser.complaints == []


def focused(browser: Browser) -> Any:
    return browser.evaluate(
        "document.activeElement.getAttribute('aria-label') ?? document.activeElement.id"
    )


def tab_to(browser: Browser, wanted: str) -> None:
    for _ in range(40):
        if focused(browser) == wanted:
            return
        browser.press("Tab")
    raise AssertionError(f"Tab never leads to {wanted!r}")


def test_everything_goes_by_keyboard(address: str, browser: Browser) -> None:
    browser.open(address)
    browser.wait_for(FIRST)
    tab_to(browser, "text")
    tab_to(browser, "the")  # the first token that can be hidden
    browser.press("ArrowRight")
    browser.press("Enter")
    idle(browser, "document.querySelectorAll('#tokens [aria-pressed=true]').length === 2")
    assert focused(browser) == "keys, hidden"  # the focus stays
    tab_to(browser, "Layer 0, head 0")
    browser.press("ArrowDown")
    browser.press("ArrowRight")
    browser.press("Enter")
    idle(browser, "document.getElementById('chosen-title').textContent === 'Layer 1, head 1'")
    browser.press("o")
    idle(browser, "document.querySelector('#predictions .both')")
    assert focused(browser) == "Layer 1, head 1, switched off"
    browser.press("o")
    idle(browser, "!document.querySelector('#predictions .both')")
    browser.evaluate("document.querySelector('#matrix canvas').focus()")
    browser.press("ArrowDown")
    browser.press("ArrowRight")
    browser.wait_for("document.getElementById('cell').textContent.startsWith('[CLS] → the: ')")
    browser.press("Enter")
    idle(browser, "document.getElementById('filter-token').value === '0'")
    browser.press("Escape")
    idle(browser, "document.getElementById('filter-token').value === ''")
    assert browser.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_keeps_nobody_out(address: str, browser: Browser, width: int) -> None:
    need_axe()
    browser.resize(width, 844)
    papers = set()
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open("about:blank")
        browser.open(address)
        browser.wait_for(FIRST)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        papers.add(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        browser.evaluate("document.activeElement.blur()")
        browser.press("o")
        sort_by(browser, "the token after")
        idle(browser, "document.querySelector('#predictions .both')")
        assert find_barriers(browser) == []
        browser.click("input[value=lines] + span")
        browser.click("#copy-python")
        browser.wait_for("document.getElementById('code-dialog').open")
        assert find_barriers(browser) == []
        keep(browser, f"explore-{scheme}-{width}.png")
    assert len(papers) == 2
    assert browser.complaints == []
