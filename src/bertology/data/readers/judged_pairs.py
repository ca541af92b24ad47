"""Published judgements of pairs: of sentences, of objects by a property, of words in context."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers import MissingSplitError, Request
from bertology.data.readers.csv import known_rows, tab_separated
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.tasks import get_task
from bertology.data.words.alignment import Span, split_words
from bertology.data.words.targets import TARGETED, targeted_pair
from bertology.errors import DataError, UnknownNameError
from bertology.plain_files import read_utf8

_COLUMNS = ("index", "genre", "sentence1", "sentence2", "gold_label")
_DIRECTIONS = {
    "upward_monotone": "upward", "downward_monotone": "downward", "non_monotone": "neither",
}  # fmt: skip
_MED_LABELS = ("entailment", "neutral")


def read_med(source: str | Path, request: Request | None = None) -> Corpus:
    """MED (Yanaka et al. 2019): pairs that differ in how specific a phrase is.

    Gold labels are `entailment` and `neutral`, and the latter stands for everything else: so the
    classes are those of HANS. `phenomena` are the other tags, `origin` is `crowd` or `paper`.

    GROUP is the direction.
    """
    path, request = Path(source), Request.of(source, request)
    examples = []
    for at, cells in known_rows(path, _COLUMNS):
        origin, *tags = cells["genre"].split(":")
        directions = [_DIRECTIONS[tag] for tag in tags if tag in _DIRECTIONS]
        if len(directions) != 1 or cells["gold_label"] not in _MED_LABELS:
            raise DataError(
                f"{at}: one direction and a label are wanted, not {cells['genre']!r:.60} and "
                f"{cells['gold_label']!r:.20}.",
                hint=f"Directions: {', '.join(_DIRECTIONS)}. Labels: {', '.join(_MED_LABELS)}.",
            )
        about = {
            "group": directions[0],
            "origin": origin,
            "phenomena": tuple(tag for tag in tags if tag not in _DIRECTIONS),
        }
        label = _MED_LABELS.index(cells["gold_label"])
        pair = cells["sentence1"].strip(), cells["sentence2"].strip()
        examples.append(Example(cells["index"], *pair, label, about))
    return Corpus(
        name=request.name,
        examples=examples,
        fields=frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.GROUP}),
        task=request.task or get_task("hans"),
        split=request.split,
    )


_ATTRIBUTES = ("size", "weight", "strength", "rigidness", "speed")
_VERB_PHYSICS_LABELS = {"-1": 0, "0": 1, "1": 2}
_UNDECIDED = "-42"
_VERB_PHYSICS_TASK = Task("verb-physics", "classification", ("less", "similar", "more"), pair=True)


def read_verb_physics(source: str | Path, request: Request | None = None) -> Corpus:
    """Verb Physics (Forbes and Choi 2017): which of two objects is larger, heavier, stronger, … ?

    TEXT and TEXT_B are the objects, GROUP the attribute, and LABEL says how the first compares with
    the second. What most annotators could not decide is left out.

    The decided comparisons of one file.
    """
    path, request = Path(source), Request.of(source, request)
    examples = []
    columns = ("obj1", "obj2", *(f"{name}-maj" for name in _ATTRIBUTES))
    for number, (at, cells) in enumerate(known_rows(path, columns)):
        for attribute in _ATTRIBUTES:
            found = cells[f"{attribute}-maj"]
            if found == _UNDECIDED:
                continue
            if found not in _VERB_PHYSICS_LABELS:
                raise DataError(
                    f"{at}: {attribute}-maj must be -1, 0, 1 or -42, not {found!r:.20}."
                )
            about = {"group": attribute, "item": str(number)}
            pair = cells["obj1"], cells["obj2"]
            examples.append(
                Example(f"{number}-{attribute}", *pair, _VERB_PHYSICS_LABELS[found], about)
            )
    return Corpus(
        name=request.name,
        examples=examples,
        fields=frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.GROUP, Field.ITEM}),
        task=request.task or _VERB_PHYSICS_TASK,
        split=request.split,
    )


_CODES = {"object-property": "OP", "object-affordance": "OA", "affordance-property": "AP"}
_ALL = "all"
_SITUATED = ("cocoImgID", "cocoAnnID", "objectUID")
_PHYSICAL_COMMONSENSE_TASK = Task(
    "physical-commonsense", "classification", ("no", "yes"), ("f1", "accuracy")
)
_Pair = tuple[str, str]


def read_physical_commonsense(source: str | Path, request: Request | None = None) -> Corpus:
    """Forbes, Holtzman & Choi (2019): objects, their properties, and what can be done with them.

    Option `relation`:

    - `object-property`: 514 kinds of objects × 50 properties, as people judged them;
    - `object-affordance`: what people said can, or cannot, be done with objects in pictures;
    - `affordance-property`: if you can do this with a thing, has it that property? So it has if
      most of the pictured objects have it with which people said it can be done;
    - `all`: the three of them, for studies that compare what is known of each.

    TEXT is the published sentence, LABEL whether it is so (in more than half of the pictures;
    `share` is how many), ENTITY the object or affordance that it is about, GROUP the property or
    affordance, `relation` one of the three. What people could not decide is left out. Splits are
    the published ones, by object; affordance-property has no objects, and one split.

    The judged sentences of one relation and split.
    """
    folder, request = Path(source), Request.of(source, request)
    asked = str(request.options.get("relation", "object-property"))
    if asked not in (*_CODES, _ALL):
        raise UnknownNameError("relation", asked, (*_CODES, _ALL))
    relations = _CODES if asked == _ALL else (asked,)
    examples = [e for relation in relations for e in _judged(folder, relation, request.split)]
    return Corpus(
        name=request.name,
        examples=examples,
        fields=frozenset({Field.TEXT, Field.LABEL, Field.ENTITY, Field.GROUP}),
        task=request.task or _PHYSICAL_COMMONSENSE_TASK,
        split=request.split,
    )


def _judged(folder: Path, relation: str, split: str | None) -> Iterator[Example]:
    shares = {
        "object-property": _of_kinds,
        "object-affordance": _afforded,
        "affordance-property": _implied,
    }[relation](folder)
    objects = _objects(folder, relation, split)
    for pair, text in _sentences(folder, _CODES[relation]):
        if pair in shares and (objects is None or pair[0] in objects):
            about = {
                "entity": pair[0].replace("_", " "),
                "group": pair[1],
                "relation": relation,
                "share": shares[pair],
            }
            name = "/".join((relation, *pair))  # "adjust" is an object's use, and has properties
            yield Example(name, text, None, int(shares[pair] > 0.5), about)


def _sentences(folder: Path, code: str) -> Iterator[tuple[_Pair, str]]:
    """The published sentences, each pair once."""
    index = folder / "sentences" / "index.csv"
    written = folder / "sentences" / "sentences.txt"
    lines = [line for _, line in numbered_lines(read_text(written)) if line.strip()]
    rows = list(known_rows(index, ("task", "uids")))
    if len(lines) != len(rows):
        raise DataError(f"{written} has {len(lines)} sentences and {index.name} {len(rows)} rows.")
    seen: set[_Pair] = set()
    for (at, cells), line in zip(rows, lines, strict=True):
        one, slash, other = cells["uids"].partition("/")
        if not slash:
            raise DataError(f"{at}: uids must be two names with / between them.")
        if cells["task"] == code and (one, other) not in seen:
            seen.add((one, other))
            yield (one, other), line.strip()


def _objects(folder: Path, relation: str, split: str | None) -> set[str] | None:
    if relation == "affordance-property" or split in (None, "all"):
        return None
    kind = "abstract" if relation == "object-property" else "situated"
    path = folder / "pc" / f"{kind}-{split}-object-uids.txt"
    if not path.is_file():
        raise MissingSplitError(f"There is no file {path} with the objects of the split {split!r}.")
    return {line.strip() for _, line in numbered_lines(read_text(path)) if line.strip()}


def _of_kinds(folder: Path) -> dict[_Pair, float]:
    found = {}
    for at, cells in known_rows(folder / "pc" / "abstract.csv", ("objectUID",)):
        for name, judged in cells.items():
            if name != "objectUID" and _decided(judged, at):
                found[cells["objectUID"], name] = float(judged)
    return found


def _decided(judged: str, at: str) -> bool:
    if judged not in ("0", "1", "-1", "-2"):
        raise DataError(f"{at}: a judgement must be 1, 0 or below, not {judged!r:.20}.")
    return judged in ("0", "1")


def _afforded(folder: Path) -> dict[_Pair, float]:
    found: dict[_Pair, list[int]] = {}
    for _, one in _instances(folder):
        for column, is_so in (("affordancesYes", 1), ("affordancesNo", 0)):
            for affordance in filter(None, one[column].split(",")):
                found.setdefault((one["objectUID"], affordance), []).append(is_so)
    return {pair: sum(said) / len(said) for pair, said in found.items()}


def _instances(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    path = folder / "pc" / "situated-affordances-sampled.csv"
    return known_rows(path, (*_SITUATED, "affordancesYes", "affordancesNo"))


def _implied(folder: Path) -> dict[_Pair, float]:
    properties = {
        (cells["cocoImgID"], cells["cocoAnnID"]): cells
        for _, cells in known_rows(folder / "pc" / "situated-properties.csv", _SITUATED)
    }
    so: Counter[_Pair] = Counter()
    all_: Counter[_Pair] = Counter()
    for at, one in _instances(folder):
        of = properties.get((one["cocoImgID"], one["cocoAnnID"]))
        if of is None:
            raise DataError(f"{at}: the properties of this object are not in situated-properties.")
        decided = {n: v for n, v in of.items() if n not in _SITUATED and _decided(v, at)}
        for affordance in filter(None, one["affordancesYes"].split(",")):
            for name, judged in decided.items():
                all_[affordance, name] += 1
                so[affordance, name] += judged == "1"
    return {pair: so[pair] / n for pair, n in all_.items()}


_FIELDS = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.GROUP})
_STS_TASK = Task("sts", "regression", (), ("pearson", "spearman"), pair=True)
_INPUT, _GOLD = "STS.input.", "STS.gs."
_LOWEST, _HIGHEST = 0.0, 5.0


def read_sts(source: str | Path, request: Request | None = None) -> Corpus:
    """Semantic textual similarity, SemEval 2012 to 2016: pairs of sentences, scored from 0 to 5.

    Either cells with tabs between on each line, `score, sentence, sentence`, or the published
    files, `STS.input.NAME.txt` with both sentences and `STS.gs.NAME.txt` beside it with the scores.
    From 2015 on only some pairs have a score; the others are left out. GROUP is the name of the
    file, which says where the sentences are from.

    The scored pairs of one file.
    """
    path, request = Path(source), Request.of(source, request)
    published = path.name.startswith(_INPUT)
    group = path.stem.removeprefix(_INPUT).removesuffix(".test").removesuffix(".train")
    rows = _with_gold(path) if published else _rows(path, 3)
    examples = []
    for number, (written, text, text_b) in rows:
        at = f"{path.name}, line {number}"
        if not written:
            continue
        if not text or not text_b:
            raise DataError(f"{at}: a sentence is empty.")
        try:
            score = float(written)
        except ValueError:
            score = math.nan
        if not _LOWEST <= score <= _HIGHEST:
            raise DataError(f"{at}: the score must be a number from 0 to 5, not {written!r:.40}.")
        examples.append(Example(str(number), text, text_b, score, {"group": group}))
    if not examples:
        raise DataError(f"{path.name} has no pair with a score.")
    return Corpus(request.name, examples, _FIELDS, request.task or _STS_TASK, request.split)


def _rows(path: Path, fewest: int) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line; some published lines have further ones, such as where it is from."""
    for number, line in numbered_lines(read_text(path)):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < fewest:
            names = "score, sentence, sentence" if fewest == 3 else "sentence, sentence"
            raise DataError(
                f"{path.name}, line {number}: {len(cells)} cells where {fewest} are wanted.",
                hint=f"Expected, with tabs between: {names}.",
            )
        yield number, cells[:fewest]


def _with_gold(path: Path) -> Iterator[tuple[int, list[str]]]:
    gold = path.with_name(path.name.replace(_INPUT, _GOLD, 1))
    if not gold.is_file():
        raise DataError(f"{path.name}: the scores should be beside it, in {gold.name}.")
    scores = [line.strip() for _, line in numbered_lines(read_utf8(gold))]
    pairs = list(_rows(path, 2))
    # The last line may end without a break, and pairs at the end may be without a score.
    if any(scores[pairs[-1][0] :]):
        raise DataError(f"{gold.name} has more scores than {path.name} has pairs.")
    for number, texts in pairs:
        yield number, [scores[number - 1] if number <= len(scores) else "", *texts]


_SCWS_TASK = Task("scws", "regression", (), ("spearman", "pearson"), pair=True)
_RATINGS = 10
_CELLS = 8 + _RATINGS


def read_scws(source: str | Path, request: Request | None = None) -> Corpus:
    """Stanford's contextual word similarities: how similar are two words, each in its context?

    Cells with tabs between: the number, both words each with its part of speech, both contexts, in
    which the word stands between <b> and </b>, the mean rating, and ten ratings:

        1	Brazil	n	nut	n	… in <b> Brazil </b> , …	… a <b> nut </b> …	1.1	0.0	…

    LABEL is the mean rating, TARGETS are the marked words, GROUP says which parts of speech they
    have.

    The pairs of a file of ratings.
    """
    path, request = Path(source), Request.of(source, request)
    rows = tab_separated(path)
    examples = [_example(cells, f"{path.name}, line {number}") for number, cells in rows]
    seen: dict[str, int] = {}
    for (number, _), example in zip(rows, examples, strict=True):
        if (first := seen.setdefault(example.id, number)) != number:
            at = f"{path.name}, line {number}"
            raise DataError(f"{at}: the number {example.id!r:.20} is that of line {first} as well.")
    fields = TARGETED | {Field.LABEL, Field.GROUP}
    return Corpus(request.name, examples, fields, request.task or _SCWS_TASK, request.split)


def _example(cells: Sequence[str], at: str) -> Example:
    if len(cells) != _CELLS:
        raise DataError(
            f"{at}: {len(cells)} cells where {_CELLS} are wanted.",
            hint="Expected, with tabs between: number, word, part of speech, word, part of speech, "
            "context, context, mean rating, ten ratings.",
        )
    name, _, one, _, other, *contexts = (cell.strip() for cell in cells[:7])
    mean, *_ = (_number(cell, at) for cell in cells[7:])
    read_scws = [
        _marked(context, f"{at}, context {i}") for i, context in enumerate(contexts, start=1)
    ]
    (text, spans, target), (text_b, spans_b, target_b) = read_scws
    return targeted_pair(
        name,
        (text, text_b),
        [spans, spans_b],
        [target, target_b],
        label=mean,
        more={"group": f"{one}-{other}"},
    )


def _number(cell: str, at: str) -> float:
    try:
        found = float(cell)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise DataError(f"{at}: the rating {cell!r:.40} is not a number.")
    return found


def _marked(context: str, at: str) -> tuple[str, list[Span], Span]:
    """The context without its marks, its words, and which of them were marked."""
    before, opened, rest = context.partition("<b>")
    inside, closed, after = rest.partition("</b>")
    if not opened or not closed or not inside.strip() or "<b>" in inside + after:
        raise DataError(f"{at}: one word must stand between <b> and </b>.")
    parts = [" ".join(part.split()) for part in (before, inside, after)]
    text = " ".join(part for part in parts if part)
    first = len(parts[0].split())
    return text, split_words(text), (first, first + len(parts[1].split()))
