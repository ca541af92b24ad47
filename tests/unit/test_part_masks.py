"""Masks of heads and MLPs: importances are gate derivatives, and gates at 0 are parts cut out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import planted
import planted_parts
import tiny
from bertology.errors import CapabilityError, ModelError
from bertology.model.encoder import Encoder
from bertology.model.interventions import GateHead, GateMLP
from bertology.model.part_masks import PartImportances, PartMask, part_importances, parts_gated

WORDS = ["red", "green", "blue", "dog", "cat"]
TEXTS = ["red dog", "green cat red dog", "blue", "cat dog cat"]
LABELS = [0, 1, 1, 0]


def random_classifier(family: str = "bert") -> Encoder:
    return Encoder(
        tiny.model(family, "classification"), tiny.tokenizer(WORDS), head="classification"
    )


def loss_by_gate(encoder: Encoder, text: str, label: int, change: dict[str, torch.Tensor]) -> float:
    with torch.no_grad():
        gates = [GateHead(change["heads"]), GateMLP(change["mlps"])]
        logits = encoder.run([text], do=gates).logits.double()
    return float(F.cross_entropy(logits, torch.tensor([label])))


def test_importances_are_finite_differences_of_gates() -> None:
    encoder = random_classifier()
    encoder.model.double()
    shape = encoder.shape
    found = part_importances(encoder, TEXTS, LABELS, by_layer=False, tokens_per_batch=8)
    step = 1e-5
    for name, place in (("heads", (0, 1)), ("heads", (2, 3)), ("mlps", (1,)), ("mlps", (2,))):
        slopes = []
        for text, label in zip(TEXTS, LABELS, strict=True):
            losses = []
            for sign in (1, -1):
                gates = {
                    "heads": torch.ones(shape.layers, shape.heads, dtype=torch.float64),
                    "mlps": torch.ones(shape.layers, dtype=torch.float64),
                }
                gates[name][place] += sign * step
                losses.append(loss_by_gate(encoder, text, label, gates))
            slopes.append(abs(losses[0] - losses[1]) / (2 * step))
        assert getattr(found, name)[place] == pytest.approx(np.mean(slopes), rel=1e-4)


def test_they_are_those_of_michel_and_others_computed_by_hand() -> None:
    """|Att_h(x)ᵀ · dL/dAtt_h(x)|, the mean over examples: their equation 5, without any gate."""
    encoder = random_classifier()
    wanted = np.zeros((encoder.shape.layers, encoder.shape.heads))
    for text, label in zip(TEXTS, LABELS, strict=True):
        trace = encoder.run([text], record="layer.*.head.*.output", gradients=True)
        trace.backward(F.cross_entropy(trace.logits.float(), torch.tensor([label])))
        for i in range(encoder.shape.layers):
            site = f"layer.{i}.head.*.output"
            product = trace[site] * trace.gradient(site)  # (1, H, T, D)
            wanted[i] += product.sum((0, 2, 3)).abs().detach().numpy() / len(TEXTS)
    found = part_importances(encoder, TEXTS, LABELS, by_layer=False)
    np.testing.assert_allclose(found.heads, wanted, rtol=1e-4)
    normal = part_importances(encoder, TEXTS, LABELS)
    np.testing.assert_allclose(
        normal.heads, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), rtol=1e-4
    )
    np.testing.assert_allclose(normal.mlps, found.mlps)


def some_gone(encoder: Encoder) -> PartMask:
    mask = PartMask.full(encoder)
    mask.heads[0, 1] = mask.heads[2, :] = mask.mlps[2] = mask.mlps[0] = False
    return mask


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_gates_are_interventions_and_cut_models(family: str) -> None:
    encoder = random_classifier(family)
    mask = some_gone(encoder)
    batch = encoder.encode(TEXTS)
    do = [
        GateHead(torch.from_numpy(mask.heads).float()),
        GateMLP(torch.from_numpy(mask.mlps).float()),
    ]
    intact, edited = encoder.run(batch).logits, encoder.run(batch, do=do).logits
    with parts_gated(encoder, mask):
        gated = encoder.run(batch).logits
        with torch.no_grad():
            plain = encoder.model(**batch.inputs).logits
    torch.testing.assert_close(gated, edited)
    torch.testing.assert_close(plain, edited)
    torch.testing.assert_close(mask.cut(encoder).run(batch).logits, edited)
    assert not torch.allclose(intact, edited)
    assert torch.equal(encoder.run(batch).logits, intact)
    assert mask.layers_gone.tolist() == [False, False, True]


def test_what_is_gone_has_no_importance_and_no_gradient() -> None:
    encoder = random_classifier()
    mask = some_gone(encoder)
    found = part_importances(encoder, TEXTS, LABELS, mask=mask)
    assert not found.heads[~mask.heads].any()
    assert not found.mlps[~mask.mlps].any()
    assert found.heads[mask.heads].min() > 0
    with parts_gated(encoder, mask):
        encoder.model(**encoder.encode(TEXTS).inputs).logits.sum().backward()
    size = encoder.shape.head_size
    gradient = encoder.model.bert.encoder.layer[0].attention.self.value.weight.grad
    assert not gradient[size : 2 * size].any()
    assert gradient[:size].any()


def test_the_least_important_go_and_ties_go_in_order() -> None:
    mask = PartMask(np.ones((2, 3), bool), np.ones(2, bool))
    values = PartImportances(np.array([[0.2, 0.1, 0.1], [0.3, 0.1, 0.4]]), np.array([1.0, 0.5]))
    less = mask.without_least(values, heads=2, mlps=1)
    assert less.heads.tolist() == [[True, False, False], [True, True, True]]
    assert less.mlps.tolist() == [True, False]
    least = less.without_least(values, heads=9, mlps=9)
    assert not least
    assert mask


def test_planted_parts_are_the_important_ones() -> None:
    encoder, corpus = planted_parts.encoder(), planted_parts.corpus(60)
    found = part_importances(encoder, corpus.texts, corpus.labels, by_layer=False)
    heads = [tuple(map(int, p)) for p in np.argwhere(found.heads > 1e-9)]
    assert tuple(heads) == planted_parts.HEADS
    assert np.flatnonzero(found.mlps > 1e-9).tolist() == list(planted_parts.MLPS)


def test_other_models_are_refused_in_words() -> None:
    mask = PartMask.full(random_classifier())
    other = Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")
    with pytest.raises(ModelError, match="has 3 layers of 4 heads, and 'planted' has 2 of 4"):
        mask.check(other)
    shared = random_classifier("albert")
    with (
        pytest.raises(CapabilityError, match="layers share weights"),
        parts_gated(shared, PartMask.full(shared)),
    ):
        pass
