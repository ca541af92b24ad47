"""Iterative pruning: fine-tune, then take away a little at a time as long as the score is kept.

This is how Prasanna, Rogers and Rumshisky (2020) find "good" subnetworks, by the size of weights
(`Magnitude`) or by the importance of heads and MLPs (`Importance`):

    job = PruningJob(TuningJob(encoder, learn, decide, STARTS["pretrained"], settings),
                     report=corpus, metric="accuracy", method=Magnitude())
    found = prune(job, folder=context.trained)     # Pruning: mask, steps, learnt
    found.mask.digest; found.steps[-1].score

Three sets of examples: a model learns from one, another decides how far it is pruned, a third
reports the score of each step and decides nothing (`split_deciding` makes the first two).

In a `folder`, the fine-tuned model is kept in `models/IDENTITY` and the pruning in
`prunings/IDENTITY`: whoever asks for the same gets it without any training. After each step the
state is written whole, so that a process that is killed loses the step it was in, and the one that
goes on ends with the same mask, bit by bit.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bertology.data.corpus import Corpus
from bertology.drafts import draft_folder, mend, put_in_place
from bertology.errors import DataError, ParameterError, StoreError
from bertology.metrics import find_metric
from bertology.model.encoder import Encoder
from bertology.model.nested_masks import NestedParts, NestedWeights
from bertology.model.part_masks import (
    PartImportances,
    PartMask,
    part_importances,
    parts_gated,
)
from bertology.model.weight_masks import WeightMask, weights_held_at_zero, weights_removed
from bertology.model.weight_ranks import THRESHOLDS, without_smallest
from bertology.plain_files import read_json
from bertology.results.comparison import beats_constant_answer
from bertology.train.answers import Answers, answer, match_of
from bertology.train.encoded import encode, head_for, learnable, task_of
from bertology.train.evaluate import baseline
from bertology.train.fit import row_limit
from bertology.train.history import Step as TrainingStep
from bertology.train.protocols import Classifier
from bertology.train.token_rows import Encoded
from bertology.train.tuning import TuningJob, make_tuned, tune

_MODELS, _PRUNINGS = "models", "prunings"
_FEWEST = 20  # examples that decide
_LARGEST_SHARE = 5  # one of so many training examples may decide
_BEYOND = 3  # steps that are tried after the last kept one: the one that falls, and two more
_STORED = 2  # what is kept of a pruning; 2: the masks of all steps, and answers that decide
Tell = Callable[[float], None]
"""Is told which share of the work is done, about."""
Mask = WeightMask | PartMask
Masks = NestedWeights | NestedParts
_STEPS, _MASK, _WEIGHTS = "steps.json", "mask.safetensors", "weights.safetensors"
_PLANE = "plane-{}.safetensors"


@dataclass(frozen=True)
class Magnitude:
    """The smallest weights go (`model/weight_masks.py` says of which matrices)."""

    share: float = 0.1  # of what is left, in each step
    threshold: str = "global"  # or "matrix"
    rewound: bool = False
    """After each step, train again from the first weights without those that are gone."""

    def __post_init__(self) -> None:
        _check_share("share", self.share)
        if self.threshold not in THRESHOLDS:
            must = f"be {' or '.join(THRESHOLDS)}"
            raise ParameterError("threshold", "Magnitude", must, self.threshold)


@dataclass(frozen=True)
class Importance:
    """The least important heads and MLPs go (`model/part_masks.py`)."""

    share: float = 0.1  # of all heads, in each step; at least one
    mlps: int = 1  # in each step
    by_layer: bool = True  # importances of heads are divided by their length in each layer
    examples: int | None = 2000  # training examples that tell importances, at most; None for all

    def __post_init__(self) -> None:
        _check_share("share", self.share)


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ParameterError(name, "prune", "be between 0 and 1", value)


@dataclass(frozen=True)
class PruningJob:
    """Everything that decides which parts of a model stay."""

    tuning: TuningJob  # its validation data decide how far the model is pruned
    report: Corpus
    metric: str  # one of the task's metrics: the score that is kept
    method: Magnitude | Importance = field(default_factory=Magnitude)
    keep: float = 0.9  # share of the whole model's score
    batch_tokens: int = 4096  # does not change what is found

    def __post_init__(self) -> None:
        _check_share("keep", self.keep)

    @property
    def identity(self) -> str:
        """A hash of the job; names, paths and devices are left out."""
        asked = {
            "tuning": self.tuning.identity,
            "report": self.report.fingerprint,
            "metric": self.metric,
            "method": [type(self.method).__name__, asdict(self.method)],
            "keep": self.keep,
            "stored": _STORED,
        }
        return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Pruning:
    """What is left, and how it came to that."""

    mask: Mask
    """The last mask whose score on the deciding data was kept."""
    steps: tuple[PruneStep, ...]
    """The whole model first, then those that were kept, the one that fell below, and two more.

    The data that decide are a sample: with others, pruning might have ended a step or two later.
    """
    kept: tuple[PruneStep, ...]
    """The steps whose score was kept; the last of them is that of the mask."""
    floor: float
    """The score that had to be kept."""
    learnt: bool
    """Whether the whole model surely beats a constant answer; if not, nothing was pruned."""
    masks: Masks
    """Of all steps: where several models are compared, one that all of them kept is taken."""
    importances: PartImportances | None = None
    """Of heads and MLPs in the whole model, where they are what is pruned."""


def split_deciding(
    train: Corpus, report: Corpus, *, deciding: int = 500, seed: int = 0
) -> tuple[Corpus, Corpus]:
    """Training data in two: what is learnt from, and what decides (at most a fifth of it).

    No text of the data that report is in either.
    """
    unseen = {e.texts for e in report}
    usable = [e for e in train if e.texts not in unseen]
    random.Random(seed).shuffle(usable)
    size = min(deciding, len(usable) // _LARGEST_SHARE)
    if size < _FEWEST:
        raise DataError(
            f"{len(usable)} training examples of {train.name!r} can be used (those that are also "
            f"scored are left out); at least {_FEWEST * _LARGEST_SHARE} are needed, since a fifth "
            "is set aside to decide by, such as when to stop or what to prune.",
            hint="Learn from more examples (--train-limit), or name other data (--train).",
        )
    parts = (usable[size:], usable[:size])
    # They cannot be loaded again, but where other data of the same folder lie is known.
    origin = {name: place for name, place in train.origin.items() if name == "root"}
    learn, decide = (replace(train, examples=p, origin=origin, drawn_from=None) for p in parts)
    return learn, decide


def tuned_encoder(
    job: TuningJob,
    folder: Path | None,
    *,
    progress: Callable[[TrainingStep], None] = lambda step: None,
) -> Encoder:
    """The fine-tuned model of a job, from `folder` if it is there; trained into it if not."""
    head = head_for(learnable(job.train))
    if folder is None:
        model, _ = tune(job, progress=progress)
        return Encoder(model, job.encoder.tokenizer, head=head, name=job.encoder.name)
    place = folder / _MODELS / job.identity
    make_tuned(place, job, progress=progress)
    made = Encoder.load(str(place), head=head, device=str(job.encoder.device))
    return Encoder(made.model, job.encoder.tokenizer, head=head, name=job.encoder.name)


def prune(
    job: PruningJob, *, folder: Path | None = None, tell: Tell = lambda done: None
) -> Pruning:
    """Prune until the score falls below what must be kept, and two steps more, or nothing is left.

    What must be kept is `keep` times the whole model's score, but at least halfway between a
    constant answer and the whole model: where most examples have one label, a model that gives
    nothing else may have 90 % of the score.
    """
    state = PruningState(
        None if folder is None else folder / _PRUNINGS / job.identity, job.identity
    )
    found = state.read()
    if found is not None and found.finished:
        tell(1.0)
        return _concluded(found)
    course = _course(job, folder, tell)
    if found is None:
        found = course.begin()
        state.write(found, course.weights())
    else:
        course.take(found, state.weights())
    while not found.finished:
        found = course.step(found)
        state.write(found, course.weights())
        tell(_done(found))
    return _concluded(found)


def _concluded(found: Kept) -> Pruning:
    return Pruning(
        found.mask,
        tuple(found.steps),
        tuple(found.kept),
        found.floor,
        found.learnt,
        found.masks,
        found.importances,
    )


def _done(found: Kept) -> float:
    """About how much is done: most models are pruned in ten to twenty steps."""
    return 1.0 if found.finished else 1 - 0.7 * 0.93 ** len(found.steps)


class _Course(Protocol):
    """How one method goes on."""

    def begin(self) -> Kept: ...
    def take(self, found: Kept, weights: dict[str, torch.Tensor]) -> None: ...
    def step(self, found: Kept) -> Kept: ...
    def weights(self) -> dict[str, torch.Tensor]: ...


def _course(job: PruningJob, folder: Path | None, tell: Tell) -> _Course:
    whole = tuned_encoder(
        job.tuning, folder, progress=lambda step: tell(0.3 * step.done / step.total)
    )
    if isinstance(job.method, Importance):
        return _ByImportance(job, job.method, whole)
    return _ByMagnitude(job, job.method, whole)


@dataclass
class _Judged:
    """A fine-tuned model, and the data that decide and report."""

    job: PruningJob
    whole: Encoder

    @cached_property
    def decide(self) -> Encoded:
        return self._encoded(self.job.tuning.validation)

    @cached_property
    def report(self) -> Encoded:
        return self._encoded(self.job.report)

    def _encoded(self, corpus: Corpus) -> Encoded:
        model, tokenizer = self.whole.model, self.whole.tokenizer
        return encode(
            corpus, tokenizer, row_limit(model, tokenizer, self.job.tuning.settings.max_length)
        )

    def answers(self, encoder: Encoder, encoded: Encoded) -> Answers:
        task = task_of(self.job.report)
        return answer(encoder, encoded, task, batch_tokens=self.job.batch_tokens)

    def _score(self, given: Answers) -> float:
        return find_metric(self.job.metric).score(given.predictions, given.labels)

    def judged(self, encoder: Encoder, left: dict[str, int]) -> PruneStep:
        """The scores of a model as it is now."""
        decided, reported = (self.answers(encoder, of) for of in (self.decide, self.report))
        said = decided.predictions.tolist()
        return PruneStep(left, self._score(decided), self._score(reported), said)

    def first(self, masks: Masks, left: dict[str, int]) -> Kept:
        """The whole model, and what must be kept of its score."""
        job = self.job
        decided = self.answers(self.whole, self.decide)
        step = self.judged(self.whole, left)
        constant = baseline(job.tuning.train, job.tuning.validation)[job.metric]
        learnt = step.score > constant and beats_constant_answer(
            decided.predictions,
            decided.labels,
            classes=decided.task.kind != "regression",
            metric=job.metric,
        )
        floor = max(job.keep * step.score, (step.score + max(constant, 0.0)) / 2)
        return Kept(masks, [step], floor, learnt=learnt, finished=not learnt)


class _ByMagnitude(_Judged):
    def __init__(self, job: PruningJob, method: Magnitude, whole: Encoder) -> None:
        super().__init__(job, whole)
        self._method, self._now = method, whole

    def begin(self) -> Kept:
        mask = WeightMask.full(self.whole.model)
        return self.first(NestedWeights.begin(mask), {"weights": mask.kept})

    def take(self, found: Kept, weights: dict[str, torch.Tensor]) -> None:
        if self._method.rewound and len(found.steps) > 1:
            self._now.model.load_state_dict(weights)

    def weights(self) -> dict[str, torch.Tensor]:
        """What the next step ranks; without rewinding it is the fine-tuned model, always."""
        return self._now.model.state_dict() if self._method.rewound else {}

    def step(self, found: Kept) -> Kept:
        mask = found.tried
        assert isinstance(mask, WeightMask)
        method = self._method
        less = without_smallest(
            self._now.model, mask, share=method.share, threshold=method.threshold
        )
        left = {"weights": less.kept}
        if method.rewound:
            model, _ = tune(self.job.tuning, held=partial(_held, mask=less))
            trained = Encoder(model, self.whole.tokenizer, head="classification")
            judged = self.judged(trained, left)
            self._now = trained
        else:
            with weights_removed(self.whole.model, less):
                judged = self.judged(self.whole, left)
        # Where each step costs a training, the one that falls is the last.
        beyond = 1 if method.rewound else _BEYOND
        return found.after(judged, less, empty=not left["weights"], beyond=beyond)


class _ByImportance(_Judged):
    def __init__(self, job: PruningJob, method: Importance, whole: Encoder) -> None:
        super().__init__(job, whole)
        self._method = method
        learn = job.tuning.train[: method.examples]
        order = match_of(whole, task_of(learn)).order
        classes = task_of(learn).kind != "regression"
        self._texts = learn.texts
        self._targets = [order[int(x)] if classes else x for x in learn.labels]

    def begin(self) -> Kept:
        mask = PartMask.full(self.whole)
        first = self.first(NestedParts.begin(mask), _parts(mask))
        return replace(first, importances=self._importances(mask))

    def take(self, found: Kept, weights: dict[str, torch.Tensor]) -> None:
        """Nothing but the mask changes."""

    def weights(self) -> dict[str, torch.Tensor]:
        return {}

    def step(self, found: Kept) -> Kept:
        mask = found.tried
        assert isinstance(mask, PartMask)
        method = self._method
        known = found.importances if len(found.steps) == 1 else None
        important = known or self._importances(mask)
        heads = max(1, round(method.share * mask.heads.size))
        less = mask.without_least(important, heads=heads, mlps=method.mlps)
        with parts_gated(self.whole, less):
            judged = self.judged(self.whole, _parts(less))
        return found.after(judged, less, empty=not less, beyond=_BEYOND)

    def _importances(self, mask: PartMask) -> PartImportances:
        return part_importances(
            self.whole,
            self._texts,
            self._targets,
            mask=mask,
            by_layer=self._method.by_layer,
            tokens_per_batch=self.job.batch_tokens,
        )


def _held(model: Classifier, mask: WeightMask) -> AbstractContextManager[None]:
    assert isinstance(model, torch.nn.Module)
    return weights_held_at_zero(model, mask)


def _parts(mask: PartMask) -> dict[str, int]:
    return {"heads": int(np.count_nonzero(mask.heads)), "mlps": int(np.count_nonzero(mask.mlps))}


@dataclass(frozen=True)
class PruneStep:
    """A mask that was tried."""

    left: dict[str, int]  # how many weights, or heads and MLPs, are left
    score: float  # of the task's main metric, on the data that decide
    reported: float  # and on the data that report
    answers: list[float]  # to the examples that decide: classes, or numbers


@dataclass(frozen=True)
class Kept:
    """A pruning between two steps."""

    masks: Masks  # of all steps, the whole model's first
    steps: list[PruneStep]
    floor: float
    learnt: bool
    finished: bool
    importances: PartImportances | None = None  # in the whole model, where parts are pruned

    @property
    def kept(self) -> list[PruneStep]:
        """The steps up to the first whose score was not kept; the whole model at least."""
        return [self.steps[0], *takewhile(lambda s: s.score >= self.floor, self.steps[1:])]

    @property
    def mask(self) -> Mask:
        """The last one whose score was kept."""
        return self.masks.at(len(self.kept) - 1)

    @property
    def tried(self) -> Mask:
        """The last one of all."""
        return self.masks.at(len(self.steps) - 1)

    def after(self, step: PruneStep, mask: Mask, *, empty: bool, beyond: int) -> Kept:
        """With one more step; the last one is empty, or so many `beyond` those that were kept."""
        more = replace(self, masks=_then(self.masks, mask), steps=[*self.steps, step])
        return replace(more, finished=empty or len(more.steps) - len(more.kept) >= beyond)


@dataclass(frozen=True)
class PruningState:
    """A folder for one pruning, which is known by its `identity`; without a folder, nothing."""

    folder: Path | None
    identity: str

    def read(self) -> Kept | None:
        """What was kept last; None where nothing was."""
        if self.folder is None:
            return None
        mend(self.folder)
        path = self.folder / _STEPS
        if not path.is_file():
            return None
        try:
            known = read_json(path, error=StoreError)
            if known["identity"] != self.identity:
                raise ValueError("it is of another pruning")
            steps = [PruneStep(**step) for step in known["steps"]]
            return Kept(
                self._masks(known["parts"], len(steps)),
                steps,
                float(known["floor"]),
                learnt=bool(known["learnt"]),
                finished=bool(known["finished"]),
                importances=_importances_of(known["importances"]),
            )
        except (StoreError, KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"The pruning in {self.folder} cannot be read: {error}.",
                hint="Delete that folder to prune again.",
            ) from error

    def _masks(self, parts: dict[str, list[list[bool]]] | None, steps: int) -> Masks:
        assert self.folder is not None
        if parts is not None:
            return NestedParts(np.array(parts["heads"], bool), np.array(parts["mlps"], bool))
        planes = [
            WeightMask.load(self.folder / _PLANE.format(at))
            for at in range((steps - 1).bit_length())
        ]
        return NestedWeights.of(planes, WeightMask.load(self.folder / _MASK), steps)

    def weights(self) -> dict[str, Tensor]:
        """The weights that the next step ranks, where they were kept."""
        from safetensors.torch import load_file

        path = None if self.folder is None else self.folder / _WEIGHTS
        return load_file(path) if path is not None and path.is_file() else {}

    def write(self, kept: Kept, weights: dict[str, Tensor]) -> None:
        """Keep a state; the one before stays until this one is whole."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        if self.folder is None:
            return
        masks = kept.masks
        known = {
            "identity": self.identity,
            "steps": [asdict(step) for step in kept.steps],
            "floor": kept.floor,
            "learnt": kept.learnt,
            "finished": kept.finished,
            "parts": _listed(masks) if isinstance(masks, NestedParts) else None,
            "importances": _listed(kept.importances),
        }
        try:
            with draft_folder(self.folder) as draft:
                if isinstance(masks, NestedWeights):
                    mask = kept.mask
                    assert isinstance(mask, WeightMask)
                    mask.save(draft / _MASK)
                    for at, plane in enumerate(masks.planes):
                        plane.save(draft / _PLANE.format(at))
                if weights and not kept.finished:
                    whole = {n: w.detach().cpu().clone() for n, w in weights.items()}
                    save_file(whole, draft / _WEIGHTS)
                (draft / _STEPS).write_text(json.dumps(known) + "\n", encoding="utf-8")
                put_in_place(draft, self.folder)
        except (OSError, SafetensorError) as error:  # the latter is raised for a full disk
            raise StoreError(
                f"The pruning cannot be written to {self.folder}: "
                f"{getattr(error, 'strerror', None) or error}.",
                hint="Make room on the disk; the same command goes on after the last step.",
            ) from error

    def forget(self) -> None:
        """Delete it."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _then(masks: Masks, mask: Mask) -> Masks:
    if isinstance(masks, NestedWeights):
        assert isinstance(mask, WeightMask)
        return masks.then(mask)
    assert isinstance(mask, PartMask)
    return masks.then(mask)


def _listed(of: NestedParts | PartImportances | None) -> dict[str, object] | None:
    return None if of is None else {"heads": of.heads.tolist(), "mlps": of.mlps.tolist()}


def _importances_of(kept: dict[str, list[float]] | None) -> PartImportances | None:
    if kept is None:
        return None
    return PartImportances(np.array(kept["heads"], float), np.array(kept["mlps"], float))
