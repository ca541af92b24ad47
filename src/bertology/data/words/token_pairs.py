"""Pairs of tokens that a head may connect whatever the words mean: neighbours, repetitions, [SEP].

A set of pairs is a mask (T, T): true where attention from the row's token to the column's token
is of interest. Special tokens count as tokens here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import Alignment
from bertology.data.words.classes import TokenClass, classify, is_punctuation
from bertology.data.words.links import Link, links_of
from bertology.data.words.piece_words import word_spans

Mask = NDArray[np.bool_]


def at_offset(length: int, offset: int) -> Mask:
    """Each token with the one at a distance: -1 is the token before, 0 itself, 1 the next."""
    return np.eye(length, k=offset, dtype=bool)


def toward(keys: Mask, queries: Mask | None = None) -> Mask:
    """From all tokens, or only from `queries`, to each of `keys` (T,), but not to oneself."""
    pairs: Mask = np.broadcast_to(keys, (len(keys), len(keys))).copy()
    if queries is not None:
        pairs[~queries] = False
    np.fill_diagonal(pairs, False)
    return pairs


def same_token(tokens: Sequence[str], special: Sequence[bool]) -> Mask:
    """Each token that is not special with the other places where the same token occurs."""
    names, ordinary = np.array(tokens), ~np.array(special)
    pairs: Mask = (names[:, None] == names) & ordinary[:, None] & ordinary
    np.fill_diagonal(pairs, False)
    return pairs


def between_texts(texts: Sequence[int | None]) -> Mask:
    """Each token of one text of a pair with each token of the other.

    `texts` says of which text each token is, 0 or 1; None for special tokens.
    """
    first = np.array([text == 0 for text in texts])
    second = np.array([text == 1 for text in texts])
    pairs: Mask = (first[:, None] & second) | (second[:, None] & first)
    return pairs


def punctuation_pieces(
    alignment: Alignment, texts: Sequence[str], sides: Sequence[int | None]
) -> Mask:
    """(T,) the pieces that spell nothing but punctuation; `sides` says of which text each is."""
    rows = zip(alignment.piece_spans, sides, strict=True)
    return np.array(
        [
            span is not None and side is not None and is_punctuation(texts[side][slice(*span)])
            for span, side in rows
        ],
        dtype=bool,
    )


def linked_pieces(alignment: Alignment, link: Link) -> tuple[list[int], list[int]]:
    """The pieces of the words at both ends of a link; none where truncation cut the words off."""
    source, target = (
        sorted({p for w in end for p in alignment.spelling(w)})
        for end in (link.source, link.target)
    )
    return source, target


# Links between verbs and their subjects and objects where no tree is annotated, only tags.
#
# A tagger says which words are subjects and which are verbs, but not which subject belongs to which
# verb. The guess here goes by position, as English orders its words.

_GUESSED = ("verb-subject", "verb-object")


def has_tree(example: Example) -> bool:
    """Whether the syntax is annotated, and not only the class of each word."""
    return all(field in example.annotations for field in (Field.HEADS, Field.RELATIONS))


def likely_links(example: Example, relation: str) -> list[Link]:
    """The annotated links; without a tree, those between verbs and their arguments are guessed."""
    if has_tree(example) or relation not in _GUESSED:
        return links_of(example, relation)
    return guessed_links(example, relation)


def guessed_links(example: Example, relation: str) -> list[Link]:
    """Each tagged subject (`verb-subject`) or object (`verb-object`) with its likeliest verb.

    Only a verb of the same text of a pair is taken. An object belongs to the last verb before it.
    A subject belongs to the first verb between it and the next subject; where that verb is an
    auxiliary, to the verb that it helps.
    """
    tags = list(example.get(Field.POS))
    texts = [text for text, words in enumerate(word_spans(example)) for _ in words]
    classes = classify(example)
    verbs = sorted(classes[TokenClass.VERB])
    subjects, objects = (sorted(classes[k]) for k in (TokenClass.SUBJECT, TokenClass.OBJECT))
    found = []
    for noun in subjects if relation == "verb-subject" else objects:
        own = [v for v in verbs if texts[v] == texts[noun]]
        if not own:
            continue
        if relation == "verb-object":
            before, after = [v for v in own if v < noun], [v for v in own if v > noun]
            verb = ([v for v in before if tags[v] == "VERB"] or before or after[:1])[-1]
        else:
            following = min((s for s in subjects if s > noun), default=len(tags))
            verb = _verb_of_subject(noun, own, tags, before=following)
        found.append(Link((verb,), (noun,), relation))
    return found


def _verb_of_subject(noun: int, verbs: Sequence[int], tags: Sequence[str], *, before: int) -> int:
    """The main verb after the noun and before the next subject, or else the nearest verb."""
    after = [v for v in verbs if v > noun]
    near = [v for v in after if v < before]
    if near:
        # The first verb; where that is an auxiliary, the verb that it helps
        for verb in near:
            if tags[verb] == "VERB":
                return verb
            between = tags[verb + 1 : min((v for v in near if v > verb), default=verb + 1)]
            if not set(between) <= {"ADV", "PART"}:
                return verb
        return near[-1]
    return after[0] if after else max(verbs)
