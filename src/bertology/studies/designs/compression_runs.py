"""Models of a table of compression: made once, kept where they are timed, and what they answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bertology.studies.designs.compression_rows import SMALL, TEACHER, Row
from bertology.studies.designs.task_trials import BARS
from bertology.studies.designs.trials import Reach

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.compress.compressing import CompressJob
    from bertology.train.compress.work import CompressSettings
    from bertology.train.distil.teacher import Teacher
    from bertology.train.history import Step
    from bertology.train.tuning import TuningJob

__all__ = ["SIZES", "Made", "TableRun", "Timed", "timings"]

SIZES = (1, 32)  # texts in a batch whose speed is told
_MODELS, _COMPRESSED = "models", "compressed"
Floats = NDArray[np.float64]
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

    def numbers(self) -> dict[str, int]:
        """Its size in bytes on the disk, in parameters, and without those that are zero."""
        from bertology.model.compressed.forms import parameters

        weights = parameters(self.encoder.model)
        zeros = sum(int((w == 0).sum()) for w in self.encoder.model.parameters() if w.dim() > 1)
        return {"bytes": self.bytes, "parameters": weights, "nonzero": weights - zeros}


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
        """The model of a row; one that is there is found."""
        if row.kind in (TEACHER, SMALL):
            base = self.encoder if row.kind == TEACHER else self._small(row.text)
            return self._tuned(base, reach)
        from bertology.train.compress.compressing import made_smaller
        from bertology.train.compress.measuring import bytes_on

        job = self.job(row)
        place = self.folder / _COMPRESSED / job.identity(job.methods)
        with _held(place):
            found, model, steps = made_smaller(place, job, watch=_watch(reach))
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

    def answers(self, made: Made) -> Floats:
        """What a model says of each example that is scored."""
        from bertology.train.answers import answer, encode_for
        from bertology.train.encoded import task_of

        rows = encode_for(made.encoder, self.corpus)
        return answer(made.encoder, rows, task_of(self.corpus)).predictions

    def forget(self, row: Row, made: Made) -> None:
        """Delete a compressed model: those of all seeds would fill a disk."""
        if row.kind not in (TEACHER, SMALL):
            shutil.rmtree(made.place, ignore_errors=True)


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

    The teacher itself is timed against another copy of it, which tells what is noise.
    """
    import xarray as xr

    from bertology.train.answers import encode_for
    from bertology.train.speed import timed_rounds

    original, devices = run.make(teacher), _devices(run.encoder, how.places)
    spent = np.zeros((len(rows) + 1, len(devices), len(SIZES), 2, how.rounds))
    for at, row in enumerate([teacher, *rows]):
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
