"""Ettinger's diagnostics (2020): contexts of psycholinguistic experiments, without their last word.

TEXT is the context with [MASK] and a full stop (without it, a model would rather predict one),
ANSWER the expected completions, CANDIDATES these and the wrong ones, ITEM what versions share:

- CPRAG-102: CONDITION is the constraint, `high` or `low`; candidates are the expected word, one of
  its category, one of another (`kinds`: expected, related, unrelated);
- ROLE-88: CONDITION is `canonical` or `reversed` (waitress and customer in each other's place). The
  `target` verb fits the canonical version; `human` gives the shares of people who completed so;
- NEG-136: CONDITION is `affirmative` or `negative`, GROUP tells simple sentences from natural and
  less natural ones, in which negation is `licensed` or not. The article may depend on the
  completion: `candidate_texts` has the text for each candidate; TEXT is that of the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bertology.data.clozes import MASK
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.request import Request
from bertology.data.readers.rows import known_rows
from bertology.errors import DataError

_CLOZE = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ITEM, Field.CONDITION})
_CPRAG = ("item", "context_s1", "context_s2", "expected", "within_category", "between_category")
_ROLE = ("item", "context", "expected", "exp_cloze", "target", "tgt_cloze")
_NEG = ("item", "context_aff", "context_neg", "target_aff", "target_neg")
_CONSTRAINTS = {"H": "high", "L": "low"}
_ORDERS = {"a": "canonical", "b": "reversed"}
_ARTICLE = "(a|an)"
_Row = tuple[str, dict[str, str]]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The contexts of one file; its name tells which of the diagnostics it is."""
    path, request = Path(source), Request.of(source, request)
    name = path.stem.upper()
    kinds: dict[str, tuple[tuple[str, ...], Callable[[_Row], Iterator[Example]]]] = {
        "CPRAG": ((*_CPRAG, "constraint"), _cprag),
        "ROLE": (_ROLE, _role),
        "NEG": (_NEG, lambda row: _neg(row, name)),
    }
    kind = name.partition("-")[0]
    if kind not in kinds:
        raise DataError(
            f"{path.name} is none of the diagnostics.",
            hint="Known: CPRAG-102.tsv, ROLE-88.tsv, NEG-136-SIMP.tsv, NEG-136-NAT.tsv.",
        )
    columns, make = kinds[kind]
    examples = [example for row in known_rows(path, columns) for example in make(row)]
    fields = _CLOZE if kind == "ROLE" else _CLOZE | {Field.CANDIDATES}
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _cloze(context: str) -> str:
    return f"{context.strip()} {MASK}."


def _choice(cells: dict[str, str], column: str, known: dict[str, str], at: str) -> str:
    if cells[column] not in known:
        wanted = " or ".join(known)
        raise DataError(f"{at}: {column} must be {wanted}, not {cells[column]!r:.20}.")
    return known[cells[column]]


def _cprag(row: _Row) -> Iterator[Example]:
    at, cells = row
    candidates = tuple(cells[name].strip() for name in _CPRAG[3:])
    yield Example(
        cells["item"],
        _cloze(f"{cells['context_s1'].strip()} {cells['context_s2']}"),
        annotations={
            "answer": [candidates[0]],
            "candidates": candidates,
            "kinds": ("expected", "related", "unrelated"),
            "group": "CPRAG-102",
            "item": cells["item"],
            "condition": _choice(cells, "constraint", _CONSTRAINTS, at),
        },
    )


def _role(row: _Row) -> Iterator[Example]:
    at, cells = row
    item, _, order = cells["item"].partition("-")
    yield Example(
        cells["item"],
        _cloze(cells["context"]),
        annotations={
            "answer": [word.strip() for word in cells["expected"].split("|")],
            "group": "ROLE-88",
            "item": item,
            "condition": _choice({"item": order}, "item", _ORDERS, at),
            "target": cells["target"].strip(),
            "human": {
                "expected": _share(cells["exp_cloze"], at),
                "target": _share(cells["tgt_cloze"], at),
            },
        },
    )


def _share(given: str, at: str) -> float:
    try:
        share = float(given)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise DataError(f"{at}: a share of people must be a number from 0 to 1, not {given!r:.20}.")
    return share


def _neg(row: _Row, group: str) -> Iterator[Example]:
    _, cells = row
    true = {"affirmative": cells["target_aff"].strip(), "negative": cells["target_neg"].strip()}
    for condition, column in (("affirmative", "context_aff"), ("negative", "context_neg")):
        answer = true[condition]
        other = next(word for name, word in true.items() if name != condition)
        texts = tuple(_with_article(cells[column], word) for word in (answer, other))
        annotations: dict[str, Any] = {
            "answer": [answer],
            "candidates": (answer, other),
            "candidate_texts": texts,
            "group": group,
            "item": f"{group}/{cells['item']}",
            "condition": condition,
        }
        if "licensing" in cells:
            licensed = cells["licensing"] == "Y"
            annotations["licensed"] = licensed
            annotations["group"] = f"{group}, {'natural' if licensed else 'less natural'}"
        yield Example(f"{cells['item']}-{condition}", texts[0], annotations=annotations)


def _with_article(context: str, noun: str) -> str:
    return _cloze(context.replace(_ARTICLE, "an" if noun[:1] in "aeiou" else "a"))
