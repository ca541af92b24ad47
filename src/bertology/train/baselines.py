"""What simple models reach on a task: a constant answer, bags of words, networks over vectors.

Bags of words stand under a linear model of scikit-learn; nothing in it is drawn. Networks stand
over static vectors, the model's own input embeddings or those of a file of words: their mean
(CBOW), or a BiLSTM with the highest values. As in the baselines of GLUE (Wang et al. 2018): vectors
stay as they are, pairs are described by both texts, their difference and their product, and a layer
of tanh units lies below the answer. The epoch that is best on a tenth of the training data, which
is not learnt from, is kept: best by the score that methods are compared by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bertology.arrays import Floats
from bertology.data.corpus import Corpus, Task
from bertology.data.static_vectors import read_word_vectors, split_words
from bertology.errors import DataError, UnknownNameError
from bertology.metrics import judged_metric
from bertology.model.batch import by_length
from bertology.model.encoder import Encoder
from bertology.train.encoded import checked_targets, task_of
from bertology.train.evaluate import constant_answer, scores

BASELINES = ("majority", "bag-of-words", "cbow", "bilstm")
SEEDLESS = frozenset({"majority", "bag-of-words"})  # nothing in them is drawn
_ROUNDS = 1000  # of the solver; it ends long before where data allow
PADDING, UNKNOWN = 0, 1  # rows of zeros
HIDDEN = 256  # of the layer below the answer, and of the LSTM in each direction
DROPOUT, RATE, EPOCHS, BATCH, CLIP = 0.2, 1e-3, 10, 32, 1.0
HELD_OUT = 0.1  # of the training data; the best epoch is chosen on them
_LONGEST = 512  # words of a text
_TOKENS = 16_384  # of a batch that is answered
Report = Callable[[float], None]


@dataclass(frozen=True)
class BaselineRun:
    """The predictions of one baseline, class ids or numbers, in the order of the examples."""

    predictions: Floats
    covered: float = math.nan  # the share of scored words that have a vector


def train_baseline(
    name: str,
    encoder: Encoder,
    train: Corpus,
    scored: Corpus,
    *,
    seed: int = 0,
    vectors: str = "",
    progress: Callable[[float], None] = lambda share: None,
) -> BaselineRun:
    """Train a baseline on `train` and let it answer `scored`.

    `vectors`: a file for the networks; if not given, the input embeddings of the encoder.
    `progress` is told the share of the work that is done.
    """
    task_of(train)
    checked_targets(scored)
    if name == "majority":
        return BaselineRun(np.full(len(scored), constant_answer(train)))
    if name == "bag-of-words":
        return BaselineRun(bag_of_words(train, scored))
    if name not in BASELINES:
        raise UnknownNameError("baseline", name, BASELINES)

    table = vectors_for(encoder, [train, scored], vectors)
    job = NetworkJob(name, table, train, scored, seed, encoder.device)
    return BaselineRun(train_network(job, progress), table.covered(scored))


def bag_of_words(train: Corpus, scored: Corpus) -> NDArray[np.float64]:
    """Answers of a logistic regression (ridge, for numbers) over which words texts have.

    A word counts as there or not, lower-cased. A pair is described by the words of each text, those
    that both have, those that one of them has, and how many are shared (the cosine).
    """
    from sklearn.linear_model import LogisticRegression, Ridge

    kind = task_of(train).kind
    bags = _Bags(train)
    given, targets = bags.features(train), np.asarray(checked_targets(train), np.float64)
    if kind == "classification" and len(set(targets)) == 1:
        return np.full(len(scored), targets[0])  # there is nothing to tell apart
    model: Any = Ridge() if kind == "regression" else LogisticRegression(max_iter=_ROUNDS)
    model.fit(given, targets)
    found: NDArray[np.float64] = np.asarray(model.predict(bags.features(scored)), np.float64)
    return found


class _Bags:
    """The words of a corpus, and texts as the words they have."""

    def __init__(self, corpus: Corpus) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self._counts = CountVectorizer(binary=True, tokenizer=split_words, token_pattern=None)
        self._counts.fit(text for example in corpus for text in example.texts)

    def features(self, corpus: Corpus) -> Any:
        """A sparse matrix with one row for each example."""
        from scipy.sparse import csr_matrix, hstack

        sides = [
            self._counts.transform([example.texts[at] for example in corpus]).astype(np.float64)
            for at in range(len(next(iter(corpus)).texts))
        ]
        if len(sides) == 1:
            return sides[0]
        one, other = sides
        both = one.multiply(other)
        sizes = np.sqrt(np.asarray(one.sum(axis=1) * 1.0)) * np.sqrt(np.asarray(other.sum(axis=1)))
        cosine = np.asarray(both.sum(axis=1)) / np.maximum(sizes, 1.0)
        return hstack([one, other, both, abs(one - other), csr_matrix(cosine)], format="csr")


@dataclass(frozen=True)
class StaticTable:
    """One row for each word or piece; the first two are zeros: padding, and what has no vector."""

    matrix: Tensor  # (V, D) float32
    numbers: Callable[[Sequence[str]], list[list[int]]]
    """The rows of each text."""

    def covered(self, corpus: Corpus) -> float:
        """The share of words that have a vector."""
        rows = self.numbers([text for example in corpus for text in example.texts])
        every = [number for row in rows for number in row]
        return 1 - every.count(UNKNOWN) / max(1, len(every))


def vectors_for(encoder: Encoder, corpora: Sequence[Corpus], file: str = "") -> StaticTable:
    """The vectors of the texts of these corpora; without a file, the encoder's own."""
    return _of_file(file, corpora) if file else _of_model(encoder)


def _of_model(encoder: Encoder) -> StaticTable:
    """Input embeddings, of one spread: as they are small, a classifier would learn slowly."""
    encoder.require_tokenizer()
    weight = encoder.model.get_input_embeddings().weight.detach().float().cpu()
    scaled = weight / weight.std().clamp(min=1e-12)
    matrix = torch.cat([torch.zeros(2, weight.shape[1]), scaled])

    def numbers(texts: Sequence[str]) -> list[list[int]]:
        found = encoder.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return [[piece + 2 for piece in row] for row in found]

    return StaticTable(matrix, numbers)


def _of_file(name: str, corpora: Sequence[Corpus]) -> StaticTable:
    words = sorted(
        {
            word
            for corpus in corpora
            for example in corpus
            for text in example.texts
            for word in split_words(text)
        }
    )
    read = read_word_vectors(name, words)
    vectors = {word: found for word in words if (found := read.find(word)) is not None}
    if not vectors:
        raise DataError(
            f"{name} has a vector for none of the {len(words):,} words of these texts.",
            hint="Is it a file of another language, or one of ids instead of words?",
        )
    rows = {word: at for at, word in enumerate(vectors, 2)}
    matrix = torch.from_numpy(np.stack(list(vectors.values())).astype(np.float32))
    matrix = matrix / matrix.std().clamp(min=1e-12)
    matrix = torch.cat([torch.zeros(2, read.width), matrix])

    def numbers(texts: Sequence[str]) -> list[list[int]]:
        return [[rows.get(word, UNKNOWN) for word in split_words(text)] for text in texts]

    return StaticTable(matrix, numbers)


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
