"""Masks of single weights: the threshold is exact, and what is taken away comes back to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tiny
from bertology.errors import ModelError, ParameterError, StoreError
from bertology.model import weight_ranks
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import (
    KeepWeights,
    WeightMask,
    prunable,
    random_mask,
    survival,
    weights_held_at_zero,
    weights_removed,
)
from bertology.model.weight_ranks import without_smallest


class Matrices(nn.Module):
    def __init__(self, *shapes: tuple[int, int], values: str = "normal", seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        drawn = [torch.randn(shape) for shape in shapes]
        if values == "few":
            drawn = [(2 * w).round() / 2 for w in drawn]
        self.matrices = nn.ParameterList(nn.Parameter(w) for w in drawn)


def sorted_out(model: nn.Module, mask: WeightMask, count: int) -> set[tuple[int, int]]:
    """What a plain sort would keep, ties in the order of the model."""
    there = [
        (abs(float(weight)), at, place)
        for at, (name, matrix) in enumerate(prunable(model).items())
        for place, weight in enumerate(matrix.detach().ravel())
        if mask.keeps(name).ravel()[place]
    ]
    return {(at, place) for _, at, place in sorted(there)[count:]}


def kept_places(mask: WeightMask) -> set[tuple[int, int]]:
    return {
        (at, int(place))
        for at, name in enumerate(mask.shapes)
        for place in np.flatnonzero(mask.keeps(name))
    }


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4),
    st.sampled_from(["normal", "few"]),
    st.floats(0.05, 0.9),
    st.integers(0, 99),
)
def test_the_smallest_go_as_a_sort_says(
    shapes: list[tuple[int, int]], values: str, share: float, seed: int
) -> None:
    model = Matrices(*shapes, values=values, seed=seed)
    mask = WeightMask.full(model)
    for _ in range(3):
        if not mask.kept:
            return
        count = max(1, round(share * mask.kept))
        wanted = sorted_out(model, mask, count)
        mask = without_smallest(model, mask, share=share)
        assert kept_places(mask) == wanted


def test_many_weights_in_chunks_and_a_bad_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Matrices((300, 400), (50, 77))
    with torch.no_grad():
        model.matrices[0][::2] = 0.0  # the guess looks at every so many weights
    mask = WeightMask.full(model)
    flat = np.concatenate([w.detach().abs().ravel().numpy() for w in prunable(model).values()])
    count = round(0.7 * mask.kept)
    wanted = np.sort(flat)[count:]
    for chunk, sample in ((1 << 10, 1 << 17), (1 << 18, 16), (1 << 12, 1)):
        monkeypatch.setattr(weight_ranks, "_CHUNK", chunk)
        monkeypatch.setattr(weight_ranks, "_SAMPLE", sample)
        monkeypatch.setattr(weight_ranks, "_WIDTH", 1e-6)
        found = without_smallest(model, mask, share=0.7)
        kept = np.concatenate([found.keeps(name).ravel() for name in found.shapes])
        assert np.array_equal(np.sort(flat[kept]), wanted)


def test_each_matrix_may_have_a_threshold_of_its_own() -> None:
    model = Matrices((20, 20), (20, 20))
    with torch.no_grad():
        model.matrices[1] += 100 * model.matrices[1].sign()
    full = WeightMask.full(model)
    one, both = (
        without_smallest(model, full, share=0.25, threshold=t) for t in ("global", "matrix")
    )
    assert [one.kept_in(name) for name in one.shapes] == [200, 400]
    assert [both.kept_in(name) for name in both.shapes] == [300, 300]
    with pytest.raises(ParameterError, match="global or matrix"):
        without_smallest(model, full, threshold="layer")
    with torch.no_grad():
        model.matrices[0].fill_(torch.nan)
        model.matrices[1].fill_(torch.nan)
    with pytest.raises(ModelError, match="not numbers"):
        without_smallest(model, full)


def classifier(family: str = "bert") -> Encoder:
    return Encoder(tiny.model(family, "classification"), None, head="classification", name=family)


def half(encoder: Encoder) -> WeightMask:
    mask = WeightMask.full(encoder.model)
    return without_smallest(encoder.model, mask, share=0.5)


def test_embeddings_vectors_and_norms_stay() -> None:
    names = prunable(classifier().model)
    assert not [n for n in names if "embeddings" in n or "LayerNorm" in n or n.endswith("bias")]
    assert {"classifier.weight", "bert.encoder.layer.0.attention.self.query.weight"} <= set(names)


def test_it_is_kept_in_an_eighth_of_a_byte_and_read_back(tmp_path: Path) -> None:
    mask = half(classifier())
    mask.save(tmp_path / "mask.safetensors")
    back = WeightMask.load(tmp_path / "mask.safetensors")
    assert back.digest == mask.digest
    assert back.shapes == mask.shapes
    assert list(back.shapes) == list(mask.shapes)
    assert sum(bits.nbytes for bits in mask.bits.values()) < mask.size / 8 + len(mask.bits)
    assert [p.name for p in tmp_path.iterdir()] == ["mask.safetensors"]
    assert WeightMask.from_joined(mask.shapes, mask.joined()).digest == mask.digest
    (tmp_path / "mask.safetensors").write_bytes(b"no mask")
    with pytest.raises(StoreError, match="is not a mask"):
        WeightMask.load(tmp_path / "mask.safetensors")


def test_a_run_without_weights_is_one_of_a_model_without_them() -> None:
    encoder = classifier()
    mask = half(encoder)
    before = {n: p.detach().clone() for n, p in encoder.model.named_parameters()}
    inputs = {"input_ids": torch.tensor([[2, 7, 8, 9, 3]])}
    intact = encoder.run(inputs).logits
    edited = encoder.run(inputs, do=KeepWeights(mask)).logits
    with weights_removed(encoder.model, mask):
        removed = encoder.run(inputs).logits
        for name in mask.shapes:
            weight = encoder.model.get_parameter(name).detach().numpy()
            assert not weight[~mask.keeps(name)].any()
    assert torch.equal(edited, removed)
    assert not torch.allclose(intact, removed)
    for name, weight in encoder.model.named_parameters():
        assert torch.equal(weight, before[name])
    with pytest.raises(RuntimeError, match="stop"), weights_removed(encoder.model, mask):
        raise RuntimeError("stop")
    assert torch.equal(encoder.run(inputs).logits, intact)


def test_what_is_gone_stays_gone_under_an_optimizer() -> None:
    encoder = classifier()
    model, mask = encoder.model, half(encoder)
    first = {n: model.get_parameter(n).detach().clone() for n in mask.shapes}
    inputs = {"input_ids": torch.tensor([[2, 7, 8, 9, 3]])}
    with weights_held_at_zero(model, mask):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(**inputs).logits.square().sum().backward()
            optimizer.step()
    for name, weight in first.items():
        keeps, after = mask.keeps(name), model.get_parameter(name).detach()
        assert not after.numpy()[~keeps].view(np.int32).any()  # not even -0
        if "classifier" in name:
            assert not torch.equal(after, weight)
    model.zero_grad()
    model(**inputs).logits.sum().backward()
    assert model.classifier.weight.grad.abs().min() > 0  # nothing is held any more


def test_another_model_is_refused_in_words() -> None:
    mask = half(classifier())
    with pytest.raises(ModelError, match="has no such weight"):
        mask.check(classifier("roberta").model)
    name = next(iter(mask.shapes))
    shapes = {name: (32, 24)}
    with pytest.raises(ModelError, match=r"covers .*32 × 24.* has 24 × 24 there"):
        WeightMask(shapes, {name: mask.bits[name]}).check(classifier().model)


def test_survivors_by_layer_and_matrix() -> None:
    encoder = classifier()
    rows = survival(encoder, half(encoder))
    assert [r.kind for r in rows if r.layer == 1] == [
        "attention.self.query", "attention.self.key", "attention.self.value",
        "attention.output.dense", "intermediate.dense", "output.dense",
    ]  # fmt: skip
    assert [r.kind for r in rows if r.layer == -1] == ["pooler.dense", "classifier"]
    assert sum(r.kept for r in rows) == half(encoder).kept


@pytest.mark.parametrize("name", ["roberta", "distilbert", "albert", "xlnet", "gpt2", "electra"])
def test_every_family_has_matrices_that_can_go(name: str) -> None:
    encoder = classifier(name)
    rows = survival(encoder, half(encoder))
    assert {r.layer for r in rows} >= {0}
    assert sum(r.size for r in rows) == WeightMask.full(encoder.model).size


def test_random_masks_are_as_large() -> None:
    mask = half(classifier())
    alike, loose = (random_mask(mask, seed=1, by_matrix=b) for b in (True, False))
    assert [alike.kept_in(n) for n in mask.shapes] == [mask.kept_in(n) for n in mask.shapes]
    assert loose.kept == mask.kept
    assert alike.digest != mask.digest
    assert alike.digest == random_mask(mask, seed=1).digest
    assert mask.removed().kept == mask.size - mask.kept
