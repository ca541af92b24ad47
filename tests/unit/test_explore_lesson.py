"""The explorer before a class: the tour, presentation mode, and links to both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tiny
from accessibility import find_barriers, need_axe
from bertology.model.encoder import Encoder
from browser import Browser, find_browser
from explorer import serving
from pages import IDLE, WIDTHS_AND_SCHEMES, idle, keep, page_state, text, texts

PIECES = "the keys to old cabinet are on table . dog that chased cats was a man is here".split()
FIRST = f"{IDLE} && document.querySelector('#predictions td')"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    find_browser()
    made = tiny.model("bert", "mlm")
    with serving(Encoder(made, tiny.tokenizer(PIECES), head="mlm", name="tiny")) as found:
        yield found


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(width=1280, height=800) as made:
        yield made


@pytest.fixture
def browser(window: Browser, address: str) -> Browser:
    """The page, opened anew in one window for all tests."""
    window.complaints.clear()
    window.resize(1280, 800)
    window.prefer("light")
    open_at(window, address)
    window.wait_for(FIRST)
    return window


def open_at(browser: Browser, address: str) -> None:
    browser.open("about:blank")  # an address that differs only in its hash loads nothing
    browser.open(address)


def at_step(browser: Browser, number: int) -> None:
    idle(browser, f"document.getElementById('tour-count').textContent === 'Step {number} of 6'")


def test_the_tour_has_six_steps_and_the_numbers_of_this_model(browser: Browser) -> None:
    browser.click("#start-tour")
    titles, targets = [], []
    for number in range(1, 7):
        at_step(browser, number)
        titles.append(text(browser, "#tour-title"))
        targets.append(browser.evaluate("document.querySelector('.toured').className.split(' ')"))
        assert browser.evaluate("document.activeElement.id") == "tour-title"
        if number == 2:
            assert "3 layers from top to bottom and 4 heads" in text(browser, "#tour-text")
        if number == 5:
            assert browser.evaluate("document.querySelector('input[value=lines]').checked")
        if number < 6:
            browser.click("#tour-next")
    assert titles[0] == "What the model reads"
    assert titles[1] == "12 heads, 12 maps"
    assert titles[5] == "Is this head needed?"
    assert ["tokens" in targets[0], "heads" in targets[1], "chosen" in targets[3]] == [True] * 3
    assert texts(browser, "#tokens [aria-pressed=true]") == ["are"]
    assert len(texts(browser, "#off-list button")) == 1
    assert "before" in text(browser, "#tour-text"), "what switching off changed"
    assert page_state(browser)["page"]["tour"] == 5

    browser.click("#tour-back")
    at_step(browser, 5)
    assert texts(browser, "#off-list button") == [], "each step shows its own state"
    browser.press("Escape")
    browser.wait_for("document.getElementById('tour').hidden")
    assert browser.evaluate("document.activeElement.id") == "start-tour"
    assert page_state(browser)["page"]["tour"] is None
    assert browser.complaints == []


def test_a_link_leads_into_the_middle_of_the_tour(browser: Browser, address: str) -> None:
    browser.click("#start-tour")
    for number in range(1, 4):
        at_step(browser, number)
        browser.click("#tour-next")
    at_step(browser, 4)
    page_state(browser)
    told = [text(browser, "#tour-text"), text(browser, "#chosen-title")]
    link = browser.evaluate("location.href")
    open_at(browser, link)
    at_step(browser, 4)
    assert [text(browser, "#tour-text"), text(browser, "#chosen-title")] == told
    browser.click("#text")
    browser.type("a dog ")
    browser.wait_for("document.getElementById('tour').hidden")  # it is about another text
    assert browser.complaints == []


def test_presenting_is_large_and_in_the_link(browser: Browser) -> None:
    size = "parseFloat(getComputedStyle(document.querySelector('.matrix .side span')).fontSize)"
    before = browser.evaluate(size)
    browser.evaluate("document.activeElement.blur()")
    browser.press("p")
    browser.wait_for("document.documentElement.classList.contains('presenting')")
    assert browser.evaluate(size) > 1.4 * before
    assert text(browser, "#present[aria-pressed=true]") == "Present"
    hidden = "!document.getElementById('search').checkVisibility()"
    assert browser.evaluate(hidden), "only what is looked at stays"
    assert browser.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page_state(browser)["page"]["present"] is True
    keep(browser, "presenting.png")
    open_at(browser, browser.evaluate("location.href"))
    idle(browser, "document.documentElement.classList.contains('presenting')")
    browser.press("Escape")
    browser.wait_for("!document.documentElement.classList.contains('presenting')")
    assert browser.evaluate(size) == before
    assert browser.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), WIDTHS_AND_SCHEMES)
def test_tour_and_presenting_keep_nobody_out(browser: Browser, width: int, scheme: str) -> None:
    need_axe()
    browser.resize(width, 844)
    browser.prefer(scheme)
    for mode in ("plain", "presenting"):
        browser.click("#start-tour")
        for number in range(1, 7):
            at_step(browser, number)
            assert find_barriers(browser) == []
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            keep(browser, f"tour-{mode}-{number}-{scheme}-{width}.png")
            browser.click("#tour-next")
        browser.wait_for("document.getElementById('tour').hidden")
        assert find_barriers(browser) == []
        browser.click("#present")
    assert browser.complaints == []
