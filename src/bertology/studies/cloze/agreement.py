"""Agreement: does the model choose the verb that agrees with its subject?"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import percent
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Provenance, Result
from bertology.stats.answer_flips import mcnemar
from bertology.stats.balanced import Balanced, balanced_rows, balancing_weights
from bertology.studies.designs.clozes import ClozeStudy, PairBlank, pair_blank, too_long
from bertology.studies.designs.parts import in_order, start_of
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder
    from bertology.stats import Estimate
    from bertology.stats.partial_means import PartialMeans

__all__ = ["Agreement", "AgreementResult"]

ALL, NONSENSE = "all", "nonsense"
_OTHERS = ("npi", "reflexive")  # constructions of CLAMS that are not of verbs
_SENTENCE = "sentence "


class AgreementResult(Result):
    """How often the verb that agrees is likelier.

    Table `groups`: balanced accuracy of all pairs, by number of attractors and by construction, and
    in nonsense sentences; `layers`: of all pairs and of nonsense ones, for each layer; `paired`:
    pairs that only one of the two versions gets right, with McNemar's exact test.
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "groups": {"accuracy": "%"},
        "layers": {"accuracy": "%", "nonsense": "%"},
    }

    @property
    def answer(self) -> str:
        """The accuracy over all pairs, with attractors and in nonsense, beside chance."""
        found = self.evidence()
        whole = found["agreement_accuracy"]
        sure = "Surely yes" if whole.low > 0.5 else "Surely not" if whole.high < 0.5 else "Not sure"
        more = "".join(
            f", {words} in {percent(found[name], '.1f', limits=(0.5,))}"
            for name, words in (
                ("attractor_accuracy", "with attractors"),
                ("nonsense_accuracy", "in nonsense sentences"),
            )
            if name in found
        )
        return (
            f"{sure}: the form that agrees is likelier in "
            f"{percent(whole, '.1f', limits=(0.5,))} of {self.facts['pairs']:,} pairs{more}; "
            "chance would be 50 %."
        )

    def measures(self) -> Sequence[Measure]:
        """Accuracy by layer; nothing where only the model itself was asked."""
        table = self.tables["layers"]
        if len(table) < 2:
            return []
        return [
            Measure.of_column(
                table,
                column,
                name=f"agreement-{column}",
                title=title,
                unit="%",
                bounds=(f"{column}_low", f"{column}_high"),
                scale=100.0,
                middle=50.0,
                reading="High: at this layer the head already prefers the form that agrees. "
                "Chance is 50.",
            )
            for column, title in (
                ("accuracy", "Pairs in which the form that agrees is likelier"),
                (NONSENSE, "The same in nonsense sentences"),
            )
            if table[column].notna().any()
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Accuracy by group, and by layer."""
        found = [
            Drawing(
                "groups",
                self._draw_groups,
                "One row for each group of pairs, the first for all of them: the per cent of pairs "
                "in which the form that agrees is likelier, both forms of a verb weighing the "
                "same, with intervals for all rows together. Chance would be 50.",
            )
        ]
        if shown := self.measures():
            found.append(
                drawings.profile(
                    "layers",
                    shown,
                    self.about,
                    title="Agreement, read from each layer",
                    reading="Where a line rises above 50, the layer's states tell the number of "
                    "the subject to the head. Layers are read by a lens, so that a low line says "
                    "only that the head cannot read it there.",
                    labels=["all pairs", "nonsense"][: len(shown)],
                )
            )
        return found

    def _draw_groups(self) -> Figure:
        rows = self.tables["groups"]
        return interval_dots(
            [Dots.of_columns("pairs told right (%)", rows, "accuracy", level=50)],
            [str(name) for name in rows["group"]],
            title=f"Agreement of verbs\n{self.about}",
            note="Dashed: chance, 50 %. Intervals hold for all rows together.",
        )


@dataclass(frozen=True)
class Agreement(ClozeStudy):
    """Does the model choose the form of the verb that agrees with its subject?

    Method: the word in which a minimal pair differs is masked, and the log-probabilities of its two
    forms are compared; equal ones count half. Left out are pairs that differ in more than one word,
    that are too long, or whose forms have different numbers of pieces, as what fits fewer masks
    would be preferred. Both forms of a verb get the same weight, so that always preferring one of
    them scores 50 %. Accuracy is given by number of attractors (nouns of the other number before
    the verb), by construction, by layer (the model's head on each layer's states), and in nonsense
    sentences, in which other content words are replaced by words of the same class and form.
    Intervals are over sentences, or over the nouns that verbs agree with where the corpus names
    them, since sentences about the same noun are alike.

    Source: Goldberg (2019), with pairs of Linzen et al. (2016), Gulordava et al. (2018), Marvin and
    Linzen (2018). Limits: Goldberg asks for single pieces only. Constructions of negative polarity
    and reflexives are left out. Number in nonsense sentences is kept by rules of English spelling.
    What comes after the verb may tell its number, too.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "contrast"}), capabilities=frozenset({"residual"}), head="mlm"
    )
    result_type: ClassVar[type[Result]] = AgreementResult
    block: ClassVar[int] = 1024
    fills_gpu: ClassVar[bool] = True

    tagger: str = parameter(
        "auto",
        "Who says what is a content word: the corpus where it can, else the bundled tagger (auto).",
        choices=("auto", "gold", "bundled", "spacy", "stanza"),
    )

    def ingredients(self, corpus: Corpus | None) -> dict[str, str]:
        """The tagger that may be asked."""
        from bertology.annotated.tagged_batches import tagging_ingredients

        return tagging_ingredients(self.tagger)

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Refuse gold annotation that is not there."""
        from bertology.annotated.tagged_batches import check_tagging

        super().check(encoder, corpus)
        if corpus is not None:
            check_tagging(corpus, self.tagger)

    def shown(self, corpus: Corpus) -> Corpus:
        """Pairs of verbs, as many as asked for."""
        fits = [e for e in corpus.examples if not _is_other(e)]
        if len(fits) < self.fewest:
            raise DataError(f"{corpus.name!r} has no pairs of verbs.")
        return super().shown(replace(corpus, examples=fits))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """How much likelier the form that agrees is, by reading, in both versions."""
        import xarray as xr

        from bertology.model.masked_lm.questions import Question

        shown = self.of_block(part, corpus)
        engine, layers = self.engine(encoder, corpus, context), self.readings(encoder)
        blanks = [pair_blank(e.text, str(e.get("contrast"))) for e in shown]
        asked: list[tuple[int, int, Question]] = []
        for at, (version, made) in enumerate(self._versions(shown, corpus, blanks, part)):
            blank = blanks[at // 2]
            if made is not None and blank is not None:
                text = f"{made[0]}{{mask}}{made[1]}"
                asked.append((version, at // 2, Question(text, (blank.good, blank.bad))))
        over = too_long(encoder, [f"{q.text} {max(q.candidates, key=len)}" for _, _, q in asked])
        asked = [one for i, one in enumerate(asked) if i not in over]
        better = np.full((2, len(shown), layers), np.nan)
        answers = engine.answers(question for _, _, question in asked)
        for (version, at, _), answer in zip(asked, answers, strict=True):
            good, bad = answer.pieces
            if len(good) == len(bad):
                better[version, at] = answer.scores[:, 0] - answer.scores[:, 1]
        context.advance(len(shown))
        forms = [("", "") if b is None else (b.good.lower(), b.bad.lower()) for b in blanks]
        return xr.Dataset(
            {
                "plain": (("example", "layer"), better[0]),
                "nonsense": (("example", "layer"), better[1]),
                "kind": ("example", ["/".join(sorted(pair)) for pair in forms]),
                "first": ("example", [good <= bad for good, bad in forms]),
                "unit": ("example", [_unit(e, start_of(part) + i) for i, e in enumerate(shown)]),
                "attractors": ("example", [_attractors(e) for e in shown]),
                "group": ("example", [str(e.annotations.get("group") or "") for e in shown]),
            }
        )

    def _versions(
        self, block: Corpus, corpus: Corpus, blanks: Sequence[PairBlank | None], part: str
    ) -> list[tuple[int, tuple[str, str] | None]]:
        """Of each pair: what stands around the blank in the sentence, and in a nonsense one."""
        from bertology.annotated.tagged_batches import annotated
        from bertology.data.words.nonsense import NonsenseWords

        tagged, _ = annotated(self.shown(corpus), self.tagger)
        words, first = NonsenseWords.of(tagged), start_of(part)
        found: list[tuple[int, tuple[str, str] | None]] = []
        for i, (example, blank) in enumerate(zip(block, blanks, strict=True)):
            if blank is None:
                found += [(0, None), (1, None)]
                continue
            rng = random.Random(f"{self.seed}-{first + i}")
            kept = (blank.start, blank.end)
            plain = example.text[: blank.start], example.text[blank.end :]
            found += [(0, plain), (1, words.nonsense(tagged[first + i], kept, rng))]
        return found

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Balanced accuracies with their intervals, and paired tests."""
        pairs = _Pairs.of(list(in_order(measured)))
        plain = pairs.balanced(pairs.plain)
        if not plain.items:
            raise DataError(
                "No pair can be compared: sentences differ in more than one word, forms have "
                "different numbers of pieces, or only one form of each verb is ever right.",
                hint="Give more pairs, or another corpus.",
            )
        tables = {
            "groups": self._groups(pairs),
            "layers": self._layers(pairs),
            "paired": self._paired(pairs),
        }
        evidence = {
            "agreement_accuracy": self._estimate(pairs, plain),
            "attractor_accuracy": self._estimate(
                pairs, pairs.balanced(pairs.plain, pairs.attractors > 0)
            ),
            "nonsense_accuracy": self._estimate(pairs, pairs.balanced(pairs.nonsense)),
        }
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons={
                "attractor_accuracy": "not judged: no pair has an attractor, or none is told",
                "nonsense_accuracy": "not judged: too few content words have others of their class",
            },
            facts={
                "pairs": plain.items,
                "left_out": len(pairs.unit) - plain.items,
                "lens": self.lens,
                "readings": len(plain.rows),
            },
        )

    def _means(self, of: Balanced, rows: slice = slice(None), families: int = 1) -> PartialMeans:
        return self.means(of.rows[rows], within=(0, 1), support=of.support, families=families)

    def _estimate(self, pairs: _Pairs, of: Balanced) -> Estimate | None:
        """Of the model itself, over units."""
        found = self._means(of, slice(-1, None)).estimate(0) if of.items else None
        return None if found is None else found.counting(pairs.counted)

    def _groups(self, pairs: _Pairs) -> pd.DataFrame:
        """All pairs, nonsense, attractors and constructions, with bounds for all of them."""
        import pandas as pd

        asked = {ALL: pairs.balanced(pairs.plain), NONSENSE: pairs.balanced(pairs.nonsense)}
        for count in np.unique(pairs.attractors[pairs.attractors >= 0]):
            name = f"{count} attractor{'' if count == 1 else 's'}"
            asked[name] = pairs.balanced(pairs.plain, pairs.attractors == count)
        for name in np.unique(pairs.group):
            if name and name not in asked and not name.endswith("attractors"):
                asked[str(name)] = pairs.balanced(pairs.plain, pairs.group == name)
        rows = []
        for name, of in asked.items():
            if of.items:
                found = self._means(of, slice(-1, None), len(asked))
                ends = (found.simultaneous_low[0], found.simultaneous_high[0])
                rows.append((name, of.items, int(found.n[0]), found.value[0], *ends))
        columns = ["group", "pairs", pairs.counted, "accuracy", "accuracy_low", "accuracy_high"]
        return pd.DataFrame(rows, columns=columns)

    def _layers(self, pairs: _Pairs) -> pd.DataFrame:
        plain = pairs.balanced(pairs.plain)
        columns = with_bounds("accuracy", self._means(plain), p=False)
        other = pairs.balanced(pairs.nonsense)
        if other.items:
            columns |= with_bounds(NONSENSE, self._means(other), p=False)
        return labelled_table({"layer": range(len(plain.rows))}, columns)

    def _paired(self, pairs: _Pairs) -> pd.DataFrame:
        """What nonsense costs, over pairs that have both versions."""
        both = np.isfinite(pairs.plain[:, -1]) & np.isfinite(pairs.nonsense[:, -1])
        layers = range(pairs.plain.shape[1])
        if not both.any():
            return labelled_table({"layer": []}, {"pairs": [], "drop": [], "p": []})
        one, other = _right(pairs.plain[both]), _right(pairs.nonsense[both])  # (n, R)
        better, worse = ((one > other).sum(axis=0), (one < other).sum(axis=0))
        drops = pairs.balanced(pairs.plain, both, of=_right(pairs.plain) - _right(pairs.nonsense))
        found = self.means(drops.rows, within=(-1, 1), support=drops.support_of_differences)
        return labelled_table(
            {"layer": layers},
            {
                "pairs": np.full(len(layers), int(both.sum())),
                "only_plain": better,
                "only_nonsense": worse,
                "p": mcnemar(better, worse),
                **with_bounds("drop", found, p=False),
            },
        )


@dataclass(frozen=True)
class _Pairs:
    """What was measured of all pairs."""

    plain: NDArray[np.float64]  # (N, R) how much likelier the form that agrees is
    nonsense: NDArray[np.float64]
    kind: NDArray[np.str_]  # both forms of the verb
    first: NDArray[np.bool_]  # whether the first of them agrees
    unit: NDArray[np.str_]
    attractors: NDArray[np.int64]  # -1: not known
    group: NDArray[np.str_]

    @classmethod
    def of(cls, parts: Sequence[xr.Dataset]) -> _Pairs:
        """All parts together."""
        names = [f.name for f in fields(cls)]
        joined = {n: np.concatenate([part[n].to_numpy() for part in parts]) for n in names}
        return cls(**joined)

    @property
    def counted(self) -> str:
        """What intervals are over."""
        return "sentences" if all(str(u).startswith(_SENTENCE) for u in self.unit) else "nouns"

    def balanced(
        self,
        better: NDArray[np.float64],
        among: NDArray[np.bool_] | None = None,
        *,
        of: NDArray[np.float64] | None = None,
    ) -> Balanced:
        """Scores of some pairs by unit, both forms of a verb weighing the same."""
        there = np.isfinite(better[:, -1]) & (True if among is None else among)
        scores = _right(better) if of is None else of
        weights = np.zeros(len(there))
        weights[there] = balancing_weights(self.kind[there].tolist(), self.first[there])
        kept = np.where(there[:, None], scores, 0.0)
        return balanced_rows(kept.T, weights, self.unit.tolist())


def _right(better: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where the right form is likelier, a half where both are equally likely."""
    return np.asarray((better > 0) + 0.5 * (better == 0), float)


def _is_other(example: Example) -> bool:
    return any(name in str(example.annotations.get("group") or "") for name in _OTHERS)


def _unit(example: Example, number: int) -> str:
    """The noun that the verb agrees with, without its number; else the sentence."""
    about = example.annotations
    place = about.get("subject")
    if place is None:
        return f"{_SENTENCE}{number:06d}"
    noun = str((about.get("lemmas") or about["words"])[place]).lower()
    return noun.removesuffix("s")


def _attractors(example: Example) -> int:
    """Nouns of the other number before the verb; -1 where nothing is told of them."""
    about = example.annotations
    if "attractors" in about:
        return int(about["attractors"])
    if about.get("subject") is None or "distractors" not in about:
        return -1
    words, subject = about["words"], about["subject"]
    before = [words[d] for d in about["distractors"] if d < about["critical"]]
    plural = words[subject].endswith("s")
    return sum(word.endswith("s") != plural for word in before)
