"""Texts with words of several senses, and states in which the senses are known to lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import planted_links
import tiny
from bertology.annotated import states as module
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder
from bertology.studies.geometry.word_senses import WordSenses, WordSensesResult
from made_states import MadeStates

LEMMAS = tuple(f"word{i}" for i in range(12))
AROUND = ("the", "a", "old", "new", "here", "there", "often", "now")
LAYERS, WIDTH, PLANTED = 2, 12, 1


def corpus(size: int = 240, *, seed: int = 0, told: bool = False, senses: int = 2) -> Corpus:
    """One ambiguous word in each text; with `told`, the word before it tells its sense."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(size):
        lemma = LEMMAS[i % len(LEMMAS)]
        kinds = senses + (i % len(LEMMAS)) % 2
        # The first sense is somewhat more frequent than the others.
        sense = int(
            rng.choice(kinds, p=np.array([2.0] + [1.5] * (kinds - 1)) / (1.5 * kinds + 0.5))
        )
        words = [str(w) for w in rng.choice(AROUND, 5)]
        if told:
            words[1] = AROUND[2 + sense]
        words[2] = lemma
        about = {"words": words, "senses": [[2, 3, f"{lemma}.n", f"{lemma}%{sense}"]]}
        examples.append(Example(str(i), " ".join([*words, str(i)]), annotations=about))
    fields = frozenset({Field.TEXT, Field.WORDS, Field.SENSES})
    return Corpus("made senses", examples, fields)


def encoder(*, seed: int = 0, spread: float = 0.25) -> Encoder:
    """A random model that reads these words."""
    words = [*LEMMAS, *AROUND]
    config = hf.BertConfig(
        vocab_size=5 + len(words), hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=2, intermediate_size=8, max_position_embeddings=64,
        initializer_range=spread,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    return Encoder(model, tiny.tokenizer(words), name=f"random-{seed}", head="base")


def ask(reader: Any, texts: Corpus, **how: Any) -> WordSensesResult:
    study = WordSenses(**{"resamples": 200, "k": (1, 5), "pictured": 1, "planes": ("pca",), **how})
    found = planted_links.ask(study, reader, texts)
    assert isinstance(found, WordSensesResult)
    return found


def simulated(
    patch: pytest.MonkeyPatch, texts: Corpus, *, apart: float, seed: int = 0, **how: Any
) -> WordSensesResult:
    """States that are noise; after layer 1 the senses of a lemma lie `apart` from each other."""
    rng = np.random.default_rng(seed + 99)
    middle: dict[str, np.ndarray] = {}

    def made(reader: Any, given: Corpus, **_: Any) -> MadeStates:
        sizes = [len(example.get("words")) for example in given]
        values = rng.normal(size=(LAYERS + 1, sum(sizes), WIDTH))
        if "shuffled" not in reader.name:
            starts = np.cumsum([0, *sizes])
            for at, example in enumerate(given):
                for first, _, _, sense in example.get("senses"):
                    own = middle.setdefault(sense, rng.normal(size=WIDTH))
                    values[PLANTED + 1, starts[at] + first] += apart * own
        return MadeStates(values, sizes)

    patch.setattr(module, "word_states", made)
    return ask(encoder(), texts, seed=seed, **how)
