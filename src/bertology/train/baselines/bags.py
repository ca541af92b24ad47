"""Bags of words under a linear model of scikit-learn; nothing in it is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Corpus
from bertology.data.static_vectors import split_words
from bertology.train.encoded import checked_targets, task_of

_ROUNDS = 1000  # of the solver; it ends long before where data allow


def bag_of_words(train: Corpus, scored: Corpus) -> NDArray[np.float64]:
    """Answers of a logistic regression (ridge, for numbers) over which words texts have.

    A word counts as there or not, lower-cased. A pair is described by the words of each text, those
    that both have, those that one of them has, and how many are shared (the cosine).
    """
    from sklearn.linear_model import LogisticRegression, Ridge

    kind = task_of(train).kind
    bags = _Bags(train)
    given, targets = bags.features(train), np.asarray(checked_targets(train), np.float64)
    if kind == "classification" and len(set(targets)) == 1:
        return np.full(len(scored), targets[0])  # there is nothing to tell apart
    model: Any = Ridge() if kind == "regression" else LogisticRegression(max_iter=_ROUNDS)
    model.fit(given, targets)
    found: NDArray[np.float64] = np.asarray(model.predict(bags.features(scored)), np.float64)
    return found


class _Bags:
    """The words of a corpus, and texts as the words they have."""

    def __init__(self, corpus: Corpus) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self._counts = CountVectorizer(binary=True, tokenizer=split_words, token_pattern=None)
        self._counts.fit(text for example in corpus for text in example.texts)

    def features(self, corpus: Corpus) -> Any:
        """A sparse matrix with one row for each example."""
        from scipy.sparse import csr_matrix, hstack

        sides = [
            self._counts.transform([example.texts[at] for example in corpus]).astype(np.float64)
            for at in range(len(next(iter(corpus)).texts))
        ]
        if len(sides) == 1:
            return sides[0]
        one, other = sides
        both = one.multiply(other)
        sizes = np.sqrt(np.asarray(one.sum(axis=1) * 1.0)) * np.sqrt(np.asarray(other.sum(axis=1)))
        cosine = np.asarray(both.sum(axis=1)) / np.maximum(sizes, 1.0)
        return hstack([one, other, both, abs(one - other), csr_matrix(cosine)], format="csr")
