"""Layer scores: from which layers is each kind of knowledge read, and in which order?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.word_labels import PROBED, ProbedTask
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.stats.leading import leading
from bertology.studies.designs.layer_places import Place, mean_place
from bertology.studies.designs.mix_scores import MixScores, bounds_of, share_of_sentences, thirds
from bertology.studies.designs.pipeline import SEMANTIC, steps_told
from bertology.studies.designs.probe_results import ProbingResult
from bertology.studies.designs.probe_scores import TaskScores, least_gain, rows_of_tasks
from bertology.studies.designs.probes import INPUT, SHUFFLED, Probing
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import labelled_table, with_bounds

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.annotated.probe_questions import ProbeQuestions
    from bertology.annotated.states import States
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

__all__ = ["LayerScores", "LayerScoresResult"]

_PLACES = ("expected", "centre", "unevenness")
_NOT_TOLD = (
    "not judged: the corpus does not annotate it, or no layer surely tells it better than words, "
    "the input and shuffled weights do"
)


class LayerScoresResult(ProbingResult):
    """Where in the model each task is told.

    Table `layers`: for each task and layer (-1 is what enters the first one) the share of right
    answers of a probe of this layer alone (`accuracy`), whether it is `among_best` (not surely
    worse than the best layer), its `weight` in a mix of all layers, the share of right answers from
    this layer and all before it (`cumulative`), and what it adds to them (`gain`, maybe below 0).
    Table `tasks`: the best layer and its gain over baselines, the expected layer, the centre of
    gravity of the weights, and how uneven these are (0: all layers alike, in nats). Table `pairs`:
    how much later one task is than the other; bounds hold for all pairs together.
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
        sure = ((pairs["later_low"] > 0) | (pairs["later_high"] < 0)).sum()
        return f"; of {len(pairs)} pairs of tasks, the order of {sure} is sure"

    def measures(self) -> Sequence[Measure]:
        """Right answers, weight and gain of each layer, by task."""
        found = []
        table = self.tables["layers"]
        for task, rows in table[table["layer"] >= 0].groupby("task", sort=False):
            title = self.titles[str(task)]
            above = rows["accuracy"] - rows["accuracy"].min()
            found += [
                Measure.of_column(
                    rows.assign(place=above / (above.max() or 1.0)),
                    "place",
                    name=f"{task}-place",
                    title=f"Between the worst layer and the best: {title}",
                    unit="% of the way from the worst layer to the best",
                    scale=100.0,
                    reading="100: no layer tells it better.",
                ),
                Measure.of_column(
                    rows,
                    "accuracy",
                    name=f"{task}-accuracy",
                    title=f"Right answers of a probe: {title}",
                    unit="% of questions",
                    bounds=bounds_of("accuracy")[1:],
                    scale=100.0,
                    reading="High: the layer's states tell it.",
                ),
                Measure.of_column(
                    rows,
                    "weight",
                    name=f"{task}-weight",
                    title=f"Weight of the layer in a mix of all: {title}",
                    unit="% of the weights",
                    bounds=bounds_of("weight")[1:],
                    scale=100.0,
                    reading="High: a probe that sees all layers looks at this one.",
                ),
                Measure.of_column(
                    rows,
                    "gain",
                    name=f"{task}-gain",
                    title=f"What the layer adds to those before it: {title}",
                    unit="points (% of questions)",
                    bounds=bounds_of("gain")[1:],
                    scale=100.0,
                    middle=0.0,
                    reading="Above 0: with it a probe gives more right answers; it may be below 0.",
                ),
            ]
        return found

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
                partial(self._tasks, told),
                "For each task the expected layer (the mean layer of what layers add), the centre "
                "of gravity of the weights in a mix of all layers, and how uneven these weights "
                "are (0: all alike). Intervals hold for all tasks together: those of expected "
                "layers are over test and training sentences, the others over training sentences.",
            )
        )
        if len(self.tables["pairs"]):
            found.append(
                Drawing(
                    "pairs",
                    self._pairs,
                    "By how many layers the second task of each pair is later than the first, by "
                    "expected layers. To the right of 0: later, as in a classical pipeline. "
                    "Intervals hold for all pairs together.",
                )
            )
        return found

    def _tasks(self, rows: pd.DataFrame) -> Figure:
        labels = ("expected layer", "centre of gravity", "unevenness (nats)")
        panels = [
            Dots(label, *(rows[column].to_numpy() for column in bounds_of(name)))
            for label, name in zip(labels, _PLACES, strict=True)
        ]
        return interval_dots(
            panels,
            list(rows["title"]),
            title=f"Where in the model tasks are told\n{self.about}",
            note="Layers are numbered from 0; what enters the first one counts as -1.",
        )

    def _pairs(self) -> Figure:
        rows, titles = self.tables["pairs"], self.titles
        sides = (rows[column].to_numpy() for column in bounds_of("later"))
        return interval_dots(
            [Dots("layers later", *sides, level=0.0)],
            [f"{titles[a]} → {titles[b]}" for a, b in rows[["first", "second"]].to_numpy()],
            title=f"The order of tasks\n{self.about}",
            note="Difference of expected layers: right of 0, the second task is later.",
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
    layer by layer. How uneven weights get depends on how long a mix learns, so only tasks of one
    run can be compared.
    """

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

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The examples that are read; training counts as much again, and mixes once more."""
        return (2 if part.endswith(SHUFFLED) else 3) * len(self.shown(corpus))

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
            for part in (measured[name] for name in measured if not name.endswith(SHUFFLED))
            for at, name in enumerate(part["task"].to_numpy())
        }
        rows = []
        for one in seen:
            row, of = self.of_task(one, layers, len(seen)), mixes[one.name]
            for name in _PLACES:
                found = getattr(of, name).estimate(level=self.level, families=len(seen))
                row |= dict(zip(bounds_of(name), (found.value, found.low, found.high), strict=True))
            rows.append(row)
        tasks = pd.DataFrame(rows)
        told = {one.name: one for one in seen if self._told(one, len(seen))}
        steps = steps_told([name for name in told if np.isfinite(mixes[name].expected.value)])
        pairs = self._pairs({step: mixes[name].expected for step, name in steps.items()})
        order = {f"{a}_before_{b}": later for (a, b), later in pairs.items()}
        return self.result(
            provenance,
            {
                "layers": self._layers(seen, mixes, layers),
                "tasks": tasks,
                "pairs": pd.DataFrame(
                    [(steps[a], steps[b], e.value, e.low, e.high) for (a, b), e in pairs.items()],
                    columns=["first", "second", *bounds_of("later")],
                ),
            },
            evidence={**order, **self._spread(told, mixes), **self._thirds(told)},
            reasons={"": _NOT_TOLD},
            facts=facts,
        )

    def _told(self, one: TaskScores, families: int) -> bool:
        """Whether some layer surely tells it better than all baselines."""
        return least_gain(one.gains(), one.counts, level=self.level, families=families).low > 0

    def _pairs(self, places: Mapping[str, Place]) -> dict[tuple[str, str], Estimate]:
        """By how many layers the second task is later; bounds hold for all pairs."""
        pairs = list(combinations(places, 2))
        return {
            (a, b): (places[b] - places[a]).estimate(level=self.level, families=len(pairs))
            for a, b in pairs
        }

    def _spread(
        self, told: Mapping[str, TaskScores], mixes: Mapping[str, MixScores]
    ) -> dict[str, Estimate | None]:
        """How much more uneven weights of syntactic tasks are than those of semantic ones."""
        sides = [
            [mixes[name].unevenness for name in told if (name in SEMANTIC) == semantic]
            for semantic in (False, True)
        ]
        if not all(sides):
            return {}
        syntax, semantics = map(mean_place, sides)
        return {"syntax_over_semantics": (syntax - semantics).estimate(level=self.level)}

    def _thirds(self, told: Mapping[str, TaskScores]) -> dict[str, Estimate | None]:
        """The middle third of the layers against the last, over tasks; where chunks are told."""
        found: dict[str, Estimate | None] = {}
        if told:
            rows = [
                share_of_sentences(one, thirds(one)[1] - thirds(one)[2]) for one in told.values()
            ]
            mean = self.means(np.mean(rows, axis=0)[None], within=(-1, 1), reach=1.0).estimate(0)
            found["middle_over_last"] = None if mean is None else mean.counting("sentences")
        for step, name in steps_told(told).items():
            if step in ("pos", "chunk"):
                one = told[name]
                first, middle, last = thirds(one)
                for what, gains in (
                    ("lower_over_middle", [first - middle]),
                    ("middle_over_ends", [middle - first, middle - last]),
                ):
                    found[f"{step}_{what}"] = least_gain(gains, one.counts, level=self.level)
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
                "among_best": np.stack([self._among_best(one) for one in seen]),
                **{name: weights[:, at] for at, name in enumerate(bounds_of("weight"))},
                "cumulative": cumulative.value,
                **with_bounds("gain", gain, p=False),
            },
        )
        table.loc[table["layer"] == INPUT, list(bounds_of("gain"))] = np.nan  # nothing is before it
        return table

    def _among_best(self, one: TaskScores) -> NDArray[np.bool_]:
        """The layers (input first) that are not surely worse than the best one."""
        there = one.counts > 0
        found = leading(per_item(one.hits[there].T, one.counts[there]))
        return ~(found.p_adjusted < 1 - self.level)
