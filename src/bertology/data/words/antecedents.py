"""Which earlier mention a mention refers back to: what may be chosen, and simple ways to choose.

The candidates of a mention are the mentions whose head stands before its own head and that share
no word with it. It is a question only where some candidate corefers with it and some does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bertology.data.corpus import Example, Field
from bertology.data.words.agreement import Agreement, agree, agreement_of
from bertology.data.words.mentions import Mention


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
