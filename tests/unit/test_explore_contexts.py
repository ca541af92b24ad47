"""Words in contexts in the explorer: the plane of plain states, what is refused, and the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import made_senses
import tiny
from accessibility import find_barriers
from bertology.annotated.concordance import concordance, concordance_states
from bertology.annotated.sense_planes import plane_of
from bertology.model.encoder import Encoder
from bertology.server import contexts
from browser import Browser, find_browser
from explorer import PIECES, answer, asking, encoder_of, served
from pages import idle, page_state, pick, text

EVIL = "<img src=x onerror=alert(1)>"
TEXTS = [
    "The keys to the cabinet are here.", "it is the key to it", f"the dog chased {EVIL} keys",
    "keys , keys", "the dog is good", "the bad key",
]  # fmt: skip
GIVEN = [{"text": text, "sense": None} for text in TEXTS]
SENSED = [{"text": t, "sense": f"sense <b>{i % 2}" if i < 5 else None} for i, t in enumerate(TEXTS)]


def asked(**more: Any) -> dict[str, Any]:
    return {"word": "key, keys", "contexts": GIVEN, "layer": 1, **more}


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return encoder_of()


@pytest.fixture(scope="module")
def client(encoder: Encoder) -> Iterator[TestClient]:
    with asking(encoder) as found:
        yield found


@pytest.mark.parametrize("method", ["pca", "t-sne"])
def test_the_plane_is_that_of_plain_states(
    client: TestClient, encoder: Encoder, method: str
) -> None:
    found = answer(client, "contexts", **asked(contexts=SENSED, method=method, pooling="last"))
    lines = concordance(TEXTS, ["key", "keys"])
    states, _ = concordance_states(encoder, lines, pooling="last")
    expected = plane_of(states[2], method)
    np.testing.assert_allclose(np.stack([found["x"], found["y"]], 1), expected, atol=1e-6)
    spans = zip(found["texts"], found["starts"], found["ends"], strict=True)
    assert [t[a:b] for t, a, b in spans] == ["keys", "key", "keys", "keys", "keys", "key"]
    assert found["kind"] == "sense"
    senses = ["sense <b>0", "sense <b>1", "sense <b>0", "sense <b>1", "sense <b>1"]
    assert found["groups"] == [*senses, "sense not given"]
    assert found["note"] == "6 occurrences in 5 of 6 texts."


def test_without_senses_there_are_clusters_of_the_states(client: TestClient) -> None:
    found = answer(client, "contexts", **asked(clusters=2, layer=-1))
    assert found["kind"] == "cluster"
    # By spelling, since nothing was read of the contexts yet: the embeddings of other places.
    assert set(found["groups"]) == {"cluster 1", "cluster 2"}
    assert found["groups"].count("cluster 1") >= 3
    same = answer(client, "contexts", **asked(clusters=2, layer=-1))
    assert same == found
    few = answer(client, "contexts", **asked(clusters=10, contexts=GIVEN[:1] * 3))
    assert set(few["groups"]) == {"cluster 1"}  # equal states are one cluster, whatever is asked


def test_bundled_sentences_where_none_are_given(client: TestClient) -> None:
    about = client.get("/api/model").json()["contexts"]
    assert about["words"]
    assert about["methods"][:2] == ["pca", "t-sne"]
    found = answer(client, "contexts", **asked(word=about["words"][0], contexts=[]))
    assert found["kind"] == "sense"
    assert len(set(found["groups"])) > 1
    assert "bundled sentences" in found["note"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"word": "xyzzy"}, "None of the given texts has the word 'xyzzy'. Other forms"),
        ({"word": " , "}, "no word to look for"),
        ({"word": "xyzzy", "contexts": []}, "have no senses of 'xyzzy'. Give texts"),
        ({"word": "cabinet"}, "occurs only once; a plane needs 3"),
        ({"layer": 3}, "There is no layer 3: the model has 3, 0 to 2"),
        ({"contexts": GIVEN * 400}, "2,400 texts; at most 2,000"),
        ({"contexts": [{"text": "key " * 501}]}, "Text 1 has 2,004 characters; at most 1,000"),
        ({"contexts": [{"text": "key " * 200}] * 11}, "occurs 2,200 times; at most 2,000"),
        ({"contexts": [{"text": "a" * 999}] * 301}, "300,699 characters; at most 300,000"),
        ({"contexts": [{"text": "dog " * 100 + "key"}] * 3}, "reads 0 of the occurrences"),
        ({"method": "umap"}, "umap-learn"),
    ],
)
def test_what_has_no_plane_is_refused(client: TestClient, more: dict[str, Any], said: str) -> None:
    if "method" in more and "umap" in contexts.available_methods():
        pytest.skip("UMAP is installed here")
    done = client.post("/api/contexts", json=asked(**more))
    assert done.status_code == 400, done.text
    told = done.json()
    assert said in f"{told['error']} {told['hint']}"


@pytest.mark.parametrize("more", [{"layer": -2}, {"method": "mds"}, {"clusters": 1}, {"why": 1}])
def test_questions_of_another_form_are_refused(client: TestClient, more: dict[str, Any]) -> None:
    assert client.post("/api/contexts", json=asked(**more)).status_code == 422


def test_copied_lines_give_the_plane(tmp_path: Path) -> None:
    made = encoder_of()
    made.model.save_pretrained(tmp_path)
    tiny.tokenizer(PIECES, max_length=64).save_pretrained(tmp_path)
    with asking(Encoder.load(str(tmp_path), head="mlm", device="cpu")) as client:
        words = client.get("/api/model").json()["contexts"]["words"]
        for given in (asked(contexts=SENSED), asked(word=words[0], contexts=[])):
            names: dict[str, Any] = {}
            code = answer(client, "contexts/python", **given)["code"]
            exec(compile(code, "copied", "exec"), names)
            found = answer(client, "contexts", **given)
            np.testing.assert_allclose(names["plane"][:, 0], found["x"], atol=1e-6)
            assert [line.start for line in names["lines"]] == found["starts"]


CANVAS = "document.querySelector('.plane canvas')"
THERE = (
    "!document.getElementById('contexts-shown').hidden && "
    "document.getElementById('contexts').ariaBusy === 'false'"
)


def fill(browser: Browser, words: str) -> None:
    browser.evaluate(
        f"(f => {{ f.value = {json.dumps(words)}; f.dispatchEvent(new Event('input')); }})"
        "(document.getElementById('contexts-texts'))"
    )
    browser.evaluate("document.getElementById('contexts-form').requestSubmit()")


def test_the_page_shows_a_reader_s_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_browser()
    monkeypatch.setattr(contexts, "_bundled", lambda: made_senses.corpus(120))
    from bertology.server.explore import explore_app

    with (
        served(lambda port: explore_app(encoder_of(), port=port)) as address,
        Browser(width=1280) as browser,
    ):
        browser.open(address)
        idle(browser)
        browser.evaluate("document.querySelector('#contexts summary').click()")
        browser.wait_for(THERE)  # bundled sentences of the first word
        assert "10 occurrences in a plane" in browser.evaluate(f"{CANVAS}.ariaLabel")
        pick(browser, "contexts-layer", "0")
        browser.evaluate("document.getElementById('contexts-word').value = 'key, keys'")
        fill(browser, "\n".join(TEXTS))
        browser.wait_for(f"{THERE} && {CANVAS}.ariaLabel.includes('6 occurrences')")
        assert "They are not senses" in text(browser, "#contexts-note")
        fill(browser, "\n".join(f"{t}\tsense {EVIL} {i % 2}" for i, t in enumerate(TEXTS)))
        browser.wait_for(f"{THERE} && {CANVAS}.ariaLabel.includes('2 senses')")
        assert "senses that you gave" in text(browser, "#contexts-note")
        assert browser.evaluate("document.getElementById('contexts-clusters-field').hidden")
        browser.evaluate(f"{CANVAS}.focus()")
        browser.press("ArrowRight")
        browser.press("End")
        assert EVIL in text(browser, ".plane-readout")
        assert browser.evaluate("document.querySelector('.plane-readout mark').textContent") != ""
        assert page_state(browser)["page"]["contexts"]["word"] == "key, keys"
        # The link shows the same again.
        link = browser.evaluate("location.href")
        browser.open("about:blank")
        browser.open(link)
        browser.wait_for(f"{THERE} && {CANVAS}.ariaLabel.includes('layer 0, PCA: 6 occurrences')")
        # What cannot be shown is said beside it, and the last plane stays.
        fill(browser, "nothing here")
        browser.wait_for("!document.getElementById('contexts-trouble').hidden")
        assert "None of the given texts" in text(browser, "#contexts-trouble")
        assert "6 occurrences" in browser.evaluate(f"{CANVAS}.ariaLabel")
        assert not browser.complaints or all("400" in told for told in browser.complaints)
        assert find_barriers(browser) == []
