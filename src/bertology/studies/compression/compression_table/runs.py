"""Models of a table of compression: made once, kept where they are timed, and what they answer."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from bertology.arrays import Floats
from bertology.drafts import write_whole
from bertology.errors import JobError
from bertology.studies.compression.compression_table.rows import SMALL, TEACHER, Row
from bertology.studies.designs.task_trials import BARS
from bertology.studies.designs.trials import Reach

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.compress.compressing import CompressJob
    from bertology.train.compress.settings import CompressSettings
    from bertology.train.distil.teacher import Teacher
    from bertology.train.history import Step
    from bertology.train.tuning import TuningJob

SIZES = (1, 32)  # texts in a batch whose speed is told
_MODELS, _COMPRESSED = "models", "compressed"
_NUMBERS = ("bytes", "parameters", "nonzero")
# The teacher that was used last, by the model it was fine-tuned from: its answers are kept with it.
_LAST: WeakKeyDictionary[Any, tuple[str, Encoder, Teacher]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Made:
    """A model, and what it took."""

    encoder: Encoder
    place: Path  # of all that was made for it, to be deleted when nobody needs it
    folder: Path  # that holds the model
    bytes: int
    seconds: float
    epochs: int

    def on(self, device: str) -> Encoder:
        """The model on a device; on another one it is opened again."""
        from bertology.model.encoder import Encoder

        if self.encoder.device.type == device.partition(":")[0]:
            return self.encoder
        found = Encoder.load(str(self.folder), head="classification", device=device)
        tokens = self.encoder.tokenizer if found.tokenizer is None else found.tokenizer
        return Encoder(found.model, tokens, head="classification", name=self.encoder.name)

    def numbers(self) -> dict[str, float]:
        """Its size in bytes on the disk, in parameters, and without those that are zero."""
        from bertology.model.compressed.forms import nonzero_parameters, parameters

        model = self.encoder.model
        told = self.bytes, parameters(model), nonzero_parameters(model)
        return dict(zip(_NUMBERS, map(float, told), strict=True))


@dataclass(frozen=True)
class Told:
    """What is told of a model, which needs it no more: its answers, its size, and what it took."""

    predictions: list[float]
    """What it says of each example; a constant answer where a training diverged."""
    numbers: dict[str, float]
    """NaN where there is no model."""
    diverged: bool = False

    def write(self, place: Path) -> None:
        """Write it whole or not at all."""
        write_whole(place, json.dumps(asdict(self)))

    @classmethod
    def read(cls, place: Path) -> Told | None:
        """What was written, if there is anything that can be read."""
        try:
            return cls(**json.loads(place.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None


@dataclass(frozen=True)
class TableRun:
    """All models of one seed: how they are made, and where they are kept."""

    encoder: Encoder  # before fine-tuning
    train: Corpus
    corpus: Corpus
    settings: CompressSettings
    tuning: Callable[[Encoder], TuningJob]
    """How a model is fine-tuned as it is."""
    folder: Path

    def make(self, row: Row, reach: Reach = lambda done: None) -> Made:
        """The model of a row; one that is there is found, and so is what its first methods made."""
        if row.kind in (TEACHER, SMALL):
            base = self.encoder if row.kind == TEACHER else self._small(row.text)
            return self._tuned(base, reach)
        from bertology.train.compress.compressing import made_smaller
        from bertology.train.compress.measuring import bytes_on

        job = self.job(row)
        place = self._place(job)
        earlier = [self._place(job, number) for number in range(len(job.methods) - 1, 0, -1)]
        with _held(place):
            found, model, steps = made_smaller(place, job, begun=earlier, watch=_watch(reach))
        seconds, epochs = (sum(step[name] for step in steps) for name in ("seconds", "epochs"))
        return Made(found, place, model, bytes_on(model), float(seconds), int(epochs))

    def job(self, row: Row) -> CompressJob:
        """What is done to the teacher."""
        from bertology.train.compress import read_methods
        from bertology.train.compress.compressing import CompressJob

        original, answers = self._teacher()
        methods = read_methods(row.methods)
        return CompressJob(
            original, self.train, self.corpus, methods, self.settings, self.encoder, answers
        )

    def _teacher(self) -> tuple[Encoder, Teacher]:
        """The fine-tuned model, made once for all rows of a seed, with the answers it gave."""
        from bertology.train.distil.teacher import Teacher

        known = _LAST.get(self.encoder)
        identity = self.tuning(self.encoder).identity
        if known is None or known[0] != identity:
            found = self._tuned(self.encoder, lambda done: None).encoder
            known = identity, found, Teacher(found.model)
            _LAST[self.encoder] = known
        return known[1:]

    def _small(self, name: str) -> Encoder:
        from bertology.model.encoder import Encoder

        return Encoder.load(name, device=str(self.encoder.device))

    def _tuned(self, base: Encoder, reach: Reach) -> Made:
        from bertology.model.encoder import Encoder
        from bertology.train.compress.measuring import bytes_on
        from bertology.train.tuning import make_tuned

        job = self.tuning(base)
        place = self.folder / _MODELS / job.identity
        with _held(place):
            record = make_tuned(
                place, job, progress=lambda step: reach((BARS - 1) * step.done // step.total)
            )
        found = Encoder.load(str(place), head="classification", device=str(self.encoder.device))
        seconds = float(record.get("seconds", 0.0))
        return Made(found, place, place, bytes_on(place), seconds, job.settings.epochs)

    def _place(self, job: CompressJob, methods: int | None = None) -> Path:
        """Where the model after so many of its methods is kept; after all if not said."""
        return self.folder / _COMPRESSED / job.identity(job.methods[:methods])

    def told(self, row: Row, reach: Reach = lambda done: None, *, keep: bool = True) -> Told:
        """What is told of a row's model. It is made once: what is told is kept beside it.

        Models of all seeds would fill a disk, so that one whose row does not say `keep` is deleted.
        A compressed model whose training diverges answers as a constant does, and counts as failed:
        one row must not cost the table.
        """
        if row.kind in (TEACHER, SMALL):
            try:
                return self._look(self.make(row, reach))
            except JobError as error:
                problem = f"Row {row.name!r}, seed {self.settings.seed}: {error.problem}"
                raise JobError(problem, hint=error.hint) from error
        place = self._place(self.job(row))
        found = Told.read(_noted(place))
        if found is None:
            try:
                found = self._look(self.make(row, reach))
            except JobError:  # the loss is no longer a number
                numbers = dict.fromkeys((*_NUMBERS, "seconds", "epochs"), math.nan)
                found = Told(self._constant().tolist(), numbers, diverged=True)
            found.write(_noted(place))
        if not keep or found.diverged:
            shutil.rmtree(place, ignore_errors=True)
        return found

    def diverged(self, row: Row) -> bool:
        """Whether it is known that there is no model of this row."""
        if row.kind in (TEACHER, SMALL):
            return False
        found = Told.read(_noted(self._place(self.job(row))))
        return found is not None and found.diverged

    def _look(self, made: Made) -> Told:
        from bertology.train.answers import answer, encode_for
        from bertology.train.encoded import task_of

        rows = encode_for(made.encoder, self.corpus)
        said = answer(made.encoder, rows, task_of(self.corpus)).predictions
        there = np.isfinite(said)
        spent = {"seconds": made.seconds, "epochs": float(made.epochs)}
        told = np.where(there, said, self._constant()).tolist()
        return Told(told, {**made.numbers(), **spent}, diverged=not there.all())

    def _constant(self) -> Floats:
        from bertology.train.evaluate import constant_answer

        return np.full(len(self.corpus), constant_answer(self.train))


def _noted(place: Path) -> Path:
    """Where it is kept what a model says, also when the model is gone."""
    return place.with_suffix(".json")


@contextmanager
def _held(place: Path) -> Iterator[None]:
    """One process at a time makes a model; others wait for it, and then find it."""
    try:
        import fcntl
    except ImportError:  # not on every system; a run in one process needs none
        yield
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f"{place.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass
class _Line:
    """Tells the progress bar; how many trainings a row has is not known, so each is worth less."""

    reach: Reach
    begun: Iterator[int]
    before: int | None = None  # known when it begins: stages before it are shown by other lines

    def step(self, step: Step) -> None:
        if self.before is None:
            self.before = next(self.begun)
        self.reach(int((BARS - 2) * (1 - 1 / (1 + self.before + step.done / step.total))))

    def stop(self) -> None:
        """Nothing is left on the screen."""


def _watch(reach: Reach) -> Any:
    from bertology.train.compress.work import CompressWatch

    begun = count()
    return CompressWatch(training=lambda name, epochs: _Line(reach, begun))


@dataclass(frozen=True)
class Timed:
    """How models are timed."""

    places: tuple[str, ...] = ("cpu", "gpu")
    rounds: int = 7
    threads: int = 2


def timings(
    run: TableRun, teacher: Row, rows: Sequence[Row], how: Timed, reach: Reach
) -> xr.Dataset:
    """Seconds of each row's model, and of the teacher in turns with it, by device and batch size.

    The teacher itself is timed against another copy of it, which tells what is noise. Of a model
    whose training diverged there are no times.
    """
    import xarray as xr

    from bertology.train.answers import encode_for
    from bertology.train.speed import timed_rounds

    original, devices = run.make(teacher), _devices(run.encoder, how.places)
    spent = np.full((len(rows) + 1, len(devices), len(SIZES), 2, how.rounds), math.nan)
    for at, row in enumerate([teacher, *rows]):
        if run.diverged(row):
            continue
        both = original, run.make(row)
        encoded = [encode_for(one.encoder, run.corpus) for one in both]
        for where, device in enumerate(devices):
            with _threads(how.threads):
                pairs = [(one.on(device), texts) for one, texts in zip(both, encoded, strict=True)]
                for size_at, size in enumerate(SIZES):
                    _, seconds = timed_rounds(pairs, size=size, rounds=how.rounds)
                    spent[at, where, size_at] = seconds
        reach(BARS * (at + 1) // (len(rows) + 1))
    return xr.Dataset(
        {"spent": (("row", "device", "size", "model", "round"), spent)},
        {
            "row": [teacher.name, *(row.name for row in rows)],
            "device": list(devices.values()),
            "size": list(SIZES),
            "model": ["teacher", "own"],
        },
        {"threads": how.threads},
    )


def _devices(encoder: Encoder, places: Sequence[str]) -> dict[str, str]:
    """Where models are timed, and what it is called: on the CPU, and on the model's own GPU."""
    import torch

    found = {"cpu": "cpu"} if "cpu" in places else {}
    if "gpu" in places and encoder.device.type == "cuda":
        found[str(encoder.device)] = torch.cuda.get_device_name(encoder.device)
    return found


@contextmanager
def _threads(wanted: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
