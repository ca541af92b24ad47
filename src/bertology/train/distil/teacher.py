"""A teacher: what it answers to the examples of a batch, computed once and kept, or at each step.

A student sees the same examples in every epoch, and a teacher without dropout says the same of
them each time. So its answers are computed once where they may be kept: logits are a few numbers
for each example; states are `hidden` numbers for each token and layer, and may be too many.

Both give the same numbers up to rounding: sums of floats are grouped differently in batches of
other lengths.

What is kept lies side by side in flat arrays, in memory or on disk. What is known of an example
once is a row; what is known of each token is a row for each token, and so for each pair of tokens.
Batches gather their rows, whatever they are padded to. On disk the arrays are memory maps, filled
batch by batch: a process that was killed goes on after the last one it noted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bertology.drafts import alone_with, write_whole
from bertology.errors import CapabilityError, ParameterError, StoreError
from bertology.model.loading.fingerprint import fingerprint_of, state_of, tokenizer_text
from bertology.train.distil.seen import (
    FIRST,
    LOGITS,
    SCORES,
    STATES,
    VALUES,
    Needs,
    real_tokens,
    see,
)
from bertology.train.encoded import encode_once
from bertology.train.fit import row_limit
from bertology.train.protocols import Tokenizer
from bertology.train.recorded import Recorded, gains_by_recording, quick_products
from bertology.train.token_rows import Encoded
from bertology.train.ways.way import Lesson

KEEP = ("auto", "memory", "disk", "never")
GIB = 2**30
_FIRST = "Take soft labels, or patient distillation, which reads the first token."
_TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 32768}
_PER_EXAMPLE, _PER_TOKEN, _PER_PAIR = (LOGITS, FIRST), (STATES,), (SCORES, VALUES)
_NOTED_EVERY = 20  # batches
Answers = Callable[[Sequence[int]], tuple[dict[str, Tensor], Tensor]]
"""From examples to what the teacher says of them, and which of their tokens are real."""


@dataclass(eq=False)
class Teacher:
    """A trained model that does not change, and where its answers are kept.

    `keep` says where: "memory" (of the model's device), "disk" (`folder`, or the run's own),
    "never", which asks at each step, or "auto": in memory where all answers fit into `memory`
    bytes and are used more than once, else at each step. Answers are kept with the teacher, for
    other students of it that learn from the same data; the oldest go when `memory` is full.
    """

    model: Any
    tokenizer: Tokenizer | None = None
    """None: it reads the same tokens as the student."""
    keep: str = "auto"
    memory: int = 4 * GIB
    folder: Path | None = None
    asked: int = 0
    """Passes so far."""
    _kept: dict[str, Kept] = field(default_factory=dict, repr=False)
    _known: tuple[object, str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.keep not in KEEP:
            raise ParameterError("keep", "Teacher", f"be one of {', '.join(KEEP)}", self.keep)
        self.model.eval()
        self.model.requires_grad_(False)

    def fingerprint(self, tokenizer: Tokenizer | None = None) -> str:
        """What decides its answers; its own tokenizer goes before the given one."""
        state = (state_of(self.model), id(tokenizer))
        if self._known is None or self._known[0] != state:
            reads = self.tokenizer or tokenizer
            found = fingerprint_of(self.model, reads, head="classification")
            self._known = (state, found)
        return self._known[1]

    def ready(self, lesson: Lesson, needs: Needs) -> Answering:
        """Answers to the training data of a lesson; what is kept is computed now."""
        reads = self.tokenizer or lesson.tokenizer
        other = reads is not lesson.tokenizer and (
            tokenizer_text(reads) != tokenizer_text(lesson.tokenizer)
        )
        reads = reads if other else lesson.tokenizer
        by_token = bool(needs.states or needs.scores or needs.values)
        if other and by_token:
            raise CapabilityError(
                "Student and teacher cut texts into different tokens, so that states of tokens "
                "cannot be compared.",
                hint=_FIRST,
            )
        limit = row_limit(lesson.model, lesson.tokenizer, lesson.max_length)
        own = self._limit(reads, lesson.max_length if other else limit)
        rows = encode_once(lesson.train, reads, own)
        if own != limit and by_token:
            _check_whole(rows)
        own_rows = other or own != limit
        found = Answering(self, needs, rows, own_rows, lesson.precision, recorded=lesson.recorded)
        found.kept = self._find_kept(lesson, needs, found)
        return found

    def _limit(self, reads: Tokenizer, wanted: int | None) -> int | None:
        """The longest row that it reads: as many tokens as are wanted, if it takes so many."""
        most = row_limit(self.model, reads, None)
        return min((n for n in (most, wanted) if n is not None), default=None)

    def check_rows(self, lesson: Lesson) -> None:
        """Refuse a student's texts of which this teacher cannot read all tokens."""
        limit = row_limit(lesson.model, lesson.tokenizer, lesson.max_length)
        own = self._limit(lesson.tokenizer, limit)
        if own != limit:
            _check_whole(encode_once(lesson.train, lesson.tokenizer, own))

    def _find_kept(self, lesson: Lesson, needs: Needs, asking: Answering) -> Kept | None:
        if self.keep == "never" or (self.keep == "auto" and lesson.epochs < 2):
            return None
        made_of = [
            self.fingerprint(lesson.tokenizer),
            lesson.train.fingerprint,
            asdict(needs),
            asking.rows.limit,
            lesson.precision,
        ]
        key = sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
        if key in self._kept:
            return self._kept[key]
        layout = asking.layout()
        if self.keep == "auto" and layout.bytes > self.memory:
            return None
        device: torch.device = self.model.device
        most = _TOKENS_PER_BATCH.get(device.type, _TOKENS_PER_BATCH["cpu"])
        batches = list(asking.rows.in_order_of_length(most))
        with lesson.watch.counted("the teacher's answers", len(asking.rows)) as count:

            def answers(chosen: Sequence[int]) -> tuple[dict[str, Tensor], Tensor]:
                found = asking.afresh(chosen)
                count.advance(len(chosen))
                return found

            if self.keep == "disk":
                folder = self.folder or lesson.folder
                if folder is None:
                    raise ParameterError("folder", "Teacher", "be given to keep on disk", None)
                return fill_folder(Path(folder) / f"teacher-{key}", layout, batches, answers)
            # Forget the oldest answers that are in memory
            while self._kept and layout.bytes + sum(k.layout.bytes for k in self._kept.values()) > (
                self.memory
            ):
                del self._kept[next(iter(self._kept))]
            self._kept[key] = fill_memory(layout, device, batches, answers)
        return self._kept[key]


def _check_whole(rows: Encoded) -> None:
    """Refuse rows that were cut for a teacher, where states of all of a student's are compared."""
    if rows.truncated:
        raise CapabilityError(
            f"The teacher reads at most {rows.limit} tokens, and {rows.truncated:,} of "
            f"{len(rows):,} texts have more, which the student reads: their states cannot be "
            "compared.",
            hint=f"Cut texts for both: max_length={rows.limit} (--max-length). {_FIRST}",
        )


@dataclass(eq=False)
class Answering:
    """A teacher before the examples of one training."""

    teacher: Teacher
    needs: Needs
    rows: Encoded
    own_rows: bool
    """Whether it reads other rows than the student: other tokens, or fewer."""
    precision: str
    recorded: bool = False
    kept: Kept | None = None
    _pass: Recorded[tuple[Tensor, ...]] | None = None
    _names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def answers(self, chosen: Sequence[int], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the teacher says of these examples; `inputs` are how the student reads them."""
        if self.kept is not None:
            return self.kept.batch(chosen, real_tokens(inputs))
        if not self.own_rows:
            return self._ask(inputs, quick=self.recorded)
        own, _ = self.rows.batch(chosen, self.teacher.model.device)
        found, width = self._ask(own, quick=False), inputs["input_ids"].shape[-1]
        return {name: self._padded(name, answer, width) for name, answer in found.items()}

    def _padded(self, name: str, answer: Tensor, width: int) -> Tensor:
        """As wide as the student's batch, which may be padded further than the teacher can read."""
        more = width - answer.shape[-2]
        ends = (more, 0) if self.rows.tokenizer.padding_side == "left" else (0, more)
        if name == STATES:
            return functional.pad(answer, (0, 0, *ends))
        return functional.pad(answer, (*ends, *ends)) if name in (SCORES, VALUES) else answer

    def afresh(self, chosen: Sequence[int]) -> tuple[dict[str, Tensor], Tensor]:
        """The same by a pass over the texts alone, and which tokens are real."""
        inputs, _ = self.rows.batch(chosen, self.teacher.model.device)
        return self._ask(inputs, quick=False), real_tokens(inputs)

    def layout(self) -> Layout:
        """How large the answers are, by those to the shortest example."""
        lengths = torch.tensor(self.rows.lengths)
        found, _ = self.afresh([int(lengths.argmin())])
        widths = {}
        for name, answer in found.items():
            shape = tuple(answer.shape[1:])
            if name == STATES:
                shape = (shape[0], shape[2])
            if name in (SCORES, VALUES):
                shape = shape[:2]
            widths[name] = shape
        return Layout(widths, lengths)

    def _ask(self, inputs: dict[str, Tensor], *, quick: bool) -> dict[str, Tensor]:
        model = self.teacher.model
        self.teacher.asked += 1
        if self._pass is None:
            self._pass = Recorded(self._see, record=self.recorded and gains_by_recording(model))
        self._names = (tuple(inputs), self._names[1])
        work = self._pass if quick else self._see
        there = [tensor.to(model.device) for tensor in inputs.values()]
        found = work(*there)
        return dict(zip(self._names[1], found, strict=True))

    def _see(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        model = self.teacher.model
        inputs = dict(zip(self._names[0], tensors, strict=True))
        low = self.precision == "bfloat16"
        with (
            torch.no_grad(),
            quick_products(model.device),
            torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=low),
        ):
            found = see(model, inputs, self.needs)
        self._names = (self._names[0], tuple(found))
        return tuple(found.values())


@dataclass(frozen=True)
class Layout:
    """How large each answer is, and how long each example."""

    widths: Mapping[str, tuple[int, ...]]
    """Of one row: (classes,), (layers, hidden), (layers, heads)."""
    lengths: Tensor
    """(N,) tokens."""

    def rows(self, name: str) -> int:
        """How many rows the array has."""
        if name in _PER_EXAMPLE:
            return len(self.lengths)
        return int((self.lengths if name in _PER_TOKEN else self.lengths**2).sum())

    @property
    def bytes(self) -> int:
        """All of it, in float32."""
        return sum(4 * self.rows(n) * int(np.prod(w)) for n, w in self.widths.items())


@dataclass(frozen=True)
class Kept:
    """The arrays, and how batches find their rows."""

    layout: Layout
    arrays: Mapping[str, Tensor]

    @cached_property
    def _begins(self) -> tuple[Tensor, Tensor, Tensor]:
        """Lengths, and where the rows of each example begin; moved to the arrays once."""
        lengths = self.layout.lengths.to(self._where)
        squares = lengths**2
        return lengths, lengths.cumsum(0) - lengths, squares.cumsum(0) - squares

    @property
    def _where(self) -> torch.device:
        return next(iter(self.arrays.values())).device

    def put(self, chosen: Sequence[int], answers: Mapping[str, Tensor], real: Tensor) -> None:
        """Keep the answers to these examples."""
        numbers, real = torch.tensor(chosen, device=self._where), real.to(self._where)
        for name, array in self.arrays.items():
            places, inside = self._places(name, numbers, real)
            rows = _rows_first(name, answers[name].to(self._where))
            array[places[inside]] = rows[inside].to(array.dtype)

    def batch(self, chosen: Sequence[int], real: Tensor) -> dict[str, Tensor]:
        """The answers to these examples, as padded as `real` (B, T) is, and where it is."""
        numbers = torch.tensor(chosen).to(self._where, non_blocking=True)
        at = real.to(self._where)
        found = {}
        for name, array in self.arrays.items():
            places, inside = self._places(name, numbers, at)
            rows = array[places] * inside.view(*inside.shape, *[1] * (array.dim() - 1))
            found[name] = _rows_last(name, rows).to(real.device, non_blocking=True)
        return found

    def _places(self, name: str, numbers: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Which row is whose: (B,), (B, T) or (B, T, T), and where there is one at all."""
        if name in _PER_EXAMPLE:
            return numbers, torch.ones_like(numbers).bool()
        lengths, tokens, pairs_at = self._begins
        j = (real.long().cumsum(1) - 1).clamp(min=0)  # (B, T)
        if name in _PER_TOKEN:
            return torch.where(real, tokens[numbers][:, None] + j, 0), real
        starts, length = pairs_at[numbers], lengths[numbers]
        pairs = real[:, :, None] & real[:, None]  # (B, T, T)
        places = starts[:, None, None] + j[:, :, None] * length[:, None, None] + j[:, None]
        return torch.where(pairs, places, 0), pairs


def _rows_first(name: str, answers: Tensor) -> Tensor:
    """(B, K, T, hidden) -> (B, T, K, hidden), (B, K, heads, T, T) -> (B, T, T, K, heads)."""
    if name in _PER_EXAMPLE:
        return answers
    return answers.transpose(1, 2) if name in _PER_TOKEN else answers.permute(0, 3, 4, 1, 2)


def _rows_last(name: str, rows: Tensor) -> Tensor:
    """The way back."""
    if name in _PER_EXAMPLE:
        return rows
    return rows.transpose(1, 2) if name in _PER_TOKEN else rows.permute(0, 3, 4, 1, 2)


def fill_memory(
    layout: Layout, device: torch.device, batches: Sequence[list[int]], answers: Answers
) -> Kept:
    """Ask about all examples, and keep the answers on a device."""
    arrays = {
        name: torch.zeros((layout.rows(name), *width), device=device)
        for name, width in layout.widths.items()
    }
    kept = Kept(layout, arrays)
    for chosen in batches:
        kept.put(chosen, *answers(chosen))
    return kept


def fill_folder(
    folder: Path, layout: Layout, batches: Sequence[list[int]], answers: Answers
) -> Kept:
    """The same on disk, where it is filled once; a killed process goes on where it was."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone_with(folder / "lock"):
            done = _noted(folder)
            maps = {n: _map(folder / f"{n}.npy", layout, n, new=done == 0) for n in layout.widths}
            kept = Kept(layout, {n: torch.from_numpy(m) for n, m in maps.items()})
            for number in range(done, len(batches)):
                kept.put(batches[number], *answers(batches[number]))
                if number + 1 == len(batches) or not (number + 1) % _NOTED_EVERY:
                    for one in maps.values():
                        one.flush()
                    _note(folder, number + 1)
    except OSError as error:
        raise StoreError(
            f"A teacher's answers cannot be kept in {folder}: {error.strerror or error}.",
            hint="Choose a folder on a disk with space, or keep='never'.",
        ) from error
    return kept


def _map(path: Path, layout: Layout, name: str, *, new: bool) -> Any:
    shape = (layout.rows(name), *layout.widths[name])
    if new:
        return np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    try:
        found = np.lib.format.open_memmap(path, mode="r+")
    except ValueError:
        found = None
    if found is None or found.shape != shape or found.dtype != np.float32:
        raise StoreError(
            f"{path} is damaged: it does not hold {' × '.join(map(str, shape))} numbers.",
            hint=f"Delete {path.parent}; it is made again.",
        )
    return found


def _noted(folder: Path) -> int:
    """How many batches are done."""
    try:
        return int(json.loads((folder / "done.json").read_text())["batches"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _note(folder: Path, batches: int) -> None:
    write_whole(folder / "done.json", json.dumps({"batches": batches}))
