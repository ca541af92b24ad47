"""Clozes: how corpora write a blank, and how a template words a fact.

A fact is an example with an ENTITY, an ANSWER and WORDINGS. The wordings are one tuple that all
facts of a relation share, and a sentence is made when it is asked for: so 29,411 facts in dozens of
wordings take no more memory than the facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from bertology.data.corpus import Example
from bertology.errors import DataError

MASK = "[MASK]"
"""The blank as corpora write it; a study puts its tokenizer's own mask token in its place."""

_SPELLINGS = ("<mask>", "{mask}")
_ENTITY, _ANSWER = "[X]", "[Y]"


def with_mask(text: str, at: str) -> str:
    """The text with its blank spelt [MASK]; one that has no blank, or several, is refused."""
    for spelling in _SPELLINGS:
        text = text.replace(spelling, MASK)
    blanks = text.count(MASK)
    if blanks != 1:
        raise DataError(f"{at}: {text!r:.60} has {blanks or 'no'} blanks; one {MASK} is wanted.")
    return text.strip()


def check_template(template: str, at: str) -> str:
    """The template, which must have one [X] and one [Y]."""
    for slot, meaning in ((_ENTITY, "the entity"), (_ANSWER, "the answer")):
        found = template.count(slot)
        if found != 1:
            raise DataError(
                f"{at}: the template {template!r:.60} has {found or 'no'} {slot}.",
                hint=f"Write {slot} once, where {meaning} stands: [X] was born in [Y].",
            )
    return template.strip()


def worded(template: str, entity: str) -> str:
    """The cloze that a template makes of a fact about `entity`."""
    return template.replace(_ANSWER, MASK).replace(_ENTITY, entity)


def sentences_of(fact: Example) -> Iterator[str]:
    """The clozes of a fact in all its wordings, made one by one."""
    entity = fact.get("entity")
    return (worded(template, entity) for template in fact.get("wordings"))
