"""An affine lens finds a map that is known, is the same each time, and goes on after a kill."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny
from bertology.errors import DataError, StoreError
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.clozes import Clozes
from bertology.model.masked_lm.lenses import LogitLens
from bertology.model.masked_lm.questions import Question
from bertology.train import lenses
from bertology.train.lenses import fit_lens

WORDS = ["the", "cat", "dog", "sleeps", "walks", "here", "now", "."]


def texts(n: int = 700) -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randint(6, 12))) for _ in range(n)]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(tiny.model("bert", "mlm"), tiny.tokenizer(WORDS), head="mlm", name="tiny")


def test_maps_are_least_squares_with_a_penalty_towards_the_identity() -> None:
    """Against scikit-learn's ridge regression of what is to be added."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 300, 6)) + 3
    x[1] = x[0] @ rng.normal(size=(6, 6)) + rng.normal(size=6)
    sums = lenses._Sums.empty(2, 6)
    for some in np.array_split(x, 4, axis=1):
        sums.add(torch.from_numpy(some))
    found = sums.lens("f")
    penalty = 0.01 * x[0].var(axis=0).mean() * 300
    plain = Ridge(alpha=penalty).fit(x[0], x[1] - x[0])
    np.testing.assert_allclose(found.weight[0], plain.coef_.T + np.eye(6), atol=1e-4)
    np.testing.assert_allclose(found.bias[0], plain.intercept_, atol=1e-4)
    assert torch.equal(found.weight[1], torch.eye(6))


def test_predictions_of_a_layer_come_nearer_to_the_models(encoder: Encoder) -> None:
    lens = fit_lens(encoder, texts())
    asked = [Question(f"the {w} {{mask}} now .", tuple(WORDS)) for w in WORDS[1:6]]
    raw, fitted = (
        np.stack([a.scores for a in Clozes(encoder, lens=of).answers(asked)])
        for of in (LogitLens(), lens)
    )
    np.testing.assert_array_equal(raw[:, -1], fitted[:, -1])
    for layer in range(2):
        far, near = (np.abs(s[:, layer] - s[:, -1]).mean() for s in (raw, fitted))
        assert near < 0.8 * far


def test_it_is_the_same_after_a_kill(encoder: Encoder, tmp_path: Path) -> None:
    whole = fit_lens(encoder, texts())

    def stop(done: int, total: int) -> None:
        if done == 512:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_lens(encoder, texts(), folder=tmp_path, tell=stop)
    told: list[int] = []
    again = fit_lens(encoder, texts(), folder=tmp_path, tell=lambda done, _: told.append(done))
    assert told == [512, 700]  # what was written after 256 texts was not read again
    assert torch.equal(again.weight, whole.weight)
    assert torch.equal(again.bias, whole.bias)
    kept = fit_lens(encoder, texts(), folder=tmp_path, tell=stop)
    assert torch.equal(kept.weight, whole.weight)
    (path,) = tmp_path.rglob("lens.safetensors")
    path.write_bytes(b"not a lens")
    with pytest.raises(StoreError, match="Delete that folder"):
        fit_lens(encoder, texts(), folder=tmp_path)


def test_too_little_text_is_refused(encoder: Encoder) -> None:
    with pytest.raises(DataError, match="too few to fit a lens"):
        fit_lens(encoder, ["the cat sleeps ."])
