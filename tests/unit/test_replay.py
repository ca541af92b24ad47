"""The fast sweep gives what plain forward passes give, for every family that has it."""

from __future__ import annotations

import random

import pytest
import torch

import planted
import tiny
from bertology.errors import BertologyError, ParameterError
from bertology.model.batch import Batch, by_length
from bertology.model.encoder import Encoder
from bertology.model.families import FAMILIES, Capability
from bertology.model.sweeps.replay import ABLATIONS, Sweep, Variant

FAST = [
    n for n in tiny.ROWS if n in FAMILIES and Capability.FAST_REPLAY in FAMILIES.get(n).capabilities
]


def everything(encoder: Encoder) -> list[Variant]:
    """All heads, all layers, and sets across layers, in no order."""
    layers, heads = range(encoder.shape.layers), range(encoder.shape.heads)
    variants = [Variant(((i, h),)) for i in layers for h in heads]
    variants += [Variant(tuple((i, h) for h in heads)) for i in layers]
    variants += [
        Variant(((0, 1), (2, 3), (1, 0))),
        Variant(((2, 1), (2, 3))),
        Variant(((1, 1), (2, 0))),
    ]
    random.Random(0).shuffle(variants)
    return variants


def test_the_families_of_the_papers_are_fast() -> None:
    assert {"bert", "roberta", "electra", "distilbert", "albert"} <= set(FAST)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("method", ABLATIONS)
@pytest.mark.parametrize("padded", [True, False])
def test_replay_equals_the_loop(name: str, method: str, padded: bool) -> None:
    encoder = Encoder(tiny.model(name, "classification"), head="classification")
    generator = torch.Generator().manual_seed(1)
    shape = encoder.shape
    means = torch.randn(shape.layers, shape.heads, shape.head_size, generator=generator)
    inputs = tiny.inputs() if padded else {k: v[:1] for k, v in tiny.inputs().items()}
    batch = Batch(inputs, range(len(inputs["input_ids"])))
    given = {"method": method, "means": means if method == "mean" else None}
    variants = everything(encoder)
    fast, slow = (Sweep(encoder, variants, **given, fast=f) for f in (None, False))
    assert fast.fast
    assert not slow.fast
    expected = slow.run(batch)
    assert (expected[1:] - expected[0]).abs().max() > 0.1
    torch.testing.assert_close(fast.run(batch), expected, rtol=1e-4, atol=1e-5)


def test_families_without_replay_still_sweep() -> None:
    encoder = Encoder(tiny.model("modernbert", "classification"), head="classification")
    sweep = Sweep(encoder, [Variant(((1, 2),))])
    assert not sweep.fast
    batch = Batch(tiny.inputs(), range(3))
    assert sweep.run(batch).shape == (2, 3, 2)


def test_texts_come_back_in_their_order() -> None:
    encoder = Encoder(planted.model(), planted.tokenizer(), head="classification")
    texts = planted.corpus(40).texts
    sweep = Sweep(encoder, [Variant((planted.CARRIER,))])
    seen: list[int] = []
    logits = sweep.logits(texts, done=seen.append)
    assert sum(seen) == 40
    for i in (0, 7, 39):
        torch.testing.assert_close(logits[0, i], encoder.run(texts[i]).logits[0])


def test_the_model_is_left_alone() -> None:
    encoder = Encoder(planted.model(), planted.tokenizer(), head="classification")
    before = {m: set(m.__dict__) for m in encoder.model.modules()}
    Sweep(encoder, [Variant(((0, 0),))]).logits(planted.corpus(5).texts)
    for module in encoder.model.modules():
        assert set(module.__dict__) == before[module]
        assert not module._forward_pre_hooks


def test_bad_input() -> None:
    encoder = Encoder(planted.model(), planted.tokenizer(), head="classification")
    with pytest.raises(ParameterError, match="'method' parameter of Sweep"):
        Sweep(encoder, [Variant(((0, 0),))], method="softly")
    with pytest.raises(ParameterError, match="'means'"):
        Sweep(encoder, [Variant(((0, 0),))], method="mean")
    with pytest.raises(BertologyError, match=r"no head \(2, 0\)"):
        Sweep(encoder, [Variant(((2, 0),))])
    with pytest.raises(BertologyError, match="at least one head"):
        Sweep(encoder, [Variant(())])
    with pytest.raises(BertologyError, match="There is no text"):
        Sweep(encoder, [Variant(((0, 0),))]).logits([])


def test_batches_by_length_waste_nothing() -> None:
    rng = random.Random(0)
    lengths = [rng.randrange(3, 60) for _ in range(200)]
    batches = list(by_length(lengths, 256))
    assert sorted(i for b in batches for i in b) == list(range(200))
    assert all(len(b) * max(lengths[i] for i in b) <= 256 for b in batches)
    equal = list(by_length(lengths, 256, equal=True))
    assert sorted(i for b in equal for i in b) == list(range(200))
    assert all(len({lengths[i] for i in b}) == 1 for b in equal)
