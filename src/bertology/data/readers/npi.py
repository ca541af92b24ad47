"""Negative polarity items (Warstadt et al. 2019; Jumelet et al. 2021), in four published tables:

- `examples.tsv`: sentences; LABEL is acceptable or not;
- `examples_within_paradigm.tsv`: whole paradigms of eight sentences, read as minimal pairs: TEXT
  has an NPI that is licensed, CONTRAST one without its licensor or outside its scope (CONDITION);
- `ratings.tsv`: human ratings from 1 to 6; LABEL is the mean over those who passed the checks;
- `monotonicity_probing_sample.tsv`: beginnings of sentences before an NPI. TEXT is the one that
  licenses it, with [MASK] for the NPI's last word (ANSWER), CONTRAST the one that does not.

As `npi-paradigms`, the first two are read alike and as one corpus (`read_paradigms`): every row a
sentence, halves of a paradigm that stand under two environments put together.

GROUP is the environment, ITEM the paradigm. SENTENCE_LABELS are what feature probes look for: is
there a licensor, would an NPI be in its scope, is there an NPI?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bertology.data.clozes import MASK
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers.request import Request
from bertology.data.readers.rows import known_rows
from bertology.errors import DataError

_FACTORS = ("licensor", "scope", "npi_present")
_SENTENCE = ("environment", "npi", *_FACTORS, "paradigm", "acceptability", "sentence")
_RATING = ("annotator", "condition", "sentence", "rating", "native_english", "passed_check")
_BEGINNING = ("orig_sen_idx", "sen", "counter_sen", "token", "full_npi", "env", "labels")
_SAID = ("no", "yes")
_OTHER_FORM = "experiment="  # four rows of the paradigms have the columns of another table
_HALF = {"negation": "determiner_negation_biclausal"}  # half of its paradigms stand apart
_APART = {"atall": "at all", "inyears": "in years"}
_JUDGED = Task("npi", "classification", ("unacceptable", "acceptable"), ("matthews", "accuracy"))
_RATED = Task("npi-ratings", "regression", (), ("pearson", "spearman"))
_PARADIGM = frozenset({Field.TEXT, Field.GROUP, Field.ITEM})
_Rows = Sequence[tuple[str, dict[str, str]]]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The corpus in one of the tables, known by its name."""
    path, request = Path(source), Request.of(source, request)
    if path.name not in _TABLES:
        raise DataError(f"{path.name} is none of the tables.", hint=f"Known: {', '.join(_TABLES)}.")
    columns, make, fields, task = _TABLES[path.name]
    examples = list(make(list(known_rows(path, columns, skip=_OTHER_FORM))))
    return Corpus(request.name, examples, _PARADIGM | fields, request.task or task, request.split)


def read_paradigms(source: str | Path, request: Request | None = None) -> Corpus:
    """Sentences of either table of sentences, with what their paradigms share."""
    path, request = Path(source), Request.of(source, request)
    examples = list(_sentences(list(known_rows(path, _SENTENCE, skip=_OTHER_FORM)), _whole))
    fields = _PARADIGM | {Field.LABEL, Field.SENTENCE_LABELS}
    return Corpus(request.name, examples, fields, request.task or _JUDGED, request.split)


def _whole(cells: dict[str, str]) -> dict[str, str]:
    """One name for each item and environment; the item of a paradigm still tells its clauses."""
    environment = _HALF.get(cells["environment"], cells["environment"])
    npi = _APART.get(cells["npi"], cells["npi"])
    group = environment.removesuffix("_monoclausal").removesuffix("_biclausal")
    item = f"{environment}/{npi}/{cells['paradigm']}"
    return {"group": group.replace("_", " "), "item": item, "npi": npi}


def _factors(cells: dict[str, str], at: str) -> dict[str, str]:
    wrong = [name for name in _FACTORS if cells.get(name) not in ("0", "1")]
    if wrong:
        raise DataError(f"{at}: {wrong[0]} must be 0 or 1, not {cells.get(wrong[0])!r:.20}.")
    return {name: _SAID[int(cells[name])] for name in _FACTORS}


def _about(cells: dict[str, str], factors: dict[str, str]) -> dict[str, Any]:
    environment, npi = cells["environment"], cells["npi"]
    return {
        "group": environment,
        "item": f"{environment}/{npi}/{cells['paradigm']}",
        "npi": npi,
        "sentence_labels": factors,
    }


def _sentences(
    rows: _Rows, named: Callable[[dict[str, str]], dict[str, str]] | None = None
) -> Iterator[Example]:
    for index, (at, cells) in enumerate(rows):
        about = _about(cells, _factors(cells, at)) | ({} if named is None else named(cells))
        if cells["acceptability"] not in ("0", "1"):
            raise DataError(f"{at}: acceptability must be 0 or 1.")
        label = int(cells["acceptability"])
        yield Example(str(index), cells["sentence"].strip(), None, label, about)


def _pairs(rows: _Rows) -> Iterator[Example]:
    paradigms: dict[str, dict[tuple[str, ...], str]] = {}
    first: dict[str, dict[str, Any]] = {}
    for at, cells in rows:
        factors = _factors(cells, at)
        about = _about(cells, factors)
        sentences = paradigms.setdefault(about["item"], {})
        sentences[tuple(factors.values())] = cells["sentence"].strip()
        first.setdefault(about["item"], about)
    for item, sentences in paradigms.items():
        good = sentences.get(("yes", "yes", "yes"))
        for condition, key in (
            ("without licensor", ("no", "yes", "yes")),
            ("outside scope", ("yes", "no", "yes")),
        ):
            bad = sentences.get(key)
            if good is None or bad is None:
                continue  # half of a paradigm stands under another environment
            kept = {name: first[item][name] for name in ("group", "item", "npi")}
            about = {**kept, "contrast": bad, "condition": condition}
            yield Example(f"{item}-{condition}", good, annotations=about)


def _ratings(rows: _Rows) -> Iterator[Example]:
    found: dict[str, list[float]] = {}
    about: dict[str, dict[str, Any]] = {}
    for at, cells in rows:
        trusted = cells["native_english"] == cells["passed_check"] == "1"
        if not trusted or cells["rating"] == "NA":
            continue
        if cells["rating"] not in ("1", "2", "3", "4", "5", "6"):
            raise DataError(f"{at}: a rating must be 1 to 6, not {cells['rating']!r:.20}.")
        sentence = cells["sentence"].strip()
        found.setdefault(sentence, []).append(float(cells["rating"]))
        if sentence not in about:
            named = dict(p.partition("=")[::2] for p in cells["condition"].split("-") if "=" in p)
            named["environment"] = named.get("env", "")
            if not {"npi", "paradigm"} <= named.keys():
                raise DataError(f"{at}: the condition {cells['condition']!r:.60} is not known.")
            about[sentence] = _about(named, _factors(named, at))
    for index, (sentence, given) in enumerate(found.items()):
        more = {**about[sentence], "ratings": len(given)}
        yield Example(str(index), sentence, None, sum(given) / len(given), more)


def _beginnings(rows: _Rows) -> Iterator[Example]:
    for index, (at, cells) in enumerate(rows):
        if cells["labels"] not in ("upward", "downward"):
            raise DataError(
                f"{at}: labels must be upward or downward, not {cells['labels']!r:.20}."
            )
        both = cells["sen"], cells["counter_sen"]
        good, bad = both if cells["labels"] == "downward" else both[::-1]
        yield Example(
            str(index),
            f"{good.strip()} {MASK}",
            annotations={
                "contrast": f"{bad.strip()} {MASK}",
                "answer": [cells["token"].strip()],
                "group": cells["env"],
                "item": cells["orig_sen_idx"],
                "npi": cells["full_npi"],
            },
        )


_TABLES: dict[
    str,
    tuple[
        tuple[str, ...], Callable[[_Rows], Iterator[Example]], frozenset[Field], Task | None
    ],
] = {
    "examples.tsv": (
        _SENTENCE, _sentences, frozenset({Field.LABEL, Field.SENTENCE_LABELS}), _JUDGED,
    ),
    "examples_within_paradigm.tsv": (
        _SENTENCE, _pairs, frozenset({Field.CONTRAST, Field.CONDITION}), None,
    ),
    "ratings.tsv": (
        _RATING, _ratings, frozenset({Field.LABEL, Field.SENTENCE_LABELS}), _RATED,
    ),
    "monotonicity_probing_sample.tsv": (
        _BEGINNING, _beginnings, frozenset({Field.CONTRAST, Field.ANSWER}), None,
    ),
}  # fmt: skip
