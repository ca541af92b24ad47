"""The routes of the page on which people label attention maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from fastapi import APIRouter, FastAPI
from pydantic import BaseModel, ConfigDict, Field

from bertology.data.map_labels import MAP_TYPES, MapLabel, MapRecipe, agreements, read_labels
from bertology.server.app import make_app
from bertology.server.labelling import Labelling
from bertology.server.map_pictures import MapPicture, MapPictures
from bertology.stats.agreement import Agreement

ANNOTATE_PAGES = {
    "/annotate": "annotate.html",
    "/annotate/agreement": "agreement.html",
    "/static/look.css": "look.css",
    "/static/annotate.js": "annotate.js",
    "/static/attention-map.js": "attention-map.js",
    "/static/agreement.js": "agreement.js",
    "/static/server.js": "server.js",
    "/static/icon.svg": "icon.svg",
}
_AHEAD = 8  # maps that are computed before the page asks for them


class _Strict(BaseModel):
    """Exactly these keys, of exactly these types: a text is never read as a number."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Answer(_Strict):
    number: int = Field(ge=0, le=1_000_000)
    label: Literal["vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous"]


class _Skip(_Strict):
    number: int = Field(ge=0, le=1_000_000)


class _Undo(_Strict):
    pass


def annotate_app(
    labelling: Labelling, draw: Callable[[MapRecipe], MapPicture], *, port: int
) -> FastAPI:
    """The labelling page by itself, with the maps of `labelling`, each made by `draw`."""
    pictures = MapPictures(draw)
    routes = annotate_routes(labelling, pictures)
    pages = {"/": ANNOTATE_PAGES["/annotate"], **ANNOTATE_PAGES}
    return make_app([routes], pages, port=port, on_close=pictures.close)


def annotate_routes(labelling: Labelling, pictures: MapPictures) -> APIRouter:
    """The routes of the labelling page, here and in the explorer.

    Plain functions, not coroutines: FastAPI runs them in threads, so they do not block each other.
    """
    router = APIRouter(prefix="/annotate/api")

    def state() -> dict[str, object]:
        pictures.prepare(labelling.upcoming(_AHEAD))
        return labelling.state()

    @router.get("/state")
    def show_state() -> dict[str, object]:
        return state()

    @router.get("/maps/{number}")
    def show_map(number: int) -> dict[str, object]:
        recipe = labelling.recipe(number)
        drawn = pictures.get(recipe).as_json()
        return {"number": number, "text": recipe.text, "text_b": recipe.text_b, **drawn}

    @router.post("/label")
    def give_label(answer: _Answer) -> dict[str, object]:
        labelling.label(answer.number, answer.label)
        return state()

    @router.post("/skip")
    def skip(answer: _Skip) -> dict[str, object]:
        labelling.skip(answer.number)
        return state()

    @router.post("/undo")
    def undo(_: _Undo) -> dict[str, object]:
        labelling.undo()
        return state()

    @router.get("/agreement")
    def show_agreement() -> dict[str, object]:
        return summary_of(read_labels(labelling.file.path))

    return router


def summary_of(labels: list[MapLabel]) -> dict[str, object]:
    """How many labels each coder gave, and how well any two coders agree; plain values."""
    coders = sorted({label.coder for label in labels})
    counts = {coder: dict.fromkeys(MAP_TYPES, 0) for coder in coders}
    for label in labels:
        counts[label.coder][label.label] += 1
    return {
        "types": list(MAP_TYPES),
        "coders": [{"annotator": a, "pass": p, "labels": counts[a, p]} for a, p in coders],
        "comparisons": [
            {"first": _coder(c.first), "second": _coder(c.second), **_agreement(c.agreement)}
            for c in agreements(labels)
        ],
    }


def _coder(coder: tuple[str, int]) -> dict[str, object]:
    return {"annotator": coder[0], "pass": coder[1]}


def _agreement(found: Agreement) -> dict[str, object]:
    kappa = found.kappa
    shown = None if kappa is None else {"value": kappa.value, "low": kappa.low, "high": kappa.high}
    return {"maps": found.n, "same": found.same, "kappa": shown, "table": found.table}
