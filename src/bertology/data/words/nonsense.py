"""Sentences whose content words are replaced by others of the same class: no sense, same syntax.

As in "colorless green ideas" (Gulordava et al. 2018). The class is the part of speech and the form,
so that what agrees still agrees: a noun is replaced only where both its singular and its plural
occur in the corpus, and then by such a noun of the same number; a verb by one that also ends in
-ed or in -ing; adjectives and adverbs by any other that begins alike (a vowel or not, for "a" and
"an"). Other words stay. The rules are those of English spelling.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from bertology.data.corpus import Example
from bertology.data.words.piece_words import word_spans

_CONTENT = {"NOUN", "VERB", "ADJ", "ADV"}
_LEAST = 0.5  # of the content words must be replaced
_FEWEST = 2  # words of a class

Class = tuple[str, str, bool]


@dataclass(frozen=True)
class Nonsense:
    """What stands before and after the characters that were kept, and all words."""

    before: str
    after: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class NonsenseWords:
    """The words of a corpus by class."""

    singular: frozenset[str]  # of nouns that occur in both numbers
    plural: frozenset[str]
    words: dict[Class, list[str]]

    @classmethod
    def of(cls, examples: Iterable[Example]) -> NonsenseWords:
        """Of examples with words and parts of speech."""
        seen: dict[str, set[str]] = defaultdict(set)
        for example in examples:
            for word, tag in zip(example.get("words"), example.get("pos"), strict=True):
                if tag in _CONTENT and word.isalpha():
                    seen[tag].add(word.lower())
        nouns = seen["NOUN"]
        singular = frozenset(n for n in nouns if f"{n}s" in nouns and not n.endswith("s"))
        found = cls(singular, frozenset(f"{n}s" for n in singular), defaultdict(list))
        for tag in sorted(_CONTENT):
            for word in sorted(seen[tag]):
                if (kind := found.kind(word, tag)) is not None:
                    found.words[kind].append(word)
        return found

    def kind(self, word: str, tag: str) -> Class | None:
        """The class of a word; None where it stays."""
        low, vowel = word.lower(), word[:1].lower() in "aeiou"
        if not word.isalpha() or tag not in _CONTENT:
            return None
        if tag == "NOUN":
            if low in self.singular:
                return tag, "singular", vowel
            return (tag, "plural", vowel) if low in self.plural else None
        if tag == "VERB":
            ends = next((end for end in ("ed", "ing") if low.endswith(end)), None)
            return None if ends is None else (tag, ends, vowel)
        return tag, "ly" if low.endswith("ly") else "", vowel

    def nonsense(
        self, example: Example, kept: tuple[int, int], rng: random.Random
    ) -> Nonsense | None:
        """The example with its content words replaced, but for some characters that are kept.

        None where fewer than half of the content words have others of their class.
        """
        before, after = example.text[: kept[0]], example.text[kept[1] :]
        spans, tags = word_spans(example)[0], example.get("pos")
        content, changed, words = 0, 0, list(example.get("words"))
        places = list(enumerate(zip(spans, tags, strict=True)))
        for place, ((start, end), tag) in reversed(places):
            if tag not in _CONTENT or (start < kept[1] and end > kept[0]):
                continue
            content += 1
            word = example.text[start:end]
            kind = self.kind(word, tag)
            others = [] if kind is None else self.words.get(kind, [])
            if len(others) < _FEWEST:
                continue
            other = rng.choice([w for w in others if w != word.lower()] or others)
            other = other.capitalize() if word[:1].isupper() else other
            if end <= kept[0]:
                before = before[:start] + other + before[end:]
            else:
                at = kept[1]
                after = after[: start - at] + other + after[end - at :]
            words[place] = other
            changed += 1
        enough = changed and changed >= _LEAST * content
        return Nonsense(before, after, tuple(words)) if enough else None
