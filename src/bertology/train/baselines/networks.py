"""Small networks over static vectors: their mean (CBOW), or a BiLSTM with the highest values.

As in the baselines of GLUE (Wang et al. 2018): vectors stay as they are, pairs are described by
both texts, their difference and their product, and a layer of tanh units lies below the answer.
The epoch that is best on a tenth of the training data, which is not learnt from, is kept: best by
the score that methods are compared by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bertology.data.corpus import Corpus, Task
from bertology.errors import DataError
from bertology.metrics import judged_metric
from bertology.model.batch import by_length
from bertology.train.baselines.vectors import PADDING, UNKNOWN, StaticTable
from bertology.train.encoded import checked_targets, task_of
from bertology.train.evaluate import scores

HIDDEN = 256  # of the layer below the answer, and of the LSTM in each direction
DROPOUT, RATE, EPOCHS, BATCH, CLIP = 0.2, 1e-3, 10, 32, 1.0
HELD_OUT = 0.1  # of the training data; the best epoch is chosen on them
_LONGEST = 512  # words of a text
_TOKENS = 16_384  # of a batch that is answered

Floats = NDArray[np.float64]
Report = Callable[[float], None]


@dataclass(frozen=True)
class NetworkJob:
    """Everything that decides the answers."""

    kind: str  # cbow or bilstm
    table: StaticTable
    train: Corpus
    scored: Corpus
    seed: int
    device: torch.device


def train_network(job: NetworkJob, progress: Report = lambda share: None) -> Floats:
    """The network's answers on the scored texts; torch's own random numbers are left alone."""
    task = task_of(job.train)
    devices = [job.device] if job.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(job.seed)
        network = _Network(job.kind, job.table.matrix, task, sides=_sides(job.train))
        network.to(job.device)
        given, scored = (_Texts(c, job.table, job.device) for c in (job.train, job.scored))
        order = torch.Generator().manual_seed(job.seed)
        shuffled = torch.randperm(len(given), generator=order).tolist()
        held = max(1, round(HELD_OUT * len(given))) if len(given) > 1 else 0
        checked, learnt = sorted(shuffled[:held]), sorted(shuffled[held:])
        optimizer = torch.optim.Adam(network.learning(), lr=RATE)
        best, kept = -np.inf, network.state()
        judged = judged_metric(task.metrics)  # what the network is compared by
        scale = _Scale.of(given.targets[learnt]) if task.kind == "regression" else None
        for epoch in range(EPOCHS):
            _learn(network, given, learnt, optimizer, order=order, scale=scale)
            progress((epoch + 1) / (EPOCHS + 1))
            if checked:
                found = _answers(network, given, checked, task)
                score = scores(found, given.targets[checked].tolist(), task)[judged]
                if score > best:
                    best, kept = score, network.state()
        network.load_state_dict(kept, strict=False)
        answers = _answers(network, scored, range(len(scored)), task)
    progress(1.0)
    return answers if scale is None else answers * scale.spread + scale.mean


@dataclass(frozen=True)
class _Scale:
    """Numbers are learnt as if they had mean 0 and spread 1."""

    mean: float
    spread: float

    @classmethod
    def of(cls, targets: Floats) -> _Scale:
        spread = float(targets.std())
        return cls(float(targets.mean()), spread if spread > 0 else 1.0)


def _sides(corpus: Corpus) -> int:
    found = {len(example.texts) for example in corpus}
    if len(found) > 1:
        raise DataError(f"{corpus.name!r} mixes single texts and pairs of texts.")
    return found.pop()


class _Texts:
    """The texts as rows of the table, on a device: (N, T) for each side, and their lengths."""

    def __init__(self, corpus: Corpus, table: StaticTable, device: torch.device) -> None:
        self.targets: Floats = np.asarray(checked_targets(corpus), np.float64)
        self.sides: list[tuple[Tensor, Tensor]] = []
        self.device = device
        for at in range(_sides(corpus)):
            rows = table.numbers([example.texts[at] for example in corpus])
            cut = [row[:_LONGEST] or [UNKNOWN] for row in rows]
            lengths = torch.tensor([len(row) for row in cut])
            padded = torch.full((len(cut), int(lengths.max())), PADDING, dtype=torch.int32)
            for row, own in zip(padded, cut, strict=True):
                row[: len(own)] = torch.tensor(own, dtype=torch.int32)
            self.sides.append((padded.to(device), lengths))
        self.lengths = [int(total) for total in torch.stack([own for _, own in self.sides]).sum(0)]

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, chosen: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        numbers = torch.tensor(chosen)
        there = numbers.to(self.device)
        return [
            (rows[there, : int(lengths[numbers].max())].long(), lengths[numbers])
            for rows, lengths in self.sides
        ]


class _Network(nn.Module):
    """Texts to vectors, pairs of vectors to one, and an answer."""

    def __init__(self, kind: str, matrix: Tensor, task: Task, *, sides: int) -> None:
        super().__init__()
        count, width = matrix.shape
        self.vectors = nn.Embedding(count, width, _weight=matrix, _freeze=True)
        self.lstm = (
            nn.LSTM(width, HIDDEN, bidirectional=True, batch_first=True)
            if kind == "bilstm"
            else None
        )
        described = (2 * HIDDEN if kind == "bilstm" else width) * (1 if sides == 1 else 4)
        self.answer = nn.Sequential(
            nn.Dropout(DROPOUT),
            nn.Linear(described, HIDDEN),
            nn.Tanh(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, max(1, len(task.labels))),
        )

    def learning(self) -> list[nn.Parameter]:
        return [weight for weight in self.parameters() if weight.requires_grad]

    def state(self) -> dict[str, Tensor]:
        """A copy of what is learnt."""
        held = ((n, w) for n, w in self.state_dict().items() if not n.startswith("vectors."))
        return {name: weight.clone() for name, weight in held}

    def forward(self, sides: list[tuple[Tensor, Tensor]]) -> Tensor:
        described = [self._text(rows, lengths) for rows, lengths in sides]
        if len(described) == 2:
            one, other = described
            described = [one, other, (one - other).abs(), one * other]
        answers: Tensor = self.answer(torch.cat(described, dim=1))
        return answers

    def _text(self, rows: Tensor, lengths: Tensor) -> Tensor:
        vectors = self.vectors(rows)  # (B, T, D)
        if self.lstm is None:
            mean: Tensor = vectors.sum(dim=1) / lengths.to(rows.device)[:, None]
            return mean
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf
        )
        return states.amax(dim=1)  # (B, 2 × HIDDEN)


def _learn(
    network: _Network,
    texts: _Texts,
    learnt: Sequence[int],
    optimizer: torch.optim.Optimizer,
    *,
    order: torch.Generator,
    scale: _Scale | None,
) -> None:
    """One epoch."""
    network.train()
    for chosen in _shuffled(learnt, texts.lengths, order):
        answers = network(texts.batch(chosen))
        wanted = torch.tensor(texts.targets[chosen], device=texts.device)
        if scale is None:
            loss = functional.cross_entropy(answers, wanted.long())
        else:
            loss = functional.mse_loss(
                answers[:, 0], ((wanted - scale.mean) / scale.spread).float()
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.learning(), CLIP)
        optimizer.step()


def _shuffled(
    learnt: Sequence[int], lengths: Sequence[int], order: torch.Generator
) -> Iterator[list[int]]:
    """All of them once, in random batches of similar length."""
    mixed = [learnt[i] for i in torch.randperm(len(learnt), generator=order).tolist()]
    step = BATCH * 50
    chunks = (sorted(mixed[i : i + step], key=lambda e: lengths[e])
              for i in range(0, len(mixed), step))  # fmt: skip
    batches = [chunk[i : i + BATCH] for chunk in chunks for i in range(0, len(chunk), BATCH)]
    for i in torch.randperm(len(batches), generator=order).tolist():
        yield batches[i]


def _answers(network: _Network, texts: _Texts, chosen: Sequence[int], task: Task) -> Floats:
    """In the order of `chosen`: class ids, or numbers as they were learnt."""
    network.eval()
    found = np.zeros(len(chosen))
    with torch.no_grad():
        for batch in by_length([texts.lengths[i] for i in chosen], _TOKENS):
            answers = network(texts.batch([chosen[i] for i in batch]))
            said = answers[:, 0] if task.kind == "regression" else answers.argmax(-1)
            found[batch] = said.float().cpu().numpy()
    return found
