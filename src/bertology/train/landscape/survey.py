"""The landscape of one run: around its end, on the way there, and to the end of another run.

Losses of many points are computed piece by piece, and those that are known survive a kill:

    losses = in_pieces(compute, len(steps), file)      # compute(i, j): losses of the points i to j

A large model may need minutes for one point, a small one on a GPU a hundredth of a second. So a
piece is one point where points are slow, and else as many as take about a second: reading a loss
waits for the device, and the disk is asked for little.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch

from bertology.arrays import Floats
from bertology.data.corpus import Corpus
from bertology.drafts import write_whole
from bertology.train.encoded import encode_once, task_of
from bertology.train.evaluate import predict, scores
from bertology.train.fit import row_limit
from bertology.train.landscape.curvature import Hessian
from bertology.train.landscape.directions import (
    Plane,
    difference,
    filter_scales,
    length,
    plane_through,
    random_direction,
)
from bertology.train.landscape.places import around_places, share_places, way_places
from bertology.train.landscape.terrain import Terrain, Weights, copied, points_together, standing_at
from bertology.train.landscape.walks import Walk, end_of, walked
from bertology.train.landscape.widths import barrier, measure_widths
from bertology.train.starts import begin
from bertology.train.token_rows import Encoded
from bertology.train.tuning import TuningJob

AROUND, PATH = "around", "path"
PLANES = (AROUND, PATH)
TWIN_ORDER = 10_000  # added to the seed: no run of the study has that order of examples
_PLANE_DIRECTIONS = (900, 901)  # numbers of directions that no width is measured along
_GPU_TOKENS, _CPU_BENT = 32768, 1024  # in one batch; graphs of second derivatives need more room
_GPU_SHARE, _UNIT_BYTES = 8, 520  # of free memory; of a graph, by token, layer and width
MATCHED, MATCHED_LOSS = "matched_", 0.5
"""Measures at one loss for all runs: a share of a constant answer's that trained runs are below."""
_TOLERANCE = 5e-3  # of the largest eigenvalue
_COARSE = 9  # points along a direction, where only the width is wanted
_ROWS = "rows"  # of surfaces, in the folder of trained things: what is known of unfinished ones
Tell = Callable[[float], None]
T = TypeVar("T")
_EVERY = 1.0  # seconds between two writes, about


@dataclass(frozen=True)
class Asked:
    """What is measured of a landscape."""

    sample: int = 512  # training examples
    grid: int = 31  # points along each axis
    reach: float = 0.5  # in sizes of filters, to both sides
    rise: float = 0.25  # of a constant answer's loss
    directions: int = 5
    probes: int = 16
    iterations: int = 20
    eigenvalues: int = 3


def constant_loss(corpus: Corpus) -> float:
    """The loss of the best constant answer: the entropy of the labels, or their variance."""
    labels = np.asarray(corpus.labels, dtype=np.float64)
    if task_of(corpus).kind == "regression":
        return float(labels.var())
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log(shares)).sum())


@dataclass
class Survey:
    """One run of a study, and what is asked of it."""

    job: TuningJob
    asked: Asked
    folder: Path | None = None
    drawn: bool = False
    """Whether its way is wanted, and a twin that begins with the same weights."""
    batch_tokens: int = 4096
    ground: dict[str, Any] = field(default_factory=dict)
    """What was read or made once; the next survey of the same run may be given it."""
    tell: Tell = lambda done: None

    # What is there -----------------------------------------------------------------------------

    def _once(self, name: str, make: Callable[[], T]) -> T:
        if name not in self.ground:
            self.ground[name] = make()
        return cast(T, self.ground[name])

    @property
    def sample(self) -> Corpus:
        """The examples whose loss is measured: of all that are learnt from, drawn by the seed."""
        train = self.job.train
        if len(train) <= self.asked.sample:
            return train
        chosen = random.Random(self.job.settings.seed).sample(range(len(train)), self.asked.sample)
        rows = [train.examples[i] for i in sorted(chosen)]
        return replace(train, examples=rows, origin={}, drawn_from=None)

    @property
    def _model(self) -> torch.nn.Module:
        job = self.job
        begun = partial(begin, job.encoder, task_of(job.train), job.start, seed=job.settings.seed)
        model = self._once("model", begun)
        assert isinstance(model, torch.nn.Module)
        return model

    def _encoded(self, corpus: Corpus) -> Encoded:
        tokenizer = self.job.encoder.tokenizer
        limit = row_limit(self._model, tokenizer, self.job.settings.max_length)  # type: ignore[arg-type]
        return encode_once(corpus, tokenizer, limit)

    def _terrain(self, corpus: Corpus, tokens: int) -> Terrain:
        return Terrain.over(
            self._model,  # type: ignore[arg-type]
            self._encoded(corpus),
            task_of(corpus),
            batch_tokens=tokens,
        )

    @property
    def _on_gpu(self) -> bool:
        return self.job.encoder.device.type == "cuda"

    @property
    def terrain(self) -> Terrain:
        """The training loss."""
        most = max(_GPU_TOKENS, self.batch_tokens) if self._on_gpu else self.batch_tokens
        return self._once("terrain", lambda: self._terrain(self.sample, most))

    @property
    def start(self) -> Weights:
        """The weights before any training; the model is never left anywhere else."""
        return self._once("start", lambda: copied(self._model))

    @property
    def passed(self) -> Sequence[Weights]:
        """The weights after each epoch, or after the last one only."""
        return self._once("passed", self._pass)

    def _pass(self) -> Sequence[Weights]:
        if self.drawn:
            return walked(Walk(self.job), self.folder, tell=self.tell)
        return [end_of(self.job, self.folder, tell=self.tell)]

    @property
    def end(self) -> Weights:
        """The weights after the training."""
        return self.passed[-1]

    @property
    def twin(self) -> Weights:
        """The end of a run from the same start, with the examples in another order."""
        walk = Walk(self.job, self.job.settings.seed + TWIN_ORDER, last=True)
        return self._once("twin", lambda: walked(walk, self.folder, tell=self.tell)[-1])

    # What is measured --------------------------------------------------------------------------

    def run(self) -> dict[str, tuple[tuple[str, ...], Floats]]:
        """Everything that is told of one run, as arrays by name, with their dimensions."""
        asked, end = self.asked, self.end
        constant = constant_loss(self.sample)
        ways = _directions(end, self.job.settings.seed, range(asked.directions))
        wide = measure_widths(
            self.terrain,
            end,
            ways,
            rise=asked.rise * constant,
            reach=asked.reach,
            points=asked.grid,
        )
        alike = self.terrain.softened_to(MATCHED_LOSS * constant, end)
        matched = math.nan
        if alike is not None:
            matched = measure_widths(
                alike, end, ways, rise=asked.rise * constant, reach=asked.reach, points=_COARSE
            ).width
        places = way_places(asked.grid)
        moved = difference(end, self.start)
        to_end = self.terrain.losses(self.start, [moved], places[:, None])
        found: dict[str, tuple[tuple[str, ...], Floats]] = {
            name: ((), np.asarray(value))
            for name, value in {
                "loss": wide.losses[0, asked.grid // 2],
                "constant_loss": constant,
                "width": wide.width,
                f"{MATCHED}width": matched,
                "moved": length(moved) / length(self.start),
            }.items()
        }
        found |= {name: ((), np.asarray(value)) for name, value in self._validated().items()}
        found |= {name: ((), np.asarray(value)) for name, value in self._bent().items()}
        return found | {
            "around_losses": (("direction", "place"), wide.losses),
            "way_losses": (("place",), to_end),
        }

    def _validated(self) -> dict[str, float]:
        """The loss and the scores of the end on the validation data."""
        job, task = self.job, task_of(self.job.validation)
        encoded = self._encoded(job.validation)
        unseen = self._terrain(job.validation, self.batch_tokens).loss(self.end)
        with standing_at(self._model, self.end):
            said = predict(self._model, encoded, task)  # type: ignore[arg-type]
        return {"validation_loss": unseen, **scores(said, encoded.targets, task)}

    def _bent(self) -> dict[str, float]:
        """The curvature at the end in filter-normalised coordinates: as it is, and at one loss."""
        asked, seed = self.asked, self.job.settings.seed
        bent, scales = self._terrain(self.sample, self._bent_tokens), filter_scales(self.end)
        alike = bent.softened_to(MATCHED_LOSS * constant_loss(self.sample), self.end)
        found: dict[str, float] = {}
        for prefix, terrain in (("", bent), (MATCHED, alike)):
            if terrain is None:
                names = ("eigenvalue_1", "eigenvalue_error", "trace", "trace_error")
                found |= {f"{prefix}{name}": math.nan for name in names}
                continue
            with standing_at(self._model, self.end):
                hessian = Hessian(terrain, scales)
                spectrum = hessian.spectrum(
                    iterations=asked.iterations,
                    count=asked.eigenvalues,
                    seed=seed,
                    tolerance=_TOLERANCE,
                )
                traces = hessian.traces(probes=asked.probes, seed=seed)
            largest = [*spectrum.largest, *[math.nan] * asked.eigenvalues][: asked.eigenvalues]
            found |= {f"{prefix}eigenvalue_{i}": v for i, v in enumerate(largest, 1)}
            found[f"{prefix}eigenvalue_error"] = float(spectrum.errors[0])
            found[f"{prefix}lowest"] = spectrum.lowest
            found[f"{prefix}trace"] = float(traces.mean())
            error = traces.std(ddof=1) / math.sqrt(len(traces)) if len(traces) > 1 else math.nan
            found[f"{prefix}trace_error"] = float(error)
        return found

    @property
    def _bent_tokens(self) -> int:
        """In one batch of second derivatives: as many as there is room for."""
        if not self._on_gpu:
            return _CPU_BENT
        free, shape = torch.cuda.mem_get_info(self.job.encoder.device)[0], self.job.encoder.shape
        room = free // (_GPU_SHARE * _UNIT_BYTES * shape.layers * shape.hidden)
        return int(min(max(room, _CPU_BENT), _GPU_TOKENS))

    @property
    def plane(self) -> Plane:
        """Through the start, the end, and the end of the twin."""
        return self._once("plane", lambda: plane_through(self.start, self.end, self.twin))

    def way(self) -> dict[str, Floats]:
        """Where the run and its twin pass through the plane, and their losses there."""
        stops = [self.start, *self.passed, self.twin]
        at = np.array([self.plane.place(weights) for weights in stops])
        losses = [self.terrain.loss(weights) for weights in stops]
        inside = {"x": at[:, 0], "y": at[:, 1], "inside": at[:, 2]}
        return {**inside, "loss": np.array(losses)}

    def row(self, plane: str, number: int) -> Floats:
        """One row of a surface; of a row that was killed, only the points that are not known."""
        x, y = self.axes(plane)
        steps = np.column_stack([x, np.full(len(x), y[number])])
        if plane == PATH:
            at, directions = self.start, [self.plane.along, self.plane.across]
        else:
            at, directions = self.end, self._around

        def losses(first: int, last: int) -> Floats:
            return self.terrain.losses(at, directions, steps[first:last])

        together = points_together(self.terrain)
        return in_pieces(losses, len(steps), self._row_file(plane, number), multiple=together)

    def _row_file(self, plane: str, number: int) -> Path | None:
        """Where the losses of an unfinished row are, by what decides them."""
        if self.folder is None:
            return None
        asked = json.dumps([self.job.identity, asdict(self.asked), plane, number])
        return self.folder / _ROWS / f"{sha256(asked.encode()).hexdigest()[:16]}.json"

    @property
    def _around(self) -> list[Weights]:
        drawn = partial(_directions, self.end, self.job.settings.seed, _PLANE_DIRECTIONS)
        return self._once("around", drawn)

    def axes(self, plane: str) -> tuple[Floats, Floats]:
        """The places to the right and upwards."""
        if plane == PATH:
            return way_places(self.asked.grid), way_places(self.asked.grid)
        around = around_places(self.asked.reach, self.asked.grid)
        return around, around

    def between(self, other: Survey) -> tuple[Floats, float]:
        """The loss on the straight way to the end of another run, and its highest rise."""
        way = difference(other.end, self.end)
        shares = share_places(self.asked.grid)
        losses = self.terrain.losses(self.end, [way], shares[:, None])
        return losses, barrier(losses)


def _directions(end: Weights, seed: int, numbers: Sequence[int]) -> list[Weights]:
    return [random_direction(end, seed=(seed, number)) for number in numbers]


def in_pieces(
    compute: Callable[[int, int], Floats], count: int, file: Path | None, *, multiple: int = 1
) -> Floats:
    """(count,) what `compute` gives for all points; those in `file` are not computed again.

    `multiple`: pieces hold a multiple of so many points, as many as share a pass. The file goes
    when all points are known, and whoever asked then keeps them. Without a file, one piece.
    """
    if file is None:
        return compute(0, count)
    found, piece, written = _read(file, count), multiple, time.monotonic()
    while len(found) < count:
        first, began = len(found), time.monotonic()
        found += compute(first, min(first + piece, count)).tolist()
        now = time.monotonic()
        rate = (len(found) - first) / max(now - began, 1e-9)
        piece = multiple * max(1, int(_EVERY * rate / multiple))
        if now - written >= _EVERY and len(found) < count:
            _write(file, found)
            written = now
    file.unlink(missing_ok=True)
    return np.array(found)


def _read(file: Path, count: int) -> list[float]:
    """The losses in the file; none where it cannot be read, since they are soon computed again."""
    try:
        found = [float(loss) for loss in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []
    return found[:count]


def _write(file: Path, losses: list[float]) -> None:
    """Whole or not at all. JSON gives every digit back."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(losses))
