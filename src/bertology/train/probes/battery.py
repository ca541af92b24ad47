"""All that is asked of one set of states: tasks, control tasks, and the length of their labels.

Every task has probes with several penalties, of which the best on held-out examples is scored;
the same for a control task, which gives each word type a label at random (Hewitt and Liang 2019);
and probes trained on growing portions of the examples, each of which codes the labels of the next
portion (Voita and Titov 2020). Tasks, penalties and controls are trained together, and so are
all tasks of one portion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.annotated.probe_questions import UNASKED, Question
from bertology.annotated.states import States
from bertology.train.probes.classifiers import Examples, Probe, Probes, trained
from bertology.train.probes.streams import StateStream

__all__ = ["EPOCHS", "Scores", "probed"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
DECAYS = (1e-2, 1e-3, 1e-4)
PORTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Of the training examples, as Voita and Titov have them."""
EPOCHS = 40  # at most


@dataclass(frozen=True)
class Scores:
    """What was found: right answers in each example, and bits.

    `hits` and `control` are (examples, tasks, layers); `code` is (tasks, layers), the bits that the
    labels of the training examples take; NaN where there are too few of them.
    """

    hits: NDArray[np.uint16]
    control: NDArray[np.uint16]
    code: Floats


def probed(
    states: States,
    units: Ints,
    examples: Ints,
    questions: Sequence[Question],
    split: Ints,
    *,
    hidden: int = 0,
    whole: bool = True,
    seed: int = 0,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None] = lambda epochs: None,
) -> Scores:
    """Train and score all probes on rows `units`, whose examples (R,) and parts (R,) are given.

    `split` is 0 for rows that train, 1 for held-out ones, 2 for those that are scored. `whole`:
    with control tasks and codes. `advance` is told of EPOCHS in all.
    """
    bench = _Bench(
        StateStream(states, units, split == 0, device=device), split, hidden, seed, device
    )
    columns = [
        _Column(Probe(q.classes, decay, seed), labels, labels)
        for q in questions
        for labels in ((q.labels, q.control) if whole else (q.labels,))
        for decay in DECAYS
    ]
    probes, least = bench.trained(columns, advance=advance)
    hits = bench.hits(probes, columns, examples)
    kinds = 2 if whole else 1
    tasks, layers = len(questions), hits.shape[1]
    # Of each task, control and layer the penalty that is best on held-out examples.
    by_decay = least.reshape(layers, tasks * kinds, len(DECAYS)).argmin(dim=2)
    chosen = (torch.arange(tasks * kinds) * len(DECAYS) + by_decay).numpy()
    best = hits[:, np.arange(layers)[:, None], chosen]  # (examples, L, tasks × kinds)
    best = best.reshape(len(hits), layers, tasks, kinds).transpose(3, 0, 2, 1)
    code = _codes(bench, questions) if whole else np.full((tasks, layers), np.nan)
    return Scores(best[0], best[kinds - 1] if whole else np.zeros_like(best[0]), code)


@dataclass(frozen=True)
class _Column:
    """A probe, and the labels (R,) that it learns and is asked."""

    probe: Probe
    learnt: Ints
    asked: Ints


@dataclass(frozen=True)
class _Bench:
    """Trains columns side by side on the same rows."""

    stream: StateStream
    split: Ints
    hidden: int
    seed: int
    device: torch.device | str

    def trained(
        self, columns: Sequence[_Column], *, advance: Callable[[int], None] = lambda epochs: None
    ) -> tuple[Probes, Tensor]:
        """The probes, and their best losses (L, P) on held-out rows."""
        learnt, asked = (
            torch.from_numpy(np.stack(of, axis=1))
            for of in ([c.learnt for c in columns], [c.asked for c in columns])
        )
        probes = Probes(
            self.stream.layers,
            self.stream.width,
            [column.probe for column in columns],
            hidden=self.hidden,
            device=self.device,
        )
        size, mix = probes.batch_size(), torch.Generator().manual_seed(self.seed)
        train = (self.split == 0) & (learnt >= 0).any(dim=1).numpy()

        def some(chosen: Mask, labels: Tensor, mixed: bool) -> Iterable[Examples]:
            found = self.stream.examples(chosen, labels, size, mix=mix if mixed else None)
            return (one for _, one in found)

        least = trained(
            probes,
            partial(some, train, learnt, True),
            partial(some, self.split == 1, asked, False),
            epochs=EPOCHS,
            advance=advance,
        )
        return probes, least.cpu()

    def hits(
        self, probes: Probes, columns: Sequence[_Column], examples: Ints
    ) -> NDArray[np.uint16]:
        """(examples, L, P): right answers on the rows that are scored."""
        asked = torch.from_numpy(np.stack([column.asked for column in columns], axis=1))
        shape = (int(examples.max()) + 1, self.stream.layers, len(columns))
        found = torch.zeros(shape, dtype=torch.int32)
        for rows, one in self.stream.examples(self.split == 2, asked, probes.batch_size()):
            right = (probes.logits(one.states).argmax(-1) == one.labels).int().cpu()  # (L, n, P)
            found.index_add_(0, torch.from_numpy(examples[rows]), right.transpose(0, 1))
        return found.numpy().astype(np.uint16)

    def bits(self, probes: Probes, labels: Sequence[Ints]) -> Floats:
        """(L, P): what the labels (R,) of training rows take by these probes."""
        asked = torch.from_numpy(np.stack(labels, axis=1))
        chosen = (asked >= 0).any(dim=1).numpy()
        found = np.zeros((self.stream.layers, len(labels)))
        for _, one in self.stream.examples(chosen, asked, probes.batch_size()):
            found += probes.losses(one)[0].double().cpu().numpy() / np.log(2)
        return found


def _codes(bench: _Bench, questions: Sequence[Question]) -> Floats:
    """(tasks, layers): bits of all training labels, portion by portion.

    The labels of the first portion take as many as if all classes were alike.
    """
    rng = np.random.default_rng(bench.seed)
    orders = [
        rng.permutation(np.flatnonzero((bench.split == 0) & (q.labels >= 0))) for q in questions
    ]
    ends = [[max(1, round(share * len(rows))) for share in PORTIONS] for rows in orders]
    found = np.array([[of[0] * np.log2(q.classes)] for of, q in zip(ends, questions, strict=True)])
    found = np.repeat(found, bench.stream.layers, axis=1)
    for portion in range(len(PORTIONS) - 1):
        columns, coded = [], []
        for question, rows, of in zip(questions, orders, ends, strict=True):
            first, next_one = of[portion], of[portion + 1]
            learnt = _only(question.labels, rows[:first])
            columns.append(
                _Column(Probe(question.classes, DECAYS[1], bench.seed), learnt, question.labels)
            )
            coded.append(_only(question.labels, rows[first:next_one]))
        probes, _ = bench.trained(columns)
        found += bench.bits(probes, coded).T
    return found


def _only(labels: Ints, rows: Ints) -> Ints:
    """The labels of some rows, and no question elsewhere."""
    found = np.full_like(labels, UNASKED)
    found[rows] = labels[rows]
    return found
