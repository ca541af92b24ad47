"""Perturbed masking: as a plain loop over pairs; the planted tree is found, no random one is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import bertology as bt
import planted_impact as planted
import planted_links
from bertology.annotated.trees.impact import scaled, word_impacts
from bertology.annotated.words import word_batches
from bertology.data.corpus import Corpus
from bertology.data.words.piece_words import PieceWords
from bertology.errors import CapabilityError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.impact import MaskableText, impact_matrices
from bertology.results.result import Result
from bertology.studies.cloze.perturbed_masking import PerturbedMasking, PerturbedMaskingResult
from result_conformance import ResultConformance, claims_of, told


def look(encoder: Encoder, corpus: Corpus, **how: Any) -> PerturbedMaskingResult:
    found = planted_links.ask(PerturbedMasking(**{"resamples": 200, **how}), encoder, corpus)
    assert isinstance(found, PerturbedMaskingResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"projective-rooted-gain", "to-head-score", "undirected-score"})

    @staticmethod
    def make() -> Result:
        return look(planted.encoder(planted.model()), planted.corpus(60))

    def test_the_planted_tree_is_found(self, result: Result) -> None:
        trees = result.table("trees").set_index("tree")
        for tree in ("projective", "projective-rooted", "to-head", "to-head-rooted", "undirected"):
            assert trees.loc[tree, "score"] == pytest.approx(1)
        assert trees.loc["to-dependent", "score"] < 0.5
        kept = result.arrays["sentence_0"].sel(tree="projective").isel(candidate=-1)
        assert kept.to_numpy().tolist() == planted.HEADS
        assert result.answer.startswith("Some of it: trees of impact have 100 %")

    def test_claims_hold(self, result: Result) -> None:
        found = claims_of(result)
        assert found["primer-attention.impact-trees-beat-the-right-chain"] == "holds"
        assert found["primer-attention.impact-trees-beat-every-baseline"] == "holds"


class TestOfProbabilities(ResultConformance):
    """They have no layers, and so no measures."""

    @staticmethod
    def make() -> Result:
        return look(
            planted.encoder(planted.random_model(0)), planted.corpus(20), impact="probability"
        )

    def test_there_is_one_matrix(self, result: Result) -> None:
        assert set(result.table("layers")["layer"]) == {0}


@pytest.mark.parametrize("seed", range(3))
def test_trees_of_random_models_are_not_surely_better(seed: int) -> None:
    result = look(planted.encoder(planted.random_model(seed)), planted.corpus(40, seed=seed))
    found = {v.claim.id: told(v) for v in result.verdicts()}
    assert not found["primer-attention.impact-trees-beat-every-baseline"].is_there
    assert not (result.table("layers")["gain_low"] > 0).any()


def pair_by_pair(encoder: Encoder, one: PieceWords) -> dict[str, NDArray[np.float64]]:
    """(C, n, n) of each measure, by one pass for each pair and one for each word."""
    words = [one.alignment.pieces_of(w) for w in range(len(one.alignment))]
    n, layers = len(words), encoder.shape.layers

    def seen(*masked: int) -> tuple[NDArray[np.float64], float]:
        """The states of the first masked word after all layers, and how likely it is."""
        ids = torch.tensor([list(one.encoding.ids)])
        for word in masked:
            ids[0, list(words[word])] = encoder.tokenizer.mask_token_id
        at = words[masked[0]][0]
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.no_grad():
            out = encoder.model(**inputs, output_hidden_states=True)
        states = np.array([out.hidden_states[k + 1][0, at].numpy() for k in range(layers)])
        return states, out.logits[0, at].softmax(-1)[one.encoding.ids[at]].item()

    found = {"distance": np.zeros((layers, n, n)), "probability": np.zeros((1, n, n))}
    for i in range(n):
        alone, likely = seen(i)
        for j in range(n):
            if i != j:
                both, less = seen(i, j)
                found["distance"][:, i, j] = np.linalg.norm(alone - both, axis=1)
                found["probability"][0, i, j] = likely - less
    return found


def test_a_plain_loop_over_pairs_gives_the_same() -> None:
    encoder = bt.load(device="cpu", head="mlm")
    texts = bt.Corpus.of_texts(["Keys rattle unremarkably.", "Few zookeepers tiptoe past it."])
    for read in word_batches(encoder, texts):
        asked = [(one, range(len(one.alignment))) for one in read.examples]
        plain = [pair_by_pair(encoder, one) for one in read.examples]
        for measure in ("distance", "probability"):
            found = word_impacts(encoder, asked, measure=measure, tokens_per_batch=64)
            for ours, theirs, one in zip(found, plain, read.examples, strict=True):
                n = len(one.alignment)
                assert any(len(one.alignment.pieces_of(w)) > 1 for w in range(n))
                assert np.allclose(ours[:, :n, :n], theirs[measure], atol=2e-4)


def test_the_published_scaling_is_that_of_the_authors_code() -> None:
    """A softmax whose row sums are spread over columns, of each matrix without its padding."""
    maps = np.random.default_rng(0).uniform(0, 9, (2, 3, 5, 5))
    sizes = np.array([5, 3])
    found = scaled(maps, sizes)
    for i, n in enumerate(sizes):
        for own, ours in zip(maps[i, :, :n, :n], found[i, :, :n, :n], strict=True):
            powers = np.exp(own - np.max(own))
            assert np.allclose(ours, powers / powers.sum(axis=1))
    assert (found[1, :, 3:] == 0).all()
    planted_tree = look(planted.encoder(planted.model()), planted.corpus(12), scaling="published")
    assert planted_tree.table("trees")["score"].max() == pytest.approx(1)


def test_models_that_guess_no_words_and_unknown_measures_are_refused() -> None:
    texts = [MaskableText([2, 5, 6, 3], [[1], [2]])]
    with pytest.raises(CapabilityError, match="masked-lm"):
        impact_matrices(
            Encoder(planted.model().bert, planted.encoder(planted.model()).tokenizer), texts
        )
    with pytest.raises(UnknownNameError, match="measure"):
        impact_matrices(planted.encoder(planted.model()), texts, measure="cosine")  # type: ignore[arg-type]
