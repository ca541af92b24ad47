"""More texts for a teacher to answer: copies with hidden words (Tang et al. 2019).

A small student learns little of a few thousand texts; a teacher may be asked about any text. Each
copy hides some words behind the mask token, and some copies are then cut to a run of one to five
words. Of a pair, copies change the first text, the second, or both, in turn. The paper also
swaps words for others of their class, which needs a tagger, and is not done here. Copies keep the
label of their text, which need not be theirs: learn from them with `hard=0`.
"""

from __future__ import annotations

import random
from dataclasses import replace

from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import ParameterError

_LONGEST = 5  # words of a run


def masked_copies(
    corpus: Corpus,
    *,
    copies: int = 20,
    share: float = 0.1,
    runs: float = 0.25,
    mask: str = "[MASK]",
    seed: int = 0,
) -> Corpus:
    """The examples, and up to `copies` changed ones of each; the same text is there once.

    `share` of the words are hidden; `runs` is the share of copies that are cut.
    """
    limits = {"copies": copies >= 0, "share": 0 <= share <= 1, "runs": 0 <= runs <= 1}
    for name, fits in limits.items():
        if not fits:
            must = "be at least 0" if name == "copies" else "be from 0 to 1"
            raise ParameterError(name, "masked_copies", must, locals()[name])
    chance = random.Random(seed)
    found, there = list(corpus), {example.texts for example in corpus}
    for example in corpus:
        for number in range(copies):
            changed = _changed(example, number, chance, (share, runs, mask))
            if changed.texts not in there:
                there.add(changed.texts)
                found.append(changed)
    kept = corpus.fields & {Field.TEXT, Field.TEXT_B, Field.LABEL}
    return replace(corpus, examples=found, fields=kept, origin={}, drawn_from=None)


def _changed(
    example: Example, number: int, chance: random.Random, how: tuple[float, float, str]
) -> Example:
    texts = list(example.texts)
    # Of a pair: the first, the second, both.
    turn = range(len(texts)) if len(texts) == 1 or number % 3 == 2 else [number % 3]
    for i in turn:
        texts[i] = _hidden(texts[i].split(), chance, how)
    second = texts[1] if len(texts) == 2 else None
    return Example(f"{example.id}+{number + 1}", texts[0], second, label=example.label)


def _hidden(words: list[str], chance: random.Random, how: tuple[float, float, str]) -> str:
    share, runs, mask = how
    shown = [mask if chance.random() < share else word for word in words]
    if shown and chance.random() < runs:
        length = min(len(shown), chance.randint(1, _LONGEST))
        begin = chance.randint(0, len(shown) - length)
        shown = shown[begin : begin + length]
    return " ".join(shown)
