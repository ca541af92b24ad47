"""All that is asked of one set of states: tasks, control tasks, and the length of their labels.

Every task is trained beside a control task, which gives each word type a label at random (Hewitt
and Liang 2019), on growing portions of the examples: the probes of one portion code the labels of
the next (Voita and Titov 2020), and start the training on it. The penalty on large weights is the
best on held-out examples. All tasks, controls and layers of a portion are trained together. With
several seeds, control tasks, the order of examples and the first weights are drawn anew for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.annotated.probe_questions import Question
from bertology.annotated.states import States
from bertology.arrays import Floats, Ints
from bertology.train.probes.attentive import AttentiveProbes, attended
from bertology.train.probes.classifiers import Examples, Pass, Probe, Probes
from bertology.train.probes.linear import LinearProbes, descended
from bertology.train.probes.penalties import DECAYS, PRECISIONS, Train, fitted, kept_up
from bertology.train.probes.stepwise import HiddenProbes, StepwiseProbes, trained
from bertology.train.probes.streams import StateStream, equal_batches

Mask = NDArray[np.bool_]
PORTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Of the training examples, as Voita and Titov have them."""
EPOCHS = 40  # of which progress is told
_SEARCHED = 1200  # rows at most on which the best penalty is looked for
# Of linear probes, while rows become more and in the end: steps at least, looks at each row.
_STEPS, _LOOKS = (40, 200), (2, 6)
_TELLING = 60  # rows, for them to say which words of a span count
_HELD = 2000  # rows that judge penalties, or as many as train, if that is more
_KEPT = 2**26  # numbers that are held in memory, not read again: 256 MiB
_ROWS, _NUMBERS = 512, 2**22  # of a batch: rows, and outputs (16 MiB)


@dataclass(frozen=True)
class Scores:
    """What was found: right answers in each example, and bits; means over seeds.

    `hits` and `control` are (examples, tasks, layers); of a task that asks for numbers, 1 less the
    squared error over the variance of the numbers that train, summed: their mean is R². `code` is
    (tasks, layers), the bits that the labels of the training examples take; NaN where they are
    numbers or were not asked for. `by_seed` is (seeds, tasks, layers, 2): all hits beyond those of
    the control task, and the bits.
    """

    hits: NDArray[np.float32]
    control: NDArray[np.float32]
    code: Floats
    by_seed: Floats


def probed(
    states: States,
    units: Ints,
    examples: Ints,
    questions: Sequence[Question],
    split: Ints,
    *,
    hidden: int = 0,
    attentive: bool = False,
    whole: bool = True,
    seed: int = 0,
    seeds: int = 1,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None] = lambda epochs: None,
) -> Scores:
    """Train and score all probes on rows `units`, whose examples (R,) and parts (R,) are given.

    `split` is 0 for rows that train, 1 for held-out ones, 2 for those that are scored. `whole`:
    with control tasks and codes. Probes are linear, or have so many `hidden` units; linear ones may
    learn which words of a span count (`attentive`). There are `seeds` from `seed` on. `advance` is
    told of EPOCHS in all.
    """
    if hidden and attentive:
        raise ValueError("probes with hidden units take the means of spans")
    stream = StateStream(states, units, split == 0, device=device)
    bench = _Bench(stream, split, examples, hidden, attentive, device)
    tasks = len(questions)
    # The best place of a linear probe is the same for all seeds; control tasks and codes are not.
    alike = not hidden and not attentive
    runs = seeds if whole or not alike else 1
    told = _Progress(advance, runs)
    hits: list[NDArray[np.float32]] = []
    control, codes = [], []
    for run in range(runs):
        columns = [_Column.of(q, None, seed + run) for q in questions]
        if whole:
            columns += [_Column.of(q, run, seed + run) for q in questions]
        done = tasks if alike and run else 0  # tasks whose last probes are trained already
        probes, code = bench.along(columns, seed + run, codes=whole, done=done, told=told)
        found = bench.scores(probes, columns)  # (examples, tasks × kinds, L)
        hits.append(hits[0] if done else found[:, :tasks])
        control.append(found[:, tasks:] if whole else np.zeros_like(hits[0]))
        codes.append(code[:tasks] if whole else np.full((tasks, stream.layers), np.nan))
    told.finish()
    beyond = [(of - null).sum(0) for of, null in zip(hits, control, strict=True)]
    return Scores(
        np.mean(hits, axis=0, dtype=np.float32),
        np.mean(control, axis=0, dtype=np.float32),
        np.mean(codes, axis=0),
        np.stack([np.stack(beyond), np.stack(codes)], axis=3),
    )


def _asked(labels: NDArray[Any]) -> Mask:
    """Where there is an answer that can be given."""
    numbers = np.issubdtype(labels.dtype, np.floating)
    found: Mask = ~np.isnan(labels) if numbers else labels >= 0
    return found


@dataclass(frozen=True)
class _Column:
    """A probe, and the answers (R,) that it is asked."""

    probe: Probe
    labels: NDArray[Any]

    @classmethod
    def of(cls, question: Question, control: int | None, seed: int) -> _Column:
        """Of a question, or of one of its control tasks."""
        labels = question.labels if control is None else np.atleast_2d(question.control)[control]
        numbers = np.issubdtype(labels.dtype, np.floating)
        return cls(Probe(question.classes, numbers, seed), labels)


class _Progress:
    """Tells of EPOCHS as rows are worked through: as many each seed, and half for each portion."""

    def __init__(self, advance: Callable[[int], None], runs: int) -> None:
        self._advance, self._runs, self._done, self._told = advance, runs, 0.0, 0

    def add(self, share: float) -> None:
        """So much of one seed's work is done."""
        self._done += EPOCHS * share / self._runs
        self._tell(int(self._done))

    def finish(self) -> None:
        """All is done."""
        self._tell(EPOCHS)

    def _tell(self, whole: int) -> None:
        whole = min(whole, EPOCHS)
        self._advance(whole - self._told)
        self._told = whole


@dataclass(frozen=True)
class _Bench:
    """Trains and scores probes of the rows of one stream."""

    stream: StateStream
    split: Ints
    examples: Ints
    hidden: int
    attentive: bool
    device: torch.device | str

    def along(
        self, columns: Sequence[_Column], seed: int, *, codes: bool, done: int, told: _Progress
    ) -> tuple[list[Probes], Floats]:
        """Probes trained on all rows, portion by portion; the bits (columns, L) of their labels.

        With `done`, the first columns are not trained on the last portion, and not returned.
        """
        labels = self._labels(columns)
        some = np.stack([_asked(column.labels) for column in columns], axis=1)
        rng = np.random.default_rng(seed)
        order = rng.permutation(np.flatnonzero((self.split == 0) & some.any(axis=1)))
        held = rng.permutation(np.flatnonzero((self.split == 1) & some.any(axis=1)))
        shares = PORTIONS if codes else (min(1.0, 1000 / len(order)), 0.25, 1.0)
        ends = sorted({max(1, round(share * len(order))) for share in shares})
        if not codes:  # small portions would only be a detour
            ends = [end for end in ends if end >= min(1000, len(order))]
        probes = self._made(columns)
        classes = np.array([max(column.probe.classes, 1) for column in columns])
        bits = some[order[: ends[0]]].sum(axis=0) * np.log2(classes)
        code = np.repeat(bits[:, None], self.stream.layers, axis=1)
        few = max((end for end in ends if end <= _SEARCHED), default=ends[0])
        self._penalise(probes, labels, order[:few], held[: max(_HELD, few)], seed)
        for end, following in zip(ends, [*ends[1:], 0], strict=True):
            if not following and done:
                probes = _without(probes, done)
            rows, judges = order[:end], held[: max(_HELD, end)]
            self._fit(probes, labels, rows, judges, seed, last=not following)
            told.add(end / ends[-1] / 2)
            if following and codes:
                code += self._bits(probes, labels, order[end:following], len(columns))
        numbers = [column.probe.numbers for column in columns]
        code[numbers] = np.nan
        return probes, code

    def scores(self, probes: Sequence[Probes], columns: Sequence[_Column]) -> NDArray[np.float32]:
        """(examples, columns, L): what the rows that are scored give."""
        labels = self._labels(columns)
        shape = (int(self.examples.max()) + 1, len(columns), self.stream.layers)
        found = torch.zeros(shape)
        for rows, one in self._read(self.split == 2, labels, probes):
            at = torch.from_numpy(self.examples[rows])
            for some in probes:
                scores = some.scores(one).cpu().permute(1, 2, 0)  # (n, P, L)
                for number, column in enumerate(some.columns):
                    found[:, column].index_add_(0, at, scores[:, number])
        return found.numpy()

    def _made(self, columns: Sequence[_Column]) -> list[Probes]:
        """One for each kind and number of classes."""
        kinds: dict[tuple[int, bool], list[int]] = {}
        for number, column in enumerate(columns):
            kinds.setdefault((column.probe.outputs, column.probe.numbers), []).append(number)
        shape, device = (self.stream.layers, self.stream.width), self.device
        found: list[Probes] = []
        for of in kinds.values():
            own = [columns[i].probe for i in of]
            if self.hidden:
                one = HiddenProbes(own, of, shape=shape, hidden=self.hidden, device=device)
                found.append(one)
            elif self.attentive:
                asked = [_asked(columns[i].labels) & (self.split == 0) for i in of]
                weighed = [bool((self.stream.lengths[rows] > 1).any()) for rows in asked]
                found.append(
                    AttentiveProbes(
                        own,
                        of,
                        shape=shape,
                        spans=self.stream.lengths.shape[1],
                        weighed=weighed,
                        device=device,
                    )
                )
            else:
                found.append(LinearProbes(own, of, shape=shape, device=device))
        return found

    def _penalise(
        self, probes: Sequence[Probes], labels: Tensor, rows: Ints, judges: Ints, seed: int
    ) -> None:
        """Find the penalties of linear probes that are best on `judges`; weights stay as they are.

        They are beliefs about weights, right for few rows and for many: one search serves all.
        """
        lines = _lines(probes)
        if lines:
            before = [[weight.clone() for weight in one.weights] for one in lines]
            held = self._pass(judges, labels, lines)
            fitted(lines, self._descent(lines, labels, rows, seed), held, path=PRECISIONS)
            for one, own in zip(lines, before, strict=True):
                for weight, kept in zip(one.weights, own, strict=True):
                    weight.copy_(kept)

    def _descent(
        self,
        lines: Sequence[LinearProbes],
        labels: Tensor,
        rows: Ints,
        seed: int,
        *,
        last: bool = False,
    ) -> Train:
        """Trains linear probes on `rows`."""
        batches = -(-len(rows) // self._size(lines))
        steps, looks = _STEPS[last], _LOOKS[last]
        return partial(
            descended,
            lines,
            examples=self._pass(rows, labels, lines, torch.Generator().manual_seed(seed)),
            steps=max(steps, looks * batches),
            counts=torch.from_numpy(_asked(labels[rows].numpy()).sum(0)),
        )

    def _fit(
        self,
        probes: Sequence[Probes],
        labels: Tensor,
        rows: Ints,
        judges: Ints,
        seed: int,
        *,
        last: bool,
    ) -> None:
        """Train on `rows`; probes that are not linear are judged by others."""
        mix = torch.Generator().manual_seed(seed)
        weighing = [one for one in probes if isinstance(one, AttentiveProbes)]
        if lines := _lines(probes):
            kept_up(lines, self._descent(lines, labels, rows, seed, last=last), path=PRECISIONS)
        if weighing:
            free = [column for one in weighing for column in one.free]
            rows, judges = (of[_asked(labels[of][:, free].numpy()).any(1)] for of in (rows, judges))
            train = self._pass(rows, labels, probes, mix)
            held = self._pass(judges, labels, probes)
            # A small portion has little to tell which words count; its probes are those of means.
            enough = len(rows) >= (1 if last else _TELLING) and len(judges) > 0
            attended(weighing, train, held, weigh=enough)
        elif self.hidden:
            some = [one for one in probes if isinstance(one, HiddenProbes)]
            train, held = (self._pass(of, labels, probes, mix) for of in (rows, judges))
            bent = partial(trained, some, train=train, held=held)
            fitted(some, bent, held, path=DECAYS, onward=False)

    def _bits(self, probes: Sequence[Probes], labels: Tensor, rows: Ints, columns: int) -> Floats:
        """(columns, L): what the labels of some rows take by these probes."""
        found = np.zeros((columns, self.stream.layers))
        for one in self._pass(rows, labels, probes)():
            for some in probes:
                found[some.columns] += some.losses(one)[0].cpu().numpy().T / np.log(2)
        return found

    def _labels(self, columns: Sequence[_Column]) -> Tensor:
        """(R, columns); numbers over their spread, those that train having the mean 0."""
        found = []
        for column in columns:
            labels = column.labels
            if column.probe.numbers:
                train = labels[(self.split == 0) & _asked(labels)]
                labels = ((labels - train.mean()) / (train.std() or 1.0)).astype(np.float32)
            found.append(labels)
        return torch.from_numpy(np.stack(found, axis=1))

    def _size(self, probes: Sequence[Probes]) -> int:
        """Rows of a batch, whose outputs take little memory."""
        most = self.stream.layers * max(one.numbers_each for one in probes)
        steps = isinstance(probes[0], StepwiseProbes)
        return max(32, min(256 if steps else _ROWS, _NUMBERS // most))

    def _read(
        self,
        chosen: Mask,
        labels: Tensor,
        probes: Sequence[Probes],
        mix: torch.Generator | None = None,
    ) -> Iterator[tuple[Ints, Examples]]:
        """The chosen rows as the probes need them."""
        words = isinstance(probes[0], AttentiveProbes)
        yield from self.stream.examples(chosen, labels, self._size(probes), words=words, mix=mix)

    def _pass(
        self,
        rows: Ints,
        labels: Tensor,
        probes: Sequence[Probes],
        mix: torch.Generator | None = None,
    ) -> Pass:
        """Rows as often as they are asked for; few of them are read but once."""
        chosen = np.zeros(len(self.split), bool)
        chosen[rows] = True
        words = isinstance(probes[0], AttentiveProbes)
        each = int(self.stream.lengths[rows].sum()) if words else len(rows)
        numbers = each * self.stream.width
        if words or numbers * self.stream.layers > _KEPT:
            return lambda: (one for _, one in self._read(chosen, labels, probes, mix))
        return _kept(
            [one for _, one in self._read(chosen, labels, probes)], self._size(probes), mix
        )


def _lines(probes: Sequence[Probes]) -> list[LinearProbes]:
    """Linear probes, and those that attentive ones begin with."""
    found = [one for one in probes if isinstance(one, LinearProbes)]
    return found + [one.line for one in probes if isinstance(one, AttentiveProbes)]


def _kept(read: Sequence[Examples], size: int, mix: torch.Generator | None) -> Pass:
    """Rows that were read, in full batches; with `mix`, of other rows each time."""
    states, labels = torch.cat([one.states for one in read], 1), torch.cat([o.labels for o in read])

    def batches() -> Iterator[Examples]:
        given = Examples(states, labels)
        if mix is not None and len(labels) > size:  # else there is nothing to be mixed
            order = torch.randperm(len(labels), generator=mix).to(labels.device)
            given = Examples(states[:, order], labels[order])
        yield from (some for _, some in equal_batches(given, size))

    return batches


def _without(probes: Sequence[Probes], done: int) -> list[Probes]:
    """Linear probes of later columns."""
    found: list[Probes] = []
    for one in probes:
        left = [i for i, column in enumerate(one.columns) if column >= done]
        if left and isinstance(one, LinearProbes):
            found.append(one.taken(torch.tensor(left, device=one.level.device)))
    return found
