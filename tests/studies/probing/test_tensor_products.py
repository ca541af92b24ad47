"""Tensor products: the scheme that made the sentences is found, at its layer and at no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import planted_links
import planted_trees as planted
from bertology.annotated import states as module
from bertology.annotated.role_schemes import SCHEMES, TREE
from bertology.annotated.sentence_vectors import sentence_vectors, word_fillers
from bertology.annotated.states import States, word_states
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import DataError
from bertology.results.result import Result
from bertology.studies.probing.tensor_products import TensorProducts, TensorProductsResult
from result_conformance import ResultConformance, claims_of

CLAIM = "primer-syntax.trees-are-the-best-roles"
PLANTED, WIDTH = 1, 8
# Roles from both ends tell those from either end, and all roles can be told to be the same: what
# such finer roles explain as well they cannot lose by much.
FINER = {
    "bag-of-words": set(SCHEMES) - {"bag-of-words"},
    "left-to-right": {"bidirectional"},
    "right-to-left": {"bidirectional"},
}


class Made(States):
    """One state for each sentence, in one block, that was not computed."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, self.counts = values.astype(np.float16), np.ones(values.shape[1], np.int64)
        self.there, self.folder = np.ones(values.shape[1], bool), Path()

    @property
    def block_sizes(self) -> list[int]:
        return [len(self)]

    def block(self, number: int) -> Any:
        return self._values


def ask(encoder: Any, texts: Corpus, **how: Any) -> TensorProductsResult:
    study = TensorProducts(**{"resamples": 200, "deals": 1, **how})
    found = planted_links.ask(study, encoder, texts)
    assert isinstance(found, TensorProductsResult)
    return found


def simulated(
    monkeypatch: pytest.MonkeyPatch, scheme: str | None, *, size: int = 250, seed: int = 0
) -> TensorProductsResult:
    """Vectors that are noise, but those after layer 1, which are sums of words in roles."""
    texts = planted.corpus(size, seed=seed)
    reader, rng = planted.encoder(planted.random_model()), np.random.default_rng(seed)
    words = word_fillers(reader, texts)
    fillers = words.vectors / words.vectors.std(0)
    values = rng.normal(size=(planted.LAYERS + 1, size, WIDTH))
    if scheme is not None:
        for at, one in enumerate(texts):
            roles = SCHEMES[scheme].roles(one)
            own = zip(words.places[at], words.words[at], strict=True)
            bound = [_map(roles[place]) @ fillers[word] for place, word in own]
            values[PLANTED + 1, at] = np.mean(bound, axis=0) + 0.1 * values[PLANTED + 1, at]
    monkeypatch.setattr(module, "word_states", lambda *_, **__: Made(values))
    return ask(reader, texts)


def _map(role: str) -> np.ndarray:
    return np.random.default_rng(crc32(role.encode())).normal(
        size=(WIDTH, planted.HEADS * planted.SIZE)
    )


class TestResult(ResultConformance):
    measures = frozenset({"tree-error", "tree-gain", "bag-of-words-error"})

    @staticmethod
    def make() -> Result:
        return ask(planted.encoder(planted.random_model()), planted.corpus(150), vector="mean")

    def test_trees_do_not_lead_in_a_random_model(self, result: Result) -> None:
        assert claims_of(result)[CLAIM] != "holds"

    def test_every_pair_is_compared_in_every_layer(self, result: Result) -> None:
        assert len(result.table("pairs")) == 10
        assert len(result.table("layer_pairs")) == 10 * planted.LAYERS


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_planted_scheme_is_best_at_its_layer_and_at_no_other(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    result = simulated(monkeypatch, scheme)
    layers = result.table("layers").set_index(["scheme", "layer"])
    errors = layers["error"].unstack()
    assert errors[PLANTED].idxmin() == scheme
    assert errors.loc[scheme, PLANTED] < 0.3
    assert (errors.drop(columns=PLANTED) > 0.9).all(axis=None)
    pairs = result.table("layer_pairs")
    sure = pairs[(pairs["difference_low"] > 0) | (pairs["difference_high"] < 0)]
    assert set(sure["layer"]) == {PLANTED}
    beaten = {
        (set(row[["first", "second"]]) - {scheme}).pop()
        for _, row in sure.iterrows()
        if row["first" if row["difference"] < 0 else "second"] == scheme
    }
    assert beaten >= set(SCHEMES) - {scheme} - FINER.get(scheme, set())
    at_it = sure[(sure["first"] == scheme) | (sure["second"] == scheme)]
    assert len(at_it) == len(beaten)  # it loses to none
    gains = layers["gain_low"].unstack()
    assert (gains.loc[scheme, PLANTED] > 0) == (scheme != "bag-of-words")
    if scheme == "bag-of-words":  # nothing is told by which word has which role
        assert not (gains[PLANTED] > 0).any()
    assert not (gains.drop(columns=PLANTED) > 0).any(axis=None)
    assert (claims_of(result)[CLAIM] == "holds") == (scheme == TREE)
    assert ("trees surely leave less" in result.answer) == (scheme == TREE)


@pytest.mark.parametrize("seed", range(2))
def test_noise_is_explained_by_no_scheme(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    result = simulated(monkeypatch, None, size=200, seed=seed)
    assert (result.table("layers")["error_high"] > 0.95).all()
    assert claims_of(result)[CLAIM] != "holds"


def test_vectors_are_those_of_transformers() -> None:
    made = planted.random_model()
    reader, texts = planted.encoder(made), planted.corpus(20)
    first = sentence_vectors(word_states(reader, texts, pooling="tokens"), first=True)
    mean = sentence_vectors(word_states(reader, texts, pooling="mean"), first=False)
    for at, one in enumerate(texts):
        given = reader.tokenizer(one.text, return_tensors="pt")
        states = made(**given, output_hidden_states=True).hidden_states
        for layer, of in enumerate(states):
            of = of[0].detach().numpy()
            assert first[layer, at] == pytest.approx(of[0], abs=2e-3)
            assert mean[layer, at] == pytest.approx(of[1:-1].mean(0), abs=2e-3)
    fillers = word_fillers(reader, texts)
    table = made.get_input_embeddings().weight.detach().numpy()
    ids = reader.tokenizer(list(texts)[3].text)["input_ids"][1:-1]
    assert fillers.vectors[fillers.words[3]] == pytest.approx(table[ids], abs=1e-6)


def test_too_little_text_is_refused_in_words() -> None:
    reader = planted.encoder(planted.random_model())
    with pytest.raises(DataError):
        TensorProducts().check(reader, planted.corpus(1))
    same = [Example(str(i), "the dog sees a ball.", annotations={
        "words": ["the", "dog", "sees", "a", "ball", "."], "heads": [1, 2, -1, 4, 2, 2],
    }) for i in range(60)]  # fmt: skip
    fields = frozenset({Field.TEXT, Field.WORDS, Field.HEADS})
    with pytest.raises(DataError, match="0 would choose, and 0 would be scored"):
        ask(reader, Corpus("one sentence", same, fields))
