"""What a search has found so far, kept beside the model's folder: it can be stopped at any time."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bertology.errors import StoreError
from bertology.plain_files import read_json
from bertology.train.memory import Memory
from bertology.train.prune import Step
from bertology.train.prune_settings import PARTS

_UNFINISHED = "-unfinished"


@dataclass(frozen=True)
class Progress:
    """A file beside the model's folder, for one search, which is known by its `identity`."""

    path: Path
    identity: str

    def found(self) -> list[Step]:
        """The cuts of the search that was stopped; none where it was another one."""
        if not self.path.is_file():
            return []
        try:
            kept = read_json(self.path, error=StoreError)
            if kept["identity"] != self.identity:
                return []
            return [_step(each) for each in kept["steps"]]
        except (StoreError, KeyError, TypeError, ValueError):
            return []  # what cannot be read is done again

    def keep(self, steps: Sequence[Step]) -> None:
        """Keep all cuts so far; the file is whole at any time."""
        draft = self.path.with_name(f".{self.path.name}.draft")
        asked = {"identity": self.identity, "steps": [asdict(step) for step in steps]}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(asked) + "\n", encoding="utf-8")
            os.replace(draft, self.path)
        except OSError as error:
            raise StoreError(
                f"The cuts so far cannot be written to {self.path}: {error.strerror or error}.",
                hint="Choose a folder you may write to, on a disk with space.",
            ) from error

    def forget(self) -> None:
        """Delete the file; it is no longer needed."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Unfinished:
    """All that is kept beside the folder of a model until it is made: cuts, and trainings."""

    place: Path
    identity: str

    @property
    def steps(self) -> Progress:
        """The cuts."""
        return Progress(self.place.with_name(f"{self._name}.json"), self.identity)

    @property
    def _name(self) -> str:
        return f"{self.place.name}{_UNFINISHED}"

    def memory(self, name: str = "") -> Memory:
        """Of one training; they have names where there are several."""
        return Memory(self.place.with_name(f"{self._name}{name and '-'}{name}"), self.identity)

    def _memories(self) -> list[Memory]:
        """Those that are there, also of other runs."""
        hidden = self.place.parent.glob(f".{self._name}*.old")  # killed while it was replaced
        names = {path.name[1:].removesuffix(".old") for path in hidden}
        names |= {path.name for path in self.place.parent.glob(f"{self._name}*") if path.is_dir()}
        return [Memory(self.place.with_name(name), self.identity) for name in sorted(names)]

    def forget_others(self) -> None:
        """Delete trainings of other runs, with other settings, data or models."""
        for memory in self._memories():
            if not memory.begun:
                memory.forget()

    def forget(self) -> None:
        """Delete all of it; it is no longer needed."""
        self.steps.forget()
        for memory in self._memories():
            memory.forget()


def _step(kept: Any) -> Step:
    part, units, score = kept["part"], kept["units"], kept["score"]
    if part not in (*PARTS, "weights") or not isinstance(score, float):
        raise ValueError(kept)
    pairs = part == "heads"
    return Step(part, tuple((int(u[0]), int(u[1])) if pairs else int(u) for u in units), score)
