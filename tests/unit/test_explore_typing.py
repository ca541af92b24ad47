"""The explorer in a real browser: what becomes of words that change, and what its pictures say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import torch

import tiny
from bertology.model.encoder import Encoder
from browser import Browser, find_browser
from explorer import serving, view_of
from pages import IDLE

PIECES = (
    "the keys to old cabinet are on table . dog that chased cats was barking a man is playing here "
    "nurse ##s"
).split()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    find_browser()
    encoder = Encoder(tiny.model("bert", "mlm"), tiny.tokenizer(PIECES), head="mlm", name="tiny")
    with serving(encoder) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(width=1280, height=900) as made:
        yield made


def show(browser: Browser, address: str, text: str, page: Any = None, **more: Any) -> None:
    """A link to a view, in a page that was just loaded."""
    view = view_of(text, **more) | {"page": page or {}}
    browser.open("about:blank")
    browser.open(f"{address}#{quote(json.dumps(view))}")
    browser.wait_for(f"{IDLE} && document.querySelectorAll('#tokens li').length > 2")


def add(browser: Browser, words: str) -> None:
    """At the end of the text."""
    browser.click("#text")
    browser.evaluate("document.getElementById('text').setSelectionRange(999, 999)")
    browser.type(words)


def tokens(browser: Browser, kind: str = "") -> list[str]:
    found: list[str] = browser.evaluate(
        f"[...document.querySelectorAll('#tokens .token{kind}')].map(e => e.textContent)"
    )
    return found


def read(browser: Browser, identifier: str) -> str:
    found: str = browser.evaluate(f"document.getElementById('{identifier}').textContent")
    return found


HIDDEN = "[aria-pressed=true]"


@pytest.mark.parametrize(
    ("view", "added", "hidden"),
    [
        ({"text": "the dog", "pair": "a man is playing", "masked": [6]}, " was", []),
        ({"text": "the dog was", "masked": [2]}, " barking", ["dog"]),
        ({"text": "the dog", "masked": [1, 2]}, "here", ["the"]),  # another word than "dog"
    ],
)
def test_only_tokens_that_stay_remain_hidden(
    address: str, browser: Browser, view: Any, added: str, hidden: list[str]
) -> None:
    show(browser, address, **view)
    assert len(tokens(browser, HIDDEN)) == len(view["masked"])
    before = tokens(browser)
    add(browser, added)
    browser.wait_for(f"{IDLE} && location.hash.includes({json.dumps(quote(added))})")
    assert tokens(browser) != before
    assert tokens(browser, HIDDEN) == hidden


def test_what_is_typed_is_not_lost_to_a_click(address: str, browser: Browser) -> None:
    show(browser, address, "the dog")
    browser.evaluate(
        "(t => { t.value = 'a man is here'; t.dispatchEvent(new Event('input')); })"
        "(document.getElementById('text'));"
        "document.querySelector('#grid [role=gridcell]').click()"
    )
    assert browser.evaluate("document.getElementById('text').value") == "a man is here"
    browser.wait_for(f"{IDLE} && document.querySelectorAll('#tokens li').length === 6")
    assert tokens(browser)[1:-1] == ["a", "man", "is", "here"]
    browser.click("#grid [role=gridcell]")
    browser.wait_for(IDLE)
    assert browser.evaluate("document.getElementById('text').value") == "a man is here"


TYPE_EARLY = """addEventListener('DOMContentLoaded', () => {
  const text = document.getElementById('text');
  if (!text) return; // an empty page comes first
  text.value = 'the dog was barking';
  setTimeout(() => text.dispatchEvent(new Event('input'))); });
(real => { window.fetch = (address, options) => address !== '/api/model' ? real(address, options)
  : new Promise(done => setTimeout(done, 600)).then(() => real(address, options)); })
(window.fetch)"""


def test_no_word_of_somebody_who_types_at_once_is_hidden(address: str, browser: Browser) -> None:
    early = browser.call("Page.addScriptToEvaluateOnNewDocument", source=TYPE_EARLY)
    browser.open("about:blank")
    browser.open(address)
    browser.wait_for(f"{IDLE} && document.querySelectorAll('#tokens li').length === 6")
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=early["identifier"])
    assert tokens(browser)[1:-1] == ["the", "dog", "was", "barking"]
    assert tokens(browser, HIDDEN) == []
    assert browser.evaluate("document.getElementById('trouble').hidden")
    assert browser.complaints == []


def test_a_word_shows_that_some_of_it_is_hidden(address: str, browser: Browser) -> None:
    show(browser, address, "the nurses [MASK] here", masked=[3], level="words")
    assert tokens(browser, "[aria-pressed=mixed]") == ["nurses"]
    assert tokens(browser, '[aria-label$="partly hidden"]') == ["nurses"]
    assert tokens(browser)[3] == "[MASK]"
    assert read(browser, "tokens-title") == "4 words"
    browser.click("#tokens [aria-pressed=mixed]")  # the rest, too
    browser.wait_for(f"{IDLE} && document.querySelector('#tokens [aria-pressed=true]')")
    assert tokens(browser, HIDDEN) == ["nurses"]


def test_predictions_say_which_of_two_masks_they_are_for(address: str, browser: Browser) -> None:
    show(browser, address, "the [MASK] was [MASK]", masked=[1])
    captions = browser.evaluate(
        "[...document.querySelectorAll('#predictions caption')].map(e => e.textContent)"
    )
    assert captions[0] == "Instead of the"
    assert captions[1:] == ["Instead of [MASK] (token 2)", "Instead of [MASK] (token 4)"]


def test_a_mask_may_be_written_in_the_second_text(address: str, browser: Browser) -> None:
    show(browser, address, "the dog", pair="a [MASK] is")
    assert browser.evaluate("document.querySelectorAll('#predictions table').length") == 1


CUT = """[...document.querySelectorAll('#predictions .both tbody :is(th, td)')]
  .filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"""


def test_a_next_sentence_head_is_asked_its_own_question(browser: Browser) -> None:
    import transformers as hf

    made = hf.BertForPreTraining(tiny.config("bert")).eval()
    with torch.no_grad():
        made.cls.seq_relationship.bias[0] = 20.0  # surely: as long as a share can be
    encoder = Encoder(made, tiny.tokenizer(PIECES), head="pretraining", name="tiny")
    with serving(encoder) as own:
        show(browser, own, "the dog", pair="a man", off={"heads": [[0, 0]]})
        captions = browser.evaluate("document.querySelector('#predictions caption').textContent")
        assert captions == "Does the second text follow the first?"
        assert "does not follow< 0.1 %< 0.1 %" in read(browser, "predictions")
        assert browser.evaluate(CUT) == []
        browser.open("about:blank")  # the server waits for whoever is still connected


def test_a_filter_beyond_the_text_is_dropped(address: str, browser: Browser) -> None:
    show(browser, address, "the dog", page={"filter": {"token": 99, "direction": "from"}})
    assert "undefined" not in read(browser, "pointed")
    browser.click("#grid [role=gridcell]")
    browser.wait_for(f"{IDLE} && !location.hash.includes('99')")


BUSY_ONCE = """(real => { let times = 0; window.fetch = (address, { body, ...options }) =>
  address === '/api/mean' && (times += 1) === 1
    ? Promise.resolve(new Response('{"error": "busy", "hint": null}', { status: 503 }))
    : real(address, { ...options, body: body?.replace('"examples":32', '"examples":5') }); })
(window.fetch)"""  # as if the task had five examples


def test_a_mean_waits_its_turn_and_says_how_many(address: str, browser: Browser) -> None:
    show(browser, address, "the dog")
    browser.evaluate(BUSY_ONCE)
    browser.evaluate(
        "(m => { m.value = 'grammar'; m.dispatchEvent(new Event('change')); })"
        "(document.getElementById('averaging'))"
    )
    browser.wait_for("document.getElementById('status').textContent.includes('in a moment')")
    assert browser.evaluate("document.getElementById('trouble').hidden")
    browser.wait_for(f"{IDLE} && !document.getElementById('averaged').hidden")
    assert read(browser, "averaged").startswith("Mean over 5 examples")


PACKED = """(() => { const about = {layers: 1, heads: 2, size: 2, tokens: ["a", "b"],
    special: [false, false], boundary: null, examples: 7, peaks: [1, 0]};
  const text = JSON.stringify(about); const head = text.padEnd(4 * Math.ceil(text.length / 4));
  const weights = [255, 0, 0, 255, 0, 0, 0, 0];
  const all = new Uint8Array([0, 0, 0, 0, ...new TextEncoder().encode(head), ...weights]);
  new DataView(all.buffer).setUint32(0, head.length, true); return all.buffer; })()"""


def test_pruned_heads_have_no_part_in_means(address: str, browser: Browser) -> None:
    show(browser, address, "the dog")
    mean = f"[...new Maps({PACKED}).map({{ layer: 0, head: null }}).weights]"
    found = browser.evaluate(f"import('/static/explore/maps.js').then(({{ Maps }}) => {mean})")
    assert found == [1, 0, 0, 1]


def test_a_picture_of_lines_says_what_a_full_line_is(address: str, browser: Browser) -> None:
    show(browser, address, "the dog")
    flat = "{tokens: ['a', 'b'], size: 2, weights: [0.5, 0.5, 0.5, 0.5], peak: 0.5, full: 1}"
    script = (
        "import('/static/explore/picture.js').then(({ linesPicture }) => "
        f"linesPicture({flat}, 'x', 1, null).shapes.map(s => s.value ?? '').join(' '))"
    )
    said = browser.evaluate(script)
    assert "A line of full strength is 100.0 %" in said
    assert "strongest" not in said
