"""Chains of statements and numbers, made by the grammar: answers are right, and nothing leaks."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from bertology.data import load_corpus
from bertology.data.clozes import MASK
from bertology.data.corpus import Example
from bertology.data.grammar.fragments import COMPARISONS
from bertology.data.grammar.numbers import NOTATIONS, in_words
from bertology.errors import UnknownNameError

LESS = {less: more for more, less in COMPARISONS}


def followed(links: dict[str, set[str]], start: str, end: str) -> int | None:
    """How many links lead from one to the other, or None."""
    seen, front, steps = {start}, {start}, 0
    while front:
        if end in front:
            return steps
        front = {b for a in front for b in links.get(a, ())} - seen
        seen |= front
        steps += 1
    return None


def test_comparisons_follow_from_as_many_statements_as_is_said() -> None:
    for example in load_corpus("grammar-chains", only="comparison", limit=300):
        *said, asked = [s.strip() for s in example.text.rstrip(".").split(".")]
        below: dict[str, set[str]] = {}
        for sentence in said:
            one, word, other = re.fullmatch(r"(\w+) is (\w+) than (\w+)", sentence).groups()  # type: ignore[union-attr]
            above, under = (other, one) if word in LESS else (one, other)
            below.setdefault(above, set()).add(under)
        one, other = re.fullmatch(r"So (\w+) is \[MASK\] than (\w+)", asked).groups()  # type: ignore[union-attr]
        more, less = example.get("candidates")
        (answer,) = example.get("answer")
        pair = (one, other) if answer == more else (other, one)
        assert answer in (more, less)
        assert followed(below, *pair) == example.get("steps")
        assert followed(below, *pair[::-1]) is None


def test_containment_follows_from_as_many_statements_as_is_said() -> None:
    for example in load_corpus("grammar-chains", only="containment", limit=300):
        inside = {a: {b} for a, b in re.findall(r"[Tt]he (\w+) is in the (\w+)\.", example.text)}
        (thing,) = re.findall(r"So the (\w+) is in the \[MASK\]\.", example.text)
        right = example.get("answer")[0]
        wrong = next(c for c in example.get("candidates") if c != right)
        assert followed(inside, thing, right) == example.get("steps")
        assert followed(inside, thing, wrong) is None


def test_candidates_of_chains_are_right_equally_often_and_at_any_place() -> None:
    corpus = load_corpus("grammar-chains", split="train", limit=2000)
    for group in ("comparison", "containment"):
        some = [e for e in corpus if e.get("group") == group]
        first = [e.get("answer")[0] == e.get("candidates")[0] for e in some]
        assert abs(np.mean(first) - 0.5) < 4 * 0.5 / np.sqrt(len(some))
        # Neither the last nor the more frequent of the two words is the answer more often.
        for guess in (_later, _more_frequent):
            right = [
                g == e.get("answer")[0] for e in some if (g := guess(e.text, e.get("candidates")))
            ]
            assert abs(np.mean(right) - 0.5) < 4 * 0.5 / np.sqrt(len(right))
    assert Counter(e.get("steps") for e in corpus) == dict.fromkeys(range(1, 6), 400)
    assert all(e.text.count(MASK) == 1 for e in corpus)


def test_questions_of_an_item_differ_in_steps_only() -> None:
    items: dict[str, list[Example]] = {}
    for example in load_corpus("grammar-chains", limit=200):
        items.setdefault(example.get("item"), []).append(example)
    for same in items.values():
        asked = [e.text.rpartition(" So ") for e in same]
        assert len({statements for statements, *_ in asked}) == 1
        assert [e.get("steps") for e in same] == [n for n in range(1, 6) for _ in range(2)]
        for one, other in zip(same[::2], same[1::2], strict=True):
            assert {*one.get("answer"), *other.get("answer")} == set(one.get("candidates"))


def test_whoever_is_asked_about_stands_on_both_sides() -> None:
    """One statement on one of the two does not tell the answer of several steps."""
    for example in load_corpus("grammar-chains", only="comparison", limit=200):
        *said, asked = [s.strip() for s in example.text.rstrip(".").split(".")]
        kept = [said[i] for i in example.get("short")]
        assert len(kept) == example.get("steps") + 2
        for statements in (said, kept):
            above = []
            for sentence in statements:
                one, word, other = sentence.split()[0], sentence.split()[2], sentence.split()[4]
                above.append((other, one) if word in LESS else (one, other))
            for name in (asked.split()[1], asked.split()[-1]):
                assert sum(a == name for a, _ in above) == sum(b == name for _, b in above) == 1


def _later(text: str, candidates: tuple[str, str]) -> str:
    return max(candidates, key=text.rfind)


def _more_frequent(text: str, candidates: tuple[str, str]) -> str | None:
    a, b = (text.count(f" {c}") for c in candidates)
    return candidates[0] if a > b else candidates[1] if b > a else candidates[text.find("is") % 2]


def test_numbers_in_words() -> None:
    words = {0: "zero", 13: "thirteen", 40: "forty", 99: "ninety-nine", 100: "one-hundred"}
    words |= {107: "one-hundred-seven", 132: "one-hundred-thirty-two"}
    assert {n: in_words(n) for n in words} == words
    assert len({in_words(n) for n in range(1000)}) == 1000


def test_values_are_those_written_and_numbers_keep_to_their_split() -> None:
    seen: dict[str, set[str]] = {}
    for split in ("train", "validation", "test", "extrapolation"):
        corpus = load_corpus("grammar-number-values", split=split, limit=600)
        for example in corpus:
            group, text = example.get("group"), example.text
            words = {in_words(n): n for n in range(140)} if group.startswith("words") else {}
            assert example.label == pytest.approx(float(words.get(text, text)))
            limit = NOTATIONS[group].value(NOTATIONS[group].limit)
            assert (float(example.label or 0) > limit) == (split == "extrapolation")
        if split != "extrapolation":
            seen[split] = {e.text for e in corpus}
    assert not seen["train"] & (seen["validation"] | seen["test"])
    assert {e.get("group") for e in corpus} == set(NOTATIONS)


def test_lists_and_sums() -> None:
    lists = load_corpus("grammar-number-lists", split="train", limit=900)
    for example in lists:
        words = list(example.get("words"))
        assert [example.text[a:b] for a, b in example.get("offsets")] == words
        if not example.get("group").startswith("words"):
            values = [float(w) for w in words]
            assert len(set(values)) == 5
            assert int(np.argmax(values)) == example.label
    places = Counter((e.get("group"), e.label) for e in lists)
    assert set(places.values()) == {30}
    # Close together: the longest number is not simply the largest.
    digits = [e for e in lists if e.get("group") == "integers to 9999"]
    assert np.mean([len({len(w) for w in e.get("words")}) == 1 for e in digits]) > 0.8
    # As close in every split, though splits hold more or fewer of the numbers.
    for group in ("integers to 999", "integers to 9999"):
        gaps = []
        for split in ("train", "test", "extrapolation"):
            found = load_corpus("grammar-number-lists", split=split, limit=900)
            values = [sorted(map(int, e.get("words"))) for e in found if e.get("group") == group]
            gaps.append(np.mean([row[-1] - row[-2] for row in values]))
        assert max(gaps) < 1.4 * min(gaps), group
    for example in load_corpus("grammar-number-sums", limit=300):
        if not example.get("group").startswith("words"):
            assert sum(map(float, example.get("words"))) == pytest.approx(example.label)
    with pytest.raises(UnknownNameError, match="Unknown split of grammar-chains 'extrapolation'"):
        load_corpus("grammar-chains", split="extrapolation")
