"""Pieces of a web page that needs nothing but itself: no script, no font, no picture elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from bertology.report.slim import as_address, slim
from bertology.results.rules import Outcome, look_of, named_look

_SIZE = re.compile(r'<svg\b[^>]*? viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"')


class Html(str):
    """Text that is HTML already. Any other text is escaped when it comes into a page."""

    __slots__ = ()


def _safe(value: object) -> str:
    return value if isinstance(value, Html) else escape(str(value))


def joined(pieces: Iterable[object]) -> Html:
    """Pieces one after the other."""
    return Html("\n".join(_safe(piece) for piece in pieces))


def element(tag: str, *content: object, kind: str = "", id: str = "", **more: str) -> Html:
    """`<tag class=kind id=id>content</tag>`; `more` are attributes, with _ for -."""
    given = {"id": id, "class": kind} if id or kind else {}
    named = {name: value for name, value in given.items() if value}
    named |= {name.rstrip("_").replace("_", "-"): value for name, value in more.items()}
    shown = "".join(f' {name}="{escape(value)}"' for name, value in named.items())
    return Html(f"<{tag}{shown}>{''.join(_safe(c) for c in content)}</{tag}>")


def anchor(address: str, text: str) -> Html:
    """A link."""
    return Html(f'<a href="{escape(address)}">{escape(text)}</a>')


def chip(outcome: Outcome | None, label: str) -> Html:
    """A verdict as a small label with a sign; None stands for what was not run."""
    kind = "chip" if outcome is None else f"chip {outcome.value}"
    return element("span", f"{look_of(outcome).sign} {label}", kind=kind)


def titled_chip(words: str, label: str) -> Html:
    """What a claim is over several tasks as a label; `words` are those of `rules.LOOKS`."""
    kind = f"chip {words.replace(' ', '-')}"
    return element("span", f"{named_look(words).sign} {label}", kind=kind)


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
    return element("figure", image(slim(svg), alt=caption), element("figcaption", caption))


def image(svg: str, *, alt: str) -> Html:
    """A picture that is read when it comes into view.

    Its size is told: nothing below it moves then, and a link lands where it leads.
    """
    # Within quotes only these two would be read as more than they are.
    safe = as_address(svg).replace("&", "&amp;").replace('"', "%22")
    size = _SIZE.search(svg)
    given = "" if size is None else f' width="{_pixels(size[1])}" height="{_pixels(size[2])}"'
    return Html(f'<img loading="lazy"{given} alt="{escape(alt)}" src="{safe}">')


def _pixels(length: str) -> int:
    return round(float(length))


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """A list of names and what they are."""
    return element("dl", *(joined([element("dt", n), element("dd", v)]) for n, v in pairs))


def items(texts: Iterable[object]) -> Html:
    """A list."""
    return element("ul", *(element("li", text) for text in texts))


def option(value: str, text: str) -> Html:
    """One of a list to choose from."""
    return element("option", text, value=value)


def folded(title: str, *content: object) -> Html:
    """Something for those who ask."""
    return element("details", element("summary", title), *content)


def preformatted(text: str) -> Html:
    """Commands, to be copied."""
    return element("pre", element("code", text))


def page(title: str, body: Html, *, style: str = "", head: str = "") -> str:
    """A whole page, light or dark as the reader's system is; `style` and `head` add to its head."""
    folder = files("bertology.report") / "templates"
    texts = {n: (folder / n).read_text(encoding="utf-8") for n in ("page.html", "page.css")}
    look = f"{texts['page.css'].strip()}\n{style}".strip()
    shell = Template(texts["page.html"])
    return shell.substitute(title=escape(title), style=look, body=body, head=head)
