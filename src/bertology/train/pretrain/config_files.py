"""Recipes in YAML: read strictly, and written so that they can be read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from bertology.errors import DataError, StoreError
from bertology.train.fresh import Architecture
from bertology.train.pretrain.config import Objective, Pretraining, Stage, Vocabulary
from bertology.train.pretrain.recipe import OF_CORPORA, Card, Recipe, TextSource
from bertology.train.pretrain.yaml_fields import Section, parse_root

__all__ = ["parse_recipe", "read_recipe", "sections_of", "write_recipe"]

_SECTIONS = ("text", "vocabulary", "model", "objective", "stages", "training", "seed", "card")
_ELSEWHERE = ("model", "stages", "seed")  # fields of Pretraining that are sections of their own
_VOCABULARY = "vocab_size"  # of the model: as large as the vocabulary is


def read_recipe(path: str | Path) -> Recipe:
    """The recipe in a file; its paths start from the file's folder."""
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(
            f"There is no recipe {str(place)!r}.",
            hint="Begin with an example: bertology pretrain --example > recipe.yaml",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The recipe {str(place)!r} cannot be read: {error}.") from error
    return parse_recipe(text, label=str(place), base=place.parent)


def parse_recipe(text: str, *, label: str, base: Path) -> Recipe:
    """The recipe in a YAML `text`; `label` names it in error messages."""
    root = parse_root(text, label=label)
    root.only(_SECTIONS)
    if "text" not in root.nodes:
        raise root.wrong(None, "the field 'text' is missing", hint="text: {files: [texts/*.txt]}")
    vocabulary = _vocabulary(root)
    return Recipe(
        text=root.section("text").made(TextSource),
        vocabulary=vocabulary,
        training=_training(root, vocabulary),
        card=root.section("card").made(Card) if "card" in root.nodes else Card(),
        base=base,
    )


def _vocabulary(root: Section) -> Vocabulary | str:
    if "vocabulary" not in root.nodes:
        return Vocabulary()
    section = root.section("vocabulary")
    if "from" not in section.nodes:
        section.only([*(f.name for f in fields(Vocabulary)), "from"])
        made: Vocabulary = section.made(Vocabulary)
        return made
    section.only(["from"])
    return section.text("from")


def _training(root: Section, vocabulary: Vocabulary | str) -> Pretraining:
    given: dict[str, Any] = {}
    blamed = dict(root.nodes)
    if "training" in root.nodes:
        section = root.section("training")
        given = section.values(Pretraining, without=_ELSEWHERE)
        blamed |= section.nodes
    given["model"] = _model(root, vocabulary)
    given["stages"] = _stages(root)
    if "seed" in root.nodes:
        given["seed"] = root.read("seed", int)
    # What Pretraining refuses may stand in any section: look for the line in all of them.
    whole = Section(root.node, root.label)
    whole.nodes = blamed
    built: Pretraining = whole.build(Pretraining, given)
    return built


def _model(root: Section, vocabulary: Vocabulary | str) -> Architecture:
    values: dict[str, Any] = {}
    section = root
    if "model" in root.nodes:
        section = root.section("model")
        if _VOCABULARY in section.nodes:
            raise section.wrong(
                _VOCABULARY,
                f"the size of the vocabulary is no field of 'model': {_VOCABULARY!r}",
                hint="Give it as vocabulary: {size: …}",
            )
        values = section.values(Architecture, without=[_VOCABULARY])
    if isinstance(vocabulary, Vocabulary):
        values[_VOCABULARY] = vocabulary.size
    made: Architecture = section.build(Architecture, values)
    return made


def _stages(root: Section) -> tuple[Stage, ...]:
    if "objective" in root.nodes and "stages" in root.nodes:
        raise root.wrong("stages", "give either 'objective' or 'stages', not both")
    if "stages" in root.nodes:
        stages: tuple[Stage, ...] = root.read("stages", tuple[Stage, ...])
        return stages
    if "objective" in root.nodes:
        return (Stage(root.section("objective").made(Objective)),)
    return (Stage(Objective()),)


def write_recipe(recipe: Recipe, path: str | Path) -> Path:
    """Write every field, so that other defaults change nothing; paths will start from there."""
    import yaml

    place = Path(path)
    moved = recipe.seen_from(place.parent)
    text = yaml.safe_dump(sections_of(moved), sort_keys=False, allow_unicode=True)
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"The recipe cannot be written to {place}: {error.strerror or error}.",
            hint="Choose a folder you may write to.",
        ) from error
    return place


def sections_of(recipe: Recipe) -> dict[str, Any]:
    """A recipe as plain values, in the sections of its file."""
    training = asdict(recipe.training)
    model, stages, seed = (training.pop(name) for name in _ELSEWHERE)
    del model[_VOCABULARY]
    given = recipe.vocabulary
    text = asdict(recipe.text)
    unused = OF_CORPORA if recipe.text.files else ("files",)  # and would be refused
    sections = {
        "text": _without(text, unused),
        "vocabulary": {"from": given} if isinstance(given, str) else asdict(given),
        "model": model,
        "stages": stages,
        "training": training,
        "seed": seed,
        "card": _without(asdict(recipe.card), ()),
    }
    plain: dict[str, Any] = _plain(sections)
    return plain


def _without(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    left_out = set(names)
    return {k: v for k, v in values.items() if k not in left_out and v is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
