"""Name guesses: how much of what a model knows could be guessed from the name?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.parameters import parameter
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.cloze.facts.asked import (
    FactBook,
    Facts,
    is_plain,
    named_in_entity,
    relation_of,
)
from bertology.studies.cloze.name_guesses.guesses import guesses, noun_of, nouns_given, right_words
from bertology.studies.cloze.name_guesses.scores import (
    Named,
    control_table,
    pulled_by_names,
    set_table,
    sums_of,
)
from bertology.studies.designs.parts import in_order
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

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
        return [
            Drawing(
                "sets",
                lambda: self._dots("sets", "facts", "p_at_1", "right answer first (%)"),
                "Per cent of facts whose answer comes first in the whole vocabulary, with an "
                "interval over subjects: all facts; those that both filters leave; those whose "
                "subject's name holds the answer; those that the model guesses from a part of the "
                "name.",
            ),
            Drawing(
                "gains",
                lambda: self._dots("gains", "answers", "gain", "right beyond chance (points)"),
                "How often an answer is right, less how often it would be for other subjects of "
                "the relation, in points of all facts: answers that are in the name, answers that "
                "a part of the name alone gives, and all others; then guesses by names alone, of "
                "facts about people.",
            ),
            Drawing(
                "relations",
                self._relations,
                "One row for each relation: the per cent of facts whose answer comes first, with "
                "an interval that holds for all relations together. Grey bar: facts that both "
                "filters leave. Hollow diamond: what the name alone gets right.",
            ),
        ]

    def _dots(self, name: str, label: str, column: str, title: str) -> Figure:
        table = self.tables[name]
        values = (100 * table[c].to_numpy() for c in (column, "low", "high"))
        return interval_dots(
            [Dots(title, *values, level=0.0 if column == "gain" else None)],
            [str(x) for x in table[label]],
            title=f"Guessed from names: {name}\n{self.about}",
        )

    def _relations(self) -> Figure:
        table = self.tables["relations"]
        values = (100 * table[c].to_numpy() for c in ("p_at_1", "low", "high"))
        left, alone = (100 * table[c].to_numpy() for c in ("filtered", "name_alone"))
        return interval_dots(
            [Dots("right answer first (%)", *values, bars=left, hollow=alone)],
            [
                f"{r.relation!s} ({r.noun!s})" if r.noun else str(r.relation)
                for r in table.itertuples()
            ],
            title=f"Guessed from names, by relation\n{self.about}",
            note="Grey bar: without facts that a name gives away. Diamond: the name alone.",
        )


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
