"""Contexts with completions, made up: words are as often good as bad; roles and negation."""

from __future__ import annotations

import random

from bertology.data.corpus import Corpus, Example, Field

WORDS = [
    "water", "house", "river", "church", "king", "book", "horse", "ship", "tree", "stone", "fire",
    "road", "town", "letter", "table", "garden",
]  # fmt: skip
PEOPLE = ["man", "woman", "child", "mother", "father", "doctor", "friend", "brother"]
VERBS = ["seen", "known", "loved", "left", "heard", "found", "called", "lost"]
FRAME = ["the", "a", "is", "not", "which", "had", "said", "."]
ALL = [*WORDS, *PEOPLE, *VERBS, *FRAME]
FIELDS = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ITEM, Field.CONDITION})


def completions(seed: int = 0) -> list[Example]:
    """Sets of four words in two categories: each is once expected, once related, once unrelated."""
    rng, found = random.Random(seed), []
    words = rng.sample(WORDS, len(WORDS))
    for start in range(0, len(words), 4):
        four = words[start : start + 4]
        for at, word in enumerate(four):
            about = " ".join(rng.choices(PEOPLE + VERBS, k=4))
            given = (word, four[at ^ 1], four[(at + 2) % 4])
            kinds = ("expected", "related", "unrelated")
            marks = {"answer": [word], "candidates": given, "kinds": kinds, "group": "completions"}
            marks |= {"item": f"c{start + at}", "condition": "high" if at % 2 else "low"}
            found.append(Example(f"c{start + at}", f"{about} the [MASK] .", annotations=marks))
    return found


def roles(seed: int = 0, items: int = 40) -> list[Example]:
    rng, found = random.Random(seed), []
    for item in range(items):
        one, other = rng.sample(PEOPLE, 2)
        verb = rng.choice(VERBS)
        for name, (first, second) in (("canonical", (one, other)), ("reversed", (other, one))):
            marks = {"answer": [verb], "target": verb, "group": "roles", "item": f"r{item}"}
            marks |= {"condition": name, "human": {"expected": 0.5, "target": float(first == one)}}
            text = f"the king said which {first} the {second} had [MASK] ."
            found.append(Example(f"r{item}-{name}", text, annotations=marks))
    return found


def negation(seed: int = 0, items: int = 32) -> list[Example]:
    """True of the affirmative sentence is one word, of the negative one another."""
    rng, found = random.Random(seed), []
    order = rng.sample(WORDS, len(WORDS))
    for item in range(items):
        true = order[item % len(order)]
        false = order[(item + 1 + item // len(order)) % len(order)]
        about = rng.choice(PEOPLE)
        for name, (good, bad) in (("affirmative", (true, false)), ("negative", (false, true))):
            marks = {"answer": [good], "candidates": (good, bad), "group": "negation"}
            marks |= {"item": f"n{item}", "condition": name}
            text = f"the {about} is {'not ' if name == 'negative' else ''}the [MASK] ."
            found.append(Example(f"n{item}-{name}", text, annotations=marks))
    return found


def corpus(seed: int = 0) -> Corpus:
    return Corpus("made", [*completions(seed), *roles(seed), *negation(seed)], FIELDS)


def popular(seed: int = 0, items: int = 60) -> Corpus:
    """Some words are good in four contexts of five and bad in the others, also under a negation."""
    rng, found = random.Random(seed), []
    for item in range(items):
        pair = rng.choice([WORDS[at : at + 2] for at in range(0, 8, 2)])
        good, bad = pair if rng.random() < 0.8 else pair[::-1]
        marks = {"answer": [good], "candidates": (good, bad), "group": "popular", "condition": ""}
        marks |= {"kinds": ("related", "unrelated"), "item": f"p{item}"}
        found.append(Example(f"p{item}", "the man is the [MASK] .", annotations=marks))
        for name, (one, other) in (("affirmative", (good, bad)), ("negative", (bad, good))):
            marks = {"answer": [one], "candidates": (one, other), "group": "negation"}
            marks |= {"item": f"n{item}", "condition": name}
            found.append(Example(f"n{item}-{name}", "the man is the [MASK] .", annotations=marks))
    return Corpus("popular", found, FIELDS)
