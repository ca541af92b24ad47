"""Wordings mined from text: the words that stand between the subject and the answer of known facts.

    found = mine_wordings(facts, texts)              # relation -> wordings, the most frequent first
    write_wordings(found, "mined.jsonl")             # a file for the option `templates`

As Jiang et al. (2020) mine with middle words: "Dante was born in Florence" gives "[X] was born in
[Y] ." if Dante and Florence are a fact. A wording counts once for each fact, however often the text
says it, so that one famous fact makes no wording. Words are compared without capitals; names of
several words are found as such, the longest first. Sentences end at a full stop, a question mark or
an exclamation mark; initials and abbreviations may cut one in two, which loses a fact and finds no
wrong one.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertology.data.corpus import Corpus, Example
from bertology.drafts import write_whole
from bertology.errors import DataError, ParameterError

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_ENDS = frozenset(".!?;")

_Key = tuple[str, ...]


@dataclass(frozen=True)
class MinedWording:
    """A wording, and how many different facts the text says in it."""

    template: str
    facts: int


def mine_wordings(
    facts: Corpus | Iterable[Example],
    texts: Corpus | Iterable[str],
    *,
    most: int = 40,
    fewest: int = 2,
    longest: int = 6,
) -> dict[str, list[MinedWording]]:
    """The wordings of each relation, the most frequent first; a relation without any has none.

    At most `most` of each, in which the text says `fewest` facts or more, with at most `longest`
    words between subject and answer.
    """
    for name, value in (("most", most), ("fewest", fewest), ("longest", longest)):
        if isinstance(value, bool) or value < 1:
            raise ParameterError(name, "mine_wordings", "be at least 1", value)
    known = _Facts(facts)
    said: dict[str, dict[str, set[tuple[_Key, _Key]]]] = defaultdict(lambda: defaultdict(set))
    spoken = (e.text for e in texts) if isinstance(texts, Corpus) else texts
    for text in spoken:
        for sentence in _SENTENCE.split(text):
            for relation, template, fact in known.in_sentence(sentence, longest):
                said[relation][template].add(fact)
    found = {}
    for relation in known.relations:
        rows = [MinedWording(t, len(of)) for t, of in said[relation].items() if len(of) >= fewest]
        found[relation] = sorted(rows, key=lambda row: (-row.facts, row.template))[:most]
    return found


def write_wordings(found: Mapping[str, Sequence[MinedWording]], path: str | Path) -> None:
    """A file of templates, a line for each wording, that `templates=` reads."""
    rows = [
        {"relation": relation, "template": row.template, "facts": row.facts}
        for relation, of in found.items()
        for row in of
    ]
    if not rows:
        raise DataError(
            "No wording was found, so that there is nothing to write.",
            hint="Give more text, or allow wordings of one fact (fewest=1).",
        )
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_whole(Path(path), text)


class _Facts:
    """Facts by the words of their names."""

    def __init__(self, facts: Corpus | Iterable[Example]) -> None:
        self.relations: dict[str, None] = {}
        self._answers: dict[_Key, list[tuple[str, _Key]]] = defaultdict(list)
        names: set[_Key] = set()
        for fact in facts:
            relation, subject = str(fact.get("group")), _key(str(fact.get("entity")))
            self.relations[relation] = None
            for answer in map(_key, map(str, fact.get("answer"))):
                if subject and answer and subject != answer:
                    self._answers[subject].append((relation, answer))
                    names |= {subject, answer}
        if not names:
            raise DataError("There are no facts to mine with: none has a subject and an answer.")
        self._by_first: dict[str, list[_Key]] = defaultdict(list)
        for name in sorted(names, key=len, reverse=True):
            self._by_first[name[0]].append(name)

    def in_sentence(
        self, sentence: str, longest: int
    ) -> Iterator[tuple[str, str, tuple[_Key, _Key]]]:
        """Relation, wording and fact of each fact that the sentence says."""
        words = _WORD.findall(sentence)
        low = [word.lower() for word in words]
        places: dict[_Key, list[tuple[int, int]]] = defaultdict(list)
        for name, start, end in self._names(low):
            places[name].append((start, end))
        for subject in places:
            for relation, answer in self._answers.get(subject, ()):
                for one in places[subject]:
                    for other in places.get(answer, ()):
                        if template := _between(words, one, other, longest):
                            yield relation, template, (subject, answer)

    def _names(self, words: Sequence[str]) -> Iterator[tuple[_Key, int, int]]:
        """Names in the sentence from left to right, the longest that begins at a word."""
        at = 0
        while at < len(words):
            for name in self._by_first.get(words[at], ()):
                if tuple(words[at : at + len(name)]) == name:
                    yield name, at, at + len(name)
                    at += len(name) - 1
                    break
            at += 1


def _key(name: str) -> _Key:
    return tuple(word.lower() for word in _WORD.findall(name))


def _between(
    words: Sequence[str], subject: tuple[int, int], answer: tuple[int, int], longest: int
) -> str | None:
    """The wording with what stands between the two names; None if nothing or too much does."""
    first, second = sorted((subject, answer))
    middle = words[first[1] : second[0]]
    if not 1 <= len(middle) <= longest or _ENDS & set(middle) or not any(map(_is_word, middle)):
        return None
    left, right = ("[X]", "[Y]") if first == subject else ("[Y]", "[X]")
    return f"{left} {' '.join(middle)} {right} ."


def _is_word(text: str) -> bool:
    return text[0].isalnum()
