"""When two texts read the same: whatever their case, spaces and punctuation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.data.corpus import Example

_WORD = re.compile(r"\w+")


def text_key(text: str) -> str:
    """The words in lower case; the text itself where it has none."""
    return " ".join(_WORD.findall(text.casefold())) or text


def example_key(example: Example) -> str:
    """Of the text, or of both texts."""
    return "\n".join(text_key(text) for text in example.texts)
