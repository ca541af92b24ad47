"""Studies that ask probes about the words of a corpus, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.word_labels import COUNTED, ProbedTask
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.parameters import parameter, pooling_of
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.probe_scores import TaskScores, rows_of_tasks
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import bounded, labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.annotated.probe_questions import ProbeQuestions
    from bertology.annotated.states import States
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


_LOST = ("cut", "partly", "unseen")


class ProbingResult(Result):
    """What probes read off the states after each layer.

    Table `layers`: for each task and layer (-1 is what enters the first one) the share of right
    answers on sentences that did not train, that of the control task, `selectivity` (their
    difference), `shuffled` (of the same model with its weights in random order), the bits that a
    label takes (`bits`, by online coding) and `compression` (against a code that knows nothing);
    `selectivity_sd` and `bits_sd` are standard deviations over seeds, where there are several;
    `tasks`: the best layer, picked on one half of the test sentences and scored on the other,
    against the word's most frequent label, the input and shuffled weights. Bounds hold for all rows
    together. Column `title` of `tasks` says in words what was asked. The last columns count what
    trained and what was left out; facts have their sums.
    """

    strongest: ClassVar[Mapping[str, str]] = {"tasks": "gain", "layers": "selectivity"}

    @property
    def answer(self) -> str:
        """The tasks that some layer surely tells better than words alone, and where best."""
        tasks = self.tables["tasks"]
        sure = tasks[tasks["gain_low"] > 0].sort_values("gain", ascending=False)
        also = f" Not all could be asked: {left}." if (left := self.left_out()) else ""
        if alone := str(self.facts.get("one_word", "")):
            also += f" Spans of one word are as with means: {alone}."
        if sure.empty:
            return (
                f"{NOTHING_SURE}: no layer surely tells more than the words' most frequent label, "
                f"the input and shuffled weights do.{also}"
            )
        told = [
            f"{row['title']} (layer {int(row['layer'])}, "
            f"{percent(of_row(row, ('accuracy', 'accuracy_low', 'accuracy_high')))})"
            for _, row in sure.head(3).iterrows()
        ]
        gain = of_row(sure.iloc[0], ("gain", "gain_low", "gain_high"))
        return (
            f"Layers surely tell {listed(told)}; the largest gain over the words' most frequent "
            f"label, the input and shuffled weights is {points(gain, '.0f')}.{also}"
        )

    def left_out(self, *, all_counts: bool = False) -> str:
        """What could not be asked or answered, in words; with `all_counts` also what is rare."""
        shown = [n for n in COUNTED if n not in ("labels", "classes")] if all_counts else _LOST
        told = [
            f"{_one(n, COUNTED[name])}" for name in shown if (n := int(self.facts.get(name, 0)))
        ]
        if missing := int(self.facts["missing"]):
            told = [_one(missing, "words without a state"), *told]
        if unasked := str(self.facts.get("left_out", "")):
            told.append(f"{unasked} (in too few texts, or with one answer)")
        return ", ".join(told)

    @property
    def titles(self) -> Mapping[str, str]:
        """What the tasks ask, by name."""
        rows = self.tables["tasks"]
        return dict(zip(rows["task"].astype(str), rows["title"].astype(str), strict=True))

    def measures(self) -> Sequence[Measure]:
        """Accuracy and selectivity of each task by layer."""
        found = []
        for task, rows in self.by_task():
            found += [
                *self.told(task, rows),
                Measure.of_column(
                    rows,
                    "selectivity",
                    name=f"{task}-selectivity",
                    title=f"Right answers of a probe, beyond its control task: {self.titles[task]}",
                    unit="points (% of questions)",
                    scale=100.0,
                    middle=0.0,
                    reading="High: the probe reads it off the states and does not learn words by "
                    "heart.",
                ),
            ]
        return found

    def over_training(self) -> Sequence[Tracked]:
        """For each task what the best layer gains over its baselines, or tells; and all layers."""
        evidence, found = self.evidence(), []
        for task, title in self.titles.items():
            name, gain = f"{task}-accuracy", f"{task.replace('-', '_')}_gain"
            if gain in evidence:
                label = f"what the best layer tells beyond its baselines ({title})"
                found.append(Tracked(gain, label, name, scale=100.0, unit="points", gain=True))
            else:
                label = f"right answers at the best layer ({title})"
                found.append(Tracked(name, label, name, at="max", unit="points"))
        return found

    def by_task(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The rows of each task, by layer; without the input."""
        table = self.tables["layers"]
        for task, rows in table[table["layer"] >= 0].groupby("task", sort=False):
            yield str(task), rows

    def told(
        self,
        task: str,
        rows: pd.DataFrame,
        *,
        unit: str = "% of questions",
        reading: str = "High: the layer's states tell it.",
    ) -> list[Measure]:
        """Right answers of a task by layer: between the worst layer and the best, and plain."""
        title, above = self.titles[task], rows["accuracy"] - rows["accuracy"].min()
        return [
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
                unit=unit,
                scale=100.0,
                reading=reading,
            ),
        ]

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
                labels=list(shown[column]["title"]),
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
            self.best_layers(
                "For each task the share of right answers at its best layer, and the "
                "smallest gain over the words' most frequent label, the input and shuffled "
                "weights. The layer was picked on one half of the test sentences and scored on the "
                "other; intervals hold for all tasks together."
                + self._pooled()
                + (f" Counted: {left}." if (left := self.left_out(all_counts=True)) else ""),
            ),
        ]

    def best_layers(self, caption: str) -> Drawing:
        """What the best layer of each task tells, and gains."""
        rows = self.tables["tasks"]
        return drawings.dots(
            "tasks",
            [
                Dots.of_columns("right (%)", rows, "accuracy"),
                Dots.of_columns("gain", rows, "gain", level=0.0),
            ],
            rows["title"],
            self.about,
            title="What the best layer tells",
            caption=caption,
            note="Gain: points over words alone, the input and shuffled weights, the smallest.",
        )

    def _pooled(self) -> str:
        """How spans became one state, where it was not by the mean."""
        if "one_word" not in self.facts:
            return ""
        alone = str(self.facts["one_word"])
        return " Each probe learnt how much the words of a span count" + (
            f"; spans of one word leave nothing to learn ({alone})." if alone else "."
        )


def _one(n: int, what: str) -> str:
    """`3 answers …`, and `1 answer …`."""
    first, rest = what.split(" ", 1)
    if n == 1:
        first = first.removesuffix("s") if first != "properties" else "property"
    return f"{n} {first} {rest}"


INPUT = -1  # as a layer: what enters the first one
SHUFFLED = "-shuffled"
HIDDEN = 64
_KINDS = {"words": False, "pairs": True}
_FEWEST = 10  # test sentences with a task, for it to be judged


@dataclass(frozen=True)
class Probing(Resampled):
    """Trains probes of tasks on states of all layers, and of a model with shuffled weights.

    A study says which tasks it `offers`, and what it concludes from their scores (`judged`).
    """

    offers: ClassVar[Mapping[str, ProbedTask]] = {}
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "words"}))
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = ProbingResult
    fewest: ClassVar[int] = 20
    controls: ClassVar[bool] = True  # whether there are control tasks, and bits of labels
    copies: ClassVar[int] = 1  # of shuffled weights

    tasks: tuple[str, ...] = parameter((), "Tasks such as pos or arc; all that are annotated.")
    probe: str = parameter(
        "linear", "Linear probes, or with 64 hidden units.", choices=("linear", "hidden")
    )
    pooling: str = pooling_of("a word")

    @property
    def runs(self) -> int:
        """How many seeds control tasks, orders of examples and first weights are drawn by."""
        return 1

    @property
    def attentive(self) -> bool:
        """Whether probes learn which words of a span count; else all count the same."""
        return False

    def judged(self, of: Mapping[str, TaskScores]) -> dict[str, Estimate | None]:
        """What claims are judged on, of the scores by task; the gain of each task is there."""
        return {}

    def unjudged(self) -> str:
        """Why a claim is not judged whose quantity is not there."""
        return "not judged: the corpus does not annotate it, or in too few sentences"

    def besides(
        self,
        states: States,
        asked: ProbeQuestions,
        encoder: Encoder,
        advance: Callable[[int], None],
    ) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """What else is measured of the model, not of shuffled weights; it takes as many steps.

        `advance` is told of all of them: as many as there are examples.
        """
        return {}

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse tasks that are not known or not annotated."""
        super().check(encoder, corpus)
        for task in self.tasks:
            if task not in self.offers:
                raise UnknownNameError("task", task, list(self.offers))
        if not self.asked(corpus):
            wanted = sorted(set().union(*(t.fields for t in self.offers.values())) - {"words"})
            raise CapabilityError(
                f"{corpus.name!r} annotates nothing that probes could be asked.",
                hint=f"Give a corpus with one of {', '.join(wanted)}, such as ud-ewt.",
            )
        for task in self.tasks:
            if missing := sorted(self.offers[task].fields - set(map(str, corpus.fields))):
                raise CapabilityError(
                    f"The task {task!r} needs {', '.join(missing)}, which {corpus.name!r} does "
                    "not have."
                )

    def asked(self, corpus: Corpus) -> list[ProbedTask]:
        """The tasks given, or all that the corpus annotates."""
        has = set(map(str, corpus.fields))
        names = self.tasks or [name for name in self.offers if self.offers[name].fields <= has]
        return [self.offers[name] for name in names]

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Spans and pairs of spans, of the model and of its shuffled weights."""
        kinds = {task.pairs for task in self.asked(corpus)}
        return [
            kind + suffix for kind, pairs in _KINDS.items() if pairs in kinds
            for suffix in ("", *self._shuffled())
        ]  # fmt: skip

    def _shuffled(self) -> list[str]:
        """How parts of copies with shuffled weights end."""
        return [SHUFFLED, *(f"{SHUFFLED}-{copy}" for copy in range(1, self.copies))]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The examples that are read; training counts as much again."""
        return 2 * len(self.shown(corpus))

    def reader(self, encoder: Encoder, part: str) -> Encoder:
        """The model, or one with its weights in random order."""
        from bertology.model.weight_noise import shuffled_copy

        _, shuffled, copy = part.partition(SHUFFLED)
        if not shuffled:
            return encoder
        return shuffled_copy(encoder, seed=self.copies * self.seed + int(copy[1:] or 0))

    def states(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> States:
        """Those of all words that are shown, of the model or of its shuffled weights."""
        from bertology.annotated.states import word_states

        return word_states(
            self.reader(encoder, part),
            self.shown(corpus),
            pooling=self.pooling,
            folder=context.states,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )

    def questions(
        self, encoder: Encoder, corpus: Corpus, part: str, context: Context
    ) -> tuple[States, ProbeQuestions]:
        """What probes see of each layer, and what they are asked about it."""
        from bertology.annotated.probe_questions import questions_of

        shown, tasks = self.shown(corpus), self._tasks_of(part, corpus)
        states = self.states(encoder, corpus, part, context)
        return states, questions_of(
            shown, states, tasks, seed=self.seed, seeds=self.runs, every=bool(self.tasks)
        )

    def _tasks_of(self, part: str, corpus: Corpus) -> list[ProbedTask]:
        pairs = _KINDS[part.partition("-")[0]]
        return [task for task in self.asked(corpus) if task.pairs == pairs]

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Right answers on test sentences by task and layer, and the bits of labels."""
        import xarray as xr

        from bertology.annotated.probe_questions import NoQuestionsError
        from bertology.train.probes.battery import EPOCHS, probed

        shown, variant = self.shown(corpus), part.partition("-")[2]
        try:
            states, asked = self.questions(encoder, corpus, part, context)
        except NoQuestionsError:
            tasks = self._tasks_of(part, corpus)
            if len(tasks) == len(self.asked(corpus)):
                raise
            return _nothing(tasks, encoder.shape.layers)  # the other part may have some
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
            hidden=HIDDEN if self.probe == "hidden" else 0,
            attentive=self.attentive,
            whole=self.controls and not variant,
            seed=self.seed,
            seeds=self.runs,
            device=encoder.device,
            advance=advance,
        )
        more = {} if variant else self.besides(states, asked, encoder, context.advance)
        by_example = ("example", "task", "layer")
        return xr.Dataset(
            {
                **more,
                "hits": (by_example, asked.of_examples(found.hits)),
                "control": (by_example, asked.of_examples(found.control)),
                "frequent": (("example", "task"), asked.frequent),
                "counts": (("example", "task"), asked.counts),
                "code": (("task", "layer"), asked.of_tasks(found.code)),
                "by_seed": (
                    ("task", "run", "layer", "score"),
                    asked.of_tasks(found.by_seed.swapaxes(0, 1)),
                ),
                "about": (("task", "what"), asked.about),
            },
            coords={
                "task": list(asked.tasks),
                "layer": [INPUT, *range(encoder.shape.layers)],
                "what": list(COUNTED),
                "score": ["beyond", "code"],
            },
            attrs={
                "missing": states.missing,
                "left_out": " ".join(
                    t.name for t in self._tasks_of(part, corpus) if t.name not in asked.tasks
                ),
                "one_word": " ".join(asked.one_word),
            },
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Accuracy, selectivity and bits by layer; gains of the best layers."""
        import pandas as pd

        seen, layers, facts = self.scores(measured)
        by_name = {one.name: one for one in seen}
        gains = {
            f"{name.replace('-', '_')}_gain": one.gain(level=self.level)
            for name, one in by_name.items()
        }
        return self.result(
            provenance,
            {
                "layers": self._by_layer(seen, layers),
                "tasks": pd.DataFrame([self.of_task(one, layers, len(seen)) for one in seen]),
            },
            evidence={**gains, **self.judged(by_name)},
            reasons={"": self.unjudged()},
            facts=facts,
        )

    def scores(
        self, measured: Mapping[str, xr.Dataset]
    ) -> tuple[list[TaskScores], list[int], dict[str, object]]:
        """What was measured of tasks that enough test sentences ask; the layers; what was left."""
        parts = {name: measured[name] for name in sorted(measured)}  # each is read once
        whole = {name: of for name, of in parts.items() if name in _KINDS}
        first = next(iter(whole.values()))
        layers = [int(layer) for layer in first["layer"].to_numpy()]
        every = [
            TaskScores(part, [parts[name + suffix] for suffix in self._shuffled()], task)
            for name, part in whole.items()
            for task in range(part.sizes["task"])
        ]
        order = [*self.offers]
        seen = sorted(
            (one for one in every if (one.counts > 0).sum() >= _FEWEST),
            key=lambda one: order.index(one.name),
        )
        if not seen:
            raise DataError(
                f"No task is asked in {_FEWEST} test sentences or more.",
                hint="Give more text with --limit; two sentences of ten are scored.",
            )
        left = [name for part in whole.values() for name in part.attrs["left_out"].split()]
        left += [one.name for one in every if one not in seen]
        facts: dict[str, object] = {
            "examples": max(len(one.counts) for one in seen),
            "missing": max(int(part.attrs["missing"]) for part in whole.values()),
            "left_out": ", ".join(left),
            **{n: sum(one.about[n] for one in every) for n in COUNTED if n != "classes"},
        }
        if self.attentive:
            alone = {name for part in whole.values() for name in part.attrs["one_word"].split()}
            facts["one_word"] = ", ".join(one.name for one in seen if one.name in alone)
        return seen, layers, facts

    def _by_layer(self, seen: Sequence[TaskScores], layers: Sequence[int]) -> pd.DataFrame:
        """The table of tasks × layers; its bounds hold for all rows together."""
        right = rows_of_tasks([(one.hits, one.counts) for one in seen])
        beyond = rows_of_tasks([(one.hits - one.control, one.counts) for one in seen])
        accuracy = self.means(right, within=(0, 1), reach=1.0, families=2)
        selectivity = self.means(beyond, within=(-1, 1), reach=1.0, families=2)
        bits = np.stack([one.code / max(one.about["labels"], 1) for one in seen])
        known = np.array([np.log2(one.about["classes"]) for one in seen])[:, None]
        return labelled_table(
            {"task": [one.name for one in seen], "layer": layers},
            {
                "n": accuracy.n,
                **with_bounds("accuracy", accuracy, p=False),
                "control": accuracy.value - selectivity.value,
                **with_bounds("selectivity", selectivity),
                "shuffled": np.stack([one.best_copy() for one in seen]),
                "selectivity_sd": np.stack([one.spread("beyond") for one in seen]),
                "bits": bits,
                "bits_sd": np.stack([one.spread("code") for one in seen]),
                "compression": known / np.where(bits > 0, bits, np.nan),
            },
        )

    def of_task(self, one: TaskScores, layers: Sequence[int], families: int) -> dict[str, object]:
        """The best layer of a task, cross-fitted, beside its baselines."""
        best, picked = one.best()
        score = self.means(
            per_item(picked, one.counts)[None], within=(0, 1), reach=1.0, families=families
        )
        gain = one.least_gain(level=self.level, families=families)
        return {
            "task": one.name,
            "title": self.offers[one.name].title,
            "n": int(score.n[0]),
            "layer": layers[best + 1],
            "accuracy": score.value[0],
            "accuracy_low": score.simultaneous_low[0],
            "accuracy_high": score.simultaneous_high[0],
            "frequent": one.share(one.frequent[:, None])[0],
            "input": one.share(one.hits)[0],
            "shuffled": one.best_copy().max(),
            **bounded("gain", gain),
            **one.about,
        }


def _nothing(tasks: Sequence[ProbedTask], layers: int) -> xr.Dataset:
    """A part that has nothing to ask."""
    import xarray as xr

    shapes = {
        "hits": ("example", "task", "layer"), "control": ("example", "task", "layer"),
        "frequent": ("example", "task"), "counts": ("example", "task"), "code": ("task", "layer"),
        "about": ("task", "what"),
    }  # fmt: skip
    sizes = {"example": 0, "task": 0, "layer": layers + 1, "what": len(COUNTED)}
    return xr.Dataset(
        {
            name: (axes, np.zeros([sizes[axis] for axis in axes], np.uint16))
            for name, axes in shapes.items()
        },
        coords={
            "task": np.array([], str),
            "layer": [INPUT, *range(layers)],
            "what": list(COUNTED),
        },
        attrs={
            "missing": 0,
            "left_out": " ".join(task.name for task in tasks),
            "one_word": "",
        },
    )
