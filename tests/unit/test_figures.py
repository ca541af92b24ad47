"""Figures: what they show, that they are the same every time, and exporting them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from bertology.errors import ParameterError, StoreError, UnknownNameError
from bertology.report.export import FORMATS, export
from bertology.report.figures import (
    Costs,
    Dots,
    Draws,
    GridPanel,
    Line,
    dose_curve,
    head_grid,
    head_grids,
    interval_dots,
    layer_bars,
    lines,
    link_map,
    row_grid,
    scatter_with_rank,
    trade_offs,
)
from bertology.report.figures.trade_offs import unbeaten
from bertology.report.look import PAPER, diverging, sequential
from bertology.results import Provenance, Result
from bertology.results.drawing import WIDTHS, Canvas, Drawing
from bertology.results.rendering import render

GRID = np.linspace(-0.02, 0.01, 12).reshape(3, 4)


def grid() -> Figure:
    return head_grid(GRID, title="Effect", label="points", marks=np.abs(GRID) > 0.015, center=0)


def bars() -> Figure:
    return layer_bars([0.8, 0.9], [0.7, 0.8], [0.9, 1.0], title="T", label="F1", baseline=0.85)


def scatter() -> Figure:
    x = np.arange(8.0)
    return scatter_with_rank(x - 4, x**2 - 5, title="T", xlabel="estimate", ylabel="exact")


def dots() -> Figure:
    nan = float("nan")
    panel = Dots("accuracy", [0.5, 0.6, nan], [0.4, nan, nan], [0.6, nan, nan])
    return interval_dots([panel, panel], ["a", "b", "c"], title="T", reference="a", note="N")


def two_lines() -> Figure:
    drawn = [Line("base", [0, 1, 2], [3, 2, 1]), Line("stacked", [0, 1], [3, 1])]
    return lines(drawn, title="T", xlabel="seconds", ylabel="loss", note="N")


def test_a_dollar_sign_is_a_dollar_sign() -> None:
    text = "a $ { $ b"
    panel = Dots(text, [0.5], [0.4], [0.6])
    drawn = interval_dots([panel], [text], title=text, reference=text, note=text)
    mapped = link_map(np.eye(2), [text, "$x_1$"], [(0, 0)], title=text, note=text)
    for figure in (drawn, mapped, head_grid(GRID, title=text, label=text)):
        assert text in render(figure).decode()
    assert "$x_1$" in render(mapped).decode()


@pytest.mark.parametrize("draw", [grid, bars, scatter, dots, two_lines])
def test_svg_is_deterministic_and_its_text_is_text(draw: Callable[[], Figure]) -> None:
    svg = render(draw())
    assert svg == render(draw())
    assert b"<text" in svg
    assert b"<dc:date>" not in svg


@pytest.mark.parametrize("draw", [grid, bars, scatter, dots, two_lines])
def test_drawing_leaves_no_state_behind(draw: Callable[[], Figure]) -> None:
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    draw()
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == []


def test_pdf_and_png() -> None:
    pdf = render(grid(), "pdf")
    assert pdf.startswith(b"%PDF")
    assert pdf == render(grid(), "pdf")
    assert b"CreationDate" not in pdf
    assert render(grid(), "png").startswith(b"\x89PNG")


def test_head_grid_shows_layers_down_heads_right_and_marks() -> None:
    axes = grid().axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["0", "1", "2", "3"]
    assert axes.get_ylim() == (2.5, -0.5)
    assert len(axes.patches) == 2 * int((np.abs(GRID) > 0.015).sum())  # a dark line and a light one
    mesh = axes.collections[0]
    assert mesh.get_clim() == (-0.02, 0.02)
    svg = render(grid()).decode()
    assert "numbered from 0" in svg
    assert "Outlined" in svg


def test_letters_stand_in_cells_and_can_be_read() -> None:
    panel = GridPanel("", np.array([[0.0, 100.0]]), letters=np.array([["H", "VD"]]))
    (axes, _) = head_grids([panel], title="T", label="% of runs").axes
    found = {text.get_text(): text for text in axes.texts}
    assert {name: text.get_position() for name, text in found.items()} == {
        "H": (0, 0),
        "VD": (1, 0),
    }
    assert found["H"].get_color() != found["VD"].get_color()  # one cell is pale, the other dark


def test_grids_side_by_side_have_one_scale_and_say_what_outlines_mean() -> None:
    panels = [GridPanel("one", GRID, GRID > 0), GridPanel("other", 2 * GRID)]
    figure = head_grids(panels, title="T\nm on c", label="l", center=0.0, note="Outlined: sure.")
    one, other, _ = figure.axes
    assert one.collections[0].get_clim() == other.collections[0].get_clim() == (-0.04, 0.04)
    assert len(one.patches) == 2 * int((GRID > 0).sum())
    assert not other.patches
    assert figure.get_suptitle() == "T\nm on c"
    assert "Outlined: sure." in figure.get_supxlabel()


def test_rows_of_classes_start_at_zero_and_have_names() -> None:
    figure = row_grid(np.abs(GRID), ["a", "b", "c"], title="T", label="l", xlabel="layer")
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]
    assert figure.axes[0].collections[0].get_clim() == (0.0, 0.02)
    with pytest.raises(ParameterError, match="have 2 rows"):
        row_grid(GRID, ["a", "b"], title="T", label="l", xlabel="layer")


@pytest.mark.parametrize(
    ("values", "center"),
    [
        (np.zeros((2, 2)), 0.0),
        (np.full((1, 1), 0.9), None),
        (np.full((2, 2), np.nan), 0.0),
        (np.full((2, 2), np.nan), None),
        (np.where(np.eye(3) > 0, np.nan, 0.5), None),
        (np.random.default_rng(0).normal(size=(48, 32)), 0.0),
    ],
)
def test_head_grid_of_odd_values_is_drawn(values: np.ndarray, center: float | None) -> None:
    assert render(head_grid(values, title="T", label="l", center=center), "png")


def test_layer_bars_show_interval_and_names() -> None:
    figure = layer_bars([1.0, -2], [0, -3], [2, -1], title="T", label="l", names=["warm", "cold"])
    axes = figure.axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["warm", "cold"]
    low, high = axes.get_ylim()
    assert low < -3
    assert high > 2
    assert "numbered" not in render(figure).decode()


def test_labels_have_room_beside_the_ticks_that_are_drawn() -> None:
    """Ticks at −5, 0, 5 were measured; those at −2.5 that came then pushed the label outside."""
    figure = layer_bars(
        [-1.0] * 8, [-6.0] * 8, [5.2] * 8, title="T\nm on c", label="points", filled=[False] * 8
    )
    figure.set_dpi(200)
    figure.draw_without_rendering()
    axis = figure.axes[0].yaxis
    assert "−2.5" in [tick.get_text() for tick in axis.get_ticklabels()]
    assert axis.label.get_window_extent().x0 > 0


def test_scatter_states_correlation_interval_and_n() -> None:
    assert "Spearman" in (svg := render(scatter()).decode())
    assert "n = 8" in svg


def test_wrong_shapes_are_told() -> None:
    with pytest.raises(ParameterError, match="'values' parameter of head_grid must be a non-empty"):
        head_grid([1.0, 2.0], title="T", label="l")
    with pytest.raises(ParameterError, match=r"'marks'.*must have the shape \(3, 4\)"):
        head_grid(GRID, title="T", label="l", marks=[[True]])
    with pytest.raises(ParameterError, match="'high' parameter of layer_bars must have 2 entries"):
        layer_bars([1.0, 2], [1, 2], [1], title="T", label="l")
    with pytest.raises(ParameterError, match="'y' parameter of scatter_with_rank"):
        scatter_with_rank([1.0, 2], [1], title="T", xlabel="x", ylabel="y")


def test_colour_maps_are_even_and_safe() -> None:
    """Lightness falls evenly from the pale side, so the maps read in grey as well."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    for colours in (sequential()(np.linspace(0, 1, 65)), diverging()(np.linspace(0.5, 1, 65))):
        assert (np.diff(colours[:, :3] @ weights) < 0).all()
    ends = diverging()([0.0, 0.5, 1.0])[:, :3] @ weights
    assert ends[1] > 0.9
    assert abs(ends[0] - ends[2]) < 0.1


# Export


class Small(Result):
    def drawings(self) -> Sequence[Drawing]:
        return [Drawing("grid", grid, "One cell for each head.")]


def small() -> Small:
    provenance = Provenance("s", 1, {}, {"name": "m", "fingerprint": "f"})
    effects = pd.DataFrame({"layer": [0, 1], "word": ["é", "b,c"]})
    named = pd.DataFrame({"x": [0.5]}, index=pd.Index(["a"], name="key"))
    return Small(provenance, {"effects": effects, "named": named})


def test_export_writes_all_formats(tmp_path: Path) -> None:
    paths = export(small(), tmp_path / "new" / "folder", FORMATS, prefix="")
    assert sorted(p.name for p in paths) == [
        "captions.txt",
        "effects-strongest.tex", "effects.csv", "effects.parquet", "effects.tex",
        "grid.pdf", "grid.png", "grid.svg",
        "named-strongest.tex", "named.csv", "named.parquet", "named.tex",
    ]  # fmt: skip
    assert all(p.stat().st_size for p in paths)
    folder = paths[0].parent
    back = pd.read_csv(io.BytesIO((folder / "effects.csv").read_bytes()))
    pd.testing.assert_frame_equal(back, small().tables["effects"])
    assert (folder / "named.csv").read_text().startswith("key,x")
    pd.testing.assert_frame_equal(
        pd.read_parquet(folder / "named.parquet"), small().tables["named"]
    )


def test_export_overwrites_nothing_of_another_result(tmp_path: Path) -> None:
    """Two studies have a table `heads`; their files lay on top of each other."""
    first, second = small(), small()
    second.provenance = Provenance("t", 1, {}, {"name": "m", "fingerprint": "f"})
    names = [p.name for r in (first, second) for p in export(r, tmp_path, ("csv",))]
    assert names[0] == f"s-{first.identity[:8]}-effects.csv"
    assert len(set(names)) == len(list(tmp_path.iterdir())) == 4
    export(first, tmp_path, ("csv",))  # the same once more changes nothing
    (tmp_path / names[0]).write_text("mine")
    with pytest.raises(StoreError, match="is there already, and holds something else") as refused:
        export(first, tmp_path, ("csv",))
    assert "--force" in str(refused.value.hint)
    assert (tmp_path / names[0]).read_text() == "mine"
    export(first, tmp_path, ("csv",), force=True)
    assert (tmp_path / names[0]).read_text() != "mine"


def test_export_refuses_before_writing(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown export format 'jpg'"):
        export(small(), tmp_path / "out", ("csv", "jpg"))
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="there is a file instead of a folder"):
        export(small(), tmp_path / "file", ("csv",))


def test_dots_and_lines_say_what_is_wrong() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        interval_dots([], ["a"], title="T")
    with pytest.raises(ParameterError, match="have 2 entries"):
        interval_dots([Dots("x", [1], [1], [1])], ["a", "b"], title="T")
    with pytest.raises(ParameterError, match="one to three names"):
        lines([Line(str(i), [0], [0]) for i in range(4)], title="T", xlabel="x", ylabel="y")


def test_a_dot_without_an_interval_is_hollow() -> None:
    axes = dots().axes[0]
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == PAPER]
    assert [list(line.get_ydata()) for line in hollow] == [[1, 2]]


def test_an_interval_without_an_end_is_an_arrow_and_hides_no_other() -> None:
    inf = float("inf")
    values, low, high = [10.0, 20.0, 900.0, 15.0], [5.0, -inf, -1e6, np.nan], [15.0, inf, 1e6, inf]
    panel = Dots("kept (%)", values, low, high, within=(-100.0, 300.0))
    axes = interval_dots([panel], list("abcd"), title="T").axes[0]
    assert -10 < axes.get_xlim()[0] < 5
    assert 20 < axes.get_xlim()[1] < 30
    marks = {line.get_marker(): list(line.get_ydata()) for line in axes.get_lines()}
    assert marks["<"] == marks[">"] == [1, 2]  # what has no interval has no arrow
    dots = {y for line in axes.get_lines() if line.get_marker() == "o" for y in line.get_ydata()}
    assert dots == {0, 1, 3}  # the dot at 900 is out of view
    none = Dots("kept (%)", [np.nan], [-inf], [inf])
    interval_dots([none], ["a"], title="T").draw_without_rendering()


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ((1.0, 232.0), [1, 3, 10, 30, 100, 300]),
        ((1.0, 7.3), [1, 2, 5]),
        ((1.0, 2.4), [1, 1.2, 1.5, 2]),
        ((2.5, 2.5), None),
        ((0.01, 1e6), [0.01, 0.1, 1, 10, 100, 1000, 10000, 100000, 1000000]),
    ],
)
def test_numbers_of_times_have_a_logarithmic_axis_with_round_marks(
    values: tuple[float, ...], marks: list[float] | None
) -> None:
    panel = Dots("times less", values, values, values, ratios=True)
    axes = interval_dots([panel], list("ab"), title="T").axes[0]
    assert axes.get_xscale() == "log"
    shown = [float(x) for x in axes.get_xticks()]
    assert shown == pytest.approx(marks) if marks else shown
    assert {len(line.get_xdata()) for line in axes.get_lines() if line.get_marker() == "o"} == {
        2,
        0,
    }


def test_numbers_of_crowded_dots_do_not_cover_each_other() -> None:
    rng = np.random.default_rng(0)
    cost = rng.choice([1.0, 1.0, 1.6, 1.6, 1.6, 2.3], 34)
    gain = 85 + 4 * rng.random(34)
    names, kinds = [f"row-{i}" for i in range(34)], ["compressed"] * 33 + ["teacher"]
    figure = trade_offs(
        [Costs("size", cost), Costs("time", cost[::-1])], (gain, gain - 2, gain + 2), names, kinds,
        ylabel="score", marked=33, title="T",
    )  # fmt: skip
    figure.canvas.draw()
    for axes, spent in zip(figure.axes, (cost, cost[::-1]), strict=True):
        texts = {text.get_text(): text for text in axes.texts}
        line = np.flatnonzero(unbeaten(spent, gain))
        assert {str(i + 1) for i in line} <= set(texts)
        assert len(texts) > 25
        boxes = [Text.get_window_extent(text) for text in texts.values()]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        dots = axes.transData.transform(np.stack([spent, gain], axis=1))
        assert not any(box.contains(*dot) for box in boxes for dot in dots)
        assert all(axes.get_window_extent().contains(*dot) for dot in dots)


def test_panels_of_one_unit_may_have_one_scale() -> None:
    panels = [Dots("a", [1], [0], [2]), Dots("b", [-5], [-9], [-1])]
    apart = interval_dots(panels, ["x"], title="T").axes
    together = interval_dots(panels, ["x"], title="T", same_scale=True).axes
    assert apart[0].get_xlim() != apart[1].get_xlim()
    low, high = together[0].get_xlim()
    assert together[1].get_xlim() == (low, high)
    assert low <= -9
    assert high >= 2


@pytest.mark.parametrize("width", WIDTHS.values())
def test_panels_of_a_narrow_figure_have_room_for_their_labels(width: float) -> None:
    panels = [
        Dots(f"comprehensiveness of kind {i} (%)", [0.1, 0.5], [0, 0], [1, 1]) for i in "abcdef"
    ]
    names = ["attention (last layer)", "leaving out"]
    made = Drawing("d", lambda: interval_dots(panels, names, title="T"), "")
    figure = made.on(Canvas(width=width))
    figure.draw_without_rendering()
    labels = [axes.xaxis.label.get_window_extent() for axes in figure.axes]
    assert len(labels) == 6
    assert not any(one.overlaps(other) for one, other in combinations(labels, 2))
    assert max(box.x1 for box in labels) < figure.bbox.x1 + 3


def test_names_of_levels_that_are_close_do_not_lie_on_each_other() -> None:
    draws = [Draws(n, [50.0, 80.0], 65.0, 40.0, 90.0) for n in (1, 2, 4)]
    lines = {"intact": 82.9, "constant\n answer": 81.2}
    figure = dose_curve(draws, title="T", xlabel="x", ylabel="y", lines=lines)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])
    styles = {line.get_linestyle() for line in figure.axes[0].get_lines()}
    assert {"-", "--"} <= styles, "the two lines can be told apart"


def test_bars_show_no_side_that_has_nothing_and_no_dot_without_an_interval() -> None:
    nothing = [np.nan, np.nan]
    figure = layer_bars([1.0, 2.0], nothing, nothing, title="T", label="l")
    axes = figure.axes[0]
    assert axes.get_ylim()[0] == 0
    assert sum(len(line.get_xdata()) for line in axes.get_lines() if line.get_marker() == "o") == 0
    both = layer_bars([1.0, -2.0], [0.5, -3], [1.5, -1], title="T", label="l").axes[0]
    assert both.get_ylim()[0] < -3
    assert both.get_ylim()[1] > 1.5


def test_a_row_grid_speaks_of_gaps_only_where_there_are_some() -> None:
    for value, said in ((np.nan, True), (0.5, False)):
        figure = row_grid([[0.1, value]], ["a"], title="T", label="l", xlabel="head")
        assert any("not measured" in t.get_text() for t in figure.texts) == said


def test_a_level_to_compare_with_is_in_view() -> None:
    panel = Dots("pairs told right (%)", [73.0], [65.0], [81.0], level=50)
    axes = interval_dots([panel], ["all"], title="T").axes[0]
    assert axes.get_xlim()[0] < 50 < axes.get_xlim()[1]


def test_a_long_label_does_not_reach_into_the_title() -> None:
    label = "change of the score without the head, in points of the task's metric"
    figure = scatter_with_rank([1.0, 2, 3], [1.0, 3, 2], title="T", xlabel=label, ylabel=label)
    figure.canvas.draw()
    axes = figure.axes[0]
    outside = figure.bbox
    for axis in (axes.xaxis, axes.yaxis):
        box = axis.label.get_window_extent()
        assert box.y0 >= outside.y0
        assert box.y1 <= outside.y1
        assert box.x0 >= outside.x0
        assert box.x1 <= outside.x1
    assert axes.yaxis.label.get_window_extent().height <= 1.1 * axes.get_window_extent().height


def test_the_name_of_a_level_stands_beside_its_line() -> None:
    figure = layer_bars([0.8, 0.9], [0.7, 0.8], [0.9, 1.0], title="T", label="F1", baseline=0.85)
    figure.canvas.draw()
    axes = figure.axes[0]
    box = axes.texts[0].get_window_extent()
    line = axes.transData.transform((0, 0.85))[1]
    assert box.y0 < line < box.y1


def test_a_point_beyond_a_surface_is_an_arrow_inside_of_it() -> None:
    from bertology.report.figures.surfaces import Mark, Surface, loss_surfaces

    places = np.linspace(-1, 1, 5)
    far = Surface("one", places, places, np.ones((5, 5)), marks=[Mark("twin's end", 0.5, 4.0)])
    figure = loss_surfaces(
        [far], title="Losses", labels=("x", "y"), highest=2.0, levels=[0.5], note="Note."
    )
    [told] = [text for text in figure.axes[0].texts if isinstance(text, Annotation)]
    assert told.get_text() == "twin's end: beyond"
    assert abs(told.xy[1]) <= 1
