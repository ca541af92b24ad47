"""Readers: a function for each format, from a file or folder to a Corpus.

A Request says how a source is read: names, columns, the task, the reader's own options.

Installed packages add readers through the entry-point group `bertology.readers`; a reader called
`x` is also chosen for files that end in `.x`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Task
from bertology.errors import DataError
from bertology.registry import Registry

OPTIONS: dict[str, str] = {
    "header": "CSV: false when the first row is data (columns are then '0', '1', …), or the names",
    "separator": "CSV: comma, semicolon, tab or a character, where the file itself does not tell",
    "quoting": "CSV: 'standard' or 'none' (quotes are ordinary characters; the default for TSV)",
    "labels": "the class names in the order of their ids",
    "skip": "text: lines that match this regular expression are left out",
    "config": "hub: the configuration of the dataset",
    "nltk": "FrameNet: the name of the data in NLTK, for where there is no folder",
    "download": "FrameNet: true to let NLTK fetch its data",
    "treebank": "proto-roles: the folder of the judged trees (.mrg), relative to the judgements",
    "templates": "LAMA: the file or folder of templates, relative to the facts; or kinds of them",
    "grouped_by": "CSV, JSON: 'file' or 'folder' where its name is the group of all examples in it",
    "relation": "physical commonsense: object-property, object-affordance or affordance-property",
}
"""Options beyond column names, with what they mean. Each reader uses only its own."""


@dataclass(frozen=True)
class Request:
    """How a source is to be read."""

    name: str
    split: str | None = None
    task: Task | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # field -> column name
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, source: str | Path, request: Request | None) -> Request:
        """The request given, or a default one for `source`."""
        return request if request is not None else cls(name=Path(source).stem)


class MissingSplitError(DataError):
    """The folder has the right layout, but the files of one split are missing."""


ReadFunction = Callable[[str | Path, Request | None], Corpus]

_ALONE = (
    "agreement", "analogies", "bio", "brackets", "conllu", "csv", "framenet", "glue", "hub",
    "jsonl", "lama", "minimal-pairs", "multiple-choice", "ontonotes", "proto-roles",
    "semeval-relations", "senteval", "squad", "text",
)  # fmt: skip
_TOGETHER = {
    "clozes": ("lm-diagnostics", "npi", "npi-paradigms", "numersense", "olmpics"),
    "conllu": ("corefud", "propbank"),
    "coreference": ("gap", "winobias", "wsc"),
    "judged_pairs": ("med", "physical-commonsense", "scws", "sts", "verb-physics"),
    "ontonotes": ("conll",),
    "parallel": ("tatoeba", "word-alignments"),
    "rationales": ("e-snli", "eraser"),
    "senses": ("coarsewsd", "semcor", "wic"),
}


def _built_in() -> Mapping[str, str]:
    found = {name: f"{__name__}.{name.replace('-', '_')}:read" for name in _ALONE}
    # Its lexicon is built only when it is asked for.
    found["grammar"] = "bertology.data.grammar.corpora:read"
    return found | {
        name: f"{__name__}.{module}:read_{name.replace('-', '_')}"
        for module, names in _TOGETHER.items()
        for name in names
    }


READERS: Registry[ReadFunction] = Registry("reader", group="bertology.readers", builtin=_built_in)
