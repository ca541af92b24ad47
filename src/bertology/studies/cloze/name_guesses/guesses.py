"""What a model makes of a name: the person-name heuristic of Poerner et al. (2019).

"Jean is a common name in the following language: [MASK]." Each part of a name is asked about by
itself; what the model says to any of them could be guessed without knowing the person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.errors import ParameterError

if TYPE_CHECKING:
    from bertology.data.corpus import Example
    from bertology.studies.cloze.facts.asked import FactBook

NOUNS: Mapping[str, str] = {
    "P19": "city",
    "P20": "city",
    "P27": "country",
    "P103": "language",
    "P1412": "language",
    "place_of_birth": "city",
    "place_of_death": "city",
    "country-of-birth": "country",
    "native-language": "language",
}
"""Relations about people, and what is asked about their names: LAMA's, as in its script that makes
LAMA-UHN, and those of our own list of facts."""


@dataclass(frozen=True)
class NameGuess:
    """What the parts of one name make a model say."""

    words: frozenset[str]  # the best words of the vocabulary for any part
    piece: int | None  # the relation's object that the parts make likeliest together


def nouns_given(given: Sequence[str]) -> dict[str, str]:
    """The known relations about people, and those that a user names: `born=city`."""
    found = dict(NOUNS)
    for one in given:
        relation, equals, noun = one.rpartition("=")
        if not (relation and equals and noun.strip()):
            must = "be a relation and what to ask about its names, such as 'born=city'"
            raise ParameterError("nouns", "NameGuesses", must, one)
        found[relation] = noun.strip()
    return found


def noun_of(relation: str, nouns: Mapping[str, str]) -> str:
    """What is asked about the names of a relation; "" where they are not of people."""
    return nouns.get(relation, "")


def name_text(part: str, noun: str) -> str:
    """The question about one part of a name."""
    return f"{part} is a common name in the following {noun}: [MASK]."


def guesses(
    book: FactBook,
    facts: Sequence[Example],
    nouns: Sequence[str],
    *,
    top: int,
    tokens_per_batch: int,
) -> Iterator[NameGuess]:
    """What the names of these facts make the book's model say."""
    from bertology.model.masked_lm.clozes import Clozes
    from bertology.model.masked_lm.questions import Question

    texts = [
        [name_text(part, noun) for part in dict.fromkeys(str(fact.get("entity")).split())]
        for fact, noun in zip(facts, nouns, strict=True)
    ]
    objects = [book.objects(fact) for fact in facts]
    engine = Clozes(
        book.encoder,
        top_k=min(top, int(book.encoder.config.vocab_size)),
        tokens_per_batch=tokens_per_batch,
    )
    answers = engine.answers(
        Question(text, answers=of, blank=0)
        for some, of in zip(texts, objects, strict=True)
        for text in some
    )
    for some, of in zip(texts, objects, strict=True):
        said = [next(answers) for _ in some]
        words = frozenset(p.word.lower() for one in said for p in one.top[0])
        likely = np.mean([one.log_probabilities[0] for one in said], axis=0)
        yield NameGuess(words, of[int(likely.argmax())] if of else None)


def right_words(book: FactBook, example: Example) -> frozenset[str]:
    """The right answers as the vocabulary spells them."""
    decode = book.encoder.tokenizer.decode
    return frozenset(decode([piece]).strip().lower() for piece in book.right(example))
