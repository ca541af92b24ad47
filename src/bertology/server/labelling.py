"""One person labels the maps of a plan: label, skip, undo, and continue on another day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from threading import RLock

from bertology.data.map_labels import MAP_TYPES, LabelFile, MapLabel, MapRecipe
from bertology.errors import BertologyError, ParameterError


class Labelling:
    """Maps by number, in the order of this pass; each label is written to the file at once."""

    def __init__(
        self, plan: Sequence[MapRecipe], path: str | Path, *, annotator: str, turn: int
    ) -> None:
        """Continue where `annotator` stopped in this pass; labels of other maps are ignored."""
        if not annotator.strip():
            raise ParameterError("annotator", "annotate", "not be empty", annotator)
        self.plan, self.annotator, self.turn = list(plan), annotator, turn
        self.file = LabelFile(path)
        self._lock = RLock()
        numbers = {recipe.key: number for number, recipe in enumerate(self.plan)}
        own = [label for label in self.file.labels() if label.coder == (annotator, turn)]
        # What was done, in order: the map's number, and its label (None: it was skipped).
        self._done: list[tuple[int, MapLabel | None]] = [
            (numbers[label.recipe.key], label) for label in own if label.recipe.key in numbers
        ]
        # Undone maps are shown next, before all maps that were not seen yet.
        self._undone: list[int] = []

    @property
    def current(self) -> int | None:
        """The number of the map to label now; None if all maps have been seen."""
        with self._lock:
            return next(self._left(), None)

    def upcoming(self, count: int) -> list[MapRecipe]:
        """The next maps to be shown, the current one first."""
        with self._lock:
            return [self.plan[number] for number in islice(self._left(), count)]

    def label(self, number: int, label: str) -> None:
        """Label the current map, and write the label to the file."""
        with self._lock:
            self._check_current(number)
            made = MapLabel(self.plan[number], label, self.annotator, self.turn)
            self.file.append(made)
            self._finish(number, made)

    def skip(self, number: int) -> None:
        """Leave out the current map; the same command shows it again next time."""
        with self._lock:
            self._check_current(number)
            self._finish(number, None)

    def undo(self) -> None:
        """Back to the previous map; its label is removed from the file.

        If somebody else has added labels after it, it stays until a newer label replaces it.
        """
        with self._lock:
            if not self._done:
                raise BertologyError("There is nothing to undo.")
            number, label = self._done[-1]
            if label is not None:
                self.file.withdraw(label)
            self._done.pop()
            self._undone.append(number)

    def state(self) -> dict[str, object]:
        """The state of the work, for the page."""
        with self._lock:
            labels = sum(label is not None for _, label in self._done)
            return {
                "total": len(self.plan),
                "labelled": labels,
                "skipped": len(self._done) - labels,
                "current": self.current,
                "can_undo": bool(self._done),
                "annotator": self.annotator,
                "pass": self.turn,
                "file": self.file.path.name,
                "types": list(MAP_TYPES),
            }

    def recipe(self, number: int) -> MapRecipe:
        """The map with this number; an error if there is none."""
        if not 0 <= number < len(self.plan):
            raise BertologyError(f"There is no map {number}.")
        return self.plan[number]

    def _left(self) -> Iterator[int]:
        yield from reversed(self._undone)
        passed = {number for number, _ in self._done} | set(self._undone)
        yield from (number for number in range(len(self.plan)) if number not in passed)

    def _finish(self, number: int, label: MapLabel | None) -> None:
        self._done.append((number, label))
        if self._undone:
            self._undone.pop()

    def _check_current(self, number: int) -> None:
        # A second tab, or a key pressed twice, must not label a map that nobody has seen.
        if number != self.current:
            raise BertologyError(
                f"Map {number} is not the one to label now.", hint="Reload the page."
            )
