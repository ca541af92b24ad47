"""Diagnostics: does the model complete sentences as people do, heeding roles and negation?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.answer_flips import mcnemar
from bertology.stats.balanced import balanced_share, fair_weights
from bertology.stats.paired import balances
from bertology.studies.designs.clozes import ClozeStudy, read_by_a_lens
from bertology.studies.designs.layer_lines import Line, line_measures
from bertology.studies.designs.parts import in_order
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from numpy.typing import ArrayLike

    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.questions import Question


# Contexts and their completions: what was preferred, by layer, and which versions belong together.
#
# An example is a context without a word. Its completions are CANDIDATES, those in ANSWER the good
# ones; `kinds` may call wrong ones related or unrelated. A `target` is one completion that fits the
# canonical version of an item and not the reversed one. ITEM and CONDITION tell versions apart.


AFFIRMATIVE, NEGATIVE = "affirmative", "negative"
CANONICAL, REVERSED = "canonical", "reversed"
RELATED, UNRELATED = "related", "unrelated"
_WORDS = ("id", "group", "condition", "item", "guesses")
_NUMBERS = ("rank", "score", "target", "good", "human", "human_target")


@dataclass(frozen=True)
class Completions:
    """What the model said of N contexts with up to C completions, by layer (R)."""

    words: Mapping[str, NDArray[np.str_]]  # (N,) id, group, condition, item, guesses
    candidates: NDArray[np.str_]  # (N, C)
    kinds: NDArray[np.str_]  # (N, C)
    rank: Floats  # (N, R) of the best expected word; NaN: none is a single piece
    score: Floats  # (N, C, R) log-probabilities
    target: Floats  # (N, R) log-probability of the target
    good: Floats  # (N, C) 1: good, 0: bad, NaN: no completion
    human: Floats  # (N,) share of people who gave the expected word
    human_target: Floats  # (N,) and the target

    @classmethod
    def of(cls, parts: Sequence[xr.Dataset]) -> Completions:
        """From the parts of the study, in their order."""

        def joined(name: str, kind: Callable[[Any], Any]) -> NDArray[Any]:
            return np.concatenate([kind(part[name].to_numpy()) for part in parts])

        words = {name: joined(name, np.char.asarray).astype(str) for name in _WORDS}
        candidates, kinds = (joined(n, np.asarray).astype(str) for n in ("candidates", "kinds"))
        numbers: dict[str, Any] = {n: joined(n, np.asarray).astype(np.float64) for n in _NUMBERS}
        return cls(words, candidates, kinds, **numbers)

    @property
    def layers(self) -> int:
        """How many readings there are, the last being the model itself."""
        return int(self.rank.shape[1])

    @property
    def chance(self) -> Floats:
        """(N,) the share of right choices by chance; NaN without good and bad completions."""
        there = np.isfinite(self.good)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = np.nansum(self.good, axis=1) / there.sum(axis=1)
        return np.where((found > 0) & (found < 1), found, np.nan)

    def within(self, k: int) -> Floats:
        """(N, R) whether an expected word is among the first k; ranks that are shared count so."""
        return np.where(np.isnan(self.rank), np.nan, (self.rank <= k).astype(float))

    def preferred(self) -> Floats:
        """(N, R) whether a good completion is the likeliest; those that are equal share it."""
        best = np.where(np.isnan(self.score), -np.inf, self.score).max(axis=1, keepdims=True)
        tied = self.score == best  # (N, C, R)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (tied * np.nan_to_num(self.good)[..., None]).sum(axis=1) / tied.sum(axis=1)
        return np.where(np.isnan(self.chance)[:, None], np.nan, share)

    def margins(self) -> Floats:
        """(N, R) by how much the best good completion is more probable than the best bad one."""
        sides = []
        for good in (1.0, 0.0):
            chosen = (self.good == good)[..., None]
            sides.append(np.where(chosen, np.exp(self.score), -np.inf).max(axis=1))
        known = ~np.isnan(self.chance)[:, None]
        return np.where(known, np.where(known, sides[0], 0) - np.where(known, sides[1], 0), np.nan)

    def related(self) -> Floats:
        """(N, R) whether the related wrong completion is likelier than the unrelated one."""
        found = np.full(self.rank.shape, np.nan)
        for n, kinds in enumerate(self.kinds):
            near, far = (np.flatnonzero(kinds == kind) for kind in (RELATED, UNRELATED))
            if near.size and far.size:
                found[n] = _likelier(self.score[n, near[0]], self.score[n, far[0]])
        return found

    def weights(self, one: str = "", other: str = "") -> Floats:
        """(N,) how much a context counts, so that liking some words everywhere gains nothing.

        Choices are between kinds where they are named, between good and bad where not. Words of
        affirmative and of negative contexts are weighed apart, since a negation turns good into
        bad. See `stats.balanced.fair_weights`.
        """
        up = (self.kinds == one) if one else (self.good == 1)
        down = (self.kinds == other) if one else (self.good == 0)
        negated = np.isin(self.words["condition"], (AFFIRMATIVE, NEGATIVE))
        keys = np.where(negated, self.words["condition"], "")

        def named(some: NDArray[np.bool_]) -> list[list[str]]:
            return [
                [f"{key} {word}" for word in words[there]]
                for key, words, there in zip(keys, self.candidates, some, strict=True)
            ]

        return fair_weights(named(up), named(down))

    def pairs(self, one: str, other: str) -> NDArray[np.int64]:
        """(P, 2) places of both versions of every item that has both, once each."""
        found: dict[str, dict[str, int]] = {}
        for n, (item, condition) in enumerate(
            zip(self.words["item"], self.words["condition"], strict=True)
        ):
            if item and condition in (one, other):
                found.setdefault(str(item), {}).setdefault(str(condition), n)
        both = [(at[one], at[other]) for at in found.values() if len(at) == 2]
        return np.array(both, np.int64).reshape(-1, 2)

    def roles(self) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Of P pairs: whether the target is likelier where it fits (P, R), by how much (P, R).

        Then by how much more people gave it there (P,), and the places of both versions (P, 2).
        """
        places = self.pairs(CANONICAL, REVERSED)
        places = places[np.isfinite(self.target[places, -1]).all(axis=1)]
        fits, other = self.target[places[:, 0]], self.target[places[:, 1]]
        people = self.human_target[places[:, 0]] - self.human_target[places[:, 1]]
        return _likelier(fits, other), np.exp(fits) - np.exp(other), people, places


def _likelier(one: Floats, other: Floats) -> Floats:
    found = np.where(one == other, 0.5, (one > other).astype(float))
    return np.where(np.isnan(one) | np.isnan(other), np.nan, found)


GOOD, RELATED_FIRST, ROLE = "good over bad", "related over unrelated", "fitting role over reversed"
_HIGH = "High: read from this layer, the head already completes as it should."
_LINES = {  # columns of the table of layers
    "accuracy": Line(
        "Contexts whose expected word is among the first guesses", "first guesses", _HIGH
    ),
    "good": Line("Contexts whose good completion is the likeliest", GOOD, _HIGH),
    "related": Line("Contexts whose related wrong completion is likelier", RELATED_FIRST, _HIGH),
    "role": Line("Pairs whose verb is likelier where it fits", ROLE, _HIGH),
}
_SAID = {
    "good_preference_gain": "the good completion comes first oftener than by chance by {}",
    "related_preference": "a related wrong one goes before an unrelated one in {}",
    "role_preference": "a verb is likelier where roles fit in {}",
    "negation_loss": "negation costs {} of right preferences",
}


class DiagnosticsResult(Result):
    """How the model completes contexts.

    Table `preferences`: how often the right one of two or more completions, or contexts, is
    likelier, and how often clearly so; `accuracy`: how often the expected word is among the first k
    guesses; `pairs`: both versions of items, with McNemar's exact test; `layers`: by layer;
    `contexts`: each of them, with the first guesses.
    """

    lead: ClassVar[int] = 3
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "preferences": {"share": "%", "clear": "%", "chance": "%", "human": "%"},
        "accuracy": {"share": "%", "human": "%"},
        "layers": dict.fromkeys(_LINES, "%"),
    }

    @property
    def answer(self) -> str:
        """The share of expected words among the first guesses, then what is preferred."""
        found, k = self.evidence(), self.facts["k"]
        said = []
        if (first := found.get(f"accuracy_at_{k}")) is not None:
            said.append(
                f"the expected word is among the first {k} guesses in {percent(first, '.1f')} of "
                f"{first.n:,} contexts"
            )
        for name, words in _SAID.items():
            if (one := found.get(name)) is not None:
                shares = name in ("related_preference", "role_preference")
                number = percent(one, ".1f", limits=(0.5,)) if shares else points(one)
                said.append(words.format(number))
        if not said:
            return "Nothing is sure: no expected word is a single piece, and nothing was compared."
        text = "; ".join(said) + "."
        return text[0].upper() + text[1:]

    def measures(self) -> Sequence[Measure]:
        """What is preferred by layer; nothing where only the model itself was asked."""
        return line_measures(self.tables["layers"], _LINES, of="diagnostics")

    def drawings(self) -> Sequence[Drawing]:
        """Preferences, accuracies, and both by layer."""
        found = []
        if len(self.tables["preferences"]):
            rows = self.tables["preferences"]
            names = [_named(str(r.group), str(r.condition), str(r.test)) for r in rows.itertuples()]
            found.append(
                drawings.dots(
                    "preferences",
                    [
                        Dots.of_columns("likelier (%)", rows, "share", hollow="chance"),
                        Dots.of_columns("clearly likelier (%)", rows, "clear"),
                    ],
                    names,
                    self.about,
                    title="Which completion is likelier",
                    caption="One row for each kind of comparison: the per cent in which the right "
                    "side is likelier, and in which it is clearly so, more probable by the "
                    "threshold. Intervals hold for all rows together; diamonds are chance.",
                    note="Diamonds: chance. Clearly: more probable by "
                    f"{self.facts['threshold']:g}.",
                )
            )
        if len(self.tables["accuracy"]):
            found.append(self._draw_accuracy())
        return [*found, *read_by_a_lens(self, _LINES, "Completions")]

    def _draw_accuracy(self) -> Drawing:
        rows = self.tables["accuracy"]
        sizes = sorted(rows["k"].unique())
        names = [_named(r.group, r.condition) for r in rows[rows["k"] == sizes[0]].itertuples()]
        panels = []
        for k in sizes:
            label = "first guess (%)" if k == 1 else f"first {k} guesses (%)"
            panels.append(Dots.of_columns(label, rows[rows["k"] == k], "share", hollow="human"))
        return drawings.dots(
            "accuracy",
            panels,
            names,
            self.about,
            title="Expected words among the first guesses",
            caption="The per cent of contexts whose expected word is among the first guesses of "
            "the whole vocabulary, by how many guesses are looked at. Diamonds: the mean "
            "share of people who gave that word, where the corpus tells it.",
            note="Diamonds: mean share of people who gave the word. Intervals hold for all rows.",
        )


def _named(group: str, condition: str, test: str = "") -> str:
    return ", ".join(part for part in (group, condition, test) if part) or "all"


@dataclass(frozen=True)
class Diagnostics(ClozeStudy):
    """Does the model complete sentences as people do, and does it heed roles and negation?

    Method: contexts lack one word. Accuracy is the share of contexts whose expected word is among
    the first k guesses of the whole vocabulary; expected words of several pieces have no rank and
    are left out. Then probabilities are compared: of a good completion with all bad ones; of a
    wrong completion related to the good one with an unrelated one; of the same verb after a context
    whose roles fit and after the reversed one. Equal ones share. "Clearly" is a difference of
    probabilities above the threshold. In affirmative and negative versions of a sentence other
    completions are true; McNemar's exact test compares the versions. A negation is not understood
    where less than half of the preferences are right under it, of a model that surely prefers what
    is true of affirmative sentences. What claims are judged on
    weighs contexts so that no completion is good more often than chance has it: liking some words
    wherever they stand gains nothing, and words that are never bad do not count. Intervals are over
    contexts, or over pairs of versions.

    Source: Ettinger (2020). Limits: contexts are few. A completion of several pieces is filled from
    the left and mostly less likely than one of a single piece. Negative contexts allow so many
    words that accuracy counts the others only. Of large corpora, versions of an item may be drawn
    apart.
    """

    version: ClassVar[int] = 3  # negation: by what is preferred in negative sentences
    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "answer"}), capabilities=frozenset({"residual"}), head="mlm"
    )
    result_type: ClassVar[type[Result]] = DiagnosticsResult
    fills_gpu: ClassVar[bool] = True

    guesses: tuple[int, ...] = parameter(
        (1, 5, 10), "How many first guesses are looked at.", concludes=True
    )
    threshold: float = parameter(
        0.01,
        "A completion is clearly likelier if so much more probable.",
        minimum=0.0,
        maximum=1.0,
        concludes=True,
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse numbers of guesses that there cannot be."""
        super().check(encoder, corpus)
        most = int(encoder.config.vocab_size)
        if not self.guesses or not all(1 <= k <= most for k in self.guesses):
            raise DataError(
                f"Numbers of guesses must be between 1 and {most}, not {list(self.guesses)}.",
                hint="Give --guesses 1,5,10.",
            )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Ranks of the expected words, and log-probabilities of all completions, by layer."""
        import xarray as xr

        from bertology.model.masked_lm.clozes import one_piece_words

        block, layers = self.of_block(part, corpus), self.readings(encoder)
        most = max(1, *(len(_candidates(e)) for e in self.shown(corpus)))
        pieces = one_piece_words(encoder, {word for e in block for word in _answers(e)})
        asked = [(at, one) for at, e in enumerate(block) for one in _asked(e, pieces)]
        rank, target = (np.full((len(block), layers), np.nan) for _ in range(2))
        score, guesses = np.full((len(block), most, layers), np.nan), [""] * len(block)
        engine = self.engine(encoder, corpus, context, top_k=5)
        found = engine.answers(question for _, (_, question) in asked)
        for (at, (place, _)), answer in zip(asked, found, strict=True):
            if place == _OPEN:
                guesses[at] = " ".join(guess.word for guess in answer.top[-1])
                if answer.ranks.shape[1]:
                    rank[at] = answer.ranks.min(axis=1)
            elif place == _TARGET:
                target[at] = answer.scores[:, 0]
            else:
                score[at, place] = answer.scores[:, 0]
        context.advance(len(block))
        words, kinds, good = _labels(block, most)
        return xr.Dataset(
            {
                "rank": (("example", "layer"), rank),
                "score": (("example", "candidate", "layer"), score),
                "target": (("example", "layer"), target),
                "candidates": (("example", "candidate"), words),
                "kinds": (("example", "candidate"), kinds),
                "good": (("example", "candidate"), good),
                "id": ("example", [e.id for e in block]),
                "guesses": ("example", guesses),
                **{
                    name: ("example", [str(e.annotations.get(name) or "") for e in block])
                    for name in ("group", "condition", "item")
                },
                "human": ("example", [_human(e, "expected") for e in block]),
                "human_target": ("example", [_human(e, "target") for e in block]),
            }
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares with their intervals, paired tests, and the quantities that claims need."""
        found = Completions.of(list(in_order(measured)))
        k = max(k for k in self.guesses if k <= 5) if min(self.guesses) <= 5 else self.guesses[0]
        evidence, reasons = self._evidence(found)
        return self.result(
            provenance,
            {
                "preferences": self._preferences(found),
                "accuracy": self._accuracy(found),
                "pairs": _pairs(found),
                "layers": self._layers(found, k),
                "contexts": _contexts(found),
            },
            evidence=evidence,
            reasons=reasons,
            facts={
                "k": k,
                "threshold": self.threshold,
                "lens": self.lens,
                "contexts": len(found.rank),
                "without_rank": int(np.isnan(found.rank[:, -1]).sum()),
            },
        )

    def _evidence(self, found: Completions) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        """Of the model itself; only what liking some words everywhere cannot gain."""
        counted = found.words["condition"] != NEGATIVE
        fits, by, _, _ = found.roles()
        plain = ~np.isin(found.words["condition"], (AFFIRMATIVE, NEGATIVE))
        gain = found.preferred()[:, -1] - found.chance
        role = self._share(fits[:, -1], "pairs")
        evidence = {
            f"accuracy_at_{k}": self._share(found.within(k)[counted, -1]) for k in self.guesses
        } | {
            "good_preference_gain": self._fair(found, gain, found.weights() * plain, least=-1.0),
            "related_preference": self._fair(
                found, found.related()[:, -1], found.weights(RELATED, UNRELATED)
            ),
            "role_preference": role,
            "negation_loss": self._negation(found),
        }
        affirmed, negated = self._versions(found)
        evidence["affirmative_preference"] = affirmed
        # What is not preferred where it is true cannot be kept where it is false.
        told = affirmed is not None and affirmed.low > 0.5
        evidence["negative_preference"] = negated if told else None
        heeded = role is not None and role.low > 0.5
        clear = (by[:, -1] > self.threshold).astype(float)
        evidence["clear_role_preference"] = self._share(clear, "pairs") if heeded else None
        return evidence, {
            "good_preference_gain": "not judged: no good completion is a bad one elsewhere",
            "related_preference": "not judged: no wrong completions are called related and "
            "unrelated, or they never change places",
            "role_preference": "not judged: no item has a canonical and a reversed version",
            "clear_role_preference": "not judged: roles are not surely heeded at all, so that "
            "small differences say nothing",
            "negation_loss": _NO_VERSIONS,
            "negative_preference": _NO_VERSIONS
            if affirmed is None
            else "not judged: the model does not surely prefer what is true of affirmative "
            f"sentences ({percent(affirmed)} of them), so that nothing is said of negation",
        }

    def _fair(
        self,
        found: Completions,
        values: NDArray[np.float64],
        weights: NDArray[np.float64],
        least: float = 0.0,
    ) -> Estimate | None:
        """A weighted mean over contexts; versions of an item stay together."""
        known = np.isfinite(values) & (weights > 0)
        names = np.where(found.words["item"] == "", found.words["id"], found.words["item"])[known]
        one = balanced_share(
            values[known], weights[known], names.tolist(), least=least, level=self.level
        )
        several = len(np.unique(names)) < len(names)
        return None if one is None else one.counting("items" if several else "contexts")

    def _share(self, values: NDArray[np.float64], unit: str = "contexts") -> Estimate | None:
        known = values[np.isfinite(values)]
        if len(known) < 2:
            return None
        means = self.means(known[None], within=(0, 1), support=(0, 1))
        one = means.estimate(0)
        return None if one is None else one.counting(unit)

    def _negation(self, found: Completions) -> Estimate | None:
        """Right preferences of affirmative versions less those of negative ones, over pairs."""
        places = found.pairs(AFFIRMATIVE, NEGATIVE)
        weights = found.weights()[places].min(axis=1)
        right = found.preferred()[places, -1]
        signs = np.sign(right[:, 0] - right[:, 1])
        known = np.isfinite(signs) & (weights > 0)
        signs, weights = signs[known], weights[known]
        if len(signs) < 2:
            return None
        if weights.min() < weights.max() - 1e-6:  # no exact test weighs pairs
            names = [str(i) for i in range(len(signs))]
            fair = balanced_share(signs, weights, names, least=-1.0, level=self.level)
            return None if fair is None else fair.counting("pairs")
        one = balances(signs[None], level=self.level, resamples=self.resamples, seed=self.seed)
        p = float(mcnemar((signs > 0).sum(), (signs < 0).sum()))
        return Estimate(
            one.value[0], one.low[0], one.high[0], len(signs), self.level, "pairs", tested=(0.0, p)
        )

    def _versions(self, found: Completions) -> tuple[Estimate | None, Estimate | None]:
        """Right preferences of affirmative and of negative versions, of one good word of two."""
        places = found.pairs(AFFIRMATIVE, NEGATIVE)
        weights = found.weights()[places].min(axis=1)
        right = found.preferred()[places, -1]
        known = np.isfinite(right).all(axis=1) & (found.chance[places] == 0.5).all(axis=1)
        known &= weights > 0
        names = [str(i) for i in np.flatnonzero(known)]
        affirmed, negated = (
            balanced_share(of[known], weights[known], names, level=self.level) for of in right.T
        )
        if affirmed is None or negated is None:
            return None, None
        return affirmed.counting("pairs"), negated.counting("pairs")

    def _preferences(self, found: Completions) -> pd.DataFrame:
        """One row for each group, condition and comparison."""
        fits, by, people, places = found.roles()
        role, more = (np.full((len(found.rank), found.layers), np.nan) for _ in range(2))
        role[places[:, 0]], more[places[:, 0]] = fits, by
        told = np.full(len(found.rank), np.nan)
        told[places[:, 0]] = np.where(np.isnan(people), np.nan, people > 0)
        nothing, half = np.full(len(found.rank), np.nan), np.full(len(found.rank), 0.5)
        good = found.preferred()[:, -1], found.margins()[:, -1], found.chance, nothing
        asked = {
            GOOD: good,
            RELATED_FIRST: (found.related()[:, -1], None, half, nothing),
            ROLE: (role[:, -1], more[:, -1], half, told),
        }
        rows, shares, clear = [], [], []
        for group, condition, some in _groups(found):
            for test, (right, margin, chance, human) in asked.items():
                known = some & np.isfinite(right)
                if not known.any():
                    continue
                of = "" if test == ROLE else condition
                rows.append(
                    (group, of, test, int(known.sum()), chance[known].mean(), *_mean(human[known]))
                )
                shares.append(np.where(known, right, np.nan))
                far = nothing if margin is None else (margin > self.threshold).astype(float)
                clear.append(np.where(known, far, np.nan))
        return self._with_shares(
            rows, ["group", "condition", "test", "n", "chance", "human"], share=shares, clear=clear
        )

    def _accuracy(self, found: Completions) -> pd.DataFrame:
        rows, shares = [], []
        for group, condition, some in _groups(found):
            for k in self.guesses:
                right = np.where(some, found.within(k)[:, -1], np.nan)
                if n := int(np.isfinite(right).sum()):
                    rows.append((group, condition, k, n, *_mean(found.human[np.isfinite(right)])))
                    shares.append(right)
        return self._with_shares(rows, ["group", "condition", "k", "n", "human"], share=shares)

    def _with_shares(
        self,
        rows: Sequence[tuple[object, ...]],
        columns: list[str],
        **shares: list[NDArray[np.float64]],
    ) -> pd.DataFrame:
        """Rows with means of shares, whose bounds hold for all rows together."""
        import pandas as pd

        table = pd.DataFrame(rows, columns=columns)
        for name, values in shares.items():
            found = np.full((len(rows), 3), np.nan)
            some = [at for at, row in enumerate(values) if np.isfinite(row).any()]
            if some:
                means = self.means(
                    np.stack([values[at] for at in some]), within=(0, 1), support=(0, 1)
                )
                found[some] = np.stack(
                    [means.value, means.simultaneous_low, means.simultaneous_high], axis=1
                )
            for column, at in ((name, 0), (f"{name}_low", 1), (f"{name}_high", 2)):
                table[column] = found[:, at]
        return table

    def _layers(self, found: Completions, k: int) -> pd.DataFrame:
        counted = found.words["condition"] != NEGATIVE
        lines = {
            "accuracy": found.within(k)[counted],
            "good": found.preferred(),
            "related": found.related(),
            "role": found.roles()[0],
        }
        columns: dict[str, ArrayLike] = {}
        for name, values in lines.items():
            known = values[np.isfinite(values[:, -1])] if len(values) else values
            if len(known) > 1:
                means = self.means(known.T, within=(0, 1), support=(0, 1))
                columns |= with_bounds(name, means, p=False)
        return labelled_table({"layer": range(found.layers)}, columns)


_NO_VERSIONS = (
    "not judged: no item has an affirmative and a negative version whose true completions are "
    "false elsewhere"
)
_OPEN, _TARGET = -1, -2


def _asked(example: Example, pieces: Mapping[str, int]) -> Iterator[tuple[int, Question]]:
    """The open blank, each completion, and the target."""
    from bertology.model.masked_lm.questions import Question

    ranked = tuple(word for word in _answers(example) if word in pieces)
    yield _OPEN, Question(example.text, answers=ranked)
    candidates = _candidates(example)
    texts = example.annotations.get("candidate_texts") or (example.text,) * len(candidates)
    for at, (text, word) in enumerate(zip(texts, candidates, strict=True)):
        yield at, Question(text, candidates=(word,))
    if target := example.annotations.get("target"):
        yield _TARGET, Question(example.text, candidates=(str(target),))


def _answers(example: Example) -> tuple[str, ...]:
    given = example.get("answer")
    return (given,) if isinstance(given, str) else tuple(str(word) for word in given)


def _candidates(example: Example) -> tuple[str, ...]:
    return tuple(str(word) for word in example.annotations.get("candidates") or ())


def _human(example: Example, of: str) -> float:
    given = example.annotations.get("human")
    return float(given[of]) if isinstance(given, Mapping) and of in given else float("nan")


def _labels(
    block: Corpus, most: int
) -> tuple[NDArray[np.object_], NDArray[np.object_], NDArray[np.float64]]:
    """Words, kinds and goodness of completions (N, C)."""
    words, kinds = (np.full((len(block), most), "", object) for _ in range(2))
    good = np.full((len(block), most), np.nan)
    for n, example in enumerate(block):
        given, right = _candidates(example), set(_answers(example))
        words[n, : len(given)] = given
        good[n, : len(given)] = [word in right for word in given]
        if named := example.annotations.get("kinds"):
            if len(named) != len(given):
                raise DataError(
                    f"Example {example.id!r} has {len(given)} candidates but {len(named)} kinds."
                )
            kinds[n, : len(given)] = named
    return words.astype(str), kinds.astype(str), good


def _groups(found: Completions) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Groups and conditions, in the order in which they come."""
    keys = list(zip(found.words["group"], found.words["condition"], strict=True))
    for group, condition in dict.fromkeys(keys):
        yield str(group), str(condition), np.array([key == (group, condition) for key in keys])


def _mean(values: NDArray[np.float64]) -> tuple[float]:
    known = values[np.isfinite(values)]
    return (float(known.mean()) if known.size else float("nan"),)


def _pairs(found: Completions) -> pd.DataFrame:
    """Items in two versions: which of them is told right, with McNemar's exact test."""
    import pandas as pd

    places, right = found.pairs(AFFIRMATIVE, NEGATIVE), found.preferred()[:, -1]
    places = places[np.isfinite(right[places]).all(axis=1)]
    groups, rows = found.words["group"][places[:, 0]], []
    for group in dict.fromkeys(groups):
        one, other = (right[places[groups == group, side]] > 0.5 for side in (0, 1))
        only = int((one & ~other).sum()), int((other & ~one).sum())
        counts = (int((one & other).sum()), *only, int((~one & ~other).sum()))
        rows.append((str(group), len(one), *counts, float(mcnemar(*only))))
    columns = ["group", "pairs", "both", f"{AFFIRMATIVE}_only", f"{NEGATIVE}_only", "neither", "p"]
    return pd.DataFrame(rows, columns=columns)


def _contexts(found: Completions) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            **{name: found.words[name] for name in ("id", "group", "condition", "guesses")},
            "rank": found.rank[:, -1],
            "preferred": found.preferred()[:, -1],
            "by": found.margins()[:, -1],
        }
    )
