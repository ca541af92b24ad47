"""Questions with several answers: QuAIL's files (.xml, .jsonl), and any JSON Lines of the kind.

TEXT is what is read, TEXT_B the question, CANDIDATES the answers, LABEL the place of the right one
from 0, ITEM which text it is, so that questions about one text are known to belong together. GROUP
is the type of question and PARAPHRASE the text in other words, where every line has them. Where
there is a question and no text, the question is TEXT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers import Request
from bertology.data.readers.files import xml_root
from bertology.data.readers.jsonl import objects
from bertology.errors import DataError

_USUAL = {
    "text": ("context", "text", "passage", "article", "story"),
    "text_b": ("question", "text_b"),
    "candidates": ("answers", "candidates", "choices", "options", "endings"),
    "label": ("correct_answer_id", "label", "correct", "answer", "answerKey"),
    "group": ("question_type", "type", "group"),
    "item": ("context_id", "text_id", "item"),
    "paraphrase": ("paraphrase",),
    "genre": ("domain", "genre"),
}
_LETTERS = "ABCDEFGH"
_WANTED = (
    "Each line has a context (the text), a question, answers (a list), and correct_answer_id or "
    "label: the place of the right one from 0, its letter, or its words. Optional: question_type, "
    "context_id, paraphrase (the text in other words). Other names are told with --columns, as in "
    "text=story text_b=asked candidates=options label=right."
)


class _Asked(NamedTuple):
    """One question, before it is an example."""

    id: str
    text: str
    question: str
    answers: list[str]
    right: int
    about: dict[str, str]  # group, item, paraphrase, genre: as far as they are told


def choice_task(name: str, answers: int, *, pair: bool = True) -> Task:
    """To choose one of so many answers; labels are their letters."""
    letters = tuple(_LETTERS[k] if k < len(_LETTERS) else str(k + 1) for k in range(answers))
    return Task(name, "multiple-choice", letters, ("accuracy",), pair=pair)


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The questions of a file."""
    path, request = Path(source), Request.of(source, request)
    found = list(_quail(path) if path.suffix.lower() == ".xml" else _lines(path, request))
    if not found:
        raise DataError(f"{path.name} has no questions.", hint=_WANTED)
    kept = [
        name for name in ("group", "item", "paraphrase", "genre")
        if all(name in asked.about for asked in found)
    ]  # fmt: skip
    paired = {bool(asked.text and asked.question) for asked in found}
    if len(paired) > 1:
        raise DataError(f"{path.name}: some questions have a text and others have none.")
    examples = [_example(asked, kept) for asked in found]
    fields = {Field.TEXT, Field.LABEL, Field.CANDIDATES, Field.ITEM}
    fields |= {Field.TEXT_B} if True in paired else set()
    fields |= {Field(name) for name in kept if name != "genre"}
    most = max(len(asked.answers) for asked in found)
    task = request.task or choice_task(request.name, most, pair=True in paired)
    if task.kind == "multiple-choice" and not task.labels:
        task = choice_task(task.name, most, pair=task.pair)
    return Corpus(request.name, examples, frozenset(fields), task, request.split)


def _example(asked: _Asked, kept: list[str]) -> Example:
    first, second = asked.text or asked.question, asked.question if asked.text else None
    about: dict[str, Any] = {"candidates": asked.answers, "item": first}
    about |= {name: asked.about[name] for name in kept}
    return Example(asked.id, first, second or None, asked.right, about)


# JSON Lines ---------------------------------------------------------------------------------------


def _lines(path: Path, request: Request) -> Iterator[_Asked]:
    seen: set[str] = set()
    for row in objects(path):
        at = f"{path.name}, line {row.line}"
        values = {name: _value(row.values, name, request) for name in _USUAL}
        text, question = (_text(values[name], at) for name in ("text", "text_b"))
        if not text and not question:
            raise DataError(f"{at}: there is neither a text nor a question.", hint=_WANTED)
        answers = values["candidates"]
        if not isinstance(answers, list) or len(answers) < 2:
            raise DataError(f"{at}: a list of two answers or more is wanted.", hint=_WANTED)
        said = [_text(answer, at) for answer in answers]
        if not all(said):
            raise DataError(f"{at}: an answer is empty.")
        name = str(row.values.get("id", f"{row.line}"))
        if name in seen:
            raise DataError(f"{at}: the id {name!r} is not unique.")
        seen.add(name)
        told = ("group", "item", "paraphrase", "genre")
        about = {key: _text(values[key], at) for key in told if values[key] is not None}
        right = _right(values["label"], said, at)
        yield _Asked(name, text, question, said, right, {k: v for k, v in about.items() if v})


def _value(row: Mapping[str, Any], name: str, request: Request) -> Any:
    """The value of a field under the name that was told, or else a usual one."""
    if name in request.columns:
        return row.get(request.columns[name])
    return next((row[key] for key in _USUAL[name] if row.get(key) is not None), None)


def _text(value: object, at: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{at}: {value!r:.40} is not text.", hint=_WANTED)
    return str(value).strip()


def _right(value: object, answers: list[str], at: str) -> int:
    """A place from 0, a letter, or the words of an answer."""
    given = _text(value, at)
    if given.isdecimal() and int(given) < len(answers):
        return int(given)
    if given in answers:
        return answers.index(given)
    if len(given) == 1 and given.upper() in _LETTERS[: len(answers)]:
        return _LETTERS.index(given.upper())
    raise DataError(
        f"{at}: which of the {len(answers)} answers is right is not told by {given!r:.40}.",
        hint=_WANTED,
    )


# QuAIL's XML --------------------------------------------------------------------------------------


def _quail(path: Path) -> Iterator[_Asked]:
    for number, text in enumerate(xml_root(path).iter("text"), start=1):
        name = text.get("id", str(number))
        at = f"{path.name}, text {name!r}"
        body = text.find("text_body")
        if body is None or not (body.text or "").strip():
            raise DataError(f"{at}: there is no text_body.")
        about = {"item": name, "genre": text.get("domain", "")}
        for place, asked in enumerate(text.iterfind("questions/q")):
            yield _question(asked, (body.text or "").strip(), about, f"{name}_{place}", at)


def _question(asked: Element, text: str, about: Mapping[str, str], name: str, at: str) -> _Asked:
    answers = [" ".join((a.text or "").split()) for a in asked.iterfind("a")]
    right = [k for k, a in enumerate(asked.iterfind("a")) if a.get("correct") == "True"]
    question = " ".join((asked.text or "").split())
    if len(right) != 1 or len(answers) < 2 or not all(answers) or not question:
        raise DataError(
            f"{at}: question {asked.get('id')!r} must have words, and two answers or more of which "
            "one is marked as correct."
        )
    told = {**about, "group": asked.get("type", "")}
    return _Asked(name, text, question, answers, right[0], {k: v for k, v in told.items() if v})
