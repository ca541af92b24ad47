"""Questions to probes: what tasks ask, what cannot be asked, and that nothing is lost unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted_trees as planted
from bertology.annotated.probe_questions import (
    UNASKED,
    UNSEEN,
    NoQuestionsError,
    ProbeQuestions,
    questions_of,
)
from bertology.annotated.probed_tasks import PROBED
from bertology.annotated.states import States, word_states
from bertology.annotated.word_labels import COUNTED, Labelled, ProbedTask, sentence, word
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import DataError


class Made(States):
    """States that were not computed, of all words but the `lost` ones (example, word)."""

    def __init__(self, corpus: Corpus, lost: set[tuple[int, int]] = frozenset()) -> None:  # type: ignore[assignment]
        there = [
            [(at, place) not in lost for place in range(len(example.get("words")))]
            for at, example in enumerate(corpus)
        ]
        self.there = np.array([one for row in there for one in row])
        self.counts, self.folder = np.array([sum(row) for row in there]), Path()


def example(number: int = 0, words: str = "the old dog barks", **about: Any) -> Example:
    return Example(str(number), f"{words} {number}", annotations={"words": words.split(), **about})


def corpus(examples: list[Example], *fields: str) -> Corpus:
    return Corpus("made", examples, frozenset({Field.TEXT, Field.WORDS, *map(Field, fields)}))


def asked(task: str, **about: Any) -> list[tuple[Any, ...]]:
    found = PROBED[task].ask(example(**about), 0)
    more = [found.about] if found.about is not None else []
    return list(zip(found.units, found.labels, *more, strict=True))


def entities(n: int = 40, *, kinds: str = "AB", seed: int = 0) -> list[Example]:
    rng = np.random.default_rng(seed)
    return [
        example(i, entities=[[0, 3, str(rng.choice(list(kinds)))], [3, 4, "A"]]) for i in range(n)
    ]


def counted(found: ProbeQuestions, task: int = 0) -> dict[str, int]:
    return dict(zip(COUNTED, map(int, found.about[task]), strict=True))


# What tasks ask -------------------------------------------------------------------------------


def test_spans_have_their_labels() -> None:
    chunks = [[0, 3, "NP"], [3, 4, "VP"]]
    assert asked("chunk", chunks=chunks) == [(((0, 3),), "NP"), (((3, 4),), "VP")]
    assert [label for _, label in asked("chunk-tag", chunks=chunks)] == [
        "B-NP", "I-NP", "I-NP", "B-VP",
    ]  # fmt: skip
    assert [label for _, label in asked("chunk-tag", chunks=chunks[:1])][-1] == "O"


def test_phrases_around_one_another() -> None:
    """Readers give what is inside first; one span with several labels has all of them."""
    phrases = [[0, 3, "NP"], [3, 4, "VP"], [0, 4, "S"], [0, 4, "TOP"], [1, 2]]
    assert asked("constituent", constituents=phrases) == [
        (((0, 3),), "NP"),
        (((3, 4),), "VP"),
        (((0, 4),), "TOP+S"),
    ]
    for task, labels in (
        ("parent-phrase", ["NP", "NP", "NP", "VP"]),
        ("grandparent-phrase", ["S"] * 4),
        ("great-grandparent-phrase", ["TOP"] * 4),
    ):
        assert [label for _, label in asked(task, constituents=phrases)] == labels


def test_the_labelled_one_of_a_pair_comes_first() -> None:
    verb, noun = (3, 4), (0, 3)
    assert asked("role", arguments=[[3, 4, 0, 3, "ARG0"]]) == [((noun, verb), "ARG0")]
    assert asked("entity-relation", entity_relations=[[3, 4, 0, 3, "X"]]) == [((noun, verb), "X")]
    assert asked("frame-element", roles={"Agent": (0, 3), "Agent#2": (1, 2)}, predicate=[3]) == [
        ((noun, verb), "Agent"),
        (((1, 2), verb), "Agent"),
    ]
    assert asked("frame-element", roles={"agent": [0, 3]}, verb=3) == [((noun, verb), "agent")]
    with pytest.raises(DataError, match="neither a predicate nor a verb"):
        asked("frame-element", roles={"agent": [0, 3]})
    properties = {"aware": True, "created": False}
    assert asked("proto-role", proto_roles=[[3, 4, 0, 3, properties]]) == [
        ((noun, verb), "yes", "aware"),
        ((noun, verb), "no", "created"),
    ]


def test_mentions_with_their_antecedent_and_another() -> None:
    clusters = [[(0, 1), (2, 3)], [(3, 4)]]
    same, other = asked("coreference", coreference=clusters)
    assert same == (((2, 3), (0, 1)), "same")
    assert other == (((2, 3), (3, 4)), "other")
    assert asked("coreference", coreference=clusters[:1]) == []


def test_every_task_of_the_grammar_can_be_asked() -> None:
    from bertology.data import load_corpus

    given = load_corpus("grammar", limit=60)
    found = {name for name, task in PROBED.items() if task.fields <= set(map(str, given.fields))}
    assert found == {
        "pos", "chunk-tag", "chunk", "relation", "parent", "grandparent", "great-grandparent",
        "arc", "arc-relation", "frame-element", "coreference",
    }  # fmt: skip
    for name in found:
        labels = [label for one in given for label in PROBED[name].ask(one, 0).labels]
        assert len(set(labels)) > 1


# What becomes of questions --------------------------------------------------------------------


def test_spans_are_numbers_of_states() -> None:
    given = corpus(entities(), "entities")
    found = questions_of(given, Made(given), [PROBED["entity"]], seed=0)
    assert found.units.shape == (80, 1, 2)
    assert found.units[:3, 0].tolist() == [[0, 3], [3, 4], [4, 7]]
    assert (found.examples == np.arange(80) // 2).all()
    assert counted(found)["classes"] == 2
    everything = ProbedTask(
        "whole", "", frozenset(), lambda one, seed: Labelled([(sentence(one),)], [one.id[-1]])
    )
    found = questions_of(given, Made(given), [everything], seed=0)
    assert (found.units[:, 0] == np.arange(40)[:, None] * 4 + [0, 4]).all()


def test_words_without_states_are_left_out_and_counted() -> None:
    given = corpus(entities(), "entities")
    lost = {(0, 2), (5, 3), (6, 0), (6, 1), (6, 2)}
    found = questions_of(given, Made(given, lost), [PROBED["entity"]], seed=0)
    told = counted(found)
    assert (told["cut"], told["partly"], len(found.units)) == (2, 1, 77)
    # Numbers go on without what is lost: the second entity of the first text is state 2.
    assert found.units[0, 0].tolist() == [2, 3]
    every = {(i, place) for i in range(40) for place in range(4)}
    with pytest.raises(NoQuestionsError, match="80 spans have words without a state"):
        questions_of(given, Made(given, every), [PROBED["entity"]], seed=0)


def test_sentences_that_the_model_cuts_off_are_counted() -> None:
    """The planted model reads 64 tokens, and no piece of an empty word."""
    reader = planted.encoder(planted.random_model())
    rng = np.random.default_rng(0)
    examples = []
    for i in range(30):
        words = [str(w) for w in rng.choice(planted.WORDS, 80 if i == 2 else 5)]
        about = {
            "words": words,
            "entities": [[j, j + 2, "AB"[j % 2]] for j in range(len(words) - 1)],
        }
        examples.append(Example(str(i), " ".join(words), annotations=about))
    given = corpus(examples, "entities")
    states = word_states(reader, given)
    found = questions_of(given, states, [PROBED["entity"]], seed=0)
    told = counted(found)
    assert states.missing == 80 - (64 - 2)
    assert (told["partly"], told["cut"]) == (1, 17)


def test_answers_of_other_splits_and_rare_ones_are_counted() -> None:
    examples = entities()
    examples[2].annotations["entities"][0][2] = "NEW"  # type: ignore[index]
    examples[0].annotations["entities"][0][2] = "ONCE"  # type: ignore[index]
    given = corpus(examples, "entities")
    found = questions_of(given, Made(given), [PROBED["entity"]], seed=0)
    told = counted(found)
    assert (told["unseen"], told["once"], told["classes"]) == (1, 1, 3)
    (question,) = found.questions
    assert (question.labels == UNSEEN).sum() == 1
    assert found.counts.sum() == 16  # it is asked, and cannot be right
    assert UNASKED not in question.labels


def test_two_answers_to_one_question_are_counted() -> None:
    given = corpus(
        [example(i, arguments=[[3, 4, 0, 3, "AB"[i % 2]], [3, 4, 0, 3, "C"]]) for i in range(30)],
        "arguments",
    )
    found = questions_of(given, Made(given), [PROBED["role"]], seed=0)
    assert (counted(found)["doubled"], counted(found)["classes"]) == (30, 2)


def test_properties_are_questions_of_one_task() -> None:
    rng = np.random.default_rng(0)
    given = corpus(
        [
            example(i, proto_roles=[[3, 4, 0, 3, {
                "aware": bool(rng.random() < 0.5), "moved": bool(rng.random() < 0.3), "all": True,
            }]])
            for i in range(40)
        ],
        "proto_roles",
    )  # fmt: skip
    found = questions_of(given, Made(given), [PROBED["proto-role"]], seed=0)
    assert [one.name for one in found.questions] == ["aware", "moved"]
    assert (found.tasks, found.task_of.tolist()) == (["proto-role"], [0, 0])
    assert counted(found)["constant"] == 1
    assert (found.counts[:, 0] == 2).all()
    hits = np.ones((40, 2, 3), np.uint16)
    assert found.of_examples(hits).shape == (8, 1, 3)
    assert (found.of_examples(hits) == 2).all()
    assert found.of_tasks(np.ones((2, 3))).tolist() == [[2, 2, 2]]


def test_the_same_text_is_never_on_both_sides() -> None:
    same = [Example(str(i), f"text {i // 3}", annotations=e.annotations)
            for i, e in enumerate(entities(60))]  # fmt: skip
    given = corpus(same, "entities")
    found = questions_of(given, Made(given), [PROBED["entity"]], seed=0)
    by_text: dict[str, set[int]] = {}
    for row, at in enumerate(found.examples):
        by_text.setdefault(same[at].text, set()).add(int(found.split[row]))
    assert all(len(parts) == 1 for parts in by_text.values())
    assert set(found.split) == {0, 1, 2}


def test_the_most_frequent_label_is_of_all_words_or_of_the_last() -> None:
    names = ["new york", "old york", "big town", "red town"]
    rng = np.random.default_rng(0)
    examples = []
    for i in range(60):
        which = int(rng.integers(3)) if i % 10 not in (2, 7) else 3  # "red town" is only tested
        about = {"words": names[which].split(), "entities": [[0, 2, "CITY" if which < 2 else "X"]]}
        examples.append(Example(str(i), f"{names[which]} {i}", annotations=about))
    given = corpus(examples, "entities")
    found = questions_of(given, Made(given), [PROBED["entity"]], seed=0)
    assert (found.frequent == found.counts).all()  # by "town"
    control = found.questions[0].control[0]
    by_last = {e.get("words")[-1]: set() for e in examples}
    for row, at in enumerate(found.examples):
        by_last[examples[at].get("words")[-1]].add(int(control[row]))
    assert all(len(labels) == 1 for labels in by_last.values())


def test_tasks_without_two_answers_are_refused_or_left_out() -> None:
    examples = [example(i, entities=[[0, 3, "A"]], pos=["A", "B", "A", "B"]) for i in range(30)]
    given = corpus(examples, "entities", "pos")
    tasks = [PROBED["pos"], PROBED["entity"]]
    with pytest.raises(DataError, match="'entity' has 1 answer in the texts that train"):
        questions_of(given, Made(given), tasks, seed=0)
    found = questions_of(given, Made(given), tasks, seed=0, every=False)
    assert found.tasks == ["pos"]
    with pytest.raises(NoQuestionsError, match="two answers or more"):
        questions_of(given, Made(given), tasks[1:], seed=0, every=False)


def test_a_word_is_a_span_of_one() -> None:
    assert word(3) == (3, 4)
