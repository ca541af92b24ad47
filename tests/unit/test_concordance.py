"""A word in its contexts: found in texts of all kinds, with the states that the model gives it."""

from __future__ import annotations

import numpy as np
import pytest

import made_senses
from bertology.annotated.concordance import (
    ConcordanceLine,
    concordance,
    concordance_states,
    sense_concordance,
    sense_words,
)
from bertology.errors import DataError, ParameterError
from explorer import encoder_of


def test_a_word_is_found_whole_in_any_case_and_form() -> None:
    texts = ["Banks and a bank.", "The embankment", "BANK (bank's)", "他去银行了"]
    found = concordance(texts, ["bank", " banks "], ["a", "b", "c", "d"])
    assert [(line.text[line.start : line.end], line.sense) for line in found] == [
        ("Banks", "a"), ("bank", "a"), ("BANK", "c"), ("bank", "c"),
    ]  # fmt: skip
    (line,) = concordance(texts, ["银行"])  # this script does not part words
    assert line == ConcordanceLine("他去银行了", 2, 4)
    assert concordance(["a+b (c"], ["a+b", "(c"]) == [
        ConcordanceLine("a+b (c", 0, 3), ConcordanceLine("a+b (c", 4, 6),
    ]  # fmt: skip
    with pytest.raises(DataError, match="no word to look for"):
        concordance(texts, [" ", ""])


def test_senses_of_a_corpus_are_found_by_lemma() -> None:
    corpus = made_senses.corpus(24)
    assert sense_words(corpus) == sorted(made_senses.LEMMAS)
    lines = sense_concordance(corpus, "Word3")
    assert lines == sense_concordance(corpus, "word3.n")
    assert [line.text[line.start : line.end] for line in lines] == ["word3", "word3"]
    assert all(line.sense.startswith("word3%") for line in lines)
    assert sense_concordance(corpus, "word3.v") == []


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_states_are_those_of_the_word_s_pieces(pooling: str) -> None:
    encoder = encoder_of()
    texts = ["it is the keys .", "keys to the keys", "the dog " * 40 + "keys"]
    lines = concordance(texts, ["keys"])
    states, there = concordance_states(encoder, lines, pooling=pooling)
    assert there.tolist() == [True, True, True, False]  # the last lies beyond what is read
    assert states.shape == (encoder.shape.layers + 1, 4, encoder.shape.hidden)
    assert not states[:, 3].any()
    # key ##s at these places, [CLS] counted
    for i, (text, first) in enumerate([(texts[0], 4), (texts[1], 1), (texts[1], 5)]):
        trace = encoder.run(encoder.encode(text), record=["embeddings", "layer.1.residual"])
        some = {"mean": [first, first + 1], "first": [first], "last": [first + 1]}[pooling]
        for at, site in ((0, "embeddings"), (2, "layer.1.residual")):
            own = trace[site][0, some].mean(0).numpy()
            np.testing.assert_allclose(states[at, i], own, atol=2e-3)


def test_other_poolings_are_refused_and_no_line_has_no_state() -> None:
    with pytest.raises(ParameterError, match="mean, first, last"):
        concordance_states(encoder_of(), [], pooling="sum")
    assert concordance_states(encoder_of(), [])[0].shape[1] == 0
