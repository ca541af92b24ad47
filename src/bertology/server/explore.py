"""The explorer: its routes, and what each of them answers.

The server does not store what a user looks at: every question contains it, and what is switched
off is an argument of one run. So users cannot disturb each other.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response

from bertology.errors import BertologyError
from bertology.server import annotate
from bertology.server.about_model import about_model
from bertology.server.app import make_app
from bertology.server.attributions import Attributions
from bertology.server.contexts import WordContexts, about_contexts
from bertology.server.judging import Judging
from bertology.server.map_answers import described, maps_at, pack, single
from bertology.server.map_pictures import MapPictures, picture_of
from bertology.server.mean_maps import MOST_MEANS, mean_maps
from bertology.server.outliers import outliers_of
from bertology.server.predictions import Predictions
from bertology.server.python_code import contexts_code, python_code
from bertology.server.reading import ModelReader
from bertology.server.searching import Searching
from bertology.server.shown import Shown
from bertology.server.static_files import SHARED, STATIC
from bertology.server.task_examples import TaskExamples, first_examples
from bertology.server.trees import StructuralTrees, answer_tree
from bertology.server.views import (
    AttributionQuestion,
    ContextsQuestion,
    JudgeQuestion,
    MapQuestion,
    MeanQuestion,
    OutlierQuestion,
    PredictQuestion,
    PythonQuestion,
    SearchQuestion,
    TreeQuestion,
    ViewQuestion,
)
from bertology.server.working import Turnstile

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.server.labelling import Labelling

EXPLORE_MAX_BODY = 2**20
"""Enough for all texts that a word may be looked for in, in a script of three bytes a letter."""

_NOBODY_WAITS = 499  # the code of web servers for a request whose sender has gone
EXPLORE_PAGES: Mapping[str, str] = {
    "/": "explore/index.html",
    "/static/look.css": "look.css",
    "/static/server.js": "server.js",
    "/static/icon.svg": "icon.svg",
    **{f"/static/{name}": name for name in SHARED},
} | {
    # Listed once, when this is imported: no address from outside ever becomes a path.
    f"/static/explore/{path.name}": f"explore/{path.name}"
    for path in sorted((STATIC / "explore").iterdir())
    if path.suffix in (".css", ".js")
}


def explore_app(
    encoder: Encoder,
    *,
    port: int,
    root: Path | None = None,
    own: Sequence[Corpus] = (),
    labelling: Labelling | None = None,
    probe: StructuralTrees | None = None,
) -> FastAPI:
    """The explorer of one model, which begins with the user's `own` data, if there are any.

    With `labelling`, the labelling page is at /annotate. `probe`: a structural probe of the model.
    """
    reader, examples = ModelReader(encoder), TaskExamples(root, own)
    first = first_examples(pairs=reader.takes_pairs)[0]
    reader.begin(Shown(*first))  # the first pass is slow, and the page opens with this very text
    searching = Searching(reader, examples)
    searching.prepare(*first)
    labels = labelling is not None
    routers = [_routes(reader, examples, searching, labels=labels, probe=probe)]
    pages, closing = dict(EXPLORE_PAGES), [reader.close]
    if labelling is not None:
        pictures = MapPictures(partial(picture_of, _twin(encoder)))
        routers.append(annotate.annotate_routes(labelling, pictures))
        pages |= annotate.ANNOTATE_PAGES
        closing.append(pictures.close)

    def close() -> None:
        for end in closing:
            end()

    return make_app(routers, pages, port=port, max_body=EXPLORE_MAX_BODY, on_close=close)


def _twin(encoder: Encoder) -> Encoder:
    """The same model with a tokenizer of its own: a tokenizer cannot serve two threads at once."""
    from bertology.model.encoder import Encoder

    own = copy.deepcopy(encoder.tokenizer)
    return Encoder(encoder.model, own, head=encoder.head, name=encoder.name)


def _routes(
    reader: ModelReader,
    examples: TaskExamples,
    searching: Searching,
    *,
    labels: bool,
    probe: StructuralTrees | None,
) -> APIRouter:
    """Plain functions run in threads. Coroutines serve what needs no model, and what takes long."""
    router = APIRouter(prefix="/api", dependencies=[Depends(Turnstile())])
    predictions, judging = Predictions(reader), Judging(reader, examples)
    tasks = {"tasks": examples.tasks()}
    structural = None if probe is None else probe.about
    about = about_model(reader) | tasks | {"annotate": labels, "live": True}
    about |= {"structural": structural, "contexts": about_contexts()}
    attributions = Attributions(reader)
    about["attributions"] = attributions.about

    @router.get("/model")
    async def show_model() -> JSONResponse:
        return JSONResponse(about)

    @router.get("/examples")
    def show_example(
        task: str = Query(min_length=1, max_length=100), number: int = Query(ge=0, le=10**6)
    ) -> JSONResponse:
        return JSONResponse(examples.example(task, number))

    @router.post("/maps")
    def show_maps(question: ViewQuestion) -> Response:
        view = question.view
        reading = reader.read(view.shown)
        maps = maps_at(reading, reader.maps(reading), view.level)
        return _binary(pack(described(reading, view.level), maps))

    @router.post("/map")
    def show_map(question: MapQuestion) -> JSONResponse:
        view = question.view
        reader.check_head(question.layer, question.head)
        reading = reader.read(view.shown)
        one = reader.maps(reading)[question.layer, question.head]
        return JSONResponse(
            single(described(reading, view.level), maps_at(reading, one, view.level))
        )

    @router.post("/tree")
    def show_tree(question: TreeQuestion) -> JSONResponse:
        return JSONResponse(answer_tree(reader, examples, question, probe))

    @router.post("/predict")
    def predict(question: PredictQuestion) -> JSONResponse:
        shown = question.view.shown
        gold = judging.gold(shown.text, shown.pair)
        return JSONResponse(predictions.of(shown, question.top) | {"gold": gold})

    @router.post("/outliers")
    def find_outliers(question: OutlierQuestion) -> JSONResponse:
        return JSONResponse(outliers_of(reader, question.view.shown))

    @router.post("/search")
    def search(question: SearchQuestion) -> JSONResponse:
        query, shown = question.query, question.view.shown
        if query.kind == "similar":
            return JSONResponse(searching.similar(shown, query.layer, query.head))
        if query.kind == "pattern":
            return JSONResponse(searching.pattern(shown, query.name))
        return JSONResponse(searching.relation(shown, query.name))

    @router.post("/python")
    def write_python(question: PythonQuestion) -> JSONResponse:
        layer, head = question.layer, question.head
        if (layer is None) != (head is None):
            raise BertologyError("Give both the layer and the head, or neither.")
        if layer is not None and head is not None:
            reader.check_head(layer, head)
        return JSONResponse({"code": python_code(reader, question.view, layer, head)})

    _add_long_work(router, reader, examples, judging)
    _add_reasons(router, attributions)
    return router


def _add_long_work(
    router: APIRouter, reader: ModelReader, examples: TaskExamples, judging: Judging
) -> None:
    """What many passes are needed for; few may ask for it at a time."""

    @router.post("/mean", dependencies=[Depends(Turnstile(MOST_MEANS, what="means"))])
    async def show_mean(question: MeanQuestion, request: Request) -> Response:
        gone = request.is_disconnected
        made = await mean_maps(reader, examples, question, is_abandoned=gone)
        return Response(status_code=_NOBODY_WAITS) if made is None else _binary(made)

    contexts = WordContexts(reader)

    @router.post("/contexts", dependencies=[Depends(Turnstile(MOST_MEANS, what="planes"))])
    async def show_contexts(question: ContextsQuestion, request: Request) -> Response:
        found = await contexts.of(question, is_abandoned=request.is_disconnected)
        return Response(status_code=_NOBODY_WAITS) if found is None else JSONResponse(found)

    @router.post("/contexts/python")
    async def write_contexts(question: ContextsQuestion) -> JSONResponse:
        return JSONResponse({"code": contexts_code(reader, question)})

    @router.post("/judged", dependencies=[Depends(Turnstile(MOST_MEANS, what="tasks"))])
    async def judge(question: JudgeQuestion) -> JSONResponse:
        return JSONResponse(await judging.of(question.task))


def _add_reasons(router: APIRouter, attributions: Attributions) -> None:
    """Some methods need many passes, so few may ask for them at a time."""

    @router.post("/attributions", dependencies=[Depends(Turnstile(MOST_MEANS, what="answers"))])
    def explain(question: AttributionQuestion) -> JSONResponse:
        return JSONResponse(attributions.of(question.view.shown, question.method))


def _binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")
