"""What a masked language model makes of sentences and blanks.

Pseudo-log-likelihood: each token is masked in turn and its log-probability summed (Salazar et
al. 2020). A word of several pieces is then too easy, as its last pieces give away the first; the
default `within-word-l2r` masks the later pieces of the same word too (Kauf and Ivanova 2023).

Everything runs through `Encoder.run`, so that `with encoder.doing(…)` scores a changed model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.errors import DataError, ModelError, UnknownNameError
from bertology.model.batch import Text
from bertology.model.cloze import Cloze, Prediction, cloze
from bertology.model.encoder import Encoder
from bertology.model.masking import Masked, Progress, Sequences, log_probabilities, tokenize

__all__ = [
    "Cloze",
    "Likelihood",
    "Method",
    "Prediction",
    "cloze",
    "compare_pairs",
    "pseudo_log_likelihood",
]

Method = Literal["within-word-l2r", "original"]
METHODS = ("within-word-l2r", "original")


@dataclass(frozen=True)
class Likelihood:
    """The pseudo-log-likelihood of one text, token by token (natural logarithms)."""

    log_probabilities: tuple[float, ...]  # of each token that is not special, in order

    @property
    def total(self) -> float:
        return math.fsum(self.log_probabilities)

    @property
    def tokens(self) -> int:
        """How many tokens were scored."""
        return len(self.log_probabilities)

    @property
    def mean(self) -> float:
        return self.total / self.tokens


def pseudo_log_likelihood(
    encoder: Encoder,
    texts: Text | Sequence[Text],
    *,
    method: Method = "within-word-l2r",
    tokens_per_batch: int = 4096,
    progress: Progress | None = None,
) -> list[Likelihood]:
    """Score texts, or pairs of texts, by masking one token at a time.

    All masked copies of all texts are batched together by length. `progress` is called with the
    number of copies done and their number in all.
    """
    if method not in METHODS:
        raise UnknownNameError("scoring method", method, METHODS)
    many: list[Any] = [texts] if isinstance(texts, str | tuple) else list(texts)
    rows = tokenize(encoder, many)
    words = _words(encoder, rows) if method == "within-word-l2r" else None
    copies: list[Masked] = []
    owners: list[int] = []
    targets: list[int] = []
    for i, (ids, special) in enumerate(zip(rows.ids, rows.special, strict=True)):
        scored = [p for p, s in enumerate(special) if not s]
        if not scored:
            raise DataError(f"Text {i} is empty: there is nothing to score.")
        for p in scored:
            hidden = [p] if words is None else _rest_of_word(words[i], p)
            copies.append(rows.masked(i, hidden, p, encoder.tokenizer.mask_token_id))
            owners.append(i)
            targets.append(ids[p])
    found = np.empty(len(copies))
    options: dict[str, Any] = {"tokens_per_batch": tokens_per_batch, "progress": progress}
    for chosen, scores in log_probabilities(encoder, copies, **options):
        wanted = torch.tensor([targets[c] for c in chosen], device=scores.device)
        found[chosen] = scores.gather(1, wanted[:, None])[:, 0].cpu().numpy()
    ends = np.cumsum(np.bincount(owners, minlength=len(many)))[:-1]
    return [Likelihood(tuple(part.tolist())) for part in np.split(found, ends)]


def compare_pairs(
    encoder: Encoder,
    good: Sequence[Text],
    bad: Sequence[Text],
    *,
    method: Method = "within-word-l2r",
    tokens_per_batch: int = 4096,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Minimal pairs: how much likelier each good sentence is than the bad one beside it.

    The sign says which one the model prefers; `(compare_pairs(…) > 0).mean()` is the accuracy as
    BLiMP counts it.
    """
    if isinstance(good, str) or isinstance(bad, str):
        raise DataError("Minimal pairs come as two lists of sentences, not as two sentences.")
    if len(good) != len(bad):
        raise DataError(
            f"Minimal pairs need a bad sentence for each good one: {len(good)} are good and "
            f"{len(bad)} bad."
        )
    scores = pseudo_log_likelihood(
        encoder, [*good, *bad],
        method=method, tokens_per_batch=tokens_per_batch, progress=progress,
    )  # fmt: skip
    totals: NDArray[np.float64] = np.array([s.total for s in scores])
    return np.subtract(totals[: len(good)], totals[len(good) :])


Word = tuple[int, int] | None  # (which of a pair, which word); None for special tokens


def _words(encoder: Encoder, rows: Sequences) -> list[list[Word]]:
    """The word each token belongs to."""
    if rows.encodings is None:
        raise ModelError(
            f"The tokenizer of {encoder.name!r} does not say which pieces make a word.",
            hint="Use method='original', or a fast tokenizer (tokenizer.json).",
        )
    return [
        [
            None if word is None or part is None else (part, word)
            for part, word in zip(e.sequence_ids, e.word_ids, strict=True)
        ]
        for e in rows.encodings
    ]


def _rest_of_word(words: Sequence[Word], position: int) -> list[int]:
    """A piece and the later pieces of its word, which stand beside it."""
    last = position
    while last + 1 < len(words) and words[position] is not None:
        if words[last + 1] != words[position]:
            break
        last += 1
    return list(range(position, last + 1))
