"""Links between verbs and their subjects and objects where no tree is annotated, only tags.

A tagger says which words are subjects and which are verbs, but not which subject belongs to which
verb. The guess here goes by position, as English orders its words.
"""

from __future__ import annotations

from collections.abc import Sequence

from bertology.data.corpus import Example, Field
from bertology.data.words.classes import TokenClass, classify
from bertology.data.words.links import Link, links_of
from bertology.data.words.piece_words import word_spans

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
            verb = _verb_of_object(noun, own, tags)
        else:
            following = min((s for s in subjects if s > noun), default=len(tags))
            verb = _verb_of_subject(noun, own, tags, before=following)
        found.append(Link((verb,), (noun,), relation))
    return found


def _verb_of_object(noun: int, verbs: Sequence[int], tags: Sequence[str]) -> int:
    before, after = [v for v in verbs if v < noun], [v for v in verbs if v > noun]
    return ([v for v in before if tags[v] == "VERB"] or before or after[:1])[-1]


def _verb_of_subject(noun: int, verbs: Sequence[int], tags: Sequence[str], *, before: int) -> int:
    """The main verb after the noun and before the next subject, or else the nearest verb."""
    after = [v for v in verbs if v > noun]
    near = [v for v in after if v < before]
    if near:
        return _main_verb(near, tags)
    return after[0] if after else max(verbs)


def _main_verb(verbs: Sequence[int], tags: Sequence[str]) -> int:
    """The first verb; where that is an auxiliary, the verb that it helps."""
    for verb in verbs:
        if tags[verb] == "VERB":
            return verb
        between = tags[verb + 1 : min((v for v in verbs if v > verb), default=verb + 1)]
        if not set(between) <= {"ADV", "PART"}:
            return verb
    return verbs[-1]
