"""The same probe for every layer: is the number of the verb read off the state of its blank?

A lens cannot tell which layer knows most: the logit lens gives a layer to a head that was trained
on the last one, and the affine lens is fitted to imitate the last one, so that layers look better
the nearer they are to it. A probe is trained for each layer alone, and all of them are alike:
a linear map with a ridge penalty that is not chosen (one half of the mean variance of what it is
given), learnt on half of the units (nouns, or sentences) and asked on the other, both numbers
weighing the same. What is scored is the mean over some random halvings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

Floats = NDArray[np.float64]

_PENALTY = 0.5
_HALVINGS = 8


def is_plural(good: str, bad: str) -> bool | None:
    """Whether a form of an English verb is the plural one; None where its spelling does not say."""
    ends = good.lower().endswith("s"), bad.lower().endswith("s")
    return None if ends[0] == ends[1] else ends[1]


def blank_states(
    encoder: Encoder, texts: Sequence[str], *, tokens_per_batch: int
) -> NDArray[np.float32]:
    """States (N, L, M) after each layer at the first mask of each text."""
    from bertology.model.masked_lm.lenses import StatesAt

    found = np.zeros((len(texts), encoder.shape.layers, encoder.shape.hidden), np.float32)
    for batch in encoder.batches(list(texts), tokens_per_batch=tokens_per_batch):
        masks = batch.inputs["input_ids"] == encoder.tokenizer.mask_token_id
        states = StatesAt(masks.int().argmax(1, keepdim=True))
        encoder.run(batch, reduce={"layer.*.residual": states})
        found[list(batch.indices)] = states.value()[:, :, 0].transpose(0, 1).float().cpu().numpy()
    return found


def told_by_probes(
    states: NDArray[np.floating], plural: NDArray[np.bool_], units: Sequence[str], *, seed: int
) -> Floats:
    """How often (N, L) a probe that did not see the unit gets the number right.

    NaN for all where a half would have one number only.
    """
    names, unit = np.unique(np.asarray(units, str), return_inverse=True)
    rng, hits = np.random.default_rng([seed, 4]), np.zeros(states.shape[:2])
    signs = np.where(plural, 1.0, -1.0)
    for _ in range(_HALVINGS):
        second = (rng.permutation(len(names)) % 2 == 1)[unit]
        for asked in (second, ~second):
            learnt = ~asked
            if len(set(plural[learnt].tolist())) < 2 or not asked.any():
                return np.full_like(hits, np.nan)
            for layer in range(states.shape[1]):
                said = _ridge(states[learnt, layer], signs[learnt], states[asked, layer])
                hits[asked, layer] += 0.5 + 0.5 * np.sign(said) * signs[asked]
    return hits / _HALVINGS


def _ridge(
    x: NDArray[np.floating], signs: Floats, asked: NDArray[np.floating]
) -> NDArray[np.float64]:
    """What a ridge regression on signs, both of which weigh the same, says of others."""
    weight = np.where(signs > 0, 1 / (signs > 0).sum(), 1 / (signs < 0).sum()) / 2
    given, other = x.astype(np.float64), asked.astype(np.float64)
    middle = weight @ given
    given, other = given - middle, other - middle
    scale = np.sqrt(weight @ given**2)
    scale = np.where(scale > 1e-9 * max(scale.max(), 1e-300), scale, np.inf)
    given, other = given / scale, other / scale
    root = np.sqrt(weight * len(weight))[:, None]
    near = (root * given) @ (root * given).T / given.shape[1]  # (n, n), its trace about n
    dual = np.linalg.solve(near + _PENALTY * np.eye(len(near)), root[:, 0] * signs)
    said: Floats = other @ (given.T @ (root[:, 0] * dual)) / given.shape[1]
    return said
