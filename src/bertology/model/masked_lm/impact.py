"""Perturbed masking: how much the guess at a masked word changes when a second word is masked.

Wu et al. (2020). A sentence of n words takes n copies with one word masked and n (n - 1) / 2 with
two: the copy in which words i and j are masked serves both i seen without j and j seen without i.
Copies of all sentences go through the model together, and the predictions of words are computed at
the two masked places only. A word of several pieces is masked whole and read at its first piece, as
in the authors' code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.errors import UnknownNameError
from bertology.model.batch import Batch, by_length
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.masked_lm.lenses import StatesAt
from bertology.model.masked_lm.narrow_head import run_predicting

Impact = Literal["distance", "probability"]
IMPACTS = ("distance", "probability")


@dataclass(frozen=True)
class MaskableText:
    """The pieces of a text, special tokens counted, and those of each word that is masked."""

    ids: Sequence[int]
    words: Sequence[Sequence[int]]
    types: Sequence[int] | None = None


@dataclass(frozen=True)
class _Copy:
    text: int
    masked: tuple[int, ...]  # one word or two


def impact_matrices(
    encoder: Encoder,
    texts: Sequence[MaskableText],
    *,
    measure: Impact = "distance",
    tokens_per_batch: int = 4096,
) -> list[NDArray[np.float32]]:
    """Of each text (C, n, n): [c, i, j] is what masking word j changes at the masked word i.

    `distance`: between the states at word i, after each layer (C layers). `probability`: by how
    much that of the word's right piece falls (C = 1). The diagonal is 0.
    """
    if measure not in IMPACTS:
        raise UnknownNameError("measure", measure, IMPACTS)
    encoder.require(Capability.MASKED_LM)
    candidates = encoder.shape.layers if measure == "distance" else 1
    found = [np.zeros((candidates, len(t.words), len(t.words)), np.float32) for t in texts]
    single = [_Copy(t, (i,)) for t, text in enumerate(texts) for i in range(len(text.words))]
    before: dict[tuple[int, int], Tensor] = {}
    for copies, seen in _seen(encoder, texts, single, measure, tokens_per_batch):
        # A copy of its own: a view would keep the whole batch.
        before |= {(c.text, c.masked[0]): seen[:, i, 0].clone() for i, c in enumerate(copies)}
    pairs = [
        _Copy(t, pair)
        for t, text in enumerate(texts)
        for pair in combinations(range(len(text.words)), 2)
    ]
    for copies, seen in _seen(encoder, texts, pairs, measure, tokens_per_batch):
        known = torch.stack(
            [torch.stack([before[c.text, w] for w in c.masked], dim=1) for c in copies], dim=1
        )  # (C, B, 2, …)
        change = (known - seen).norm(dim=-1) if measure == "distance" else known - seen
        values = change.float().cpu().numpy()  # (C, B, 2)
        for row, copy in enumerate(copies):
            i, j = copy.masked
            found[copy.text][:, i, j], found[copy.text][:, j, i] = values[:, row].T
    return found


def _seen(
    encoder: Encoder,
    texts: Sequence[MaskableText],
    copies: Sequence[_Copy],
    measure: Impact,
    tokens_per_batch: int,
) -> Iterator[tuple[list[_Copy], Tensor]]:
    """For each batch its copies, and states (L, B, K, M) or probabilities (1, B, K) at masks."""
    lengths = [len(texts[copy.text].ids) for copy in copies]
    for chosen in by_length(lengths, tokens_per_batch) if copies else ():
        some = [copies[at] for at in chosen]
        inputs, places = _masked(encoder, texts, some)
        batch = Batch(inputs, chosen, encoder.tokenizer)
        states = StatesAt(places)
        reduce = {"layer.*.residual": states} if measure == "distance" else None
        _, logits = run_predicting(encoder, batch, places, reduce=reduce)
        if measure == "distance":
            yield some, states.value()
        else:
            right = torch.tensor(
                [[texts[c.text].ids[texts[c.text].words[w][0]] for w in c.masked] for c in some],
                device=logits.device,
            )
            odds = torch.softmax(logits.float(), dim=-1)
            yield some, odds.gather(-1, right[..., None])[..., 0][None]


def _masked(
    encoder: Encoder, texts: Sequence[MaskableText], copies: Sequence[_Copy]
) -> tuple[dict[str, Tensor], Tensor]:
    """Model inputs (B, T) with masks, and the places (B, K) of the masked words' first pieces."""
    longest = max(len(texts[copy.text].ids) for copy in copies)
    shape = (len(copies), longest)
    ids = np.full(shape, encoder.tokenizer.pad_token_id or 0)
    real, types = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, copy in enumerate(copies):
        text = texts[copy.text]
        ids[row, : len(text.ids)], real[row, : len(text.ids)] = text.ids, 1
        if text.types is not None:
            types[row, : len(text.ids)] = text.types
        for word in copy.masked:
            ids[row, list(text.words[word])] = encoder.tokenizer.mask_token_id
    inputs = {"input_ids": ids, "attention_mask": real}
    if all(texts[copy.text].types is not None for copy in copies):
        inputs["token_type_ids"] = types
    firsts = [[texts[copy.text].words[word][0] for word in copy.masked] for copy in copies]
    on_device = {name: torch.from_numpy(value).to(encoder.device) for name, value in inputs.items()}
    return on_device, torch.tensor(firsts, device=encoder.device)
