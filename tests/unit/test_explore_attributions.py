"""Why this answer: the explorer's attributions are those of the package; the page shows them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

import planted_explanations as made
from accessibility import find_barriers, need_axe
from bertology.model.attributions.method_names import METHODS
from bertology.model.attributions.methods import attribute
from bertology.model.encoder import Encoder
from browser import Browser, find_browser
from explorer import answer, asking, encoder_of, serving, view_of
from pages import idle, keep, pick, text, texts

TEXT = "the up down good down"
EVIL = "good <img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    found = made.encoder(made.looks_elsewhere(), name="tiny <b>")
    found.config.id2label = {0: "bad", 1: "good <b>"}
    return found


@pytest.fixture(scope="module")
def client(encoder: Encoder) -> Iterator[TestClient]:
    with asking(encoder) as found:
        yield found


def test_every_method_is_that_of_the_package(client: TestClient, encoder: Encoder) -> None:
    offered = client.get("/api/model").json()["attributions"]
    assert [one["name"] for one in offered] == list(METHODS)
    plain = attribute(encoder, encoder.encode(TEXT), tuple(METHODS))
    for method in METHODS:
        found = answer(client, "attributions", view=view_of(TEXT), method=method)
        assert found["answer"] == "good <b>"
        words = [w for w in found["words"] if not w["special"]]
        assert [w["word"] for w in words] == TEXT.split()
        wanted = plain.relevance[method][0].tolist()
        assert [w["relevance"] for w in words] == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    # The head that tells the answer is off: what is left explains another one.
    off = view_of(TEXT, off={"heads": [[0, 2]], "how": "zero"})
    other = answer(client, "attributions", view=off, method="left-out")
    assert max(abs(w["relevance"] or 0) for w in other["words"]) < 0.1


def test_words_of_a_pair_say_which_text_they_are_of(client: TestClient) -> None:
    found = answer(client, "attributions", view=view_of("the up", pair="up down"))["words"]
    assert [w.get("side") for w in found if not w["special"]] == [0, 0, 1, 1]


def test_what_cannot_be_explained_is_refused(client: TestClient) -> None:
    done = client.post("/api/attributions", json={"view": view_of(TEXT), "method": "lime"})
    assert done.status_code == 422
    done = client.post("/api/attributions", json={"view": view_of("good " * 60)})
    assert done.status_code == 400
    assert "tokens" in done.json()["error"]
    with asking(encoder_of("mlm")) as other:
        assert other.get("/api/model").json()["attributions"] == []
        done = other.post("/api/attributions", json={"view": view_of()})
        assert done.status_code == 400
        assert "no answer to explain" in done.json()["error"]


def test_the_page_explains_by_the_method_that_is_chosen(encoder: Encoder) -> None:
    find_browser()
    words = "[...document.querySelectorAll('#why-frame tbody th')].map(e => e.textContent)"
    with serving(encoder) as address, Browser(width=1280, height=900) as browser:
        browser.open(address)
        idle(browser, "document.querySelector('#why-frame td')")
        browser.click("#text")
        browser.evaluate("document.getElementById('text').select()")
        browser.type(EVIL)
        idle(browser, f"{words}.includes('onerror')")
        pick(browser, "why-method", "left-out")
        idle(browser, "document.getElementById('why-answer').textContent.includes('leaving out')")
        assert "The model says good <b>" in text(browser, "#why-answer")
        assert text(browser, "#why-about").startswith("How much less sure")
        assert "good" in texts(browser, "#why-frame tbody th")
        assert browser.evaluate("document.querySelectorAll('#why img').length") == 0
        assert "left-out" in browser.evaluate("decodeURIComponent(location.hash)")
        assert browser.complaints == []
        assert browser.evaluate("document.querySelectorAll('#why-frame .side').length") == 0
        browser.evaluate("document.getElementById('add-pair').click()")
        browser.click("#pair")
        browser.type("the good")
        idle(browser, "document.querySelectorAll('#why-frame tbody').length === 2")
        last = "#why-frame tbody:last-child th"
        assert texts(browser, last) == ["Second text", "the", "good"]
        assert texts(browser, "#why-frame tbody th")[0] == "First text"
        assert "“good” (first text)" in text(browser, "#why-answer")
        keep(browser, "explore-why.png")
        need_axe()
        assert find_barriers(browser) == []
