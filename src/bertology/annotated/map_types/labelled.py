"""Labelled maps made again from their recipes, where model and data are on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from torch import Tensor

from bertology.data.corpus import Example
from bertology.data.loading import load_corpus
from bertology.data.map_labels import MapKey, MapLabel, MapRecipe, read_labels
from bertology.errors import BertologyError
from bertology.model.encoder import Encoder
from bertology.model.segments import segments_of

__all__ = ["LabelledMap", "bundled_labels", "bundled_models", "drawn", "make_again"]


@dataclass(frozen=True)
class LabelledMap:
    """A map, the sentence of each of its tokens, and what a person saw in it."""

    weights: Tensor  # (L, L)
    segments: Tensor  # (L,)
    label: MapLabel


def bundled_labels() -> list[MapLabel]:
    """The labels that come with the package, both passes."""
    return read_labels(Path(str(files("bertology") / "data" / "annotations" / "map-types.jsonl")))


def bundled_models() -> dict[str, str]:
    """Fingerprints of the models whose maps were labelled, by the names the labels use.

    A name stays the same when the model behind it changes; labels are about one of them.
    """
    where = files("bertology") / "data" / "annotations" / "map-types.models.json"
    found: dict[str, str] = json.loads(where.read_text(encoding="utf-8"))
    return found


@cache
def drawn(how: str) -> frozenset[MapKey]:
    """Labelled maps that were drawn in some way.

    `at_random`: text, layer and head by chance, whatever the map looks like. `for_learning`: many
    of them where an earlier network was unsure, so they do not say how good a network is.
    """
    where = files("bertology") / "data" / "annotations" / "map-types.drawn.json"
    found = json.loads(where.read_text(encoding="utf-8"))[how]
    return frozenset((m, c, s, e, int(layer), int(head)) for m, c, s, e, layer, head in found)


def make_again(
    labels: Iterable[MapLabel],
    *,
    folders: Mapping[str, str] | None = None,
    root: str | Path | None = None,
    fingerprints: Mapping[str, str] | None = None,
) -> tuple[list[LabelledMap], dict[str, str]]:
    """The maps of these labels, and why those of some models or corpora cannot be made.

    Args:
        labels: What was seen.
        folders: Where a model of some name lies, if the name alone does not lead to it.
        root: The folder with the data of catalogue entries.
        fingerprints: If given, models with other weights than these are left out.
    """
    made: list[LabelledMap] = []
    missing: dict[str, str] = {}
    by_model: dict[str, list[MapLabel]] = {}
    for label in labels:
        by_model.setdefault(label.recipe.model, []).append(label)
    for name, own in by_model.items():
        try:
            encoder = Encoder.load((folders or {}).get(name, name), device="cpu")
        except BertologyError as error:
            missing[name] = str(error)
            continue
        if fingerprints and encoder.fingerprint != fingerprints.get(name):
            missing[name] = "another model of this name: its maps are not those that were labelled"
            continue
        for label in own:
            try:
                example = _example(label.recipe, None if root is None else str(root))
            except BertologyError as error:
                missing[label.recipe.corpus] = str(error)
                continue
            made.append(_map_of(encoder, example, label))
    return made, missing


def _example(recipe: MapRecipe, root: str | None) -> Example:
    if recipe.text is not None:
        return Example(recipe.example, recipe.text, recipe.text_b)
    return _corpus(recipe.corpus, recipe.split, root)[recipe.example]


@cache
def _corpus(name: str, split: str, root: str | None) -> dict[str, Example]:
    return {e.id: e for e in load_corpus(name, split=split, root=root)}


def _map_of(encoder: Encoder, example: Example, label: MapLabel) -> LabelledMap:
    batch = encoder.encode(example.given, too_long="truncate")
    site = f"layer.{label.recipe.layer}.head.{label.recipe.head}.pattern"
    weights = encoder.run(batch, record=site)[site][0].float()
    return LabelledMap(weights.reshape(weights.shape[-2:]), segments_of(batch)[0], label)
