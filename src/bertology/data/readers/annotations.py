"""What annotations must look like, checked where a file is read and not where a study uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertology.data.corpus import Example, Field
from bertology.data.words.links import check_links
from bertology.data.words.piece_words import known_words
from bertology.errors import DataError

WORD_LEVEL = (
    Field.LEMMAS, Field.POS, Field.HEADS, Field.RELATIONS, Field.TAGS, Field.OFFSETS,
)  # fmt: skip
"""Fields that hold one value per word."""
SPANS = (
    Field.CONSTITUENTS, Field.CHUNKS, Field.ENTITIES, Field.ARGUMENTS, Field.PROTO_ROLES,
    Field.ENTITY_RELATIONS, Field.SENSES, Field.TARGETS, Field.RATIONALES, Field.COREFERENCE,
)  # fmt: skip
"""Fields that hold spans of words, most with what they are."""


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_place(value: object) -> bool:
    return value is None or _is_whole(value)


def _is_name(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_span(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) == 2
        and _is_whole(value[0])  # not all(map(…)): most of what is checked are spans
        and _is_whole(value[1])
        and 0 <= value[0] <= value[1]
    )


def _is_target(value: object) -> bool:
    """A span of words that has some."""
    return isinstance(value, Sequence) and _is_span(value) and value[0] < value[1]


def _is_phrase(value: object) -> bool:
    """A span of words, and perhaps its label."""
    return isinstance(value, Sequence) and _is_span(value[:2]) and all(map(_is_name, value[2:]))


def _is_labelled(value: object) -> bool:
    """A span of words that has some, and its label."""
    return (
        isinstance(value, Sequence)
        and len(value) == 3
        and _is_span(value[:2])
        and value[0] < value[1]
        and isinstance(value[2], str)
        and bool(value[2])
    )


def _is_sense(value: object) -> bool:
    """A span of words that has some, its lemma and its sense."""
    return (
        isinstance(value, Sequence)
        and len(value) == 4
        and _is_labelled(value[:3])
        and isinstance(value[3], str)
        and bool(value[3])
    )


def _is_pair(value: object, is_label: Callable[[object], bool]) -> bool:
    """Two spans of words that have some, and what is said of them."""
    return (
        isinstance(value, Sequence)
        and len(value) == 5
        and all(_is_span(span) and span[0] < span[1] for span in (value[:2], value[2:4]))
        and is_label(value[4])
    )


def _is_related(value: object) -> bool:
    return _is_pair(value, lambda label: isinstance(label, str) and bool(label))


def _is_judged(value: object) -> bool:
    return _is_pair(
        value,
        lambda found: (
            isinstance(found, Mapping)
            and bool(found)
            and all(
                isinstance(name, str) and isinstance(is_so, bool) for name, is_so in found.items()
            )
        ),
    )


def _is_linked(value: object) -> bool:
    """Two words, each counted in its own text, and how sure people were that they correspond."""
    return (
        isinstance(value, Sequence)
        and len(value) == 3
        and all(_is_whole(word) and word >= 0 for word in value[:2])
        and value[2] in ("sure", "possible")
    )


def _list_of(each: Callable[[object], bool]) -> Callable[[Any], bool]:
    return lambda value: _is_list(value) and all(map(each, value))


_WORDS = _list_of(lambda w: isinstance(w, str) and bool(w.strip()))
_TEXTS, _PLACES, _SPANS = _list_of(_is_text), _list_of(_is_whole), _list_of(_is_span)

_LABELLED = "be a list of [first word, last + 1, label], each with a word at least"
_PAIRED = "be a list of [first word, last + 1, first word of the other, its last + 1"
_FORMS: dict[Field, tuple[Callable[[Any], bool], str]] = {
    Field.WORDS: (_WORDS, "be a list of words: text, and none empty"),
    Field.LEMMAS: (_TEXTS, "be a list of text"),
    Field.POS: (_TEXTS, "be a list of text"),
    Field.RELATIONS: (_TEXTS, "be a list of text"),
    Field.TAGS: (_list_of(_is_name), "be a list of names or numbers"),
    Field.HEADS: (_PLACES, "be a list of whole numbers"),
    Field.OFFSETS: (_SPANS, "be a list of pairs [first character, last + 1]"),
    Field.CONSTITUENTS: (
        _list_of(_is_phrase),
        "be a list of phrases: [first word, last + 1] or [first word, last + 1, label]",
    ),
    Field.CHUNKS: (_list_of(_is_labelled), _LABELLED),
    Field.ENTITIES: (_list_of(_is_labelled), _LABELLED),
    Field.ARGUMENTS: (_list_of(_is_related), f"{_PAIRED}, role]"),
    Field.ENTITY_RELATIONS: (_list_of(_is_related), f"{_PAIRED}, relation]"),
    Field.PROTO_ROLES: (_list_of(_is_judged), f"{_PAIRED}, {{property: true or false}}]"),
    Field.SENSES: (
        _list_of(_is_sense),
        "be a list of [first word, last + 1, lemma, sense], each with a word at least",
    ),
    Field.TARGETS: (
        _list_of(_is_target),
        "be a list of [first word, last + 1], one for each text, each with a word at least",
    ),
    Field.RATIONALES: (
        _list_of(_is_target),
        "be a list of [first word, last + 1], each with a word at least",
    ),
    Field.SUBJECT: (_is_place, "be the position of a word"),
    Field.OBJECT: (_is_place, "be the position of a word"),
    Field.VERB: (_is_place, "be the position of a word"),
    Field.PREDICATE: (_PLACES, "be a list of positions of words"),
    Field.NEGATION: (_PLACES, "be a list of positions of words"),
    Field.ROLES: (
        lambda v: isinstance(v, Mapping) and all(map(_is_span, v.values())),
        "be a mapping of roles to pairs [first word, last + 1]",
    ),
    Field.COREFERENCE: (
        _list_of(_SPANS),
        "be a list of clusters, each a list of pairs [first word, last + 1]",
    ),
    Field.SENTENCE_LABELS: (
        lambda v: (
            isinstance(v, Mapping) and all(isinstance(x, str) and x for of in v.items() for x in of)
        ),
        "be a mapping of tasks to labels: text, and none empty",
    ),
    Field.SENTENCES: (_PLACES, "be a list of positions of words"),
    Field.FRAME: (_is_name, "be a name"),
    Field.TENSE: (_is_name, "be a name"),
    Field.NUMBER: (_is_name, "be a name"),
    Field.GROUP: (_is_name, "be a name"),
    Field.SUBCASE: (_is_name, "be a name"),
    Field.CONTRAST: (_is_text, "be text"),
    Field.PARAPHRASE: (_is_text, "be text"),
    Field.CANDIDATES: (_WORDS, "be a list of answers: text, and none empty"),
    Field.ANSWER: (_TEXTS, "be a list of text"),
    Field.ENTITY: (_is_text, "be text"),
    Field.WORDINGS: (_WORDS, "be a list of templates: text, and none empty"),
    Field.ITEM: (_is_name, "be a name"),
    Field.CONDITION: (_is_name, "be a name"),
    Field.LANGUAGE: (lambda v: isinstance(v, str) and bool(v), "be the code of a language"),
    Field.LANGUAGE_B: (lambda v: isinstance(v, str) and bool(v), "be the code of a language"),
    Field.ALIGNMENT: (
        _list_of(_is_linked),
        "be a list of [word, word of the other text, sure or possible]",
    ),
    Field.STEPS: (lambda v: _is_whole(v) and v >= 0, "be a whole number from 0"),
}


def check_annotations(annotations: Mapping[str, Any], texts: Sequence[object], at: str) -> None:
    """Refuse annotations of another form, of other lengths, or that point outside the words.

    `texts`: the text, or both of a pair; none where the words are the text.
    """
    for name, value in annotations.items():
        is_right, must = _FORMS.get(Field(name), (None, ""))
        if value is not None and is_right is not None and not is_right(value):
            raise DataError(f"{at}: {name} must {must}, not {value!r:.60}.")
    _check_targets(annotations, texts, at)
    words = annotations.get("words")
    if words is None:
        return
    for field in WORD_LEVEL:
        given = annotations.get(field.value)
        if given is not None and len(given) != len(words):
            raise DataError(
                f"{at}: {len(words)} words and {len(given)} {field.value}.",
                hint=f"{field.value} must have one entry per word.",
            )
    _check_places(annotations, len(words), at)
    check_heads(annotations.get("heads") or (), at)
    if texts and all(isinstance(text, str) for text in texts):
        # Offsets of a pair count on in the second text, after one more character.
        characters = sum(len(str(text)) for text in texts) + len(texts) - 1
        for start, end in annotations.get("offsets") or ():
            if end > characters:
                raise DataError(f"{at}: the offsets [{start}, {end}] lie outside the text.")
    if annotations.get("links") is not None:
        check_links(annotations["links"], len(words), at)


def check_heads(heads: Sequence[int], at: str) -> None:
    """Refuse a tree in which the way up from some word never ends."""
    ends = {-1}
    for word in range(len(heads)):
        way: dict[int, None] = {}
        while word not in ends:
            if word in way:
                raise DataError(
                    f"{at}: the heads of words lead in a circle, from word {word} back to it.",
                    hint="Words are counted from 0; the head of the root is -1.",
                )
            way[word] = None
            word = heads[word]
        ends.update(way)


def _check_targets(annotations: Mapping[str, Any], texts: Sequence[object], at: str) -> None:
    targets = annotations.get("targets")
    if targets is None:
        return
    given = [str(text) for text in texts] or [" ".join(annotations.get("words") or ())]
    if len(targets) != len(given):
        raise DataError(
            f"{at}: {len(targets)} targets for {len(given)} texts.",
            hint="targets has one [first word, last + 1] for each text.",
        )
    text_b = given[1] if len(given) > 1 else None
    words = known_words(Example(at, given[0], text_b, annotations=annotations))
    for number, (target, spans) in enumerate(zip(targets, words, strict=True), start=1):
        if target[1] > len(spans):
            raise DataError(
                f"{at}: the target {list(target)} lies outside text {number}, which has "
                f"{len(spans)} words.",
                hint="Words are counted from 0 in each text.",
            )


def _check_places(annotations: Mapping[str, Any], words: int, at: str) -> None:
    single = {n: annotations.get(n) for n in ("subject", "object", "verb")}
    places = {n: [p] for n, p in single.items() if p is not None}
    lists = ("heads", "predicate", "negation", "sentences")
    places |= {n: list(annotations.get(n) or ()) for n in lists}
    mentions = [span for cluster in annotations.get("coreference") or () for span in cluster]
    places["coreference"] = [end - 1 for _, end in mentions]
    phrases = annotations.get("constituents") or ()
    places["constituents"] = [phrase[1] - 1 for phrase in phrases if phrase[1]]
    for name in ("chunks", "entities", "senses", "rationales"):
        places[name] = [span[1] - 1 for span in annotations.get(name) or ()]
    for name in ("arguments", "proto_roles", "entity_relations"):
        pairs = annotations.get(name) or ()
        places[name] = [end - 1 for pair in pairs for end in (pair[1], pair[3])]
    roles = annotations.get("roles") or {}
    places["roles"] = [end - 1 for _, end in roles.values() if end]
    for name, given in places.items():
        least = -1 if name == "heads" else 0  # the root's head
        outside = [p for p in given if not least <= p < words]
        if outside:
            raise DataError(
                f"{at}: {name} names the word {outside[0]}, and there are {words} words.",
                hint="Words are counted from 0; the head of the root is -1.",
            )
    empty = [span for span in mentions if span[0] == span[1]]
    if empty:
        raise DataError(f"{at}: the mention {list(empty[0])} has no words.")
