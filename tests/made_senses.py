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
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.model.encoder import Encoder
from bertology.studies.geometry.word_senses import WordSenses, WordSensesResult
from bertology.studies.geometry.words_in_context import WordsInContext, WordsInContextResult
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


def pairs(size: int = 160, *, seed: int = 0) -> Corpus:
    """Two texts with one word, which means the same in half of them."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(size):
        lemma, same = LEMMAS[i % len(LEMMAS)], int(rng.integers(2))
        texts = []
        for side in range(2):
            words = [str(w) for w in rng.choice(AROUND, 4)]
            words[1 + side] = lemma
            texts.append(" ".join([*words, str(2 * i + side)]))
        about = {"targets": [[1, 2], [2, 3]], "group": f"{lemma}-{i // 24}"}
        examples.append(Example(str(i), *texts, label=same, annotations=about))
    fields = {Field.TEXT, Field.TEXT_B, Field.TARGETS, Field.LABEL, Field.GROUP}
    task = Task("same", "classification", ("false", "true"), pair=True)
    return Corpus("made pairs", examples, frozenset(fields), task)


def ask_pairs(reader: Any, texts: Corpus, **how: Any) -> WordsInContextResult:
    found = planted_links.ask(WordsInContext(**how), reader, texts)
    assert isinstance(found, WordsInContextResult)
    return found


def simulated_pairs(
    patch: pytest.MonkeyPatch, texts: Corpus, *, apart: float, seed: int = 0
) -> WordsInContextResult:
    """Noise, but that after layer 1 words that mean the same have `apart` in common."""
    rng = np.random.default_rng(seed + 7)

    def made(reader: Any, given: Corpus, **_: Any) -> MadeStates:
        sizes = [len(example.get("offsets")) for example in given]
        values = rng.normal(size=(LAYERS + 1, sum(sizes), WIDTH))
        if "shuffled" not in reader.name:
            starts = np.cumsum([0, *sizes])
            for at, example in enumerate(texts):
                for side, (first, _) in enumerate(example.get("targets")):
                    if side == 0 or not example.label:
                        middle = rng.normal(size=WIDTH)
                    values[PLANTED + 1, starts[2 * at + side] + first] += apart * middle
        return MadeStates(values, sizes)

    patch.setattr(module, "word_states", made)
    return ask_pairs(encoder(), texts, seed=seed)
