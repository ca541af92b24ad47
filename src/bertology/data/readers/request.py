"""How a reader reads its source: names, columns, the task, its own options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Task
from bertology.errors import DataError

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
