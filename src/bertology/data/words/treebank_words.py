"""Raw text as the words that English treebanks count: clitics and punctuation stand alone."""

from __future__ import annotations

import re

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
