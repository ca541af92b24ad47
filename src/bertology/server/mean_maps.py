"""The mean map of every head over examples of a task, on one grid of relative positions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from bertology.errors import DataError
from bertology.server.map_answers import pack
from bertology.server.reading import MAPS, ModelReader
from bertology.server.sentences import encode
from bertology.server.shown import Shown
from bertology.server.task_examples import TaskExamples
from bertology.server.views import MeanQuestion

if TYPE_CHECKING:
    from bertology.model.reducers.mean_maps import RelativeMaps

MEAN_CELLS = 24  # a text is cut into so many parts
MOST_MEANS = 4
"""How many means are computed at once: each delays other questions by one pass of the model."""


async def mean_maps(
    reader: ModelReader,
    examples: TaskExamples,
    question: MeanQuestion,
    *,
    is_abandoned: Callable[[], Awaitable[bool]],
) -> bytes | None:
    """The mean maps, packed like all maps of a view; None if nobody waits for them any more.

    Texts that are too long are left out. Every example is a separate task for the worker, so that
    other questions are answered in between. Waiting uses no thread: short questions
    need the threads.
    """
    from bertology.model.reducers.mean_maps import RelativeMaps

    reader.encoder.require("patterns")
    mean = RelativeMaps(reader.encoder.shape, MEAN_CELLS)
    changes, used = question.off.changes, 0
    for example in await run_in_threadpool(examples.corpus, question.task):
        if await is_abandoned():
            return None
        shown = Shown(example.text, example.text_b, changes=changes)
        begun = reader.worker.begin(partial(_add, reader, shown, mean))
        used += await asyncio.wrap_future(begun)
        if used == question.examples:
            break
    if not used:
        raise DataError(f"Every text of {question.task!r} is too long.")
    return pack({**_grid(), "examples": used}, mean.mean.nan_to_num().float().numpy())


def _add(reader: ModelReader, shown: Shown, mean: RelativeMaps) -> bool:
    changes = reader.interventions(shown.changes)
    try:
        _, batch = encode(reader.encoder, shown)
    except DataError:
        return False
    reader.encoder.run(batch, reduce={MAPS: mean}, do=changes)
    return True


def _grid() -> dict[str, object]:
    names = [f"{100 * cell / MEAN_CELLS:.0f} %" for cell in range(MEAN_CELLS)]
    return {
        "size": MEAN_CELLS,
        "tokens": names,
        "originals": names,
        "pieces": [[cell] for cell in range(MEAN_CELLS)],
        "words": [None] * MEAN_CELLS,
        "special": [False] * MEAN_CELLS,
        "masked": [],
        "boundary": None,
    }
