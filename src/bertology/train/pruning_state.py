"""The state of an iterative pruning between two steps, in a folder that is whole at any time."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from pathlib import Path

import numpy as np
from torch import Tensor

from bertology.drafts import draft_folder, mend, put_in_place
from bertology.errors import StoreError
from bertology.model.nested_masks import NestedParts, NestedWeights
from bertology.model.part_masks import PartImportances, PartMask
from bertology.model.weight_masks import WeightMask
from bertology.plain_files import read_json

Mask = WeightMask | PartMask
Masks = NestedWeights | NestedParts
_STEPS, _MASK, _WEIGHTS = "steps.json", "mask.safetensors", "weights.safetensors"
_PLANE = "plane-{}.safetensors"


@dataclass(frozen=True)
class PruneStep:
    """A mask that was tried."""

    left: dict[str, int]  # how many weights, or heads and MLPs, are left
    score: float  # of the task's main metric, on the data that decide
    reported: float  # and on the data that report
    answers: list[float]  # to the examples that decide: classes, or numbers


@dataclass(frozen=True)
class Kept:
    """A pruning between two steps."""

    masks: Masks  # of all steps, the whole model's first
    steps: list[PruneStep]
    floor: float
    learnt: bool
    finished: bool
    importances: PartImportances | None = None  # in the whole model, where parts are pruned

    @property
    def kept(self) -> list[PruneStep]:
        """The steps up to the first whose score was not kept; the whole model at least."""
        return [self.steps[0], *takewhile(lambda s: s.score >= self.floor, self.steps[1:])]

    @property
    def mask(self) -> Mask:
        """The last one whose score was kept."""
        return self.masks.at(len(self.kept) - 1)

    @property
    def tried(self) -> Mask:
        """The last one of all."""
        return self.masks.at(len(self.steps) - 1)

    def after(self, step: PruneStep, mask: Mask, *, empty: bool, beyond: int) -> Kept:
        """With one more step; the last one is empty, or so many `beyond` those that were kept."""
        more = replace(self, masks=_then(self.masks, mask), steps=[*self.steps, step])
        return replace(more, finished=empty or len(more.steps) - len(more.kept) >= beyond)


@dataclass(frozen=True)
class PruningState:
    """A folder for one pruning, which is known by its `identity`; without a folder, nothing."""

    folder: Path | None
    identity: str

    def read(self) -> Kept | None:
        """What was kept last; None where nothing was."""
        if self.folder is None:
            return None
        mend(self.folder)
        path = self.folder / _STEPS
        if not path.is_file():
            return None
        try:
            known = read_json(path, error=StoreError)
            if known["identity"] != self.identity:
                raise ValueError("it is of another pruning")
            steps = [PruneStep(**step) for step in known["steps"]]
            return Kept(
                self._masks(known["parts"], len(steps)),
                steps,
                float(known["floor"]),
                learnt=bool(known["learnt"]),
                finished=bool(known["finished"]),
                importances=_importances_of(known["importances"]),
            )
        except (StoreError, KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"The pruning in {self.folder} cannot be read: {error}.",
                hint="Delete that folder to prune again.",
            ) from error

    def _masks(self, parts: dict[str, list[list[bool]]] | None, steps: int) -> Masks:
        assert self.folder is not None
        if parts is not None:
            return NestedParts(np.array(parts["heads"], bool), np.array(parts["mlps"], bool))
        planes = [
            WeightMask.load(self.folder / _PLANE.format(at))
            for at in range((steps - 1).bit_length())
        ]
        return NestedWeights.of(planes, WeightMask.load(self.folder / _MASK), steps)

    def weights(self) -> dict[str, Tensor]:
        """The weights that the next step ranks, where they were kept."""
        from safetensors.torch import load_file

        path = None if self.folder is None else self.folder / _WEIGHTS
        return load_file(path) if path is not None and path.is_file() else {}

    def write(self, kept: Kept, weights: dict[str, Tensor]) -> None:
        """Keep a state; the one before stays until this one is whole."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        if self.folder is None:
            return
        masks = kept.masks
        known = {
            "identity": self.identity,
            "steps": [asdict(step) for step in kept.steps],
            "floor": kept.floor,
            "learnt": kept.learnt,
            "finished": kept.finished,
            "parts": _listed(masks) if isinstance(masks, NestedParts) else None,
            "importances": _listed(kept.importances),
        }
        try:
            with draft_folder(self.folder) as draft:
                if isinstance(masks, NestedWeights):
                    mask = kept.mask
                    assert isinstance(mask, WeightMask)
                    mask.save(draft / _MASK)
                    for at, plane in enumerate(masks.planes):
                        plane.save(draft / _PLANE.format(at))
                if weights and not kept.finished:
                    whole = {n: w.detach().cpu().clone() for n, w in weights.items()}
                    save_file(whole, draft / _WEIGHTS)
                (draft / _STEPS).write_text(json.dumps(known) + "\n", encoding="utf-8")
                put_in_place(draft, self.folder)
        except (OSError, SafetensorError) as error:  # the latter is raised for a full disk
            raise StoreError(
                f"The pruning cannot be written to {self.folder}: "
                f"{getattr(error, 'strerror', None) or error}.",
                hint="Make room on the disk; the same command goes on after the last step.",
            ) from error

    def forget(self) -> None:
        """Delete it."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _then(masks: Masks, mask: Mask) -> Masks:
    if isinstance(masks, NestedWeights):
        assert isinstance(mask, WeightMask)
        return masks.then(mask)
    assert isinstance(mask, PartMask)
    return masks.then(mask)


def _listed(of: NestedParts | PartImportances | None) -> dict[str, object] | None:
    return None if of is None else {"heads": of.heads.tolist(), "mlps": of.mlps.tolist()}


def _importances_of(kept: dict[str, list[float]] | None) -> PartImportances | None:
    if kept is None:
        return None
    return PartImportances(np.array(kept["heads"], float), np.array(kept["mlps"], float))
