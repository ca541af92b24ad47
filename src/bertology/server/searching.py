"""The search for heads: all heads, sorted by a relation, a pattern or a similarity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.alignment import Alignment
from bertology.data.words.classes import Specials, SpecialTokens, TokenClass, class_masks
from bertology.data.words.links import Link
from bertology.data.words.piece_words import PieceWords
from bertology.data.words.token_pairs import (
    Mask,
    at_offset,
    between_texts,
    likely_links,
    linked_pieces,
    punctuation_pieces,
    same_token,
    toward,
)
from bertology.errors import BertologyError, UnknownNameError
from bertology.server.reading import ModelReader
from bertology.server.sentences import Sentence
from bertology.server.shown import Shown
from bertology.server.task_examples import TaskExamples
from bertology.server.working import Kept

# All heads in the order of a score, as the page lists them.

Maps = NDArray[np.floating]
"""All maps of one text: (layers, heads, T, T)."""


@dataclass(frozen=True)
class Ranking:
    """A score of every head (layers, heads), or none, and what was looked for."""

    scores: NDArray[np.floating] | None
    found: str
    unit: str = "mean weight"
    least_first: bool = False
    beyond: NDArray[np.floating] | None = None
    """Of links: the score less what the head gives at the same distance anyway."""
    source: Sequence[int] = ()
    """Of links: the pieces that the first of them goes from."""

    def as_json(self) -> dict[str, object]:
        """All heads, the best first; heads that were pruned are left out."""
        heads = [] if self.scores is None else _ordered(self.scores, least_first=self.least_first)
        return {
            "heads": heads,
            "found": self.found,
            "unit": self.unit,
            "best": self._best(),
            "from": list(self.source),
        }

    def _best(self) -> dict[str, object] | None:
        """The head to show first: what it gives must not come from the distance alone."""
        if self.scores is None or not np.isfinite(self.scores).any():
            return None
        by = self.scores if self.beyond is None else self.beyond
        order = _ordered(by, least_first=self.least_first)[0]
        layer, head = int(order["layer"]), int(order["head"])
        score = float(self.scores[layer, head])
        return {"layer": layer, "head": head, "score": score, "beyond": float(by[layer, head])}


def _ordered(scores: NDArray[np.floating], *, least_first: bool) -> list[dict[str, float]]:
    order = np.argsort(scores if least_first else -scores, axis=None, kind="stable")
    heads = (np.unravel_index(int(i), scores.shape) for i in order)
    return [
        {"layer": int(layer), "head": int(head), "score": float(scores[layer, head])}
        for layer, head in heads
        if np.isfinite(scores[layer, head])
    ]


# Patterns that do not depend on words: attention to the token before, to [SEP], to few tokens.

_MOST_NAMED = 8  # tokens


class Pattern(Protocol):
    """A pattern to look for in maps."""

    @property
    def title(self) -> str:
        """The name in the page's menu."""

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: object) -> Ranking:
        """How strongly each head shows the pattern in this sentence."""


@dataclass(frozen=True)
class _Targets:
    """A pattern that is a set of pairs (query, key)."""

    title: str
    find: Callable[[Sentence, object], Mask]  # (T, T)
    said: str
    missing: str

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: object) -> Ranking:
        from bertology.model.reducers.map_scores import attention_to

        targets = self.find(sentence, tokenizer)
        if not targets.any():
            return Ranking(None, self.missing)
        queries, keys = int(targets.any(axis=1).sum()), np.flatnonzero(targets.any(axis=0))
        names = list(dict.fromkeys(sentence.pieces[k] for k in keys))
        shown = ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
        return Ranking(attention_to(maps, targets), self.said.format(n=queries, tokens=shown))


@dataclass(frozen=True)
class _Entropy:
    title: str
    least_first: bool

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: object) -> Ranking:
        from bertology.model.reducers.map_scores import map_statistics

        order = "lowest" if self.least_first else "highest"
        most = f"{np.log(len(sentence)):.2f}"
        found = f"mean entropy over {len(sentence)} tokens, {order} first; equal weights: {most}"
        return Ranking(map_statistics(maps)["entropy"], found, "nats", self.least_first)


@dataclass(frozen=True)
class _Distance:
    title: str

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: object) -> Ranking:
        from bertology.model.reducers.map_scores import map_statistics

        found = f"mean distance over {len(sentence)} tokens"
        return Ranking(map_statistics(maps)["distance"], found, "tokens")


def _offset(by: int) -> Callable[[Sentence, object], Mask]:
    return lambda sentence, tokenizer: at_offset(len(sentence), by)


def _special(*names: str) -> Callable[[Sentence, object], Mask]:
    """Attention to special tokens, by the names that the tokenizer has for them."""

    def find(sentence: Sentence, tokenizer: object) -> Mask:
        wanted = {getattr(tokenizer, name, None) for name in names} - {None}
        pairs = zip(sentence.pieces, sentence.special, strict=True)
        return toward(np.array([special and piece in wanted for piece, special in pairs]))

    return find


def _punctuation(sentence: Sentence, tokenizer: object) -> Mask:
    if sentence.alignment is None:
        return np.zeros((len(sentence), len(sentence)), dtype=bool)
    return toward(punctuation_pieces(sentence.alignment, sentence.texts, sentence.sides))


def _hidden(sentence: Sentence, tokenizer: object) -> Mask:
    return toward(np.isin(np.arange(len(sentence)), sentence.masked))


PATTERNS: dict[str, Pattern] = {
    "previous": _Targets("the token before", _offset(-1), "{n} tokens, all but the first", ""),
    "next": _Targets("the token after", _offset(1), "{n} tokens, all but the last", ""),
    "self": _Targets("the token itself", _offset(0), "{n} tokens", ""),
    "first": _Targets(
        "the token that opens the text, [CLS]",
        _special("cls_token", "bos_token"),
        "from {n} tokens to {tokens}",
        "No special token opens this model's texts.",
    ),
    "separator": _Targets(
        "the tokens that end texts, [SEP]",
        _special("sep_token", "eos_token"),
        "from {n} tokens to {tokens}",
        "No special token ends this model's texts.",
    ),
    "punctuation": _Targets(
        "punctuation", _punctuation, "from {n} tokens to {tokens}", "There is no punctuation here."
    ),
    "hidden": _Targets(
        "masked words", _hidden, "from {n} tokens to {tokens}", "Nothing is masked here."
    ),
    "again": _Targets(
        "the same token elsewhere",
        lambda sentence, tokenizer: same_token(sentence.pieces, sentence.special),
        "{n} tokens that occur again: {tokens}",
        "No token occurs twice here.",
    ),
    "across": _Targets(
        "the other text of a pair",
        lambda sentence, tokenizer: between_texts(sentence.sides),
        "from {n} tokens to the other text",
        "There is no second text.",
    ),
    "focused": _Entropy("few tokens at once", True),
    "broad": _Entropy("many tokens at once", False),
    "far": _Distance("tokens far away"),
}


# Relations between the words of the shown text: from its annotation, or else from the tagger.

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
        from bertology.model.reducers.map_scores import attention_along, attention_beyond_position

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


Known = TypeVar("Known")
Texts = tuple[str, str | None]
_KEPT = 64  # tagged texts


def offered() -> dict[str, list[dict[str, str]]]:
    """What can be looked for, for the page's menus."""
    return {
        "relations": [{"name": n, "title": r.title} for n, r in RELATIONS.items()],
        "patterns": [{"name": n, "title": p.title} for n, p in PATTERNS.items()],
    }


class Searching:
    """Searches among the heads of one model."""

    def __init__(self, reader: ModelReader, examples: TaskExamples) -> None:
        self._reader, self._examples = reader, examples
        self._tagged: Kept[Texts, AnnotatedText] = Kept(
            reader.worker, lambda texts: tagged(*texts), size=lambda _: 1, room=_KEPT
        )

    def prepare(self, text: str, pair: str | None) -> None:
        """Start to tag a text, without waiting: the tagger is loaded when it is first needed."""
        self._tagged.begin((text, pair))

    def relation(self, shown: Shown, name: str) -> dict[str, object]:
        """Heads that attend along a relation between words, the best first."""
        relation = _known("relation", name, RELATIONS)
        reading = self._reader.read(shown)
        maps, tokenizer = self._reader.maps(reading), self._reader.encoder.tokenizer
        known = self._annotated(shown.text, shown.pair)
        return relation.rank(reading.sentence, maps, known, tokenizer).as_json()

    def pattern(self, shown: Shown, name: str) -> dict[str, object]:
        """Heads that show a pattern which does not depend on words, the best first."""
        pattern = _known("pattern", name, PATTERNS)
        reading = self._reader.read(shown)
        tokenizer = self._reader.encoder.tokenizer
        return pattern(reading.sentence, self._reader.maps(reading), tokenizer).as_json()

    def similar(self, shown: Shown, layer: int, head: int) -> dict[str, object]:
        """Heads whose maps are like that of one head; the head itself comes first, with 1."""
        from bertology.model.reducers.map_scores import similarity_to

        self._reader.check_head(layer, head)
        maps = self._reader.maps(self._reader.read(shown))
        found = f"maps similar to that of layer {layer}, head {head}"
        return Ranking(similarity_to(maps, layer, head), found, "cosine").as_json()

    def _annotated(self, text: str, pair: str | None) -> AnnotatedText:
        found = self._examples.find(text, pair)
        example = None if found is None else found[1]
        about = {} if example is None else example.annotations
        whole = all(f in about for f in (Field.POS, Field.HEADS, Field.RELATIONS))
        if example is not None and whole and (pair is None or Field.OFFSETS in about):
            return AnnotatedText(example, "the corpus's own annotation")
        return self._tagged.get((text, pair))


def _known(kind: str, name: str, among: Mapping[str, Known]) -> Known:
    if name not in among:
        raise UnknownNameError(kind, name, among)
    return among[name]
