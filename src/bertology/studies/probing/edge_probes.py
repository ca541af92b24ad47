"""Edge probes: which layers tell a word's part of speech, its relations, its place in the tree?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.word_labels import PROBED, ProbedTask
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.probes import TaskScores, least_gain, rows_of_tasks
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

__all__ = ["EdgeProbes", "EdgeProbesResult"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
INPUT = -1  # as a layer: what enters the first one
SHUFFLED = "-shuffled"
_KINDS = {"words": False, "pairs": True}
_FEWEST = 10  # test sentences with a task, for it to be judged
_HIDDEN = 64
_SYNTAX = ("relation", "arc-relation", "arc")  # the first that was asked tells of layers


class EdgeProbesResult(Result):
    """What probes read off the states after each layer.

    Table `layers`: for each task and layer (-1 is what enters the first one) the share of right
    answers on sentences that did not train, that of the control task, `selectivity` (their
    difference), `shuffled` (of the same model with its weights in random order), the bits that a
    label takes (`bits`, by online coding) and `compression` (against a code that knows nothing);
    `tasks`: the best layer, picked on one half of the test sentences and scored on the other,
    against the word's most frequent label, the input and shuffled weights. Bounds hold for all rows
    together.
    """

    strongest: ClassVar[Mapping[str, str]] = {"tasks": "gain", "layers": "selectivity"}

    @property
    def answer(self) -> str:
        """The tasks that some layer surely tells better than words alone, and where best."""
        tasks = self.tables["tasks"]
        sure = tasks[tasks["gain_low"] > 0].sort_values("gain", ascending=False)
        if sure.empty:
            return (
                f"{NOTHING_SURE}: no layer surely tells more than the word's most frequent label, "
                "the input and shuffled weights do."
            )
        told = [
            f"{PROBED[str(row['task'])].title} (layer {int(row['layer'])}, "
            f"{percent(of_row(row, ('accuracy', 'accuracy_low', 'accuracy_high')))})"
            for _, row in sure.head(3).iterrows()
        ]
        gain = of_row(sure.iloc[0], ("gain", "gain_low", "gain_high"))
        return (
            f"Layers surely tell {listed(told)}; the largest gain over the word's most frequent "
            f"label, the input and shuffled weights is {points(gain, '.0f')}."
        )

    def measures(self) -> Sequence[Measure]:
        """Accuracy and selectivity of each task by layer."""
        found = []
        table = self.tables["layers"]
        for task, rows in table[table["layer"] >= 0].groupby("task", sort=False):
            title = PROBED[str(task)].title
            above = rows["accuracy"] - rows["accuracy"].min()
            found.append(
                Measure.of_column(
                    rows.assign(place=above / (above.max() or 1.0)),
                    "place",
                    name=f"{task}-place",
                    title=f"Between the worst layer and the best: {title}",
                    unit="% of the way from the worst layer to the best",
                    scale=100.0,
                    reading="100: no layer tells it better.",
                )
            )
            for column, words, high in (
                ("accuracy", "Right answers of a probe", "High: the layer's states tell it."),
                (
                    "selectivity",
                    "Right answers of a probe, beyond its control task",
                    "High: the probe reads it off the states and does not learn words by heart.",
                ),
            ):
                found.append(
                    Measure.of_column(
                        rows,
                        column,
                        name=f"{task}-{column}",
                        title=f"{words}: {title}",
                        unit="% of words" if column == "accuracy" else "points (% of words)",
                        bounds=(f"{column}_low", f"{column}_high"),
                        scale=100.0,
                        middle=None if column == "accuracy" else 0.0,
                        reading=high,
                    )
                )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Tasks × layers, by accuracy and by selectivity; gains of the best layers."""
        by_name = {m.name: m for m in self.measures()}
        table = self.tables["tasks"]
        sure = table[table["gain_low"] > 0]
        shown = {"place": sure if len(sure) else table, "selectivity": table}
        found = [
            drawings.rows(
                column,
                [by_name[f"{task}-{column}"] for task in shown[column]["task"]],
                self.about,
                title=title,
                reading=reading,
                labels=[PROBED[str(task)].title for task in shown[column]["task"]],
            )
            for column, title, reading in (
                (
                    "place",
                    "Which layers tell it best",
                    "Each row has its own worst and best layer; tasks that no layer surely tells "
                    "better than words alone do are left out, if there are others.",
                ),
                (
                    "selectivity",
                    "What probes read off each layer, beyond their control tasks",
                    "Control tasks give each word a label at random: what is left is not learnt "
                    "by heart. White: no more than the control task.",
                ),
            )
        ]
        return [
            *found,
            Drawing(
                "tasks",
                self._tasks,
                "For each task the share of right answers at its best layer, and the smallest "
                "gain over the word's most frequent label, the input and shuffled weights. The "
                "layer was picked on one half of the test sentences and scored on the other; "
                "intervals hold for all tasks together.",
            ),
        ]

    def _tasks(self) -> Figure:
        rows = self.tables["tasks"]
        return interval_dots(
            [
                Dots.of_columns("right (%)", rows, "accuracy"),
                Dots.of_columns("gain", rows, "gain", level=0.0),
            ],
            [PROBED[str(task)].title for task in rows["task"]],
            title=f"What the best layer tells\n{self.about}",
            note="Gain: points over words alone, the input and shuffled weights, the smallest.",
        )


@dataclass(frozen=True)
class EdgeProbes(Resampled):
    """Which layers tell a word's part of speech, its relations, its place in the tree?

    Method: a small classifier (a probe) is trained on the state of a word after each layer, or on
    those of two words and their product, and scored on sentences that did not train it (of every
    ten, two are scored and one decides when training stops and how large weights may be). Beside
    each stands a control task, in which every word type has one label at random: `selectivity` is
    what the probe gets beyond it. The bits that labels take when probes trained on growing portions
    code the next portion say how easily the answer is read off. The word's most frequent label, the
    input of the first layer, and the same model with its weights in random order are baselines;
    the best layer counts only if it beats all of them. Parents are those of the dependency tree.
    Probes of all layers and tasks are trained together.

    Source: Tenney et al. (2019) and Liu et al. (2019) for the tasks, Hewitt and Liang (2019) for
    control tasks, Voita and Titov (2020) for bits. Limits: what a probe reads off need not be used
    by the model. Words that are cut off or have no piece of their own are left out, and counted.
    Answers that no training sentence has count as wrong.
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "words"}))
    result_type: ClassVar[type[Result]] = EdgeProbesResult
    fewest: ClassVar[int] = 20

    tasks: tuple[str, ...] = parameter((), "Tasks such as pos or arc; all that are annotated.")
    probe: str = parameter(
        "linear", "Linear probes, or with 64 hidden units.", choices=("linear", "hidden")
    )
    pooling: str = parameter(
        "mean",
        "The state of a word: that of its first piece, its last, or the mean.",
        choices=("first", "last", "mean"),
    )

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Refuse tasks that are not known or not annotated."""
        from bertology.annotated.words import require_offsets

        super().check(encoder, corpus)
        require_offsets(encoder)
        for task in self.tasks:
            if task not in PROBED:
                raise UnknownNameError("task", task, list(PROBED))
        if corpus is not None:
            if not self._asked(corpus):
                raise CapabilityError(
                    f"{corpus.name!r} annotates nothing that probes could be asked.",
                    hint="Give a corpus with parts of speech, tags or trees, such as ud-ewt.",
                )
            for task in self.tasks:
                if missing := sorted(PROBED[task].fields - set(map(str, corpus.fields))):
                    raise CapabilityError(
                        f"The task {task!r} needs {', '.join(missing)}, which {corpus.name!r} does "
                        "not have."
                    )

    def _asked(self, corpus: Corpus) -> list[ProbedTask]:
        """The tasks given, or all that the corpus annotates."""
        has = set(map(str, corpus.fields))
        names = self.tasks or [name for name in PROBED if PROBED[name].fields <= has]
        return [PROBED[name] for name in names]

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Words and pairs of words, of the model and of its shuffled weights."""
        kinds = {task.pairs for task in self._asked(corpus)}
        return [
            kind + suffix for kind, pairs in _KINDS.items() if pairs in kinds
            for suffix in ("", SHUFFLED)
        ]  # fmt: skip

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The examples that are read; training counts as much again."""
        return 2 * len(self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Right answers on test sentences by task and layer, and the bits of labels."""
        import xarray as xr

        from bertology.annotated.probe_questions import questions_of
        from bertology.annotated.states import word_states
        from bertology.model.weight_noise import shuffled_copy
        from bertology.train.probes.battery import EPOCHS, probed

        shown, shuffled = self.shown(corpus), part.endswith(SHUFFLED)
        pairs = _KINDS[part.removesuffix(SHUFFLED)]
        reader = shuffled_copy(encoder, seed=self.seed) if shuffled else encoder
        states = word_states(
            reader,
            shown,
            pooling=self.pooling,
            folder=context.states,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )
        tasks = [task for task in self._asked(corpus) if task.pairs == pairs]
        asked = questions_of(shown, states, tasks, seed=self.seed, every=bool(self.tasks))
        done = 0

        def advance(epochs: int) -> None:
            nonlocal done
            before, done = done, done + epochs
            context.advance(len(shown) * done // EPOCHS - len(shown) * before // EPOCHS)

        found = probed(
            states,
            asked.units,
            asked.examples,
            asked.questions,
            asked.split,
            hidden=_HIDDEN if self.probe == "hidden" else 0,
            whole=not shuffled,
            seed=self.seed,
            device=encoder.device,
            advance=advance,
        )
        by_example = ("example", "task", "layer")
        return xr.Dataset(
            {
                "hits": (by_example, asked.of_examples(found.hits)),
                "control": (by_example, asked.of_examples(found.control)),
                "frequent": (("example", "task"), asked.frequent),
                "counts": (("example", "task"), asked.counts),
                "code": (("task", "layer"), found.code),
                "trained": (("task", "about"), asked.trained),
            },
            coords={
                "task": [question.name for question in asked.questions],
                "layer": [INPUT, *range(encoder.shape.layers)],
                "about": ["labels", "classes", "unseen"],
            },
            attrs={"missing": states.missing},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Accuracy, selectivity and bits by layer; gains of the best layers."""
        import pandas as pd

        whole = [part for name, part in sorted(measured.items()) if not name.endswith(SHUFFLED)]
        layers = [int(layer) for layer in whole[0]["layer"].to_numpy()]
        seen = [
            TaskScores(part, measured[f"{name}{SHUFFLED}"], task)
            for name, part in sorted(measured.items())
            if not name.endswith(SHUFFLED)
            for task in range(part.sizes["task"])
        ]
        order = [*PROBED]
        seen = sorted(
            (one for one in seen if (one.counts > 0).sum() >= _FEWEST),
            key=lambda one: order.index(one.name),
        )
        if not seen:
            raise DataError(
                f"No task is asked in {_FEWEST} test sentences or more.",
                hint="Give more text with --limit; two sentences of ten are scored.",
            )
        names = [one.name for one in seen]
        n = max(len(one.counts) for one in seen)
        right = rows_of_tasks([(one.hits, one.counts) for one in seen])
        beyond = rows_of_tasks([(one.hits - one.control, one.counts) for one in seen])
        accuracy = self.means(right, within=(0, 1), reach=1.0, families=2)
        selectivity = self.means(beyond, within=(-1, 1), reach=1.0, families=2)
        bits = np.stack([one.code / max(one.labels, 1) for one in seen])
        known = np.array([np.log2(one.classes) for one in seen])[:, None]
        table = labelled_table(
            {"task": names, "layer": layers},
            {
                "n": accuracy.n,
                **with_bounds("accuracy", accuracy, p=False),
                "control": accuracy.value - selectivity.value,
                **with_bounds("selectivity", selectivity),
                "shuffled": np.stack([one.share(one.shuffled) for one in seen]),
                "bits": bits,
                "compression": known / np.where(bits > 0, bits, np.nan),
            },
        )
        tasks = pd.DataFrame([self._task(one, layers, len(seen)) for one in seen])
        by_name = {one.name: one for one in seen}
        return self.result(
            provenance,
            {"layers": table, "tasks": tasks},
            evidence=self._evidence(by_name),
            reasons={"": "not judged: the corpus does not annotate it, or in too few sentences"},
            facts={"examples": n, "missing": int(whole[0].attrs["missing"])},
        )

    def _task(self, one: TaskScores, layers: Sequence[int], families: int) -> dict[str, object]:
        """The best layer of a task, cross-fitted, beside its baselines."""
        best, picked = one.best()
        score = self.means(
            per_item(picked, one.counts)[None], within=(0, 1), reach=1.0, families=families
        )
        gain = least_gain(
            [picked - base for base in one.baselines()],
            one.counts,
            level=self.level,
            families=families,
        )
        return {
            "task": one.name,
            "n": int(score.n[0]),
            "layer": layers[best + 1],
            "accuracy": score.value[0],
            "accuracy_low": score.simultaneous_low[0],
            "accuracy_high": score.simultaneous_high[0],
            "frequent": one.share(one.frequent[:, None])[0],
            "input": one.share(one.hits)[0],
            "shuffled": one.share(one.shuffled).max(),
            "gain": gain.value,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "classes": one.classes,
            "labels": one.labels,
            "unseen": one.unseen,
        }

    def _evidence(self, of: Mapping[str, TaskScores]) -> dict[str, Estimate | None]:
        """Gains of each task; what distance in the tree costs; where syntax is told best."""
        found: dict[str, Estimate | None] = {}
        for name, one in of.items():
            _, picked = one.best()
            gains = [picked - base for base in one.baselines()]
            found[f"{name.replace('-', '_')}_gain"] = least_gain(
                gains, one.counts, level=self.level
            )
        if {"parent", "great-grandparent"} <= set(of):
            found["distant_parent_gain"] = self._distance(of["parent"], of["great-grandparent"])
        for name in _SYNTAX:
            if name in of:
                found["middle_over_ends"] = self._middle(of[name])
                break
        return found

    def _distance(self, near: TaskScores, far: TaskScores) -> Estimate | None:
        """By how much less the best layer gains over frequent labels for the far ancestor."""
        rows = [
            per_item(one.best()[1] - one.frequent, one.counts) for one in (far, near)
        ]  # both over the same test sentences
        both = np.isfinite(rows[0]) & np.isfinite(rows[1])
        found = self.means((rows[0] - rows[1])[both][None], within=(-2, 2), reach=1.0).estimate(0)
        return None if found is None else found.counting("sentences")

    def _middle(self, one: TaskScores) -> Estimate:
        """The middle third of the layers less the first and the last third, whichever is more."""
        hits = one.hits[:, 1:].astype(np.float64)
        third = max(1, hits.shape[1] // 3)
        first, last = hits[:, :third].mean(1), hits[:, -third:].mean(1)
        middle = hits[:, third : hits.shape[1] - third] if hits.shape[1] > 2 else hits
        gains = [middle.mean(1) - end for end in (first, last)]
        return least_gain(gains, one.counts, level=self.level)
