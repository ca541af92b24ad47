"""Multilingual agreement: in which languages does the model choose the verb that agrees?"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.corpus import Field
from bertology.data.languages import name_of
from bertology.errors import DataError
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.balanced import balancing_weights
from bertology.stats.grouped import mean_in_two_ways
from bertology.stats.intervals import least_of
from bertology.studies.designs.clozes import ClozeStudy, PairBlank, pair_blank
from bertology.studies.designs.layer_lines import Line, line_measures
from bertology.studies.designs.parts import in_order
from bertology.studies.designs.tables import bounded
from bertology.studies.languages.multilingual_agreement.templates import (
    KINDS,
    Sentence,
    sentence_of,
)
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

COMPARED = "compared"
WHY = ("words", "pieces", "unknown", "long")
"""Why a pair is left out: it differs in several words, its forms have different numbers of pieces,
the vocabulary does not know one of them, or it is too long."""
_CONDITIONS = ("no other noun", "nouns of the same number", "a noun of the other number")
_FEWEST = 20  # pairs that can be compared, for a language to be judged
_FEW_LINES = 6  # languages that one figure shows as lines


class MultilingualAgreementResult(Result):
    """How often the verb that agrees is likelier, by language.

    Table `pairs`: how many pairs were drawn of each language, how many could be compared, how many
    of these have forms of several pieces, and why others were left out; `languages`: balanced
    accuracy, the plain share, and the share that the best fixed preference for forms would get;
    `kinds`: by kind of sentence; `attractors`: by other nouns before the verb, and what one of the
    other number costs against one of the same number; `layers`: by layer.
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "languages": {"accuracy": "%", "plain": "%", "fixed": "%"},
        "kinds": {"accuracy": "%"},
        "attractors": {"accuracy": "%"},
    }

    @property
    def answer(self) -> str:
        """In how many languages it agrees, the lowest accuracy, and what attractors cost."""
        found = self.evidence()
        each = {n.removeprefix(_OF): e for n, e in found.items() if n.startswith(_OF)}
        each.pop(_EVERY, None)
        surely = [code for code, one in each.items() if one.low > 0.5]
        least = min(each, key=lambda code: each[code].value)
        told = (
            f"{NOTHING_SURE} in any of {len(each)} languages"
            if not surely
            else f"Surely in {len(surely)} of {len(each)} languages"
        )
        cost = found.get("attractor_cost")
        costs = (
            "" if cost is None else f"; a noun of the other number before it costs {points(cost)}"
        )
        return (
            f"{told}: the form that agrees is likelier in "
            f"{percent(each[least], '.1f', limits=(0.5,))} of pairs in {name_of(least)}, "
            f"the lowest{costs}, and chance would be 50 %."
        )

    def _lines(self) -> Mapping[str, Line]:
        return {
            code: Line(
                f"Pairs in {name_of(code)} in which the form that agrees is likelier",
                name_of(code),
                "High: at this layer the head already prefers the form that agrees. Chance is 50.",
            )
            for code in map(str, self.tables["languages"]["language"])
        }

    def measures(self) -> Sequence[Measure]:
        """Accuracy by layer in each language; nothing where only the model itself was asked."""
        return line_measures(self.tables["layers"], self._lines(), of="agreement", middle=50.0)

    def drawings(self) -> Sequence[Drawing]:
        """Pairs that can be compared, languages, kinds of sentences, attractors, layers."""
        pairs, rows = self.tables["pairs"], self.tables["languages"]
        kinds, shown = self.tables["kinds"], self.measures()
        found = [
            drawings.dots(
                "languages",
                [
                    Dots.of_columns("pairs told right (%)", rows, "accuracy", level=50),
                    Dots("pairs that can be compared (%)", _compared(pairs, rows)),
                ],
                [name_of(str(code)) for code in rows["language"]],
                self.about,
                title="Agreement of verbs by language",
                caption="One row for each language: the per cent of pairs in which the form that "
                "agrees is likelier, both forms of a verb weighing the same, with intervals for "
                "all languages together; beside it the per cent of drawn pairs that can be "
                "compared. Chance, and any fixed preference for forms, would be 50.",
                note="Dashed: chance, 50 %. Intervals hold for all languages together.",
            ),
            drawings.dots(
                "kinds",
                [
                    Dots.of_columns(
                        name_of(str(code)),
                        kinds[kinds["language"] == code].set_index("kind").reindex(_kinds(kinds)),
                        "accuracy",
                        level=50,
                        within=(0.0, 100.0),
                    )
                    for code in rows["language"]
                ],
                _kinds(kinds),
                self.about,
                title="Agreement by kind of sentence (% told right)",
                caption="One row for each kind of sentence, one panel for each language: the per "
                "cent of pairs in which the form that agrees is likelier, with intervals that hold "
                "for all rows and panels together. Chance would be 50. A row without a dot has too "
                "few pairs that can be compared.",
                note="Dashed: chance, 50 %. Intervals hold for all rows together.",
                same_scale=True,
            ),
        ]
        attractors = self.tables["attractors"]
        if len(attractors):
            found.append(
                drawings.dots(
                    "attractors",
                    [Dots.of_columns("pairs told right (%)", attractors, "accuracy", level=50)],
                    [
                        f"{name_of(str(code))}: {condition}"
                        for code, condition in zip(
                            attractors["language"], attractors["condition"], strict=True
                        )
                    ],
                    self.about,
                    title="Agreement after other nouns",
                    caption="One row for each language and for what stands before the verb: no "
                    "other noun, nouns of the number of the subject, or a noun of the other "
                    "number. The per cent of pairs in which the form that agrees is likelier, with "
                    "intervals for all rows together. Chance would be 50.",
                    note="Dashed: chance, 50 %. Intervals hold for all rows together.",
                )
            )
        labels = [line.label for line in self._lines().values()]
        title = "Agreement, read from each layer"
        if len(shown) > _FEW_LINES:
            found.append(
                drawings.rows(
                    "layers", shown, self.about, title=title, reading=_READING, labels=labels
                )
            )
        elif shown:
            found.append(
                drawings.profile(
                    "layers",
                    shown,
                    self.about,
                    title=title,
                    reading=_READING,
                    labels=labels,
                    shaded="intervals over nouns and frames of sentences",
                )
            )
        return found


_READING = (
    "Layers are read by a lens, so that a low number says only that the head, which was made for "
    "the last layer, cannot read it there."
)
_OF, _EVERY = "agreement_", "in_every_language"


def _compared(pairs: pd.DataFrame, rows: pd.DataFrame) -> Floats:
    shares = (100 * pairs[COMPARED] / pairs["drawn"]).set_axis(pairs["language"])
    return shares.loc[list(rows["language"])].to_numpy(np.float64)


def _kinds(kinds: pd.DataFrame) -> list[str]:
    """As in CLAMS from the simplest, then others as they come."""
    there = list(dict.fromkeys(str(kind) for kind in kinds["kind"]))
    return sorted(there, key=lambda kind: _ORDER.get(kind, len(_ORDER)))


_ORDER = {kind: at for at, kind in enumerate(KINDS.values())}


@dataclass(frozen=True)
class MultilingualAgreement(ClozeStudy):
    """In which languages does the model choose the form of the verb that agrees with its subject?

    Method: the word in which a minimal pair differs is masked, and the log-probabilities of its two
    forms are compared; equal ones count half. What cannot be compared is told first, by language:
    pairs that differ in more than one word, that are too long, whose forms have different numbers
    of pieces (what fits fewer masks would be preferred), or are not in the vocabulary. Both forms
    of a verb weigh the same, so that any preference that does not look at the sentence (the more
    frequent form, say) scores 50 %; what the best such preference would get of the pairs as they
    are stands beside. Accuracy is given by language, by kind of sentence, by other nouns before the
    verb, and by layer (the model's head on each layer's states). Sentences that are made by
    templates are alike: intervals allow for other nouns and for other frames (all words but nouns
    and the verb). What an attractor costs is the accuracy with other
    nouns of the same number, less that with one of the other number: the mean over the languages in
    which verbs surely agree. As many pairs of each kind of sentence are drawn as there are.

    Source: Mueller et al. (2020) for CLAMS; Bacon and Regier (2019) for agreement in 26 languages.
    Limits: three languages of CLAMS, all of them Indo-European; intervals are about other sentences
    of these languages, not about other languages. Some sentences of CLAMS are not good German
    ("vor den Wächter"). In coordinations the first verb tells the number too. Where no template is
    known, nouns are told by SUBJECT and LEMMAS, and each sentence is its own frame.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "words", "contrast", "language"}),
        capabilities=frozenset({"residual"}),
        head="mlm",
    )
    result_type: ClassVar[type[Result]] = MultilingualAgreementResult
    block: ClassVar[int] = 1024
    fills_gpu: ClassVar[bool] = True

    def shown(self, corpus: Corpus) -> Corpus:
        """So many of each language, of each kind of sentence as many as of the others."""
        of: dict[str, dict[str, list[int]]] = {}
        for at, example in enumerate(corpus):
            kinds = of.setdefault(str(example.get(Field.LANGUAGE)), {})
            kinds.setdefault(str(example.annotations.get(Field.GROUP)), []).append(at)
        rng, kept = random.Random(self.seed), list[int]()
        for kinds in of.values():
            left = self.examples
            for number, places in enumerate(sorted(kinds.values(), key=len)):
                some = min(len(places), left // (len(kinds) - number))
                kept += rng.sample(places, some)
                left -= some
        if len(kept) == len(corpus):
            return corpus
        return replace(corpus, examples=[corpus.examples[at] for at in sorted(kept)], origin={})

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """How much likelier the form that agrees is, by reading; or why that cannot be asked."""
        import xarray as xr

        from bertology.model.masked_lm.questions import Question

        shown = self.of_block(part, corpus)
        engine, layers = self.engine(encoder, corpus, context), self.readings(encoder)
        blanks = [pair_blank(e.text, str(e.get("contrast"))) for e in shown]
        why, pieces = _comparable(encoder, [e.text for e in shown], blanks)
        asked = [at for at, reason in enumerate(why) if reason == COMPARED]
        better = np.full((len(shown), layers), np.nan)
        answers = engine.answers(
            Question(f"{text[: blank.start]}{{mask}}{text[blank.end :]}", (blank.good, blank.bad))
            for text, blank in ((shown[at].text, blanks[at]) for at in asked)
            if blank is not None
        )
        for at, answer in zip(asked, answers, strict=True):
            better[at] = answer.scores[:, 0] - answer.scores[:, 1]
        context.advance(len(shown))
        made = [
            Sentence("", e.id, e.id, -1, -1)
            if blank is None
            else sentence_of(e, len(e.text[: blank.start].split()))
            for e, blank in zip(shown, blanks, strict=True)
        ]
        forms = [("", "") if b is None else (b.good.lower(), b.bad.lower()) for b in blanks]
        by_example = {
            "language": [str(e.get(Field.LANGUAGE)) for e in shown],
            "why": why,
            "pieces": pieces,
            "forms": ["/".join(sorted(pair)) for pair in forms],
            "first": [good < bad for good, bad in forms],
            **{
                field.name: [getattr(one, field.name) for one in made] for field in fields(Sentence)
            },
        }
        return xr.Dataset(
            {
                "better": (("example", "reading"), better),
                **{name: ("example", np.array(values)) for name, values in by_example.items()},
            }
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """What can be compared, and balanced accuracies with intervals over nouns and frames."""
        pairs = _Pairs.of(list(in_order(measured)))
        every = {
            code: found
            for code in sorted(set(pairs.language.tolist()))
            if pairs.weighed(pairs.language == code) >= _FEWEST
            and (found := self._share(pairs, pairs.language == code)) is not None
        }
        if not every:
            raise DataError(
                f"No language has {_FEWEST} pairs that can be compared: sentences differ in more "
                "than one word, forms have different numbers of pieces, or only one form of each "
                "verb is ever right.",
                hint="Give more pairs, or another corpus.",
            )
        evidence: dict[str, Estimate | None] = {
            f"{_OF}{_EVERY}": least_of(list(every.values())),
            **{f"{_OF}{code}": found for code, found in every.items()},
            "attractor_cost": self._cost(
                pairs, [code for code, found in every.items() if found.low > 0.5]
            ),
            "english_over_others": _english(every),
        }
        return self.result(
            provenance,
            {
                "languages": self._languages(pairs, list(every)),
                "pairs": _told(pairs),
                "kinds": self._kinds(pairs, list(every)),
                "attractors": self._attractors(pairs, list(every)),
                "layers": self._layers(pairs, list(every)),
            },
            evidence=evidence,
            reasons={
                "attractor_cost": "not judged: in no language verbs surely agree, or other nouns "
                "and their number are not known",
                "english_over_others": "not judged: English or other languages have too few pairs",
            },
            facts={
                "pairs": int(np.isfinite(pairs.better[:, -1]).sum()),
                "lens": self.lens,
                "readings": pairs.better.shape[1],
            },
        )

    def _share(
        self, pairs: _Pairs, among: NDArray[np.bool_], *, families: int = 1, reading: int = -1
    ) -> Estimate | None:
        """Of the model itself, or of a layer; with `families`, bounds hold for so many together."""
        found = mean_in_two_ways(
            _right(pairs.better[:, reading]),
            pairs.weights(among),
            [np.unique(way, return_inverse=True)[1] for way in (pairs.noun, pairs.frame)],
            level=1 - (1 - self.level) / families,
            unit="nouns or frames",
        )
        return None if np.isnan(found.low) else replace(found, level=self.level)

    def _cost(self, pairs: _Pairs, codes: Sequence[str]) -> Estimate | None:
        """Nouns of the same number less one of the other number: the mean over languages."""
        costs = []
        for code in codes:
            same, other = (
                self._share(pairs, (pairs.language == code) & pairs.condition(number))
                for number in (1, 2)
            )
            if same is not None and other is not None:
                costs.append(_less(same, other))
        return _mean(costs) if costs else None

    def _languages(self, pairs: _Pairs, codes: Sequence[str]) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for code in codes:
            among = pairs.language == code
            there = among & np.isfinite(pairs.better[:, -1])
            rows.append(
                {
                    "language": code,
                    "pairs": pairs.weighed(among),
                    "nouns": len(set(pairs.noun[there])),
                    "frames": len(set(pairs.frame[there])),
                    **bounded("accuracy", self._share(pairs, among, families=len(codes))),
                    "plain": float(_right(pairs.better[there, -1]).mean()),
                    "fixed": pairs.fixed_preference(there),
                }
            )
        return pd.DataFrame(rows)

    def _kinds(self, pairs: _Pairs, codes: Sequence[str]) -> pd.DataFrame:
        import pandas as pd

        asked = [
            (code, kind, (pairs.language == code) & (pairs.kind == kind))
            for code in codes
            for kind in _kinds(pd.DataFrame({"kind": pairs.kind[pairs.language == code]}))
            if pairs.weighed((pairs.language == code) & (pairs.kind == kind))
        ]
        return pd.DataFrame(
            [
                {
                    "language": code,
                    "kind": kind,
                    "pairs": pairs.weighed(among),
                    **bounded("accuracy", self._share(pairs, among, families=len(asked))),
                }
                for code, kind, among in asked
            ]
        )

    def _attractors(self, pairs: _Pairs, codes: Sequence[str]) -> pd.DataFrame:
        import pandas as pd

        rows, many = [], len(codes) * len(_CONDITIONS)
        for code in codes:
            for number, name in enumerate(_CONDITIONS):
                among = (pairs.language == code) & pairs.condition(number)
                if pairs.weighed(among):
                    found = self._share(pairs, among, families=many)
                    about = {"language": code, "condition": name, "pairs": pairs.weighed(among)}
                    rows.append({**about, **bounded("accuracy", found)})
        columns = ["language", "condition", "pairs", "accuracy", "accuracy_low", "accuracy_high"]
        return pd.DataFrame(rows, columns=columns)

    def _layers(self, pairs: _Pairs, codes: Sequence[str]) -> pd.DataFrame:
        import pandas as pd

        readings = range(pairs.better.shape[1])
        columns: dict[str, object] = {"layer": readings}
        for code in codes:
            rows = [
                bounded(code, self._share(pairs, pairs.language == code, families=many, reading=at))
                for at in readings
                for many in [len(codes) * len(readings)]
            ]
            columns |= {name: [row[name] for row in rows] for name in rows[0]}
        return pd.DataFrame(columns)


def _comparable(
    encoder: Encoder, texts: Sequence[str], blanks: Sequence[PairBlank | None]
) -> tuple[list[str], list[int]]:
    """Of each pair why it cannot be compared, and of how many pieces the form that agrees is."""
    why, pieces = [WHY[0]] * len(texts), [0] * len(texts)
    forms = [
        (at, form, f"{texts[at][: blank.start]}{form}{texts[at][blank.end :]}", blank.start)
        for at, blank in enumerate(blanks)
        if blank is not None
        for form in (blank.good, blank.bad)
    ]
    if not forms:
        return why, pieces
    cut = encoder.tokenize([text for _, _, text, _ in forms]).cut
    rows = encoder.tokenizer([text for _, _, text, _ in forms], padding=False, verbose=False)
    unknown, counts = encoder.tokenizer.unk_token_id, dict[int, list[int]]()
    for number, (at, form, _, start) in enumerate(forms):
        offsets = rows.encodings[number].offsets
        own = [p for p, (a, b) in enumerate(offsets) if max(a, start) < min(b, start + len(form))]
        counts.setdefault(at, []).append(len(own))
        if why[at] in (WHY[0], COMPARED):
            known = own and all(rows["input_ids"][number][p] != unknown for p in own)
            why[at] = WHY[3] if number in cut else COMPARED if known else WHY[2]
    for at, (one, other) in counts.items():
        pieces[at] = one
        if why[at] == COMPARED and one != other:
            why[at] = WHY[1]
    return why, pieces


def _less(one: Estimate, other: Estimate) -> Estimate:
    """A difference whose arms are those of both, put together as squares."""
    value = one.value - other.value
    below = np.hypot(one.value - one.low, other.high - other.value)
    above = np.hypot(one.high - one.value, other.value - other.low)
    return replace(one, value=value, low=value - below, high=value + above, n=min(one.n, other.n))


def _mean(of: Sequence[Estimate]) -> Estimate:
    """The mean over languages, whose sentences are not the same."""
    value = float(np.mean([one.value for one in of]))
    below, above = (
        float(np.linalg.norm(arms)) / len(of)
        for arms in ([one.value - one.low for one in of], [one.high - one.value for one in of])
    )
    return replace(
        of[0], value=value, low=value - below, high=value + above, n=min(e.n for e in of)
    )


def _english(every: Mapping[str, Estimate]) -> Estimate | None:
    """English less the mean of the others."""
    others = [found for code, found in every.items() if code != "en"]
    return _less(every["en"], _mean(others)) if "en" in every and others else None


def _told(pairs: _Pairs) -> pd.DataFrame:
    """How many pairs of each language can be compared, and why others cannot."""
    import pandas as pd

    rows = []
    for code in np.unique(pairs.language).tolist():
        own = pairs.language == code
        there = own & (pairs.why == COMPARED)
        rows.append(
            {
                "language": code,
                "drawn": int(own.sum()),
                COMPARED: int(there.sum()),
                "of several pieces": int((there & (pairs.pieces > 1)).sum()),
                **{f"left out: {why}": int((own & (pairs.why == why)).sum()) for why in WHY},
            }
        )
    return pd.DataFrame(rows)


def _right(better: Floats) -> Floats:
    """1 where the right form is likelier, a half where both are equally likely."""
    return np.asarray((better > 0) + 0.5 * (better == 0), float)


@dataclass(frozen=True)
class _Pairs:
    """What was measured of all pairs."""

    better: Floats  # (N, R) how much likelier the form that agrees is; NaN: cannot be compared
    language: NDArray[np.str_]
    why: NDArray[np.str_]
    pieces: NDArray[np.int64]
    forms: NDArray[np.str_]  # both forms of the verb
    first: NDArray[np.bool_]  # whether the first of them agrees
    kind: NDArray[np.str_]
    noun: NDArray[np.str_]
    frame: NDArray[np.str_]
    others: NDArray[np.int64]
    attractors: NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[xr.Dataset]) -> _Pairs:
        """All parts together."""
        names = [field.name for field in fields(cls)]
        return cls(**{n: np.concatenate([part[n].to_numpy() for part in parts]) for n in names})

    def condition(self, number: int) -> NDArray[np.bool_]:
        """Pairs of each of `_CONDITIONS`."""
        found: NDArray[np.bool_] = (
            self.others == 0,
            (self.others > 0) & (self.attractors == 0),
            self.attractors > 0,
        )[number]
        return found

    def weights(self, among: NDArray[np.bool_]) -> Floats:
        """Both forms of a verb weigh the same."""
        there = np.isfinite(self.better[:, -1]) & among
        weights = np.zeros(len(there))
        weights[there] = balancing_weights(self.forms[there].tolist(), self.first[there])
        return weights

    def weighed(self, among: NDArray[np.bool_]) -> int:
        """How many pairs count: of verbs both of whose forms are right somewhere."""
        return int((self.weights(among) > 0).sum())

    def fixed_preference(self, among: NDArray[np.bool_]) -> float:
        """The share of pairs that the best fixed preference for forms would get, unweighted."""
        _, form = np.unique(self.forms[among], return_inverse=True)
        first = np.bincount(form, self.first[among])
        return float(np.maximum(first, np.bincount(form) - first).sum() / max(among.sum(), 1))
