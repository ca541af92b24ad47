"""Facts as clozes: what a corpus says of its facts, and what a model answers to them.

`Facts` draws facts (with all versions of each, where there are several). `FactBook` is what the
whole corpus tells of a fact: which pieces are right, which other objects the relation has, what its
most frequent object is among other facts. `FactBook.ask` puts the facts to the cloze engine; the
ranks in the vocabulary and among the relation's objects come from the same pass.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.clozes import worded
from bertology.data.corpus import Field
from bertology.errors import DataError
from bertology.stats import Estimate, bounded_mean_bounds, percentile_interval
from bertology.stats.signed_roots import SignedRoots
from bertology.studies.designs.blocks import Resampled

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.clozes import Answer


UNKNOWING = (
    "The model is not surely right more often than its answers would be for other subjects of the "
    "same relation, so that there is no knowledge to ask about."
)
_FEWEST_RELATIONS = 5  # an interval over fewer would say nothing
_TOP = 10


@dataclass(frozen=True)
class Facts(Resampled):
    """Draws facts; versions of one fact (plain, negated, misprimed) stay together."""

    block: ClassVar[int] = 1024
    fills_gpu: ClassVar[bool] = True

    def shown(self, corpus: Corpus) -> Corpus:
        """As many facts as asked for, each with all its versions."""
        if Field.ITEM not in corpus.fields:
            return super().shown(corpus)
        items = list(dict.fromkeys(str(e.get("item")) for e in corpus))
        if len(items) <= self.examples:
            return corpus
        drawn = set(random.Random(self.seed).sample(items, self.examples))
        kept = [e for e in corpus if str(e.get("item")) in drawn]
        return replace(corpus, examples=kept, origin={}, drawn_from=len(corpus))

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse corpora of which the model could be right about nothing."""
        super().check(encoder, corpus)
        book = FactBook(encoder, corpus)
        known = sum(bool(book.right(e)) for e in self.shown(corpus) if is_plain(e))
        if known < 2:
            raise DataError(
                f"Too few facts of {corpus.name!r} can be asked: {known} of those drawn with an "
                f"answer of one piece in the vocabulary of {encoder.name!r}; two are needed.",
                hint="Give more facts, or a model with a larger vocabulary.",
            )

    def share(
        self,
        values: NDArray[np.generic],
        *,
        families: int = 1,
        least: float = 0.0,
        subjects: NDArray[np.str_] | None = None,
    ) -> Estimate:
        """A mean over facts with its interval; of paired differences where `least` is -1.

        With `subjects`, facts about one subject stay together: what a name does to one of them it
        may do to all.
        """
        if subjects is not None:
            return share_by_subject(values, subjects, self.level, families=families, least=least)
        return share(values, self.level, families=families, least=least)

    def share_of_relations(
        self,
        values: NDArray[np.generic],
        relations: NDArray[np.str_],
        *,
        families: int = 1,
        least: float = 0.0,
    ) -> Estimate:
        """The mean over relations, with an interval over them: each asks in words of its own.

        A template that works badly makes all its facts wrong. Relations weigh the same, as LAMA
        reports them; were they to weigh by their facts, one large relation that was not drawn could
        change the mean by much, and bounds would have to allow for it. With fewer than five
        relations it is a statement on these relations: the mean and interval are over facts.
        """
        names, at = np.unique(relations, return_inverse=True)
        if len(names) < _FEWEST_RELATIONS:
            return self.share(values, families=families, least=least)
        means = np.bincount(at, weights=values.astype(np.float64)) / np.bincount(at)
        return replace(self.share(means, families=families, least=least), unit="relations")

    def gain_over_guessing(
        self, over_frequency: Floats, beyond_chance: Floats, relations: NDArray[np.str_]
    ) -> Estimate:
        """The gain over frequent objects; its control is the model's answers to other subjects.

        The most frequent object of other facts is never right where all objects differ, and a model
        that gives one of them to every subject is right once; so the control is needed.
        """
        gain, beyond = (
            self.share_of_relations(values, relations, least=-1.0)
            for values in (over_frequency, beyond_chance)
        )
        return gain.with_controls({"the model's own answers to other subjects": beyond})

    def subject_gain(self, beyond_chance: Floats, in_name: Floats) -> Estimate | None:
        """How much more often the model is right than its answers would be for other subjects.

        Names that hold their answer are left out: a model that copies words knows nothing yet.
        """
        left = beyond_chance[in_name == 0]
        return self.share(left, least=-1.0) if len(left) > 1 else None

    def macro(self, values: Floats, relations: NDArray[np.str_]) -> Estimate:
        """The mean over relations, with an interval over relations."""
        return macro(values, relations, level=self.level, resamples=self.resamples, seed=self.seed)


def is_plain(example: Example) -> bool:
    """Whether it is the fact itself, not its negated or misprimed version."""
    return bool(example.annotations.get("condition", "plain") == "plain")


def texts_of(example: Example, most: int) -> list[str]:
    """The fact in its first wordings, `most` at most."""
    wordings: Sequence[str] = example.annotations.get("wordings") or ()
    if len(wordings) < 2 or most == 1:
        return [example.text]
    return [worded(template, str(example.get("entity"))) for template in wordings[:most]]


@dataclass(frozen=True)
class Said:
    """What the model says to one wording of a fact."""

    rank: float  # of the right answer in the whole vocabulary; other right ones do not count
    restricted: float  # the same among the objects of the relation
    top: tuple[int, ...]  # the best pieces of the vocabulary
    best: int  # the best object of the relation
    objects: Floats  # log-probabilities of the relation's objects


class FactBook:
    """What a corpus tells of its facts, in pieces of a model's vocabulary."""

    def __init__(self, encoder: Encoder, corpus: Corpus) -> None:
        from bertology.model.masked_lm.clozes import one_piece_words

        self.encoder = encoder
        words = {str(a) for e in corpus for a in e.get("answer")}
        words |= {str(e.annotations["prime"]) for e in corpus if "prime" in e.annotations}
        self._pieces = one_piece_words(encoder, sorted(words))
        objects: dict[str, Counter[int]] = defaultdict(Counter)
        halves: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)
        self._same: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._half: dict[tuple[str, ...], int] = {}
        seen: Counter[str] = Counter()
        for example in filter(is_plain, corpus):
            relation, right = relation_of(example), self.right(example)
            if not right:
                continue
            # Facts of a relation fall into halves by turns: the most frequent object of one half
            # is the guess for the other, so that no fact votes for its own answer.
            half = self._half.setdefault(_key(example), seen[relation] % 2)
            seen[relation] += 1
            objects[relation].update(right)
            halves[relation, half].update(right)
            self._same[relation, example.text] |= set(right)
        self._objects = {name: tuple(sorted(found)) for name, found in objects.items()}
        self._places = {n: {p: i for i, p in enumerate(o)} for n, o in self._objects.items()}
        self._counts, self._halves, self._facts = objects, halves, seen

    def right(self, example: Example) -> tuple[int, ...]:
        """The right pieces; none where every answer has several pieces."""
        found = (self._pieces.get(str(answer)) for answer in example.get("answer"))
        return tuple(dict.fromkeys(piece for piece in found if piece is not None))

    def knows(self, example: Example) -> bool:
        """Whether its answers are objects of its relation; its plain version may be missing."""
        places = self._places.get(relation_of(example), {})
        return all(piece in places for piece in self.right(example))

    def objects(self, example: Example) -> tuple[int, ...]:
        """All objects of the fact's relation that are one piece."""
        return self._objects.get(relation_of(example), ())

    def piece(self, word: str) -> int | None:
        """The piece of an answer or prime."""
        return self._pieces.get(word)

    def frequent(self, example: Example) -> bool:
        """Whether the most frequent object among facts of the other half is right."""
        relation = relation_of(example)
        other = self._halves.get((relation, 1 - self._half.get(_key(example), 0)))
        return other is not None and other.most_common(1)[0][0] in self.right(example)

    def by_chance(self, example: Example, piece: int) -> float:
        """How many of the other facts of the relation have this answer, as a share.

        What hits would be expected of an answer that has nothing to do with the subject.
        """
        relation = relation_of(example)
        others = self._facts[relation] - 1
        own = piece in self.right(example)
        return (self._counts[relation][piece] - own) / others if others > 0 else 0.0

    def ask(
        self, examples: Sequence[Example], *, wordings: int, tokens_per_batch: int
    ) -> Iterator[list[Said]]:
        """The answers to each example, in each of its wordings."""
        from bertology.model.masked_lm.clozes import Clozes
        from bertology.model.masked_lm.questions import Question

        top = min(_TOP, int(self.encoder.config.vocab_size))
        engine = Clozes(self.encoder, top_k=top, tokens_per_batch=tokens_per_batch)
        texts = [texts_of(example, wordings) for example in examples]

        def questions() -> Iterator[Question]:
            for example, some in zip(examples, texts, strict=True):
                objects = self._objects[relation_of(example)]
                # LAMA scores the first of several blanks.
                yield from (Question(text, answers=objects, blank=0) for text in some)

        answers = engine.answers(questions())
        for example, some in zip(examples, texts, strict=True):
            yield [self._said(example, next(answers)) for _ in some]

    def _said(self, example: Example, answer: Answer) -> Said:
        relation = relation_of(example)
        scores, places = answer.log_probabilities[0], self._places[relation]
        others = self._others(example)
        right = [places[p] for p in self.right(example)]
        ranks = [answer.ranks[0, at] - float((scores[others] > scores[at]).sum()) for at in right]
        convert = self.encoder.tokenizer.convert_tokens_to_ids
        return Said(
            rank=min(ranks),
            restricted=self.rank_among(example, scores),
            top=tuple(int(convert(p.pieces[0])) for p in answer.top[0]),
            best=self._objects[relation][int(scores.argmax())],
            objects=scores,
        )

    def rank_among(self, example: Example, scores: Floats) -> float:
        """The rank of the right answer among the objects of the relation; equals share ranks."""
        places = self._places[relation_of(example)]
        left = np.delete(scores, self._others(example))
        own = scores[[places[p] for p in self.right(example)]].max()
        return float((left > own).sum() + ((left == own).sum() + 1) / 2)

    def _others(self, example: Example) -> list[int]:
        """Places of answers that are right by another fact of the corpus."""
        relation, right = relation_of(example), self.right(example)
        same = self._same.get((relation, example.text), set())
        return [self._places[relation][p] for p in same if p not in right]


def _key(example: Example) -> tuple[str, ...]:
    """The same for rows that say the same fact twice."""
    return relation_of(example), example.text, *map(str, example.get("answer"))


def relation_of(example: Example) -> str:
    """The relation that a fact belongs to."""
    return str(example.get("group"))


def named_in_entity(example: Example) -> bool:
    """Whether the answer is in the name that the fact is about: "Apple Watch" is made by Apple."""
    entity = str(example.annotations.get("entity") or "").lower()
    return any(str(answer).strip().lower() in entity for answer in example.get("answer"))


def share(
    values: NDArray[np.generic], level: float, *, families: int = 1, least: float = 0.0
) -> Estimate:
    """The mean of values between `least` and 1, with bounds that no rare event breaks."""
    x = np.asarray(values, np.float64)
    return Estimate(x.mean(), *_bounds(x, least, 1.0, level, families), len(x), level, "facts")


def share_by_subject(
    values: NDArray[np.generic],
    subjects: NDArray[np.str_],
    level: float,
    *,
    families: int = 1,
    least: float = 0.0,
) -> Estimate:
    """The mean over facts, with bounds over subjects of several facts each."""
    x = np.asarray(values, np.float64)
    _, at, sizes = np.unique(subjects, return_inverse=True, return_counts=True)
    # Sums of subjects, in a measure in which their mean is the mean over facts.
    scale = len(sizes) / len(x)
    sums: Floats = np.bincount(at, weights=x).astype(np.float64) * scale
    most = float(sizes.max()) * scale
    low, high = _bounds(sums, least * most, most, level, families)
    return Estimate(x.mean(), max(low, least), min(high, 1.0), len(sizes), level, "subjects")


def _bounds(
    x: Floats, lowest: float, highest: float, level: float, families: int
) -> tuple[float, float]:
    """Of the mean of values between two ends."""
    budget = SignedRoots.of(x[None]).budget(math.log((1 - level) / 2 / families))
    low, high = bounded_mean_bounds(x[None], None, low=lowest, high=highest, budget=budget)
    # Bisection may end a hair outside of where values can lie, or at a negative zero.
    return max(float(low[0]), lowest) + 0.0, min(float(high[0]), highest)


def macro(
    values: Floats, relations: NDArray[np.str_], *, level: float, resamples: int, seed: int
) -> Estimate:
    """The mean of the relations' means; the interval is over relations, drawn with their facts."""
    names, at = np.unique(relations, return_inverse=True)
    means = np.bincount(at, weights=values) / np.bincount(at)
    low = high = np.array(np.nan)
    if len(names) >= _FEWEST_RELATIONS:
        drawn = np.random.default_rng(seed).integers(len(names), size=(resamples, len(names)))
        low, high = percentile_interval(means[drawn].mean(axis=1), level)
    return Estimate(means.mean(), float(low), float(high), len(names), level, "relations")


def agreeing_pairs(best: Iterable[int]) -> float:
    """The share of pairs of wordings that get the same answer."""
    counts = np.array(list(Counter(best).values()))
    n = counts.sum()
    return float((counts * (counts - 1)).sum() / (n * (n - 1)))
