"""What a sentence of CLAMS is made of: its kind, the noun that the verb agrees with, other nouns.

Sentences of CLAMS are made by templates, in which every noun follows an article. So nouns are
found, and their number is told by articles in French and German, and by the ending in English.
Sentences of other corpora are told by their annotation: SUBJECT, LEMMAS, GROUP, `attractors`, and
`others`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.data.corpus import Field

if TYPE_CHECKING:
    from bertology.data.corpus import Example

KINDS: Mapping[str, str] = {
    "simple_agrmt": "simple",
    "vp_coord": "coordination",
    "long_vp_coord": "long coordination",
    "prep_anim": "after a prepositional phrase",
    "subj_rel": "after a subject relative clause",
    "obj_rel_across_anim": "after an object relative clause",
    "obj_rel_no_comp_across_anim": "the same without “that”",
    "obj_rel_within_anim": "within an object relative clause",
    "obj_rel_no_comp_within_anim": "within one without “that”",
}
"""Groups of CLAMS in words, from the simplest."""

_PLURAL: Mapping[str, Mapping[str, bool | None]] = {  # of each article; None: the noun tells
    "en": {"the": None},
    "fr": dict.fromkeys(("le", "la", "l'", "du", "au"), False)
    | dict.fromkeys(("les", "des", "aux"), True),
    # All nouns of these templates are masculine: "die" is plural, and "der" singular.
    "de": {"der": False, "dem": False, "vom": False, "zum": False, "den": False, "die": True},
}
_NO_NOUNS = frozenset({"side", "Nähe"})  # "to the side of", "in der Nähe von"
_STEM = 4  # letters that both numbers of a noun share, but for marks: Vater, Väter


@dataclass(frozen=True)
class Sentence:
    """One sentence: what is alike in others must be known, since they are no new observations."""

    kind: str
    noun: str  # that the verb agrees with, without its number
    frame: str  # all words but nouns and the verb
    others: int  # nouns before the verb; -1: not known
    attractors: int  # those of the other number; -1: not known


def sentence_of(example: Example, place: int) -> Sentence:
    """What the sentence is made of, whose word at `place` is the verb."""
    about = example.annotations
    words, group = [str(word) for word in about["words"]], str(about.get(Field.GROUP) or "")
    plurals = _PLURAL.get(str(about.get(Field.LANGUAGE)))
    if group not in KINDS or plurals is None:
        at = about.get(Field.SUBJECT)
        noun = None if at is None else str((about.get(Field.LEMMAS) or words)[at]).lower()
        count = int(about.get("attractors", -1))
        between = int(about.get("others", count))
        return Sentence(group or "all", noun or example.id, example.id, between, count)
    nouns = _nouns(words, plurals, prepositional=group == "prep_anim")
    if "coord" in group:  # objects of the first verb have an article in some languages only
        nouns = dict(list(nouns.items())[:1])
    before = [at for at in nouns if at < place] or [place - 1]
    # In these templates the verb is in a clause of its own, after its noun.
    subject = before[-1] if "within" in group else before[0]
    others = [at for at in before if at != subject]
    left_out = {place, *nouns}
    return Sentence(
        kind=KINDS[group],
        noun=_stem(words[subject]),
        frame=" ".join("_" if i in left_out else word.lower() for i, word in enumerate(words)),
        others=len(others),
        attractors=sum(nouns.get(at) != nouns.get(subject) for at in others),
    )


def _nouns(
    words: Sequence[str], plurals: Mapping[str, bool | None], *, prepositional: bool
) -> dict[int, bool]:
    """The place of each noun, and whether it is plural."""
    found: dict[int, bool] = {}
    for at, word in enumerate(words[:-1]):
        # After a comma it is a relative pronoun: "der Pilot, den die Kunden mögen".
        if word not in plurals or (at and words[at - 1] == "," and word != "the"):
            continue
        # "the taxi drivers"
        noun = at + 1 + (words[at + 1] == "taxi" and at + 2 < len(words))
        if words[noun] in _NO_NOUNS:
            continue
        told = plurals[word]
        if told is None:
            told = words[noun].endswith("s")
        # After a preposition "den" is the plural's dative, else the singular's accusative.
        found[noun] = told or (word == "den" and prepositional)
    return found


def _stem(word: str) -> str:
    plain = unicodedata.normalize("NFD", word.lower())
    return "".join(c for c in plain if not unicodedata.combining(c))[:_STEM]
