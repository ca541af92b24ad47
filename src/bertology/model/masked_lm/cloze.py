"""What a masked language model would fill in: its own best guesses, or given candidates.

A blank is written `{mask}`, or as the tokenizer's own mask token. A candidate is scored as the
pieces it has in its place: as many masks as pieces, filled from left to right, log-probabilities
summed. Candidates of the same number of pieces share a forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bertology.errors import DataError, ModelError, ParameterError
from bertology.model.batch import WithTexts, texts_of
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.masked_lm.masking import (
    Batching,
    Copies,
    Masked,
    OnScored,
    Sequences,
    log_probabilities,
    tokenize,
)

__all__ = ["Cloze", "Prediction", "cloze"]

PLACEHOLDER = "{mask}"


@dataclass(frozen=True)
class Prediction:
    """A word in a blank. The log-probability of several pieces is the sum of theirs."""

    word: str
    log_probability: float
    pieces: tuple[str, ...]

    @property
    def probability(self) -> float:
        return math.exp(self.log_probability)


Blanks = tuple[tuple[Prediction, ...], ...]


@dataclass(frozen=True)
class Cloze:
    """A text with its blanks, each with predictions from the likeliest on."""

    text: str
    blanks: Blanks

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """The predictions of a text's only blank."""
        if len(self.blanks) != 1:
            raise DataError(
                f"{self.text!r} has {len(self.blanks)} blanks, so its predictions are in `blanks`."
            )
        return self.blanks[0]

    def log_probability(self, word: str) -> float:
        """Of one of the words predicted for the only blank."""
        for found in self.predictions:
            if found.word == word:
                return found.log_probability
        raise DataError(f"{word!r} is not among the predictions for {self.text!r}.")


def cloze(
    encoder: Encoder,
    texts: str | Sequence[str] | WithTexts,
    *,
    candidates: Sequence[str] | Sequence[Sequence[str]] | None = None,
    top_k: int = 10,
    tokens_per_batch: int = 4096,
    progress: OnScored | None = None,
) -> list[Cloze]:
    """Fill the blanks of texts.

    Without candidates, every blank gets the `top_k` likeliest pieces of the vocabulary. With
    candidates (for all texts, or one list for each), every text must have one blank, and all of
    its candidates come back in the order of their log-probability.
    """
    encoder.require(Capability.MASKED_LM)
    many = [text for text in texts_of(texts) if isinstance(text, str)]
    if len(many) < len(texts_of(texts)):
        raise DataError("Blanks are filled in single texts, not in pairs of texts.")
    mask = None if encoder.tokenizer is None else encoder.tokenizer.mask_token
    if mask is None:
        raise ModelError(f"{encoder.name!r} came without a mask token, so it fills no blanks.")
    written = [t.replace(PLACEHOLDER, mask) for t in many]
    for text, given in zip(written, many, strict=True):
        if mask not in text:
            raise DataError(
                f"There is no blank in {given!r}.", hint=f"Write {PLACEHOLDER} or {mask} for it."
            )
    options: Batching = {"tokens_per_batch": tokens_per_batch, "progress": progress}
    if candidates is None:
        blanks = _open(encoder, written, top_k, options)
    else:
        blanks = _among(encoder, written, _lists(candidates, many, mask), options)
    return [Cloze(text, found) for text, found in zip(many, blanks, strict=True)]


def _open(encoder: Encoder, texts: list[str], top_k: int, options: Batching) -> list[Blanks]:
    vocabulary = int(encoder.config.vocab_size)
    if not 1 <= top_k <= vocabulary:
        raise ParameterError("top_k", "cloze", f"be between 1 and {vocabulary}", top_k)
    rows = tokenize(encoder, texts)
    mask = encoder.tokenizer.mask_token_id
    places = [(i, p) for i, ids in enumerate(rows.ids) for p, t in enumerate(ids) if t == mask]
    copies = [rows.masked(i, [], p, mask) for i, p in places]
    found: dict[tuple[int, int], tuple[Prediction, ...]] = {}
    for chosen, scores in log_probabilities(encoder, Copies.of(copies), **options):
        values, ids = (x.cpu().tolist() for x in scores.topk(top_k))
        for row, c in enumerate(chosen):
            found[places[c]] = tuple(
                _named(encoder, i, v) for i, v in zip(ids[row], values[row], strict=True)
            )
    return [tuple(found[p] for p in places if p[0] == i) for i in range(len(texts))]


def _named(encoder: Encoder, token: int, log_probability: float) -> Prediction:
    piece = encoder.tokenizer.convert_ids_to_tokens(token)
    return Prediction(encoder.tokenizer.decode([token]).strip(), log_probability, (str(piece),))


def _lists(
    candidates: Sequence[str] | Sequence[Sequence[str]], texts: list[str], mask: str
) -> list[list[str]]:
    """The candidates of each text."""
    if isinstance(candidates, str):
        raise ParameterError("candidates", "cloze", "be a list of words", candidates)
    shared = [c for c in candidates if isinstance(c, str)]
    alike = len(shared) == len(candidates)  # one list for all texts
    lists = [shared] * len(texts) if alike else [list(c) for c in candidates]
    if len(lists) != len(texts):
        raise DataError(f"There are {len(texts)} texts and {len(lists)} lists of candidates.")
    for text, words in zip(texts, lists, strict=True):
        if not words:
            raise DataError(f"There are no candidates for {text!r}.")
        if any(not w.strip() for w in words):
            raise DataError(f"A candidate for {text!r} is empty.")
        blanks = text.replace(PLACEHOLDER, mask).count(mask)
        if blanks > 1:
            raise DataError(
                f"{text!r} has {blanks} blanks; candidates can be scored in one.",
                hint="Give one blank a text, or leave the candidates out.",
            )
    return lists


def _among(
    encoder: Encoder, texts: list[str], lists: list[list[str]], options: Batching
) -> list[Blanks]:
    mask = encoder.tokenizer.mask_token
    spans, filled = [], []
    for text, words in zip(texts, lists, strict=True):
        left, right = text.split(mask)
        for word in words:
            filled.append(left + word.strip() + right)
            spans.append((len(left), len(left) + len(word.strip())))
    rows = tokenize(encoder, filled)
    places = [_pieces(encoder, rows, i, span, filled[i]) for i, span in enumerate(spans)]
    totals = _scores(encoder, rows, places, options)
    predictions = iter(
        Prediction(
            word.strip(),
            total,
            tuple(encoder.tokenizer.convert_ids_to_tokens([rows.ids[i][p] for p in places[i]])),
        )
        for i, (word, total) in enumerate(
            zip((w for words in lists for w in words), totals, strict=True)
        )
    )
    ranked: list[Blanks] = []
    for words in lists:
        found = [next(predictions) for _ in words]
        ranked.append((tuple(sorted(found, key=lambda p: -p.log_probability)),))
    return ranked


def _pieces(
    encoder: Encoder, rows: Sequences, text: int, span: tuple[int, int], filled: str
) -> list[int]:
    """Where the pieces of a candidate lie in the text that has it in place."""
    if rows.encodings is None:
        raise ModelError(
            f"The tokenizer of {encoder.name!r} does not say where its pieces come from.",
            hint="Candidates need a fast tokenizer (tokenizer.json).",
        )
    start, end = span
    encoding = rows.encodings[text]
    found = [
        p
        for p, (first, last) in enumerate(encoding.offsets)
        if not rows.special[text][p] and max(first, start) < min(last, end)
    ]
    unknown = encoder.tokenizer.unk_token_id
    if not found or any(rows.ids[text][p] == unknown for p in found):
        raise DataError(
            f"The candidate {filled[start:end]!r} is not in the vocabulary of {encoder.name!r}.",
            hint="Leave it out: its log-probability would be that of any unknown word.",
        )
    return found


def _scores(
    encoder: Encoder, rows: Sequences, places: list[list[int]], options: Batching
) -> list[float]:
    """Summed log-probabilities of the pieces at these places, filled from left to right."""
    mask = encoder.tokenizer.mask_token_id
    asked: dict[Masked, list[tuple[int, int]]] = {}  # copy -> (candidate, piece) it serves
    for i, pieces in enumerate(places):
        for n, p in enumerate(pieces):
            asked.setdefault(rows.masked(i, pieces[n:], p, mask), []).append((i, rows.ids[i][p]))
    copies = list(asked)
    totals = [0.0] * len(places)
    for chosen, scores in log_probabilities(encoder, Copies.of(copies), **options):
        wanted = [(row, *use) for row, c in enumerate(chosen) for use in asked[copies[c]]]
        at = torch.tensor([(row, token) for row, _, token in wanted], device=scores.device)
        values = scores[at[:, 0], at[:, 1]].cpu().tolist()
        for (_, candidate, _), value in zip(wanted, values, strict=True):
            totals[candidate] += value
    return totals
