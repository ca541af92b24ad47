"""Which earlier mention a mention refers back to: what may be chosen, and simple ways to choose.

The candidates of a mention are the mentions whose head stands before its own head and that share
no word with it. It is a question only where some candidate corefers with it and some does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from bertology.data.corpus import Example, Field

# Mentions: spans of words that refer to something, with the word that heads them.
#
# They are read from COREFERENCE, POS and, where there is one, the tree. Without a tree, the head is
# the last noun, pronoun or number before what follows the noun: a preposition, a comma, a
# conjunction, a verb or a relative word ("the *house* on the hill", "the *bishop* of Mainz, who");
# where there is none of these kinds, the last word. A name's head is thus its last word ("Jane
# *Austen*"); trees of Universal Dependencies have its first.

_HEADS = ("NOUN", "PROPN", "PRON", "NUM", "SYM")
_AFTER = ("ADP", "PUNCT", "CCONJ", "SCONJ", "VERB", "AUX")
_RELATIVE = frozenset({"who", "whom", "whose", "which", "that"})


class MentionKind(StrEnum):
    """What a mention is headed by."""

    PRONOUN = "pronoun"
    PROPER = "proper"
    NOMINAL = "nominal"


@dataclass(frozen=True, slots=True)
class Mention:
    """From the word `first` to the one before `end`; `cluster` is the same of all that corefer."""

    first: int
    end: int
    head: int
    cluster: int
    kind: MentionKind

    def overlaps(self, other: Mention) -> bool:
        """Whether they share a word: nothing refers to a part of itself."""
        return self.first < other.end and other.first < self.end


def mentions_of(example: Example) -> list[Mention]:
    """All mentions of an example, in the order of their heads."""
    tags, heads = example.get(Field.POS), example.annotations.get(Field.HEADS)
    words = example.get(Field.WORDS)
    found = []
    for number, cluster in enumerate(example.get(Field.COREFERENCE) or ()):
        for first, end in cluster:
            head = head_word(first, end, words=words, tags=tags, heads=heads)
            found.append(Mention(first, end, head, number, _kind(tags[head])))
    return sorted(found, key=lambda m: (m.head, m.first, m.end))


def head_word(
    first: int,
    end: int,
    *,
    words: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[int] | None = None,
) -> int:
    """The word that heads a span: the one that hangs on a word outside, or the rule's."""
    if heads is not None:
        outside = [i for i in range(first, end) if not first <= heads[i] < end]
        named = [i for i in outside if tags[i] in _HEADS]
        if outside:
            return (named or outside)[0]
    named = []
    for i in range(first, end):
        follows = tags[i] in _AFTER or words[i].lower() in _RELATIVE
        if named and follows:
            break
        if tags[i] in _HEADS:
            named.append(i)
    return named[-1] if named else end - 1


def _kind(tag: str) -> MentionKind:
    if tag in ("PRON", "DET"):  # "this" alone is a determiner to some taggers
        return MentionKind.PRONOUN
    return MentionKind.PROPER if tag == "PROPN" else MentionKind.NOMINAL


# Number, gender and person of English mentions, as far as their head word tells.
#
# Pronouns tell by themselves. Nouns are of the third person; their number is told by the lemma, or
# by how they end, and their gender by lists: the people and names of the bundled grammar, kin and
# titles. What is not known agrees with everything. A known person does not agree with `it`.

_PRONOUNS = {
    "1 singular -": "i me my mine myself", "1 plural -": "we us our ours ourselves",
    "2 - -": "you your yours yourself", "2 plural -": "yourselves",
    "3 singular masculine": "he him his himself", "3 singular feminine": "she her hers herself",
    "3 singular neuter": "it its itself this that", "3 plural -": "they them their theirs "
    "themselves these those", "3 - person": "who whom someone somebody everyone everybody anyone",
}  # fmt: skip
_MASCULINE = (
    "mr mr. sir lord king prince duke man boy gentleman father son brother uncle nephew husband "
    "grandfather dad daddy papa grandson grandpa monk priest bishop guy lad fellow waiter actor "
    "john james robert michael william david richard charles joseph thomas christopher daniel paul "
    "mark donald george kenneth steven edward brian ronald anthony kevin jason jeff gary tim jose "
    "larry frank scott eric stephen andrew raymond joe jerry walter patrick peter harold henry "
    "carl arthur ryan roger jack albert jonathan justin terry gerald keith samuel lawrence tom "
    "bob bill jim mike steve dave dan fred ben luke adam alex sam max leo oscar hugo philip simon"
)
_FEMININE = (
    "mrs mrs. miss ms ms. lady queen princess duchess woman girl mother daughter sister aunt niece "
    "wife grandmother mom mum mama granddaughter grandma nun madam actress waitress widow mary "
    "patricia linda barbara elizabeth jennifer maria susan margaret dorothy lisa nancy karen betty "
    "helen sandra donna carol ruth sharon michelle laura sarah kimberly deborah jessica shirley "
    "cynthia angela melissa brenda amy anna rebecca virginia kathleen pamela martha debra amanda "
    "stephanie carolyn christine marie janet catherine frances ann joyce diane alice julie heather "
    "teresa doris gloria evelyn jean cheryl mildred katherine joan ashley judith rose janice kelly "
    "nicole judy christina kathy jane emma emily charlotte sophia olivia ellen lucy kate claire"
)
_PEOPLE = (
    "person child friend teacher doctor student author writer president minister leader member "
    "people officer soldier player director manager worker parent baby neighbor visitor guest "
    "captain owner judge lawyer nurse driver artist singer poet professor scientist servant master"
)
_SINGULAR_ENDS = ("ss", "us", "is", "news", "'s")


@dataclass(frozen=True, slots=True)
class Agreement:
    """What is known; None agrees with everything."""

    person: str | None = None
    number: str | None = None
    gender: str | None = None


def agree(a: Agreement, b: Agreement) -> bool:
    """Whether nothing that is known of both differs."""
    return (
        _alike(a.person, b.person)
        and _alike(a.number, b.number)
        and (_alike(a.gender, b.gender) or {a.gender, b.gender} in _PERSONS)
    )


_PERSONS = ({"person", "masculine"}, {"person", "feminine"})


def _alike(a: str | None, b: str | None) -> bool:
    return a is None or b is None or a == b


def agreement_of(example: Example, mention: Mention) -> Agreement:
    """What the head word, its lemma and the words before it tell."""
    words = example.get(Field.WORDS)
    head = str(words[mention.head]).lower()
    if head in _pronouns() and mention.kind is not MentionKind.PROPER:
        return _pronouns()[head]
    if mention.kind is MentionKind.PRONOUN:
        return Agreement()
    tags = example.get(Field.POS)[mention.first : mention.end]
    inside = [str(w).lower() for w in words[mention.first : mention.end]]
    lemmas = example.annotations.get(Field.LEMMAS)
    lemma = str(lemmas[mention.head]).lower() if lemmas is not None else None
    plural = "CCONJ" in tags and "and" in inside[: mention.head - mention.first + 2]
    plural = plural or (mention.kind is MentionKind.NOMINAL and _is_plural(head, lemma))
    known = [lemma or "", head, head.removesuffix("s")]
    if mention.kind is MentionKind.PROPER:
        known += inside
    gender = next((_genders()[w] for w in known if w in _genders()), None)
    return Agreement("3", "plural" if plural else "singular", gender)


def _is_plural(word: str, lemma: str | None) -> bool:
    if word in ("people", "men", "women", "children", "police"):
        return True
    ends = word.endswith("s") and not word.endswith(_SINGULAR_ENDS)
    return ends if lemma is None else ends and lemma != word


@cache
def _pronouns() -> dict[str, Agreement]:
    found = dict[str, Agreement]()
    for told, words in _PRONOUNS.items():
        person, number, gender = (None if t == "-" else t for t in told.split())
        found |= dict.fromkeys(words.split(), Agreement(person, number, gender))
    return found


@cache
def _genders() -> dict[str, str]:
    """By word. The grammar's lexicon is built when it is first asked."""
    from bertology.data.grammar.lexicon import LEXICON

    names = {"m": "masculine", "f": "feminine"}
    people = [*LEXICON.names, *LEXICON.sorts["person"]]
    things = (
        n for sort, of in LEXICON.sorts.items() if sort not in ("person", "animal") for n in of
    )
    found = {noun.lemma.lower(): "neuter" for noun in things}
    found |= {noun.lemma.lower(): names.get(noun.gender or "", "person") for noun in people}
    for gender, listed in (
        ("person", _PEOPLE),
        ("masculine", _MASCULINE),
        ("feminine", _FEMININE),
    ):
        found |= dict.fromkeys(listed.split(), gender)
    return found


@dataclass(frozen=True, slots=True)
class Question:
    """A mention, its candidates in the order of their heads, and which of them are right."""

    mention: Mention
    candidates: tuple[Mention, ...]

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether each candidate corefers with the mention."""
        return tuple(c.cluster == self.mention.cluster for c in self.candidates)

    @property
    def targets(self) -> frozenset[int]:
        """The head words of the right candidates."""
        return frozenset(c.head for c in self.candidates if c.cluster == self.mention.cluster)


def questions_of(mentions: Sequence[Mention]) -> list[Question]:
    """Those of the mentions of a text that have a choice."""
    found = []
    for mention in mentions:
        before = tuple(c for c in mentions if c.head < mention.head and not c.overlaps(mention))
        question = Question(mention, before)
        if any(question.right) and not all(question.right):
            found.append(question)
    return found


def baseline_hits(example: Example, questions: Sequence[Question]) -> list[dict[str, float]]:
    """For each question, whether each of BASELINES picks a right candidate; chance is a share."""
    words = [str(w).lower() for w in example.get(Field.WORDS)]
    known: dict[Mention, _Known] = {}
    for question in questions:
        for mention in (question.mention, *question.candidates):
            if mention not in known:
                text = tuple(words[mention.first : mention.end])
                known[mention] = _Known(text, words[mention.head], agreement_of(example, mention))
    return [_hits(question, known) for question in questions]


@dataclass(frozen=True, slots=True)
class _Known:
    text: tuple[str, ...]
    head: str
    agreement: Agreement


_Sieve = Callable[[_Known, _Known], bool]


def _same_text(a: _Known, b: _Known) -> bool:
    return a.text == b.text


def _same_head(a: _Known, b: _Known) -> bool:
    return a.head == b.head


def _agreeing(a: _Known, b: _Known) -> bool:
    return agree(a.agreement, b.agreement)


_SIEVES: dict[str, tuple[_Sieve, ...]] = {
    "nearest": (),
    "string match or nearest": (_same_text,),
    "head match": (_same_head,),
    "head match or nearest": (_same_head,),
    "sieve": (_same_text, _same_head, _agreeing),
}
_ALONE = ("head match",)  # without a match nothing is picked: the baseline of Clark et al.
SIMPLE = ("random", "first", "nearest")
BASELINES = ("random", "first", *_SIEVES)
"""Ways to choose. The nearest candidate that passes the earliest sieve is taken, after the rules of
Clark et al. (2019); where none passes any, the nearest."""


def _hits(question: Question, known: dict[Mention, _Known]) -> dict[str, float]:
    right, own = question.right, known[question.mention]
    found = {"random": sum(right) / len(right), "first": float(right[0])}
    for name, sieves in _SIEVES.items():
        picked = None if name in _ALONE else len(right) - 1
        for passes in sieves:
            through = [i for i, c in enumerate(question.candidates) if passes(own, known[c])]
            if through:
                picked = through[-1]
                break
        found[name] = 0.0 if picked is None else float(right[picked])
    return found
