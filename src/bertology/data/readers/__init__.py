"""Readers: one small module per format, each a function from a file or folder to a Corpus.

Installed packages add readers through the entry-point group `bertology.readers`; a reader called
`x` is also chosen for files that end in `.x`.
"""

from __future__ import annotations

from collections.abc import Mapping

from bertology.data.readers.request import ReadFunction, Request
from bertology.registry import Registry

__all__ = ["READERS", "ReadFunction", "Request"]

_NAMES = (
    "analogies", "bio", "brackets", "coarsewsd", "conll", "conllu", "corefud", "csv",
    "e-snli", "eraser", "framenet", "gap", "glue", "grammar", "hub", "jsonl", "lama",
    "lm-diagnostics", "med", "minimal-pairs", "multiple-choice", "npi", "numersense", "olmpics",
    "ontonotes", "physical-commonsense", "propbank", "proto-roles", "scws", "semcor",
    "semeval-relations", "senteval", "squad", "sts", "text", "verb-physics", "wic", "winobias",
    "wsc",
)  # fmt: skip


def _built_in() -> Mapping[str, str]:
    found = {name: f"{__name__}.{name.replace('-', '_')}:read" for name in _NAMES}
    return found | {"npi-paradigms": f"{__name__}.npi:read_paradigms"}


READERS: Registry[ReadFunction] = Registry("reader", group="bertology.readers", builtin=_built_in)
