"""SVG files as matplotlib writes them, made small for a page that holds many."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from urllib.parse import quote

from bertology.report.look import GREY, INK, PAPER, RULE

_LONG = re.compile(r"-?\d+\.\d{3,}")
_TAG = re.compile(r"<[^>]+>")
_STYLE = re.compile(r' style="([^"]*)"')
# A rectangle, as four lines; from corner to corner it is less than half as long.
_BOX = re.compile(
    r"M (\S+) (\S+) L (\S+) \2 L \3 (\S+) L \1 \4 (?:L \1 \2(?= ?[\"z])z?|z)", re.ASCII
)
_OFTEN = 3  # uses from which a class is shorter than the style itself
# Colours of a page in the dark (page.css). Cells and lines keep theirs, so that captions stay true.
_DARK = {INK: "#e6e8eb", GREY: "#a3abb5", PAPER: "#1d2025", RULE: "#363b43"}
_TURNED = re.compile("(?:fill|stroke):(" + "|".join(_DARK) + ")")


def slim(svg: bytes) -> str:
    """The same picture: no metadata, no ids that nobody names, shorter numbers, shared styles.

    Where the reader's system is dark, its paper is, and its ink light.
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.S)
    named = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    kept = {name for pair in named for name in pair}
    text = _TAG.sub(lambda tag: _short_tag(tag[0], kept), text)
    text = re.sub(r">\s+<", "><", text)
    return _with_classes(text)


def _short_tag(tag: str, kept: set[str]) -> str:
    tag = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in kept else "", tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", tag)
    if "base64," not in tag:
        tag = _LONG.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), tag)
    tag = re.sub(r"\s+", " ", tag)
    tag = re.sub(r"(?<=[:;]) ", "", tag) if ' style="' in tag else tag
    if not tag.startswith("<path"):
        return tag
    return _BOX.sub(r"M\1 \2H\3V\4H\1z", re.sub(r' (["/])', r"\1", tag))


def _with_classes(text: str) -> str:
    if "</style>" not in text:
        return text
    uses = Counter(_STYLE.findall(text))
    often = [style for style, n in uses.items() if n >= _OFTEN or _TURNED.search(style)]
    names = {style: f"s{i}" for i, style in enumerate(often)}
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    turned = defaultdict[str, list[str]](list)
    for style in often:
        turned[_in_the_dark(style)].append(f".{names[style]}")
    dark = "".join(f"{','.join(of)}{{{other}}}" for other, of in turned.items() if other)
    rules += f"@media(prefers-color-scheme:dark){{{dark}}}" if dark else ""

    def use(match: re.Match[str]) -> str:
        name = names.get(match[1])
        return match[0] if name is None else f' class="{name}"'

    return _STYLE.sub(use, text).replace("</style>", f"{rules}</style>", 1)


def _in_the_dark(style: str) -> str:
    """What of a style is another in the dark."""
    found = (match[0].partition(":") for match in _TURNED.finditer(style))
    return ";".join(f"{name}:{_DARK[colour]}" for name, _, colour in found)


def as_address(svg: str) -> str:
    """As a `data:` address for an image; shorter than base64, and safe within double quotes."""
    return "data:image/svg+xml," + quote(svg, safe="<>=/:;,()+'!*@$~?[]{}| ")
