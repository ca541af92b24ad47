"""The file of labelled maps: strict when read, safe when written; which maps are drawn."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bertology.annotated.map_types.labelled import bundled_labels
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.map_labels import (
    MAP_TYPES,
    LabelFile,
    MapLabel,
    MapRecipe,
    agreements,
    parse_label,
    read_labels,
)
from bertology.data.map_sampling import in_order_of, sample_maps
from bertology.errors import DataError, ParameterError

RECIPE = MapRecipe("m", "mrpc", "validation", "12", "Größe\n\u2028", None, 3, 7)
LABEL = MapLabel(RECIPE, "block", "ann", 1)
VALUES: dict[str, Any] = json.loads(LABEL.line())


def written(folder: Path, *lines: str) -> Path:
    path = folder / "labels.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# The format ------------------------------------------------------------------------------------


def test_the_keys_are_these() -> None:
    keys = "model corpus split example text text_b layer head label annotator pass"
    assert list(VALUES) == keys.split()
    assert VALUES["pass"] == 1


def test_what_is_written_is_read(tmp_path: Path) -> None:
    odd = MapLabel(replace(RECIPE, text="\ud800", head=0), "diagonal", "ann", 1)
    file = LabelFile(tmp_path / "new" / "labels.jsonl")
    for label in (LABEL, odd):
        file.append(label)
    assert read_labels(file.path) == [LABEL, odd] == file.labels()


def test_the_latest_label_of_a_map_counts(tmp_path: Path) -> None:
    again = replace(LABEL, label="vertical")
    second_pass = replace(LABEL, turn=2)
    other = replace(LABEL, annotator="bob")
    lines = [x.line().decode().strip() for x in (LABEL, second_pass, other, again)]
    assert read_labels(written(tmp_path, *lines)) == [second_pass, other, again]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "verticl"}, "unknown label 'verticl'"),
        ({"layer": -1}, "'layer' must be a whole number from 0"),
        ({"head": True}, "'head' must be a whole number"),
        ({"layer": 1.0}, "'layer' must be a whole number"),
        ({"layer": float("nan")}, "'layer' must be a whole number"),
        ({"pass": 0}, "'pass' must be a whole number from 1"),
        ({"annotator": ""}, "'annotator' must be text"),
        ({"text": 3}, "'text' must be text or null"),
        ({"example": 12}, "'example' must be text"),
        ({"note": "x"}, "it has note"),
        ({"label": None}, "'label' must be text"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = written(tmp_path, json.dumps(VALUES), "", json.dumps({**VALUES, **change}))
    with pytest.raises(DataError, match="line 3") as caught:
        read_labels(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object is needed"),
        ('{"model": "m"}', "it lacks annotator, corpus"),
        (json.dumps(VALUES)[:-1] + ', "pass": 2}', "is given twice"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_lines_of_another_kind_are_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match="line 1") as caught:
        read_labels(written(tmp_path, line))
    assert message in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="bertology annotate --to"):
        read_labels(tmp_path / "none.jsonl")


# Kills and undoing -------------------------------------------------------------------------------


def test_a_kill_at_any_byte_loses_at_most_the_line_it_cut(tmp_path: Path) -> None:
    second = replace(LABEL, label="vertical", turn=2)
    whole = LABEL.line() + second.line()
    first = len(LABEL.line())
    path = tmp_path / "labels.jsonl"
    last = len(whole)
    for end in [*range(first, last, 9), last - 2, last - 1, last]:
        path.write_bytes(whole[:end])
        file = LabelFile(path)
        # A line that lacks only its end is whole; a shorter one goes.
        expected = [LABEL, second] if end >= last - 1 else [LABEL]
        assert file.labels() == expected
        file.append(replace(LABEL, annotator="bob"))
        assert read_labels(path)[:-1] == expected


def test_a_cut_line_is_not_read_silently(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(LABEL.line() + b'{"model": "m"')
    with pytest.raises(DataError, match="line 2: it was cut off"):
        read_labels(path)


def test_a_last_line_that_is_wrong_but_whole_is_not_thrown_away(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(LABEL.line() + b'{"model": "m"}')
    with pytest.raises(DataError, match="line 2: it lacks"):
        LabelFile(path)
    assert path.read_bytes().startswith(LABEL.line() + b'{"model": "m"}')


def test_withdrawing_takes_the_last_line_only(tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "labels.jsonl")
    other = replace(LABEL, annotator="bob")
    file.append(LABEL)
    file.append(other)
    assert not file.withdraw(LABEL)
    assert file.withdraw(other)
    assert read_labels(file.path) == [LABEL]
    with file.path.open("ab") as elsewhere:  # another process
        elsewhere.write(other.line())
    assert not file.withdraw(LABEL)
    assert read_labels(file.path) == [LABEL, other]


def test_a_label_outside_the_five_is_never_written(tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "labels.jsonl")
    with pytest.raises(DataError, match="unknown label"):
        file.append(replace(LABEL, label="stripes"))
    assert file.path.read_bytes() == b""


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "labels.jsonl"):
        with pytest.raises(DataError, match="--to FILE"):
            LabelFile(path)


# Agreement ---------------------------------------------------------------------------------------


def test_passes_and_annotators_are_compared_on_the_maps_they_share() -> None:
    chance = random.Random(0)
    labels = []
    for head in range(60):
        recipe = replace(RECIPE, head=head)
        first = chance.choice(MAP_TYPES)
        labels.append(MapLabel(recipe, "block", "ann", 1))  # overruled by the next
        labels.append(MapLabel(recipe, first, "ann", 1))
        if head < 40:
            labels.append(MapLabel(recipe, first, "ann", 2))
        if head >= 50:
            labels.append(MapLabel(recipe, chance.choice(MAP_TYPES), "bob", 1))
    found = {(c.first, c.second): c.agreement for c in agreements(labels)}
    assert set(found) == {(("ann", 1), ("ann", 2)), (("ann", 1), ("bob", 1))}
    same = found[("ann", 1), ("ann", 2)]
    assert same.n == 40
    assert same.kappa is not None
    assert same.kappa.value == 1
    assert found[("ann", 1), ("bob", 1)].n == 10


# Which maps --------------------------------------------------------------------------------------


def corpus_of(lengths: list[int]) -> Corpus:
    examples = [Example(str(i), " ".join(["word"] * n)) for i, n in enumerate(lengths)]
    return Corpus("words", examples, frozenset({Field.TEXT}), split="test")


PLACES = [(layer, head) for layer in range(4) for head in range(6)]


def test_maps_are_spread_over_layers_heads_examples_and_lengths() -> None:
    corpus = corpus_of([1 + i % 50 for i in range(200)])
    recipes = sample_maps("m", corpus, PLACES, 100, seed=3)
    assert len({r.key for r in recipes}) == 100
    assert set(Counter(r.layer for r in recipes).values()) == {25}
    places = Counter((r.layer, r.head) for r in recipes)
    assert set(places.values()) <= {4, 5}
    assert len(places) == 24
    assert max(Counter(r.example for r in recipes).values()) == 1
    lengths = Counter((len(str(r.text).split()) - 1) // 10 for r in recipes)
    assert set(lengths.values()) == {20}
    # Lengths and layers do not march in step.
    both = Counter((r.layer, (len(str(r.text).split()) - 1) // 10) for r in recipes)
    assert len(both) == 20


def test_a_short_list_has_different_layers_and_heads() -> None:
    recipes = sample_maps("m", corpus_of([5] * 30), PLACES, 4)
    assert len({r.layer for r in recipes}) == len({r.head for r in recipes}) == 4


def test_the_draw_depends_on_the_seed_and_on_nothing_else() -> None:
    corpus = corpus_of(list(range(1, 40)))
    one = sample_maps("m", corpus, PLACES, 50, seed=1)
    assert one == sample_maps("m", corpus, list(reversed(PLACES)), 50, seed=1)
    assert one != sample_maps("m", corpus, PLACES, 50, seed=2)
    first, second = (in_order_of(one, seed=1, turn=turn) for turn in (1, 2))
    assert first != second
    assert {r.key for r in first} == {r.key for r in second} == {r.key for r in one}


def test_all_maps_of_a_small_corpus_can_be_had_and_no_more() -> None:
    corpus, places = corpus_of([3, 4, 5]), [*PLACES[:7], PLACES[0]]  # layers of unequal heads
    recipes = sample_maps("m", corpus, places, 21)
    assert len({r.key for r in recipes}) == 21
    with pytest.raises(DataError, match="--count 21"):
        sample_maps("m", corpus, places, 22)
    with pytest.raises(ParameterError):
        sample_maps("m", corpus, places, 0)


# The bundled labels ------------------------------------------------------------------------------


def test_the_bundled_labels_are_of_this_format() -> None:
    labels = bundled_labels()
    assert labels == [parse_label(label.line(), where="here") for label in labels]
    assert len({(x.recipe.key, x.coder) for x in labels}) == len(labels)
