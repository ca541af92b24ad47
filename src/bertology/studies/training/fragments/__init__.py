"""Fragments: does a model of inference reason by steps, and can it be taught to?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from bertology.errors import InterruptedRunError, ParameterError
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
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
from bertology.studies.training.fragments.results import FragmentsResult, concluded
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
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.studies.designs.trials import Reach
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.lessons import Lessons
    from bertology.train.tuning import TuningJob

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

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """There must be enough to learn from, with labels of inference."""
        from bertology.train.starts import STARTS, begin

        assert corpus is not None
        begin(encoder, self.data(corpus).task, STARTS["pretrained"], seed=0)

    def ingredients(self, corpus: Corpus | None) -> dict[str, str]:
        """The other data: other files under the same names are another study."""
        assert corpus is not None
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
        try:
            whole = room.old_model(
                self._job(room, seed),
                context.trained,
                lambda step: reach(learnt * step.done // step.total),
            )
            if fragment < 0:
                found = self._asked(room, whole)
            else:
                found = self._lesson(room, whole, parted(part), reach)
        except InterruptedRunError:
            raise KeyboardInterrupt from None  # the session knows what is kept
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

        from bertology.train.baselines.bags import bag_of_words
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
