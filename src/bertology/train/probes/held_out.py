"""Linear probes of yes-or-no questions, each answered by probes that saw nothing of its fold.

Which examples are a fold is the question's own matter: some paradigms, or all of one environment,
so that what is asked there was never seen. Probes are ridge classifiers: least squares on yes (1)
and no (-1) with a penalty on large weights, as scikit-learn's `RidgeClassifier`. Their answers to
examples that did not train are exact and need one inversion for each layer, however many folds and
questions there are: what a fold's own answers pulled is taken out again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PENALTY = 40.0


def held_out_leanings(
    vectors: NDArray[np.float32], labels: NDArray[np.int64], folds: NDArray[np.int64]
) -> NDArray[np.float32]:
    """(questions, layers, N): what probes lean to where they did not train; above 0 is yes.

    `vectors` are (layers, N, width); `labels` (N, questions) are 1 for yes and 0 for no; `folds`
    (N, questions) are numbers from 0, negative for examples that are not scored. NaN where nothing
    is scored, or where the rest has one answer only.
    """
    layers, n, _ = vectors.shape
    found = np.full((labels.shape[1], layers, n), np.nan, np.float32)
    truth = 2.0 * labels - 1
    for layer, states in enumerate(vectors):
        given, fit = _fitted(states.astype(np.float64))  # (N, D + 1), (D + 1, N)
        pulled = given @ (fit @ truth)
        for question in range(labels.shape[1]):
            for fold in np.unique(folds[:, question]):
                here = folds[:, question] == fold
                if fold < 0 or len(np.unique(labels[~here, question])) < 2:
                    continue
                own = given[here] @ fit[:, here]
                missed = (truth - pulled)[here, question]
                without = np.linalg.solve(np.eye(len(own)) - own, missed)
                found[question, layer, here] = truth[here, question] - without
    return found


def _fitted(states: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Standardised states with a constant, and the weights (D + 1, N) by which answers fit."""
    spread = states.std(axis=0)
    standard = (states - states.mean(axis=0)) / np.where(spread > 1e-6, spread, 1.0)
    given = np.column_stack([standard, np.ones(len(states))])
    penalty = np.full(given.shape[1], PENALTY)
    penalty[-1] = 0.0  # the constant is free
    return given, np.linalg.solve(given.T @ given + np.diag(penalty), given.T)
