"""Readers: a function for each format, from a file or folder to a Corpus.

Installed packages add readers through the entry-point group `bertology.readers`; a reader called
`x` is also chosen for files that end in `.x`.
"""

from __future__ import annotations

from collections.abc import Mapping

from bertology.data.readers.request import ReadFunction, Request
from bertology.registry import Registry

__all__ = ["READERS", "ReadFunction", "Request"]

_ALONE = (
    "analogies", "bio", "brackets", "conllu", "csv", "framenet", "glue", "grammar", "hub", "jsonl",
    "lama", "minimal-pairs", "multiple-choice", "ontonotes", "proto-roles", "semeval-relations",
    "senteval", "squad", "text",
)  # fmt: skip
_TOGETHER = {
    "clozes": ("lm-diagnostics", "npi", "npi-paradigms", "numersense", "olmpics"),
    "conllu": ("corefud", "propbank"),
    "coreference": ("gap", "winobias", "wsc"),
    "judged_pairs": ("med", "physical-commonsense", "scws", "sts", "verb-physics"),
    "ontonotes": ("conll",),
    "rationales": ("e-snli", "eraser"),
    "senses": ("coarsewsd", "semcor", "wic"),
}


def _built_in() -> Mapping[str, str]:
    alone = {name: f"{__name__}.{name.replace('-', '_')}:read" for name in _ALONE}
    return alone | {
        name: f"{__name__}.{module}:read_{name.replace('-', '_')}"
        for module, names in _TOGETHER.items()
        for name in names
    }


READERS: Registry[ReadFunction] = Registry("reader", group="bertology.readers", builtin=_built_in)
