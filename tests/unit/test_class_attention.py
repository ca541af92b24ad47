"""Attention to classes: equal to a plain loop, and to all draws counted one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

import planted_links
from bertology.annotated.tagged_batches import classified_batches
from bertology.data.words.classes import TokenClass
from bertology.model.encoder import Encoder
from bertology.model.reducers.class_attention import (
    ClassAttention,
    FirstTokenAttention,
    expected_maximum,
)


def test_the_expected_maximum_is_the_mean_over_all_draws() -> None:
    values = torch.rand(1, 2, 7, generator=torch.Generator().manual_seed(0))
    places = torch.tensor([[-1, 0, 0, 0, 1, 1, 1]])
    mask = torch.tensor([[[0, 1, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0]]], dtype=torch.bool)
    found = expected_maximum(values, places, mask)
    for head in range(2):
        row = values[0, head].tolist()
        draws = [
            max(row[i] for i in (*two, one))
            for two in combinations((1, 2, 3), 2)
            for one in (4, 5, 6)
        ]
        assert found[0, 0, head] == pytest.approx(np.mean(draws), abs=1e-6)
    assert torch.isnan(found[0, 1]).all()


def test_a_class_of_all_tokens_is_what_is_expected_of_it() -> None:
    values = torch.rand(2, 3, 6)
    places = torch.tensor([[-1, 0, 0, 1, 1, -1], [-1, 0, 1, 1, -1, -1]])
    found = expected_maximum(values, places, (places >= 0)[:, None])
    best = values.masked_fill((places < 0)[:, None], -1).amax(-1)
    assert torch.allclose(found[:, 0].float(), best, atol=1e-6)


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_plain_loop_over_eager_maps_gives_the_same(side: str) -> None:
    model = planted_links.random_model(spread=0.6)
    tokenizer = planted_links.tokenizer()
    tokenizer.padding_side = side
    encoder, corpus = Encoder(model, tokenizer), planted_links.corpus(6)
    model.config._attn_implementation = "eager"
    kinds = list(TokenClass)
    seen = 0
    for read in classified_batches(encoder, corpus, bins=2, batch_tokens=64):
        batch, groups = read.batch, read.groups
        classes = ClassAttention(groups, words=[0], signs=[kinds.index(TokenClass.PUNCTUATION)])
        first = FirstTokenAttention(groups.masks, groups.masks[:, kinds.index(TokenClass.CLS)])
        encoder.run(batch, reduce={"layer.*.head.*.pattern": classes})
        encoder.run(batch, reduce={"layer.*.head.*.pattern": first})
        score, _, share = classes.value()
        with torch.no_grad():
            whole = torch.stack(model(**batch.inputs, output_attentions=True).attentions)
        for row, index in enumerate(batch.indices):
            real = batch.real[row]
            maps = whole[:, row][:, :, real][..., real]
            words = ["[CLS]", *corpus[index].get("words"), "[SEP]"]
            nouns = [i for i, w in enumerate(words)
                     if w in planted_links.SUBJECTS + planted_links.OBJECTS]  # fmt: skip
            received = maps.sum(-2) / len(words)  # (layer, head, key)
            assert np.allclose(score[row, 0], received[..., nouns].amax(-1), atol=1e-5)
            assert np.allclose(share[row, 0], received[..., nouns].sum(-1), atol=1e-5)
            own = first.value()[0][row, 0]
            assert np.allclose(own, maps[:, :, 0][..., nouns].amax(-1), atol=1e-5)
            assert np.isnan(score[row, kinds.index(TokenClass.NEGATION)]).all()
            seen += 1
    assert seen == 6
