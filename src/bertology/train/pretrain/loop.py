"""Pre-training itself: update after update, saved, measured, and resumed with the same numbers."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from bertology.errors import InterruptedRunError, JobError, StoreError
from bertology.results.provenance import library_versions
from bertology.train.checkpoint import check_folder, save_checkpoint
from bertology.train.fresh import Architecture, fresh_bert, seeded
from bertology.train.optimizers import learning_rate_factor
from bertology.train.pretrain import state
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Phase, Pretraining, Stage
from bertology.train.pretrain.evaluate import check_held_out, held_out
from bertology.train.pretrain.feed import Feed, FeedPosition, Library
from bertology.train.pretrain.log import LogEntry, StepReport, parse_entry
from bertology.train.pretrain.losses import LossOutcome
from bertology.train.pretrain.masking import MaskableVocabulary
from bertology.train.pretrain.network import Network
from bertology.train.pretrain.pairings import find_pairing
from bertology.train.pretrain.passes import Passes, Updates
from bertology.train.pretrain.processes import Processes, StopVote, joined, stoppable
from bertology.train.pretrain.shards import Shards
from bertology.train.pretrain.start import fingerprint, start_from
from bertology.train.pretrain.weights import Weights
from bertology.train.protocols import PretrainingBert, SizedVocabulary, Tokenizer
from bertology.train.records import TrainingRecord

T = TypeVar("T")
_LAYER = re.compile(r"^(.*\bencoder\.layer\.)(\d+)(\..*)$")
_SCHEMA = 1


@dataclass(frozen=True)
class Trained:
    """A finished run."""

    model: PretrainingBert  # float32, in evaluation mode
    tokenizer: Tokenizer
    scores: dict[str, float]  # held-out
    log: list[LogEntry]
    tokens: int
    seconds: float


OnReport = Callable[[StepReport], None]


def pretrain(
    recipe: Pretraining,
    shards: Shards,
    tokenizer: Tokenizer,
    *,
    folder: str | Path | None = None,
    device: str = "auto",
    progress: OnReport = lambda report: None,
    origin: TrainingRecord | None = None,
) -> Trained:
    """Train a BERT by the recipe on the shards.

    With a `folder` everything is kept there: `log.jsonl`, `state/` to continue from,
    `checkpoints/step-…/` for the recipe's milestones and, at the end, `model/`, whose record also
    holds `origin`. The same call continues where a killed one stopped; on a CPU the result is the
    same to the bit. Raises InterruptedRunError after Ctrl-C, when the state is saved.
    """
    with joined(device) as processes, seeded(recipe.seed + processes.rank, processes.device):
        place = None if folder is None else Path(folder)
        run = _Run(recipe, shards, tokenizer, place, processes, progress, origin or {})
        try:
            return run.train()
        finally:
            run.close()


class _Run:
    """Everything that changes while a model is trained."""

    def __init__(
        self,
        recipe: Pretraining,
        shards: Shards,
        tokenizer: Tokenizer,
        folder: Path | None,
        processes: Processes,
        progress: OnReport,
        origin: TrainingRecord,
    ) -> None:
        self.recipe, self.shards, self.tokenizer = recipe, shards, tokenizer
        self.folder, self.processes, self.progress = folder, processes, progress
        self.origin = origin
        self.identity = state.identity(recipe, shards.fingerprint, processes.count)
        self.chance = Chance(recipe.seed)
        library = Library(shards, processes.device, keep=len(recipe.stages))
        self.pieces = MaskableVocabulary.of(shards, processes.device)
        self.feeds = [
            Feed(
                library,
                find_pairing(s.objective.pairing),
                self.chance("feed", i),
                copies=s.objective.masking.copies,
                cuts=s.objective.cuts,
                share=(processes.rank, processes.count),
            )
            for i, s in enumerate(recipe.stages)
        ]
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.log: list[LogEntry] = []
        self.milestones = milestones(recipe.steps, recipe.milestones)
        self.meter = Meter()
        self.layers = 0
        self._build(phase_at(recipe, 0).layers or recipe.model.layers)
        if recipe.start is not None:
            fresh = self.weights.as_dict()
            self.weights.load(start_from(recipe.start, fresh, heads=recipe.model.heads))

    # -- the network ---------------------------------------------------------------------------

    def _build(self, layers: int) -> None:
        recipe, device = self.recipe, self.processes.device
        size = replace(recipe.model, layers=layers)
        labels = len(self.shards.labels)
        model = bert_of(size, self.tokenizer, labels=labels, seed=recipe.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed + 1)  # the heads of losses, alike in all processes
            self.network = Network(model, recipe.stages, recipe.model)
        self.network.to(device).train()
        self.weights = Weights(self.network, _precision(recipe.precision, device))
        self.layers = layers
        quick = recipe.compile if recipe.compile is not None else device.type == "cuda"
        if quick:
            self.network.speed_up()
        record = quick and device.type == "cuda"
        self.passes = Passes(self.network, self.weights, record=record)
        self.updates = Updates(recipe, self.weights, self.processes, record=record)

    def _grow(self, layers: int) -> None:
        """Copy the layers until there are as many, with the optimizer's memory of them."""
        shallow = self.layers
        weights = self.weights.as_dict()
        memory = state.optimizer_memory(self.updates.optimizer, self.weights)
        self._build(layers)
        self.weights.load(grown(weights, layers=shallow, to=layers))
        deeper = {key: grown(values, layers=shallow, to=layers) for key, values in memory.items()}
        state.remember(self.updates.optimizer, self.weights, deeper)

    # -- training ------------------------------------------------------------------------------

    def train(self) -> Trained:
        recipe = self.recipe
        if self.folder is not None:
            check_folder(self.folder / "model")
            self._resume()
        length = phase_at(recipe, 0).length
        check_held_out(recipe.stages, self.shards, length=length, seed=recipe.seed)
        if self.step == 0:
            # The first phase is planned at once anyway; a later one would fail only after hours.
            for late in {p.length for p in recipe.phases} - {length}:
                for feed in self.feeds:
                    feed.check(self._rows(late), late)
        with stoppable() as stopped:
            stop = StopVote(self.processes, stopped)
            self.meter.start(self.processes.device)
            while self.step < recipe.steps:
                phase = phase_at(recipe, self.step)
                if self.layers != (phase.layers or recipe.model.layers):
                    self._grow(phase.layers or recipe.model.layers)
                if self.step == 0 and 0 in self.milestones:
                    self._keep_milestone()
                self._update(phase)
                self._report_and_save()
                if stop():
                    self._save()
                    raise InterruptedRunError(
                        f"Pre-training stopped at step {self.step} of {recipe.steps}"
                        + ("." if self.folder is None else "; everything is saved."),
                        hint=None
                        if self.folder is None
                        else "The same command continues from here.",
                    )
        return self._finish()

    def _update(self, phase: Phase) -> None:
        """One batch in `accumulate` parts, one step of the optimizer."""
        recipe = self.recipe
        stage = stage_at(recipe.stages, self.step, recipe.steps, self.chance)
        count = self.processes.count
        if count > 1:  # seeded by rank and step, so the state of dropout need not be saved
            torch.manual_seed(self.chance("dropout", self.processes.rank, self.step).key)
        rows = self._rows(phase.length)
        self.weights.clear()
        for _ in range(recipe.accumulate):
            batch = self.feeds[stage].next(rows, phase.length)
            view = self.network.see(batch.rows, self.pieces, batch.chance, stage)
            outcomes = self.passes(view, stage, 1 / recipe.accumulate)
            self.tokens += rows * phase.length
            self.meter.add(outcomes, rows * phase.length)
        self.meter.norm = self.updates(recipe.learning_rate * self._factor())
        self.step += 1

    def _rows(self, length: int) -> int:
        """Rows of one part of a batch, over all processes."""
        count, parts = self.processes.count, self.recipe.accumulate
        return max(1, self.recipe.batch_tokens // length // parts // count) * count

    def _factor(self) -> float:
        rise = round(self.recipe.warmup * self.recipe.steps)
        return learning_rate_factor(
            self.step, rise=rise, total=self.recipe.steps, schedule=self.recipe.schedule
        )

    def _report_and_save(self) -> None:
        """Log, evaluate and save, when it is time."""
        recipe, step = self.recipe, self.step
        last = step == recipe.steps
        evaluate = last or step % recipe.evaluate_every == 0
        save = step % recipe.save_every == 0 and not last
        milestone = step in self.milestones
        if not (evaluate or save or milestone or step % recipe.log_every == 0):
            return
        seconds, speed, losses, accuracies, norm = self.meter.read(self.processes.device)
        self.seconds += seconds
        total = sum(losses.values())
        if not math.isfinite(total) or not math.isfinite(norm):
            raise JobError(
                f"Training diverged before step {self.step} of {self.recipe.steps}: "
                f"loss {total}, gradient {norm}.",
                hint=f"Try a learning rate below {self.recipe.learning_rate:g}, or more warm-up.",
            )
        report = StepReport(
            step=self.step,
            total=self.recipe.steps,
            tokens=self.tokens,
            losses=losses,
            accuracies=accuracies,
            learning_rate=float(self.updates.optimizer.param_groups[0]["lr"]),
            grad_norm=norm,
            tokens_per_second=speed,
            seconds=self.seconds,
        )
        if evaluate:
            report = replace(report, scores=self._held_out())
        self._note(report)
        if milestone:
            self._keep_milestone()
        if save:
            self._save()
        self.progress(report)
        self.meter.start(self.processes.device)

    def _held_out(self) -> dict[str, float]:
        with torch.compiler.set_stance("force_eager"):
            return held_out(
                self.network,
                self.shards,
                length=phase_at(self.recipe, 0).length,
                batch_tokens=max(1024, self.recipe.batch_tokens // self.recipe.accumulate),
                seed=self.recipe.seed,
            )

    # -- what is kept --------------------------------------------------------------------------

    def _note(self, report: StepReport) -> None:
        entry = report.as_entry()
        self.log.append(entry)
        if self.folder is None or not self.processes.first:
            return
        with _writing(self.folder / "log.jsonl") as file, file.open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")

    def _save(self) -> None:
        if self.folder is None or not self.processes.first:
            return
        numbers: state.RunNumbers = {
            "identity": self.identity,
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "layers": self.layers,
            "places": [feed.place.as_dict() for feed in self.feeds],
        }
        chance = {"cpu": torch.random.get_rng_state()}
        if self.processes.device.type == "cuda":
            chance["cuda"] = torch.cuda.get_rng_state(self.processes.device)
        memory = state.optimizer_memory(self.updates.optimizer, self.weights)
        weights = self.weights.as_dict()
        state.write(self.folder / "state", state.Snapshot(numbers, weights, memory, chance))

    def _resume(self) -> None:
        assert self.folder is not None
        self.processes.wait()  # the first may still be writing what a stopped run left
        found = state.read(self.folder / "state")
        log = self.folder / "log.jsonl"
        if found is None:
            self.processes.wait()
            if self.processes.first:
                log.unlink(missing_ok=True)  # left by a run that was killed before its first state
            return
        if found.numbers["identity"] != self.identity:
            raise StoreError(
                f"{self.folder} holds a run of another recipe or other text.",
                hint="Choose another folder, or delete this one to start again.",
            )
        if found.numbers["layers"] != self.layers:
            self._build(found.numbers["layers"])
        self.step, self.tokens = found.numbers["step"], found.numbers["tokens"]
        self.seconds = found.numbers["seconds"]
        self.weights.load(found.weights)
        state.remember(self.updates.optimizer, self.weights, found.memory)
        for feed, place in zip(self.feeds, found.numbers["places"], strict=True):
            feed.place = FeedPosition(**place)
        torch.random.set_rng_state(found.chance["cpu"])
        if "cuda" in found.chance and self.processes.device.type == "cuda":
            torch.cuda.set_rng_state(found.chance["cuda"], self.processes.device)
        lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
        self.log = [e for line in lines if (e := parse_entry(line)) and e["step"] <= self.step]
        self.processes.wait()  # all have read before one writes
        if self.processes.first:
            log.write_text("".join(json.dumps(e) + "\n" for e in self.log), encoding="utf-8")

    def _keep_milestone(self) -> None:
        if self.folder is None or not self.processes.first:
            return
        name = f"step-{self.step:08d}"
        save_checkpoint(
            self.folder / "checkpoints" / name,
            self._model(),
            tokenizer_of(self.recipe, self.tokenizer),
            record=self._record(),
        )

    def _model(self) -> PretrainingBert:
        labels = len(self.shards.labels)
        size = replace(self.recipe.model, layers=self.layers)
        return model_of(self.weights.as_dict(), size, self.tokenizer, labels=labels)

    def _record(self, scores: dict[str, float] | None = None) -> dict[str, object]:
        return {
            **run_record(self.recipe, self.shards, self.processes),
            "step": self.step,
            "tokens_seen": self.tokens,
            "seconds": round(self.seconds, 1),
            "scores": scores,
            **self.origin,
        }

    def _finish(self) -> Trained:
        scores = (self.log[-1].get("scores") if self.log else None) or self._held_out()
        model, tokenizer = self._model(), tokenizer_of(self.recipe, self.tokenizer)
        if self.folder is not None and self.processes.first:
            record = self._record(scores)
            save_checkpoint(self.folder / "model", model, tokenizer, record=record)
            self._save()  # so that a finished run is not trained again
        return Trained(model.eval(), tokenizer, scores, self.log, self.tokens, self.seconds)

    def close(self) -> None:
        for feed in self.feeds:
            feed.close()


def _precision(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    return torch.bfloat16 if name == "bfloat16" else torch.float32


@contextmanager
def _writing(file: Path) -> Iterator[Path]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield file
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror or error}.",
            hint="Make room on the disk; the same command continues from the last state.",
        ) from error


def phase_at(recipe: Pretraining, step: int) -> Phase:
    """The phase that the update after `step` others belongs to."""
    ends = [round(share * recipe.steps) for share in accumulate(p.share for p in recipe.phases)]
    ends[-1] = recipe.steps
    return next(
        (p for p, end in zip(recipe.phases, ends, strict=True) if step < end), recipe.phases[-1]
    )


def stage_at(stages: tuple[Stage, ...], step: int, total: int, chance: Chance) -> int:
    """Which stage has its turn: by chance, among those that have joined, by their weights."""
    joined = [i for i, s in enumerate(stages) if s.begins * total <= step]
    if len(joined) == 1:
        return joined[0]
    weights = np.array([stages[i].weight for i in joined])
    draw = np.random.default_rng(abs(chance("stage", step).key))
    return int(draw.choice(joined, p=weights / weights.sum()))


def milestones(steps: int, count: int) -> list[int]:
    """`count` steps, two to a tenfold, counted back from the last; the first is 0."""
    if count == 0:
        return []
    later = {max(1, round(steps * 10 ** (-k / 2))) for k in range(count - 1)}
    return sorted({0, *later})


def grown(values: Mapping[str, T], *, layers: int, to: int) -> dict[str, T]:
    """Values by name for `to` layers from those for `layers`: layer i is a copy of i mod `layers`.

    Progressive stacking (Gong et al., 2019): attention in higher layers resembles that in lower
    ones, so a stack of copies is a better start than random weights, and shallow steps are cheap.
    Serves weights and an optimizer's memory of them alike. A generator beside the model (its
    names begin with `losses.`) stays as deep as it is.
    """
    deeper: dict[str, T] = {}
    for name, value in values.items():
        found = None if name.startswith("losses.") else _LAYER.match(name)
        if found is None:
            deeper[name] = value
            continue
        before, number, after = found.groups()
        for layer in range(int(number), to, layers):
            deeper[f"{before}{layer}{after}"] = value
    return deeper


@dataclass
class Meter:
    """Sums since the last report. They stay on the device: reading one would make it wait."""

    sums: dict[str, Tensor] = field(default_factory=dict)  # loss, updates, correct, count
    tokens: int = 0
    norm: Tensor | None = None
    began: float = 0.0

    def start(self, device: torch.device) -> None:
        """Set all sums to zero and start the clock."""
        self.sums, self.tokens = {}, 0
        _settle(device)
        self.began = time.perf_counter()

    def add(self, outcomes: Mapping[str, LossOutcome], tokens: int) -> None:
        """Add the losses of one part of a batch."""
        self.tokens += tokens
        for name, o in outcomes.items():
            numbers = torch.stack([o.loss.detach().float(), o.correct.float(), o.count.float()])
            numbers = torch.cat([numbers, torch.ones_like(numbers[:1])])
            self.sums[name] = self.sums[name] + numbers if name in self.sums else numbers

    def read(
        self, device: torch.device
    ) -> tuple[float, float, dict[str, float], dict[str, float], float]:
        """Seconds, tokens per second, losses, accuracies, the last norm of the gradient."""
        _settle(device)
        seconds = time.perf_counter() - self.began
        losses, accuracies = {}, {}
        for name, sums in self.sums.items():
            loss, correct, count, updates = sums.tolist()
            losses[name] = loss / updates
            accuracies[name] = correct / max(count, 1)
        norm = float(self.norm) if self.norm is not None else 0.0
        return seconds, self.tokens / max(seconds, 1e-9), losses, accuracies, norm


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def bert_of(
    size: Architecture, tokenizer: SizedVocabulary, *, labels: int = 0, seed: int = 0
) -> PretrainingBert:
    """A fresh BertForPreTraining; `labels` of documents take the place of its segments."""
    return fresh_bert(
        "BertForPreTraining", size, tokenizer, seed=seed, type_vocab_size=max(2, labels)
    )


def model_of(
    weights: Mapping[str, Tensor],
    size: Architecture,
    tokenizer: SizedVocabulary,
    *,
    labels: int = 0,
) -> PretrainingBert:
    """The model with the weights that learn, in float32, apart from the one that is trained."""
    model = bert_of(size, tokenizer, labels=labels)
    prefix = "model."
    own = {n.removeprefix(prefix): w.cpu() for n, w in weights.items() if n.startswith(prefix)}
    model.load_state_dict(own, strict=False)  # tied weights have one name only
    model.tie_weights()
    return model


def tokenizer_of(recipe: Pretraining, tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer; its mask is [UNK] where that is what the model was trained with."""
    if any(s.objective.masking.token == "mask" for s in recipe.stages):
        return tokenizer
    changed = deepcopy(tokenizer)
    changed.mask_token = changed.unk_token
    return changed


def run_record(recipe: Pretraining, shards: Shards, processes: Processes) -> TrainingRecord:
    """What stays the same all through a run."""
    # The hash of the first model, not its path: paths of this machine do not belong in a record.
    started = None if recipe.start is None else fingerprint(recipe.start)
    device = processes.device
    gpu = device.type == "cuda"
    return {
        "schema": _SCHEMA,
        "method": "pretrain",
        "recipe": recipe.as_dict() | {"start": started},
        "text": {
            "fingerprint": shards.fingerprint,
            "tokens": shards.tokens,
            "documents": shards.documents,
            "sentences": shards.sentences,
            "held_out_tokens": shards.held_out_tokens,
            "sources": list(shards.sources),
        },
        "device": torch.cuda.get_device_name(device) if gpu else device.type,
        "processes": processes.count,
        "versions": library_versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
