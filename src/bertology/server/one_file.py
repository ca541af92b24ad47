"""The explorer's page with its scripts, styles and answers in one file, which needs no server.

The page's modules stay as they are. Here they are put one after the other into one script, each in
a function of its own, and `embedded.js` takes the place of `server.js`: it gives the answers that
are kept in the file. Texts are only in these answers, packed, so none of them can become HTML.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from bertology.server.static_files import SHARED, STATIC, static_file

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
    script = _script(_ENTRY)
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


def _script(entry: Path) -> str:
    modules: dict[Path, str] = {}  # in the order in which they must run
    last = _as_function(entry, modules)
    return "\n".join(['"use strict";', "(async () => {", *modules.values(), last, "})();"])


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
