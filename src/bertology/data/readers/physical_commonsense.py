"""Forbes, Holtzman & Choi (2019): objects, their properties, and what can be done with them.

Option `relation`:

- `object-property`: 514 kinds of objects × 50 properties, as people judged them;
- `object-affordance`: what people said can, or cannot, be done with objects in pictures;
- `affordance-property`: if you can do this with a thing, has it that property? So it has if most
  of the pictured objects have it with which people said it can be done;
- `all`: the three of them, for studies that compare what is known of each.

TEXT is the published sentence, LABEL whether it is so (in more than half of the pictures; `share`
is how many), ENTITY the object or affordance that it is about, GROUP the property or affordance,
`relation` one of the three.
What people could not decide is left out. Splits are the published ones, by object;
affordance-property has no objects, and one split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.request import MissingSplitError, Request
from bertology.data.readers.rows import known_rows
from bertology.errors import DataError, UnknownNameError

_CODES = {"object-property": "OP", "object-affordance": "OA", "affordance-property": "AP"}
_ALL = "all"
_SITUATED = ("cocoImgID", "cocoAnnID", "objectUID")
_TASK = Task("physical-commonsense", "classification", ("no", "yes"), ("f1", "accuracy"))
_Pair = tuple[str, str]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The judged sentences of one relation and split."""
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
        task=request.task or _TASK,
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
