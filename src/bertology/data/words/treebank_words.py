"""Raw text as the words that English treebanks count: clitics and punctuation stand alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bertology.data.words.alignment import Span

_WORD = re.compile(
    r"""
      \w+(?=n\ ?['’]t\b)              # do in don't, ca in can't
    | n\ ?['’]t\b                     # also as GLUE cuts it (doesn 't)
    | ['’](?:s|m|d|re|ve|ll)\b
    | (?:[^\W\d_]\.){2,}               # U.S.
    | (?:Mr|Mrs|Ms|Dr|St|Jr|Sr|Inc|Corp|Co|Ltd)\.(?=\s)
    | No\.(?=\s?\d)                  # No. 5, but not the end of: he said no.
    | \d+(?:[.,:/]\d+)*                # 1,000.50
    | \w+
    | \.{2,} | -{2,}
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)


def treebank_words(text: str) -> list[Span]:
    """The spans of the words of `text`, as the Universal Dependencies of English split them."""
    return [match.span() for match in _WORD.finditer(text)]


# Words of a treebank as plain text: quotes and brackets as people write them, commas close up.

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
