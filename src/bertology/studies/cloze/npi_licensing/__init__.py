"""NPI licensing: does the model know which words allow "ever" and "any", and how far they reach?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.metrics import find_metric
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, mean_interval
from bertology.stats.best_of_many import cross_fitted, picked_on_other_half
from bertology.stats.crossed import crossed_score
from bertology.stats.layer_orders import mirrored
from bertology.stats.least_means import least_means
from bertology.studies.cloze.npi_licensing.paradigms import (
    CONTRASTS,
    FACTORS,
    Paradigms,
    Partners,
    preferred,
    whole_paradigms,
)
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import in_order, start_of
from bertology.studies.designs.probe_scores import among_copies
from bertology.studies.designs.shuffled_copies import COPIES
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.questions import Question
    from bertology.model.shape import Shape


ACCEPTABLE = "acceptable"
TASKS = (ACCEPTABLE, *FACTORS)
SEEN, NEW = "seen", "new"  # whether probes trained on the environment, or on the item
_FOLDS = 5
_FEWEST = 5  # units; with fewer, not even all signs alike would be sure


def labels_of(known: Paradigms) -> NDArray[np.int64]:
    """(N, 8): of each task, for both ways to train."""
    return np.tile(np.column_stack([known.label, known.factors]), 2)


def folds_of(known: Paradigms, seed: int) -> NDArray[np.int64]:
    """(N, 8): some paradigms of all environments for `seen`; for `new` a whole environment.

    Items stand in all environments: whether there is one is asked where the item is new.
    """
    _, item = np.unique(known.item, return_inverse=True)
    order = np.random.default_rng(seed).permutation(item.max() + 1)
    environment, npi = (_numbers(names) for names in (known.environment, known.npi))
    mixed = order[item] % _FOLDS
    return np.column_stack([*[mixed] * 4, *[environment] * 3, npi])


def _numbers(names: NDArray[np.str_]) -> NDArray[np.int64]:
    """Of each name one; all -1 where there is only one."""
    known, found = np.unique(names, return_inverse=True)
    return found if len(known) > 1 else np.full(len(names), -1)


def unit_means(values: Floats, units: NDArray[np.str_]) -> tuple[list[str], Floats]:
    """Names of units (U,), and means (…, U) of values (…, N) over what each has; NaN of nothing."""
    names, number = np.unique(units, return_inverse=True)
    told = np.isfinite(values)
    found = np.full((*values.shape[:-1], len(names)), np.nan)
    for at in range(len(names)):
        here = number == at
        count = told[..., here].sum(axis=-1)
        total = np.where(told[..., here], values[..., here], 0.0).sum(axis=-1)
        found[..., at] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return [str(name) for name in names], found


@dataclass(frozen=True)
class Leanings:
    """What probes of one model lean to, where they did not train."""

    known: Paradigms
    values: Floats  # (tasks, ways to train, layers with the input first, N)

    @classmethod
    def of(cls, part: xr.Dataset, known: Paradigms) -> Leanings:
        """Of a measured part."""
        found = part["leaning"].to_numpy().astype(float)  # (tasks of both ways, layers, N)
        return cls(known, found.reshape(2, len(TASKS), *found.shape[1:]).swapaxes(0, 1))

    def right(self, task: str, trained: str) -> Floats:
        """(layers, N): 1 where the right side is leant to; NaN where nothing was asked."""
        leaning = self.values[TASKS.index(task), (SEEN, NEW).index(trained)]
        truth = labels_of(self.known)[:, TASKS.index(task)]
        return np.where(np.isnan(leaning), np.nan, (leaning > 0) == (truth == 1))

    def acceptability(self, trained: str) -> Floats:
        """(N,): leanings of the layer that was best on the other half of paradigms."""
        leaning = self.values[0, (SEEN, NEW).index(trained), 1:]
        items, scores = unit_means(self.right(ACCEPTABLE, trained)[1:], self.known.item)
        picked = picked_on_other_half(scores.T[:, None])[:, 0]
        number = np.searchsorted(items, self.known.item)
        return np.asarray(leaning[picked[number], np.arange(leaning.shape[1])], float)

    def best(self, task: str, units: NDArray[np.str_]) -> Floats:
        """(U,): right answers in new surroundings, at the layer picked on the other units."""
        _, scores = unit_means(self.right(task, NEW)[1:], units)
        return cross_fitted(scores.T[:, None])[0][:, 0]


def better_told(
    one: str, other: str, of: Leanings, copies: Sequence[Leanings], *, by: str, level: float
) -> Estimate | None:
    """How much better a task is told than another; copies with shuffled weights are its control.

    `by` says what is new where `one` is asked, and so what the interval is over: a probe that takes
    a new word for the wrong thing errs in all sentences that have it.
    """
    units: NDArray[np.str_] = getattr(of.known, by)
    if len(np.unique(units)) < _FEWEST:
        return None
    more = of.best(one, units) - of.best(other, units)
    chance = np.array([copy.best(one, units) - copy.best(other, units) for copy in copies])
    beyond = more - chance.mean(axis=0)
    if not np.isfinite(beyond).all():
        return None
    found, over_chance = (mean_interval(of, level).counting(_UNITS[by]) for of in (more, beyond))
    control = among_copies(over_chance, chance.mean(axis=1).tolist())
    return found.with_controls({"shuffled weights": control})


_UNITS: Mapping[str, str] = {"environment": "environments", "npi": "items"}


ALL = "all"
ABSOLUTE, GRADIENT = "absolute pairs", "gradient pairs, classifier"
LIKELIHOOD, BEYOND = "gradient pairs, likelihood", "gradient pairs, likelihood beyond words"
CLOZE, CLOZE_LICENSOR = "cloze of the NPI", "cloze of the licensor"
_TITLES = {
    ACCEPTABLE: "acceptable or not",
    "licensor": "there is a licensor",
    "scope": "the NPI would be in scope",
    "npi_present": "there is an NPI",
}
_WAYS = {SEEN: "environments and NPIs seen", NEW: "environment or NPI new"}


class NpiLicensingResult(Result):
    """What five methods tell of licensors, scope and negative polarity items.

    Table `methods`: for each method, contrast and environment (`all` first) the share of whole
    paradigms, or of their pairs, that are told right, beside chance; `classifier`: accuracy and
    Matthews correlation of acceptability, beside the more frequent label; `layers`: right answers
    of probes for each task and layer (-1 is what enters the first one), and the mean of copies with
    shuffled weights. `trained`: whether classifiers and probes saw the environment (`seen`) or not
    (`new`: of the task npi_present the NPI is new). Bounds hold for all rows together.
    """

    lead: ClassVar[int] = 3
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "methods": {"share": "%", "chance": "%"},
        "classifier": {"accuracy": "%", "frequent": "%"},
        "layers": {"accuracy": "%", "shuffled": "%"},
    }

    @property
    def answer(self) -> str:
        """What likelihoods tell of licensor and scope, and what probes tell better."""
        found, said = self.evidence(), []
        for name, words in (
            ("licensor_pairs", "a missing licensor is told"),
            ("scope_pairs", "an NPI outside its scope"),
        ):
            if (one := found.get(name)) is not None:
                said.append(f"{words} in {percent(one, limits=(0.5,))} of cases")
        text = ""
        if said:
            text = f"By likelihood beyond words, {' and '.join(said)}; chance would be 50 %. "
        compared = []
        for name, words in (("npi_over_scope", "a new NPI"), ("licensor_over_scope", "a licensor")):
            if (one := found.get(name)) is not None:
                surely = "surely" if one.excludes(0) else "not surely"
                side, way = (one, "better") if one.value >= 0 else (mirrored(one), "worse")
                compared.append(f"{words} {surely} {way} than scope, by {points(side, '.0f')}")
        if compared:
            text += (
                f"Probes in new surroundings tell {' and '.join(compared)}, beyond shuffled "
                "weights. "
            )
        return text.strip() or (
            f"Nothing is compared: there are {self.facts['environments']} environments and no "
            "likelihoods."
        )

    def measures(self) -> Sequence[Measure]:
        """Right answers of probes by layer, in environments seen and new."""
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0]
        return [
            Measure.of_column(
                some,
                "accuracy",
                name=f"{str(task).replace('_', '-')}-{trained}",
                title=f"Right answers of a probe: {_TITLES[str(task)]}, {_WAYS[str(trained)]}",
                unit="% of sentences",
                scale=100.0,
                reading="High: the mean of the states after this layer tells it.",
            )
            for (task, trained), some in rows.groupby(["task", "trained"], sort=False)
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Methods × contrasts; environments; probes by layer."""
        rows = self.tables["methods"]
        rows = rows[rows["environment"] == ALL]
        names = [
            f"{method}{f' ({trained})' if trained else ''}: {contrast}"
            for method, trained, contrast in rows[["method", "trained", "contrast"]].to_numpy()
        ]
        found = [
            drawings.dots(
                "methods",
                [Dots.of_columns("pairs told right (%)", rows, "share", hollow="chance")],
                names,
                self.about,
                title="Negative polarity items by five methods",
                caption="One row for each method and contrast: the per cent of minimal pairs told "
                "right over all environments. Pairs differ in the licensor, in scope, or in the "
                "NPI. Diamonds are chance. Beyond words: what the change does for the NPI more "
                "than for a plain word in its place.",
                note="Diamonds: chance. Intervals over environments × NPIs, for all rows together.",
            ),
        ]
        if len(self._by_environment()[0]):
            one, other = self._by_environment()
            found.append(
                drawings.dots(
                    "environments",
                    [
                        Dots.of_columns("missing licensor told (%)", one, "share", level=50),
                        Dots.of_columns("NPI outside scope told (%)", other, "share", level=50),
                    ],
                    one.index,
                    self.about,
                    title="Licensor and scope by environment",
                    caption="For each environment, the per cent of paradigms in which a missing "
                    "licensor, or an NPI outside its scope, is told by likelihood beyond words. "
                    "Chance would be 50. Intervals hold for all rows of the table together.",
                    note="Likelihood beyond words. Dashed: chance, 50 %.",
                )
            )
        for trained, name in ((NEW, "layers"), (SEEN, "layers-seen")):
            if shown := [m for m in self.measures() if m.name.endswith(f"-{trained}")]:
                found.append(
                    drawings.profile(
                        name,
                        shown,
                        self.about,
                        title=f"What probes tell, {_WAYS[trained]}",
                        reading="In new surroundings no word that matters was seen before; where "
                        "they were seen, single words tell much."
                        if trained == NEW
                        else "Probes saw the same licensors and NPIs in other paradigms, so that "
                        "single words tell them.",
                        labels=[m.title.partition(": ")[2].partition(",")[0] for m in shown],
                    )
                )
        return found

    def _by_environment(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Pairs by likelihood beyond words: licensor, and scope with the same environments."""
        rows = self.tables["methods"]
        rows = rows[rows["method"] == BEYOND]
        one, other = (
            rows[rows["contrast"] == contrast].set_index("environment")
            for contrast in ("licensor", "scope")
        )
        return one, other.reindex(one.index)


_STATES, _SHUFFLED = "states", "states-shuffled-"
_FILLS_BLANKS = ("mlm", "pretraining")
_LICENSOR, _SCOPE, _NPI = CONTRASTS


class _Row(NamedTuple):
    """One method on one contrast: a share for each whole paradigm."""

    method: str
    trained: str
    contrast: str
    chance: float
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class NpiLicensing(Resampled):
    """Does the model know which words license "ever" and "any", and how far these words reach?

    Method: negative polarity items (NPIs) need a licensor such as "not" above them. Sentences come
    in paradigms that cross licensor, scope and NPI, and are asked by five methods. (1) A classifier
    judges acceptability: the model's own if it was fine-tuned for two classes, else a linear one on
    the mean of a sentence's states. (2) Absolute minimal pairs: it judges both sentences right.
    (3) Gradient ones: the acceptable sentence gets the higher score, by the classifier or by its
    pseudo-log-likelihood. (4) Clozes: a masked NPI is likelier with the licensor than without, and
    in its scope than outside; a masked licensor is likelier than the plain word. (5) Probes of each
    layer tell whether there is a licensor, an NPI, and whether it is in scope. Pairs differ in
    licensor, scope or NPI. "Beyond words" counts what a change does for the NPI more than for the
    plain word in its place, so that words liked everywhere gain nothing.

    Probes and classifiers are scored on paradigms that did not train them: in environments that
    did ("seen"), and in new ones ("new"; whether there is an NPI is asked of new NPIs). Layers are
    picked on one half and scored on the other. Claims are judged beyond words, or beyond ten
    copies with shuffled weights; intervals are over environments, NPIs or both.

    Source: Warstadt et al. (2019), "Investigating BERT's knowledge of language: five analysis
    methods with NPIs". Limits: the published sample has one to a dozen whole paradigms for each
    environment. The paper fine-tunes its classifiers; give a fine-tuned model for that. Methods
    that need a masked-LM head are left out of fine-tuned models, and blanks of more than three
    words are not asked.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "label", "group", "item", "sentence_labels"}),
        capabilities=frozenset({"residual"}),
        head="saved",
    )
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = NpiLicensingResult
    version: ClassVar[int] = 3  # bounds allow for rare answers that were not seen
    fewest: ClassVar[int] = 40
    fills_gpu: ClassVar[bool] = True
    measured_version: ClassVar[int] = 2
    copies: ClassVar[int] = COPIES

    examples: int = parameter(
        4000,
        "Draw so many sentences at most, by whole paradigms; all if there are fewer.",
        minimum=40,
        at_least_option="limit",
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse sentences of which not everything is told, and environments without a paradigm."""
        super().check(encoder, corpus)
        known = Paradigms.of(self.shown(corpus))
        if len(np.unique(known.label)) < 2:
            raise DataError(f"All sentences of {corpus.name!r} have the same label.")
        if not len(known.places):
            raise DataError(
                f"{corpus.name!r} has no whole paradigm: four sentences of one item, with and "
                "without licensor and NPI, in scope.",
                hint="Give grammar-licensing, or npi-paradigms with --root.",
            )

    def shown(self, corpus: Corpus) -> Corpus:
        """As many as asked for, paradigms whole."""
        return whole_paradigms(corpus, self.examples, self.seed)

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Blocks of sentences; states of the model and of copies with shuffled weights."""
        copies = [f"{_SHUFFLED}{copy}" for copy in range(self.copies)]
        return [*super().parts(shape, corpus), _STATES, *copies]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each sentence."""
        if part.startswith(_STATES):
            return len(self.shown(corpus))
        return super().steps(part, shape, corpus)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Scores and clozes of some sentences, or what probes lean to in all of them."""
        if part.startswith(_STATES):
            return self._leanings(encoder, corpus, part, context)
        import xarray as xr

        block, first = self.of_block(part, corpus), start_of(part)
        partners = Partners(self.shown(corpus))
        likelihood, judged = (np.full(len(block), np.nan) for _ in range(2))
        filled = np.full((len(block), 2, 2), np.nan)
        if encoder.head in _FILLS_BLANKS:
            likelihood = _likelihoods(encoder, block, partners, first, context)
            filled = _filled(encoder, block, partners, first, context)
        elif encoder.head == "classification":
            judged = _judged(encoder, block, context)
        context.advance(len(block))
        return xr.Dataset(
            {
                "likelihood": ("example", likelihood),
                "judged": ("example", judged),
                "filled": (("example", "blank", "word"), filled),
                **partners.known.dataset(slice(first, first + len(block))),
            },
            attrs={"head": encoder.head},
        )

    def _leanings(
        self, encoder: Encoder, corpus: Corpus, part: str, context: Context
    ) -> xr.Dataset:
        import xarray as xr

        from bertology.annotated.sentence_vectors import sentence_vectors
        from bertology.annotated.states import word_states
        from bertology.model.weight_noise import shuffled_copy
        from bertology.train.probes.ridge import held_out_leanings

        shown, reader = self.shown(corpus), encoder
        if part.startswith(_SHUFFLED):
            number = int(part.removeprefix(_SHUFFLED))
            reader = shuffled_copy(encoder, seed=self.copies * self.seed + number)
        states = word_states(
            reader,
            shown,
            pooling="tokens",
            folder=context.states,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )
        known = Paradigms.of(shown)
        found = held_out_leanings(
            sentence_vectors(states, first=False),
            labels_of(known),
            folds_of(known, self.seed),
        )
        return xr.Dataset({"leaning": (("question", "layer", "example"), found)})

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares by method, contrast and environment; probes by layer; what claims need."""
        blocks = {name: part for name, part in measured.items() if not name.startswith(_STATES)}
        parts = list(in_order(blocks))
        known = Paradigms.of_parts(parts)
        likelihood, judged, filled = (
            np.concatenate([part[name].to_numpy() for part in parts])
            for name in ("likelihood", "judged", "filled")
        )
        own = Leanings.of(measured[_STATES], known)
        copies = [Leanings.of(measured[f"{_SHUFFLED}{copy}"], known) for copy in range(self.copies)]
        given = bool(np.isfinite(judged).any())
        judges = {"": judged} if given else {way: own.acceptability(way) for way in (SEEN, NEW)}
        rows = [*_of_judges(known, judges), *_of_likelihood(known, likelihood, filled)]
        rows = [row for row in rows if np.isfinite(row.shares).any()]
        return self.result(
            provenance,
            {
                "methods": self._methods(known, rows),
                "classifier": self._classifier(known, judges),
                "layers": self._layers(known, own, copies),
            },
            evidence=self._evidence(known, rows, own, copies),
            reasons={
                "licensor_over_scope_in_pairs": "not judged: the model fills no blanks, or no "
                "paradigm has sentences in scope and outside",
                "npi_over_scope": "not judged: fewer than five NPIs are told apart",
                "licensor_over_scope": "not judged: there are fewer than five environments",
            },
            facts={
                "sentences": len(known.label),
                "paradigms": len(known.places),
                "environments": len(np.unique(known.environment)),
                "items": len(np.unique(known.npi)),
                "classifier": "the model's own" if given else "linear, on the model's states",
            },
        )

    def _evidence(
        self, known: Paradigms, rows: Sequence[_Row], own: Leanings, copies: Sequence[Leanings]
    ) -> dict[str, Estimate | None]:
        """Pairs beyond words over cells of environment and NPI; probes beyond shuffled weights."""
        cells = known.cells[known.of_paradigms]
        beyond = {
            row.contrast: unit_means(row.shares, cells)[1] for row in rows if row.method == BEYOND
        }
        found: dict[str, Estimate | None] = {
            f"{name}_pairs": self._share(shares) for name, shares in beyond.items()
        }
        if len(beyond) == 2:
            more = beyond[_LICENSOR] - beyond[_SCOPE]
            found["licensor_over_scope_in_pairs"] = self._difference(more[np.isfinite(more)])
        for name, task, by in (
            ("npi_over_scope", FACTORS[2], "npi"),
            ("licensor_over_scope", FACTORS[0], "environment"),
        ):
            found[name] = better_told(task, FACTORS[1], own, copies, by=by, level=self.level)
        return found

    def _share(self, cells: NDArray[np.float64]) -> Estimate | None:
        one = self.means(cells[None], within=(0, 1), support=(0, 1)).estimate(0)
        return None if one is None else one.counting("cells")

    def _difference(self, more: NDArray[np.float64]) -> Estimate | None:
        if len(more) < 2:
            return None
        found = least_means([more[None]], level=self.level)
        ends = max(float(found.low[0]), -1.0), min(float(found.high[0]), 1.0)
        return Estimate(float(found.value[0]), *ends, len(more), self.level, "cells")

    def _methods(self, known: Paradigms, rows: Sequence[_Row]) -> pd.DataFrame:
        """All paradigms, over cells; then each environment, over its paradigms."""
        import pandas as pd

        cells = known.cells[known.of_paradigms]
        where = known.environment[known.of_paradigms]
        asked: list[tuple[object, ...]] = []
        values: list[NDArray[np.float64]] = []
        for row in rows:
            for name in (ALL, *np.unique(where)):
                shares = row.shares[(where == name) | (name == ALL)]
                if np.isfinite(shares).any():
                    n = int(np.isfinite(shares).sum())
                    asked.append((*row[:3], str(name), n, row.chance))
                    values.append(unit_means(shares, cells)[1] if name == ALL else shares)
        columns = ["method", "trained", "contrast", "environment", "paradigms", "chance"]
        table = pd.DataFrame(asked, columns=columns)
        width = max((len(of) for of in values), default=0)
        padded = [np.pad(of, (0, width - len(of)), constant_values=np.nan) for of in values]
        if padded:
            means = self.means(np.stack(padded), within=(0, 1), support=(0, 1))
            for column, of in with_bounds("share", means, p=False).items():
                table[column] = np.asarray(of)
        return table

    def _classifier(
        self, known: Paradigms, judges: Mapping[str, NDArray[np.float64]]
    ) -> pd.DataFrame:
        """Accuracy and Matthews correlation, over paradigms; bounds are Bonferroni's for all."""
        import pandas as pd

        names = [ALL, *(str(name) for name in np.unique(known.environment))]
        level = 1 - (1 - self.level) / (2 * len(names) * len(judges))
        rows = []
        for trained, leaning in judges.items():
            for name in names:
                some = np.isfinite(leaning) & ((known.environment == name) | (name == ALL))
                if len(np.unique(known.item[some])) < 2:
                    continue
                labels = known.label[some].astype(float)
                row: dict[str, object] = {"trained": trained, "environment": name}
                row |= {"sentences": len(labels), "frequent": max(labels.mean(), 1 - labels.mean())}
                for metric in map(find_metric, ("accuracy", "matthews")):
                    each = metric.statistics((leaning[some] > 0).astype(float), labels)
                    summed = _summed(each, known.item[some])
                    one = crossed_score(metric, summed[None], level=level)
                    ends = {f"{metric.name}_low": one.low, f"{metric.name}_high": one.high}
                    row |= {metric.name: one.value, **ends}
                rows.append(row)
        return pd.DataFrame(rows)

    def _layers(self, known: Paradigms, own: Leanings, copies: Sequence[Leanings]) -> pd.DataFrame:
        """Right answers of all probes by layer, over cells of environment and NPI."""
        units = known.cells
        asked = [(task, way) for task in TASKS for way in (SEEN, NEW)]
        asked = [one for one in asked if np.isfinite(own.right(*one)).any()]
        found = np.stack([unit_means(own.right(*one), units)[1] for one in asked])
        told = [[unit_means(copy.right(*one), units)[1] for copy in copies] for one in asked]
        shuffled = np.nanmean(np.array(told), axis=3).mean(axis=1)
        layers = range(-1, found.shape[1] - 1)
        means = self.means(found.reshape(-1, found.shape[2]), within=(0, 1), support=(0, 1))
        table = labelled_table(
            {"asked": range(len(asked)), "layer": layers},
            {**with_bounds("accuracy", means, p=False), "shuffled": shuffled},
        )
        for column, at in (("trained", 1), ("task", 0)):
            table.insert(0, column, [asked[i][at] for i in table["asked"]])
        return table.drop(columns="asked")


def _likelihoods(
    encoder: Encoder, block: Corpus, partners: Partners, first: int, context: Context
) -> NDArray[np.float64]:
    """(N,): pseudo-log-likelihoods; NaN of what is too long, or of no whole paradigm."""
    from bertology.model.masked_lm.scoring import pseudo_log_likelihood
    from bertology.studies.designs.clozes import too_long

    texts = [example.text for example in block]
    cut, found = too_long(encoder, texts), np.full(len(texts), np.nan)
    whole = [at for at in range(len(texts)) if at not in cut and first + at in partners]
    if whole:
        scores = pseudo_log_likelihood(
            encoder, [texts[at] for at in whole], tokens_per_batch=context.batch_tokens
        )
        found[whole] = [one.total for one in scores]
    return found


def _filled(
    encoder: Encoder, block: Corpus, partners: Partners, first: int, context: Context
) -> NDArray[np.float64]:
    """(N, 2, 2): for NPI and licensor in turn, log-probabilities of it and of the plain word."""
    from bertology.model.masked_lm.clozes import Clozes
    from bertology.model.masked_lm.questions import Question
    from bertology.studies.designs.clozes import too_long

    asked: list[tuple[int, int, Question]] = []
    for at, example in enumerate(block):
        for number, factor in enumerate((FACTORS[2], FACTORS[0])):
            blank = partners.blank(first + at, factor)
            if blank is not None:
                text = f"{example.text[: blank.start]}{{mask}}{example.text[blank.end :]}"
                asked.append((at, number, Question(text, (blank.good, blank.bad))))
    over = too_long(encoder, [f"{q.text} {max(q.candidates, key=len)}" for _, _, q in asked])
    asked = [one for i, one in enumerate(asked) if i not in over]
    found = np.full((len(block), 2, 2), np.nan)
    engine = Clozes(encoder, top_k=1, tokens_per_batch=context.batch_tokens)
    answers = engine.answers(question for _, _, question in asked)
    for (at, number, _), answer in zip(asked, answers, strict=True):
        found[at, number] = answer.scores[0]
    return found


def _judged(encoder: Encoder, block: Corpus, context: Context) -> NDArray[np.float64]:
    """(N,): how far the model's own classifier leans to acceptable."""
    from bertology.train.answers import encode_for, leanings
    from bertology.train.encoded import task_of

    encoded = encode_for(encoder, block)
    return leanings(encoder, encoded, task_of(block), batch_tokens=context.batch_tokens)


def _of_judges(known: Paradigms, judges: Mapping[str, NDArray[np.float64]]) -> Iterator[_Row]:
    for trained, leaning in judges.items():
        for contrast in CONTRASTS:
            yield _Row(ABSOLUTE, trained, contrast, 0.25, known.both(leaning, contrast))
            yield _Row(GRADIENT, trained, contrast, 0.5, known.right(leaning, contrast))


def _of_likelihood(
    known: Paradigms, likelihood: NDArray[np.float64], filled: NDArray[np.float64]
) -> Iterator[_Row]:
    """Pairs by likelihood, beyond words, and clozes; nothing but NaN without a masked-LM head."""
    npi, licensor = filled[:, 0], filled[:, 1]
    for contrast in CONTRASTS:
        yield _Row(LIKELIHOOD, "", contrast, 0.5, known.right(likelihood, contrast))
    for contrast in (_LICENSOR, _SCOPE):
        yield _Row(BEYOND, "", contrast, 0.5, known.beyond_words(likelihood, contrast))
    for contrast in (_LICENSOR, _SCOPE):
        yield _Row(CLOZE, "", contrast, 0.5, known.right(npi[:, 0], contrast))
        rather = known.right(npi[:, 0] - npi[:, 1], contrast)
        yield _Row(f"{CLOZE}, beyond words", "", contrast, 0.5, rather)
    rather = known.at(licensor[:, 0] - licensor[:, 1], (1, 1, 1))
    plain = known.at(licensor[:, 0] - licensor[:, 1], (1, 1, 0))
    counts = np.isfinite(known.right(known.label.astype(float), _LICENSOR))
    yield _Row(CLOZE_LICENSOR, "", _LICENSOR, 0.5, np.where(counts, preferred(rather), np.nan))
    beyond = np.where(counts, preferred(rather - plain), np.nan)
    yield _Row(f"{CLOZE_LICENSOR}, beyond words", "", _LICENSOR, 0.5, beyond)


def _summed(each: NDArray[np.float64], units: NDArray[np.str_]) -> NDArray[np.float64]:
    """(U, K): sums of statistics (N, K) over the sentences of each unit."""
    names, number = np.unique(units, return_inverse=True)
    found = np.zeros((len(names), each.shape[1]))
    np.add.at(found, number, each)
    return found
