"""The attention of one text as a page in one file: in a notebook's cell, or to send to a class."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.drafts import write_whole
from bertology.errors import StoreError
from bertology.plain_files import local_path
from bertology.server.about_model import about_model
from bertology.server.map_answers import described, maps_at, pack
from bertology.server.predictions import Predictions
from bertology.server.reading import ModelReader, Reading
from bertology.server.searching import Searching, offered
from bertology.server.shown import Shown
from bertology.server.static_files import SHARED, STATIC, static_file
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
        try:
            write_whole(to, self.html)
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
    if to.is_file() and not force:
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


# The explorer's page with its scripts, styles and answers in one file, which needs no server.
#
# The page's modules stay as they are. Here they are put one after the other into one script, each
# in a function of its own, and `embedded.js` takes the place of `server.js`: it gives the answers
# that are kept in the file. Texts are only in these answers, packed, so none of them can become
# HTML.

_ENTRY = STATIC / "explore" / "explore.js"
_INSTEAD = {STATIC / "server.js": STATIC / "embedded.js"}
_INSTEAD |= {STATIC / name: static_file(name) for name in SHARED}
_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_STYLE = re.compile(r'  <link rel="stylesheet" href="/static/([^"]+)">\n')
_SCRIPT = re.compile(r'  <script type="module" src="[^"]+"></script>\n')
_ICON = re.compile(r'<link rel="icon" href="/static/([^"]+)">')


def one_file(told: Mapping[str, object], maps: Mapping[str, bytes]) -> str:
    """The page that shows `told`, what the server would answer, and the maps of each level."""
    page, script = _shell()
    kept = b64encode(_packed(told, maps)).decode("ascii")
    data = f'<script type="application/json" id="kept">{kept}</script>\n'
    return page.replace("</body>", f"{data}<script>{script}</script>\n</body>")


def _packed(told: Mapping[str, object], maps: Mapping[str, bytes]) -> bytes:
    """A length, `told` as JSON, and all maps; `told["maps"]` says where each level's begin."""
    places, start = {}, 0
    for level, content in maps.items():
        places[level] = (start, start + len(content))
        start += len(content)
    text = json.dumps({**told, "maps": places}, ensure_ascii=False, separators=(",", ":")).encode()
    return zlib.compress(b"".join([len(text).to_bytes(4, "little"), text, *maps.values()]), 9)


@cache
def _shell() -> tuple[str, str]:
    """The page without answers, and its script."""
    page = (STATIC / "explore" / "index.html").read_text(encoding="utf-8")
    names = _STYLE.findall(page)
    style = "\n".join(static_file(name).read_text(encoding="utf-8") for name in names)
    modules: dict[Path, str] = {}  # in the order in which they must run
    last = _as_function(_ENTRY, modules)
    script = "\n".join(['"use strict";', "(async () => {", *modules.values(), last, "})();"])
    assert "</" + "script" not in script  # it would end here
    # Nothing but this script and this style is let in, and nothing is fetched.
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'  <meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"  <style>{style}</style>\n"
    )
    icon = b64encode((STATIC / _ICON.findall(page)[0]).read_bytes()).decode("ascii")
    page = _ICON.sub(f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">', page)
    page = _SCRIPT.sub("", _STYLE.sub("", page))
    page = page.replace("</head>", f"{head}</head>").replace("<body>", '<body class="copy">')
    return page, script


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}"


def _as_function(path: Path, modules: dict[Path, str]) -> str:
    """The text of a module without imports and exports, once all that it needs is in `modules`."""
    text = path.read_text(encoding="utf-8")
    for _, name in _IMPORT.findall(text):
        needed = _needed(path, name)
        if needed not in modules:
            body = _as_function(needed, modules)
            exported = ", ".join(_EXPORT.findall(needed.read_text(encoding="utf-8")))
            modules[needed] = (
                f"const {_variable(needed)} = (() => {{\n{body}return {{ {exported} }};\n}})();"
            )
    text = _IMPORT.sub(lambda m: _constant(m.group(1), _needed(path, m.group(2))), text)
    return _EXPORT.sub("", text)


def _needed(path: Path, name: str) -> Path:
    found = (path.parent / name).resolve()
    return _INSTEAD.get(found, found)


def _constant(names: str, needed: Path) -> str:
    return f"const {{{names.replace(' as ', ': ')}}} = {_variable(needed)};\n"


def _variable(path: Path) -> str:
    return f"module_{path.stem.replace('-', '_')}"
