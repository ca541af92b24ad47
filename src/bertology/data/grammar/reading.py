"""Small stories with questions, and the same stories in other words.

A story tells three events: who did what to which thing, and where. All three verbs go with all
things, people and places, and the wrong answers are the other two of the story, so that neither the
question alone nor the answers alone tell what is right. The paraphrase has the same events in the
same order: two thirds of the sentences in the passive and with synonyms where the lexicon has them,
half of their places in front; in the others nothing but the place moves. A question is asked in the
words of the story: who matches words finds the answer there, and must read to find it in two thirds
of the paraphrases.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bertology.data.grammar.clauses import clause, close
from bertology.data.grammar.lexicon import LEXICON
from bertology.data.grammar.meaning import Adjunct, Entity, Event
from bertology.data.grammar.paraphrase import write
from bertology.data.grammar.rows import Row

KINDS = ("who", "what", "where")
_VERBS = (("repair", "fix"), ("buy", "purchase"), ("clean", "push", "sell"))
_THINGS = ("vehicle", "furniture")
_MOVED = 1 / 3  # of the sentences: these keep their words together
_OUTSIDE = ("market", "station", "airport")  # one is at them rather than in them


class Story(NamedTuple):
    """A text, the same in other words, and the events that both tell."""

    text: str
    paraphrase: str
    events: tuple[Event, ...]


class ReadingDraw:
    """Random stories and questions about them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._verbs = {v.lemma: v for v in reversed(LEXICON.transitive)}
        synonyms = LEXICON.noun_synonyms
        people = [n for n in LEXICON.sorts["person"] if synonyms.get(n.lemma, "~") > n.lemma]
        self._people = people
        self._things = [n for sort in _THINGS for n in LEXICON.sorts[sort]]
        places = [*LEXICON.sorts["home"], *LEXICON.sorts["town"]]
        self._places = [n for n in places if n.lemma not in _OUTSIDE]

    def story(self) -> Story:
        """Three events; nobody and nothing is in two of them."""
        verbs = [self._verbs[self.rng.choice(known)] for known in _VERBS]
        self.rng.shuffle(verbs)
        people, things, places = (
            self.rng.sample(pool, len(verbs)) for pool in (self._people, self._things, self._places)
        )
        events = tuple(
            Event(verb, Entity(who), Entity(what), place=Adjunct("in", Entity(where)))
            for verb, who, what, where in zip(verbs, people, things, places, strict=True)
        )
        text = " ".join(write(close(clause(event))) for event in events)
        return Story(text, " ".join(map(self._reworded, events)), events)

    def _reworded(self, event: Event) -> str:
        if self.rng.random() < _MOVED:
            return write(close(clause(event.but(front="place"))))
        other = LEXICON.verb_synonyms.get(event.verb.lemma)
        noun = LEXICON.noun_synonyms.get(event.subject.noun.lemma)
        changed = event.but(
            verb=self._verbs[other] if other else event.verb,
            subject=event.subject.but(noun=LEXICON.nouns[noun]) if noun else event.subject,
            front="place" if self.rng.random() < 0.5 else "",
        )
        return write(close(clause(changed, "passive")))

    def question(self, story: Story, kind: str) -> tuple[str, list[str], int]:
        """A question about one of the events, three answers, and the place of the right one."""
        event = self.rng.choice(story.events)
        answers = [_answer(one, kind) for one in story.events]
        right = _answer(event, kind)
        self.rng.shuffle(answers)
        return _asked(event, kind), answers, answers.index(right)


def _the(entity: Entity) -> str:
    return f"the {entity.noun.lemma}"


def _told(event: Event) -> dict[str, str]:
    """Who did something to what, and where, in words."""
    assert event.object is not None
    assert event.place is not None
    where = f"{event.place.preposition} {_the(event.place.entity)}"
    return {"who": _the(event.subject), "what": _the(event.object), "where": where}


def _answer(event: Event, kind: str) -> str:
    return _told(event)[kind]


def _asked(event: Event, kind: str) -> str:
    verb, told = event.verb, _told(event)
    who, what = told["who"], told["what"]
    return {
        "who": f"Who {verb.past} {what}?",
        "what": f"What did {who} {verb.lemma}?",
        "where": f"Where did {who} {verb.lemma} {what}?",
    }[kind]


def reading_rows(seed: int, has: Callable[[str], bool]) -> Iterator[Row]:
    """Questions of each kind about one story after the other; both wordings are of one split."""
    draw, number, seen = ReadingDraw(random.Random(seed)), 0, set[str]()
    while True:
        story = draw.story()
        if story.text in seen or not (has(story.text) and has(story.paraphrase)):
            continue
        seen.add(story.text)
        for kind in KINDS:
            question, answers, right = draw.question(story, kind)
            about: dict[str, object] = {
                "candidates": answers,
                "group": kind,
                "item": f"story-{number}",
                "paraphrase": story.paraphrase,
            }
            yield story.text, question, right, about
        number += 1
