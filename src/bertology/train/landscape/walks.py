"""Fine-tuning as a way through the space of weights: where it begins, passes, and ends.

Ends of plain runs are the fine-tuned models that all studies share. Where the way itself is wanted,
the weights after each epoch are kept too. A *twin* begins with the same weights and sees the
examples in another order: with it, a start has two ends.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import nn

from bertology.drafts import alone_with, draft_folder, put_in_place
from bertology.train.encoded import task_of
from bertology.train.finetune import finetune
from bertology.train.history import Step
from bertology.train.iterative_pruning import tuned_encoder
from bertology.train.landscape.terrain import Weights, copied
from bertology.train.memory import Memory
from bertology.train.protocols import Classifier
from bertology.train.recorded import gains_by_recording
from bertology.train.starts import begin
from bertology.train.tuning import TuningJob

_WALKS, _EPOCHS, _UNFINISHED = "walks", "-epochs", "-unfinished"
Tell = Callable[[float], None]


@dataclass(frozen=True)
class Walk:
    """A run whose weights are kept after each epoch."""

    job: TuningJob
    order: int | None = None
    """The seed of the order of examples and of dropout, where it is not that of the weights."""
    last: bool = False
    """Keep the end only."""

    @property
    def identity(self) -> str:
        """A hash of what decides the way."""
        asked = {"tuning": self.job.identity, "order": self.order, "last": self.last}
        return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def end_of(job: TuningJob, folder: Path | None, *, tell: Tell = lambda done: None) -> Weights:
    """Those of the fine-tuned model, from `folder` if it is there; trained into it if not."""
    with _alone(folder, job.identity):
        made = tuned_encoder(job, folder, progress=lambda step: tell(step.done / step.total))
    return copied(_module(made.model))


def walked(walk: Walk, folder: Path | None, *, tell: Tell = lambda done: None) -> list[Weights]:
    """The weights after each epoch, the end last; from `folder` if they are there."""
    first = -1 if walk.last else 0
    if folder is None:
        return _train(walk, None, tell)[first:]
    place = folder / _WALKS / walk.identity
    with _alone(folder, walk.identity):
        if not place.is_dir():
            passed = _train(walk, place, tell)
            with draft_folder(place) as draft:
                for number, weights in list(enumerate(passed, 1))[first:]:
                    save_file({n: w.contiguous() for n, w in weights.items()}, _file(draft, number))
                put_in_place(draft, place)
        # What was kept for a run that was stopped
        for ending in (_EPOCHS, _UNFINISHED):
            shutil.rmtree(_beside(place, ending), ignore_errors=True)
    device = str(walk.job.encoder.device)
    found = sorted(place.glob("*.safetensors"))
    return [load_file(path, device=device) for path in found]


def _train(walk: Walk, place: Path | None, tell: Tell) -> list[Weights]:
    """Fine-tune, and keep what each epoch left; a run that was stopped goes on after the last."""
    job = walk.job
    settings = job.settings if walk.order is None else replace(job.settings, seed=walk.order)
    model = begin(job.encoder, task_of(job.train), job.start, seed=job.settings.seed)
    device = str(job.encoder.device)
    passed: dict[int, Weights] = {}
    memory = unfinished = None
    if place is not None:
        memory = Memory(_beside(place, _UNFINISHED), walk.identity)
        unfinished = _beside(place, _EPOCHS)
        unfinished.mkdir(parents=True, exist_ok=True)

    def keep(step: Step) -> None:
        tell(step.done / step.total)
        if step.epoch is None:
            return
        passed[step.epoch.number] = copied(_module(model))
        if unfinished is not None:
            # Before the memory counts the epoch: one that is counted has its file.
            draft = unfinished / "draft"
            save_file({n: w.contiguous() for n, w in passed[step.epoch.number].items()}, draft)
            draft.replace(_file(unfinished, step.epoch.number))

    recorded = settings.recorded or gains_by_recording(model)
    finetune(
        model,
        job.encoder.tokenizer,
        job.train,
        job.validation,
        settings=replace(settings, recorded=recorded),
        progress=keep,
        memory=memory,
    )
    for number in range(1, settings.epochs + 1):
        if number not in passed:
            assert unfinished is not None
            passed[number] = load_file(_file(unfinished, number), device=device)
    return [passed[number] for number in sorted(passed)]


def _file(folder: Path, epoch: int) -> Path:
    return folder / f"epoch-{epoch:03d}.safetensors"


def _beside(place: Path, ending: str) -> Path:
    return place.with_name(place.name + ending)


@contextmanager
def _alone(folder: Path | None, identity: str) -> Iterator[None]:
    """Parts that need the same model wait for the one that makes it."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with alone_with(folder / f".{identity}.lock"):
        yield


def _module(model: Classifier) -> nn.Module:
    assert isinstance(model, nn.Module)
    return model
