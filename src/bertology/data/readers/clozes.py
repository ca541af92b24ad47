"""Published clozes and minimal pairs: numbers, choices, diagnostics, negative polarity items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bertology.data.clozes import MASK, with_mask
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers import Request
from bertology.data.readers.csv import known_rows, tab_separated
from bertology.data.readers.jsonl import objects
from bertology.data.readers.table import Row
from bertology.errors import DataError

NUMBER_WORDS = (
    "no", "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip
"""The answers that NumerSense allows; CANDIDATES of every sentence."""


def read_numersense(source: str | Path, request: Request | None = None) -> Corpus:
    """NumerSense (Lin et al. 2020): sentences in which a number word is hidden; TEXT, tab, ANSWER.

    The sentences of a file; GROUP is the number.
    """
    path, request = Path(source), Request.of(source, request)
    examples = []
    for number, cells in tab_separated(path):
        at = f"{path.name}, line {number}"
        if len(cells) != 2:
            raise DataError(f"{at}: a sentence and its number are wanted, separated by a tab.")
        answer = cells[1].strip()
        if answer not in NUMBER_WORDS:
            known = ", ".join(NUMBER_WORDS)
            raise DataError(f"{at}: {answer!r:.20} is not among the answers.", hint=f"{known}.")
        about = {"answer": [answer], "candidates": NUMBER_WORDS, "group": answer}
        examples.append(Example(str(number), with_mask(cells[0], at), annotations=about))
    fields = frozenset({Field.TEXT, Field.ANSWER, Field.CANDIDATES, Field.GROUP})
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def read_olmpics(source: str | Path, request: Request | None = None) -> Corpus:
    """oLMpics (Talmor et al. 2020): questions with two to five answers to choose from.

    An object per line: `question` (`stem`, `choices` with `label` and `text`) and `answerKey`.
    GROUP is the task, which is the folder's name. Stems with [MASK] are clozes; others are plain
    questions.

    The questions of one file.
    """
    path, request = Path(source), Request.of(source, request)
    task = path.absolute().parent.name
    # Some published ids occur twice, so that questions are numbered.
    examples = [_question(i, row, task, path.name) for i, row in enumerate(objects(path))]
    fields = frozenset({Field.TEXT, Field.ANSWER, Field.CANDIDATES, Field.GROUP})
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _question(index: int, row: Row, task: str, where: str) -> Example:
    at = f"{where}, line {row.line}"
    try:
        question, key = row.values["question"], row.values["answerKey"]
        stem = question["stem"].strip()
        choices = {str(one["label"]): one["text"].strip() for one in question["choices"]}
    except (KeyError, TypeError, AttributeError):
        raise DataError(
            f"{at} is not of oLMpics' form.",
            hint='Wanted: {"question": {"stem": …, "choices": [{"label": "A", "text": …}, …]}, '
            '"answerKey": "A"}.',
        ) from None
    if key not in choices or not stem or not all(choices.values()):
        raise DataError(f"{at}: the answer {key!r:.20} is not among the choices, or one is empty.")
    return Example(
        str(index),
        with_mask(stem, at) if MASK in stem else stem,
        annotations={
            "answer": [choices[key]],
            "candidates": tuple(choices.values()),
            "group": task,
        },
    )


_CLOZE = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ITEM, Field.CONDITION})
_CPRAG = ("item", "context_s1", "context_s2", "expected", "within_category", "between_category")
_ROLE = ("item", "context", "expected", "exp_cloze", "target", "tgt_cloze")
_NEG = ("item", "context_aff", "context_neg", "target_aff", "target_neg")
_CONSTRAINTS = {"H": "high", "L": "low"}
_ORDERS = {"a": "canonical", "b": "reversed"}
_ARTICLE = "(a|an)"
_Row = tuple[str, dict[str, str]]


def read_lm_diagnostics(source: str | Path, request: Request | None = None) -> Corpus:
    """Ettinger's diagnostics (2020): contexts of experiments, without their last word.

    TEXT is the context with [MASK] and a full stop (without it, a model would rather predict one),
    ANSWER the expected completions, CANDIDATES these and the wrong ones, ITEM what versions share:

    - CPRAG-102: CONDITION is the constraint, `high` or `low`; candidates are the expected word, one
      of its category, one of another (`kinds`: expected, related, unrelated);
    - ROLE-88: CONDITION is `canonical` or `reversed` (waitress and customer in each other's place).
      The `target` verb fits the canonical version; `human` gives the shares of people who completed
      so;
    - NEG-136: CONDITION is `affirmative` or `negative`, GROUP tells simple sentences from natural
      and less natural ones, in which negation is `licensed` or not. The article may depend on the
      completion: `candidate_texts` has the text for each candidate; TEXT is that of the true one.

    The contexts of one file; its name tells which of the diagnostics it is.
    """
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


def read_npi(source: str | Path, request: Request | None = None) -> Corpus:
    """Negative polarity items (Warstadt et al. 2019; Jumelet et al. 2021), in four tables:

    - `examples.tsv`: sentences; LABEL is acceptable or not;
    - `examples_within_paradigm.tsv`: whole paradigms of eight sentences, read as minimal pairs:
      TEXT has an NPI that is licensed, CONTRAST one without its licensor or outside its scope
      (CONDITION);
    - `ratings.tsv`: human ratings from 1 to 6; LABEL is the mean over those who passed the checks;
    - `monotonicity_probing_sample.tsv`: beginnings of sentences before an NPI. TEXT is the one that
      licenses it, with [MASK] for the NPI's last word (ANSWER), CONTRAST the one that does not.

    As `npi-paradigms`, the first two are read alike and as one corpus (`read_npi_paradigms`): every
    row a sentence, halves of a paradigm that stand under two environments put together.

    GROUP is the environment, ITEM the paradigm. SENTENCE_LABELS are what feature probes look for:
    is there a licensor, would an NPI be in its scope, is there an NPI?

    The corpus in one of the tables, known by its name.
    """
    path, request = Path(source), Request.of(source, request)
    if path.name not in _TABLES:
        raise DataError(f"{path.name} is none of the tables.", hint=f"Known: {', '.join(_TABLES)}.")
    columns, make, fields, task = _TABLES[path.name]
    examples = list(make(list(known_rows(path, columns, skip=_OTHER_FORM))))
    return Corpus(request.name, examples, _PARADIGM | fields, request.task or task, request.split)


def read_npi_paradigms(source: str | Path, request: Request | None = None) -> Corpus:
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
