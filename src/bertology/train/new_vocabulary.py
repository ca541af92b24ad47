"""Another vocabulary under a frozen body (Artetxe, Ruder and Yogatama 2020).

All rows of the table of pieces but those of special tokens are drawn anew, and learnt by masked
language modelling on text of one language; everything else stays as it was. So no row is shared
with the language that the probe was learnt in.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from bertology.errors import CapabilityError
from bertology.model.batch import tokenize
from bertology.model.encoder import Encoder
from bertology.train.optimizers import learning_rate_factor, set_rate
from bertology.train.token_rows import Encoded
from bertology.train.ways.masked_lm import hidden_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

_BATCH, _RATE, _SHARE, _WARMUP, _LONGEST = 32, 3e-3, 0.15, 0.1, 128


def with_own_head(encoder: Encoder) -> Encoder:
    """A copy with the masked-LM head that it was pre-trained with."""
    if encoder.head == "mlm":
        copied = copy.deepcopy(encoder.model)
        return Encoder(copied, encoder.tokenizer, head="mlm", name=encoder.name)
    if encoder.spec is None:
        raise CapabilityError(
            f"A new vocabulary needs the masked-LM head of {encoder.name!r}, and it is not known "
            "where the model was loaded from.",
            hint="Name a checkpoint that was pre-trained with it.",
        )
    how = {**encoder.spec, "head": "mlm", "num_labels": None, "dtype": "float32"}
    return Encoder.load(**how, device=str(encoder.device))


def redrawn(encoder: Encoder, *, seed: int) -> Encoder:
    """The same model with rows of chance for all pieces but special tokens."""
    found = with_own_head(encoder)
    rows = found.model.get_input_embeddings().weight
    bias = _bias(found.model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        special = list(encoder.tokenizer.all_special_ids)
        kept = rows[special].clone()
        new = torch.randn(rows.shape, generator=generator) * float(rows.std())
        rows.copy_(new.to(rows))
        rows[special] = kept
        if bias is not None:
            bias.zero_()
    return found


def learnt(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    steps: int,
    seed: int,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Train the rows of pieces, in place, to tell hidden pieces of these texts."""
    model: Any = encoder.model
    limit = min(encoder.max_length or _LONGEST, _LONGEST)
    read = tokenize(encoder.tokenizer, list(texts), limit=limit, too_long="truncate", name="texts")
    rows = Encoded(read.rows, [0] * len(texts), encoder.tokenizer, len(read.cut), limit)
    table, bias = model.get_input_embeddings().weight, _bias(model)
    model.requires_grad_(False)
    trained = [table] if bias is None else [table, bias]
    for one in trained:
        one.requires_grad_(True)
    special = list(encoder.tokenizer.all_special_ids)
    optimizer = torch.optim.Adam(trained, lr=_RATE)
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for step in range(steps):
            factor = learning_rate_factor(step, rise=round(_WARMUP * steps), total=steps)
            set_rate(optimizer, _RATE * factor)
            batch, _ = rows.batch(rng.integers(len(texts), size=_BATCH).tolist(), model.device)
            shown, asked = hidden_tokens(batch["input_ids"], encoder.tokenizer, _SHARE)
            logits = model(**{**batch, "input_ids": shown}).logits[asked]
            loss = functional.cross_entropy(logits.float(), batch["input_ids"][asked])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            table.grad[special] = 0.0
            optimizer.step()
            advance()
    model.requires_grad_(True)
    model.eval()


def _bias(model: Any) -> torch.Tensor | None:
    """What the masked-LM head adds to each piece, which belongs to the vocabulary, too."""
    output = model.get_output_embeddings()
    found: torch.Tensor | None = getattr(output, "bias", None)
    return found
