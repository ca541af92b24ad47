"""Labels as files write them, turned into the numbers that a model is trained on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches

from bertology.data.corpus import Task
from bertology.errors import DataError

_MOST_CLASSES = 200
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_MISSING = {"", "nan", "na", "n/a", "none", "null"}


def is_missing(value: object) -> bool:
    """Whether a value is missing: None, NaN, an empty cell, or a word such as `n/a`."""
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    return isinstance(value, str) and value.strip().lower() in _MISSING


def parse_label(raw: object, task: Task, where: str) -> int | float:
    """The class id or the score that `raw` stands for; error messages begin with `where`."""
    # A class may be called "none": class names come before the words for missing values.
    text = _plain(raw)
    if task.kind != "regression" and text in task.labels:
        return task.labels.index(text)
    if is_missing(raw):
        raise DataError(
            f"{where}: the label is missing ({raw!r:.60}).",
            hint="Fill it in, or delete the row.",
        )
    if task.kind == "regression":
        score = _number(text)
        if score is None or not math.isfinite(score):
            raise DataError(f"{where}: the score {raw!r:.60} is not a number.")
        return score
    number = _number(text)
    if number is not None and number.is_integer() and 0 <= number < len(task.labels):
        return int(number)
    near = get_close_matches(text, task.labels, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    classes = ", ".join(f"{i} {name}" for i, name in enumerate(task.labels))
    raise DataError(
        f"{where}: the label {raw!r:.60} is outside the classes of {task.name!r}.",
        hint=f"Its classes: {classes}.{guess}",
    )


def infer_task(name: str, values: Iterable[object], *, pair: bool, where: str) -> Task:
    """The task of a column of labels: scores, numbered classes or named classes."""
    present = [v for v in values if not is_missing(v)]
    texts = {_plain(v) for v in present}
    numbers = [_number(t) for t in texts]
    if present and all(n is not None for n in numbers):
        known = sorted(n for n in numbers if n is not None)
        if not all(n.is_integer() for n in known):
            return Task(name, "regression", (), ("pearson", "spearman"), pair)
        whole = [int(n) for n in known]
        if whole[0] >= 0 and whole[-1] < _MOST_CLASSES:
            # A number that is missing in between is a class without examples here.
            labels = [str(i) for i in range(whole[0], whole[-1] + 1)]
        else:
            labels = [str(i) for i in whole]
        ordered = True
    else:
        labels, ordered = sorted(texts), texts <= {"false", "true"}
        # Scores such as 3,5 would be taken for names of classes
        written = [text for text in labels if _number(text) is None]
        if written and all(_DECIMAL_COMMA.fullmatch(text) for text in written):
            raise DataError(
                f"{where}: the labels are numbers with a decimal comma, such as {written[0]!r}.",
                hint="Write them with a point: 3.5.",
            )
    if len(labels) > _MOST_CLASSES:
        raise DataError(
            f"{where}: the label column has {len(labels)} different values, e.g. {labels[0]!r}.",
            hint="These are too many for classes; name another column with label=….",
        )
    return Task(name, "classification", tuple(labels), ("accuracy",), pair, ordered)


def _plain(raw: object) -> str:
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, float) and raw.is_integer():
        return str(int(raw))
    return str(raw).strip()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
