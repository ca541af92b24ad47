"""Words with distractors, as the grammar, CLAMS and a tagger know them; and what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import bertology as bt
from bertology.data.corpus import Example
from bertology.data.readers.minimal_pairs import read
from bertology.data.words.dependencies import dependency_of, wrong_span
from bertology.errors import BertologyError, DataError
from hostile import spoilt_bytes


def told(example: Example) -> tuple[str, str, list[str]] | None:
    found, words = dependency_of(example), example.annotations["words"]
    if found is None:
        return None
    return words[found.word], words[found.target], [words[i] for i in found.distractors]


def test_agreement_of_the_grammar() -> None:
    for example in bt.load_corpus("grammar-agreement", limit=100, seed=0):
        found = dependency_of(example)
        assert found is not None
        assert found.word == example.annotations["critical"]
        assert found.target == example.annotations["subject"]
        # Attractors, and an object behind the verb.
        between = [p for p in found.distractors if found.target < p < found.word]
        assert len(between) == example.annotations["attractors"]
        assert not found.reflexive


def test_reflexives_of_the_grammar() -> None:
    kinds = {}
    for example in bt.load_corpus("grammar-reflexives", limit=100, seed=0):
        found = dependency_of(example)
        assert found is not None
        assert found.reflexive
        assert (
            found.target
            == example.annotations["heads"].index(example.annotations["heads"][found.word])
            or found.target < found.word
        )
        kinds.setdefault(found.kind, []).append(len(found.distractors))
    assert set(kinds["possessor"]) == set(kinds["clause"]) == {1}
    assert set(kinds["gender"]) == {0}


CLAMS = {
    "prep_anim": ("the taxi driver to the side of the guards laughs", "laugh"),
    "obj_rel_within_anim": ("the authors that the guard likes laugh", "like"),
    "reflexive_sent_comp": ("the banker said the authors hurt themselves", "himself"),
    "simple_agrmt": ("the author laughs", "laugh"),
    "npi_across_anim": ("no authors that the guards like have ever been famous", "the"),
}
WANTED = {
    "prep_anim": ("laughs", "driver", ["guards"]),
    "obj_rel_within_anim": ("likes", "guard", ["authors"]),
    "reflexive_sent_comp": ("themselves", "authors", ["banker"]),
    "simple_agrmt": ("laughs", "author", []),
    "npi_across_anim": None,
}


@pytest.mark.parametrize("group", CLAMS)
def test_templates_of_clams(group: str, tmp_path: Path) -> None:
    good, wrong = CLAMS[group]
    right = {"npi_across_anim": "no"}.get(group, (WANTED[group] or ("",))[0])
    path = tmp_path / f"{group}.txt"
    path.write_text(f"True\t{good}\nFalse\t{good.replace(right, wrong, 1)}\n", encoding="utf-8")
    (example,) = read(path)
    assert told(example) == WANTED[group]


def test_other_languages_have_words_and_no_subject(tmp_path: Path) -> None:
    path = tmp_path / "simple_agrmt.txt"
    path.write_text("True\tder Autor lacht\nFalse\tder Autor lachen\n", encoding="utf-8")
    (example,) = read(path)
    assert example.annotations["words"] == ["der", "Autor", "lacht"]
    assert example.annotations["subject"] is None
    assert told(example) is None


def test_a_tagger_tells_the_subject_where_nobody_else_does() -> None:
    words = "the towns near the road are old".split()
    tags = ["", "subject", "", "", "", "", ""]
    pos = ["DET", "NOUN", "ADP", "DET", "NOUN", "AUX", "ADJ"]
    about = {"words": words, "verb": 5, "tags": tags, "pos": pos, "attractors": 1}
    example = Example("0", " ".join(words), annotations=about)
    assert told(example) == ("are", "towns", ["road"])
    about["tags"] = [""] * 7
    assert told(example) is None


@pytest.mark.parametrize("wrong", [7, -1, "two", 2.5])
def test_positions_that_are_none_are_refused(wrong: object) -> None:
    words = "the dog sees a cat".split()
    for name in ("verb", "subject"):
        about = {"words": words, "verb": 2, "subject": 1, "distractors": [4], name: wrong}
        with pytest.raises(DataError, match="no position"):
            dependency_of(Example("0", " ".join(words), annotations=about))


def test_the_wrong_form_is_found_in_the_bad_sentence() -> None:
    good, bad = "The man defended himself.", "The man defended herself."
    start, end = wrong_span(good, bad, (17, 24)) or (0, 0)
    assert bad[start:end] == "herself"
    assert wrong_span("the dogs run", "the dogs runs", (9, 12)) == (9, 13)
    assert wrong_span("The dogs run", "No dogs run", (9, 12)) is None
    assert wrong_span(good, good, (17, 24)) is None


@pytest.mark.parametrize("seed", range(30))
def test_spoiled_files_are_read_or_refused_in_words(seed: int, tmp_path: Path) -> None:
    lines = "".join(
        f"True\t{good}\nFalse\t{good.replace(good.split()[-1], wrong)}\n"
        for good, wrong in CLAMS.values()
    )
    path = tmp_path / "prep_anim.txt"
    path.write_bytes(spoilt_bytes(lines.encode(), random.Random(seed)))
    try:
        examples = list(read(path))
    except BertologyError:
        return
    for example in examples:
        dependency_of(example)
