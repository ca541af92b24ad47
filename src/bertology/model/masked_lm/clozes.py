"""The cloze engine: any number of questions to a masked language model, each answer with scores.

    engine = Clozes(encoder, method="left-to-right", prior="{mask}", lens=LogitLens())
    for answer in engine.answers(Question(text, candidates=("Florence", "Rome")) for text in texts):
        answer.scores        # (readings, candidates) log-probabilities, natural logarithms
        answer.calibrated    # the same less what the template alone makes likely
    engine = Clozes(encoder, top_k=10)  # no candidates: the whole vocabulary
    for answer in engine.answers([Question("Dante was born in {mask}.", answers=("Florence",))]):
        answer.top, answer.ranks

`questions.py` says what a question is and how candidates of several pieces are scored. A reading is
the model itself or, with a lens, each layer, the last of which is the model itself. A rank counts
from 1, and equal probabilities share their ranks, so that a model that finds all words equally
likely is right by chance only.

Questions are taken as they come and answered in their order; at no time are more than some
thousand masked texts held, however many questions there are. What is the same masked text is
computed once, whichever candidates, methods or paraphrases ask for it; texts are batched by length,
and the head sees masked places only. Everything runs through `Encoder.run`, so that
`with encoder.doing(…)` asks a changed model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.arrays import Floats
from bertology.errors import (
    CapabilityError,
    DataError,
    ModelError,
    ParameterError,
    UnknownNameError,
)
from bertology.model.batch import Batch, by_length
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.masked_lm.lenses import AffineLens, Lens, StatesAt, head_logits
from bertology.model.masked_lm.masking import OnScored
from bertology.model.masked_lm.narrow_head import run_predicting
from bertology.model.masked_lm.predictions import Prediction
from bertology.model.masked_lm.questions import (
    METHODS,
    Asked,
    Masked,
    Question,
    asked_of,
    check_blanks,
)

_TOKENIZED = 256  # questions whose texts are tokenized together
_WINDOW = 4096  # masked texts that are held before they are computed


@dataclass(frozen=True)
class Answer:
    """What the model says to a question, by reading (R): the model itself, or each layer."""

    question: Question
    scores: Floats  # (R, C) of each candidate
    prior: Floats | None  # (R, C) the same where something else stands in place of the subject
    pieces: tuple[tuple[str, ...], ...]  # of each candidate
    top: tuple[tuple[Prediction, ...], ...]  # R rows of the best words; empty with candidates
    ranks: Floats  # (R, A) of each of the question's answers in the vocabulary
    log_probabilities: Floats  # (R, A) of the same

    @property
    def calibrated(self) -> Floats:
        """(R, C) log-probabilities less those that the template alone gives."""
        if self.prior is None:
            raise DataError("These answers were not asked for with a prior.")
        return np.subtract(self.scores, self.prior)


@dataclass(frozen=True)
class Clozes:
    """How questions are asked; see the module's text.

    `prior` is what stands in place of a question's subject when the template's own preference is
    asked: `{mask}`, or a word without content such as "something". `vocabulary` restricts open
    questions to these words, each of one piece; probabilities stay those over the whole vocabulary.
    """

    encoder: Encoder
    method: str = "left-to-right"
    prior: str | None = None
    lens: Lens | None = None
    top_k: int = 10
    vocabulary: Sequence[str] | None = None
    tokens_per_batch: int = 4096

    def __post_init__(self) -> None:
        encoder = self.encoder
        encoder.require(Capability.MASKED_LM)
        if self.method not in METHODS:
            raise UnknownNameError("method", self.method, METHODS)
        if encoder.tokenizer is None or encoder.tokenizer.mask_token is None:
            raise ModelError(f"{encoder.name!r} came without a mask token, so it fills no blanks.")
        most = int(encoder.config.vocab_size) if self._allowed is None else len(self._allowed)
        if not 1 <= self.top_k <= most:
            raise ParameterError("top_k", "cloze", f"be between 1 and {most}", self.top_k)
        if self.lens is not None and len(encoder.family.stacks) > 1:
            raise CapabilityError(
                f"The head of {encoder.family.title} reads a decoder, not the encoder's layers, so "
                "that a lens would show nothing of them.",
                hint="Ask it without a lens.",
            )
        if isinstance(self.lens, AffineLens):
            self.lens.check(encoder)

    @cached_property
    def _allowed(self) -> Tensor | None:
        """The ids of the restricted vocabulary."""
        if self.vocabulary is None:
            return None
        found = one_piece_words(self.encoder, self.vocabulary)
        lacking = [word for word in self.vocabulary if word not in found]
        if lacking or not found:
            raise DataError(
                f"The vocabulary of {self.encoder.name!r} has no single piece for "
                f"{len(lacking)} of {len(self.vocabulary)} words"
                + (f", such as {lacking[0]!r}." if lacking else "."),
                hint="Leave them out (one_piece_words says which it has), or give candidates.",
            )
        return torch.tensor(sorted(set(found.values())), device=self.encoder.device)

    def check(self, questions: Iterable[Question]) -> None:
        """Refuse what cannot be asked, before any work: only tokenizes."""
        for some in _some(questions, _TOKENIZED):
            self._plan(_Window(), some)

    def answers(
        self, questions: Iterable[Question], *, progress: OnScored | None = None
    ) -> Iterator[Answer]:
        """Answers in the order of the questions.

        `progress` is called with the number of masked texts computed, and of those known to be
        needed so far.
        """
        done, window = 0, _Window()
        for some in _some(questions, _TOKENIZED):
            self._plan(window, some)
            if len(window.texts) >= _WINDOW:
                yield from self._computed(window, progress, done)
                done, window = done + len(window.texts), _Window()
        yield from self._computed(window, progress, done)

    def distributions(self, questions: Iterable[Question]) -> Iterator[NDArray[np.float32]]:
        """Log-probabilities (V,) of all pieces in the blank of each question, in their order.

        Questions are open ones, and the model itself is asked, not its layers. Rows are long, so
        fewer of them are held at a time than of `answers`.
        """
        for some in _some(questions, _TOKENIZED):
            window = _Window()
            self._plan(window, some)
            found, reads = None, window.sorted_reads()
            for chosen in by_length([len(t.ids) for t in window.texts], self.tokens_per_batch):
                rows, slots, _, cells = reads.of(chosen)
                *_, (_, logits) = self._readings(window, chosen)
                at = [torch.from_numpy(a).to(logits.device) for a in (rows, slots)]
                logs = torch.log_softmax(logits[at[0], at[1]].float(), dim=-1).cpu().numpy()
                if found is None:
                    found = np.empty((len(some), logs.shape[-1]), np.float32)
                found[cells] = logs
            assert found is not None
            yield from found

    def _plan(self, window: _Window, questions: Sequence[Question]) -> None:
        encoder, mask = self.encoder, self.encoder.tokenizer.mask_token
        check_blanks(questions, mask)
        answers = {a for q in questions if not q.candidates for a in q.answers}
        tokens = self._answer_tokens(answers)
        first = window.begin(questions, tokens)
        for one in asked_of(encoder, questions, self.method):
            window.add(one, first, prior=False)
        if self.prior is None:
            return
        closed = [i for i, q in enumerate(questions) if q.candidates]
        if closed:
            others = [questions[i].about(self.prior, mask) for i in closed]
            for one in asked_of(encoder, others, self.method):
                moved = Asked(closed[one.question], one.reads, one.pieces)
                window.add(moved, first, prior=True)

    def _answer_tokens(self, answers: Iterable[str | int]) -> dict[str | int, int]:
        words = sorted(a for a in answers if isinstance(a, str))
        found: dict[str | int, int] = {a: a for a in answers if isinstance(a, int)}
        found.update(one_piece_words(self.encoder, words))
        for word in words:
            if word not in found:
                raise DataError(
                    f"The answer {word!r} is not a single piece of the vocabulary of "
                    f"{self.encoder.name!r}, so it has no rank there.",
                    hint="Leave it out, or give candidates, which may have several pieces.",
                )
        if self._allowed is not None:
            allowed = set(self._allowed.tolist())
            for answer, token in found.items():
                if token not in allowed:
                    raise DataError(f"The answer {answer!r} is not in the restricted vocabulary.")
        return found

    # Computing -----------------------------------------------------------------------------------

    def _computed(
        self, window: _Window, progress: OnScored | None, before: int
    ) -> Iterator[Answer]:
        if not window.questions:
            return
        readings = 1 if self.lens is None else self.encoder.shape.layers
        sums = np.zeros((readings, window.cells))
        best: dict[tuple[int, int], _Best] = {}  # reading, question
        reads, done = window.sorted_reads(), before
        for chosen in by_length([len(t.ids) for t in window.texts], self.tokens_per_batch):
            rows, slots, tokens, cells = reads.of(chosen)
            wanted, open_ = tokens >= 0, np.flatnonzero(tokens < 0)
            at = [torch.from_numpy(a).to(self.encoder.device) for a in (rows, slots, tokens)]
            for reading, logits in self._readings(window, chosen):
                normaliser = torch.logsumexp(logits.float(), dim=-1)  # (B, K)
                row, slot, token = (a[wanted] for a in at)
                values = logits[row, slot, token].float() - normaliser[row, slot]
                np.add.at(sums[reading], cells[wanted], values.double().cpu().numpy())
                for i in open_:
                    r, s = int(rows[i]), int(slots[i])
                    scores = logits[r, s].float() - normaliser[r, s]
                    best[reading, int(cells[i])] = self._best(scores, window.ranked(int(cells[i])))
            done += len(chosen)
            if progress is not None:
                progress(done, before + len(window.texts))
        yield from window.answers(self.encoder, sums, best, with_prior=self.prior is not None)

    def _readings(self, window: _Window, chosen: Sequence[int]) -> Iterator[tuple[int, Tensor]]:
        """Logits (B, K, V) at the places that are read, of the model or of each layer."""
        inputs, places = _padded(self.encoder, window, chosen)
        states = None if self.lens is None else StatesAt(places)
        _, logits = run_predicting(
            self.encoder,
            Batch(inputs, chosen, self.encoder.tokenizer),
            places,
            reduce=None if states is None else {"layer.*.residual": states},
        )
        if states is None or self.lens is None:
            yield 0, logits
            return
        last = self.encoder.shape.layers - 1
        for layer in range(last):
            seen = self.lens(layer, states.found[layer])  # (B, K, M)
            found = head_logits(self.encoder, seen.flatten(0, 1))
            yield layer, found.reshape(*places.shape, -1)
        yield last, logits

    def _best(self, scores: Tensor, answers: Sequence[int]) -> _Best:
        """Of one place (V,): the best pieces, and the ranks of some."""
        among = scores if self._allowed is None else scores[self._allowed]
        values, at = among.topk(self.top_k)
        ids = at if self._allowed is None else self._allowed[at]
        own = scores[torch.tensor(answers, dtype=torch.long, device=scores.device)]  # (A,)
        ordered = among.sort().values  # once, however many ranks are asked for
        below, upto = (torch.searchsorted(ordered, own, right=r) for r in (False, True))
        ranks = len(ordered) - upto + (upto - below + 1) / 2
        return _Best(
            ids.tolist(), values.tolist(), ranks.cpu().double().numpy(), own.cpu().double().numpy()
        )


@dataclass(frozen=True)
class _Best:
    ids: list[int]
    values: list[float]
    ranks: Floats
    own: Floats


@dataclass
class _Reads:
    """What is read of each masked text, in the order of texts."""

    starts: NDArray[np.int64]
    slots: NDArray[np.int64]
    tokens: NDArray[np.int64]
    cells: NDArray[np.int64]

    def of(self, chosen: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
        """Rows, slots, tokens and cells of some texts."""
        ends = self.starts[np.asarray(chosen) + 1]
        counts = ends - self.starts[chosen]
        at = np.concatenate([np.arange(self.starts[c], self.starts[c + 1]) for c in chosen])
        rows = np.repeat(np.arange(len(chosen)), counts)
        return rows, self.slots[at], self.tokens[at], self.cells[at]


@dataclass
class _Window:
    """Questions that are computed together, and the distinct masked texts that they need."""

    questions: list[Question] = field(default_factory=list)
    texts: list[Masked] = field(default_factory=list)
    places: list[list[int]] = field(default_factory=list)  # of each text, where it is read
    cells: int = 0  # sums of log-probabilities
    _numbers: dict[Masked, int] = field(default_factory=dict)
    _reads: list[tuple[int, int, int, int]] = field(default_factory=list)
    _candidates: list[list[tuple[int, tuple[int, ...]]]] = field(default_factory=list)
    _priors: list[list[int]] = field(default_factory=list)
    _tokens: list[tuple[int, ...]] = field(default_factory=list)  # of the answers of open ones

    def begin(self, questions: Sequence[Question], tokens: Mapping[str | int, int]) -> int:
        """Take some questions; the number of the first of them."""
        first = len(self.questions)
        for question in questions:
            self.questions.append(question)
            self._candidates.append([])
            self._priors.append([])
            known = () if question.candidates else question.answers
            self._tokens.append(tuple(tokens[word] for word in known))
        return first

    def add(self, one: Asked, first: int, *, prior: bool) -> None:
        """Take what one candidate or open blank needs."""
        question, is_open = first + one.question, one.reads[0][2] < 0
        cell = question if is_open else self.cells
        for masked, place, token in one.reads:
            number = self._numbers.setdefault(masked, len(self.texts))
            if number == len(self.texts):
                self.texts.append(masked)
                self.places.append([])
            places = self.places[number]
            if place not in places:
                places.append(place)
            self._reads.append((number, places.index(place), token, cell))
        if not is_open:
            self.cells += 1
            if prior:
                self._priors[question].append(cell)
            else:
                self._candidates[question].append((cell, one.pieces))

    def sorted_reads(self) -> _Reads:
        """What is read, by text."""
        text, slot, token, cell = np.array(self._reads, np.int64).T
        order = np.argsort(text, kind="stable")
        starts = np.searchsorted(text[order], np.arange(len(self.texts) + 1))
        return _Reads(starts, slot[order], token[order], cell[order])

    def ranked(self, question: int) -> tuple[int, ...]:
        """The pieces whose rank an open question asks for."""
        return self._tokens[question]

    def answers(
        self,
        encoder: Encoder,
        sums: Floats,
        best: dict[tuple[int, int], _Best],
        *,
        with_prior: bool,
    ) -> Iterator[Answer]:
        """In the order of the questions."""
        convert = encoder.tokenizer.convert_ids_to_tokens
        for number, question in enumerate(self.questions):
            cells = [cell for cell, _ in self._candidates[number]]
            found = [] if cells else [best[r, number] for r in range(len(sums))]
            none = np.empty((len(sums), 0))
            yield Answer(
                question,
                scores=sums[:, cells],
                prior=sums[:, self._priors[number]] if with_prior and cells else None,
                pieces=tuple(tuple(convert(list(ids))) for _, ids in self._candidates[number]),
                top=tuple(
                    tuple(
                        Prediction.of(encoder, i, v) for i, v in zip(b.ids, b.values, strict=True)
                    )
                    for b in found
                ),
                ranks=np.stack([b.ranks for b in found]) if found else none,
                log_probabilities=np.stack([b.own for b in found]) if found else none,
            )


def one_piece_words(encoder: Encoder, words: Iterable[str]) -> dict[str, int]:
    """The words that are one piece of the vocabulary inside a text, with their ids."""
    asked = list(dict.fromkeys(words))
    if not asked:
        return {}
    encoder.require_tokenizer()
    tokenizer = encoder.tokenizer
    # After another word, as byte-level and sentence-piece vocabularies mark the space before.
    first = tokenizer("a", add_special_tokens=False)["input_ids"]
    rows = tokenizer([f"a {word.strip()}" for word in asked], add_special_tokens=False)["input_ids"]
    found = {}
    for word, ids in zip(asked, rows, strict=True):
        rest = ids[len(first) :]
        if ids[: len(first)] == first and len(rest) == 1 and rest[0] != tokenizer.unk_token_id:
            found[word] = int(rest[0])
    return found


def _some(questions: Iterable[Question], size: int) -> Iterator[list[Question]]:
    left = iter(questions)
    while some := list(islice(left, size)):
        yield some


def _padded(
    encoder: Encoder, window: _Window, chosen: Sequence[int]
) -> tuple[dict[str, Tensor], Tensor]:
    """Model inputs (B, T), and the places (B, K) that are read."""
    texts = [window.texts[c] for c in chosen]
    longest = max(len(text.ids) for text in texts)
    most = max(len(window.places[c]) for c in chosen)
    ids = np.full((len(texts), longest), encoder.tokenizer.pad_token_id or 0)
    real, types = np.zeros_like(ids), np.zeros_like(ids)
    places = np.zeros((len(texts), most), np.int64)
    for row, (text, c) in enumerate(zip(texts, chosen, strict=True)):
        ids[row, : len(text.ids)], real[row, : len(text.ids)] = text.ids, 1
        if text.types is not None:
            types[row, : len(text.ids)] = text.types
        read = window.places[c]
        places[row, : len(read)] = read
    inputs = {"input_ids": ids, "attention_mask": real}
    if all(text.types is not None for text in texts):
        inputs["token_type_ids"] = types
    moved = {name: torch.from_numpy(value).to(encoder.device) for name, value in inputs.items()}
    return moved, torch.from_numpy(places).to(encoder.device)
