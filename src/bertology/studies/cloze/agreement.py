"""Agreement: does the model choose the verb that agrees with its subject?"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import percent
from bertology.results.compared import Compared
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.answer_flips import mcnemar
from bertology.stats.balanced import Balanced, balanced_means, balanced_rows, balancing_weights
from bertology.stats.best_of_many import picked_on_other_half
from bertology.stats.layer_orders import in_this_order
from bertology.studies.designs.blocks import Tagged
from bertology.studies.designs.clozes import ClozeStudy, PairBlank, pair_blank, too_long
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn
from bertology.studies.designs.parts import in_order, start_of
from bertology.studies.designs.probe_scores import least_mean, middle_less_ends, parts_of_depth
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus, Example
    from bertology.data.words.nonsense import Nonsense
    from bertology.model.encoder import Encoder
    from bertology.stats import Estimate
    from bertology.stats.partial_means import PartialMeans


# The same probe for every layer: is the number of the verb read off the state of its blank?
#
# A lens cannot tell which layer knows most: the logit lens gives a layer to a head that was trained
# on the last one, and the affine lens is fitted to imitate the last one, so that layers look better
# the nearer they are to it. A probe is trained for each layer alone, and all of them are alike:
# a linear map with a ridge penalty that is not chosen (one half of the mean variance of what it is
# given), learnt on half of the units (nouns, or sentences) and asked on the other, both numbers
# weighing the same. What is scored is the mean over some random halvings.


_PENALTY = 0.5
_HALVINGS = 8


def is_plural(good: str, bad: str) -> bool | None:
    """Whether a form of an English verb is the plural one; None where its spelling does not say."""
    ends = good.lower().endswith("s"), bad.lower().endswith("s")
    return None if ends[0] == ends[1] else ends[1]


def blank_states(
    encoder: Encoder, texts: Sequence[str], *, tokens_per_batch: int
) -> NDArray[np.float32]:
    """States (N, L, M) after each layer at the first mask of each text."""
    from bertology.model.masked_lm.lenses import StatesAt

    found = np.zeros((len(texts), encoder.shape.layers, encoder.shape.hidden), np.float32)
    for batch in encoder.batches(list(texts), tokens_per_batch=tokens_per_batch):
        masks = batch.inputs["input_ids"] == encoder.tokenizer.mask_token_id
        states = StatesAt(masks.int().argmax(1, keepdim=True))
        encoder.run(batch, reduce={"layer.*.residual": states})
        found[list(batch.indices)] = states.value()[:, :, 0].transpose(0, 1).float().cpu().numpy()
    return found


def told_by_probes(
    states: NDArray[np.floating], plural: NDArray[np.bool_], units: Sequence[str], *, seed: int
) -> Floats:
    """How often (N, L) a probe that did not see the unit gets the number right.

    NaN for all where a half would have one number only.
    """
    names, unit = np.unique(np.asarray(units, str), return_inverse=True)
    rng, hits = np.random.default_rng([seed, 4]), np.zeros(states.shape[:2])
    signs = np.where(plural, 1.0, -1.0)
    for _ in range(_HALVINGS):
        second = (rng.permutation(len(names)) % 2 == 1)[unit]
        for asked in (second, ~second):
            learnt = ~asked
            if len(set(plural[learnt].tolist())) < 2 or not asked.any():
                return np.full_like(hits, np.nan)
            for layer in range(states.shape[1]):
                said = _ridge(states[learnt, layer], signs[learnt], states[asked, layer])
                hits[asked, layer] += 0.5 + 0.5 * np.sign(said) * signs[asked]
    return hits / _HALVINGS


def _ridge(
    x: NDArray[np.floating], signs: Floats, asked: NDArray[np.floating]
) -> NDArray[np.float64]:
    """What a ridge regression on signs, both of which weigh the same, says of others."""
    weight = np.where(signs > 0, 1 / (signs > 0).sum(), 1 / (signs < 0).sum()) / 2
    given, other = x.astype(np.float64), asked.astype(np.float64)
    middle = weight @ given
    given, other = given - middle, other - middle
    scale = np.sqrt(weight @ given**2)
    scale = np.where(scale > 1e-9 * max(scale.max(), 1e-300), scale, np.inf)
    given, other = given / scale, other / scale
    root = np.sqrt(weight * len(weight))[:, None]
    near = (root * given) @ (root * given).T / given.shape[1]  # (n, n), its trace about n
    dual = np.linalg.solve(near + _PENALTY * np.eye(len(near)), root[:, 0] * signs)
    said: Floats = other @ (given.T @ (root[:, 0] * dual)) / given.shape[1]
    return said


NONSENSE, PROBE = "nonsense", "probe"
_HEAD = "High: at this layer the head already prefers the form that agrees. Chance is 50."
_LINES = {  # columns of the table of layers
    "accuracy": Line("Pairs in which the form that agrees is likelier", "all pairs", _HEAD),
    NONSENSE: Line("The same in nonsense sentences", "nonsense", _HEAD),
    PROBE: Line(
        "Pairs whose number a probe reads off the blank",
        "probe",
        "High: a probe trained for this layer tells whether the verb is singular or plural. Unlike "
        "a lens it favours no layer. Chance is 50.",
    ),
}


class AgreementResult(Result):
    """How often the verb that agrees is likelier.

    Table `groups`: balanced accuracy of all pairs, by number of attractors and by construction, and
    in nonsense sentences; `layers`: of all pairs and of nonsense ones, by layer, and how often a
    probe of the layer tells the number; `paired`: pairs that only one of the two versions gets
    right, with McNemar's exact test over nouns (or sentences).
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "groups": {"accuracy": "%"},
        "layers": {"accuracy": "%", NONSENSE: "%", PROBE: "%"},
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
        return line_measures(self.tables["layers"], _LINES, of="agreement", middle=50.0)

    def drawings(self) -> Sequence[Drawing]:
        """Accuracy by group, and by layer."""
        rows = self.tables["groups"]
        found = [
            drawings.dots(
                "groups",
                [Dots.of_columns("pairs told right (%)", rows, "accuracy", level=50)],
                rows["group"],
                self.about,
                title="Agreement of verbs",
                caption="One row for each group of pairs, the first for all of them: the per cent "
                "of pairs in which the form that agrees is likelier, both forms of a verb weighing "
                "the same, with intervals for all rows together. Chance would be 50.",
                note="Dashed: chance, 50 %. Intervals hold for all rows together.",
            )
        ]
        if shown := self.measures():
            found.append(
                lines_drawn(
                    shown,
                    _LINES,
                    self.about,
                    title="Agreement, read from each layer",
                    reading="Where a line rises above 50, the layer's states tell the number of "
                    "the subject: to the model's head, which reads layers by a lens and was made "
                    "for the last one, or to a probe that was trained for this layer alone.",
                )
            )
        return found


ALL = "all"
_FEWEST_PROBED = 20  # pairs whose number is known, to train probes on half of them
_OTHERS = ("npi", "reflexive")  # constructions of CLAMS that are not of verbs
_SENTENCE = "sentence "


@dataclass(frozen=True)
class Agreement(ClozeStudy, Tagged):
    """Does the model choose the form of the verb that agrees with its subject?

    Method: the word in which a minimal pair differs is masked, and the log-probabilities of its two
    forms are compared; equal ones count half. Left out are pairs that differ in more than one word,
    that are too long, or whose forms have different numbers of pieces, as what fits fewer masks
    would be preferred. Both forms of a verb get the same weight, so that always preferring one of
    them scores 50 %. Accuracy is given by number of attractors (nouns of the other number before
    the verb), by construction, by layer (the model's head on each layer's states), and in nonsense
    sentences, in which other content words are replaced by words of the same class and form. A lens
    cannot tell which layer is best, since heads are made for the last one: for that, a linear probe
    of each layer tells the verb's number from the state of its blank, trained on half of the nouns
    (or sentences) and asked of the others. Intervals are over sentences, or over the nouns that
    verbs agree with where the corpus names them, since sentences about the same noun are alike.

    Source: Goldberg (2019), with pairs of Linzen et al. (2016), Gulordava et al. (2018), Marvin and
    Linzen (2018). Limits: Goldberg asks for single pieces only. Constructions of negative polarity
    and reflexives are left out. Number in nonsense sentences is kept by rules of English spelling.
    What comes after the verb may tell its number, too.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "contrast"}), capabilities=frozenset({"residual"}), head="mlm"
    )
    version: ClassVar[int] = 4  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = AgreementResult
    compared_over: ClassVar[tuple[str, ...]] = ("grammar-agreement",)
    block: ClassVar[int] = 1024
    fills_gpu: ClassVar[bool] = True

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
        nonsense = self._nonsense(corpus, blanks, part)
        units = [_unit(e, start_of(part) + i) for i, e in enumerate(shown)]
        in_nonsense = list(units)
        asked: list[tuple[int, int, Question]] = []
        for at, blank in enumerate(blanks):
            if blank is None:
                continue
            forms, text = (blank.good, blank.bad), shown[at].text
            asked.append(
                (0, at, Question(f"{text[: blank.start]}{{mask}}{text[blank.end :]}", forms))
            )
            if (made := nonsense[at]) is not None:
                asked.append((1, at, Question(f"{made.before}{{mask}}{made.after}", forms)))
                in_nonsense[at] = _unit(shown[at], start_of(part) + at, made.words)
        over = too_long(encoder, [f"{q.text} {max(q.candidates, key=len)}" for _, _, q in asked])
        asked = [one for i, one in enumerate(asked) if i not in over]
        better = np.full((2, len(shown), layers), np.nan)
        answers = engine.answers(question for _, _, question in asked)
        for (version, at, _), answer in zip(asked, answers, strict=True):
            good, bad = answer.pieces
            if len(good) == len(bad):
                better[version, at] = answer.scores[:, 0] - answer.scores[:, 1]
        probed = np.full((len(shown), layers), np.nan)
        if layers > 1:
            texts = {at: question.text for version, at, question in asked if version == 0}
            self._probe(encoder, texts, blanks, units, context, probed)
        context.advance(len(shown))
        both = [("", "") if b is None else (b.good.lower(), b.bad.lower()) for b in blanks]
        return xr.Dataset(
            {
                "plain": (("example", "layer"), better[0]),
                "nonsense": (("example", "layer"), better[1]),
                "probed": (("example", "layer"), probed),
                "kind": ("example", ["/".join(sorted(pair)) for pair in both]),
                "first": ("example", [good <= bad for good, bad in both]),
                "unit": ("example", units),
                "nonsense_unit": ("example", in_nonsense),
                "attractors": ("example", [_attractors(e) for e in shown]),
                "group": ("example", [str(e.annotations.get("group") or "") for e in shown]),
            }
        )

    def _nonsense(
        self, corpus: Corpus, blanks: Sequence[PairBlank | None], part: str
    ) -> list[Nonsense | None]:
        """Of each pair a nonsense sentence, where there are words for it."""
        from bertology.annotated.tagged_batches import annotated
        from bertology.data.words.nonsense import NonsenseWords

        tagged, _ = annotated(self.shown(corpus), self.tagger)
        words, first = NonsenseWords.of(tagged), start_of(part)
        found: list[Nonsense | None] = []
        for i, blank in enumerate(blanks, start=first):
            rng = random.Random(f"{self.seed}-{i}")
            kept = None if blank is None else (blank.start, blank.end)
            found.append(None if kept is None else words.nonsense(tagged[i], kept, rng))
        return found

    def _probe(
        self,
        encoder: Encoder,
        texts: Mapping[int, str],
        blanks: Sequence[PairBlank | None],
        units: Sequence[str],
        context: Context,
        filled: NDArray[np.float64],
    ) -> None:
        """How often probes of each layer tell the number of pairs that have one."""
        numbers = {at: is_plural(b.good, b.bad) for at, b in enumerate(blanks) if b is not None}
        places = [at for at in texts if numbers.get(at) is not None]
        if len(places) < _FEWEST_PROBED:
            return
        mask = str(encoder.tokenizer.mask_token)
        states = blank_states(
            encoder,
            [texts[at].replace("{mask}", mask) for at in places],
            tokens_per_batch=context.batch_tokens,
        )
        plural = np.array([bool(numbers[at]) for at in places])
        filled[places] = told_by_probes(
            states, plural, [units[at] for at in places], seed=self.seed
        )

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
            "nonsense_accuracy": self._estimate(pairs, pairs.balanced_nonsense()),
            "agreement_middle_over_ends": self._middle(pairs),
        }
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons={
                "attractor_accuracy": "not judged: no pair has an attractor, or none is told",
                "nonsense_accuracy": "not judged: too few content words have others of their class",
                "agreement_middle_over_ends": "not judged: only the model itself was asked, it has "
                "fewer than three layers, or probes do not surely tell the number",
            },
            facts={
                "pairs": plain.items,
                "left_out": len(pairs.unit) - plain.items,
                "lens": self.lens,
                "readings": len(plain.rows),
            },
            compared=[
                self._compared("verbs that agree", plain, evidence["agreement_accuracy"]),
                self._compared(
                    "verbs that agree, after attractors",
                    pairs.balanced(pairs.plain, pairs.attractors > 0),
                    evidence["attractor_accuracy"],
                ),
                self._compared(
                    "verbs that agree, in nonsense sentences",
                    pairs.balanced_nonsense(),
                    evidence["nonsense_accuracy"],
                ),
            ],
        )

    def _compared(self, title: str, of: Balanced, found: Estimate | None) -> Compared | None:
        """What the model itself chooses, by unit."""
        if found is None:
            return None
        return Compared(title, found, rows=of.rows[-1], support=of.support_of_differences)

    def _means(self, of: Balanced, rows: slice = slice(None), families: int = 1) -> PartialMeans:
        return balanced_means(
            replace(of, rows=of.rows[rows]),
            level=1 - (1 - self.level) / families,
            resamples=self.resamples,
            seed=self.seed,
        )

    def _estimate(self, pairs: _Pairs, of: Balanced) -> Estimate | None:
        """Of the model itself, over units."""
        found = self._means(of, slice(-1, None)).estimate(0) if of.items else None
        return None if found is None else found.counting(pairs.counted)

    def _middle(self, pairs: _Pairs) -> Estimate | None:
        """Probes of middle layers less those of the first and the last, whichever is more."""
        of = pairs.balanced_probe()
        if of.items < 2 or len(of.rows) < 3:
            return None
        best = self._means(pairs.balanced_probe(picked_on_other_half(of.rows.T[:, None])[:, 0]))
        told = best.estimate(0)
        if told is None or not told.low > 0.5:
            return None
        there = of.heavy > 0
        parts = parts_of_depth(of.rows[:, there].T)
        found = least_mean([parts[1] - end for end in (parts[0], parts[2])], level=self.level)
        by_layer = of.rows[:, there].mean(1)
        return in_this_order(found.counting(pairs.counted), by_layer, middle_less_ends)

    def _groups(self, pairs: _Pairs) -> pd.DataFrame:
        """All pairs, nonsense, attractors and constructions, with bounds for all of them."""
        import pandas as pd

        asked = {ALL: pairs.balanced(pairs.plain), NONSENSE: pairs.balanced_nonsense()}
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
        for name, other in ((NONSENSE, pairs.balanced_nonsense()), (PROBE, pairs.balanced_probe())):
            if other.items:
                columns |= with_bounds(name, self._means(other), p=False)
        return labelled_table({"layer": range(len(plain.rows))}, columns)

    def _paired(self, pairs: _Pairs) -> pd.DataFrame:
        """What nonsense costs, over pairs that have both versions."""
        both = np.isfinite(pairs.plain[:, -1]) & np.isfinite(pairs.nonsense[:, -1])
        layers = range(pairs.plain.shape[1])
        if not both.any():
            return labelled_table({"layer": []}, {"pairs": [], "drop": [], "p": []})
        one, other = _right(pairs.plain[both]), _right(pairs.nonsense[both])  # (n, R)
        better, worse = ((one > other).sum(axis=0), (one < other).sum(axis=0))
        # Sentences about one noun flip together, so that the test counts nouns.
        names, unit = np.unique(pairs.unit[both], return_inverse=True)
        net = np.zeros((len(names), len(layers)))
        np.add.at(net, unit, one - other)
        p = mcnemar((net > 0).sum(axis=0), (net < 0).sum(axis=0))
        drops = pairs.balanced(pairs.plain, both, of=_right(pairs.plain) - _right(pairs.nonsense))
        found = self.means(drops.rows, within=(-1, 1), support=drops.support_of_differences)
        return labelled_table(
            {"layer": layers},
            {
                "pairs": np.full(len(layers), int(both.sum())),
                "only_plain": better,
                "only_nonsense": worse,
                "p": p,
                **with_bounds("drop", found, p=False),
            },
        )


@dataclass(frozen=True)
class _Pairs:
    """What was measured of all pairs."""

    plain: NDArray[np.float64]  # (N, R) how much likelier the form that agrees is
    nonsense: NDArray[np.float64]
    probed: NDArray[np.float64]  # (N, R) how often probes tell the number; NaN: not asked
    kind: NDArray[np.str_]  # both forms of the verb
    first: NDArray[np.bool_]  # whether the first of them agrees
    unit: NDArray[np.str_]
    nonsense_unit: NDArray[np.str_]
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
        units: NDArray[np.str_] | None = None,
    ) -> Balanced:
        """Scores of some pairs by unit, both forms of a verb weighing the same."""
        there = np.isfinite(better[:, -1]) & (True if among is None else among)
        scores = _right(better) if of is None else of
        weights = np.zeros(len(there))
        weights[there] = balancing_weights(self.kind[there].tolist(), self.first[there])
        kept = np.where(there[:, None], scores, 0.0)
        return balanced_rows(kept.T, weights, (self.unit if units is None else units).tolist())

    def balanced_nonsense(self) -> Balanced:
        """Of nonsense sentences, by the nouns that they have."""
        return self.balanced(self.nonsense, units=self.nonsense_unit)

    def balanced_probe(self, layers: NDArray[np.int64] | None = None) -> Balanced:
        """How often probes of each layer are right; or of one layer for each of the units."""
        of = self.probed
        if layers is not None:
            _, unit = np.unique(self.unit, return_inverse=True)
            of = np.take_along_axis(of, layers[unit][:, None], axis=1)
        return self.balanced(self.probed, of=of)


def _right(better: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where the right form is likelier, a half where both are equally likely."""
    return np.asarray((better > 0) + 0.5 * (better == 0), float)


def _is_other(example: Example) -> bool:
    return any(name in str(example.annotations.get("group") or "") for name in _OTHERS)


def _unit(example: Example, number: int, words: Sequence[str] | None = None) -> str:
    """The noun that the verb agrees with, without its number; else the sentence.

    In a nonsense sentence, whose `words` are given, it is another noun than it was.
    """
    about = example.annotations
    place = about.get("subject")
    if place is None:
        return f"{_SENTENCE}{number:06d}"
    noun = str((words or about.get("lemmas") or about["words"])[place]).lower()
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
