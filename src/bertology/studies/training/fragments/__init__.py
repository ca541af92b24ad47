"""Fragments: does a model of inference reason by steps, and can it be taught to?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Band, Dots
from bertology.results.answers import NOTHING_SURE, percent, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.tables import bounded
from bertology.studies.designs.task_trials import BARS
from bertology.studies.designs.trials import Trials, reaching
from bertology.studies.study import Context, Needs
from bertology.studies.training.fragments.data import (
    Classroom,
    FragmentData,
    Source,
    found_fragments,
    hypotheses,
    read_data,
)
from bertology.studies.training.fragments.scores import (
    HYPOTHESIS,
    INOCULATED,
    OLD,
    TAUGHT,
    FragmentRuns,
    part_name,
    parted,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.stats import Estimate
    from bertology.studies.designs.trials import Reach
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.lessons import Lessons
    from bertology.train.tuning import TuningJob


MEAN = "all, mean"
NOT_LEARNT = (
    "not judged: the old task was not surely learnt, so there is nothing that could carry over or "
    "be lost"
)
NOT_TAUGHT = (
    "not judged: the fragments were not surely learnt beyond chance, no teaching and what "
    "hypotheses alone tell"
)
ZERO_SHOT_ONLY = "not judged: nothing was taught (all amounts are 0)"
ONE_LABEL = "not judged: no fragment has five examples of every label, so that chance is not known"
NO_STEPS = "not judged: the corpus does not say how many steps a pair takes, or all take as many"
_SCORES = dict.fromkeys(
    (
        "majority", "accuracy", "zero_shot", "hypothesis_only", "taught", "score", "old_score",
    ),
    "%",
)  # fmt: skip
_POINTS = dict.fromkeys(
    ("zero_shot_loss", "taught_gain", "old_loss", "old_loss_without", "per_step"), "points"
)


class FragmentsResult(Result):
    """What a model of inference makes of fragments, before and after it was taught them.

    Table `fragments`: for each fragment and their mean the scores before (zero-shot) and after the
    largest lesson, what the old task loses, and what one step more changes. `curve`: both tasks by
    number of examples taught. `steps`: the score by number of steps. `choices`: which mixture and
    epoch inoculation chose. Scores weigh all labels the same; `accuracy` and `majority` do not.
    """

    lead: ClassVar[int] = 6
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "fragments": {**_SCORES, **_POINTS},
        "curve": {**_SCORES, "old_loss": "points"},
        "steps": {**_SCORES},
        "choices": {"deciding_new": "%", "deciding_old": "%"},
    }

    @property
    def answer(self) -> str:
        """How far it falls short without teaching, and what teaching gains and costs."""
        found, facts = self.evidence(), self.facts
        if "zero_shot_loss" not in found:
            why = self.reasons().get("zero_shot_loss", "nothing was measured")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        before = found["zero_shot_loss"]
        told = (
            f"Without teaching it scores {percent(found['zero_shot_score'], limits=())} on "
            f"fragments, {points(before)} below its old task"
        )
        if "taught_gain" not in found:
            return f"{told} (over {facts['seeds']} seeds)."
        gain = found["taught_gain"]
        surely = "surely gains" if gain.surely_there else "does not surely gain:"
        told += f"; teaching {facts['amount']} examples {surely} {points(gain)}"
        if "old_task_loss" in found:
            told += f", and the old task loses {points(found['old_task_loss'])}"
        return f"{told} (over {facts['seeds']} seeds)."

    def headline(self) -> str:
        """What was learnt, asked and taught."""
        facts = self.facts
        taught = f"at most {facts['amount']} examples taught" if facts["amount"] else "none taught"
        chance = f"chance is {100 / int(facts['classes']):.0f} %"
        return (
            f"{facts['fragments']} fragments ({facts['judged']} with all labels), "
            f"{facts['examples']} pairs; old task {facts['old_task']}, "
            f"{facts['old_size']} examples; {taught}; {facts['seeds']} seeds; {chance}"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Fragments before and after, both tasks by amount, and the trend over steps."""
        labels = "every label weighs the same, so that a constant answer is at the dashed line"
        found = [self._draw_fragments(labels)]
        if len(self.tables["curve"]) > 1:
            found.append(self._draw_curve(labels))
        if self.tables["fragments"]["per_step"].notna().any():
            rows = self.tables["fragments"]
            rows = rows[rows["per_step"].notna()]
            found.append(
                drawings.dots(
                    "steps",
                    [Dots.of_columns("change for each step (points)", rows, "per_step", level=0)],
                    rows["fragment"],
                    self.about,
                    title="Inference steps",
                    caption="One row for each fragment, the last for all: how much the share of "
                    "right answers changes with one inference step more, in points, after the "
                    "largest lesson (without teaching where there was none), within pairs of the "
                    "same label. Left of the dashed line: more steps are harder. Intervals hold "
                    "for all fragments together.",
                    note="Intervals over seeds and examples, for all fragments together.",
                )
            )
        return found

    @property
    def _chance(self) -> float:
        return 100 / int(self.facts["classes"])

    def _draw_fragments(self, labels: str) -> Drawing:
        rows = self.tables["fragments"]
        panels = [Dots.of_columns("zero-shot (%)", rows, "zero_shot", level=self._chance)]
        if int(self.facts["amount"]):
            label, words = f"taught {self.facts['amount']} (%)", "hypothesis_only"
            panels += [
                Dots.of_columns(label, rows, "taught", level=self._chance, bars=words),
                Dots.of_columns("loss of the old task (points)", rows, "old_loss", level=0),
            ]
        return drawings.dots(
            "fragments",
            panels,
            rows["fragment"],
            self.about,
            title="Fragments of logic",
            caption="One row for each fragment, the last for their mean. From left to right, as "
            "far as measured: the score without teaching, the score after the largest lesson with "
            "inoculation (grey bars: a bag of words that sees the hypothesis only), and what the "
            f"old task loses by that. In scores {labels}. Intervals are over seeds and examples, "
            "for all fragments together.",
            note=f"Dashed: chance, {self._chance:.0f} %, or no loss. Grey bars: hypotheses alone.",
        )

    def _draw_curve(self, labels: str) -> Drawing:
        table = self.tables["curve"]
        amounts = sorted(set(table["amount"]))
        bands = []
        for column, method, name in (
            ("score", INOCULATED, "fragments, inoculated"),
            ("score", TAUGHT, "fragments, new examples only"),
            ("old_score", INOCULATED, "old task, inoculated"),
            ("old_score", TAUGHT, "old task, new examples only"),
        ):
            rows = table[table["method"].isin([method, ""])].set_index("amount").loc[amounts]
            bands.append(Band.of_columns(name, rows, column))
        return drawings.curve(
            "curve",
            bands,
            [f"{k}" for k in amounts],
            self.about,
            title="Teaching fragments",
            caption="To the right: how many examples of a fragment were taught. Upwards: the mean "
            "score over fragments, and that of the old task after the lesson, with inoculation "
            "(mixture and epoch chosen by the mean of both tasks) and with new examples only; "
            f"{labels}. Bands are intervals over seeds and examples.",
            label="score (%)",
            xlabel="examples taught",
            level=self._chance,
            note=f"Dotted: chance, {self._chance:.0f} %. Bands: intervals over seeds and examples.",
        )


def concluded(
    runs: FragmentRuns, measured: Mapping[str, xr.Dataset]
) -> tuple[dict[str, pd.DataFrame], dict[str, Estimate | None], dict[str, str]]:
    """Tables, evidence, and reasons why something is not judged."""
    tables = {
        "fragments": _fragments(runs),
        "curve": _curve(runs),
        "steps": _steps(runs),
        "choices": _choices(runs, measured),
    }
    return tables, *_evidence(runs)


def _evidence(runs: FragmentRuns) -> tuple[dict[str, Estimate | None], dict[str, str]]:
    """Over the fragments that have all labels; nothing is said of what was not learnt."""
    judged, most = runs.judged, runs.most
    names = (
        "zero_shot_loss",
        "taught_gain",
        "old_task_loss",
        "inoculation_saves",
        "score_per_step",
    )
    if not judged:
        return {}, dict.fromkeys(names, ONE_LABEL)
    found: dict[str, Estimate | None] = {
        "zero_shot_score": runs.score(runs.zero, runs.weights(judged)),
        "old_task_gain": runs.old_gain(),
    }
    learnt = found["old_task_gain"]
    assert learnt is not None
    if not learnt.low > 0 and runs.seeds > 1:
        return found, dict.fromkeys(names, NOT_LEARNT)
    found["zero_shot_loss"] = runs.zero_shot_loss(judged)
    if not most:
        return found, dict.fromkeys(names[1:], ZERO_SHOT_ONLY)
    gain = found["taught_gain"] = runs.taught_gain(judged, most)
    if not gain.surely_there and runs.seeds > 1:
        return found, dict.fromkeys(names[2:], NOT_TAUGHT)
    found["old_task_loss"] = runs.old_loss(INOCULATED, judged, most)
    found["inoculation_saves"] = runs.saved(judged, most)
    trend = found["score_per_step"] = runs.per_step(runs.new[INOCULATED, most], judged)
    return found, {} if trend else {"score_per_step": NO_STEPS}


def _fragments(runs: FragmentRuns) -> pd.DataFrame:
    """One row for each fragment, and one for the mean of those that are judged."""
    import pandas as pd

    most, tests = runs.most, len(runs.fragments)
    asked = [(name, [at], tests) for at, name in enumerate(runs.fragments)]
    if runs.judged:
        asked.append((MEAN, runs.judged, 1))
    rows = []
    for name, chosen, together in asked:
        here, weights = np.isin(runs.group, chosen), runs.weights(chosen)
        counts = np.unique(runs.labels[here], return_counts=True)[1]
        row: dict[str, object] = {
            "fragment": name,
            "pairs": int(here.sum()),
            "majority": float(counts.max() / here.sum()),
            "accuracy": float(runs.zero[:, here].mean()),
            **bounded("zero_shot", runs.score(runs.zero, weights, together)),
            **bounded("zero_shot_loss", runs.zero_shot_loss(chosen, together)),
        }
        last = runs.zero
        if most:
            last = runs.new[INOCULATED, most]
            row |= {
                "hypothesis_only": runs.score(runs.new[HYPOTHESIS, most], weights).value,
                **bounded("taught", runs.score(last, weights, together)),
                **bounded("taught_gain", runs.taught_gain(chosen, most, together).beyond_all()),
                **bounded("old_loss", runs.old_loss(INOCULATED, chosen, most, together)),
                **bounded("old_loss_without", runs.old_loss(TAUGHT, chosen, most, together)),
            }
        rows.append(row | bounded("per_step", runs.per_step(last, chosen, together)))
    return pd.DataFrame(rows)


def _curve(runs: FragmentRuns) -> pd.DataFrame:
    """Both tasks by amount and method, the mean over fragments."""
    import pandas as pd

    chosen = runs.judged or list(range(len(runs.fragments)))
    weights = runs.weights(chosen)
    first = {
        "amount": 0,
        "method": "",
        **bounded("score", runs.score(runs.zero, weights)),
        **bounded("old_score", runs.score(runs.old, runs.old_weights)),
    }
    rows = [first]
    for amount in runs.amounts:
        for method in (INOCULATED, TAUGHT, HYPOTHESIS):
            row = {
                "amount": amount,
                "method": method,
                **bounded("score", runs.score(runs.new[method, amount], weights)),
            }
            if method != HYPOTHESIS:
                after = runs.old_after(method, chosen, amount)
                row |= bounded("old_score", runs.score(after, runs.old_weights))
                row |= bounded("old_loss", runs.old_loss(method, chosen, amount))
            rows.append(row)
    return pd.DataFrame(rows)


def _steps(runs: FragmentRuns) -> pd.DataFrame:
    """The score by number of steps, before and after the largest lesson."""
    import pandas as pd

    rows = []
    last = runs.new[INOCULATED, runs.most] if runs.most else None
    for at, name in enumerate(runs.fragments):
        own = runs.group == at
        for step in np.unique(runs.steps[own & np.isfinite(runs.steps)]):
            here = own & (runs.steps == step)
            if here.sum() < 2:
                continue
            even = here / here.sum()
            row = {
                "fragment": name,
                "steps": int(step),
                "pairs": int(here.sum()),
                **bounded("zero_shot", runs.score(runs.zero, even)),
            }
            if last is not None:
                row |= bounded("taught", runs.score(last, even))
            rows.append(row)
    columns = ["fragment", "steps", "pairs"]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def _choices(runs: FragmentRuns, measured: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """What inoculation chose in each lesson."""
    import pandas as pd

    rows = []
    for part, found in measured.items():
        fragment, amount, seed = parted(part)
        if fragment >= 0:
            at = int(found["chosen"])
            rows.append(
                {
                    "fragment": runs.fragments[fragment],
                    "amount": amount,
                    "seed": seed,
                    **{name: int(found[name][at]) for name in ("mixture", "epoch")},
                    **{n: float(found[n][at]) for n in ("deciding_new", "deciding_old")},
                }
            )
    columns = ["fragment", "amount", "seed", "mixture", "epoch", "deciding_new", "deciding_old"]
    return pd.DataFrame(rows, columns=columns)


_CLASSROOMS: WeakKeyDictionary[Encoder, tuple[object, Classroom]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Fragments(Trials):
    """Does a model of inference reason by logic, and can it be taught to without forgetting?

    Method: the model is fine-tuned on a task of inference (`nli`, the old task), and then asked the
    fragments of the corpus, without any training on them (zero-shot). Then it is taught each
    fragment by itself from k examples, for each k of `amounts`: once with these examples only, and
    once with inoculation, in which the number of old examples that are mixed in and the epoch are
    chosen by the mean of both tasks' scores on data that decide nothing else. Both tasks are
    scored after each lesson. Beside it stands a bag of words that sees the hypothesis only, and
    learns from the same examples. Seeds draw the examples, their order, and the head. Each
    fragment and each label in it weighs the same, so that any constant answer scores by chance.
    Where the old task or the fragments have two labels, neutral pairs and contradictions count as
    not entailed in both. How accuracy changes with the number of inference steps is the slope
    of a line within fragment and label, for the inoculated model with the largest k. Intervals are
    over seeds and examples together; those of single fragments hold for all of them together.

    Source: Richardson et al. (2020), Probing Natural Language Inference Models through Semantic
    Fragments; the number of steps: Richardson and Sabharwal (2019), Zhou et al. (2020). Limits:
    learning rates are not searched for, as they were there. Pairs with more steps are longer,
    too. Fragments in which one label has fewer than five examples are told, but not judged.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "text_b", "label", "group"}), task=True
    )
    version: ClassVar[int] = 3  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = FragmentsResult
    trains_models: ClassVar[bool] = True

    amounts: tuple[int, ...] = parameter(
        (0, 30, 100, 300, 1000),
        "How many examples of a fragment are taught; 0 is zero-shot, which is always asked.",
    )
    fragments: tuple[str, ...] = parameter((), "Only these fragments; all if not given.")
    nli: str = parameter("grammar-entailment", "The old task: a corpus of inference.")
    nli_split: str = parameter("train", "The split of the old task to learn from.")
    nli_scored: str = parameter("validation", "The split of the old task that is scored.")
    nli_examples: int | None = parameter(
        None, "Learn the old task from so many examples, drawn at random; all if not given.",
        minimum=40,
    )  # fmt: skip
    nli_limit: int = parameter(500, "Score the old task on at most so many examples.", minimum=20)
    mixtures: tuple[int, ...] = parameter(
        (1,), "Old examples for each new one that inoculation tries, besides none."
    )
    deciding: int = parameter(
        100, "Examples of each task that inoculation decides by, and that are not learnt.",
        minimum=20,
    )  # fmt: skip
    epochs: int = parameter(3, "Passes over the old task.", minimum=1)
    lesson_epochs: int = parameter(5, "Passes over the examples of a lesson.", minimum=1)
    updates: int = parameter(
        60, "The fewest updates of a lesson: few examples are seen more often.", minimum=1
    )
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    learning_rate: float | None = parameter(
        None,
        "The highest learning rate. If not given: 2e-5; 1e-4 for models less than 512 wide, 2e-4 "
        "for less than 256.",
        minimum=1e-9,
    )
    max_length: int | None = parameter(None, "Cut texts to so many tokens.", minimum=3)
    train: str = parameter("", "Other data to teach from; if not given, those of the corpus.")
    train_split: str = parameter("train", "The split to teach from.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.amounts or min(self.amounts) < 0 or len(set(self.amounts)) < len(self.amounts):
            must = "be numbers of examples from 0 on, none twice"
            raise ParameterError("amounts", "Fragments", must, list(self.amounts))
        if self.mixtures and min(self.mixtures) < 1:
            must = "be numbers from 1 on (none at all is always tried)"
            raise ParameterError("mixtures", "Fragments", must, list(self.mixtures))
        if len(set(self.fragments)) < len(self.fragments):
            raise ParameterError("fragments", "Fragments", "name none twice", list(self.fragments))

    # Data -----------------------------------------------------------------------------------------

    @property
    def _taught(self) -> list[int]:
        return sorted(k for k in self.amounts if k)

    def data(self, corpus: Corpus) -> FragmentData:
        """All corpora."""
        return read_data(
            corpus,
            Source(self.nli, self.nli_split, self.nli_scored, self.nli_examples, self.nli_limit),
            fragments=self.fragments,
            most=max(self.amounts),
            deciding=self.deciding,
            train=self.train,
            train_split=self.train_split,
        )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """There must be enough to learn from, with labels of inference."""
        from bertology.train.starts import STARTS, begin

        begin(encoder, self.data(corpus).task, STARTS["pretrained"], seed=0)

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The other data: other files under the same names are another study."""
        return {"training_data": _fingerprint(self.data(corpus))}

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those that are learnt from, those that decide, and those that are scored."""
        data = self.data(corpus)
        rest = [*data.pools.values(), *data.deciding.values()]
        read = [data.scored, data.old_train, data.old_deciding, data.old_scored, *rest]
        return [text for one in read for text in one.texts]

    def cut_at(self, encoder: Encoder) -> int | None:
        """What was asked for, or else as many tokens as the model takes."""
        return self.max_length or encoder.max_length

    # Parts ----------------------------------------------------------------------------------------

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """For each seed the old task, then a lesson for each fragment and amount."""
        count = len(found_fragments(corpus, self.fragments))
        return [
            name
            for seed in range(self.seeds)
            for name in (
                f"{OLD}-seed-{seed}",
                *(part_name(f, k, seed) for f in range(count) for k in self._taught),
            )
        ]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Per cent of the run."""
        return BARS

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Learn the old task and be asked everything, or be taught one fragment."""
        fragment, _, seed = parted(part)
        room, reach = self._classroom(encoder, corpus), reaching(context)
        learnt = BARS - 1 if fragment < 0 else 1  # the old model is mostly there already
        whole = room.old_model(
            self._job(room, seed),
            context.trained,
            lambda step: reach(learnt * step.done // step.total),
        )
        if fragment < 0:
            found = self._asked(room, whole)
        else:
            found = self._lesson(room, whole, parted(part), reach)
        reach(BARS)
        return found

    def _classroom(self, encoder: Encoder, corpus: Corpus) -> Classroom:
        """The data in tokens: made once for all parts."""
        key = (self, corpus.fingerprint)
        known = _CLASSROOMS.get(encoder)
        if known is None or known[0] != key:
            known = key, Classroom(self.data(corpus), encoder, self.cut_at(encoder))
            _CLASSROOMS[encoder] = known
        return known[1]

    def _settings(self, encoder: Encoder, seed: int, epochs: int) -> FinetuneSettings:
        from bertology.train.finetune import FinetuneSettings
        from bertology.train.starts import STARTS, default_rate

        rate = self.learning_rate or default_rate(STARTS["pretrained"], encoder.shape.hidden)
        return FinetuneSettings(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=rate,
            seed=seed,
            max_length=self.max_length,
        )

    def _job(self, room: Classroom, seed: int) -> TuningJob:
        from bertology.train.starts import STARTS
        from bertology.train.tuning import TuningJob

        data, settings = room.data, self._settings(room.encoder, seed, self.epochs)
        return TuningJob(
            room.encoder, data.old_train, data.old_deciding, STARTS["pretrained"], settings
        )

    def _asked(self, room: Classroom, whole: Encoder) -> xr.Dataset:
        """What the model says of all fragments and of the old task, before any lesson."""
        import xarray as xr

        from bertology.train.evaluate import predict

        data, names = room.data, room.data.fragments
        group = [names.index(str(e.get("group"))) for e in data.scored]
        steps = [float(e.annotations.get("steps", np.nan)) for e in data.scored]
        return xr.Dataset(
            {
                "said": ("example", predict(whole.model, room.scored, data.task)),
                "old_said": ("old_example", predict(whole.model, room.old_scored, data.task)),
                "labels": ("example", np.asarray(data.scored.labels, float)),
                "old_labels": ("old_example", np.asarray(data.old_scored.labels, float)),
                "group": ("example", np.asarray(group)),
                "steps": ("example", np.asarray(steps)),
            },
            {"fragment": list(names)},
            {
                "classes": len(data.task.labels),
                "old_task": data.old_scored.name,
                "old_size": len(data.old_train),
                "train_fingerprint": _fingerprint(data),
            },
        )

    def _lesson(
        self, room: Classroom, whole: Encoder, lesson: tuple[int, int, int], reach: Reach
    ) -> xr.Dataset:
        """What the model says after a lesson, with and without inoculation."""
        import xarray as xr

        from bertology.train.baselines import bag_of_words
        from bertology.train.lessons import Lesson, teach

        at, amount, seed = lesson
        name = room.data.fragments[at]
        new = room.data.lesson(name, amount, seed)
        found = teach(
            Lesson(
                whole.model,
                room.encoder.tokenizer,
                new,
                room.data.to_mix(seed),
                self._settings(room.encoder, seed, self.lesson_epochs),
                self.updates,
            ),
            room.exam(name),
            mixtures=self.mixtures,
            tell=lambda done: reach(1 + int((BARS - 2) * done)),
        )
        words = bag_of_words(hypotheses(new), hypotheses(room.data.scored_of(name)))
        blank = np.full_like(found.plain.old, np.nan)
        return xr.Dataset(
            {
                "said": (("method", "example"), [found.plain.new, found.chosen.new, words]),
                "old_said": (("method", "old_example"), [found.plain.old, found.chosen.old, blank]),
                **_choice(found),
            },
            {"method": [TAUGHT, INOCULATED, HYPOTHESIS]},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores, losses and the trend over steps."""
        runs = FragmentRuns.read(measured, self.level)
        first = next(found for name, found in measured.items() if parted(name)[0] < 0)
        tables, evidence, reasons = concluded(runs, measured)
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={
                "old_task": first.attrs["old_task"],
                "old_size": int(first.attrs["old_size"]),
                "classes": runs.classes,
                "amount": runs.most,
                "fragments": len(runs.fragments),
                "judged": len(runs.judged),
                "examples": len(runs.labels),
                "old_examples": len(runs.old_labels),
                "seeds": runs.seeds,
            },
        )


def _fingerprint(data: FragmentData) -> str:
    """Of everything that is read beside the corpus."""
    from hashlib import sha256

    read = [data.old_train, data.old_deciding, data.old_scored]
    read += [*data.pools.values(), *data.deciding.values()]
    return sha256(" ".join(one.fingerprint for one in read).encode()).hexdigest()[:16]


def _choice(found: Lessons) -> dict[str, object]:
    """The candidates of inoculation, and which was chosen."""
    rows = found.candidates
    return {
        "mixture": ("candidate", np.array([c.mixture for c in rows])),
        "epoch": ("candidate", np.array([c.epoch for c in rows])),
        "deciding_new": ("candidate", np.array([c.new for c in rows])),
        "deciding_old": ("candidate", np.array([c.old for c in rows])),
        "chosen": found.best,
    }
