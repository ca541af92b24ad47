"""Tiny studies in processes that kill themselves in the middle, and write down all they compute.

`test_killed_studies.py` forks them from a process that has only imported this module.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers as hf

import bertology as bt
import planted
import tiny
from bertology.results.store import Store
from bertology.studies.attention.attention_explanations.scores import Explaining
from bertology.train import attention_adversary
from bertology.train.finetune import _Trainer
from bertology.train.landscape import survey
from bertology.train.restoring import Restorer
from bertology.train.ways.masked_lm import MaskedLm

STEP, MASKED, CHANGE = "a step of fine-tuning", "a step of masked LM", "layers set back"
EXPLAINED, RIVAL, POINT = "a batch explained", "a step of the adversary", "a point of a row"


@dataclass(frozen=True)
class Kill:
    """Dies right after something happened so many times in this process."""

    event: str
    at: int
    lost: Mapping[str, int]
    """How much of what this process did is done again by the next one."""


@dataclass(frozen=True)
class Case:
    """What a user runs, given the folder of models and data and one for results; and its kills."""

    run: Callable[[Path, Path], object]
    kills: tuple[Kill, ...]


def _study(name: str, model: str, task: str, **given: Any) -> Callable[[Path, Path], object]:
    def run(folder: Path, place: Path) -> object:
        where = str(folder / task) if (folder / task).is_dir() else task
        return bt.run(
            name, str(folder / model), task=where, store=str(place), workers=1, device="cpu",
            progress=False, **given,
        )  # fmt: skip

    return run


def _finetuned(way: str) -> Callable[[Path, Path], object]:
    def run(folder: Path, place: Path) -> object:
        return bt.finetune(
            str(folder / "reader"), str(folder / "task"), to=place / "model", ways=[way], epochs=2,
            batch_size=16, device="cpu", progress=False,
        )  # fmt: skip

    return run


QUICK: dict[str, Any] = {"epochs": 2, "batch_size": 16, "learning_rate": 1e-3}
CASES = {
    # In the second epoch of plain fine-tuning, and of another way.
    "finetuning-variants": Case(
        _study("finetuning-variants", "base", "task", ways=("early-stopping", "adapters"),
               seeds=1, **QUICK),
        (Kill(STEP, 15, {STEP: 5}), Kill(STEP, 22, {STEP: 4})),
    ),
    # A run is short and its looks are not kept, so one that was begun is done again.
    "seed-variance": Case(
        _study("seed-variance", "base", "small", seeds=2, orders=2, looks=2, **QUICK),
        (Kill(STEP, 9, {STEP: 3}),),
    ),
    # In the second epoch, and when the trained model is asked with a fifth part set back.
    "layer-restoring": Case(
        _study("layer-restoring", "base", "small", seeds=2, **QUICK),
        (Kill(STEP, 5, {STEP: 2}), Kill(CHANGE, 5, {CHANGE: 5})),
    ),
    # In the second epoch of the first run and of a twin, and at the third point of a second row.
    "loss-landscape": Case(
        _study("loss-landscape", "base", "small", seeds=1, sample=16, grid=5, directions=1,
               probes=2, iterations=3, **QUICK),
        (Kill(STEP, 5, {STEP: 2}), Kill(STEP, 3 + 6 + 4, {STEP: 1}), Kill(POINT, 8, {POINT: 1})),
    ),
    # In the second epoch of plain fine-tuning, and of a way that has a helper beside the model.
    "heuristics": Case(
        _study("heuristics", "reader", "grammar-heuristics", limit=240, seeds=1, nli_examples=48,
               nli_limit=20, methods=("hex", "overlap-only"), taught=("subsequence",), **QUICK),
        (Kill(STEP, 5, {STEP: 2}), Kill(STEP, 3 + 4, {STEP: 1})),
    ),
    "paraphrased-reading": Case(
        _study("paraphrased-reading", "reader", "grammar-reading", limit=40, seeds=1,
               examples=48, **QUICK),
        (Kill(STEP, 5, {STEP: 2}), Kill(STEP, 3 + 4, {STEP: 1})),
    ),
    # In the second part, and in the training of the adversary, which is done again as a whole.
    "attention-explanations": Case(
        _study("attention-explanations", "classifier", "small", limit=40, search_steps=5,
               permutations=1, orders=1, path_steps=4, resamples=100, adversary=48),
        (Kill(EXPLAINED, 2, {EXPLAINED: 1}), Kill(RIVAL, 3, {RIVAL: 3})),
    ),
    # A stage without epochs that are kept is done again; one that is finished is not.
    "masked_lm": Case(
        _finetuned("masked_lm:epochs=2,rate=0.001"),
        (Kill(MASKED, 13, {MASKED: 13}), Kill(STEP, 13, {STEP: 3})),
    ),
    # The other task is fine-tuned on as any is: from the last epoch that was finished.
    "intermediate": Case(
        _finetuned("intermediate:task=grammar-paraphrase,limit=48,epochs=2"),
        (Kill(STEP, 5, {STEP: 2}), Kill(STEP, 3 + 13, {STEP: 3})),
    ),
}  # fmt: skip


STAGES = ("masked_lm", "intermediate")
"""Cases that are no studies, but end in a model."""


def prepare(folder: Path) -> None:
    """Save tiny models, and tasks with some and with fewer examples."""
    planted.written(folder / "task", train=160, validation=40)
    planted.written(folder / "small", train=48, validation=40)
    tiny.save_reader(folder / "reader")
    torch.manual_seed(0)
    config = planted.model().config
    config.initializer_range, config.id2label = 0.3, dict(enumerate(planted.TASK.labels))
    models = {"base": tiny.model("bert"), "classifier": hf.BertForSequenceClassification(config)}
    for name, model in models.items():
        model.save_pretrained(folder / name)
        planted.tokenizer().save_pretrained(folder / name)


# In the child ------------------------------------------------------------------------------------


def work(name: str, folder: Path, place: Path, diary: Path, kill: Kill | None) -> None:
    """Run a case; what happens stands in the diary, also when this process is gone."""
    os.setpgid(0, 0)  # nobody else is in the group that is killed
    torch.set_num_threads(1)
    Store._draw = lambda *given: None  # type: ignore[method-assign]  # figures take longest
    survey._EVERY = 0.0  # as if points of surfaces were slow
    with diary.open("a", buffering=1, encoding="utf-8") as lines:
        watch = _Watch(lines.write, kill)
        _watch_all(watch)
        CASES[name].run(folder, place)


@dataclass
class _Watch:
    write: Callable[[str], object]
    kill: Kill | None
    seen: dict[str, int] = field(default_factory=dict)

    def happened(self, event: str, value: Any) -> None:
        """Write down what came of it, to the bit; and die, if it is time."""
        told = value if isinstance(value, str) else float(value).hex()
        self.write(f"{event}: {told}\n")
        self.seen[event] = self.seen.get(event, 0) + 1
        if self.kill is not None and self.seen.get(self.kill.event) == self.kill.at:
            os.killpg(0, signal.SIGKILL)


def _watch_all(watch: _Watch) -> None:
    _after(_Trainer, "_step", lambda loss, given: watch.happened(STEP, loss))
    _after(MaskedLm, "_loss", lambda loss, given: watch.happened(MASKED, loss.detach()))
    _after(Restorer, "changed", lambda found, given: watch.happened(CHANGE, given[1].name))
    _after(Explaining, "permuted", lambda found, given: watch.happened(EXPLAINED, found.sum()))
    plain, pieces = attention_adversary.how_far_apart, survey.in_pieces

    def how_far_apart(*given: Any, gradients: bool = False) -> Any:
        found = plain(*given, gradients=gradients)
        if gradients:  # else it is compared after its training
            watch.happened(RIVAL, found.variation.detach().sum())
        return found

    def in_pieces(compute: Any, *given: Any, **more: Any) -> Any:
        def one(first: int, last: int) -> Any:
            (loss,) = found = compute(first, last)
            watch.happened(POINT, loss)
            return found

        return pieces(one, *given, **more)

    attention_adversary.how_far_apart = how_far_apart
    survey.in_pieces = in_pieces  # type: ignore[assignment]


def _after(kind: type, name: str, tell: Callable[[Any, tuple[Any, ...]], None]) -> None:
    plain = getattr(kind, name)

    def told(*given: Any, **more: Any) -> Any:
        found = plain(*given, **more)
        tell(found, given)
        return found

    setattr(kind, name, told)
