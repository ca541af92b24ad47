"""Relations between the words of the shown text: from its annotation, or else from the tagger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.alignment import Alignment
from bertology.data.words.classes import Specials, SpecialTokens, TokenClass, class_masks
from bertology.data.words.links import Link
from bertology.data.words.piece_words import PieceWords
from bertology.data.words.token_pairs import likely_links, linked_pieces, toward
from bertology.errors import BertologyError
from bertology.server.rankings import Maps, Ranking
from bertology.server.sentences import Sentence

_KINDS = list(TokenClass)
_MOST_LINKS = 6  # that are written out
_MOST_WORDS = 12  # that are named


@dataclass(frozen=True)
class AnnotatedText:
    """An example with tags or with a syntax tree, and the source of its annotation."""

    example: Example
    by: str


@dataclass(frozen=True)
class WordRelation:
    """A relation between words to look for."""

    title: str
    rank: Callable[[Sentence, Maps, AnnotatedText, object], Ranking]


def tagged(text: str, pair: str | None) -> AnnotatedText:
    """Parts of speech, subjects and objects by the bundled tagger; it is made for English."""
    from bertology.annotated.tagger import annotate, find_tagger

    fields = {Field.TEXT} | (set() if pair is None else {Field.TEXT_B})
    corpus = Corpus("here", [Example("here", text, pair)], frozenset(fields))
    return AnnotatedText(annotate(corpus, find_tagger())[0], "the bundled tagger")


def _linking(name: str, *, reverse: bool = False) -> Callable[..., Ranking]:
    """Heads that attend from one end of a link to the other."""

    def rank(
        sentence: Sentence, maps: Maps, known: AnnotatedText, tokenizer: SpecialTokens
    ) -> Ranking:
        from bertology.model.reducers.map_scores import (
            attention_along,
            attention_beyond_position,
        )

        alignment = _words(sentence, known.example).alignment
        links = likely_links(known.example, name)
        links = [link.reversed() for link in links] if reverse else links
        pieces = [(link, linked_pieces(alignment, link)) for link in links]
        complete = [(link, ends) for link, ends in pieces if all(ends)]
        if not complete:
            return Ranking(None, f"None was found in this text by {known.by}.")
        written = [_written(sentence, alignment, link) for link, _ in complete]
        more = " …" if len(written) > _MOST_LINKS else ""
        found = f"{', '.join(written[:_MOST_LINKS])}{more} (by {known.by})"
        ends = [both for _, both in complete]
        beyond = attention_beyond_position(maps, ends)
        return Ranking(attention_along(maps, ends), found, beyond=beyond, source=ends[0][0])

    return rank


def _toward(kind: TokenClass) -> Callable[..., Ranking]:
    """Heads that attend from any word to words of a class."""

    def rank(
        sentence: Sentence, maps: Maps, known: AnnotatedText, tokenizer: SpecialTokens
    ) -> Ranking:
        from bertology.model.reducers.map_scores import attention_to

        masks = class_masks(_words(sentence, known.example), Specials.of(tokenizer))
        keys = masks[_KINDS.index(kind)]
        if not keys.any():
            return Ranking(None, f"There is no {kind} in this text, by {known.by}.")
        targets = toward(keys, ~np.array(sentence.special))
        if not targets.any():
            return Ranking(None, f"No other word can attend to the only {kind} here.")
        names = dict.fromkeys(sentence.originals[k] for k in np.flatnonzero(keys))
        found = f"from words to {', '.join(list(names)[:_MOST_WORDS])} (by {known.by})"
        return Ranking(attention_to(maps, targets), found)

    return rank


def _words(sentence: Sentence, example: Example) -> PieceWords:
    """The pieces of the annotated words."""
    if sentence.encoding is None:
        raise BertologyError(
            "The tokenizer of this model does not say which characters its pieces spell, so its "
            "words cannot be found."
        )
    return PieceWords.of(example, sentence.encoding)


def _written(sentence: Sentence, alignment: Alignment, link: Link) -> str:
    def side(words: tuple[int, ...]) -> str:
        texts = (sentence.texts[alignment.sequence_of(w)] for w in words)
        spans = (alignment.word_spans[w] for w in words)
        return " ".join(text[a:b] for text, (a, b) in zip(texts, spans, strict=True))

    return f"{side(link.source)} → {side(link.target)}"


RELATIONS: dict[str, WordRelation] = {
    "verb-subject": WordRelation("from a verb to its subject", _linking("verb-subject")),
    "subject-verb": WordRelation(
        "from a subject to its verb", _linking("verb-subject", reverse=True)
    ),
    "verb-object": WordRelation("from a verb to its object", _linking("verb-object")),
    "object-verb": WordRelation(
        "from an object to its verb", _linking("verb-object", reverse=True)
    ),
    "pronoun-noun": WordRelation(
        "from a pronoun to its noun", _linking("noun-pronoun", reverse=True)
    ),
    "noun-pronoun": WordRelation("from a noun to its pronoun", _linking("noun-pronoun")),
    "to-noun": WordRelation("to nouns", _toward(TokenClass.NOUN)),
    "to-verb": WordRelation("to verbs", _toward(TokenClass.VERB)),
    "to-pronoun": WordRelation("to pronouns", _toward(TokenClass.PRONOUN)),
    "to-subject": WordRelation("to subjects", _toward(TokenClass.SUBJECT)),
    "to-object": WordRelation("to objects", _toward(TokenClass.OBJECT)),
    "to-negation": WordRelation("to negation", _toward(TokenClass.NEGATION)),
}
