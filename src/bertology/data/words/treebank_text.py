"""Words of a treebank as plain text: quotes and brackets as people write them, commas close up."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bertology.data.words.alignment import Span

_SPELLED = {
    "-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]",
    "``": '"', "''": '"', "\\/": "/",
}  # fmt: skip
# No space after the ones, none before the others.
_OPENING = frozenset({"``", "-LRB-", "-LCB-", "-LSB-", "(", "[", "{", "`", "$", "#"})
_CLOSING = re.compile(r"(n't|'.*|-R[RCS]B-|[])}]|[.,:;?!%]+|\.\.\.)", re.IGNORECASE)


def treebank_text(words: Iterable[str]) -> tuple[str, list[Span]]:
    """The text, and the characters of each word in it."""
    pieces, offsets = list[str](), list[Span]()
    at, glued = 0, True
    for word in words:
        if not glued and not _CLOSING.fullmatch(word):
            pieces.append(" ")
            at += 1
        spelled = _SPELLED.get(word, word.replace("\\/", "/"))
        offsets.append((at, at + len(spelled)))
        pieces.append(spelled)
        at += len(spelled)
        glued = word in _OPENING
    return "".join(pieces), offsets
