"""What mentions agree in, what may be an antecedent, and how documents are cut."""

from __future__ import annotations

import pytest

from bertology.data.corpus import Example
from bertology.data.words.antecedents import (
    Agreement,
    agree,
    agreement_of,
    mentions_of,
    questions_of,
)
from bertology.data.words.windows import sentence_starts, sentence_texts, windows_of


def _example(text: str, tags: str, *spans: tuple[int, int], **more: object) -> Example:
    about = {"words": text.split(), "pos": tags.split(), "coreference": [[s] for s in spans]}
    return Example("x", text, annotations={**about, **more})


@pytest.mark.parametrize(
    ("text", "tags", "known"),
    [
        ("she", "PRON", ("3", "singular", "feminine")),
        ("We", "PRON", ("1", "plural", None)),
        ("you", "PRON", ("2", None, None)),
        ("which", "PRON", (None, None, None)),
        ("the old king", "DET ADJ NOUN", ("3", "singular", "masculine")),
        ("Mrs. Dalloway", "PROPN PROPN", ("3", "singular", "feminine")),
        ("two boats", "NUM NOUN", ("3", "plural", "neuter")),
        ("John and Mary", "PROPN CCONJ PROPN", ("3", "plural", "masculine")),
        ("three gizmos", "NUM NOUN", ("3", "plural", None)),
        ("the grass", "DET NOUN", ("3", "singular", None)),
        ("the doctor", "DET NOUN", ("3", "singular", "person")),
        ("James", "PROPN", ("3", "singular", "masculine")),
    ],
)  # fmt: skip
def test_what_a_mention_tells(text: str, tags: str, known: tuple[str | None, ...]) -> None:
    example = _example(text, tags, (0, len(text.split())))
    (mention,) = mentions_of(example)
    assert agreement_of(example, mention) == Agreement(*known)


def test_lemmas_tell_the_number() -> None:
    example = _example("the series", "DET NOUN", (0, 2), lemmas=["the", "series"])
    assert agreement_of(example, mentions_of(example)[0]).number == "singular"


def test_what_is_not_known_agrees_and_a_person_is_no_it() -> None:
    he, it, person = (Agreement("3", "singular", g) for g in ("masculine", "neuter", "person"))
    assert agree(he, person)
    assert not agree(it, person)
    assert not agree(he, it)
    assert agree(he, Agreement())
    assert not agree(he, Agreement("1", "singular"))
    assert not agree(he, Agreement("3", "plural"))


def test_a_question_has_a_right_and_a_wrong_answer() -> None:
    example = _example("Ann saw Bob and she left", "PROPN VERB PROPN CCONJ PRON VERB")

    def asked(*clusters: list[tuple[int, int]]) -> list[tuple[int, set[int]]]:
        about = {**example.annotations, "coreference": list(clusters)}
        found = questions_of(mentions_of(Example("x", example.text, annotations=about)))
        return [(q.mention.head, set(q.targets)) for q in found]

    assert asked([(0, 1), (4, 5)], [(2, 3)]) == [(4, {0})]
    assert asked([(0, 1), (4, 5)]) == [], "nothing else to choose"
    assert asked([(0, 1)], [(2, 3)], [(4, 5)]) == [], "nothing right"
    assert asked([(0, 1), (4, 5)], [(0, 3)]) == [(4, {0})], "Ann is the head of both"


def test_sentences_by_annotation_or_full_stops() -> None:
    plain = _example("One . Two ! Three", "NUM PUNCT NUM PUNCT NUM")
    assert sentence_starts(plain) == [0, 2, 4]
    assert sentence_texts(plain) == ["One .", "Two !", "Three"]
    told = _example("One . Two ! Three", "NUM PUNCT NUM PUNCT NUM", sentences=[0, 4])
    assert sentence_starts(told) == [0, 4]


def test_windows_keep_what_lies_inside_and_count_from_their_start() -> None:
    about = {"heads": [1, -1, 0, 4, -1, 4], "relations": list("abcdef")}
    example = _example("Ann ran . She sat .", "PROPN VERB PUNCT PRON VERB PUNCT", (0, 1), **about)
    clusters = [[(0, 1), (3, 4)], [(2, 4)]]
    example = Example(
        "d", example.text, annotations={**example.annotations, "coreference": clusters}
    )
    assert windows_of(example, [3, 3], 9) == [example]
    first, second = windows_of(example, [3, 3], 5)
    assert (first.text, second.text) == ("Ann ran .", "She sat .")
    assert second.id == "d/3"
    assert first.get("coreference") == [[(0, 1)]]
    assert second.get("coreference") == [[(0, 1)]], "what crosses the cut is lost"
    assert first.get("heads") == [1, -1, 0]
    assert second.get("heads") == [1, -1, 1]
    assert second.get("offsets")[0] == (0, 3)
    long = windows_of(example, [9, 9], 5)
    assert [len(w.get("words")) for w in long] == [3, 3], "a long sentence is alone"
