"""Points in planes: the figure for paper, and the one of the atlas that is walked over."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import toy_atlas as toy
from bertology.errors import ParameterError
from bertology.report.atlas.about import read_about
from bertology.report.atlas.chapters import table_data
from bertology.report.atlas.gathering import gather
from bertology.report.atlas.page import atlas_page
from bertology.report.drawings import planes
from bertology.report.figures.points import POINT_COLOURS, PointPanel, point_planes
from bertology.results import result as result_module
from bertology.results.drawing import Drawing
from bertology.results.points import PointColumns
from bertology.results.rendering import render
from bertology.results.store import Store
from browser import Browser, find_browser

COLUMNS = PointColumns("occurrences", ("lemma", "layer", "method"), "sense")
EVIL = "</script><img src=x onerror=alert(1)>"
MANY = 2000
CANVAS = "document.querySelector('.plane canvas')"
READOUT = "document.querySelector('.plane-readout')"


def occurrences(n: int = 60, layers: Sequence[int] = (-1, 1)) -> pd.DataFrame:
    """Three senses of a word in corners of the plane, the same sentences in each layer."""
    rng = np.random.default_rng(0)
    sense = np.arange(n) % 6  # 3, 2 and 1 of six
    names = ["river", "river", "river", "money", "money", f"odd {EVIL}"]
    corner = np.array([[0, 0], [0, 0], [0, 0], [9, 0], [9, 0], [0, 9]])
    rows = []
    for layer in layers:
        at = corner[sense] * (layer + 1) + rng.normal(size=(n, 2))
        for i in range(n):
            text = f"𝄞 the bank {i} {EVIL}"
            rows.append(("bank.n", names[sense[i]], layer, "pca", *at[i], text, 6, 10))
    names = ["lemma", "sense", "layer", "method", "x", "y", "text", "start", "end"]
    return pd.DataFrame(rows, columns=names)


def drawing(table: pd.DataFrame) -> Drawing:
    drawn = [("bank.n", layer, "pca") for layer in sorted(set(table["layer"]))]
    return planes(
        "occurrences", table, COLUMNS, "toy", title="Occurrences", reading="Near: alike.",
        drawn=drawn, one="occurrence",
    )  # fmt: skip


def test_planes_side_by_side_have_one_legend_with_numbers_of_points() -> None:
    made = drawing(occurrences())
    assert made.caption == f"Occurrences: e{made.caption_of_any[1:]}"
    assert made.caption_of_any.startswith("Each mark is one occurrence")
    assert made.points == COLUMNS
    figure = made.draw()
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["river (30)", "money (20)", f"odd {EVIL} (10)"]
    shapes = {handle.get_marker() for handle in legend.legend_handles}  # type: ignore[union-attr]
    assert len(shapes) == 3
    drawn = [sum(len(c.get_offsets()) for c in axes.collections) for axes in figure.axes]
    assert drawn == [60, 60]
    svg = render(figure).decode()
    assert "<img" not in svg
    assert "&lt;/script&gt;" in svg


def test_groups_that_differ_are_told_below_each_plane_and_many_share_a_look() -> None:
    rng = np.random.default_rng(0)
    many = [f"sense {i}" for i in range(14) for _ in range(20 - i)]
    panels = [
        PointPanel("many", rng.normal(size=(len(many), 2)), many),
        PointPanel("few", rng.normal(size=(3, 2)), ["a", "a", ""]),
    ]
    figure = point_planes(panels, title="Planes", note="")
    assert not figure.legends
    told = [[t.get_text() for t in axes.get_legend().get_texts()] for axes in figure.axes]
    assert told[0][0] == "sense 0 (20)"
    assert told[0][-1] == "4 others (34)"
    assert told[1] == ["a (2)", "no name (1)"]


def test_what_is_no_plane_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        point_planes([], title="", note="")
    with pytest.raises(ParameterError, match="2 × 2 finite"):
        point_planes([PointPanel("a", [[0, 1], [np.nan, 0]], ["a", "b"])], title="", note="")
    with pytest.raises(ParameterError, match="have points"):
        planes("a", occurrences(6), COLUMNS, "", title="", reading="", drawn=[("bank.n", 7, "")])


def test_the_page_has_the_colours_of_the_figure() -> None:
    script = (files("bertology.report.atlas") / "static" / "points.js").read_text(encoding="utf-8")
    told = re.search(r"const LIGHT = (\[.*?\]);", script)
    assert told is not None
    assert tuple(json.loads(told[1])) == POINT_COLOURS


def test_texts_that_come_often_are_once_on_a_page() -> None:
    data = table_data(occurrences(6, layers=(0, 1, 2)))
    columns = dict(zip(data["columns"], data["values"], strict=True))
    assert columns["text"] == {
        "texts": [f"𝄞 the bank {i} {EVIL}" for i in range(6)],
        "rows": [0, 1, 2, 3, 4, 5] * 3,
    }
    assert columns["layer"] == [0] * 6 + [1] * 6 + [2] * 6


class Planes(toy.Toy):
    """A result with points."""

    def drawings(self) -> Sequence[Drawing]:
        return [drawing(self.tables["occurrences"])]


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An atlas with 2,000 points in each of two planes."""
    find_browser()
    monkeypatch.setattr(result_module, "_find", lambda study: Planes)
    plain = toy.make(toy.MODEL)
    store = Store(str(tmp_path / "results"))
    table = occurrences(MANY)
    table.loc[MANY + 3, ["x", "y"]] = table.loc[MANY, ["x", "y"]]  # two senses at one place
    store.save(Planes(plain.provenance, {"occurrences": table}, plain.arrays))
    path = tmp_path / "atlas.html"
    about = read_about("Does it? Method: we look. Limits: none.", defaults={"seed": 0})
    path.write_text(atlas_page(gather(store, "toy"), lambda study: about), encoding="utf-8")
    return path.as_uri()


def test_two_thousand_points_are_read_by_keyboard_and_mouse(address: str, tmp_path: Path) -> None:
    with Browser(width=1280) as browser:
        browser.open(address)
        browser.wait_for(f"{CANVAS}.height > 100")
        label = browser.evaluate(f"{CANVAS}.ariaLabel")
        assert label == "bank.n, layer 1, PCA: 2000 points in a plane, 3 senses"
        for value, layer in enumerate(("embeddings", "layer 1")):
            browser.evaluate(
                f"(s => {{ s.value = {value}; s.dispatchEvent(new Event('change')); }})"
                "(document.querySelectorAll('.points select')[1])"
            )
            assert f"bank.n, {layer}, " in browser.evaluate(f"{CANVAS}.ariaLabel")
        browser.evaluate(f"{CANVAS}.focus()")
        browser.press("Home")  # the first of the largest sense
        said = browser.evaluate(f"{READOUT}.textContent")
        assert said.startswith(f"river: 𝄞 the bank 0 {EVIL} (")
        assert "marks lie here: " in said
        assert said.endswith("1 money)")
        assert browser.evaluate(f"{READOUT}.querySelector('mark').textContent") == "bank"
        browser.press("PageDown")
        assert "bank 1 " in browser.evaluate(f"{READOUT}.textContent")
        for _ in range(40):  # to the right there is the other sense
            browser.press("ArrowRight")
        assert browser.evaluate(f"{READOUT}.textContent").startswith("money: ")
        # A sense that is hidden is not read, and its button says so.
        browser.evaluate("document.querySelectorAll('.plane-legend button')[1].click()")
        pressed = (
            "[...document.querySelectorAll('.plane-legend [aria-pressed]')].map(b => b.ariaPressed)"
        )
        assert browser.evaluate(pressed) == ["true", "false", "true"]
        assert browser.evaluate(f"{READOUT}.textContent") == ""
        browser.press("End")
        assert not browser.evaluate(f"{READOUT}.textContent").startswith("money: ")
        browser.evaluate(f"{CANVAS}.focus()")
        browser.press("Escape")
        assert browser.evaluate(f"{READOUT}.textContent") == ""
        left, top, width, height = browser.evaluate(
            f"(b => [b.left, b.top, b.width, b.height])({CANVAS}.getBoundingClientRect())"
        )
        for step in range(20):
            browser.point(left + width * (0.3 + step / 50), top + 0.75 * height)
        browser.wait_for(f"{READOUT}.textContent.startsWith('river: ')")
        assert browser.evaluate("document.querySelectorAll('.points img').length") == 0
        assert browser.complaints == []
