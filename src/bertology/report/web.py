"""Pieces of a web page that needs nothing but itself: no script, no font, no picture elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from bertology.results.claims import Outcome

__all__ = [
    "Html",
    "anchor",
    "chip",
    "element",
    "facts",
    "figure",
    "folded",
    "items",
    "joined",
    "page",
    "preformatted",
    "table",
]

_SIGNS = {
    Outcome.HOLDS: "✓",
    Outcome.FAILS: "✗",
    Outcome.INCONCLUSIVE: "?",
    Outcome.NOT_APPLICABLE: "–",
}


class Html(str):
    """Text that is HTML already. Any other text is escaped when it comes into a page."""

    __slots__ = ()


def _safe(value: object) -> str:
    return value if isinstance(value, Html) else escape(str(value))


def joined(pieces: Iterable[object]) -> Html:
    """Pieces one after the other."""
    return Html("\n".join(_safe(piece) for piece in pieces))


def element(tag: str, *content: object, kind: str = "", id: str = "") -> Html:
    """`<tag class=kind id=id>content</tag>`."""
    named = f' id="{escape(id)}"' if id else ""
    classed = f' class="{escape(kind)}"' if kind else ""
    return Html(f"<{tag}{named}{classed}>{''.join(_safe(c) for c in content)}</{tag}>")


def anchor(address: str, text: str) -> Html:
    """A link."""
    return Html(f'<a href="{escape(address)}">{escape(text)}</a>')


def chip(outcome: Outcome | None, label: str) -> Html:
    """A verdict as a small label with a sign; None stands for what was not run."""
    if outcome is None:
        return element("span", f"○ {label}", kind="chip")
    return element("span", f"{_SIGNS[outcome]} {label}", kind=f"chip {outcome.value}")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, note: str = "", kind: str = ""
) -> Html:
    """A table that scrolls within itself where the screen is narrow."""
    head = element("tr", *(Html(f'<th scope="col">{_safe(c)}</th>') for c in columns))
    body = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    made = element("table", element("thead", head), element("tbody", *body), kind=kind)
    below = element("p", note, kind="soft") if note else ""
    return joined([element("div", made, kind="wide"), below])


def figure(svg: bytes, *, caption: str) -> Html:
    """A drawing with its caption."""
    # As an image: SVGs that are pieces of one page would share and mix up their ids.
    data = b64encode(svg).decode()
    image = Html(
        f'<img loading="lazy" alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
    )
    return element("figure", image, element("figcaption", caption))


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """A list of names and what they are."""
    return element("dl", *(joined([element("dt", n), element("dd", v)]) for n, v in pairs))


def items(texts: Iterable[object]) -> Html:
    """A list."""
    return element("ul", *(element("li", text) for text in texts))


def folded(title: str, *content: object) -> Html:
    """Something for those who ask."""
    return element("details", element("summary", title), *content)


def preformatted(text: str) -> Html:
    """Commands, to be copied."""
    return element("pre", element("code", text))


def page(title: str, body: Html) -> str:
    """A whole page, light or dark as the reader's system is."""
    folder = files("bertology.report") / "templates"
    texts = {n: (folder / n).read_text(encoding="utf-8") for n in ("page.html", "page.css")}
    shell = Template(texts["page.html"])
    return shell.substitute(title=escape(title), style=texts["page.css"].strip(), body=body)
