"""The lexicon: words with their paradigms, sorts and frames, read once from the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import yaml

_VOWELS = "aeiou"
_SAYERS = {"Stating": "agent"}  # who says is an agent, who knows an experiencer


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun or a name; `gender` is "m", "f", "n" or, where the word leaves it open, ""."""

    lemma: str
    plural: str
    sort: str
    gender: str = ""
    proper: bool = False
    mass: bool = False
    adjectives: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()

    @property
    def human(self) -> bool:
        """Whether it names a person."""
        return self.sort in ("person", "kin", "name")


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb in one of its uses: paradigm, frame, roles, and the nouns each slot takes."""

    lemma: str
    third: str
    past: str
    participle: str
    ing: str
    frame: str
    roles: tuple[str, ...] = ()
    subjects: tuple[Noun, ...] = ()
    objects: tuple[Noun, ...] = ()
    manner: tuple[str, ...] = ()
    places: tuple[Noun, ...] = ()
    preposition: str = ""  # of the recipient: "to" or "for"
    flags: str = ""

    @property
    def progressive(self) -> bool:
        """Whether it goes with "be …ing"."""
        return "s" not in self.flags and "g" not in self.flags

    @property
    def passive(self) -> bool:
        """Whether its object can be the subject of a passive."""
        return bool(self.objects) and "n" not in self.flags


def read_table(name: str) -> dict[str, Any]:
    """A table of words that lies beside this module."""
    text = files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


WORDS = read_table("words")
ABSOLUTE = frozenset(WORDS["absolute"].split())
UNIQUE = frozenset(WORDS["unique"].split())


def _rows(name: str) -> Iterator[list[str]]:
    for line in WORDS[name].strip().replace("\n    ", " ").splitlines():
        yield [cell.strip() for cell in line.split("|")]


def _lists(name: str) -> dict[str, list[str]]:
    return {key: words.split() for key, words in WORDS[name].items()}


def third_person(base: str) -> str:
    """The -s form of a regular verb or noun: try -> tries, watch -> watches."""
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    if base.endswith(("s", "x", "z", "ch", "sh")) or base.endswith(("tomato", "potato", "go")):
        return base + "es"
    return base + "s"


def _past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return base + "ed"


def _ing(base: str) -> str:
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
        return base[:-1] + "ing"
    return base + "ing"


def article(word: str) -> str:
    """The indefinite article before `word`, by its first sound."""
    lower = word.lower()
    if lower.startswith(("honest", "hour")):
        return "an"
    return "an" if lower[0] in _VOWELS and not lower.startswith(("uni", "use", "one")) else "a"


def _paradigm(cell: str) -> tuple[str, str, str, str, str]:
    forms = cell.split()
    base = forms[0]
    past = forms[1] if len(forms) > 1 else _past(base)
    participle = forms[2] if len(forms) > 2 else past
    ing = forms[3] if len(forms) > 3 else _ing(base)
    return base, third_person(base), past, participle, ing


def _synonyms(*tables: str) -> dict[str, str]:
    pairs: list[tuple[str, str]] = []
    for entry in " ".join(tables).split():
        word, _, other = entry.partition("=")
        pairs.append((word, other))
    return dict(pairs) | {b: a for a, b in pairs}


class Lexicon:
    """All words, with the pools that verbs and constructions draw from."""

    def __init__(self) -> None:
        groups = {sort: group for group, sorts in _lists("sort_groups").items() for sort in sorts}
        self._adjectives = _lists("adjectives")
        self._predicates = _lists("predicates")
        self._manner = _lists("manner")
        self.frequency = WORDS["frequency"].split()
        self.times = _lists("times")
        self.causes = _lists("causes")
        self.sorts: dict[str, list[Noun]] = {}
        for sort, entries in _lists("nouns").items():
            self.sorts[sort] = [self._noun(e, sort, groups[sort]) for e in entries]
        self.nouns = {n.lemma: n for pool in self.sorts.values() for n in pool}
        self.names = [
            Noun(name, name, "name", gender, proper=True)
            for gender, names in _lists("person_names").items()
            for name in names
        ]
        self.locative = {
            place: preposition
            for preposition, places in _lists("locatives").items()
            for place in places
        }
        self._read_verbs()
        self.noun_synonyms = _synonyms(WORDS["noun_synonyms"])
        self.verb_synonyms = _synonyms(WORDS["verb_synonyms"])
        self.modifier_synonyms = _synonyms(WORDS["adjective_synonyms"], WORDS["adverb_synonyms"])

    def _read_verbs(self) -> None:
        self.transitive = [self._transitive(row) for row in _rows("transitive")]
        self.intransitive = [self._intransitive(row) for row in _rows("intransitive")]
        self.ditransitive = [self._ditransitive(row) for row in _rows("ditransitive")]
        people = tuple(self.sorts["person"])
        self.complement = [
            Verb(
                *_paradigm(r[0]),
                r[1],
                (_SAYERS.get(r[1], "experiencer"), "content"),
                subjects=people,
                flags=r[2],
            )
            for r in _rows("complement")
        ]
        self.control = [
            Verb(*_paradigm(r[0]), r[1], ("agent", "content"), subjects=people, flags=r[2])
            for r in _rows("control")
        ]
        self.object_control = [
            Verb(*_paradigm(r[0]), r[1], ("agent", "recipient"), subjects=people, objects=people)
            for r in _rows("object_control")
        ]
        self.surprise = [
            Verb(*_paradigm(r[0]), r[1], ("stimulus", "experiencer"), objects=people, flags="g")
            for r in _rows("surprise")
        ]
        self.motion = [
            Verb(
                *_paradigm(forms),
                "Motion",
                ("agent",),
                people,
                manner=tuple(self._manner["motion"]),
            )
            for forms in WORDS["motion"].splitlines()
        ]
        self.be = Verb("be", "is", "was", "been", "being", "Being")

    def _noun(self, entry: str, sort: str, group: str) -> Noun:
        word, _, gender = entry.partition(":")
        singular, _, plural = word.partition("/")
        human = sort in ("person", "kin")
        return Noun(
            singular,
            plural or third_person(singular),
            sort,
            gender or ("" if human else "n"),
            mass=sort in WORDS["mass_sorts"].split(),
            adjectives=tuple(self._adjectives[group]),
            predicates=tuple(self._predicates[group]),
        )

    def pool(self, cell: str) -> tuple[Noun, ...]:
        """The nouns that a cell of sorts and `=noun` entries names, each once."""
        found: dict[str, Noun] = {}
        for entry in cell.split():
            members = [self.nouns[entry[1:]]] if entry.startswith("=") else list(self.sorts[entry])
            found.update((n.lemma, n) for n in members)
        return tuple(found.values())

    def _places(self, letters: str) -> tuple[Noun, ...]:
        scenes = _lists("scenes")
        return tuple(self.nouns[name] for letter in letters for name in scenes[letter])

    def _transitive(self, row: list[str]) -> Verb:
        forms, frame, subjects, objects, roles, manner, places, flags = row
        return Verb(
            *_paradigm(forms),
            frame,
            tuple(roles.split()),
            self.pool(subjects),
            self.pool(objects),
            tuple(self._manner[manner]) if manner else (),
            self._places(places),
            flags=flags,
        )

    def _intransitive(self, row: list[str]) -> Verb:
        forms, frame, subjects, role, manner, places, flags = row
        return Verb(
            *_paradigm(forms),
            frame,
            (role,),
            self.pool(subjects),
            (),
            tuple(self._manner[manner]) if manner else (),
            self._places(places),
            flags=flags,
        )

    def _ditransitive(self, row: list[str]) -> Verb:
        forms, frame, preposition, themes, manner, places, flags = row
        other = "recipient" if preposition == "to" else "beneficiary"
        return Verb(
            *_paradigm(forms),
            frame,
            ("agent", "theme", other),
            tuple(self.sorts["person"]),
            self.pool(themes),
            tuple(self._manner[manner]),
            self._places(places),
            preposition,
            flags,
        )

    @cached_property
    def reversible(self) -> list[Verb]:
        """Verbs of one person acting on another, where swapping the two changes what is said."""
        people = {n.lemma for n in self.sorts["person"]}
        return [
            v
            for v in self.transitive
            if v.passive
            and "y" not in v.flags
            and people <= {n.lemma for n in v.objects}
            and people <= {n.lemma for n in v.subjects}
        ]

    @cached_property
    def human_transitive(self) -> list[Verb]:
        """Transitive verbs that take a person as their subject."""
        return [v for v in self.transitive if v.subjects[0].human]

    @cached_property
    def doings(self) -> list[Verb]:
        """Transitive verbs of what people do, as against what they feel or own."""
        return [v for v in self.human_transitive if "s" not in v.flags]

    @cached_property
    def describable(self) -> list[tuple[Noun, ...]]:
        """Pools of nouns that one may call something; people as often as all else together."""
        pools = [tuple(pool) for sort, pool in self.sorts.items() if sort != "kin"]
        return pools + [tuple(self.sorts["person"])] * len(pools)

    @cached_property
    def professions(self) -> list[Noun]:
        """Nouns for what somebody is by trade."""
        return [n for n in self.sorts["person"] if n.lemma not in WORDS["unemployed"].split()]

    @cached_property
    def believing(self) -> dict[str, Verb]:
        """Verbs that take a that-clause, by lemma."""
        return {v.lemma: v for v in self.complement}

    @cached_property
    def optional(self) -> list[Verb]:
        """Verbs that can do without their object."""
        return [v for v in self.transitive if "o" in v.flags]

    @cached_property
    def reflexive(self) -> list[Verb]:
        """Verbs that people also do to themselves."""
        return [v for v in self.transitive if "r" in v.flags]

    @cached_property
    def people_in_plural(self) -> tuple[Noun, ...]:
        """People of whom there may be several."""
        return tuple(n for n in self.sorts["person"] if n.lemma not in UNIQUE)

    @cached_property
    def gendered(self) -> tuple[Noun, ...]:
        """People whose noun settles the pronoun."""
        return tuple(n for n in self.sorts["person"] if n.gender)

    @cached_property
    def habits(self) -> list[Verb]:
        """What people may do day by day, in the present tense."""
        alone = [v for v in self.intransitive if v.lemma in WORDS["habits"].split()]
        return alone + [v for v in self.doings if v.progressive]

    @cached_property
    def with_things(self) -> list[Verb]:
        """Verbs people use with things that come in any number."""
        return [
            v
            for v in self.doings
            if "1" not in v.flags and any(not n.human and n.sort != "land" for n in v.objects)
        ]

    @cached_property
    def movable(self) -> tuple[Noun, ...]:
        """What one may come upon in any place."""
        return self.pool("person animal container clothing toy =bench =ladder =bicycle =table")

    @cached_property
    def anywhere(self) -> tuple[Noun, ...]:
        """Every place somebody may be at."""
        return self._places("nsro")

    @cached_property
    def words(self) -> frozenset[str]:
        """Citation forms of every word the grammar can use."""
        found: set[str] = set(self.nouns) | {n.lemma for n in self.names}
        found.update(v.lemma for v in self._all_verbs())
        for table in (self._adjectives, self._predicates, self._manner, self.causes):
            found.update(w for members in table.values() for w in members)
        found.update(self.frequency, WORDS["function_words"].split())
        for entries in self.times.values():
            found.update(w for e in entries for w in e.partition(":")[2].split("_"))
        return frozenset(found)

    def _all_verbs(self) -> Iterable[Verb]:
        yield from self.transitive + self.intransitive + self.ditransitive + self.complement
        yield from self.control + self.object_control + self.surprise + self.motion


LEXICON = Lexicon()
