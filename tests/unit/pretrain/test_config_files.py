"""Recipes: what is read is what stands there, and what is wrong is told with its line."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from bertology.cli.pretrain import EXAMPLE
from bertology.errors import DataError
from bertology.train.fresh import Architecture
from bertology.train.pretrain.config import (
    Masking,
    Objective,
    Phase,
    Pretraining,
    Stage,
    Vocabulary,
)
from bertology.train.pretrain.config_files import parse_recipe, read_recipe, write_recipe
from bertology.train.pretrain.recipe import Card, Recipe, TextCredit, TextSource

WHOLE = """\
text:
  files: [corpus/*.txt.xz, more.txt]
  held_out: 0.01
  shards: 2
  sources:
    - {name: Wikipedia, licence: CC BY-SA 3.0, words: 30000000}
vocabulary: {size: 8192, lowercase: false}
model: {layers: 12, heads: 12, hidden: 192, max_length: 512, dropout: 0.0}
objective:
  pairing: sop
  masking: {units: words, share: 0.2}
  losses: [mlm, sentence]
training:
  steps: 2e4
  batch_tokens: 65536
  learning_rate: 1e-3
  betas: [0.9, 0.95]
  compile: null
  phases: [{length: 128, share: 0.9}, {length: 512, share: 0.1}]
seed: 3
card: {license: apache-2.0, language: en}
"""


def parse(text: str) -> Recipe:
    return parse_recipe(text, label="recipe.yaml", base=Path("here"))


def refused(text: str) -> str:
    with pytest.raises(DataError) as caught:
        parse(text)
    return str(caught.value)


def test_every_section_is_read() -> None:
    recipe = parse(WHOLE)
    source = TextCredit("Wikipedia", "CC BY-SA 3.0", 30_000_000)
    files = ("corpus/*.txt.xz", "more.txt")
    assert recipe.text == TextSource(files, held_out=0.01, shards=2, sources=(source,))
    assert recipe.vocabulary == Vocabulary(8192, lowercase=False)
    assert recipe.card == Card(license="apache-2.0", language="en")
    assert recipe.base == Path("here")
    objective = Objective("sop", Masking("words", 0.2), ("mlm", "sentence"))
    assert recipe.training == Pretraining(
        model=Architecture(12, 12, 192, vocab_size=8192, max_length=512, dropout=0.0),
        stages=(Stage(objective),),
        steps=20_000,
        batch_tokens=65536,
        learning_rate=1e-3,
        betas=(0.9, 0.95),
        phases=(Phase(128, 0.9), Phase(512, 0.1)),
        seed=3,
    )


def test_what_is_left_out_has_its_default() -> None:
    recipe = parse("text: {corpus: grammar}")
    vocabulary = Vocabulary()
    model = Architecture(vocab_size=vocabulary.size)
    assert recipe == Recipe(TextSource(corpus="grammar"), training=Pretraining(model=model))


def test_a_tokenizer_that_is_there_may_be_named() -> None:
    assert parse("text: {corpus: grammar}\nvocabulary: {from: ../bert}").vocabulary == "../bert"
    assert "unknown field 'vocabulary.size'" in refused(
        "text: {corpus: grammar}\nvocabulary: {from: x, size: 3}"
    )


def test_stages_take_the_place_of_one_objective() -> None:
    stages = """\
stages:
  - {objective: {pairing: full-sentences, losses: [mlm]}}
  - {objective: {pairing: nsp}, begins: 0.5, weight: 2}
"""
    read = parse("text: {corpus: grammar}\n" + stages).training.stages
    first = Stage(Objective("full-sentences", losses=("mlm",)))
    assert read == (first, Stage(Objective(), begins=0.5, weight=2.0))
    both = refused("text: {corpus: grammar}\nobjective: {}\n" + stages)
    assert "recipe.yaml, line 4: give either 'objective' or 'stages', not both" in both


def changed(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (changed("steps:", "stepz:"), ["line 14", "'training.stepz'", "Did you mean 'steps'?"]),
        (changed("units:", "unit:"), ["line 11", "'objective.masking.unit'", "'units'"]),
        (changed("seed: 3", "sead: 3"), ["line 20", "'sead'", "Did you mean 'seed'?"]),
        (changed("licence:", "license:"), ["line 6", "'text.sources[0].license'", "'licence'"]),
        (changed("licence: CC BY-SA 3.0, ", ""), ["line 6", "[0].licence' is missing"]),
        (changed("2e4", "many"), ["line 14", "'training.steps' must be a whole number", "'many'"]),
        (changed("2e4", "2.5"), ["line 14", "whole number. Got 2.5"]),
        (changed("1e-3", ".inf"), ["line 16", "'training.learning_rate' must be a number"]),
        (changed("1e-3", "-1.0"), ["line 16", "'learning_rate'", "be above 0"]),
        (changed("false", "maybe"), ["line 7", "'vocabulary.lowercase' must be true or false"]),
        (changed("[0.9, 0.95]", "[0.9]"), ["line 17", "'training.betas' must be a list of 2"]),
        (changed("[mlm, sentence]", "mlm"), ["line 12", "'objective.losses' must be a list"]),
        (changed("[mlm, sentence]", "[mlm, sentense]"), ["line 12", "Did you mean 'sentence'?"]),
        (changed("pairing: sop", "pairing: nps"), ["line 10", "pairing 'nps'", "Did you mean"]),
        (changed("pairing: sop", "pairing: stream"), ["line 10", "no relation for the loss"]),
        (changed("units: words", "units: 3"), ["line 11", "must be text"]),
        (changed("share: 0.9}", "share: 0.8}"), ["line 19", "shares that sum to 1"]),
        (changed("max_length: 512", "max_length: 64"), ["line 8", "max_length of at least 512"]),
        (changed("hidden: 192", "hidden: 190"), ["line 8", "multiple of heads"]),
        (changed("hidden: 192", "vocab_size: 9"), ["line 8", "vocabulary: {size: …}"]),
        (changed("held_out: 0.01", "held_out: 1"), ["line 3", "between 0 and 1"]),
        (changed("shards: 2", "together: 2"), ["line 4", "left out where files are given"]),
        (changed("seed: 3", "text: {}"), ["line 20", "'text' is given twice"]),
        (changed("seed: 3", "seed: [3"), ["not valid YAML"]),
        ("vocabulary: {}", ["line 1", "'text' is missing"]),
        ("text: {held_out: 0.1}", ["line 1", "or else corpus"]),
        ("text: words", ["line 1", "must be a mapping"]),
        ("- text", ["line 1", "must be a mapping"]),
        ("", ["is empty", "--example"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_file_line_and_field(text: str, words: list[str]) -> None:
    message = refused(text)
    assert message.startswith("recipe.yaml")
    for word in words:
        assert word in message


def test_a_written_recipe_is_read_again_as_it_was(tmp_path: Path) -> None:
    recipe = replace(parse(WHOLE), base=tmp_path)
    read = read_recipe(write_recipe(recipe, tmp_path / "again.yaml"))
    assert read == recipe
    of_corpus = parse("text: {corpus: grammar, together: 3}\nvocabulary: {from: some/model}")
    assert read_recipe(write_recipe(of_corpus, tmp_path / "corpus.yaml")) == of_corpus


def test_paths_lead_to_the_same_files_from_another_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "bert").mkdir()
    text = "text: {files: [a/*.txt, /b.txt]}\nvocabulary: {from: bert}"
    recipe = parse_recipe(text, label="r", base=tmp_path)
    moved = read_recipe(write_recipe(recipe, tmp_path / "runs" / "as-run.yaml"))
    assert moved.text.files == ("../a/*.txt", "/b.txt")
    assert moved.vocabulary == "../bert"


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no recipe"):
        read_recipe(tmp_path / "none.yaml")
    with pytest.raises(DataError, match="is a folder"):
        read_recipe(tmp_path)


def test_every_snippet_of_the_documentation_is_a_recipe() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "pretrain.md"
    snippets = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    assert snippets
    for snippet in snippets:
        parse(snippet if "text:" in snippet else "text: {corpus: grammar}\n" + snippet)


def test_the_documentation_names_every_field() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "pretrain.md"
    told = page.read_text(encoding="utf-8")
    elsewhere = {"model", "stages", "seed", "vocab_size"}
    for kind in (TextSource, Vocabulary, Architecture, Objective, Stage, Pretraining, Card):
        for f in fields(kind):
            assert f.name in elsewhere or f"`{f.name}`" in told, f"{kind.__name__}.{f.name}"


def test_the_example_is_a_recipe() -> None:
    assert parse(EXAMPLE).text.corpus == "grammar"


def test_a_plan_counts_the_vocabulary_that_is_there(tmp_path: Path, tokenizer: Any) -> None:
    from bertology.train.pretrain.project import plan

    tokenizer.save_pretrained(tmp_path / "pieces")
    (tmp_path / "a.txt").write_text("One.\n")
    text = "text: {files: [a.txt]}\nvocabulary: {from: pieces}\n"
    found = plan(parse_recipe(text, label="recipe.yaml", base=tmp_path))
    assert found.vocabulary == len(tokenizer)
