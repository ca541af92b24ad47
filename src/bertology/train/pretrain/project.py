"""From a recipe to a model: one folder that holds everything on the way, and continues by itself.

as-run.yaml     the recipe with every field
tokenizer/      the vocabulary, if one was made
shards/         the text, tokenized
log.jsonl       losses, speed and held-out scores
state/          what an interrupted run continues from
checkpoints/    the model at earlier steps, if milestones were asked for
model/          the trained model, an ordinary Hugging Face folder with its model card
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.drafts import write_whole
from bertology.errors import ModelError, StoreError
from bertology.train.checkpoint import read_record
from bertology.train.model_card import model_card
from bertology.train.pretrain.config import Pretraining
from bertology.train.pretrain.config_files import read_recipe, sections_of, write_recipe
from bertology.train.pretrain.materials import (
    TrainingMaterials,
    find_materials,
    is_first,
    most_pieces,
    ready_materials,
)
from bertology.train.pretrain.pairings import find_pairing
from bertology.train.pretrain.recipe import Recipe
from bertology.train.pretrain.state import identity, read_numbers
from bertology.train.records import EarlierTraining, TrainingRecord

if TYPE_CHECKING:
    from bertology.train.pretrain.log import StepReport

AS_RUN, MODEL, CARD = "as-run.yaml", "model", "README.md"
_TRAINING = ("state", ".state.old", "checkpoints", "log.jsonl", MODEL)  # what --fresh forgets

Tell = Callable[[str], None]


def make(
    recipe: Recipe,
    to: str | Path,
    *,
    device: str = "auto",
    fresh: bool = False,
    tell: Tell = lambda line: None,
    progress: Callable[[StepReport], None] = lambda report: None,
) -> TrainingRecord:
    """Follow the recipe, or continue to follow it; returns the record of the model.

    What was done before is found again: vocabulary, shards, the steps up to the last state, the
    finished model. `fresh` trains again from the first step.
    """
    from bertology.train.pretrain.loop import pretrain

    place = Path(to)
    if is_first():
        _begin(check_place(place), recipe, fresh=fresh)
    materials = ready_materials(recipe, place, tell=tell)
    training = _fitted(recipe.resolved(), materials)
    # Another process may look before the first one has forgotten the model.
    made = None if fresh else _find_made(place / MODEL, training, materials)
    if made is not None:
        tell(f"Trained already, on {made['created'][:10]} (--fresh trains again).")
        return made
    _tell_where(place, training, materials, tell)
    trained = pretrain(
        training,
        materials.shards,
        materials.tokenizer,
        folder=place,
        device=device,
        progress=progress,
        origin=_origin(recipe, training, materials),
    )
    return _with_card(place / MODEL, recipe.card.name or place.resolve().name, trained.scores)


def check_place(to: str | Path) -> Path:
    """Refuse, before any work, a folder that a run cannot use."""
    place = Path(to)
    ours = (place / AS_RUN).is_file()
    if place.exists() and not ours and (not place.is_dir() or any(place.iterdir())):
        raise StoreError(
            f"{place} exists already and holds no pre-training run of bertology.",
            hint="Choose another folder, or move that one away.",
        )
    above = next(p for p in (place.absolute(), *place.absolute().parents) if p.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise StoreError(
            f"Nothing can be written to {place}: {above} is not a folder you may write to.",
            hint="Choose another folder.",
        )
    return place


def _begin(place: Path, recipe: Recipe, *, fresh: bool) -> None:
    """Make the folder ours, unless it holds the training of another recipe."""
    started = [name for name in _TRAINING if (place / name).exists()]
    if started and not fresh and not _same_training(place / AS_RUN, recipe):
        raise StoreError(
            f"{place} holds a training by another recipe ({place / AS_RUN}).",
            hint="Choose another folder, or delete that training with --fresh.",
        )
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in started if fresh else ():
            target = place / name
            shutil.rmtree(target) if target.is_dir() else target.unlink()
    except OSError as error:
        raise StoreError(
            f"{error.filename or place} cannot be changed: {error.strerror or error}.",
            hint="Choose another folder.",
        ) from error
    write_recipe(recipe, place / AS_RUN)


def _same_training(path: Path, recipe: Recipe) -> bool:
    """Whether the numbers of a training by that recipe would be the same; text is checked later."""
    earlier = read_recipe(path).resolved()
    return identity(earlier, "", 1) == identity(recipe.resolved(), "", 1)


def _fitted(training: Pretraining, materials: TrainingMaterials) -> Pretraining:
    """With the size that the vocabulary really has."""
    return replace(training, model=replace(training.model, vocab_size=len(materials.tokenizer)))


def _tell_where(
    place: Path, training: Pretraining, materials: TrainingMaterials, tell: Tell
) -> None:
    """Say at which step training goes on, or that it cannot."""
    numbers = read_numbers(place / "state")
    if numbers is None:
        tell(f"Training for {training.steps:,} steps …")
        return
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if numbers["identity"] != identity(training, materials.shards.fingerprint, count):
        raise StoreError(
            f"The training in {place} was begun on other text, or by another number of processes.",
            hint="Choose another folder, or delete that training with --fresh.",
        )
    tell(f"Continuing from step {numbers['step']:,} of {training.steps:,} …")


def _find_made(
    folder: Path, training: Pretraining, materials: TrainingMaterials
) -> TrainingRecord | None:
    """The record of the finished model, if it is the one that the recipe would give."""
    try:
        record = read_record(folder)
    except ModelError:
        return None  # what cannot be read cannot be reused
    if record is None or not (folder / CARD).is_file():
        return None
    return record if record.get("identity") == _identity(training, materials) else None


def _identity(training: Pretraining, materials: TrainingMaterials) -> str:
    return identity(training, materials.shards.fingerprint, 1)


def _origin(recipe: Recipe, training: Pretraining, materials: TrainingMaterials) -> TrainingRecord:
    """The part of the record that the loop does not know."""
    origin: TrainingRecord = {
        "identity": _identity(training, materials),
        "made_by": sections_of(recipe),
        "parameters": _parameters(training, len(materials.shards.labels)),
        "relations": [list(find_pairing(s.objective.pairing).relations) for s in training.stages],
    }
    if training.start is not None:
        # What is known of the model that training begins with
        folder = Path(training.start)
        record = read_record(folder) or {}
        card = record.get("made_by", {}).get("card", {})
        found: EarlierTraining = {"name": card.get("name") or folder.name}
        if "step" in record:
            before = record.get("earlier", {})
            found["steps"] = record["step"] + before.get("steps", 0)
            found["tokens_seen"] = record["tokens_seen"] + before.get("tokens_seen", 0)
        origin["earlier"] = found
    return origin


def _with_card(folder: Path, name: str, scores: dict[str, float]) -> TrainingRecord:
    """Write the model card beside the model; only the first process has a model to describe."""
    if not is_first():
        return {"scores": scores}
    record = read_record(folder) or {}
    try:
        write_whole(folder / CARD, model_card(record, name=name))
    except OSError as error:
        raise StoreError(
            f"The model card cannot be written to {folder}: {error.strerror or error}.",
            hint="Make room on the disk, and give the same command again.",
        ) from error
    return record


@dataclass(frozen=True)
class PretrainingPlan:
    """What following a recipe would take."""

    parameters: int  # of the model; at most, where the vocabulary is yet to be made
    vocabulary: int
    steps: int
    tokens_per_update: int
    text_tokens: int | None  # None where the text is yet to be prepared
    passes: float | None
    disk: dict[str, int]  # bytes: shards, state, milestones, model


def plan(recipe: Recipe, to: Path | None = None) -> PretrainingPlan:
    """Parameters, tokens, passes and disk space of a run, without any work."""
    found = find_materials(recipe, to) if to is not None else None
    training = recipe.training
    if found is not None:
        training = _fitted(training, found)
    else:
        most = replace(training.model, vocab_size=most_pieces(recipe))
        training = replace(training, model=most)
    count = _parameters(training, len(found.shards.labels) if found else 0)
    size = 4 * count  # float32
    disk = {"state": 3 * size, "milestones": training.milestones * size, "model": size}
    tokens = None
    if found is not None:
        tokens = found.shards.tokens
        disk["shards"] = sum(f.stat().st_size for f in found.shards.folder.iterdir())
    seen = training.steps * training.batch_tokens
    return PretrainingPlan(
        parameters=count,
        vocabulary=training.model.vocab_size,
        steps=training.steps,
        tokens_per_update=training.batch_tokens,
        text_tokens=tokens,
        passes=None if tokens is None else seen / tokens,
        disk=disk,
    )


class _Pieces:
    """As much of a tokenizer as counting needs."""

    pad_token_id = 0

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


def _parameters(training: Pretraining, labels: int) -> int:
    """Of the finished model; the tensors are not made."""
    import torch

    from bertology.train.fresh import fresh_bert

    with torch.device("meta"):
        model = fresh_bert(
            "BertForPreTraining",
            training.model,
            _Pieces(training.model.vocab_size),
            type_vocab_size=max(2, labels),
        )
    return int(model.num_parameters())
