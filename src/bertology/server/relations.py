"""Links between the words that the reader looks at: annotated where that is known, else tagged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.alignment import Alignment
from bertology.data.words.classes import Specials, TokenClass, class_masks, classify
from bertology.data.words.links import Link, links_of
from bertology.data.words.piece_words import PieceWords
from bertology.errors import BertologyError
from bertology.server.patterns import Ranking, targets_score
from bertology.server.sentences import Sentence

__all__ = ["RELATIONS", "Annotated", "Relation", "tagged"]

Maps = NDArray[np.floating[Any]]
_KINDS = list(TokenClass)
_SHOWN = 6  # links that are spelt out


@dataclass(frozen=True)
class Annotated:
    """An example with tags, or with a whole tree, and who says so."""

    example: Example
    by: str

    @property
    def has_tree(self) -> bool:
        """Whether the syntax is annotated, not only guessed word by word."""
        return all(f in self.example.annotations for f in (Field.HEADS, Field.RELATIONS))


@dataclass(frozen=True)
class Relation:
    """Something to look for between words."""

    title: str
    rank: Callable[[Sentence, Maps, Annotated, Any], Ranking]


def tagged(text: str, pair: str | None) -> Annotated:
    """Parts of speech, subjects and objects by the bundled tagger; it is made for English."""
    from bertology.annotated.tagger import annotate, find_tagger

    fields = {Field.TEXT} | (set() if pair is None else {Field.TEXT_B})
    corpus = Corpus("here", [Example("here", text, pair)], frozenset(fields))
    return Annotated(annotate(corpus, find_tagger())[0], "the bundled tagger")


def _linking(name: str, *, reverse: bool = False) -> Callable[..., Ranking]:
    def rank(sentence: Sentence, maps: Maps, known: Annotated, tokenizer: Any) -> Ranking:
        alignment = _words(sentence, known.example).alignment
        links = _links(name, known, alignment)
        links = [link.reversed() for link in links] if reverse else links
        pairs = [(_pieces(alignment, k.source), _pieces(alignment, k.target)) for k in links]
        there = [(k, p) for k, p in zip(links, pairs, strict=True) if all(p)]
        if not there:
            return Ranking(None, f"None was found here, by {known.by}.")
        # From a word: the mean over its pieces. To a word: the sum over them.
        weights = [maps[..., list(s), :][..., list(t)].sum(-1).mean(-1) for _, (s, t) in there]
        spelt = [_spelt(sentence, alignment, link) for link, _ in there]
        more = " …" if len(spelt) > _SHOWN else ""
        found = f"{', '.join(spelt[:_SHOWN])}{more} (by {known.by})"
        return Ranking(np.mean(weights, axis=0), found)

    return rank


def _toward(kind: TokenClass) -> Callable[..., Ranking]:
    def rank(sentence: Sentence, maps: Maps, known: Annotated, tokenizer: Any) -> Ranking:
        masks = class_masks(_words(sentence, known.example), Specials.of(tokenizer))
        keys = masks[_KINDS.index(kind)]
        if not keys.any():
            return Ranking(None, f"There is no {kind} here, by {known.by}.")
        targets = np.broadcast_to(keys, (len(sentence), len(sentence))).copy()
        targets[np.array(sentence.special)] = False
        np.fill_diagonal(targets, False)
        if not targets.any():
            return Ranking(None, f"No other word looks at the only {kind} here.")
        names = dict.fromkeys(sentence.originals[k] for k in np.flatnonzero(keys))
        found = f"from words to {', '.join(list(names)[:12])} (by {known.by})"
        return Ranking(targets_score(maps, targets), found)

    return rank


def _words(sentence: Sentence, example: Example) -> PieceWords:
    if sentence.encoding is None:
        raise BertologyError(
            "The tokenizer of this model does not say which characters its pieces spell, so its "
            "words cannot be found."
        )
    return PieceWords.of(example, sentence.encoding)


def _links(name: str, known: Annotated, alignment: Alignment) -> list[Link]:
    if known.has_tree or name == "noun-pronoun":
        return links_of(known.example, name)
    return _guessed(name, known.example, alignment)


def _guessed(name: str, example: Example, alignment: Alignment) -> list[Link]:
    """Subjects and objects with the verb that is likeliest theirs, by where it stands."""
    tags = list(example.get(Field.POS))
    classes = classify(example)
    verbs = sorted(classes[TokenClass.VERB])
    subjects, objects = (sorted(classes[k]) for k in (TokenClass.SUBJECT, TokenClass.OBJECT))
    found = []
    for noun in subjects if name == "verb-subject" else objects:
        own = [v for v in verbs if alignment.sequence_of(v) == alignment.sequence_of(noun)]
        if not own:
            continue
        before, after = [v for v in own if v < noun], [v for v in own if v > noun]
        if name == "verb-object":
            verb = ([v for v in before if tags[v] == "VERB"] or before or after[:1])[-1]
        else:
            following = min((s for s in subjects if s > noun), default=len(tags))
            near = [v for v in after if v < following]
            verb = _main_verb(near, tags) if near else (after or before[::-1])[0]
        found.append(Link((verb,), (noun,), name))
    return found


def _main_verb(verbs: list[int], tags: list[str]) -> int:
    """The first verb; where that is an auxiliary, the verb that it helps."""
    for verb in verbs:
        if tags[verb] == "VERB":
            return verb
        between = tags[verb + 1 : min((v for v in verbs if v > verb), default=verb + 1)]
        if not set(between) <= {"ADV", "PART"}:
            return verb
    return verbs[-1]


def _pieces(alignment: Alignment, words: tuple[int, ...]) -> list[int]:
    return sorted({p for w in words for p in alignment.spelling(w)})


def _spelt(sentence: Sentence, alignment: Alignment, link: Link) -> str:
    def side(words: tuple[int, ...]) -> str:
        texts = (sentence.texts[alignment.sequence_of(w)] for w in words)
        spans = (alignment.word_spans[w] for w in words)
        return " ".join(text[a:b] for text, (a, b) in zip(texts, spans, strict=True))

    return f"{side(link.source)} → {side(link.target)}"


RELATIONS: dict[str, Relation] = {
    "verb-subject": Relation("from a verb to its subject", _linking("verb-subject")),
    "subject-verb": Relation("from a subject to its verb", _linking("verb-subject", reverse=True)),
    "verb-object": Relation("from a verb to its object", _linking("verb-object")),
    "object-verb": Relation("from an object to its verb", _linking("verb-object", reverse=True)),
    "pronoun-noun": Relation("from a pronoun to its noun", _linking("noun-pronoun", reverse=True)),
    "noun-pronoun": Relation("from a noun to its pronoun", _linking("noun-pronoun")),
    "to-noun": Relation("to nouns", _toward(TokenClass.NOUN)),
    "to-verb": Relation("to verbs", _toward(TokenClass.VERB)),
    "to-pronoun": Relation("to pronouns", _toward(TokenClass.PRONOUN)),
    "to-subject": Relation("to subjects", _toward(TokenClass.SUBJECT)),
    "to-object": Relation("to objects", _toward(TokenClass.OBJECT)),
    "to-negation": Relation("to negation", _toward(TokenClass.NEGATION)),
}
