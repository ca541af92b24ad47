"""Texts that are broken on purpose, and the share of answers that stay."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertology.data.corpus import Example
from bertology.data.words.classes import TokenClass
from bertology.data.words.malformed import DRAWN, KINDS, Sentence, broken, role_spans
from bertology.stats.answer_flips import kept_answers

TEXT = "The old cat, who sleeps, saw a bird in the garden."


def broken_as(kind: str, text: str = TEXT, **more: object) -> str | None:
    at = text.find("saw")
    return broken(Sentence.of(text, (at, at + 3)), kind, random.Random(0), **more)  # type: ignore[arg-type]


def test_each_kind_does_what_it_says() -> None:
    assert broken_as("reversed") == "garden the in bird a [MASK] sleeps, who cat, old The."
    assert broken_as("first-half") == "The old cat, who sleeps, [MASK]."
    assert broken_as("few-words") == "who sleeps, [MASK] a."
    assert broken_as("few-words", kept=1) == "sleeps, [MASK]."
    plain = Sentence.of("one two three four five !")
    assert broken(plain, "few-words", random.Random(0)) == "three four five !"
    assert broken(plain, "first-half", random.Random(0)) == "one two three !"
    nearby = str(broken(plain, "nearby", random.Random(1))).split()
    assert set(nearby[:3]) == {"one", "two", "three"}


@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=12), st.data())
@settings(max_examples=60, deadline=None)
def test_shuffles_keep_the_words_and_the_blank_stays(words: list[str], data: st.DataObject) -> None:
    blank = data.draw(st.integers(0, len(words)))
    given = [*words[:blank], "X", *words[blank:]]
    at = 2 * blank
    sentence = Sentence.of(" ".join(given) + ".", (at, at + 1))
    kind = data.draw(st.sampled_from([*DRAWN, "reversed"]))
    found = broken(sentence, kind, random.Random(data.draw(st.integers(0, 99))))
    if found is not None:
        left = found.removesuffix(".").split()
        assert left.index("[MASK]") == blank
        assert sorted(left) == sorted([*words, "[MASK]"])
        assert left != [*words[:blank], "[MASK]", *words[blank:]]


def test_what_stays_together_stays_together() -> None:
    words = [str(n) for n in range(12)]
    found = str(broken(Sentence.of(" ".join(words)), "trigrams", random.Random(3))).split()
    blocks = [found[at : at + 3] for at in range(0, 12, 3)]
    assert sorted(blocks) == sorted(words[at : at + 3] for at in range(0, 12, 3))


def test_a_text_that_does_not_change_has_no_broken_form() -> None:
    assert all(broken(Sentence.of("Go!"), kind, random.Random(0)) is None for kind in KINDS)
    assert broken(Sentence.of("[MASK].", (0, 6)), "shuffled", random.Random(0)) is None


def phrases(role: TokenClass, blank: tuple[int, int] | None = None, **marks: object) -> str | None:
    words = ["The", "old", "cat", "of", "mine", "saw", "her", "bird", "."]
    pos = ["DET", "ADJ", "NOUN", "ADP", "PRON", "VERB", "PRON", "NOUN", "PUNCT"]
    text = " ".join(words)
    example = Example("0", text, annotations={"words": words, "pos": pos, **marks})
    (spans,) = role_spans(example, role, [blank])
    return broken(Sentence.of(text, blank), "no-subject", random.Random(0), removed=spans)


def test_subjects_and_objects_go_with_their_phrases() -> None:
    heads = [2, 2, 5, 4, 2, -1, 7, 5, 5]
    relations = ["det", "amod", "nsubj", "case", "nmod", "root", "nmod", "obj", "punct"]
    tree = {"heads": heads, "relations": relations}
    assert phrases(TokenClass.SUBJECT, **tree) == "saw her bird ."
    assert phrases(TokenClass.OBJECT, **tree) == "The old cat of mine saw ."
    tags = {"tags": ["", "", "subject", "", "", "", "", "object", ""]}
    assert phrases(TokenClass.SUBJECT, **tags) == "of mine saw her bird ."
    assert phrases(TokenClass.OBJECT, **tags) == "The old cat of mine saw ."
    assert phrases(TokenClass.SUBJECT, (8, 11), **tags) is None, "the blank is the subject"


def test_kept_answers_are_kappa_by_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    one = rng.integers(0, 3, 40).astype(float)
    other = np.where(rng.random((40, 2)) < 0.6, one[:, None], rng.integers(0, 3, (40, 2)))
    other[5, 1], other[9] = np.nan, np.nan
    found = kept_answers(one, other)
    assert found is not None
    there = [i for i in range(40) if i != 9]

    def share(i: int, j: int) -> float:
        drawn = [x for x in other[j] if np.isfinite(x)]
        return sum(x == one[i] for x in drawn) / len(drawn)

    same = np.mean([share(i, i) for i in there])
    unrelated = np.mean([share(i, j) for i in there for j in there if i != j])
    assert found.same.mean() == pytest.approx(same)
    assert found.unrelated == pytest.approx(unrelated)
    assert found.kept == pytest.approx((same - unrelated) / (1 - unrelated))
    assert found.values.mean() == pytest.approx(found.kept)
    assert found.support[0] - 1e-9 <= found.values.min()
    assert found.values.max() <= found.support[1] + 1e-9


def test_values_tell_how_sure_what_is_kept_is() -> None:
    """The spread of the linearised values is that of the statistic over samples."""
    rng, kept, told = np.random.default_rng(1), [], []
    for _ in range(200):
        one = rng.choice(4, 150, p=[0.4, 0.3, 0.2, 0.1]).astype(float)
        other = np.where(rng.random(150) < 0.5, one, rng.choice(4, 150, p=[0.4, 0.3, 0.2, 0.1]))
        found = kept_answers(one, other[:, None])
        assert found is not None
        kept.append(found.kept)
        told.append(found.values.std(ddof=1) / np.sqrt(150))
    assert np.mean(kept) == pytest.approx(0.5, abs=0.02)
    assert np.mean(told) == pytest.approx(np.std(kept), rel=0.15)


def test_nothing_is_kept_where_all_answers_are_alike() -> None:
    found = kept_answers(np.zeros(30), np.zeros((30, 1)))
    assert found is not None
    assert found.unrelated == 1
    assert np.isnan(found.kept)
    assert kept_answers([1.0], [[1.0]]) is None
