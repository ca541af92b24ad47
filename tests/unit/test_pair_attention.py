"""Attention between spans: that of transformers, summed over pieces and words by hand."""

from __future__ import annotations

import numpy as np
import pytest

import planted_trees as planted
from bertology.annotated.pair_attention import WordPlaces, pair_attention
from bertology.annotated.states import word_states


def test_which_words_have_states_is_known_without_states() -> None:
    reader, texts = planted.encoder(planted.random_model()), planted.corpus(12)
    states, places = word_states(reader, texts), WordPlaces(reader, texts)
    assert (places.there == states.there).all()
    assert (places.counts == states.counts).all()
    assert places.missing == states.missing


def test_attention_is_that_of_transformers() -> None:
    made = planted.random_model()
    made.set_attn_implementation("eager")
    texts = planted.corpus(300)  # more than a block
    reader = planted.encoder(planted.random_model())
    words = WordPlaces(reader, texts)
    first = np.cumsum([0, *words.counts])
    rng = np.random.default_rng(0)
    examples = rng.permutation(np.repeat([3, 0, 299, 150], 5))
    pairs = []
    for text in examples:
        a, b = sorted(rng.choice(words.counts[text] - 1, 2, replace=False))
        pairs.append([[a, a + 1], [b, b + 2]] if rng.random() < 0.5 else [[b, b + 1], [a, a + 1]])
    own = np.array(pairs)
    numbers = own + first[examples][:, None, None]
    steps: list[int] = []
    found, spans = pair_attention(reader, texts, words, numbers, examples, advance=steps.append)
    assert sum(steps) == len(texts)
    assert found.block_sizes == [15, 5]
    values = np.concatenate([found.block(0), found.block(1)], axis=1)
    assert not values[0].any()  # nothing attends before the first layer
    for row, text in enumerate(examples):
        given = reader.tokenizer(list(texts)[text].text, return_tensors="pt")
        maps = made(**given, output_attentions=True).attentions
        (a, a_end), (b, b_end) = own[row] + 1  # every word is one piece, after [CLS]
        number, after = spans[row, 0]
        assert after == number + 1
        for layer in range(planted.LAYERS):
            of = maps[layer][0].detach().numpy()
            forth = of[:, a:a_end, b:b_end].sum(2).mean(1)
            back = of[:, b:b_end, a:a_end].sum(2).mean(1)
            both = np.concatenate([forth, back])
            assert values[layer + 1, number] == pytest.approx(both, abs=1e-3)
