"""One look for all figures: fonts, lines, and colours that everyone can tell apart.

The colour maps run in straight lines through OKLab, so equal steps of a value are equal steps to
the eye, and they differ in lightness, so they survive colour blindness and grey printing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from bertology.errors import ParameterError
from bertology.results.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

INK = "#222222"
GREY = "#6b6b6b"
PAPER = "#ffffff"
RULE = "#e3e3e3"
UNMEASURED = "#bdbdbd"
# On coloured cells, which keep their colours where a page in the dark turns ink and paper.
ON_LIGHT = "#212121"
ON_DARK = "#fefefe"
ACCENT = "#d55e00"  # the vermilion of Okabe and Ito
POSITIVE = "#1f6fb4"
NEGATIVE = "#b5651d"
GREEN = "#009e73"  # theirs, where there are more than two lines

_LOOK: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same picture everywhere
    "font.size": 9,
    "text.parse_math": False,  # a dollar sign in somebody's text is a dollar sign
    "axes.titlesize": 10.5,
    "figure.titlesize": 10.5,
    "figure.titleweight": "bold",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
}
_SIZES = [key for key in _LOOK if key.endswith("size")]
_SMALLEST = 6.0  # points; less is not read in print
_PAGE = 9.0  # inches that a page is high, with room for a caption

# Lightness, chroma and hue (degrees) of the ends, in OKLCh.
_PALE = (0.97, 0.006, 250.0)
_BLUE = (0.46, 0.135, 250.0)
_BROWN = (0.50, 0.125, 55.0)
_NIGHT = (0.27, 0.085, 265.0)
_DARK_PAPER = (0.243, 0.011, 262.0)  # of a dark page (page.css)


@contextmanager
def look() -> Iterator[None]:
    """Draw in the house style; the user's own matplotlib settings come back afterwards."""
    import matplotlib as mpl

    with mpl.rc_context(_LOOK | {key: type_size(_LOOK[key]) for key in _SIZES}):
        yield


def type_size(points: float) -> float:
    """A size of type for the figure that is being drawn: smaller in a narrow one, never tiny."""
    width = canvas().width
    # In print a figure stands beside text of 9 or 10 points.
    factor = 1.0 if width is None else 0.8 if width < 5 else 0.9
    return max(min(points, _SMALLEST), factor * points)


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes, or the axes that were given to `plot`.

    Inches are those the kind of figure likes; a width given to `plot` goes before.
    """
    given = canvas().axes
    if given is not None:
        # A subfigure has all that is needed of a figure.
        return cast("Figure", given.get_figure()), given
    figure = _empty(width, height)
    return figure, figure.add_subplot()


def new_panels(
    width: float, height: float, rows: int, columns: int, *, share_rows: bool = False
) -> tuple[Figure, list[Axes]]:
    """An empty figure with rows × columns of axes, which `plot` can not draw into given ones."""
    given = canvas().axes
    if given is not None:
        must = "be left out for a figure of several panels"
        raise ParameterError("ax", "plot", must, type(given).__name__)
    figure = _empty(width, height)
    return figure, list(figure.subplots(rows, columns, squeeze=False, sharey=share_rows).ravel())


def _empty(width: float, height: float) -> Figure:
    """Outside pyplot's global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from bertology.report.notebook_figure import NotebookFigure
    from bertology.report.settled_layout import SettledLayout

    # "compress": axes of a fixed aspect leave no hole beside them.
    engine = SettledLayout(w_pad=0.08, h_pad=0.08, compress=True)
    asked = canvas().width
    if asked is not None:
        # Title, labels and note keep their height; what is between them keeps its shape.
        words = min(height, 1.3)
        height = min(_PAGE, words + (height - words) * min(asked / width, 1.3))
    figure = NotebookFigure(figsize=(asked or width, height), layout=engine)
    FigureCanvasAgg(figure)
    return figure


@cache
def sequential() -> Colormap:
    """For scores: pale is low, dark is high, as in the paper's figures."""
    return _colormap("bertology-sequential", [_PALE, _BLUE, _NIGHT])


@cache
def night() -> Colormap:
    """For maps on a dark page: nothing is as dark as the page, and lighter is more."""
    return _colormap("bertology-night", [_DARK_PAPER, _BLUE, _PALE])


@cache
def diverging() -> Colormap:
    """For differences: brown below the centre, blue above, pale at the centre."""
    return _colormap("bertology-diverging", [_BROWN, _PALE, _BLUE])


def _colormap(name: str, stops: Sequence[tuple[float, float, float]]) -> Colormap:
    from matplotlib.colors import ListedColormap

    lab = np.array([_oklab(*stop) for stop in stops])  # (stops, 3)
    # Place the stops by their distance in colour space, so that steps are even along the map.
    distance = np.r_[0, np.cumsum(np.linalg.norm(np.diff(lab, axis=0), axis=1))]
    place = distance / distance[-1]
    if len(stops) == 3 and stops[1] is _PALE:
        place = np.array([0.0, 0.5, 1.0])  # the centre is the centre
    at = np.linspace(0, 1, 257)
    path = np.stack([np.interp(at, place, lab[:, k]) for k in range(3)], axis=1)
    return ListedColormap(_srgb(path), name=name).with_extremes(bad=UNMEASURED)


def _oklab(lightness: float, chroma: float, hue: float) -> NDArray[np.float64]:
    angle = np.deg2rad(hue)
    return np.array([lightness, chroma * np.cos(angle), chroma * np.sin(angle)])


def _srgb(lab: NDArray[np.float64]) -> NDArray[np.float64]:
    """OKLab (Ottosson 2020) to sRGB, clipped to what a screen can show."""
    to_cones = np.array(
        [
            [1.0, 0.3963377774, 0.2158037573],
            [1.0, -0.1055613458, -0.0638541728],
            [1.0, -0.0894841775, -1.2914855480],
        ]
    )
    to_linear = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip((lab @ to_cones.T) ** 3 @ to_linear.T, 0, 1)
    low = 12.92 * linear
    high = 1.055 * linear ** (1 / 2.4) - 0.055
    return np.asarray(np.where(linear <= 0.0031308, low, high), dtype=np.float64)
