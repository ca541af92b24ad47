"""Folding a standardisation into the pooler equals doing it."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import planted
import tiny
from bertology.train.pretrain.trial import cls_statistics, fold_standardisation, normalise_cls


def test_the_folded_map_is_the_map_of_standardised_values() -> None:
    torch.manual_seed(0)
    x = 3 + 5 * torch.randn(50, 8) * torch.arange(1, 9)
    mean, spread = x.mean(0), x.std(0)
    linear = nn.Linear(8, 6)
    expected = linear((x - mean) / spread)
    fold_standardisation(linear, mean, spread)
    torch.testing.assert_close(linear(x), expected, rtol=1e-4, atol=1e-5)


def test_a_classifier_sees_standardised_embeddings() -> None:
    torch.manual_seed(1)
    model, tokenizer = tiny.model("bert", "classification"), planted.tokenizer()
    corpus = planted.corpus(40)
    body = model.bert
    rows = [tokenizer(str(t), return_tensors="pt") for t in corpus.texts]
    with torch.no_grad():
        states = torch.cat([body(**row).last_hidden_state[:, 0] for row in rows])
        mean, spread = states.mean(0), states.std(0, correction=0)
        expected = torch.tanh(body.pooler.dense((states - mean) / spread))
    found = cls_statistics(body, tokenizer, corpus)
    np.testing.assert_allclose(found[0], mean, atol=1e-5)
    np.testing.assert_allclose(found[1], spread, atol=1e-5)
    normalise_cls(model, tokenizer, corpus)
    with torch.no_grad():
        pooled = torch.cat([body(**row).pooler_output for row in rows])
    torch.testing.assert_close(pooled, expected, rtol=1e-3, atol=1e-4)


def test_what_never_varies_is_only_centred() -> None:
    model, tokenizer = planted.model(), planted.tokenizer()
    with torch.no_grad():
        model.bert.encoder.layer[-1].output.LayerNorm.weight.zero_()
        model.bert.encoder.layer[-1].output.LayerNorm.bias.fill_(2.0)
    mean, spread = cls_statistics(model.bert, tokenizer, planted.corpus(5))
    assert torch.allclose(mean, torch.full_like(mean, 2.0))
    assert torch.equal(spread, torch.ones_like(spread))
