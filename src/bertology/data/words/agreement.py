"""Number, gender and person of English mentions, as far as their head word tells.

Pronouns tell by themselves. Nouns are of the third person; their number is told by the lemma, or
by how they end, and their gender by lists: the people and names of the bundled grammar, kin and
titles. What is not known agrees with everything. A known person does not agree with `it`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from bertology.data.corpus import Example, Field
from bertology.data.words.mentions import Mention, MentionKind

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
