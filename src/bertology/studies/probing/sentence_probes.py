"""Sentence probes: which layers tell surface, syntax and semantics of a whole sentence?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.annotated.sentence_tasks import GROUPS, SENTENCE_TASKS, SURFACE
from bertology.annotated.word_labels import ProbedTask
from bertology.arrays import Floats
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, plain
from bertology.results.compared import row_mean
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.probe_scores import TaskScores, least_gain, rows_of_tasks
from bertology.studies.designs.probes import Probing, ProbingResult
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.shuffled_copies import COPIES
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


# At which layers groups of tasks are told best, over resampled sentences.
#
# A task that is easy may be told by many layers, all of them near 100 %: which of them is best then
# says nothing. So a task has a first and a last of its best layers, those within NEAR of the best;
# the interval of a group reaches from its first ones to its last ones: an easy task has a wide
# interval, and never counts as early or late because it is easy.
#
# Where layers are nearly alike, the bootstrap finds the best of a sample again too often. Resamples
# of half as many sentences mend this (the m out of n bootstrap).


_HELD = 4_000_000  # weights of resampled sentences that are held at a time
NEAR = 0.01
"""By how much less, as a share of right answers, a layer may tell and still count as best."""


@dataclass(frozen=True)
class Places:
    """The middle of the best layers; first and last ones (R,) in R resamples; N sentences."""

    value: float
    first: Floats
    last: Floats
    n: int

    def bounds(self, level: float) -> tuple[float, float]:
        """From the first to the last layers that may be best."""
        tail = (1 - level) / 2
        low, high = float(np.quantile(self.first, tail)), float(np.quantile(self.last, 1 - tail))
        return min(low, self.value), max(high, self.value)

    def __sub__(self, other: Places) -> Places:
        """How much later these are, over the same resamples."""
        return Places(
            self.value - other.value,
            self.first - other.last,
            self.last - other.first,
            min(self.n, other.n),
        )

    def estimate(self, level: float) -> Estimate:
        """As a quantity in layers."""
        return Estimate(self.value, *self.bounds(level), self.n, level, "sentences")

    @classmethod
    def mean(cls, of: Sequence[Places]) -> Places:
        """Of several tasks, which count alike."""
        return cls(
            float(np.mean([one.value for one in of])),
            np.mean([one.first for one in of], axis=0),
            np.mean([one.last for one in of], axis=0),
            min(one.n for one in of),
        )


def best_layers(shares: Floats) -> tuple[Floats, Floats]:
    """The first and the last of the best layers, of shares (…, L)."""
    near = shares >= shares.max(axis=-1, keepdims=True) - NEAR - 1e-9
    first = near.argmax(axis=-1).astype(np.float64)
    last = shares.shape[-1] - 1.0 - near[..., ::-1].argmax(axis=-1)
    return first, last


def places_of(scores: Mapping[str, TaskScores], *, resamples: int, seed: int) -> dict[str, Places]:
    """Best layers of tasks over the same resamples of the sentences; the input is no layer."""
    n = max(len(one.counts) for one in scores.values())
    rng, rows = np.random.default_rng([seed, 1]), max(1, _HELD // n)
    drawn: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in scores}
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        weights = rng.multinomial(max(n // 2, 1), np.full(n, 1 / n), size=size).astype(np.float64)
        for name, one in scores.items():
            asked = np.maximum(weights @ one.counts, 1.0)[:, None]
            drawn[name].append(best_layers((weights @ one.hits[:, 1:]) / asked))  # (rows, L)
    found = {}
    for name, one in scores.items():
        first, last = (np.concatenate(of) for of in zip(*drawn[name], strict=True))
        middle = float(np.mean(best_layers(one.share(one.hits[:, 1:]))))
        found[name] = Places(middle, first, last, int((one.counts > 0).sum()))
    return found


def least_step(steps: Sequence[Estimate]) -> Estimate:
    """The smallest of several steps: all must be above a border for it to be."""
    return Estimate(
        min(one.value for one in steps),
        min(one.low for one in steps),
        min(one.high for one in steps),
        min(one.n for one in steps),
        steps[0].level,
        steps[0].unit,
    )


_GROUP_OF = {task: group for group, of in GROUPS.items() for task in of}
_PLACE = ("place", "place_low", "place_high")


class SentenceProbesResult(ProbingResult):
    """What probes read off the mean of a sentence's states after each layer.

    Table `layers`: for each task and layer (-1 is what enters the first one) the share of right
    answers on sentences that did not train (`accuracy`), whether the layer is `among_best` (not
    surely worse than the best one), and the share of the best copy with shuffled weights. Table
    `tasks`: the group, the best layer and its gain over the most frequent label, the input and
    shuffled weights; whether the task counts as `told`; and the middle of its best layers
    (`place`, within a point of the best) with the first and the last that may be best. Table
    `groups`: the mean place of the told tasks of each group; `shuffled` is the same in copies with
    shuffled weights. Table `steps`: by how many layers each group is later than the one before.
    """

    strongest: ClassVar[Mapping[str, str]] = {"tasks": "gain", "groups": "place"}

    @property
    def answer(self) -> str:
        """The places of groups, and which order is sure."""
        groups, steps = self.tables["groups"], self.tables["steps"]
        if groups.empty:
            return (
                f"{NOTHING_SURE}: no layer surely tells anything of whole sentences beyond the "
                "most frequent label, and syntax or semantics beyond words and shuffled weights."
            )
        told = [
            f"{row['group']} {plain(of_row(row, _PLACE), '.1f')}" for _, row in groups.iterrows()
        ]
        sure = [
            f"{row['second']} surely {'later' if row['later_low'] > 0 else 'earlier'} than "
            f"{row['first']}"
            for _, row in steps.iterrows()
            if row["later_low"] > 0 or row["later_high"] < 0
        ]
        order = listed(sure) if sure else "no order is sure" if len(steps) else "no two to compare"
        return f"Layers that tell best, from 0: {listed(told)}; {order}."

    def measures(self) -> Sequence[Measure]:
        """Right answers of each task by layer, plain and between the worst and the best."""
        how = {"unit": "% of sentences", "reading": "High: the mean of the words' states tells it."}
        return [one for task, rows in self.by_task() for one in self.told(task, rows, **how)]

    def drawings(self) -> Sequence[Drawing]:
        """Tasks × layers; places of tasks and groups; gains."""
        by_name = {m.name: m for m in self.measures()}
        tasks = self.tables["tasks"]
        labels = [
            f"{row['group']}: {row['task']}{'' if row['told'] else ' *'}"
            for _, row in tasks.iterrows()
        ]
        return [
            drawings.rows(
                "layers",
                [by_name[f"{task}-place"] for task in tasks["task"]],
                self.about,
                title="Which layers tell it best",
                reading="Each row has its own worst and best layer, however much they differ. With "
                "a star: no layer surely tells it better than words and shuffled weights do.",
                labels=labels,
            ),
            self._places(),
            self.best_layers(
                "For each task the share of right answers at its best layer, and the smallest gain "
                "over the most frequent label, the input and shuffled weights. The layer was "
                "picked on one half of the test sentences and scored on the other; intervals hold "
                "for all tasks together. No gain is asked of surface features: words tell them."
                + (f" Counted: {left}." if (left := self.left_out(all_counts=True)) else ""),
            ),
        ]

    def _places(self) -> Drawing:
        tasks, groups = self.tables["tasks"], self.tables["groups"]
        names, rows = list[str](), list[list[float]]()
        for group in GROUPS:
            of = tasks[(tasks["group"] == group) & tasks["told"]]
            names += [str(task) for task in of["task"]]
            rows += of[list(_PLACE)].to_numpy().tolist()
            for _, row in groups[groups["group"] == group].iterrows():
                names.append(f"all of {group}")
                rows.append([float(row[column]) for column in _PLACE])
        if not rows:  # nothing is told: the tasks as they are
            names = list(tasks["task"])
            rows = tasks[list(_PLACE)].to_numpy().tolist()
        return drawings.dots(
            "places",
            [Dots("best layers", *np.array(rows).T)],
            names,
            self.about,
            title="Where sentences are told best",
            caption="For each task that is told, and each group of such tasks, the middle of the "
            "best layers: those within a point of the best. Intervals reach from the first to the "
            "last layers that may be best, over resampled sentences. A task that many layers tell "
            "as well has a wide interval.",
            note="Layers are numbered from 0.",
        )


@dataclass(frozen=True)
class SentenceProbes(Probing):
    """Which layers tell surface, syntax and semantics of a whole sentence?

    Method: linear probes are given the mean of the states of a sentence's words after each layer
    and asked ten things. Surface: the number of words, and which of some words it has. Syntax: the
    depth of its tree, the phrases at the top of it, whether two neighbouring words were exchanged.
    Semantics: tense, number of subject and object, whether a word does not fit, whether two clauses
    were exchanged. Of every ten sentences two are scored and one is held out. The most frequent
    label, the input of the first layer (the words without their context) and ten copies of the
    model with its weights in random order are baselines. Syntax and semantics count as told if some
    layer surely beats all of them, and the copies by more than these differ among each other;
    surface features, which words tell by themselves, if some layer surely beats the most frequent
    label.

    The place of a task is the middle of its best layers (within a point of the best), in layers, so
    that easy and hard tasks can be compared; that of a group is the mean over its told tasks.
    Intervals are over sentences, and reach from the first to the last layers that may be best.

    Source: Jawahar, Sagot and Seddah (2019), "What does BERT learn about the structure of
    language?", with tasks of Conneau et al. (2018). Limits: what a probe reads off need not be used
    by the model. A mean of states loses most of the order of words. The corpus grammar-sentences
    has made-up sentences; SentEval's own files are read as the corpus senteval.
    """

    version: ClassVar[int] = 4  # bounds allow for rare answers that were not seen
    measured_version: ClassVar[int] = 2
    offers: ClassVar[Mapping[str, ProbedTask]] = SENTENCE_TASKS
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "words", "sentence_labels"}))
    result_type: ClassVar[type[Result]] = SentenceProbesResult
    compared_over: ClassVar[tuple[str, ...]] = ("grammar-sentences",)
    controls: ClassVar[bool] = False
    copies: ClassVar[int] = COPIES

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Accuracy by layer, gains, places of tasks and groups, steps between groups."""
        import pandas as pd

        seen, layers, facts = self.scores(measured)
        by_name = {one.name: one for one in seen}
        places = places_of(by_name, resamples=self.resamples, seed=self.seed)
        rows = []
        for one in seen:
            place = places[one.name]
            bounds = (place.value, *place.bounds(self.level))
            row = self.of_task(one, layers, len(seen))
            told = self._told(one, len(seen))
            row |= {"group": _GROUP_OF[one.name], "told": told}
            rows.append(row | dict(zip(_PLACE, bounds, strict=True)))
        tasks = pd.DataFrame(rows)
        told_by_group = {
            group: [by_name[str(task)] for task in tasks["task"][tasks["told"] & of]]
            for group in GROUPS
            if (of := tasks["group"] == group).any() and (tasks["told"] & of).any()
        }
        groups = {
            group: Places.mean([places[one.name] for one in of])
            for group, of in told_by_group.items()
        }
        steps = {
            (a, b): (groups[b] - groups[a]).estimate(self.level)
            for a, b in pairwise(GROUPS)
            if {a, b} <= set(groups)
        }
        return self.result(
            provenance,
            {
                "layers": self._layers(seen, layers),
                "tasks": tasks,
                "groups": pd.DataFrame(
                    [
                        (group, len(of), groups[group].value, *groups[group].bounds(self.level),
                         _of_copies(of))
                        for group, of in told_by_group.items()
                    ],
                    columns=["group", "tasks", *_PLACE, "shuffled"],
                ),
                "steps": pd.DataFrame(
                    [(a, b, e.value, e.low, e.high) for (a, b), e in steps.items()],
                    columns=["first", "second", "later", "later_low", "later_high"],
                ),
            },
            evidence=self._evidence(by_name, steps),
            reasons={"": _NOT_TOLD},
            facts=facts,
            compared=[
                row_mean(
                    f"probe of the best layer: {self.offers[one.name].title}",
                    per_item(one.best()[1], one.counts),
                    level=self.level,
                    counted="sentences",
                    bounded=False,
                )
                for one in seen
            ],
        )  # fmt: skip

    def _evidence(
        self, of: Mapping[str, TaskScores], steps: Mapping[tuple[str, str], Estimate]
    ) -> dict[str, Estimate | None]:
        """Gains, steps, and the smaller of the two steps, since the statement orders all groups."""
        found: dict[str, Estimate | None] = {
            f"{name.replace('-', '_')}_gain": one.gain(level=self.level) for name, one in of.items()
        }
        found |= {f"{b}_after_{a}": step for (a, b), step in steps.items()}
        if len(steps) == len(GROUPS) - 1:
            found["groups_in_order"] = least_step(list(steps.values()))
        return found

    def _told(self, one: TaskScores, families: int) -> bool:
        """Whether some layer surely tells it; what words do not tell, but for surface features."""
        if _GROUP_OF[one.name] != SURFACE:
            beyond = one.beyond_copies(self.level)
            return one.told(level=self.level, families=families) and beyond.low > 0
        over_words = next(iter(one.gains().values()))
        return least_gain(over_words, one.counts, level=self.level, families=families).low > 0

    def _layers(self, seen: Sequence[TaskScores], layers: Sequence[int]) -> pd.DataFrame:
        """The table of tasks × layers; its bounds hold for all rows together."""
        right = rows_of_tasks([(one.hits, one.counts) for one in seen])
        accuracy = self.means(right, within=(0, 1), reach=1.0)
        return labelled_table(
            {"task": [one.name for one in seen], "layer": layers},
            {
                "n": accuracy.n,
                **with_bounds("accuracy", accuracy, p=False),
                "among_best": np.stack([one.among_best(self.level) for one in seen]),
                "shuffled": np.stack([one.best_copy() for one in seen]),
            },
        )


_NOT_TOLD = (
    "not judged: not every group has a task that some layer surely tells (syntax and semantics: "
    "better than words alone and shuffled weights do)"
)


def _of_copies(tasks: Sequence[TaskScores]) -> float:
    """The mean place of tasks in copies with shuffled weights."""
    shares = np.array([one.share(copy[:, 1:]) for one in tasks for copy in one.shuffled])
    return float(np.mean(best_layers(shares)))
