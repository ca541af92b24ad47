"""Recipes in YAML: read strictly, and written so that they can be read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

from bertology.drafts import write_whole
from bertology.errors import DataError, StoreError
from bertology.plain_files import local_path, read_utf8
from bertology.train.fresh import Architecture
from bertology.train.pretrain.config import Objective, Pretraining, Stage, Vocabulary
from bertology.train.pretrain.recipe import OF_CORPORA, Card, Recipe, TextSource
from bertology.yaml_sections import Section, parse_section

_SECTIONS = ("text", "vocabulary", "model", "objective", "stages", "training", "seed", "card")
_ELSEWHERE = ("model", "stages", "seed")  # fields of Pretraining that are sections of their own
_VOCABULARY = "vocab_size"  # of the model: as large as the vocabulary is


def read_recipe(path: str | Path) -> Recipe:
    """The recipe in a file; its paths start from the file's folder."""
    place = local_path(path)
    if not place.exists():
        raise DataError(
            f"There is no recipe {str(place)!r}.",
            hint="Start from an example: bertology pretrain --example > recipe.yaml",
        )
    return parse_recipe(read_utf8(place), label=str(place), base=place.parent)


def parse_recipe(text: str, *, label: str, base: Path) -> Recipe:
    """The recipe in a YAML `text`; `label` names it in error messages."""
    root = parse_section(text, label=label, hint="See: bertology pretrain --example")
    root.only(_SECTIONS)
    if "text" not in root:
        raise root.wrong(None, "the field 'text' is missing", hint="text: {files: [texts/*.txt]}")
    vocabulary = _vocabulary(root)
    return Recipe(
        text=root.read("text", TextSource),
        vocabulary=vocabulary,
        training=_training(root, vocabulary),
        card=root.read("card", Card) if "card" in root else Card(),
        base=base,
    )


def _vocabulary(root: Section) -> Vocabulary | str:
    if "vocabulary" not in root:
        return Vocabulary()
    section = root.section("vocabulary")
    if "from" not in section:
        section.only([*(f.name for f in fields(Vocabulary)), "from"])
        return section.make(Vocabulary)
    section.only(["from"])
    return section.text("from")


def _training(root: Section, vocabulary: Vocabulary | str) -> Pretraining:
    given: dict[str, object] = {}
    sections = []
    if "training" in root:
        sections = [root.section("training")]
        given = sections[0].values(Pretraining, without=_ELSEWHERE)
    given["model"] = _model(root, vocabulary)
    given["stages"] = _stages(root)
    if "seed" in root:
        given["seed"] = root.read("seed", int)
    # What Pretraining refuses may be a field of `training`, or a section of its own.
    return root.build(Pretraining, given, *sections)


def _model(root: Section, vocabulary: Vocabulary | str) -> Architecture:
    values: dict[str, object] = {}
    section = root
    if "model" in root:
        section = root.section("model")
        if _VOCABULARY in section:
            raise section.wrong(
                _VOCABULARY,
                f"the size of the vocabulary is no field of 'model': {_VOCABULARY!r}",
                hint="Give it as vocabulary: {size: …}",
            )
        values = section.values(Architecture, without=[_VOCABULARY])
    if isinstance(vocabulary, Vocabulary):
        values[_VOCABULARY] = vocabulary.size
    return section.build(Architecture, values)


def _stages(root: Section) -> tuple[Stage, ...]:
    if "objective" in root and "stages" in root:
        raise root.wrong("stages", "give either 'objective' or 'stages', not both")
    if "stages" in root:
        return root.read("stages", tuple[Stage, ...])
    if "objective" in root:
        return (Stage(root.read("objective", Objective)),)
    return (Stage(Objective()),)


def write_recipe(recipe: Recipe, path: str | Path) -> Path:
    """Write every field, so that other defaults change nothing; paths will start from there."""
    import yaml

    place = Path(path)
    moved = recipe.seen_from(place.parent)
    text = yaml.safe_dump(sections_of(moved), sort_keys=False, allow_unicode=True)
    try:
        write_whole(place, text)
    except OSError as error:
        raise StoreError(
            f"The recipe cannot be written to {place}: {error.strerror or error}.",
            hint="Choose a folder you may write to.",
        ) from error
    return place


def sections_of(recipe: Recipe) -> dict[str, object]:
    """A recipe as plain values, in the sections of its file."""
    training = asdict(recipe.training)
    model, stages, seed = (training.pop(name) for name in _ELSEWHERE)
    del model[_VOCABULARY]
    given = recipe.vocabulary
    text = asdict(recipe.text)
    unused = OF_CORPORA if recipe.text.files else ("files",)  # and would be refused
    sections: dict[str, object] = {
        "text": _without(text, unused),
        "vocabulary": {"from": given} if isinstance(given, str) else asdict(given),
        "model": model,
        "stages": stages,
        "training": training,
        "seed": seed,
        "card": _without(asdict(recipe.card), ()),
    }
    return {name: _plain(section) for name, section in sections.items()}


def _without(values: dict[str, object], names: Iterable[str]) -> dict[str, object]:
    left_out = set(names)
    return {k: v for k, v in values.items() if k not in left_out and v is not None}


def _plain(value: object) -> object:
    """Lists in the place of tuples, which YAML does not have."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
