"""Embedding normalisation: the last [CLS] embedding is standardised before the pooler.

Zhou et al. (2019) observe that its values are not centred, and standardise them by the mean and
the spread over the training texts. The pooler begins with a linear map, so its weights can do
the same: W (x - μ) / σ + b = W' x + b' with W' = W / σ and b' = b - W' μ. The model
stays an ordinary BERT; fine-tuning starts where the explicit form would, and learns W' from there.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertology.data.corpus import Corpus
from bertology.train.encoded import encode
from bertology.train.protocols import Bert, BertClassifier, Tokenizer

_TOKENS_PER_BATCH = 4096
_LEAST = 1e-6  # a value that never varies is centred and left at its size


def normalise_cls(model: BertClassifier, tokenizer: Tokenizer, corpus: Corpus) -> None:
    """Let the pooler of a sequence classifier see standardised [CLS] embeddings, in place."""
    body = model.base_model
    mean, spread = cls_statistics(body, tokenizer, corpus)
    fold_standardisation(body.pooler.dense, mean, spread)


def cls_statistics(body: Bert, tokenizer: Tokenizer, corpus: Corpus) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (hidden,) of the last [CLS] embedding over the corpus."""
    encoded = encode(corpus, tokenizer, body.config.max_position_embeddings)
    total = square = torch.zeros(body.config.hidden_size, dtype=torch.float64)
    was_training = body.training
    body.eval()
    try:
        with torch.no_grad():
            for chosen in encoded.in_order_of_length(_TOKENS_PER_BATCH):
                inputs, _ = encoded.batch(chosen, body.device)
                states = body(**inputs).last_hidden_state[:, 0].double().cpu()  # (B, hidden)
                total = total + states.sum(0)
                square = square + (states**2).sum(0)
    finally:
        body.train(was_training)
    mean = total / len(encoded)
    spread = (square / len(encoded) - mean**2).clamp(min=0).sqrt()
    return mean, torch.where(spread < _LEAST, 1.0, spread)


def fold_standardisation(linear: nn.Linear, mean: Tensor, spread: Tensor) -> None:
    """Change a linear map in place so that it does to x what it did to (x - mean) / spread."""
    with torch.no_grad():
        weight = linear.weight.double()
        where = weight.device
        scaled = weight / spread.double().to(where)  # (out, in)
        linear.bias.sub_(scaled @ mean.double().to(where))
        linear.weight.copy_(scaled)
