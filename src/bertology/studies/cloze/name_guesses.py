"""Name guesses: how much of what a model knows could be guessed from the name?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Bools, Floats
from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, percentile_interval
from bertology.studies.cloze.facts.asked import (
    FactBook,
    Facts,
    is_plain,
    named_in_entity,
    relation_of,
)
from bertology.studies.designs.parts import in_order
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder


# What a model makes of a name: the person-name heuristic of Poerner et al. (2019).
#
# "Jean is a common name in the following language: [MASK]." Each part of a name is asked about by
# itself; what the model says to any of them could be guessed without knowing the person.


NOUNS: Mapping[str, str] = {
    "P19": "city",
    "P20": "city",
    "P27": "country",
    "P103": "language",
    "P1412": "language",
    "place_of_birth": "city",
    "place_of_death": "city",
    "country-of-birth": "country",
    "native-language": "language",
}
"""Relations about people, and what is asked about their names: LAMA's, as in its script that makes
LAMA-UHN, and those of our own list of facts."""


@dataclass(frozen=True)
class NameGuess:
    """What the parts of one name make a model say."""

    words: frozenset[str]  # the best words of the vocabulary for any part
    piece: int | None  # the relation's object that the parts make likeliest together


def nouns_given(given: Sequence[str]) -> dict[str, str]:
    """The known relations about people, and those that a user names: `born=city`."""
    found = dict(NOUNS)
    for one in given:
        relation, equals, noun = one.rpartition("=")
        if not (relation and equals and noun.strip()):
            must = "be a relation and what to ask about its names, such as 'born=city'"
            raise ParameterError("nouns", "NameGuesses", must, one)
        found[relation] = noun.strip()
    return found


def noun_of(relation: str, nouns: Mapping[str, str]) -> str:
    """What is asked about the names of a relation; "" where they are not of people."""
    return nouns.get(relation, "")


def name_text(part: str, noun: str) -> str:
    """The question about one part of a name."""
    return f"{part} is a common name in the following {noun}: [MASK]."


def guesses(
    book: FactBook,
    facts: Sequence[Example],
    nouns: Sequence[str],
    *,
    top: int,
    tokens_per_batch: int,
) -> Iterator[NameGuess]:
    """What the names of these facts make the book's model say."""
    from bertology.model.masked_lm.clozes import Clozes
    from bertology.model.masked_lm.questions import Question

    texts = [
        [name_text(part, noun) for part in dict.fromkeys(str(fact.get("entity")).split())]
        for fact, noun in zip(facts, nouns, strict=True)
    ]
    objects = [book.objects(fact) for fact in facts]
    engine = Clozes(
        book.encoder,
        top_k=min(top, int(book.encoder.config.vocab_size)),
        tokens_per_batch=tokens_per_batch,
    )
    answers = engine.answers(
        Question(text, answers=of, blank=0)
        for some, of in zip(texts, objects, strict=True)
        for text in some
    )
    for some, of in zip(texts, objects, strict=True):
        said = [next(answers) for _ in some]
        words = frozenset(p.word.lower() for one in said for p in one.top[0])
        likely = np.mean([one.log_probabilities[0] for one in said], axis=0)
        yield NameGuess(words, of[int(likely.argmax())] if of else None)


def right_words(book: FactBook, example: Example) -> frozenset[str]:
    """The right answers as the vocabulary spells them."""
    decode = book.encoder.tokenizer.decode
    return frozenset(decode([piece]).strip().lower() for piece in book.right(example))


@dataclass(frozen=True)
class Named:
    """Facts (N) with what the model says to them and to their names."""

    TEXTS: ClassVar[tuple[str, ...]] = ("relation", "noun", "subject", "gold", "word", "words")
    COLUMNS: ClassVar[tuple[str, ...]] = (
        *TEXTS, "rank", "excess", "in_name", "word_in_name", "guessable", "followed",
        "name_right", "name_excess",
    )  # fmt: skip

    columns: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, whole: xr.Dataset) -> Named:
        """What all parts measured."""
        return cls({name: whole[name].to_numpy() for name in cls.COLUMNS})

    def __getitem__(self, name: str) -> Floats:
        found: Floats = self.columns[name].astype(float)
        return found

    def texts(self, name: str) -> NDArray[np.str_]:
        """A column of words."""
        found: NDArray[np.str_] = self.columns[name].astype(str)
        return found

    def those(self, chosen: Bools) -> Named:
        """Some of the facts."""
        return Named({name: v[chosen] for name, v in self.columns.items()})

    @property
    def hits(self) -> Floats:
        """Whether the right answer comes first, other right ones left out."""
        return (self["rank"] <= 1).astype(float)

    @property
    def people(self) -> Bools:
        """Whether names were asked about."""
        found: Bools = self.texts("noun") != ""
        return found

    @property
    def removed(self) -> Bools:
        """Facts that either filter takes away."""
        return (self["in_name"] + self["guessable"]) > 0

    @property
    def given(self) -> Bools:
        """Answers that are in the name, or among what a part of the name gives."""
        return (self["word_in_name"] + self["followed"]) > 0


def set_table(whole: Named, mean: Callable[[Named, Floats], Estimate]) -> pd.DataFrame:
    """Scores of all facts, of those that are left, and of those that were taken away."""
    import pandas as pd

    guessed = (whole["guessable"] == 1) & (whole["in_name"] == 0)
    sets = {
        "all": np.ones(len(whole.hits), bool),
        "left by both filters": ~whole.removed,
        "answer in the name": whole["in_name"] == 1,
        "guessed from a part of the name": guessed,
    }
    rows = []
    for name, chosen in sets.items():
        row: dict[str, object] = {"facts": name, "n": int(chosen.sum())}
        if chosen.any():
            some = whole.those(chosen)
            found, rank = mean(some, some.hits), some["rank"]
            row |= {"p_at_1": found.value, "low": found.low, "high": found.high}
            row |= {"p_at_10": float((rank <= 10).mean()), "mrr": float((1 / rank).mean())}
        rows.append(row)
    return pd.DataFrame(rows)


def control_table(
    whole: Named, *, level: float, resamples: int, seed: int
) -> list[tuple[str, Estimate]]:
    """What the filters cost, what as many facts of the same relations and answers cost, and more.

    The control takes, for each fact that was taken away, one of the same relation and answer by
    chance; its cost is what that is expected to be. Subjects are drawn with all their facts.
    """
    hits, gone = whole.hits, whole.removed.astype(float)
    _, at = np.unique(
        np.char.add(np.char.add(whole.texts("relation"), "\t"), whole.texts("gold")),
        return_inverse=True,
    )
    # Settled once: in a resample, a fact that is drawn twice would stand for itself.
    by_chance = (np.bincount(at, weights=hits) / np.bincount(at))[at]
    _, subject = np.unique(whole.texts("subject"), return_inverse=True)
    count = int(subject.max()) + 1
    rng = np.random.default_rng(seed)

    def lost(times: NDArray[np.int64]) -> tuple[float, float]:
        left, every = (times * (1 - gone)).sum(), (times * hits).sum()
        if not left:
            return np.nan, np.nan
        own, others = ((times * gone * right).sum() for right in (hits, by_chance))
        mean = every / times.sum()
        return mean - (every - own) / left, mean - (every - others) / left

    value = np.array(lost(np.ones(len(hits), np.int64)))
    drawn = np.array(
        [
            lost(np.bincount(rng.integers(count, size=count), minlength=count)[subject])
            for _ in range(resamples)
        ]
    )
    names = ("both filters", "as many facts of the same relations and answers", "the difference")
    values = (*value, value[0] - value[1])
    samples = (drawn[:, 0], drawn[:, 1], drawn[:, 0] - drawn[:, 1])
    found = []
    for name, mean, some in zip(names, values, samples, strict=True):
        some = some[np.isfinite(some)]
        low, high = percentile_interval(some, level) if len(some) else (np.nan, np.nan)
        # The middle of few resamples may miss the value by a hair.
        bounds = min(float(low), float(mean)), max(float(high), float(mean))
        found.append((name, Estimate(float(mean), *bounds, count, level, "subjects")))
    return found


def pulled_by_names(whole: Named) -> tuple[Bools, Floats]:
    """Of facts whose name does not give the right answer: whether the name gives the model's.

    Less the share of other subjects of the relation whose names give the same answer.
    """
    misled = whole.people & (whole["guessable"] == 0)
    said: dict[str, Counter[str]] = defaultdict(Counter)
    names: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    columns = [whole.texts(n) for n in ("relation", "subject", "words", "word")]
    for relation, subject, words, _ in zip(*columns, strict=True):
        names[relation].setdefault(subject, frozenset(words.split()))
    for relation, of in names.items():
        for words in of.values():
            said[relation].update(words)
    pull = []
    for i in np.flatnonzero(misled):
        relation, subject, _, word = (str(column[i]) for column in columns)
        own, others = word in names[relation][subject], len(names[relation]) - 1
        pull.append(own - (said[relation][word] - own) / others if others else 0.0)
    return misled, np.array(pull)


def sums_of(some: Named) -> dict[str, float]:
    """Of one relation: what filters take away and leave, and what names alone get right."""
    left, alone = ~some.removed, some["name_right"]
    alone = alone[np.isfinite(alone)]
    return {
        "in_name": float(some["in_name"].mean()),
        "guessable": float(some["guessable"].mean()),
        "filtered": float(some.hits[left].mean()) if left.any() else np.nan,
        "name_alone": float(alone.mean()) if len(alone) else np.nan,
    }


_NO_PEOPLE = (
    "No relation of this corpus is known to be about people; say which are, and what to ask about "
    "their names, with nouns (--nouns born=city)."
)
_UNTELLING = (
    "The answers to names alone are not surely right more often than they would be for other "
    "subjects, so that names tell this model nothing."
)
_FEWEST = 10


class NameGuessesResult(Result):
    """What is right on all facts, without those a name gives away, and by names alone.

    Table `sets`: P@1, P@10 and mean reciprocal rank of all facts, of those that are left by both
    filters, and of those that either takes away. `gains`: how often answers are right beyond
    chance, parted by whether the name gives the answer. `controls`: what filtering costs, beside
    a filter of as many facts with the same relations and answers. `relations`: all of it for each.
    """

    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "sets": {"p_at_1": "%"},
        "gains": {"gain": "points"},
        "controls": {"lost": "points"},
        "relations": {"p_at_1": "%"},
    }

    @property
    def answer(self) -> str:
        """How much is guessed, and how much is left."""
        found = self.evidence()
        guessed, known = found["guessed_gain"], found["known_gain"]
        begins = (
            "Surely some is guessed from names"
            if guessed.low > 0
            else "That some is guessed from names is not sure"
        )
        return (
            f"{begins}: of all facts, {points(guessed)} are right beyond chance where the name "
            f"alone gives the answer, and {points(known)} where it does not."
        )

    def drawings(self) -> Sequence[Drawing]:
        """Sets, gains, relations."""
        gains = self.tables["gains"]
        rows, label = self.tables["relations"], "right answer first (%)"
        return [
            self._dots(
                "sets",
                "facts",
                Dots.of_columns("right answer first (%)", self.tables["sets"], "p_at_1"),
                "Per cent of facts whose answer comes first in the whole vocabulary, with an "
                "interval over subjects: all facts; those that both filters leave; those whose "
                "subject's name holds the answer; those that the model guesses from a part of the "
                "name.",
            ),
            self._dots(
                "gains",
                "answers",
                Dots.of_columns("right beyond chance (points)", gains, "gain", level=0.0),
                "How often an answer is right, less how often it would be for other subjects of "
                "the relation, in points of all facts: answers that are in the name, answers that "
                "a part of the name alone gives, and all others; then guesses by names alone, of "
                "facts about people.",
            ),
            drawings.dots(
                "relations",
                [Dots.of_columns(label, rows, "p_at_1", bars="filtered", hollow="name_alone")],
                [
                    f"{r.relation!s} ({r.noun!s})" if r.noun else r.relation
                    for r in rows.itertuples()
                ],
                self.about,
                title="Guessed from names, by relation",
                caption="One row for each relation: the per cent of facts whose answer comes "
                "first, with an interval that holds for all relations together. Grey bar: facts "
                "that both filters leave. Hollow diamond: what the name alone gets right.",
                note="Grey bar: without facts that a name gives away. Diamond: the name alone.",
            ),
        ]

    def _dots(self, name: str, of: str, dots: Dots, caption: str) -> Drawing:
        rows, title = self.tables[name][of], f"Guessed from names: {name}"
        return drawings.dots(name, [dots], rows, self.about, title=title, caption=caption)


@dataclass(frozen=True)
class NameGuesses(Facts):
    """How much of what the model knows about facts could be guessed from the subject's name?

    Method: two filters of Poerner et al. take facts away: those whose answer is in the name
    ("Apple Watch" is made by Apple), and those about people whose answer the model itself gives
    for a part of the name ("Jean is a common name in the following language: [MASK].", the first
    three). Scores with and without them are shown. A filter by the model's own answers also picks
    facts by their outcome: whoever always says Paris loses what it got right by that. So the claim
    rests on answers, not on facts: where the model's answer is in the name or among what the name
    alone gives, how much more often it is right than it would be for other subjects of the
    relation. That is zero for any model whose answers have nothing to do with the truth. A control
    takes as many facts of the same relations and answers away.

    Source: Poerner, Waltinger and Schütze (2019). Limits: an answer that a name gives may be known
    all the same. Nouns are city, country or language; relations that are not LAMA's are named with
    `nouns`. With `guesser` another model guesses, as in the paper, where BERT-base does for all.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "answer", "group", "entity"}), head="mlm"
    )
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = NameGuessesResult

    top: int = parameter(
        3, "A name gives what is among so many best words for a part of it.", minimum=1, maximum=100
    )
    nouns: tuple[str, ...] = parameter(
        (), "More relations about people, and what to ask about their names: born=city."
    )
    guesser: str = parameter(
        "", "Another model that guesses from the names; the model itself if not given.", model=True
    )

    def __post_init__(self) -> None:
        """Refuse nouns without a relation."""
        super().__post_init__()
        nouns_given(self.nouns)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """What the model says to each fact, and to each name."""
        import xarray as xr

        book, block = FactBook(encoder, corpus), self.of_block(part, corpus)
        guesser = context.others.get("guesser", encoder)
        other = book if guesser is encoder else FactBook(guesser, corpus)
        facts = [e for e in block if is_plain(e) and book.right(e) and book.knows(e)]
        nouns = nouns_given(self.nouns)
        about = [noun_of(relation_of(e), nouns) for e in facts]
        names = [str(e.get("entity")) for e in facts]
        people = [i for i, noun in enumerate(about) if noun and names[i].split()]
        found = dict(
            zip(
                people,
                guesses(
                    other,
                    [facts[i] for i in people],
                    [about[i] for i in people],
                    top=self.top,
                    tokens_per_batch=context.batch_tokens,
                ),
                strict=True,
            )
        )
        said = book.ask(facts, wordings=1, tokens_per_batch=context.batch_tokens)
        rows: dict[str, list[Any]] = {name: [] for name in Named.COLUMNS}
        for i, (fact, (first,)) in enumerate(zip(facts, said, strict=True)):
            right = right_words(book, fact)
            word = encoder.tokenizer.decode([first.top[0]]).strip().lower()
            guess = found.get(i)
            row = {
                "relation": relation_of(fact),
                "noun": about[i] if guess else "",
                "subject": names[i],
                "gold": " ".join(sorted(right)),
                "rank": first.rank,
                "excess": (word in right) - book.by_chance(fact, first.top[0]),
                "word": word,
                "in_name": named_in_entity(fact),
                "word_in_name": bool(word) and word in names[i].lower(),
                "words": " ".join(sorted(guess.words)) if guess else "",
                "guessable": guess is not None and bool(right & guess.words),
                "followed": guess is not None and word in guess.words,
                "name_right": np.nan,
                "name_excess": np.nan,
            }
            if guess is not None and guess.piece is not None:
                row["name_right"] = guess.piece in other.right(fact)
                row["name_excess"] = row["name_right"] - other.by_chance(fact, guess.piece)
            for name, value in row.items():
                rows[name].append(value)
        context.advance(len(block))
        kept = {n: np.array(v, str if n in Named.TEXTS else float) for n, v in rows.items()}
        return xr.Dataset({name: ("example", v) for name, v in kept.items()})

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores by filters, and gains by whether the name gives the answer."""
        import pandas as pd
        import xarray as xr

        parts = [p for p in in_order(measured) if p.sizes["example"]]
        whole = Named.of(xr.concat(parts, "example"))
        gains = self._gains(whole)
        rows = [(name, e.n, e.value, e.low, e.high) for name, e in gains.items()]
        controls = control_table(whole, level=self.level, resamples=self.resamples, seed=self.seed)
        evidence: dict[str, Estimate | None] = {
            "p_at_1": self._mean(whole, whole.hits),
            "guessed_gain": gains["given by the name"],
            "known_gain": gains["not given by the name"],
            "filter_loss": controls[0][1],
            "loss_beyond_control": controls[2][1],
        }
        reasons: dict[str, str] = {}
        alone = gains.get("name alone")
        if alone is None:
            reasons |= {"name_gain": _NO_PEOPLE, "name_pull": _NO_PEOPLE}
        else:
            evidence["name_gain"] = alone
            misled, pull = pulled_by_names(whole)
            if alone.low <= 0:
                reasons["name_pull"] = _UNTELLING
            elif len(pull) < _FEWEST:
                reasons["name_pull"] = f"Fewer than {_FEWEST} names do not give the right answer."
            else:
                evidence["name_pull"] = self.share(
                    pull, least=-1.0, subjects=whole.texts("subject")[misled]
                )
        tables = {
            "sets": set_table(whole, self._mean),
            "gains": pd.DataFrame(rows, columns=["answers", "n", "gain", "low", "high"]),
            "controls": pd.DataFrame(
                [(name, e.n, e.value, e.low, e.high) for name, e in controls],
                columns=["filter", "n", "lost", "low", "high"],
            ),
            "relations": self._relations(whole),
        }
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={"examples": len(whole.hits), "people": int(whole.people.sum())},
        )

    def _mean(
        self, whole: Named, values: Any, *, least: float = 0.0, families: int = 1
    ) -> Estimate:
        return self.share(values, least=least, families=families, subjects=whole.texts("subject"))

    def _gains(self, whole: Named) -> dict[str, Estimate]:
        """How often answers are right beyond chance, in points of all facts."""
        excess, in_name = whole["excess"], whole["word_in_name"] == 1
        given = whole.given
        found = {
            "all answers": excess,
            "in the name": excess * in_name,
            "given by a part of the name": excess * (given & ~in_name),
            "given by the name": excess * given,
            "not given by the name": excess * ~given,
        }
        gains = {name: self._mean(whole, v, least=-1.0) for name, v in found.items()}
        if (asked := np.isfinite(whole["name_excess"])).sum() >= _FEWEST:
            some = whole.those(asked)
            gains["name alone"] = self._mean(some, some["name_excess"], least=-1.0)
        return gains

    def _relations(self, whole: Named) -> pd.DataFrame:
        import pandas as pd

        relations = whole.texts("relation")
        names = [str(name) for name in np.unique(relations)]
        rows = []
        for name in names:
            some = whole.those(relations == name)
            found = self._mean(some, some.hits, families=len(names))
            gain = self._mean(some, some["excess"] * some.given, least=-1.0, families=len(names))
            row = {"relation": name, "noun": max(map(str, some.texts("noun"))), "n": len(some.hits)}
            row |= {"p_at_1": found.value, "low": found.low, "high": found.high}
            rows.append(row | sums_of(some) | {"guessed_gain": gain.value})
            rows[-1] |= {"guessed_low": gain.low, "guessed_high": gain.high}
        return pd.DataFrame(rows)
