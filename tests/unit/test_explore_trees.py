"""Trees in the explorer: those of `bt.sentence_tree`, the annotated one above, on any screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bertology as bt
import planted_impact
import tiny
from accessibility import find_barriers, need_axe
from bertology.data.corpus import Corpus, Example
from bertology.model.encoder import Encoder
from bertology.server.explore import explore_app
from browser import Browser, find_browser
from explorer import answer, asking, served, view_of
from pages import WIDTHS_AND_SCHEMES, idle, keep, pick, text

WORDS = "the dog often gladly sees a ball".split()
TEXT = " ".join(WORDS)
HEADS = planted_impact.HEADS
PIECES = [*WORDS, *"keys to old cabinet are on table . < b > chased ##ing".split()]


def encoder() -> Encoder:
    """A tiny model with a tokenizer of a few words."""
    made = tiny.model("bert", "mlm")
    return Encoder(made, tiny.tokenizer(PIECES, max_length=64), head="mlm", name="tiny <b>")


def corpus() -> Corpus:
    """One annotated sentence, with a full stop."""
    known = {
        "words": [*WORDS, "."],
        "heads": [*HEADS, 4],
        "relations": [*planted_impact.RELATIONS, "punct"],
    }
    plain = planted_impact.corpus(2)
    return replace(plain, name="own-trees", examples=[Example("a", f"{TEXT} .", annotations=known)])


@pytest.mark.parametrize("tree", ["undirected", "to-head", "to-dependent"])
@pytest.mark.parametrize("by", [(1, 0), (0, None), (None, None)])
def test_trees_are_those_of_sentence_tree(tree: str, by: tuple[int | None, int | None]) -> None:
    layer, head = by
    of: Any = "all" if layer is None else layer if head is None else (layer, head)
    made = encoder()
    with asking(made) as client:
        found = answer(client, "tree", view=view_of(TEXT), layer=layer, head=head, tree=tree)
    expected = bt.sentence_tree(made, TEXT, by=of, tree=tree)
    assert found["words"] == WORDS == list(expected.words)
    assert found["heads"] == list(expected.heads)
    assert found["directed"] is expected.directed
    assert found["gold"] is None


def test_the_annotated_tree_comes_with_it_and_punctuation_does_not() -> None:
    with asking(encoder(), own=[corpus()]) as client:
        found = answer(client, "tree", view=view_of(f"{TEXT} ."), layer=0, head=1, tree="to-head")
    assert (found["words"], found["gold"], found["by"]) == (WORDS, HEADS, "own-trees")
    expected = bt.sentence_tree(encoder(), corpus()[0], by=(0, 1), tree="to-head")
    assert found["heads"] == list(expected.heads)


def test_what_has_no_tree_is_told() -> None:
    with asking(encoder()) as client:
        for view, more, told in (
            (view_of(TEXT, pair=TEXT), {}, "one text"),
            (view_of("dog ."), {}, "two words"),
            (view_of(TEXT), {"layer": 9}, "layer"),
        ):
            given = {"view": view, "tree": "undirected", **more}
            done = client.post("/api/tree", json=given)
            assert done.status_code == 400
            assert told in done.text
        assert (
            client.post("/api/tree", json={"view": view_of(TEXT), "tree": "x"}).status_code == 422
        )


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    find_browser()
    with served(lambda port: explore_app(encoder(), port=port, own=[corpus()])) as found:
        yield found


def show_tree(browser: Browser) -> None:
    browser.evaluate("document.querySelector('input[name=look][value=tree]').click()")
    idle(browser, "document.querySelectorAll('#tree-frame path').length > 0")


@pytest.mark.parametrize(("width", "scheme"), WIDTHS_AND_SCHEMES)
def test_a_tree_fits_and_keeps_nobody_out(
    address: str, tmp_path: Path, width: int, scheme: str
) -> None:
    with Browser(width=width, height=900) as browser:
        browser.prefer(scheme)
        browser.open(address)
        idle(browser, "document.querySelector('#predictions td, #matrix canvas')")
        show_tree(browser)
        assert "annotated (own-trees)" in text(browser, "#tree-note")
        # One arc for each word but the root, above and below; hidden: what is about maps only.
        count = "document.querySelectorAll('#tree-frame path.{}').length"
        assert browser.evaluate(count.format("gold")) == 6
        assert (
            browser.evaluate(count.format("right")) + browser.evaluate(count.format("wrong")) == 6
        )
        assert browser.evaluate("document.querySelector('.legend').offsetHeight") == 0
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.evaluate(wide) <= 0
        browser.evaluate("document.querySelector('.chosen').scrollIntoView()")
        keep(browser, f"tree-{width}-{scheme}.png")
        assert not browser.complaints
        need_axe()
        assert find_barriers(browser) == []


def test_a_tree_by_keyboard_and_in_a_link(address: str, tmp_path: Path) -> None:
    with Browser(width=1280, height=900) as browser:
        browser.open(address)
        idle(browser, "document.querySelector('#matrix canvas')")
        browser.evaluate("document.querySelector('input[name=look]:checked').focus()")
        for _ in range(2):
            browser.press("ArrowRight")
        idle(browser, "document.querySelectorAll('#tree-frame path').length > 0")
        first = text(browser, "#tree-arcs")
        assert " – " in first
        pick(browser, "tree-kind", "to-head")
        idle(browser, "document.getElementById('tree-arcs').textContent.includes('→')")
        browser.wait_for("location.hash.includes('to-head')")
        link = browser.evaluate("location.href")
        browser.open("about:blank")
        browser.open(link)
        idle(browser, "document.querySelectorAll('#tree-frame path').length > 0")
        assert "→" in text(browser, "#tree-arcs")
        browser.evaluate("document.getElementById('add-pair').click()")
        browser.click("#pair")
        browser.type("the dog sees a ball")
        browser.wait_for("document.getElementById('tree-note').textContent.includes('one text')")
        assert browser.evaluate("document.getElementById('tree-frame').hidden")
        assert not browser.complaints
