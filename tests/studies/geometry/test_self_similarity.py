"""Self-similarity: what is planted is measured, sums are what pairs give, noise says nothing."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import made_geometry as made
from bertology.annotated.recurring_words import occurrences, recurring_words
from bertology.arrays import Ints
from bertology.data.corpus import Corpus
from bertology.data.words.piece_words import token_words
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.results.rules import Relation, Rule, settling
from bertology.stats import Estimate
from bertology.studies.geometry.self_similarity import (
    SelfSimilarity,
    explained,
    shared_error,
    similarities,
)
from bertology.studies.geometry.shared.text_blocks import (
    BLOCKS,
    change,
    word_batches_of,
    words_of_texts,
)
from bertology.studies.study import Context
from result_conformance import ResultConformance, claims_of

LATER = "primer-embeddings.later-layers-are-more-context-specific"
_STUDY = SelfSimilarity(copies=3)


@cache
def fallen() -> Result:
    return made.ask(_STUDY, made.corpus(), made.own_ways(made.falling(0.8, 0.4)), made.noise)


class TestResult(ResultConformance):
    measures = frozenset({"similarity-self", "similarity-self-adjusted", "similarity-random"})

    @staticmethod
    def make() -> Result:
        return fallen()


def test_planted_similarities_are_measured() -> None:
    rows = fallen().table("layers").set_index("layer")
    truth = made.falling(0.8, 0.4)
    for layer, row in rows.iterrows():
        assert row["self"] == pytest.approx(truth[int(layer) + 1], abs=0.02)
        assert row["random"] == pytest.approx(0, abs=0.01)
        assert row["self_adjusted_low"] < truth[int(layer) + 1] < row["self_adjusted_high"]
    found = fallen().evidence()
    assert found["self_similarity_fall"].low < 0.4 < found["self_similarity_fall"].high
    assert claims_of(fallen())[LATER] == "holds"
    assert fallen().answer.startswith("Surely")
    # Words of a sentence have nothing in common but that each is in the mean of all.
    assert rows["sentence"].between(0.25, 0.5).all()
    assert rows["explained"].is_monotonic_decreasing or rows["explained"].iloc[-1] < 0.7


def test_a_word_that_gets_more_alike_makes_the_claim_fail() -> None:
    found = made.ask(_STUDY, made.corpus(), made.own_ways(made.falling(0.4, 0.8)), made.noise)
    assert claims_of(found)[LATER] == "fails"
    assert "rises by 0.4" in found.answer
    assert "falls by -" not in found.answer


def test_the_input_is_the_first_row_and_not_in_the_fall_that_is_judged() -> None:
    """Ethayarajh's layer 0: here as alike as nothing else, which the fall from it counts."""
    states = made.own_ways({0: 0.95, **dict.fromkeys(range(1, made.LAYERS + 1), 0.5)})
    found = made.ask(_STUDY, made.corpus(), states, made.own_ways(made.falling(0.8, 0.4)))
    rows = found.table("layers")
    assert rows["layer"].iloc[0] == -1
    assert rows["self"].iloc[0] == pytest.approx(0.95, abs=0.02)
    evidence = found.evidence()
    assert evidence["self_similarity_fall"].value == pytest.approx(0, abs=0.03)
    assert evidence["fall_from_input"].value > 0.3
    assert claims_of(found)[LATER] != "holds"
    assert "Counted from the input (layer 0 of Ethayarajh 2019) it falls by 0.3" in found.answer


@dataclass(frozen=True)
class Lumped(SelfSimilarity):
    """All texts with one of the words lie in the first block, but one."""

    def blocks(self, corpus: Corpus) -> list[Ints]:
        lump = [n for n, text in enumerate(corpus.texts) if made.WORDS[0] in str(text).split()][1:]
        first, *others = super().blocks(corpus)
        return [np.union1d(first, lump), *(np.setdiff1d(block, lump) for block in others)]


def test_a_word_whose_texts_lie_in_one_block_is_left_out_and_that_is_said() -> None:
    states = made.own_ways(made.falling(0.8, 0.4))
    found = made.ask(Lumped(copies=3), made.corpus(), states, made.noise)
    words = found.facts["words"]
    assert f"over {words} words" in found.answer
    (told,) = [note for note in found.notes() if "left out of similarities" in note]
    assert told.startswith(f"1 of {words + 1} words are left out of similarities")
    assert made.WORDS[0] not in set(found.table("words")["word"])
    assert not any("left out" in note for note in fallen().notes())


def test_what_shuffled_weights_show_as_well_is_not_judged() -> None:
    states = made.own_ways(made.falling(0.8, 0.4))
    found = made.ask(_STUDY, made.corpus(), states, states)
    assert claims_of(found)[LATER] == "not-applicable"
    (told,) = (v.measured for v in found.verdicts() if v.claim.id == LATER)
    assert "not surely beyond shuffled weights (" in told
    assert found.answer.startswith("Nothing is sure")
    # The gate has a direction: less of a fall than that of copies is no fall that was learnt.
    deeper = made.own_ways(made.falling(0.9, 0.2))
    assert claims_of(made.ask(_STUDY, made.corpus(), states, deeper))[LATER] == "not-applicable"
    assert claims_of(made.ask(_STUDY, made.corpus(), deeper, states))[LATER] == "holds"


def test_sums_are_what_pairs_give() -> None:
    """Self-similarity and random words against loops over all pairs, with each block left out."""
    rng = np.random.default_rng(0)
    width, words = 7, 5
    vectors = [
        [rng.normal(size=(int(rng.integers(1, 4)), width)) + 0.5 for _ in range(words)]
        for _ in range(4)
    ]
    vectors = [[x / np.linalg.norm(x, axis=1, keepdims=True) for x in row] for row in vectors]
    sums = np.array([[x.sum(0) for x in row] for row in vectors])
    found = similarities(sums, np.array([[len(x) for x in row] for row in vectors]))
    for at, left in enumerate((None, 0, 1, 2, 3)):
        own = [
            [(g, u) for g, row in enumerate(vectors) if g != left for u in row[w]]
            for w in range(words)
        ]
        for w, some in enumerate(own):
            pairs = [a @ b for i, (_, a) in enumerate(some) for _, b in some[:i]]
            assert found.by_word[at, w] == pytest.approx(np.mean(pairs), abs=1e-9)
        total = weight = 0.0
        for w, some in enumerate(own):
            for v, others in enumerate(own):
                for g, a in some:
                    for h, b in others:
                        if w != v and g != h:
                            share = 1 / len(some) / len(others)
                            total, weight = total + share * (a @ b), weight + share
        assert found.random[at] == pytest.approx(total / weight, abs=1e-9)
    assert found.on_random.mean() == pytest.approx(0, abs=1e-9)


def test_words_count_in_what_random_words_give() -> None:
    """Each word has a direction of its own beside a common one, some much of it, some nothing."""
    rng = np.random.default_rng(0)
    found, errors = [], []
    for _ in range(200):
        words, width, share = 40, 30, rng.random(40)[:, None]
        axis = np.eye(width)[0]
        own = rng.normal(size=(words, width)) / width**0.5
        ways = share * axis + (1 - share) * own
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        one = similarities(np.repeat(ways[None], 4, axis=0), np.ones((4, words), np.int64))
        found.append(one.random[0])
        errors.append(one.on_random.std(ddof=1) / words**0.5)
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.2)


def test_a_text_that_is_there_twice_is_read_once() -> None:
    texts = made.corpus(60)
    doubled = replace(texts, examples=[*texts.examples, *texts.examples[::-1]])
    assert _STUDY.shown(doubled).texts == texts.texts
    assert _STUDY.shown(texts) is texts


def test_few_copies_are_valid_and_the_reason_tells_how_many_would_do() -> None:
    """A model that is one more copy is judged in 1 of 100 draws, however many copies there are."""
    rng = np.random.default_rng(0)
    for copies in (3, 5, 10):
        beyond = [
            _STUDY.beyond_copies(Estimate(x[0], x[0], x[0], 100), x[1:].tolist())
            for x in rng.normal(size=(2000, copies + 1))
        ]
        assert 0.001 < np.mean([one.low > 0 for one in beyond]) < 0.011  # one of two sides
        assert 0.004 < np.mean([one.excludes(0) for one in beyond]) < 0.018
    rule, own = Rule("beyond", Relation.ABOVE, 0.0), Estimate(4.0, 3.9, 4.1, 100)
    few = _STUDY.beyond_copies(own, [-1.0, 0.0, 1.0])
    assert not few.excludes(3)
    assert few.unit == "copies with shuffled weights"
    needed = settling(rule, few)
    assert needed is not None
    assert needed.needed == 7
    assert _STUDY.beyond_copies(own, [-1.0, 0.0, 1.0, 0.0, 0.0]).low > 0
    close = settling(rule, _STUDY.beyond_copies(Estimate(0.5, 0.4, 0.6, 100), [-1.0, 0.0, 1.0]))
    assert close is not None
    assert close.needed is None


def test_a_model_gives_what_its_states_give_pair_by_pair() -> None:
    """The whole pass of a random model, beside the quadratic formula on recorded states."""
    shape = made.MadeEncoder(made.noise)
    encoder, texts = Encoder(shape.model, shape.tokenizer, name="random"), made.corpus(60)
    part = SelfSimilarity(words=20).one_pass(encoder, texts, Context(), whole=True)
    words = recurring_words(
        encoder, words_of_texts(encoder, texts.texts), contexts=5, most=20, seed=0
    )
    states: dict[int, list[np.ndarray]] = {}
    for read in word_batches_of(encoder, texts.texts, range(len(texts)), tokens=4096):
        at = occurrences(read.words, read.texts, words, seed=0)
        trace = encoder.run(read.batch, record=["layer.2.residual"])
        flat = trace["layer.2.residual"].flatten(0, 1).double().numpy()
        rows = read.words.rows(read.batch.inputs["input_ids"].shape[1])
        for place, chosen in zip(at.places, at.chosen, strict=True):
            own = flat[rows[read.words.words == place]].mean(0)
            states.setdefault(int(chosen), []).append(own / np.linalg.norm(own))
    for name, value in zip(part["word"].to_numpy(), part["by_word"].to_numpy()[:, 3], strict=True):
        mine = np.array(states[words.names.index(str(name))])
        cosines = (mine @ mine.T)[np.triu_indices(len(mine), 1)]
        assert value == pytest.approx(cosines.mean(), abs=1e-6)


def test_the_first_component_is_that_of_the_singular_values() -> None:
    rows = np.random.default_rng(1).normal(size=(3, 5, 16)) + 1
    values = np.linalg.svd(rows, compute_uv=False) ** 2
    assert explained(rows) == pytest.approx(values[:, 0] / values.sum(1))


def test_rows_that_share_texts_count_as_dependent() -> None:
    values = np.array([1.0, 1.0, -1.0, -1.0])[:, None] / 4
    alone = shared_error(values, np.arange(4)[:, None])
    shared = shared_error(values, np.array([[0], [0], [1], [1]]))
    assert alone == pytest.approx(0.5)
    assert shared == pytest.approx(0.5 * 2**0.5)


def test_words_are_those_of_the_tokenizer_and_one_of_each_text() -> None:
    encoder = made.MadeEncoder(made.noise)
    texts = ["ba ba de", "ba fi", "de fi ba"]
    words = token_words(encoder.tokenize(texts).encodings or (), ends=[made.FIRST])
    assert words.texts.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert words.kinds[0] == words.kinds[1] != words.kinds[2]
    assert words.sentences.tolist() == [0, 1, 2, 3, 4, 5, 5, 5]  # `ba` ends sentences here
    found = recurring_words(encoder, words_of_texts(encoder, texts), contexts=3, most=10, seed=0)
    assert found.names == ["ba"]
    assert found.texts.tolist() == [3]
    assert sorted(found.stored[0]) == [0, 1, 2]
    at = occurrences(words, np.arange(3), found, seed=0)
    assert at.texts.tolist() == [0, 1, 2]
    assert len(set(at.slots)) == 3


def test_blocks_hold_each_text_once_and_are_of_about_one_size() -> None:
    texts = made.corpus(95)
    blocks = _STUDY.blocks(texts)
    assert sorted(np.concatenate(blocks)) == list(range(95))
    sizes = [sum(len(texts[int(i)].text) for i in block) for block in blocks]
    assert len(blocks) == BLOCKS
    assert max(sizes) < 1.5 * min(sizes)


def test_change_is_that_of_a_line() -> None:
    assert change(np.array([1.0, 2.0, 3.0])) == pytest.approx(2)
    assert change(np.array([0.0, 1.0, 1.0, 0.0])) == pytest.approx(0)


def test_memory_does_not_grow_with_text() -> None:
    """Twice the text, nearly the same peak: only texts themselves and their numbers are more."""

    def peak(size: int) -> int:
        texts = made.corpus(size, seed=1)
        encoder = made.MadeEncoder(made.noise)
        study = SelfSimilarity(examples=10_000)
        tracemalloc.start()
        study.one_pass(encoder, texts, Context(batch_tokens=256), whole=True)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(600) < 1.25 * peak(300)


def test_too_few_words_and_a_single_layer_are_refused() -> None:
    with pytest.raises(DataError, match="words occur in 90 texts"):
        SelfSimilarity(contexts=90).one_pass(
            made.MadeEncoder(made.noise), made.corpus(20), Context(), whole=True
        )
    encoder: Any = made.MadeEncoder(made.noise)
    with pytest.raises(DataError, match="needs 10 examples"):
        _STUDY.check(encoder, made.corpus(5))
    encoder.model.config.num_hidden_layers = 1
    with pytest.raises(CapabilityError, match="one layer"):
        _STUDY.check(encoder, made.corpus(20))


def test_padding_on_the_left_is_counted() -> None:
    encoder = made.MadeEncoder(made.noise)
    words = token_words(encoder.tokenize(["ba de", "ba fi lo"]).encodings or ())
    assert words.rows(5).tolist() == [1, 2, 6, 7, 8]
    assert words.rows(5, left=True).tolist() == [2, 3, 6, 7, 8]
    assert torch.equal(torch.tensor(words.words), torch.arange(5))
