"""Attention maps labelled by eye: which map, which of the five types, by whom, in which pass.

A file has one JSON object a line, and nothing but these keys:

    {"model": "bertology-mini", "corpus": "mrpc", "split": "validation", "example": "12",
     "text": "…", "text_b": null, "layer": 3, "head": 7, "label": "vertical",
     "annotator": "ann", "pass": 1}

Pictures are not kept: a map can be made again from its recipe. Layers and heads count from 0.
`text` may be null where the corpus may not be copied. Where one person labelled a map twice in
one pass, the later line counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path

from bertology.errors import DataError
from bertology.plain_files import read_bytes
from bertology.stats.agreement import Agreement, cohens_kappa

MAP_TYPES = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")

MapKey = tuple[str, str, str, str, int, int]
Coder = tuple[str, int]
"""An annotator and a pass."""


@dataclass(frozen=True, slots=True)
class MapRecipe:
    """What it takes to make an attention map again."""

    model: str
    corpus: str
    split: str
    example: str
    text: str | None
    text_b: str | None
    layer: int
    head: int

    @property
    def key(self) -> MapKey:
        """What tells maps apart; the text follows from the example."""
        return (self.model, self.corpus, self.split, self.example, self.layer, self.head)


@dataclass(frozen=True, slots=True)
class MapLabel:
    """One person's answer for one map."""

    recipe: MapRecipe
    label: str
    annotator: str
    turn: int
    """The pass; the file calls it `pass`, which Python keeps for itself."""

    @property
    def coder(self) -> Coder:
        """Who it was, in which pass."""
        return self.annotator, self.turn

    def line(self) -> bytes:
        """The line of the file, with its end."""
        recipe = {f.name: getattr(self.recipe, f.name) for f in fields(MapRecipe)}
        whole = {**recipe, "label": self.label, "annotator": self.annotator, "pass": self.turn}
        text = json.dumps(whole, ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass") + b"\n"  # as json reads it back


@dataclass(frozen=True)
class Comparison:
    """How two coders agree on the maps that both have labelled."""

    first: Coder
    second: Coder
    agreement: Agreement


# Reading ------------------------------------------------------------------------------------------

_TEXTS = ("model", "corpus", "split", "example", "label", "annotator")
_MAYBE = ("text", "text_b")
_NUMBERS = {"layer": 0, "head": 0, "pass": 1}  # and the least they may be
_KEYS = {*_TEXTS, *_MAYBE, *_NUMBERS}


def read_labels(path: str | Path) -> list[MapLabel]:
    """The labels of a file, the last one for each (map, annotator, pass), in order.

    Every line must be whole and right; a DataError names the first that is not.
    """
    return latest(read_lines(Path(path)))


def read_lines(path: Path) -> list[MapLabel]:
    """Every line of the file, also those that a later one overrules."""
    if not path.exists():
        raise DataError(
            f"There is no file {path}.",
            hint=f"To label maps into it: bertology annotate --to {path}",
        )
    content = read_bytes(path)
    found = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            whole = number < len(lines)
            found.append(parse_label(line, where=f"{path}, line {number}", whole=whole))
    return found


def latest(labels: Iterable[MapLabel]) -> list[MapLabel]:
    """The last label for each (map, annotator, pass), in the order of these."""
    last: dict[tuple[MapKey, Coder], MapLabel] = {}
    for label in labels:
        place = (label.recipe.key, label.coder)
        last.pop(place, None)
        last[place] = label
    return list(last.values())


def parse_label(line: bytes, *, where: str, whole: bool = True) -> MapLabel:
    """One line of the file; `where` opens the message if something is wrong with it."""
    try:
        value = json.loads(line, object_pairs_hook=_without_twins)
    except (ValueError, RecursionError) as error:
        cut = "it was cut off while it was written" if not whole else f"not JSON ({error})"
        hint = "The next `bertology annotate --to FILE` takes a cut line away." * (not whole)
        raise DataError(f"{where}: {cut}.", hint=hint or None) from None
    if not isinstance(value, dict):
        raise DataError(f"{where}: a JSON object is needed, not {type(value).__name__}.")
    missing, more = sorted(_KEYS - set(value)), sorted(set(value) - _KEYS)
    if missing:
        raise DataError(f"{where}: it lacks {', '.join(missing)}.")
    if more:
        raise DataError(f"{where}: it has {', '.join(more)}, which the format does not have.")
    for name in (*_TEXTS, *_MAYBE):
        _check_text(name, value[name], where)
    for name, least in _NUMBERS.items():
        number = value[name]
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise DataError(f"{where}: {name!r} must be a whole number from {least}: {number!r}.")
    if value["label"] not in MAP_TYPES:
        raise DataError(
            f"{where}: unknown label {value['label']!r}.", hint=f"Known: {', '.join(MAP_TYPES)}."
        )
    recipe = MapRecipe(**{f.name: value[f.name] for f in fields(MapRecipe)})
    return MapLabel(recipe, value["label"], value["annotator"], value["pass"])


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _check_text(name: str, value: object, where: str) -> None:
    if name in _MAYBE:
        if value is not None and not isinstance(value, str):
            raise DataError(f"{where}: {name!r} must be text or null, not {value!r}.")
    elif not isinstance(value, str) or not value:
        raise DataError(f"{where}: {name!r} must be text that is not empty, not {value!r}.")


# Writing ------------------------------------------------------------------------------------------


class LabelFile:
    """A file of labels to which lines are added; lines in it are never changed."""

    def __init__(self, path: str | Path) -> None:
        """Open or begin `path`; a last line that was cut off by a kill is taken away."""
        self.path = Path(path)
        if self.path.exists():
            self._heal()
            self.lines = read_lines(self.path)
        else:
            self.lines = []
            self._begin()

    def labels(self) -> list[MapLabel]:
        """The last label for each (map, annotator, pass)."""
        return latest(self.lines)

    def append(self, label: MapLabel) -> None:
        """Write one line, through to the disk."""
        line = label.line()
        parse_label(line, where="This label")
        try:
            with self.path.open("ab") as file:
                before = file.tell()
                try:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(before)  # a full disk must leave no half line
                    raise
        except OSError as error:
            raise self._unwritable(error) from None
        self.lines.append(label)

    def withdraw(self, label: MapLabel) -> bool:
        """Take `label` back if it is the file's last line; whether it was."""
        line = label.line()
        try:
            with self.path.open("r+b") as file:
                start = file.seek(0, os.SEEK_END) - len(line)
                if start < 0 or not self.lines or self.lines[-1] != label:
                    return False
                file.seek(start)
                if file.read() != line:
                    return False
                file.truncate(start)
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unwritable(error) from None
        self.lines.pop()
        return True

    def _begin(self) -> None:
        """Report before the first label, not after it, that the file cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
        except OSError as error:
            raise self._unwritable(error) from None

    def _heal(self) -> None:
        """End the last line: with its newline if only that is missing, by cutting it otherwise."""
        try:
            with self.path.open("r+b") as file:
                content = file.read()
                if not content or content.endswith(b"\n"):
                    return
                start = content.rfind(b"\n") + 1
                try:
                    json.loads(content[start:])
                except ValueError:
                    file.truncate(start)
                else:
                    file.write(b"\n")
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> DataError:
        return DataError(
            f"Labels cannot be saved in {self.path}: {error.strerror or error}.",
            hint="Name another file with --to FILE.",
        )


# Agreement ----------------------------------------------------------------------------------------


def given_by_map(labels: Iterable[MapLabel]) -> dict[MapKey, list[str]]:
    """What each annotator said of a map in the first pass."""
    given: dict[MapKey, list[str]] = {}
    for label in latest(labels):
        if label.turn == 1:
            given.setdefault(label.recipe.key, []).append(label.label)
    return given


def agreements(labels: Iterable[MapLabel], *, seed: int = 0) -> list[Comparison]:
    """Every two coders that share maps: Cohen's κ and the table of who said what."""
    by_coder: dict[Coder, dict[MapKey, str]] = {}
    for label in latest(labels):
        by_coder.setdefault(label.coder, {})[label.recipe.key] = label.label
    found = []
    for first, second in combinations(sorted(by_coder), 2):
        shared = [key for key in by_coder[first] if key in by_coder[second]]
        if shared:
            one, other = ([by_coder[coder][key] for key in shared] for coder in (first, second))
            agreement = cohens_kappa(one, other, MAP_TYPES, seed=seed)
            found.append(Comparison(first, second, agreement))
    return found
