"""Letters of every script in figures: fonts that have them, or else what they are called.

matplotlib's own font has Latin, Greek, Cyrillic, Hebrew and Arabic letters. For others the
installed fonts are searched, by the characters that are needed. Where no font has a character, its
Unicode name (`ka` of katakana, `gug` of Hangul) or number (of a Chinese character) stands in its
place, and a note below the figure says what to install: a box would tell nothing. That Arabic
letters are joined, and stand from right to left, is matplotlib's work since 3.11.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from functools import cache
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

_OWN = "DejaVu Sans"  # comes with matplotlib; all others stand behind it
_EAST_ASIAN_NAMES = {"CJK", "JP", "KR", "SC", "TC", "Gothic", "Mincho", "Hei", "Ming", "Batang"}
_SIGNS = {"Ps": "(", "Pi": "(", "Pe": ")", "Pf": ")", "Pd": "-", "Zs": " "}
_PLAIN = frozenset(map(chr, range(128)))
_STRONG_RIGHT = frozenset({"R", "AL"})
_LETTER = 0.57  # the mean width of a letter, by its size, with some room


def make_readable(figure: Figure, *, note: bool = True) -> None:
    """Give each text of a figure fonts that have its characters; say it where there are none."""
    from matplotlib.axis import Axis
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    wanted = frozenset(letter for text in texts for letter in text.get_text()) - _PLAIN
    missing = wanted - _has(_OWN, wanted)
    if not missing:
        return
    fonts, lost = _fonts_for(missing)
    for axis in figure.findobj(Axis):
        names = [label.get_text() for label in axis.get_majorticklabels()]
        if any(lost.intersection(name) for name in names):
            # A formatter writes these labels again whenever the figure is drawn.
            axis.set_ticks(axis.get_majorticklocs(), [spelt(name, lost) for name in names])
    for text in figure.findobj(Text):
        own = missing.intersection(text.get_text())
        if own & lost:
            text.set_text(spelt(text.get_text(), lost))
        if own - lost:
            text.set_fontfamily([_OWN, *(f for f in fonts if _has(f, own))])
    if lost and note:
        _tell(figure, lost)


def spelt(text: str, lost: Collection[str]) -> str:
    """The text with what Unicode calls its characters where no font has them."""
    found = ""
    for letter in text:
        if letter not in lost:
            found += letter
            continue
        called = _called(letter)  # "ko·n·pi·yu·ta": what one letter stands for is kept apart
        found += f"{'·' if called[:1].isalnum() and found[-1:].isalnum() else ''}{called}"
    return found


def right_to_left(texts: Iterable[str]) -> bool:
    """Whether most letters of a text are of scripts that are written from right to left."""
    kinds = [unicodedata.bidirectional(letter) for text in texts for letter in text]
    right = sum(kind in _STRONG_RIGHT for kind in kinds)
    return right > kinds.count("L")


def _called(letter: str) -> str:
    """`ka` of KATAKANA LETTER KA, the number of a Chinese character; nothing of mere marks."""
    kind = unicodedata.category(letter)
    name = unicodedata.name(letter, "")
    if kind in _SIGNS or kind == "Po":
        return _SIGNS.get(kind, "," if "COMMA" in name else ".")
    if kind == "Lm" or (kind == "Mn" and "VOWEL" not in name):
        return ""
    if not name or "IDEOGRAPH" in name:
        return f"U+{ord(letter):04X}"
    return name.replace("-", " ").split()[-1].lower()


def _east_asian(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF" and unicodedata.category(letter) != "So"


@cache
def _has(family: str, letters: frozenset[str]) -> frozenset[str]:
    """Those of the characters that an installed font has."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family=[family]), fallback_to_default=False))
    return frozenset(letter for letter in letters if font.get_char_index(ord(letter)))


@cache
def _fonts_for(missing: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """As few fonts as have all of these characters, and those that none has."""
    found, left = list[str](), missing
    for family in _likely_first(missing):
        if not left:
            break
        try:
            has = _has(family, left)
        except (OSError, RuntimeError, ValueError):  # a font that was taken away, or is broken
            continue
        if has:
            found.append(family)
            left -= has
    return tuple(found), left


def _likely_first(missing: frozenset[str]) -> list[str]:
    """The installed families, those first that are named after the scripts of the characters."""
    from matplotlib.font_manager import fontManager

    wanted = {unicodedata.name(letter, "?").split()[0].title() for letter in missing}
    if any(map(_east_asian, missing)):
        wanted |= _EAST_ASIAN_NAMES
    families = {
        entry.name
        for entry in fontManager.ttflist
        # matplotlib warns where it must take another weight than it was asked for.
        if entry.weight in (400, "normal", "regular") and entry.style == "normal"
        if "Last Resort" not in entry.name  # it has a box for each script
    }
    return sorted(families, key=lambda f: (not wanted & {*f.split()}, "Noto Sans" not in f, f))


def _tell(figure: Figure, lost: Collection[str]) -> None:
    """A line below what stands below the figure."""
    wide = [_east_asian(letter) for letter in lost]
    packages = ["Noto Sans CJK (fonts-noto-cjk)"] if any(wide) else []
    packages += [] if all(wide) else ["Noto Sans (fonts-noto-core)"]
    what = (
        "No font on this computer has some of the letters: names or numbers that Unicode gives "
        f"them stand in their place. To see them, install {' and '.join(packages)}."
    )
    here = next((t for t in figure.texts if t.get_text() == figure.get_supxlabel() != ""), None)
    size = 7.5 if here is None else _points(here)
    width = max(12, int((figure.get_figwidth() - 0.15) * 72 / (_LETTER * size)))
    line = fill(what, width, break_on_hyphens=False)
    if here is None:
        figure.supxlabel(line, fontsize=size, color="#6b6b6b", x=0.01, ha="left")
    else:
        here.set_text(f"{here.get_text()}\n{line}")


def _points(text: Text) -> float:
    return float(text.get_fontsize())
