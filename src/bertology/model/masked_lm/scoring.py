"""Scores that a masked language model gives to sentences and blanks.

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

from bertology.errors import DataError, UnknownNameError
from bertology.model.batch import Text, Texts, WithTexts, texts_of
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.masking import (
    Batching,
    Copies,
    OnScored,
    Sequences,
    beginnings,
    flat,
    log_probabilities,
    tokenize,
    word_ends,
)

Method = Literal["within-word-l2r", "original"]
SCORING_METHODS = ("within-word-l2r", "original")


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
    texts: Texts,
    *,
    method: Method = "within-word-l2r",
    tokens_per_batch: int = 4096,
    progress: OnScored | None = None,
) -> list[Likelihood]:
    """Score texts, pairs of texts or a corpus by masking one token at a time.

    All masked copies of all texts are batched together by length. `progress` is called with the
    number of copies done and their number in all.
    """
    if method not in SCORING_METHODS:
        raise UnknownNameError("scoring method", method, SCORING_METHODS)
    many = texts_of(texts)
    rows = tokenize(encoder, many)
    copies = _copies(encoder, rows, method)
    targets = copies.ids[copies.starts[copies.text] + copies.position]
    found = np.empty(len(copies))
    options: Batching = {"tokens_per_batch": tokens_per_batch, "progress": progress}
    for chosen, scores in log_probabilities(encoder, copies, **options):
        wanted = torch.from_numpy(targets[chosen]).to(scores.device)
        found[chosen] = scores.gather(1, wanted[:, None])[:, 0].cpu().numpy()
    ends = np.cumsum(np.bincount(copies.text, minlength=len(many)))[:-1]
    return [Likelihood(tuple(part.tolist())) for part in np.split(found, ends)]


def compare_pairs(
    encoder: Encoder,
    good: Sequence[Text] | WithTexts,
    bad: Sequence[Text] | WithTexts | None = None,
    *,
    method: Method = "within-word-l2r",
    tokens_per_batch: int = 4096,
    progress: OnScored | None = None,
) -> NDArray[np.float64]:
    """Minimal pairs: how much likelier each good sentence is than the bad one beside it.

    A corpus of minimal pairs has both. The sign says which one the model prefers;
    `(compare_pairs(…) > 0).mean()` is the accuracy as BLiMP counts it.
    """
    if isinstance(good, str) or isinstance(bad, str):
        raise DataError("Minimal pairs come as two lists of sentences, not as two sentences.")
    if bad is None:
        bad = _contrasts(good)
    good, bad = texts_of(good), texts_of(bad)
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


def _contrasts(pairs: Any) -> list[Text]:
    """The bad sentences of a corpus of minimal pairs."""
    if not all(hasattr(pair, "get") for pair in pairs):
        raise DataError("Minimal pairs come as two lists of sentences, or as a corpus with both.")
    return [pair.get("contrast") for pair in pairs]


def _copies(encoder: Encoder, rows: Sequences, method: Method) -> Copies:
    """A copy for every token that is not special."""
    starts = beginnings(rows.ids)
    scored = np.flatnonzero(flat(rows.special) == 0)
    text = np.searchsorted(starts, scored, side="right") - 1
    empty = np.flatnonzero(np.bincount(text, minlength=len(rows.ids)) == 0)
    if len(empty):
        raise DataError(f"Text {empty[0]} is empty: there is nothing to score.")
    last = scored if method == "original" else word_ends(encoder, rows)[scored]
    return Copies(
        ids=flat(rows.ids),
        types=None if rows.types is None else flat(rows.types),
        starts=starts,
        text=text,
        position=scored - starts[text],
        last=last - starts[text],
    )
