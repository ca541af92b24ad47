"""The largest weight among chosen pairs is that of the recorded maps, whatever the padding."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.reducers.pair_maxima import Aim, PairMaxima

WORDS = [f"w{i}" for i in range(20)]
TEXTS = ["w0 w1 w2 w3 w4 w5", "w3 w1", "w7 w8 w9 w0"]
PATTERNS = "layer.*.head.*.pattern"


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", ["bert", "distilbert", "deberta-v2", "gpt2", "albert"])
def test_maxima_of_recorded_maps(family: str, side: str) -> None:
    tokenizer = tiny.tokenizer(WORDS)
    tokenizer.padding_side = side
    encoder = Encoder(tiny.model(family), tokenizer)
    pairs = [[(3, 1), (1, 3)], [(2, 1)], [(4, 2), (4, 3)]]
    maxima = PairMaxima(encoder.shape, 4)
    batch = encoder.encode(TEXTS)
    maxima.aim([*(Aim(i, p, i) for i, p in enumerate(pairs)), Aim(0, [(5, 5)], 1)])
    encoder.run(batch, reduce={PATTERNS: maxima})
    found = maxima.means()
    maps = encoder.run(batch, record=PATTERNS)[PATTERNS].float().numpy()  # (L, B, H, T, T)
    first = batch.real.long().argmax(-1).tolist()

    def largest(row: int, wanted: list[tuple[int, int]]) -> np.ndarray:
        return np.max([maps[:, row, :, first[row] + q, first[row] + k] for q, k in wanted], axis=0)

    assert np.allclose(found[0], largest(0, pairs[0]), atol=1e-6)
    assert np.allclose(found[1], (largest(1, pairs[1]) + largest(0, [(5, 5)])) / 2, atol=1e-6)
    assert np.allclose(found[2], largest(2, pairs[2]), atol=1e-6)
    assert np.isnan(found[3]).all()


def test_runs_add_up_and_an_empty_aim_is_fine() -> None:
    encoder = Encoder(tiny.model("bert"), tiny.tokenizer(WORDS))
    together, apart = PairMaxima(encoder.shape, 3), PairMaxima(encoder.shape, 3)
    together.aim([Aim(i, [(1, 2)], i) for i in range(3)])
    encoder.run(TEXTS, reduce={PATTERNS: together})
    for i, text in enumerate(TEXTS):
        apart.aim([Aim(0, [(1, 2)], i)])
        encoder.run(text, reduce={PATTERNS: apart})
    apart.aim([])
    encoder.run(TEXTS, reduce={PATTERNS: apart})
    assert np.allclose(together.means(), apart.means(), atol=1e-6)


def test_all_heads_are_needed() -> None:
    encoder = Encoder(tiny.model("bert"), tiny.tokenizer(WORDS))
    maxima = PairMaxima(encoder.shape, 1)
    maxima.aim([Aim(0, [(1, 2)], 0)])
    with pytest.raises(CapabilityError, match="all 4 heads"):
        encoder.run(TEXTS[0], reduce={"layer.0.head.1.pattern": maxima})
