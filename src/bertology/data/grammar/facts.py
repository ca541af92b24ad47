"""Facts that most people know, written down by us: what is asked where no corpus of facts is here.

Each relation has its cardinality (1-1, N-1, N-M), wordings with [X] for the subject and [Y] for the
answer, and subjects by answer. Answers are single words. Subjects of `native-language` and
`country-of-birth` are people; some of their names mislead (Marie Curie spoke Polish, George Orwell
was born in India). Some names of cities hold the answer (Mexico City).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from bertology.data.clozes import worded
from bertology.data.grammar.lexicon import LEXICON, read_table
from bertology.data.grammar.rows import Row

SPLIT = "test"  # nobody learns from them, and they are too few to be split


@dataclass(frozen=True)
class KnownRelation:
    """A relation in several wordings, with the subjects of each answer."""

    cardinality: str
    wordings: tuple[str, ...]
    subjects: Mapping[str, str]  # answer -> subjects, separated by commas

    def facts(self) -> list[tuple[str, str]]:
        """Subject and answer of each fact."""
        return [
            (subject.strip(), answer)
            for answer, subjects in self.subjects.items()
            for subject in subjects.split(",")
        ]


RELATIONS = {
    name: KnownRelation(known["cardinality"], tuple(known["wordings"]), known["subjects"])
    for name, known in read_table("facts").items()
}


def fact_rows(seed: int, size: int | None) -> list[tuple[str, dict[str, object]]]:
    """Text and annotation of all facts, or of so many drawn by the seed, relation by relation."""
    rows: list[tuple[str, dict[str, object]]] = [
        (
            worded(relation.wordings[0], subject),
            {
                "answer": [answer],
                "group": name,
                "entity": subject,
                "wordings": relation.wordings,
                "cardinality": relation.cardinality,
            },
        )
        for name, relation in RELATIONS.items()
        for subject, answer in relation.facts()
    ]
    if size is None or size >= len(rows):
        return rows
    kept = sorted(random.Random(seed).sample(range(len(rows)), size))
    return [rows[i] for i in kept]


# Analogies of the grammar's words: "cat" is to "cats" as "dog" is to "dogs".
#
# WORDS are the four words, GROUP is the section, as in the reader of published analogies.

_GENDERS = """
king queen prince princess actor actress waiter waitress man woman boy girl uncle aunt father mother
brother sister grandfather grandmother son daughter nephew niece
""".split()


def analogy_pairs() -> dict[str, list[tuple[str, str]]]:
    """The pairs of words of each section."""
    verbs = {verb.lemma: verb for verb in (*LEXICON.transitive, *LEXICON.intransitive)}
    nouns = [noun for noun in LEXICON.nouns.values() if not noun.mass]
    return {
        "plural": [(noun.lemma, noun.plural) for noun in nouns],
        "past": [(v.lemma, v.past) for v in verbs.values() if v.past != v.lemma],
        "third-person": [(v.lemma, v.third) for v in verbs.values()],
        "ing": [(v.lemma, v.ing) for v in verbs.values()],
        "adverb": _adverbs(),
        "gender": list(zip(_GENDERS[::2], _GENDERS[1::2], strict=True)),
        "capital": RELATIONS["capital-of"].facts(),
    }


def _adverbs() -> list[tuple[str, str]]:
    """Adjectives whose adverb the lexicon has too."""
    nouns = LEXICON.nouns.values()
    adjectives = {word for noun in nouns for word in (*noun.adjectives, *noun.predicates)}
    adverbs = {word for verb in LEXICON.transitive for word in verb.manner}
    made = {w: f"{w[:-1]}ily" if w.endswith("y") else f"{w}ly" for w in adjectives}
    return sorted((word, adverb) for word, adverb in made.items() if adverb in adverbs)


def analogy_rows(seed: int, n: int) -> Iterator[Row]:
    """So many questions, or all, one section after the other; what is drawn depends on the seed."""
    rng = random.Random(seed)
    sections = [
        [(name, question) for question in _questions(pairs, n, rng)]
        for name, pairs in analogy_pairs().items()
    ]
    turns = chain.from_iterable(zip_longest(*sections))
    for name, words in islice(filter(None, turns), n):
        yield " ".join(words), None, None, {"words": list(words), "group": name}


def _questions(
    pairs: list[tuple[str, str]], n: int, rng: random.Random
) -> list[tuple[str, str, str, str]]:
    """At most `n` of all ordered couples of pairs."""
    others = len(pairs) - 1
    drawn = rng.sample(range(len(pairs) * others), min(n, len(pairs) * others))
    found = []
    for number in drawn:
        first, second = divmod(number, others)
        second += second >= first  # never the same pair
        found.append((*pairs[first], *pairs[second]))
    return found
