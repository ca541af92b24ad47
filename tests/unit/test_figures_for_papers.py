"""Figures for a reader: scales that leave no grid pale, marks that stand out, widths of papers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from bertology.errors import ParameterError, UnknownNameError
from bertology.report import drawings, figures
from bertology.report.figures.over_runs import step_curve
from bertology.report.slim import slim
from bertology.results import Provenance, Result
from bertology.results.drawing import WIDTHS, Drawing
from bertology.results.measures import Measure
from bertology.results.rendering import render

RANDOM = np.random.default_rng(0)
HEADS = RANDOM.normal(size=(12, 12))
MAPS = RANDOM.dirichlet(np.ones(9), size=(12, 12, 9))
TOKENS = "[CLS] the teacher lends her friend a clock [SEP]".split()
TITLE = "What heads of every layer attend to, beyond words\nbertology-mini on grammar"
TYPES = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
LAYERS = [f"layer {i}" for i in range(12)]


def measure(values: np.ndarray, name: str = "gain", **more: object) -> Measure:
    words = {"unit": "points", "middle": 0.0, "reading": "High: much."}
    return Measure(name, name.title(), values, **(words | more))  # type: ignore[arg-type]


def grids(count: int, *, sure: bool = False) -> Drawing:
    marks = {"sure": HEADS > 0} if sure else {}
    several = [measure(HEADS * (i + 1), f"class-{i}", **marks) for i in range(count)]
    return drawings.grids("grids", several, "m on c", title=TITLE, reading="High: much.")


def profile() -> Figure:
    lines = [figures.Band(n, *HEADS[:3] ** 2) for n in ("[CLS]", "[SEP]", "punctuation", "words")]
    return figures.layer_profile(lines, title=TITLE, label="share of attention")


def sheet() -> Figure:
    return figures.map_sheet(MAPS, title=TITLE, note=" ".join(TOKENS), tokens=TOKENS)


def examples() -> Figure:
    row = [figures.TitledMap(f"head 0.{i}", MAPS[0, i], TOKENS) for i in range(3)]
    return figures.example_sheet(dict.fromkeys(TYPES[:4], row), title=TITLE, note="N.")


ONE_PANEL: dict[str, Callable[[], Figure]] = {
    "heads": lambda: figures.head_grid(HEADS, title=TITLE, label="points", center=0.0),
    "rows": lambda: figures.row_grid(
        HEADS[:5] ** 2, TYPES, title=TITLE, label="weight", xlabel="layer"
    ),
    "types": lambda: figures.type_grid(
        HEADS > 0, HEADS**0, types=TYPES, title=TITLE, note="Numbers: share."
    ),
    "bars": lambda: figures.layer_bars(
        HEADS[0], HEADS[0] - 1, HEADS[0] + 1, title=TITLE, label="F1"
    ),
    "profile": profile,
    "scatter": lambda: figures.scatter_with_rank(
        HEADS[0], HEADS[1], title=TITLE, xlabel="estimate", ylabel="exact"
    ),
    "parts": lambda: figures.type_bars(
        np.full((12, 5), 0.2), types=TYPES, names=LAYERS, title=TITLE, note="N."
    ),
    "map": lambda: figures.link_map(MAPS[0, 0], TOKENS, [(1, 2)], title=TITLE),
    "steps": lambda: step_curve(
        [0, 10, 100, 1000], [0, 1, 2, 3], [0, 0, 1, 2], [1, 2, 3, 4], title=TITLE, label="points"
    ),
}  # fmt: skip
SEVERAL: dict[str, Callable[[], Figure]] = {
    "two": grids(2).draw,
    "seven": grids(7).draw,
    "sure": grids(2, sure=True).draw,
    "sheet": sheet,
    "examples": examples,
}


class Drawn(Result):
    def drawings(self) -> Sequence[Drawing]:
        return [Drawing(n, draw, f"Caption of {n}.") for n, draw in (ONE_PANEL | SEVERAL).items()]


def drawn() -> Drawn:
    return Drawn(Provenance("s", 1, {}, {"name": "m", "fingerprint": "f"}))


# Widths, titles, axes


def texts(figure: Figure) -> list[Text]:
    found = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
    return [t for t in found if isinstance(t, Text)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ONE_PANEL | SEVERAL)
def test_figures_for_papers_have_their_width_and_type_that_is_read(name: str, width: str) -> None:
    figure = drawn().plot(name, width=width)
    assert figure.get_figwidth() == WIDTHS[width]
    assert figure.get_figheight() < 9.5  # a page
    figure.draw_without_rendering()
    for text in texts(figure):
        assert 6 <= text.get_fontsize() <= 10, text
    # Nothing that is seen runs off the paper.
    seen, (width_there, height_there) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(seen.x0, seen.y0) > -0.03
    assert seen.x1 < width_there + 0.03
    assert seen.y1 < height_there + 0.03


@pytest.mark.parametrize("name", ["heads", "rows", "types", "map"])
def test_figures_without_a_title_have_no_hole_in_its_place(name: str) -> None:
    """Squares in a narrow figure left an inch above and half an inch below."""
    figure = drawn().plot(name, title="", width="column")
    figure.draw_without_rendering()
    assert figure.get_figheight() - figure.get_tightbbox().y1 < 0.2
    assert figure.get_figwidth() == WIDTHS["column"]


@pytest.mark.parametrize("name", ONE_PANEL)
def test_one_panel_is_drawn_into_given_axes(name: str) -> None:
    figure = Figure(figsize=(8, 4))
    left, right = figure.subplots(1, 2)
    assert drawn().plot(name, ax=right, title="Mine") is figure
    assert right.has_data()
    assert not left.has_data()
    assert "Mine" in [right.get_title(loc) for loc in ("left", "center")]
    assert figure.get_suptitle() == figure.get_supxlabel() == ""


@pytest.mark.parametrize("name", SEVERAL)
def test_several_panels_are_not_drawn_into_one(name: str) -> None:
    axes = Figure().subplots()
    with pytest.raises(
        ParameterError, match="'ax' parameter of plot must be left out for a figure"
    ):
        drawn().plot(name, ax=axes)


def test_figures_that_make_their_own_axes_say_so() -> None:
    own = Drawing("own", Figure, "C.")

    class Own(Result):
        def drawings(self) -> Sequence[Drawing]:
            return [own]

    result = Own(Provenance("s", 1, {}, {"name": "m", "fingerprint": "f"}))
    with pytest.raises(ParameterError, match="which makes its own axes"):
        result.plot(ax=Figure().subplots())


def test_titles_are_replaced_or_left_out_and_captions_are_apart() -> None:
    result = drawn()
    assert result.plot("heads").get_suptitle().endswith("bertology-mini on grammar")
    assert result.plot("heads", title="Mine").get_suptitle() == "Mine"
    assert result.plot("heads", title="").get_suptitle() == ""
    assert result.caption("heads") == "Caption of heads."
    assert result.caption("heads") not in render(result.plot("heads")).decode()
    # Nothing of it stays for the next figure.
    assert result.plot("heads").get_figwidth() != 3.3


def test_wrong_widths_are_told() -> None:
    with pytest.raises(UnknownNameError, match="'pages'"):
        drawn().plot("heads", width="pages")
    with pytest.raises(ParameterError, match="'width' parameter of plot must be left out where"):
        drawn().plot("heads", ax=Figure().subplots(), width="page")


# Scales and marks


def test_a_grid_that_would_be_pale_all_over_gets_its_own_scale() -> None:
    punctuation, nouns = np.abs(HEADS), 0.1 * np.abs(HEADS)
    made = [measure(v, n, middle=None) for n, v in (("a", punctuation), ("b", nouns))]
    drawing = drawings.grids("g", made, "m on c", title="T", reading="R.")
    one, other = (axes.collections[0] for axes in drawing.draw().axes[:2])
    assert one.get_clim()[1] == punctuation.max()
    assert other.get_clim()[1] == nouns.max()
    assert "each on its own scale" in drawing.caption
    assert "own scale: points." in drawing.draw().get_supxlabel().replace("\n", " ")
    compared = drawings.grids("g", made, "m on c", title="T", reading="R.", shared=True)
    one, other = (axes.collections[0] for axes in compared.draw().axes[:2])
    assert one.get_clim() == other.get_clim()
    assert "on one scale" in compared.caption


def test_where_most_heads_are_sure_the_others_shrink_instead_of_outlines() -> None:
    many, few = HEADS > 0, HEADS > 2
    drawing = drawings.grid(measure(HEADS, sure=many), "m on c")
    axes = drawing.draw().axes[0]
    assert not axes.patches
    whole, small = axes.collections
    assert np.array_equal(~np.ma.getmaskarray(whole.get_array()).reshape(12, 12), many)
    assert len(small.get_paths()) == (~many).sum()
    assert whole.get_clim() == small.get_clim()
    assert "Heads with large cells differ surely" in drawing.caption
    drawing = drawings.grid(measure(HEADS, sure=few), "m on c")
    assert len(drawing.draw().axes[0].patches) == 2 * few.sum()
    assert "Outlined heads differ surely" in drawing.caption


def test_a_line_in_the_scale_lies_in_it() -> None:
    panel = figures.GridPanel("a", np.zeros((2, 2)))
    figure = figures.head_grids([panel], title="T", label="l", level=("the offset", 47.0))
    assert figure.axes[0].collections[0].get_clim() == (0.0, 47.0)
    assert "Line in the scale: the offset." in figure.get_supxlabel().replace("\n", " ")
    assert render(figure, "png")


# Maps


def test_sheets_of_maps_show_three_with_their_tokens() -> None:
    maps = np.full((2, 2, 9, 9), 1 / 9)
    maps[0, 1] = np.eye(9)[0]  # all to the first token
    maps[1, 0] = np.eye(9, k=1)
    maps[1, 1] = np.eye(9)[4]
    figure = figures.map_sheet(maps, title="T", note="N", tokens=TOKENS)
    large = [a for a in figure.findobj(Axes) if isinstance(a, Axes) and a.get_title("left")]
    told = ["0.1: both ends", "1.0: neighbours", "1.1: farther"]
    assert [a.get_title("left") for a in large] == told
    assert [t.get_text() for t in large[0].get_yticklabels()] == TOKENS


def test_long_texts_name_every_few_tokens() -> None:
    tokens = [f"t{i}" for i in range(120)]
    long = figures.TitledMap("0.0", np.eye(120), tokens)
    axes = figures.example_sheet({"row": [long]}, title="T", note="N").axes[0]
    named = [t.get_text() for t in axes.get_yticklabels()]
    assert 10 < len(named) < 120
    assert named[0] == "t0"


# Dark pages


def test_pages_in_the_dark_turn_ink_and_paper_but_no_cell() -> None:
    light, _, dark = slim(render(SEVERAL["sure"]())).partition("@media(prefers-color-scheme:dark){")
    dark = dark[: dark.index("}}")]
    assert "fill:#222222" in light
    assert "fill:#e6e8eb" in dark
    assert "fill:#1d2025" in dark
    turned = {"#e6e8eb", "#a3abb5", "#1d2025", "#363b43"}
    assert set(re.findall("#[0-9a-f]{6}", dark)) <= turned
    numbers = slim(render(ONE_PANEL["types"]()))
    assert "#fefefe" in numbers  # white on a dark cell stays white
