"""A fresh BERT: the right shape, its own vocabulary, the same for the same seed."""

from __future__ import annotations

import pytest
import torch

from bertology.errors import DataError, ParameterError
from bertology.train.fresh import Architecture, fresh_tokenizer
from made_classifiers import fresh_classifier

TEXTS = ["The cat sees the dog.", ("A dog slept.", "Did the cats sleep?"), "Dogs see cats."]
SMALL = Architecture(layers=2, heads=2, hidden=8, vocab_size=80, max_length=16)


def test_shape_and_labels_are_those_asked_for() -> None:
    model, tokenizer = fresh_classifier(TEXTS, SMALL, labels=("no", "maybe", "yes"))
    config = model.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.hidden_size) == (2, 2, 8)
    assert config.vocab_size == len(tokenizer) <= 80
    assert config.id2label == {0: "no", 1: "maybe", 2: "yes"}
    assert not model.training
    logits = model(**tokenizer("the cat", return_tensors="pt")).logits
    assert logits.shape == (1, 3)


def test_no_labels_means_regression() -> None:
    model, _ = fresh_classifier(TEXTS, SMALL, labels=())
    assert model.config.num_labels == 1


def test_pairs_get_their_marks_and_segments() -> None:
    tokenizer = fresh_tokenizer(TEXTS, vocab_size=200, max_length=16)
    pair = tokenizer("The CAT", "a dog.")
    assert tokenizer.convert_ids_to_tokens(pair["input_ids"]) == (
        ["[CLS]", "the", "cat", "[SEP]", "a", "dog", ".", "[SEP]"]
    )
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1, 1]
    single = tokenizer("a dog")
    assert tokenizer.convert_ids_to_tokens(single["input_ids"]) == ["[CLS]", "a", "dog", "[SEP]"]
    assert tokenizer.mask_token == "[MASK]"


def test_the_seed_decides_and_torch_goes_on_undisturbed() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, tokenizer = fresh_classifier(TEXTS, SMALL, labels=("a", "b"), seed=1)
    assert torch.equal(torch.rand(3), expected)
    again, same = fresh_classifier(TEXTS, SMALL, labels=("a", "b"), seed=1)
    other, _ = fresh_classifier(TEXTS, SMALL, labels=("a", "b"), seed=2)
    for mine, yours in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, yours)
    assert not torch.equal(first.classifier.weight, other.classifier.weight)
    assert tokenizer.get_vocab() == same.get_vocab()


def test_sizes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ParameterError, match="multiple of heads"):
        Architecture(hidden=10, heads=4)
    with pytest.raises(ParameterError, match="at least 1"):
        Architecture(layers=0)
    with pytest.raises(ParameterError, match="below 1"):
        Architecture(dropout=1.0)
    with pytest.raises(DataError, match="no text"):
        fresh_tokenizer([], vocab_size=50, max_length=8)
