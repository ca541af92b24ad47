"""What a study of reading reads: questions to learn from, to be asked, and asked in other words.

Either every question comes with its text in other words, so that the same question is asked twice;
or there is a challenge set with texts and questions of its own, as QuAIL has. Nothing that is
scored is learnt from, not even another question about the same text.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Floats
from bertology.errors import BertologyError, DataError, ParameterError

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus, Example

FULL, BLIND, UNASKED = "model", "without-text", "without-question"
LEARNT = (FULL, BLIND, UNASKED)
RULES = ("most-frequent-place", "longest-answer", "word-overlap")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Wanted:
    """Where the other data are."""

    train: str
    train_split: str
    examples: int | None
    challenge: str
    challenge_split: str
    held_out: int


@dataclass(frozen=True)
class ReadingData:
    """Corpora of one task of multiple choice."""

    train: Corpus
    original: Corpus
    paraphrased: Corpus
    paired: bool  # whether both ask the same questions, in the same order

    @property
    def genres(self) -> dict[str, str]:
        """How many questions of each kind of text; nothing where the data do not tell kinds.

        `genres_not_learnt` are those that are asked about only: there, answers are told of other
        kinds of text than were learnt.
        """
        told = {"learnt": self.train, "asked": self.original, "reworded": self.paraphrased}
        counts = {name: Counter(map(_genre, one)) for name, one in told.items()}
        if any("" in each for each in counts.values()):
            return {}
        found = {
            f"genres_{name}": ", ".join(f"{genre} {each[genre]}" for genre in sorted(each))
            for name, each in counts.items()
        }
        new = sorted((counts["asked"] | counts["reworded"]).keys() - counts["learnt"].keys())
        return found | ({"genres_not_learnt": ", ".join(new)} if new else {})


def read_data(corpus: Corpus, wanted: Wanted) -> ReadingData:
    """All that is learnt from and asked."""
    from bertology.data.corpus import Field
    from bertology.data.loading import load_split

    paired = Field.PARAPHRASE in corpus.fields and not wanted.challenge
    challenge = reworded(corpus) if paired else _challenge(corpus, wanted)
    original = corpus if paired else _same_genres(corpus, challenge)
    if wanted.held_out:
        original, train = _held_out(corpus, original, wanted.held_out)
        train = train.take(wanted.examples)
        challenge = reworded(original) if paired else challenge
    else:
        try:
            train = load_split(
                corpus, wanted.train_split, other=wanted.train, limit=wanted.examples
            )
        except BertologyError as error:
            raise DataError(
                f"There is nothing to learn from: {error.problem}",
                hint="Name other data (--train, --train-split), or learn from the corpus itself "
                "but for some texts (--held-out 15).",
            ) from error
    for other, what in ((original, "asked about"), (challenge, "in the challenge set")):
        both = {e.text for e in train} & {e.text for e in other}
        if both:
            raise DataError(
                f"{len(both)} texts of {train.name!r} are learnt from and {what}.",
                hint="Name other data to learn from (--train), or use --held-out.",
            )
    return ReadingData(train, original, challenge, paired)


def _genre(example: Example) -> str:
    return str(example.annotations.get("genre") or "").replace("_", " ")


def reworded(corpus: Corpus) -> Corpus:
    """The same questions about the texts in other words."""
    return replace(
        corpus, examples=[replace(e, text=str(e.get("paraphrase"))) for e in corpus], origin={}
    )


def _challenge(corpus: Corpus, wanted: Wanted) -> Corpus:
    from bertology.data.loading import load_split

    why: BertologyError | None = None
    try:
        found = load_split(corpus, wanted.challenge_split, other=wanted.challenge)
        if {e.texts for e in found} != {e.texts for e in corpus}:  # a lone file is all its splits
            return found
    except BertologyError as error:
        if wanted.challenge:  # what is wrong with the data that were named, and nothing else
            raise
        why = error
    more = f": {why.problem}" if why else "."
    raise DataError(
        f"{corpus.name!r} has neither paraphrases of its texts nor a challenge set{more}",
        hint="Give each question a field `paraphrase`, the text in other words; or name a "
        "challenge set (--challenge, --challenge-split).",
    ) from why


def _same_genres(corpus: Corpus, challenge: Corpus) -> Corpus:
    """The questions about the kinds of text that the challenge set has, where both tell it."""
    there = {_genre(e) for e in challenge}
    kept = [e for e in corpus if _genre(e) in there]
    if "" in there or not kept:
        return corpus
    return corpus if len(kept) == len(corpus) else replace(corpus, examples=kept, origin={})


def _held_out(corpus: Corpus, original: Corpus, texts: int) -> tuple[Corpus, Corpus]:
    """Questions about so many texts, and those about all other texts of the corpus."""
    names = sorted({str(e.get("item")) for e in original})
    most = min(len(names), len({str(e.get("item")) for e in corpus}) - 1)
    if texts > most:
        kinds = " of the challenge set's kind" if len(original) < len(corpus) else ""
        must = (
            f"be {most} at most: {corpus.name!r} has {len(names)} texts{kinds} to ask about, and "
            "one text at least is learnt from"
        )
        raise ParameterError("held_out", "ParaphrasedReading", must, texts)
    random.Random("held out").shuffle(names)
    held = set(names[:texts])
    asked = [e for e in original if str(e.get("item")) in held]
    learnt = [e for e in corpus if str(e.get("item")) not in held]
    return (
        replace(original, examples=asked, origin={}),
        replace(corpus, examples=learnt, origin={}, name=f"{corpus.name}-rest"),
    )


def seen_by(variant: str, corpus: Corpus) -> Corpus:
    """What a model reads that sees all, or no text, or no question."""
    if variant == FULL:
        return corpus
    from bertology.data.corpus import Field

    kept = [_partial(variant, example) for example in corpus]
    return replace(corpus, examples=kept, fields=corpus.fields - {Field.TEXT_B}, origin={})


def _partial(variant: str, example: Example) -> Example:
    text = str(example.get("text_b")) if variant == BLIND else example.text
    return replace(example, text=text, text_b=None)


# Rules --------------------------------------------------------------------------------------------


def by_rules(train: Corpus, asked: Corpus) -> Floats:
    """(rules, questions): how far each rule is right, where several answers tie in part."""
    counts = Counter(int(label) for label in train.labels)
    place = min(counts, key=lambda label: (-counts[label], label))
    found = np.zeros((len(RULES), len(asked)))
    weights: dict[str, dict[str, float]] = {}
    for i, example in enumerate(asked):
        answers, right = list(example.get("candidates")), int(example.get("label"))
        found[0, i] = right == place
        found[1, i] = _credit([len(answer) for answer in answers], right)
        if example.text not in weights:
            weights[example.text] = _rarity(example.text)
        overlap = [_overlap(example, answer, weights[example.text]) for answer in answers]
        found[2, i] = _credit(overlap, right)
    return found


def _credit(scores: list[float] | list[int], right: int) -> float:
    best = [k for k, score in enumerate(scores) if score >= max(scores) - 1e-9]
    return (right in best) / len(best)


def _rarity(text: str) -> dict[str, float]:
    """Rare words of a text weigh more."""
    return {w: float(np.log1p(1 / n)) for w, n in Counter(_words(text)).items()}


def _overlap(example: Example, answer: str, weights: dict[str, float]) -> float:
    """The most that a stretch of the text shares with question and answer (Richardson et al. 2013).

    The stretch has as many words as these two have different ones.
    """
    wanted = {*_words(example.text_b or ""), *_words(answer)}
    words = _words(example.text)
    worth = np.array([weights[w] if w in wanted else 0.0 for w in words])
    size = min(len(wanted), len(words))
    if not size:
        return 0.0
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(len(words)), size)
    best = 0.0
    for window in windows[worth[windows].sum(axis=1) > 0]:
        shared = {words[j] for j in window} & wanted  # a word counts once
        best = max(best, sum(weights[w] for w in shared))
    return best


def _words(text: str) -> list[str]:
    return [w.lower() for w in _WORD.findall(text)]
