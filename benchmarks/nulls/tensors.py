"""Nulls of tensor products: random models, and trees that were drawn at random."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import planted_links
from bertology.data.corpus import Corpus
from bertology.studies.probing.tensor_products import TensorProducts
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model, texts

_SENTENCES = 200


def _study(seed: int) -> TensorProducts:
    """Both vectors of a sentence by turns, since the claim is judged on either."""
    return TensorProducts(resamples=200, deals=1, vector=("first", "mean")[seed // 3 % 2])


def random_sentences(seed: int) -> Mapping[str, str]:
    """A random model knows words and places, but no trees."""
    reader = encoder(random_model(seed))
    return judged(
        "tensor-products", planted_links.ask(_study(seed), reader, texts(seed, _SENTENCES))
    )


def drawn_trees(corpus: Corpus, seed: int) -> Corpus:
    """Every word hangs from one of those that were drawn before it."""
    rng, found = random.Random(seed), []
    for one in corpus:
        order = list(range(len(one.get("words"))))
        rng.shuffle(order)
        heads = [-1] * len(order)
        for at, word in enumerate(order[1:], 1):
            heads[word] = order[rng.randrange(at)]
        found.append(replace(one, annotations={**one.annotations, "heads": heads}))
    return replace(corpus, examples=found)


def random_tree_roles(seed: int) -> Mapping[str, str]:
    """Trees of chance explain no sentence of the bundled model better than places do."""
    drawn = drawn_trees(texts(seed, _SENTENCES), seed)
    return judged("tensor-products", planted_links.ask(_study(seed), mini(), drawn))


_FALSE = {"trees-are-the-best-roles": HOLDS}

NULLS = (
    Null("random model (tensor products)", random_sentences, _FALSE),
    Null("trees of chance (tensor products)", random_tree_roles, _FALSE),
)
