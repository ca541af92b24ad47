"""A few rows of made-up tokens, and what is needed to run a pre-training loss on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf
from torch import Tensor

from bertology.train.fresh import Architecture
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Masking, Objective
from bertology.train.pretrain.losses import Loss, LossInput, LossOutcome, make_loss
from bertology.train.pretrain.masking import MaskableVocabulary, hide
from bertology.train.pretrain.rows import Rows

PAD, UNK, CLS, SEP, MASK = range(5)
VOCAB = 40
SIZE = Architecture(layers=2, heads=2, hidden=16, vocab_size=VOCAB, max_length=64, dropout=0.0)


def rows(batch: int = 4, length: int = 16, *, seed: int = 0) -> Rows:
    """Rows of two parts; every second one is padded. Each third piece goes on with a word."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(MASK + 1, VOCAB, (batch, length), generator=draw)
    column = torch.arange(length).expand_as(ids)
    middle = torch.full((batch, 1), length // 2)
    end = torch.where(torch.arange(batch)[:, None] % 2 == 0, length - 1, length - 4)
    ids = torch.where((column == middle) | (column == end), SEP, ids)
    ids = torch.where(column == 0, CLS, ids)
    ids = torch.where(column > end, PAD, ids)
    fixed = ids <= SEP
    return Rows(
        ids=ids,
        segments=((column > middle) & (column <= end)).long(),
        fixed=fixed,
        starts=(ids % 3 > 0) | fixed,
        index=torch.arange(batch) * 7 + 3,
        real=column <= end,
        relation=torch.arange(batch) % 2,
    )


def pieces() -> MaskableVocabulary:
    """All but the special ones are ordinary."""
    return MaskableVocabulary(
        torch.arange(MASK + 1, VOCAB), MASK, UNK, torch.full((VOCAB,), 1 / VOCAB)
    )


def view(of: Rows, *, units: str = "tokens", share: float = 0.3, seed: int = 0) -> LossInput:
    """The rows with some tokens hidden."""
    some = pieces()
    return LossInput.masked(
        of, hide(of, Masking(units=units, share=share), some, Chance(seed)), some
    )


def model(*, seed: int = 0, spread: float = 0.02, attention: str = "sdpa") -> Any:
    """A tiny BertForPreTraining."""
    config = hf.BertConfig(
        vocab_size=VOCAB,
        hidden_size=SIZE.hidden,
        num_hidden_layers=SIZE.layers,
        num_attention_heads=SIZE.heads,
        intermediate_size=4 * SIZE.hidden,
        max_position_embeddings=SIZE.max_length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=spread,
        attn_implementation=attention,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return hf.BertForPreTraining(config).eval()


def loss(name: str, *, seed: int = 0, shuffled: float = 0.2) -> Loss:
    """The loss of this name, in the size of `model`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make_loss(name, Objective(losses=(name,), shuffled=shuffled), SIZE, VOCAB)


@dataclass(frozen=True)
class Ran:
    """One loss on one batch, and what was seen on the way."""

    view: LossInput
    states: Tensor
    outcome: LossOutcome


def run(judge: Loss, body: Any, seen: LossInput, *, seed: int = 0) -> Ran:
    """What a network does, for one loss."""
    ready = judge.prepare(seen, body, Chance(seed))
    states = body.bert(**ready.inputs).last_hidden_state
    return Ran(ready, states, judge(states, ready, body))
