"""Links between words: pairs of words that a relation holds of, by the relation's name.

The first word of a name is where a link starts. What may be asked for, and what it is read from:

    frame             predicate -> each core element        FRAME, ROLES (PREDICATE or VERB)
    role:NAME         predicate -> the element called NAME  the same
    nsubj, obj, …     head -> dependent, subtypes included  HEADS, RELATIONS
    nsubj:pass        the same, this subtype only
    nsubj:plain       the same, those without a subtype
    dependency:LABEL  the same, for labels that are not universal ones
    all               the same, all but punctuation         the same
    prep              governor -> preposition               the same
    verb-subject      verb -> subject                       HEADS, RELATIONS, POS; or VERB, SUBJECT
    verb-object       verb -> object                        the same with OBJECT
    coreference       mention -> the mention before it      COREFERENCE
    noun-pronoun      noun -> pronoun                       COREFERENCE, POS; or POS
    links             your own, source -> target            LINKS (see below)
    links:NAME        those of them with this name          the same

`prep` is not a relation of Universal Dependencies, in which prepositions hang from their nouns: it
leads from the word that the noun of a preposition hangs from to the preposition, as other schemes
have it. `verb-subject` and `verb-object` are those of every clause where the syntax is annotated,
and of the main clause where only that is. `noun-pronoun` links a pronoun with the noun that it
stands for; where no coreference is annotated, with the nearest noun before it (or else after it),
which is our reading of an experiment that the literature does not spell out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.antecedents import Mention, mentions_of
from bertology.errors import CapabilityError, DataError, UnknownNameError

# Links that a corpus brings itself: any pairs of words, several for a word if need be.
#
# The field `links` of an example is a list. Each entry is `[source, target]` or
# `[source, target, name]`; source and target are positions of words, counted from 0, or lists of
# positions where an end has several words:
#
#     {"words": ["Rain", "fell", "so", "roads", "closed"], "links": [[4, 1, "cause"], [3, [0, 1]]]}
#
# The relation `links` is all of them, `links:cause` those with this name.

OWN = "links"

Ends = tuple[tuple[int, ...], tuple[int, ...], str]


def is_own(relation: str) -> bool:
    """Whether a relation is made of the field `links`."""
    return relation == OWN or relation.startswith(f"{OWN}:")


def own_ends(links: object, relation: str = OWN) -> list[Ends]:
    """Source, target and name of each link of the relation."""
    wanted = relation.partition(":")[2]
    entries = links if isinstance(links, Sequence) and not isinstance(links, str) else [links]
    found = [_ends(entry) for entry in entries]
    return [ends for ends in found if not wanted or ends[2] == wanted]


def check_links(links: object, words: int, at: str) -> None:
    """Refuse links that are not of this form, or that point outside the words; `at` is where."""
    try:
        found = own_ends(links)
    except DataError as error:
        raise DataError(f"{at}: {error}", hint=error.hint) from None
    for source, target, _ in found:
        outside = [position for position in (*source, *target) if not 0 <= position < words]
        if outside:
            raise DataError(
                f"{at}: a link names the word {outside[0]}, and there are {words} words.",
                hint="Words are counted from 0.",
            )


def _ends(entry: object) -> Ends:
    if isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) in (2, 3):
        sides = [_side(side) for side in entry[:2]]
        name = entry[2] if len(entry) == 3 else ""
        if sides[0] and sides[1] and isinstance(name, str):
            return sides[0], sides[1], name
    raise DataError(
        f"{entry!r} is not a link.",
        hint="A link is [source, target] or [source, target, name]: positions of words, or lists "
        'of positions, such as [5, 1] or [4, [0, 1], "cause"].',
    )


def _side(side: object) -> tuple[int, ...]:
    given = list(side) if isinstance(side, Sequence) and not isinstance(side, str) else [side]
    whole = [p for p in given if isinstance(p, int) and not isinstance(p, bool)]
    return tuple(sorted(set(whole))) if len(whole) == len(given) else ()


UNIVERSAL = tuple(
    """acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse
    dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis
    punct reparandum vocative xcomp""".split()
)
"""The relations of Universal Dependencies, less `root`, which links nothing."""

PLAIN = "plain"
"""In place of a subtype: a relation without one."""
_ROLE, _DEPENDENCY = "role:", "dependency:"
_PREP = "prep"
_NOUNS = ("NOUN", "PROPN")
_VERBS = ("VERB", "AUX")


@dataclass(frozen=True, slots=True)
class Link:
    """Two groups of words that belong together; positions are those of the example's words."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    name: str

    @property
    def distance(self) -> int:
        """From the nearest word of one side to the nearest of the other; neighbours have 1."""
        return min(abs(a - b) for a in self.source for b in self.target)

    @property
    def longest(self) -> int:
        """The number of words of the longer side."""
        return max(len(self.source), len(self.target))

    def reversed(self) -> Link:
        """The same link, seen from its other end."""
        return Link(self.target, self.source, self.name)


def links_of(example: Example, relation: str, *, reverse: bool = False) -> list[Link]:
    """The links of one example, in the order of their sources; none is a fine answer.

    `reverse` turns them round: `links_of(example, "nsubj", reverse=True)` leads from subjects to
    their heads. Groups that share a word are not linked.
    """
    found = _find(relation)(example)
    apart = [link for link in found if not set(link.source) & set(link.target)]
    apart.sort(key=lambda link: (link.source, link.target))
    return [link.reversed() for link in apart] if reverse else apart


def check_relation(relation: str, corpus: Corpus, *, added: frozenset[Field] = frozenset()) -> None:
    """Refuse, before any work, a relation that is unknown or that the corpus does not annotate.

    `added` are fields that a tagger will give it.
    """
    _find(relation)
    wanted = _needed(relation)
    if not any(fields <= corpus.fields | added for fields in wanted):
        needs = " or ".join(", ".join(sorted(fields)) for fields in wanted)
        raise CapabilityError(
            f"The relation {relation!r} needs {needs}, which the corpus {corpus.name!r} lacks.",
            hint=f"It has: {', '.join(sorted(corpus.fields))}. See what other corpora carry with: "
            "bertology datasets",
        )


def _find(relation: str) -> Callable[[Example], list[Link]]:
    if relation in _NAMED:
        return _NAMED[relation]
    if is_own(relation):
        return lambda example: _own(example, relation)
    if relation.startswith(_ROLE):
        role = relation.removeprefix(_ROLE)
        return lambda example: [k for k in _frame(example) if k.name == role]
    label = relation.removeprefix(_DEPENDENCY)
    if relation.startswith(_DEPENDENCY) or label.split(":")[0] in UNIVERSAL:
        return lambda example: list(_dependencies(example, label))
    choices = [*_NAMED, *UNIVERSAL, "role:NAME", "dependency:LABEL", "links", "links:NAME"]
    raise UnknownNameError(
        "relation", relation, choices, hint=f"Named ones: {', '.join(_NAMED)}; role:NAME for one "
        "role; any label of Universal Dependencies, such as nsubj; dependency:LABEL for others; "
        "links or links:NAME for your own."
    )  # fmt: skip


def _needed(relation: str) -> tuple[frozenset[Field], ...]:
    """The sets of fields that a relation can be read from; one of them is enough."""
    syntax = frozenset({Field.HEADS, Field.RELATIONS})
    if relation == "frame" or relation.startswith(_ROLE):
        roles = frozenset({Field.FRAME, Field.ROLES})
        return roles | {Field.PREDICATE}, roles | {Field.VERB}
    if is_own(relation):
        return (frozenset({Field.LINKS}),)
    if relation == "coreference":
        return (frozenset({Field.COREFERENCE}),)
    if relation == "noun-pronoun":
        return (frozenset({Field.POS}),)
    if relation in ("verb-subject", "verb-object"):
        other = Field.SUBJECT if relation == "verb-subject" else Field.OBJECT
        return syntax | {Field.POS}, frozenset({Field.VERB, other})
    return (syntax,)


def _frame(example: Example) -> list[Link]:
    predicate = example.annotations.get(Field.PREDICATE)
    if predicate is None:
        verb = example.annotations.get(Field.VERB)
        predicate = () if verb is None else (verb,)
    if not predicate:
        return []
    roles = example.get(Field.ROLES).items()
    return [Link(tuple(predicate), tuple(range(*span)), str(role)) for role, span in roles]


def _own(example: Example, relation: str) -> list[Link]:
    return [Link(*ends) for ends in own_ends(example.get(Field.LINKS) or [], relation)]


def dependencies_of(example: Example) -> Iterator[Link]:
    """All links from heads to dependents, punctuation too, and `prep`; names are as annotated."""
    rows = zip(example.get(Field.HEADS), example.get(Field.RELATIONS), strict=True)
    for word, (head, relation) in enumerate(rows):
        if head >= 0 and head != word:
            yield Link((head,), (word,), relation)
    yield from _prepositions(example)


def _dependencies(example: Example, label: str) -> Iterator[Link]:
    base, _, subtype = label.partition(":")
    label = base if subtype == PLAIN else label
    for link in dependencies_of(example):
        if link.name == _PREP:
            continue
        if link.name == label or (not subtype and link.name.partition(":")[0] == label):
            yield link


def _all(example: Example) -> list[Link]:
    left_out = ("punct", _PREP)
    return [k for k in dependencies_of(example) if k.name.partition(":")[0] not in left_out]


def _prepositions(example: Example) -> Iterator[Link]:
    """From what the noun of a preposition hangs from to the preposition."""
    heads, relations = example.get(Field.HEADS), example.get(Field.RELATIONS)
    for word, (noun, relation) in enumerate(zip(heads, relations, strict=True)):
        governed = noun >= 0 and relations[noun].partition(":")[0] in ("nmod", "obl")
        if relation == "case" and governed and heads[noun] not in (-1, word):
            yield Link((heads[noun],), (word,), _PREP)


def _subjects(example: Example) -> list[Link]:
    if not _parsed(example):
        return _main(example, Field.SUBJECT, "verb-subject")
    # "Helen is thirsty": the subject hangs on the adjective, and the verb is its copula.
    copulas = {k.source: k.target for k in _dependencies(example, "cop")}
    found = [*_dependencies(example, "nsubj"), *_dependencies(example, "csubj")]
    verbs = [Link(copulas.get(k.source, k.source), k.target, "verb-subject") for k in found]
    return [k for k in verbs if example.get(Field.POS)[k.source[0]] in _VERBS]


def _objects(example: Example) -> list[Link]:
    if not _parsed(example):
        return _main(example, Field.OBJECT, "verb-object")
    found = (Link(k.source, k.target, "verb-object") for k in _dependencies(example, "obj"))
    return [k for k in found if example.get(Field.POS)[k.source[0]] in _VERBS]


def _parsed(example: Example) -> bool:
    return all(f in example.annotations for f in (Field.HEADS, Field.RELATIONS, Field.POS))


def _main(example: Example, other: Field, name: str) -> list[Link]:
    verb, word = example.get(Field.VERB), example.get(other)
    return [] if verb is None or word is None else [Link((verb,), (word,), name)]


def _coreference(example: Example) -> list[Link]:
    found = []
    for cluster in example.get(Field.COREFERENCE) or ():
        mentions = [tuple(range(*span)) for span in sorted(map(tuple, cluster))]
        for earlier, later in pairwise(mentions):
            found.append(Link(later, earlier, "coreference"))
    return found


def _pronouns(example: Example) -> list[Link]:
    tags = example.get(Field.POS)
    if Field.COREFERENCE not in example.annotations:
        nouns = [i for i, tag in enumerate(tags) if tag in _NOUNS]
        pairs = [(i, nouns) for i, tag in enumerate(tags) if tag == "PRON"]
    else:
        pairs, clusters = [], dict[int, list[Mention]]()
        for mention in mentions_of(example):
            clusters.setdefault(mention.cluster, []).append(mention)
        for mentions in clusters.values():
            heads = [m.head for m in mentions]
            nouns = [i for i in heads if tags[i] in _NOUNS]
            pairs += [(i, nouns) for i in heads if tags[i] == "PRON"]
    links = ((_nearest(pronoun, nouns), pronoun) for pronoun, nouns in pairs)
    return [Link((noun,), (at,), "noun-pronoun") for noun, at in links if noun is not None]


def _nearest(pronoun: int, nouns: list[int]) -> int | None:
    before = [i for i in nouns if i < pronoun]
    after = [i for i in nouns if i > pronoun]
    return max(before) if before else min(after, default=None)


_NAMED: dict[str, Callable[[Example], list[Link]]] = {
    "frame": _frame,
    "all": _all,
    _PREP: lambda example: list(_prepositions(example)),
    "coreference": _coreference,
    "verb-subject": _subjects,
    "verb-object": _objects,
    "noun-pronoun": _pronouns,
}
