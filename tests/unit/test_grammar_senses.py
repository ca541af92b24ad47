"""Laws of the bundled senses, pairs of words and analogies."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from bertology.data import grammar
from bertology.data.grammar.facts import analogy_pairs
from bertology.data.grammar.senses import SENSES, Sense
from bertology.data.words.piece_words import known_words

FUNCTION = frozenset("the a was were in on out over up away well".split())
SPLITS = ("train", "validation", "test")


def context(sense: Sense, part: int) -> set[str]:
    told = " ".join(sense.clauses[part]).split()
    return {*sense.who[part], *sense.did[part], *told} - FUNCTION


def test_sixteen_nouns_of_two_senses() -> None:
    assert Counter(sense.noun for sense in SENSES) == dict.fromkeys(
        (sense.noun for sense in SENSES[::2]), 2
    )
    assert len(SENSES) == 32
    assert len({(sense.noun, sense.name) for sense in SENSES}) == 32
    for sense in SENSES:
        sizes = [tuple(map(len, part)) for part in (sense.who, sense.did, sense.clauses)]
        assert sizes == [(6, 4), (4, 4), (6, 4)], sense


@pytest.mark.parametrize("sense", SENSES, ids=lambda s: f"{s.noun}-{s.name}")
def test_no_word_of_a_context_is_learnt_and_tested(sense: Sense) -> None:
    assert not context(sense, 0) & context(sense, 1)
    assert sense.noun not in context(sense, 0) | context(sense, 1)


@pytest.mark.parametrize("first", range(0, len(SENSES), 2), ids=lambda i: SENSES[i].noun)
def test_senses_of_a_noun_share_no_word(first: int) -> None:
    one, other = (context(s, 0) | context(s, 1) for s in SENSES[first : first + 2])
    assert not one & other


def test_sentences_of_senses() -> None:
    texts = dict[str, str]()
    for split in SPLITS:
        corpus = grammar.corpus("grammar-senses", split=split, size=640)
        counts = Counter(tuple(e.get("senses")[0][2:]) for e in corpus)
        assert counts == {(f"{s.noun}.n", s.name): 20 for s in SENSES}
        for example in corpus:
            ((first, end, lemma, _),) = example.get("senses")
            words, spans = example.get("words"), example.get("offsets")
            assert words == [example.text[a:b] for a, b in spans]
            assert [f"{w.lower()}.n" for w in words[first:end]] == [lemma]
            assert words.count(words[first]) == 1
            assert example.text not in texts
            texts[example.text] = split


def test_pairs_of_senses() -> None:
    corpus = grammar.corpus("grammar-sense-pairs", split="test", size=320)
    assert Counter(corpus.labels) == {0: 160, 1: 160}
    for example in corpus:
        meant = []
        for text, spans, target in zip(
            example.texts, known_words(example), example.get("targets"), strict=True
        ):
            ((a, b),) = spans[slice(*target)]
            assert text[a:b] == example.get("group")
            told = {text[a:b].lower() for a, b in spans}
            senses = [s for s in SENSES if s.noun == text[a:b] and told & set(s.who[1])]
            meant.append([sense.name for sense in senses])
        assert [len(names) for names in meant] == [1, 1]
        assert (meant[0] == meant[1]) == example.label


def test_pairs_of_words() -> None:
    corpus = grammar.corpus("grammar-word-pairs", split="test")
    scores = {frozenset(e.texts): float(e.get("label")) for e in corpus}
    nouns = sorted(set().union(*scores))
    assert set(scores) == set(map(frozenset, combinations(nouns, 2)))
    assert all(0 <= score <= 10 for score in scores.values())
    for alike, unlike in (
        ("guitar violin", "guitar cow"),
        ("dog cat", "dog car"),
        ("car truck", "car candle"),
        ("knife scissors", "knife bread"),
    ):
        assert scores[frozenset(alike.split())] > 3 + scores[frozenset(unlike.split())]
    few = grammar.corpus("grammar-word-pairs", split="test", size=10, seed=1)
    assert len(few) == 10


def test_analogies_of_the_grammar() -> None:
    pairs = analogy_pairs()
    corpus = grammar.corpus("grammar-analogies", split="test")
    assert len({e.text for e in corpus}) == len(corpus) == 1000
    for example in corpus:
        a, b, c, d = example.get("words")
        known = pairs[example.get("group")]
        assert (a, b) in known
        assert (c, d) in known
        assert (a, b) != (c, d)
    assert {e.get("group") for e in corpus[:7]} == set(pairs)
    assert ("quiet", "quietly") in pairs["adverb"]
    assert ("mouse", "mice") in pairs["plural"]
    assert all(b not in dict(known) for known in pairs.values() for _, b in known)
