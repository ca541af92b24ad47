"""Links between words by the name of their relation, the limits on them, and moved links."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bertology.data import load_corpus
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.antecedents import head_word, mentions_of
from bertology.data.words.link_moves import (
    COMPARISONS,
    LinkedPieces,
    LinkedSentence,
    LinkLimits,
    comparisons,
    pieces_of,
)
from bertology.data.words.links import Link, check_relation, links_of
from bertology.errors import CapabilityError, UnknownNameError

SHE = Example(
    "she",
    "Some busy bakers cooked while they were happy .",
    annotations={
        "words": "Some busy bakers cooked while they were happy .".split(),
        "pos": ["DET", "ADJ", "NOUN", "VERB", "SCONJ", "PRON", "AUX", "ADJ", "PUNCT"],
        "heads": [2, 2, 3, -1, 7, 7, 7, 3, 3],
        "relations": ["det", "amod", "nsubj", "root", "mark", "nsubj", "cop", "advcl", "punct"],
        "coreference": [[(0, 3), (5, 6)]],
        "frame": "Cooking",
        "verb": 3,
        "subject": 2,
        "object": None,
        "roles": {"agent": (0, 3), "result": (3, 5)},
    },
)


def ends(relation: str, example: Example = SHE) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(link.source, link.target) for link in links_of(example, relation)]


def test_every_relation_reads_its_own_annotation() -> None:
    assert ends("nsubj") == [((3,), (2,)), ((7,), (5,))]
    assert ends("dependency:nsubj") == ends("nsubj")
    assert ends("nsubj:pass") == []
    # The copula is the verb of "they were happy".
    assert ends("verb-subject") == [((3,), (2,)), ((6,), (5,))]
    assert ends("verb-object") == []
    assert ends("coreference") == [((5,), (0, 1, 2))]
    assert ends("noun-pronoun") == [((2,), (5,))]
    # An element that holds the predicate itself is no link.
    assert ends("frame") == [((3,), (0, 1, 2))] == ends("role:agent")
    assert links_of(SHE, "frame")[0].name == "agent"


def test_links_turned_round() -> None:
    assert [(k.source, k.target) for k in links_of(SHE, "nsubj", reverse=True)] == [
        ((2,), (3,)),
        ((5,), (7,)),
    ]


def test_less_annotation_gives_a_plainer_reading() -> None:
    kept = {k: v for k, v in SHE.annotations.items() if k not in ("heads", "coreference")}
    plain = replace(SHE, annotations=kept)
    assert ends("verb-subject", plain) == [((3,), (2,))]
    assert ends("verb-object", plain) == []
    assert ends("noun-pronoun", plain) == [((2,), (5,))]


def test_subtypes_belong_to_their_relation() -> None:
    labels = ["det", "amod", "nsubj:pass", *SHE.annotations["relations"][3:]]
    passive = replace(SHE, annotations={**SHE.annotations, "relations": labels})
    assert ends("nsubj", passive) == [((3,), (2,)), ((7,), (5,))]
    assert ends("nsubj:pass", passive) == [((3,), (2,))]


def test_unknown_relations_and_missing_fields() -> None:
    with pytest.raises(UnknownNameError, match=r"(?s)relation 'nsubjj'.*'nsubj'.*coreference"):
        links_of(SHE, "nsubjj")
    corpus = Corpus("bare", [SHE], frozenset({Field.TEXT, Field.WORDS}))
    with pytest.raises(CapabilityError, match="'frame' needs frame, predicate, roles or"):
        check_relation("frame", corpus)
    check_relation("frame", load_corpus("grammar", limit=3))


def test_the_grammar_has_every_relation() -> None:
    corpus = load_corpus("grammar", limit=60)
    for relation in ("frame", "role:agent", "nsubj", "obj", "verb-subject", "coreference"):
        check_relation(relation, corpus)
        assert any(links_of(example, relation) for example in corpus), relation


# Limits ---------------------------------------------------------------------------------------


def sentence(words: int, **roles: tuple[int, int]) -> Example:
    made = {"words": [f"w{i}" for i in range(words)], "frame": "F", "predicate": [1]}
    return Example(str(roles), " ".join(made["words"]), annotations={**made, "roles": roles})


def test_each_limit_is_counted() -> None:
    examples = [
        sentence(8),  # no link
        sentence(8, Long=(3, 7)),  # four tokens
        sentence(13, Far=(4, 5)),  # thirteen tokens
        sentence(8, Next=(2, 3)),  # neighbours
        sentence(8, Far=(4, 7)),
        sentence(12, Far=(3, 4), Next=(0, 1)),  # one of two links is too near
    ]
    kept, left = LinkLimits("frame").passing(examples, first=100)
    assert left == [6, 5, 4, 3, 1]
    assert [(s.index, len(s.links)) for s in kept] == [(104, 1)]
    kept, left = LinkLimits("frame", every=False).passing(examples)
    assert left == [6, 5, 4, 3, 2]
    assert [[k.name for k in s.links] for s in kept] == [["Far"], ["Far"]]
    kept, left = LinkLimits("frame", max_element=0, max_tokens=0, min_distance=1).passing(examples)
    assert left == [6, 5, 5, 5, 5]
    assert len(LinkLimits("frame").stages) == len(left)


# Moved links ----------------------------------------------------------------------------------


def pieces(text: str, *links: tuple[int, int], direction: str = "both") -> LinkedPieces:
    length = len(text.split()) + 2
    sides = tuple(((a,), (b,)) for a, b in links)
    free = frozenset(range(1, length - 1))
    return LinkedPieces(text, text, sides, free, length, ("a", "b"), direction)


def test_moved_links_keep_what_they_promise() -> None:
    own = [pieces("a b c d e f", (5, 2), direction=d) for d in ("both", "forward", "backward")]
    assert own[0].pairs == ((5, 2), (2, 5))
    assert own[1].pairs == ((5, 2),)
    assert own[2].pairs == ((2, 5),)
    moved = comparisons([own[1], pieces("g h i j k l", (1, 6))], draws=99, seed=0)[0]
    assert sorted(p[0] for _, p in moved["distance"]) == [(4, 1), (6, 3)]
    assert sorted(p[0] for _, p in moved["key"]) == [(1, 2), (3, 2), (4, 2), (6, 2)]
    assert sorted(p[0] for _, p in moved["query"]) == [(5, 1), (5, 3), (5, 4), (5, 6)]
    assert moved["place"] == [(1, ((5, 2),))]


def test_the_choice_is_a_matter_of_seed_and_sentence() -> None:
    some = [pieces(f"a b c d e f g h x{i}", (i % 3 + 1, i % 3 + 5)) for i in range(9)]
    one, again, other = (comparisons(some, draws=2, seed=s) for s in (1, 1, 2))
    assert one == again != other
    assert all(len(moved[kind]) <= 2 for moved in one for kind in COMPARISONS)


def test_where_nothing_can_be_moved() -> None:
    full = pieces("a b c", (1, 3), direction="forward")
    twin = pieces("d e f", (1, 3), direction="forward")
    moved = comparisons([full, twin], draws=5, seed=0)[0]
    assert moved["distance"] == []
    assert moved["place"] == []  # the other sentence has its own link there
    assert moved["key"] == [(0, ((2, 3),))]


def test_links_of_words_that_the_model_does_not_see_whole() -> None:
    from bertology.data.words.alignment import Alignment

    cut = Alignment(((0, 1), (2, 3), (4, 5)), (0, 0, 0), (None, (0, 1), (2, 3), None),
                    (None, 0, 1, None))  # fmt: skip
    example = Example("x", "a b c", annotations={"words": ["A", "b", "c"]})
    whole = LinkedSentence(0, example, (Link((0,), (1,), "x"),))
    found = pieces_of(whole, cut, "forward")
    assert found is not None
    assert (found.pairs, found.words, found.free) == (((1, 2),), ("a", "b"), frozenset({1, 2}))
    assert pieces_of(replace(whole, links=(Link((0,), (2,), "x"),)), cut, "forward") is None


def test_heads_of_mentions_with_and_without_a_tree() -> None:
    """The rule without a tree stops at what follows the noun; a tree says which word hangs out."""
    cases = {
        "the house on the hill": ("DET NOUN ADP DET NOUN", 1),
        "Jane Austen": ("PROPN PROPN", 1),
        "Jane 's old dog": ("PROPN PART ADJ NOUN", 3),
        "Jane 's": ("PROPN PART", 0),
        "a man who knew": ("DET NOUN PRON VERB", 1),
        "John and Mary": ("PROPN CCONJ PROPN", 0),
        "the rich": ("DET ADJ", 1),
        "that man": ("DET NOUN", 1),
    }
    for text, (tags, wanted) in cases.items():
        words = text.split()
        assert head_word(0, len(words), words=words, tags=tags.split()) == wanted, text
    words, tags = "the man saw himself".split(), "DET NOUN VERB PRON".split()
    assert head_word(0, 2, words=words, tags=tags, heads=[1, 2, -1, 2]) == 1
    assert head_word(0, 4, words=words, tags=tags, heads=[1, 2, -1, 2]) == 2


def test_mentions_come_in_the_order_of_their_heads() -> None:
    found = mentions_of(SHE)
    assert [(m.first, m.end, m.head, m.cluster, str(m.kind)) for m in found] == [
        (0, 3, 2, 0, "nominal"),
        (5, 6, 5, 0, "pronoun"),
    ]
    assert not found[0].overlaps(found[1])
