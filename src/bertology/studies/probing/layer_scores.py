"""Layer scores: from which layers is each kind of knowledge read, and in which order?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.probed_tasks import PROBED
from bertology.annotated.word_labels import ProbedTask
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance, short_model
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.layer_orders import in_this_order
from bertology.studies.designs.layer_places import (
    MixScores,
    Place,
    bounds_of,
    mean_place,
    share_of_sentences,
)
from bertology.studies.designs.probe_scores import (
    TaskScores,
    least_gain,
    lower_over_others,
    middle_less_ends,
    middle_over_ends,
    parts_of_depth,
    rows_of_tasks,
)
from bertology.studies.designs.probes import INPUT, SHUFFLED, Probing, ProbingResult
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.annotated.probe_questions import ProbeQuestions
    from bertology.annotated.states import States
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


PIPELINE: Mapping[str, tuple[str, ...]] = {
    "pos": ("pos", "tags"),
    "chunk": ("chunk-tag", "chunk"),
    "constituent": ("constituent",),
    "relation": ("arc-relation", "relation"),
    "entity": ("entity",),
    "role": ("role", "frame-element"),
    "coreference": ("coreference",),
}
"""Steps in their order, and the tasks that show each; the first that layers tell is compared."""
SEMANTIC = frozenset(
    {"entity", "role", "frame-element", "proto-role", "entity-relation", "coreference"}
)


def steps_told(tasks: Collection[str]) -> dict[str, str]:
    """Of each step of the pipeline the first of its tasks that is among these."""
    found: dict[str, str] = {}
    for step, names in PIPELINE.items():
        for name in names:
            if name in tasks:
                found.setdefault(step, name)
    return found


PLACES = ("expected", "centre", "unevenness")
_LINES = 4  # tasks in a figure of lines


class LayerScoresResult(ProbingResult):
    """Where in the model each task is told.

    Table `layers`: for each task and layer (-1 is what enters the first one) the share of right
    answers of a probe of this layer alone (`accuracy`), whether it is `among_best` (not surely
    worse than the best layer), its `weight` in a mix of all layers, the share of right answers from
    this layer and all before it (`cumulative`), and what it adds to them (`gain`, maybe below 0).
    Table `tasks`: the best layer and its gain over baselines, the expected layer, the centre of
    gravity of the weights, and how uneven these are (0: all layers alike, in nats). Table `pairs`:
    how much later the second task is than the first, by expected layers (`later`) and by centres of
    gravity (`centre`); bounds of each hold for all pairs together. Table `change`,
    where a model `before` is given: what each layer tells more or less than there.
    """

    strongest: ClassVar[Mapping[str, str]] = {"tasks": "expected", "pairs": "later"}

    @property
    def answer(self) -> str:
        """Tasks in the order of their expected layers, and the surest of the differences."""
        tasks = self.tables["tasks"]
        known = tasks[(tasks["gain_low"] > 0) & tasks["expected_low"].notna()]
        if known.empty:
            return (
                f"{NOTHING_SURE}: of no task it is known from which layers it is told, beyond "
                "words, the input and shuffled weights."
            )
        told = [
            f"{row['title']} {plain(of_row(row, bounds_of('expected')), '.1f')}"
            for _, row in known.sort_values("expected").iterrows()
        ]
        shown = [told[0], told[-1]] if len(told) > 1 else told
        return f"Expected layers, from 0: {listed(shown)}{self._order()}."

    def _order(self) -> str:
        pairs = self.tables["pairs"]
        if pairs.empty:
            return ""
        # What is easier seems to be earlier by its expected layer: centres must say the same.
        lows, highs = pairs[["later_low", "centre_low"]], pairs[["later_high", "centre_high"]]
        sure = ((lows > 0).all(axis=1) | (highs < 0).all(axis=1)).sum()
        return f"; the order of {sure} of {len(pairs)} pair{'s' * (len(pairs) > 1)} is sure"

    def measures(self) -> Sequence[Measure]:
        """Right answers, weight and gain of each layer, by task."""
        found = []
        for task, rows in self.by_task():
            title = self.titles[task]
            found += [
                *self.told(task, rows),
                Measure.of_column(
                    rows,
                    "weight",
                    name=f"{task}-weight",
                    title=f"Weight of the layer in a mix of all: {title}",
                    unit="% of the weights",
                    scale=100.0,
                    reading="High: a probe that sees all layers looks at this one.",
                ),
                Measure.of_column(
                    rows,
                    "gain",
                    name=f"{task}-gain",
                    title=f"What the layer adds to those before it: {title}",
                    unit="points (% of questions)",
                    scale=100.0,
                    middle=0.0,
                    reading="Above 0: with it a probe gives more right answers; it may be below 0.",
                ),
            ]
        if "change" in self.tables:
            found += self._changes()
        return found

    def _changes(self) -> list[Measure]:
        named = self.provenance.others.get("before", {}).get("name", "the model before")
        before = short_model(str(named))
        table = self.tables["change"]
        return [
            Measure.of_column(
                rows,
                "change",
                name=f"{task}-change",
                title=f"Right answers more than in {before}: {self.titles[str(task)]}",
                unit="points (% of questions)",
                scale=100.0,
                middle=0.0,
                reading="Below 0: the layer told it better before.",
            )
            for task, rows in table[table["layer"] >= 0].groupby("task", sort=False)
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Tasks × layers three times; expected layers and centres; pairs."""
        by_name = {m.name: m for m in self.measures()}
        tasks = self.tables["tasks"]
        told = tasks[tasks["gain_low"] > 0]
        told = told if len(told) else tasks
        found = [
            drawings.rows(
                name,
                [by_name[f"{task}-{column}"] for task in told["task"]],
                self.about,
                title=title,
                reading=f"{reading} Tasks that no layer surely tells are left out, if there are "
                "others.",
                labels=list(told["title"]),
            )
            for name, column, title, reading in (
                (
                    "transfer",
                    "place",
                    "Which layers tell it best",
                    "Each row has its own worst and best layer.",
                ),
                (
                    "weights",
                    "weight",
                    "Which layers a probe of all layers looks at",
                    "Weights of the input make the rest of 100.",
                ),
                (
                    "gains",
                    "gain",
                    "What each layer adds to those before it",
                    "The first layer adds to the input; losses are drawn as 0.",
                ),
            )
        ]
        found.append(
            Drawing(
                "tasks",
                partial(self._placed, told),
                "For each task the expected layer (the mean layer of what layers add), the centre "
                "of gravity of the weights in a mix of all layers, and how uneven these weights "
                "are (0: all alike). Intervals hold for all tasks together: those of expected "
                "layers are over test and training sentences, the others over training sentences.",
            )
        )
        if "change" in self.tables:
            sizes = self.tables["change"].groupby("task")["change"].agg(lambda x: x.abs().max())
            most = list(sizes.nlargest(_LINES).index)
            found.append(
                drawings.profile(
                    "change",
                    [by_name[f"{task}-change"] for task in most],
                    self.about,
                    title="What layers tell more than before",
                    reading="Below 0: the layer told it better before. At most four tasks are "
                    "shown, those that changed most.",
                    labels=[self.titles[str(task)] for task in most],
                )
            )
        if len(self.tables["pairs"]):
            rows, titles = self.tables["pairs"], self.titles
            found.append(
                drawings.dots(
                    "pairs",
                    [
                        Dots(
                            label,
                            *(rows[column].to_numpy() for column in bounds_of(name)),
                            level=0.0,
                        )
                        for label, name in (
                            ("expected layer", "later"),
                            ("centre of gravity", "centre"),
                        )
                    ],
                    [f"{titles[a]} → {titles[b]}" for a, b in rows[["first", "second"]].to_numpy()],
                    self.about,
                    title="The order of tasks",
                    caption="By how many layers the second task of each pair is later than the "
                    "first, by expected layers and by centres of gravity. To the right of 0: "
                    "later, as in a classical pipeline. Intervals of each kind hold for all pairs "
                    "together.",
                    note="Differences in layers: right of 0, the second task is later.",
                )
            )
        return found

    def _placed(self, rows: pd.DataFrame) -> Figure:
        labels = ("expected layer", "centre of gravity", "unevenness (nats)")
        panels = [
            Dots(label, *(rows[column].to_numpy() for column in bounds_of(name)))
            for label, name in zip(labels, PLACES, strict=True)
        ]
        return interval_dots(
            panels,
            list(rows["title"]),
            title=f"Where in the model tasks are told\n{self.about}",
            note="Layers are numbered from 0; what enters the first one counts as -1.",
        )


BEFORE = "-before"
_ALIKE = 1.25  # times as many labels as another task
_NOT_TOLD = (
    "not judged: the corpus does not annotate it, or no layer surely tells it better than words, "
    "the input and shuffled weights do"
)
_UNLIKE = (
    "not judged: it needs syntactic and semantic tasks that are surely told and have about as many "
    "labels to train on, since few labels make weights more uneven"
)


@dataclass(frozen=True)
class LayerScores(Probing):
    """From which layers is each kind of knowledge read, and in which order?

    Method: the tasks of edge-probes, in three ways. A probe of each layer alone says which layers
    are best: those not surely worse than the best one. A probe of a mix of all layers, γ Σ s_l h_l
    with weights s that are trained with it, says where it looks: its centre of gravity is Σ l s_l,
    and the divergence of s from even weights says how much it depends on few layers. Probes of
    mixes of the first layers, more and more, say what each layer adds to those before: the expected
    layer is Σ l Δ_l / Σ Δ_l, negative Δ counted as they are. All mixes of a task are trained
    together, with the penalty on large weights that is best for all layers on held-out sentences.

    Intervals of weights and centres are over which sentences train: mixes are trained again on
    random `halves` of them, each from its own start. Those of expected layers are over the
    sentences that are scored, too. Only tasks that some layer surely tells better than the words'
    most frequent label, the input and shuffled weights are put in order.

    Source: Tenney et al. (2019), "BERT rediscovers the classical NLP pipeline", and Liu et al.
    (2019). Limits: states are standardised by layer; a pair is two spans and their product, mixed
    layer by layer. How uneven weights get depends on how long a mix learns and on how many
    labels there are, so only tasks of one run with about as many are compared. What is easy seems
    to come early by its expected layer; so an order counts only if centres of gravity agree.
    """

    version: ClassVar[int] = 4  # bounds allow for rare answers that were not seen
    offers: ClassVar[Mapping[str, ProbedTask]] = PROBED
    result_type: ClassVar[type[Result]] = LayerScoresResult
    controls: ClassVar[bool] = False

    probe: str = parameter(
        "linear",
        "Probes of single layers: linear, or with 64 hidden units; those of mixes are linear.",
        choices=("linear", "hidden"),
    )
    halves: int = parameter(
        5, "Random halves of the training sentences on which mixes are trained again.", minimum=2
    )
    before: str = parameter(
        "",
        "Show how layers changed from this model, e.g. the one before fine-tuning.",
        model=True,
    )

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Those of all probing studies, and those of the model before."""
        found = super().parts(shape, corpus)
        if not self.before:
            return found
        return [*found, *(f"{part}{BEFORE}" for part in found if not part.endswith(SHUFFLED))]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The examples that are read; training counts as much again, and mixes once more."""
        return (2 if "-" in part else 3) * len(self.shown(corpus))

    def states(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> States:
        """Those of the model, of its shuffled weights, or of the model before."""
        reader = context.others["before"] if part.endswith(BEFORE) else encoder
        return super().states(reader, corpus, part, context)

    def besides(
        self,
        states: States,
        asked: ProbeQuestions,
        encoder: Encoder,
        advance: Callable[[int], None],
    ) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """Right answers from the first layers, and weights of all layers."""
        from bertology.train.probes.mixes import EPOCHS, Mix, Task, mixed
        from bertology.train.probes.streams import StateStream

        stream = StateStream(states, asked.units, asked.split == 0, device=encoder.device)
        used = self._halves(asked)  # (R, 1 + H)
        columns, layers = range(used.shape[1]), stream.layers
        mixes = [Mix(first + 1, column) for column in columns for first in range(layers)]
        whole, done = len(asked.questions) * EPOCHS, 0

        def told(epochs: int) -> None:
            nonlocal done
            before, done = done, done + epochs
            advance(len(states.counts) * done // whole - len(states.counts) * before // whole)

        hits, weights = [], []
        for question in asked.questions:
            learnt = np.where(used, question.labels[:, None], -1)
            found = mixed(
                stream,
                Task(learnt, question.labels, question.classes),
                mixes,
                asked.split,
                asked.examples,
                seed=self.seed,
                device=encoder.device,
                advance=told,
            )
            hits.append(found.hits.reshape(-1, len(columns), layers))
            weights.append(found.weights.reshape(len(columns), layers, layers)[:, -1])
        right = asked.of_examples(np.stack(hits, axis=1))  # (texts, tasks, 1 + H, L)
        alike = np.bincount(asked.task_of)[:, None, None]
        return {
            "first": (("example", "task", "layer"), right[:, :, 0]),
            "first_of_halves": (("task", "half", "layer"), right[:, :, 1:].sum(0, dtype=np.int64)),
            "weights": (("task", "trained", "layer"), asked.of_tasks(np.stack(weights)) / alike),
            "sentences": ((), np.array(len(np.unique(asked.examples[asked.split == 0])))),
        }

    def _halves(self, asked: ProbeQuestions) -> NDArray[np.bool_]:
        """(R, 1 + H): the rows that train, all of them and those of random halves of the texts."""
        train = asked.split == 0
        texts = np.unique(asked.examples[train])
        rng = np.random.default_rng(self.seed)
        found = [train]
        for _ in range(self.halves):
            half = rng.permutation(texts)[: (len(texts) + 1) // 2]
            found.append(train & np.isin(asked.examples, half))
        return np.stack(found, axis=1)

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Accuracy, weights and gains by layer; places of tasks; the order of two."""
        import pandas as pd

        seen, layers, facts = self.scores(measured)
        mixes = {
            str(name): MixScores.of(part, at, layers)
            for part in (measured[name] for name in measured if "-" not in name)
            for at, name in enumerate(part["task"].to_numpy())
        }
        rows = []
        for one in seen:
            row, of = self.of_task(one, layers, len(seen)), mixes[one.name]
            for name in PLACES:
                found = getattr(of, name).estimate(level=self.level, families=len(seen))
                low = max(found.low, 0.0) if name == "unevenness" else found.low
                row |= dict(zip(bounds_of(name), (found.value, low, found.high), strict=True))
            rows.append(row)
        tasks = pd.DataFrame(rows)
        told = {one.name: one for one in seen if one.told(level=self.level, families=len(seen))}
        steps = steps_told([name for name in told if np.isfinite(mixes[name].expected.value)])
        pairs, centres = (
            self._pairs({step: getattr(mixes[name], kind) for step, name in steps.items()})
            for kind in ("expected", "centre")
        )
        order = {f"{a}_before_{b}": _both(pairs[a, b], centres[a, b]) for a, b in pairs}
        return self.result(
            provenance,
            {
                **self._change(seen, measured, layers),
                "layers": self._layers(seen, mixes, layers),
                "tasks": tasks,
                "pairs": pd.DataFrame(
                    [
                        (steps[a], steps[b], e.value, e.low, e.high, c.value, c.low, c.high)
                        for ((a, b), e), c in zip(pairs.items(), centres.values(), strict=True)
                    ],
                    columns=["first", "second", *bounds_of("later"), *bounds_of("centre")],
                ),
            },
            evidence={**order, **self._spread(told, mixes), **self._depths(told)},
            reasons={"": _NOT_TOLD, "syntax_over_semantics": _UNLIKE},
            facts=facts,
        )

    def _pairs(self, places: Mapping[str, Place]) -> dict[tuple[str, str], Estimate]:
        """By how many layers the second task is later; bounds hold for all and both places."""
        pairs = list(combinations(places, 2))
        return {
            (a, b): (places[b] - places[a]).estimate(level=self.level, families=2 * len(pairs))
            for a, b in pairs
        }

    def _spread(
        self, told: Mapping[str, TaskScores], mixes: Mapping[str, MixScores]
    ) -> dict[str, Estimate | None]:
        """How much more uneven weights of syntactic tasks are than those of semantic ones.

        Few labels make weights more uneven, so tasks must have about as many.
        """
        sides = [
            [mixes[name].unevenness for name in told if (name in SEMANTIC) == semantic]
            for semantic in (False, True)
        ]
        labels = [one.about["labels"] for one in told.values()]
        if not all(sides) or max(labels) > _ALIKE * min(labels):
            return {}
        syntax, semantics = map(mean_place, sides)
        return {"syntax_over_semantics": (syntax - semantics).estimate(level=self.level)}

    def _depths(self, told: Mapping[str, TaskScores]) -> dict[str, Estimate | None]:
        """The middle of the layers against both ends, over tasks; where chunks are told."""
        found: dict[str, Estimate | None] = {}
        over_tasks: list[list[NDArray[np.float64]]] = []
        for one in told.values():
            if parts := parts_of_depth(one.hits[:, 1:]):
                first, middle, last = parts
                ends = [share_of_sentences(one, middle - end) for end in (first, last)]
                over_tasks.append(ends)
        if over_tasks:
            both = [np.mean(end, axis=0) for end in zip(*over_tasks, strict=True)]
            found["tasks_middle_over_ends"] = in_this_order(
                least_gain(both, np.ones(len(both[0]), dtype=np.int64), level=self.level),
                np.mean([one.share(one.hits[:, 1:]) for one in told.values()], axis=0),
                middle_less_ends,
            )
        for step, name in steps_told(told).items():
            hits, counts = told[name].hits[:, 1:], told[name].counts
            if step in ("pos", "chunk"):
                for where, of in (
                    ("lower_over_others", lower_over_others),
                    ("middle_over_ends", middle_over_ends),
                ):
                    found[f"{step}_{where}"] = of(hits, counts, level=self.level)
        return found

    def _layers(
        self, seen: Sequence[TaskScores], mixes: Mapping[str, MixScores], layers: Sequence[int]
    ) -> pd.DataFrame:
        """Accuracy, weights and gains; bounds hold for all rows of a column together."""
        accuracy, cumulative, gain = (
            self.means(rows_of_tasks(of), within=within, reach=1.0, families=2)
            for of, within in (
                ([(one.hits, one.counts) for one in seen], (0.0, 1.0)),
                ([(mixes[one.name].first, one.counts) for one in seen], (0.0, 1.0)),
                ([(mixes[one.name].gains, one.counts) for one in seen], (-1.0, 1.0)),
            )
        )
        count = len(seen) * len(layers)
        weights = np.array([mixes[one.name].weightbounds_of(self.level, count) for one in seen])
        table = labelled_table(
            {"task": [one.name for one in seen], "layer": layers},
            {
                "n": accuracy.n,
                **with_bounds("accuracy", accuracy, p=False),
                "among_best": np.stack([one.among_best(self.level) for one in seen]),
                **{name: weights[:, at] for at, name in enumerate(bounds_of("weight"))},
                "cumulative": cumulative.value,
                **with_bounds("gain", gain, p=False),
            },
        )
        table.loc[table["layer"] == INPUT, list(bounds_of("gain"))] = np.nan  # nothing is before it
        return table

    def _change(
        self, seen: Sequence[TaskScores], measured: Mapping[str, xr.Dataset], layers: Sequence[int]
    ) -> dict[str, pd.DataFrame]:
        """The table of what layers tell now and told before, over the same questions."""
        if not self.before:
            return {}
        before = {
            str(task): (part["hits"].to_numpy()[:, at], part["counts"].to_numpy()[:, at])
            for name, part in measured.items()
            if name.endswith(BEFORE)
            for at, task in enumerate(part["task"].to_numpy())
        }
        rows = []
        for one in seen:
            hits, counts = before[one.name]
            if hits.shape != one.hits.shape:
                raise DataError(
                    f"{self.before!r} has {hits.shape[1] - 1} layers, the model "
                    f"{one.hits.shape[1] - 1}: they cannot be compared layer by layer."
                )
            same = np.where(counts == one.counts, one.counts, 0)  # words may be cut off elsewhere
            rows.append((one.hits - hits, same, hits))
        change = self.means(rows_of_tasks([row[:2] for row in rows]), within=(-1, 1), reach=1.0)
        first = [hits[same > 0].sum(0) / max(same.sum(), 1) for _, same, hits in rows]
        table = labelled_table(
            {"task": [one.name for one in seen], "layer": layers},
            {"n": change.n, "before": np.stack(first), **with_bounds("change", change)},
        )
        return {"change": table}


def _both(one: Estimate, other: Estimate) -> Estimate:
    """By which a task is later, by two places; bounds hold both intervals, so both must agree."""
    low, high = min(one.low, other.low), max(one.high, other.high)
    return Estimate((one.value + other.value) / 2, low, high, one.n, one.level, one.unit)
