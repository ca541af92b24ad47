"""Figures in every script: no boxes, no warnings (they are errors), with fonts and without."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

from bertology.report.figures import TreeArcs, link_map, tree_arcs
from bertology.results import letters
from bertology.results.drawing import Canvas, Drawing
from bertology.results.rendering import FIGURE_FORMATS, render

TOKENS = [
    "[CLS]",
    "القطة",
    "##ات",
    "שלום",
    "Привет",
    "日本",
    "コンピュータ",
    "한국",
    "नमस्ते",
    "ไทย",
    "。",
]


@pytest.fixture
def no_other_fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine that has only the fonts that come with matplotlib."""
    own = [e for e in font_manager.fontManager.ttflist if "mpl-data" in e.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    letters._fonts_for.cache_clear()
    yield
    letters._fonts_for.cache_clear()


def drawn(title: str = "مرحبا 日本 नमस्ते") -> Figure:
    grid = np.eye(len(TOKENS))
    return link_map(grid, TOKENS, [(1, 2)], title=title)


def words_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


@pytest.mark.parametrize("format", FIGURE_FORMATS)
def test_every_script_is_drawn_with_the_fonts_of_this_machine(format: str) -> None:
    assert render(drawn(), format)


@pytest.mark.usefixtures("no_other_fonts")
def test_without_fonts_letters_are_called_by_their_names() -> None:
    figure = Drawing("links", drawn, "").on(Canvas())
    for format in FIGURE_FORMATS:
        render(figure, format)
        figure.set_layout_engine("none")
    words = words_of(figure)
    assert {"ko·n·pi·yu·ta", "han·gug", "U+65E5·U+672C", "na·ma·sa·ta·e", "."} <= {*words}
    assert "القطة" in words  # matplotlib's own font has it
    (note,) = [text for text in words if "fonts-noto-cjk" in text]
    assert note.startswith("Framed: linked pairs.")
    assert "fonts-noto-core" in note


@pytest.mark.usefixtures("no_other_fonts")
def test_it_is_told_once_and_not_in_figures_of_others() -> None:
    figure = drawn()
    render(figure)
    render(figure)
    assert len(re.findall("fonts-noto-cjk", " ".join(words_of(figure)))) == 1
    own = Figure()
    axes = own.add_subplot()
    Drawing("links", drawn, "").on(Canvas(axes))
    assert "fonts-noto" not in " ".join(words_of(own))
    assert "han·gug" in words_of(own)


def test_a_figure_in_latin_letters_is_left_as_it_is() -> None:
    figure = link_map(np.eye(2), ["a", "ß"], [], title="Ünïcode — “quotes”")
    before = [(t.get_text(), t.get_fontfamily()) for t in figure.findobj(Text)]
    letters.make_readable(figure)
    assert [(t.get_text(), t.get_fontfamily()) for t in figure.findobj(Text)] == before


def test_arabic_and_hebrew_sentences_begin_on_the_right() -> None:
    def places(words: list[str]) -> list[float]:
        figure = tree_arcs(words, title="T", above=TreeArcs("annotated", [-1, 0, 0]))
        at = {t.get_text(): t.get_position()[0] for t in figure.axes[0].texts}
        return [at[word] for word in words]

    latin, arabic = places(["one", "two", "three"]), places(["ذهب", "الولد", "12"])
    assert latin == sorted(latin)
    assert arabic == sorted(arabic, reverse=True)
    assert not letters.right_to_left(["שלום", "BERT"])  # as many letters of one as of the other
    assert letters.right_to_left(["שלום עולם", "BERT"])
