"""The attention of one text as a page in one file: in a notebook's cell, or to send to a class."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.errors import StoreError
from bertology.plain_files import local_path
from bertology.server.about_model import about_model
from bertology.server.map_answers import described, maps_at, pack
from bertology.server.one_file import one_file
from bertology.server.predictions import Predictions
from bertology.server.reading import ModelReader, Reading
from bertology.server.searching import Searching, offered
from bertology.server.shown import Shown
from bertology.server.task_examples import TaskExamples

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

_TOP = 8  # predictions for each masked token
_RANKED = 10  # heads that a search of the page lists
_TALL = 900  # pixels of a notebook's cell, until the page says how tall it is


class AttentionView:
    """A page of its own, with every head's attention on one text; notebooks show it."""

    def __init__(self, html: str, *, model: str, tokens: int) -> None:
        self.html, self.model, self.tokens = html, model, tokens

    @property
    def size(self) -> int:
        """How many bytes the page has."""
        return len(self.html.encode())

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page to a file, which needs no server and no network."""
        to = check_page(path, force=force)
        part = to.with_name(f".{to.name}.part")  # whole or not at all
        try:
            part.write_text(self.html, encoding="utf-8")
            part.replace(to)
        except OSError as error:
            raise StoreError(f"{to} cannot be written: {error.strerror or error}.") from error
        return to

    def __repr__(self) -> str:
        return (
            f"<attention of {self.model!r} on {self.tokens} tokens: a page of "
            f"{self.size // 1000:,} kB; write it with .save('page.html')>"
        )

    def _repr_html_(self) -> str:
        # A frame of its own: the page's styles and names stay apart from the notebook's.
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="Attention of {escape(self.model)}" '
            f'style="width: 100%; height: {_TALL}px; border: 0"></iframe>'
        )


def view(encoder: Encoder, text: str | tuple[str, str]) -> AttentionView:
    """Every head's attention on a text, or on a pair of texts, as a page that needs no server.

    The last line of a notebook's cell shows it; `.save("page.html")` writes it to a file. All heads
    are small maps, one is enlarged, as a matrix or as lines, between wordpieces or between words;
    heads can be searched, and a tour explains them. Where the text has a mask token, the page shows
    what the model puts there; a classifier shows its classes. Weights are kept in 255 steps of the
    largest weight of each map.
    """
    first, second = (text, None) if isinstance(text, str) else text
    reader = ModelReader(encoder)
    try:
        return _made(reader, Shown(first, second))
    finally:
        reader.close()


def check_page(path: str | Path, *, force: bool = False) -> Path:
    """Refuse a file that cannot be written, or that is there already."""
    to = local_path(path)
    if to.is_dir() or not to.parent.is_dir():
        raise StoreError(
            f"{to} cannot be written: it is a folder, or its folder does not exist.",
            hint="Name a file in an existing folder, such as page.html.",
        )
    if to.exists() and not force:
        raise StoreError(
            f"{to} is there already.",
            hint="Give another name, or replace it with --force (in Python: force=True).",
        )
    return to


def _made(reader: ModelReader, shown: Shown) -> AttentionView:
    reading = reader.read(shown)
    maps = reader.maps(reading)
    levels = ["pieces"] if reading.sentence.alignment is None else ["pieces", "words"]
    packed = {
        level: pack(described(reading, level), maps_at(reading, maps, level)) for level in levels
    }
    about = _about(reader, reading, shown)
    told = {
        "model": about,
        "searches": _searches(reader, shown, words="words" in levels),
        "predictions": _predictions(reader, reading, shown),
    }
    return AttentionView(
        one_file(told, packed), model=str(about["name"]), tokens=len(reading.sentence)
    )


def _about(reader: ModelReader, reading: Reading, shown: Shown) -> dict[str, object]:
    """What the page is told of a model that will not be there."""
    encoder, about = reader.encoder, about_model(reader)
    can = {
        "maps": True,
        "masked": reader.fills and bool(reading.sentence.masked),
        "classes": reading.classes is not None,
        "words": reading.sentence.alignment is not None,
    }
    folder = Path(encoder.name)  # of a path only the last name: others need not know the rest
    return about | {
        "name": folder.name if folder.exists() else encoder.name,
        "live": False,
        "annotate": False,
        "tasks": [],
        "can": can,
        "relations": about["relations"] if can["words"] else [],
        "examples": [{"text": shown.text, "pair": shown.pair}],
    }


def _searches(reader: ModelReader, shown: Shown, *, words: bool) -> dict[str, object]:
    searching, known = Searching(reader, TaskExamples()), offered()
    found = {f"pattern {p['name']}": searching.pattern(shown, p["name"]) for p in known["patterns"]}
    if words:
        relations = [relation["name"] for relation in known["relations"]]
        found |= {f"relation {name}": searching.relation(shown, name) for name in relations}
    return {key: _first(answer) for key, answer in found.items()}


def _first(answer: dict[str, object]) -> dict[str, object]:
    heads = answer["heads"]
    assert isinstance(heads, list)
    return answer | {"heads": heads[:_RANKED]}


def _predictions(reader: ModelReader, reading: Reading, shown: Shown) -> dict[str, object] | None:
    answers = reading.classes is not None or reading.value is not None
    if not answers and not (reader.fills and reading.sentence.masked):
        return None
    return Predictions(reader).of(shown, _TOP)
