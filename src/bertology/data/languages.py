"""Languages by their codes: names, families, scripts, direction, and the order of their words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from bertology.data.corpus import Field
from bertology.errors import UnknownNameError
from bertology.yaml_sections import parse_list

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus

FEATURES = (
    "clause", "object", "adposition", "genitive", "adjective", "demonstrative", "numeral",
    "relative clause",
)  # fmt: skip
"""What `Language.orders` tells, one value each; `languages.yaml` names the chapters of WALS."""
_UNKNOWN = "unknown"
_RIGHT_TO_LEFT = frozenset({"Arabic", "Hebrew"})


@dataclass(frozen=True)
class Language:
    """One language, as `languages.yaml` has it."""

    code: str  # ISO 639-1
    iso3: str
    name: str
    family: str
    genus: str
    script: str
    orders: tuple[str, ...]

    @property
    def right_to_left(self) -> bool:
        """Whether its script is written from right to left."""
        return self.script in _RIGHT_TO_LEFT

    @property
    def verb_final(self) -> bool:
        """Whether the verb stands last in most clauses."""
        return self.orders[0] == "SOV"

    @property
    def features(self) -> dict[str, str]:
        """The orders that are known, by name."""
        known = zip(FEATURES, self.orders, strict=True)
        return {name: value for name, value in known if value != _UNKNOWN}


@cache
def languages() -> Mapping[str, Language]:
    """All that are known, by their two-letter codes."""
    text = files("bertology.data").joinpath("languages.yaml").read_text(encoding="utf-8")
    rows = parse_list(text, label="languages.yaml", what="languages")
    return {one.code: one for one in (row.make(Language) for row in rows)}


def language(code: str) -> Language:
    """The language of a code with two or three letters (`de`, `deu`)."""
    for one in languages().values():
        if code.lower() in (one.code, one.iso3):
            return one
    raise UnknownNameError("language", code, languages())


def name_of(code: str) -> str:
    """The name of a language; of one that is not known, its code."""
    known = languages().get(code)
    return code if known is None else known.name


def order_distance(one: Language, other: Language) -> float:
    """The share of known orders of words in which two languages differ, from 0 to 1."""
    mine, others = one.features, other.features
    shared = [name for name in mine if name in others]
    return sum(mine[name] != others[name] for name in shared) / len(shared)


def in_languages(corpus: Corpus) -> dict[str, object]:
    """What a result keeps of a corpus: its languages, and a hash of its items, in their order.

    So results of two languages can tell whether their texts are translations of each other.
    """
    found: dict[str, object] = {}
    if Field.LANGUAGE in corpus.fields:
        found["languages"] = sorted({str(e.get(Field.LANGUAGE)) for e in corpus})
        if Field.ITEM in corpus.fields:
            items = json.dumps([str(e.get(Field.ITEM)) for e in corpus])
            found["items"] = sha256(items.encode()).hexdigest()[:16]
    return found
