"""A small BERT from random weights, with a vocabulary of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from bertology.errors import ParameterError
from bertology.train.protocols import PretrainingBert, SizedVocabulary, Tokenizer
from bertology.train.vocabulary import wordpieces

# Sizes beyond these are slips of the pen; a million layers would be built one after another.
_MOST = {
    "layers": 1000,
    "heads": 10_000,
    "hidden": 1_000_000,
    "vocab_size": 10_000_000,
    "max_length": 1_000_000,
}


@dataclass(frozen=True)
class Architecture:
    """How large a fresh BERT is."""

    layers: int = 4
    heads: int = 4
    hidden: int = 128
    vocab_size: int = 2000  # at most; a small text has fewer pieces
    max_length: int = 128
    dropout: float = 0.1
    spread: float = 0.02  # standard deviation of the first weights
    # … of those that write to the residual stream, where they are to be smaller: a post-norm model
    # then begins near the identity, and its loss does not stay on a plateau.
    output_spread: float | None = None

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            if not 1 <= getattr(self, name) <= most:
                must = f"be at least 1 and at most {most:,}"
                raise ParameterError(name, "Architecture", must, getattr(self, name))
        if self.hidden % self.heads:
            raise ParameterError(
                "hidden", "Architecture", f"be a multiple of heads ({self.heads})", self.hidden
            )
        if not 0 <= self.dropout < 1:
            raise ParameterError("dropout", "Architecture", "be from 0 to below 1", self.dropout)


def fresh_bert(
    kind: str, size: Architecture, tokenizer: SizedVocabulary, *, seed: int = 0, **config: object
) -> PretrainingBert:
    """A BERT of the transformers class `kind` with random weights; torch's seed is left alone."""
    import torch
    import transformers

    chosen = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=4 * size.hidden,
        max_position_embeddings=size.max_length,
        hidden_dropout_prob=size.dropout,
        attention_probs_dropout_prob=size.dropout,
        initializer_range=size.spread,
        pad_token_id=tokenizer.pad_token_id,
        **config,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PretrainingBert = getattr(transformers, kind)(chosen).eval()
        if size.output_spread is not None:
            for name, weight in model.named_parameters():
                if name.endswith("output.dense.weight") and ".layer." in name:
                    torch.nn.init.normal_(weight, std=size.output_spread)
    return model


def fresh_tokenizer(
    texts: Iterable[str | tuple[str, str]], *, vocab_size: int, max_length: int
) -> Tokenizer:
    """A lower-casing WordPiece tokenizer trained on `texts`; pairs get segments 0 and 1."""
    lines = list(_flat(texts))
    return wordpieces(lambda: lines, vocab_size=vocab_size, max_length=max_length)


def _flat(texts: Iterable[str | tuple[str, str]]) -> Iterable[str]:
    for text in texts:
        yield from (text,) if isinstance(text, str) else text


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout by `seed`; the caller's own random numbers are not changed."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
