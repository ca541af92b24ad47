"""Stages before a fine-tuning: the body learns something else first, and that is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from torch import Tensor

from bertology.train.ways.way import Lesson, Way


def after_stage(
    lesson: Lesson, way: Way, make: Callable[[], Mapping[str, Tensor]], *, epochs: int
) -> None:
    """Give the body the weights that a stage made in so many epochs, by their names in it.

    They are kept where the lesson says: what is trained after the stage may be few of them, and a
    run that was stopped goes on without doing the stage again.
    """
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    place = None if lesson.folder is None else lesson.folder / f"{way.name}.safetensors"
    if place is not None and place.is_file():
        made: Mapping[str, Tensor] = load_file(place)
        with safe_open(place, "pt") as file:
            lesson.spent[way.name] = float(file.metadata()["seconds"])
    else:
        started = time.monotonic()
        made = {n: w.detach().cpu().clone().contiguous() for n, w in make().items()}
        lesson.spent[way.name] = time.monotonic() - started
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_suffix(".draft")
            save_file(dict(made), draft, {"seconds": str(lesson.spent[way.name])})
            draft.replace(place)
    lesson.passed[way.name] = epochs
    lesson.model.base_model.load_state_dict(made, strict=False)
