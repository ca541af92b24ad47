"""States in which numbers are encoded in a known way, for numeracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import planted_links
import tiny
from bertology.annotated import states as module
from bertology.data.corpus import Corpus
from bertology.data.grammar.numbers import NOTATIONS, in_words
from bertology.model.encoder import Encoder
from bertology.studies.probing.numeracy import Numeracy
from bertology.studies.probing.numeracy.results import NumeracyResult
from made_states import MadeStates

LAYERS, WIDTH, TOLD = 2, 24, 1  # the layer, from 0, that tells numbers
_VALUES = {in_words(n): float(n) for n in range(200)}
_PIECES = [*"0123456789.+,-", *(f"##{d}" for d in "0123456789"), "e"]
GROUPS = ("integers to 999", "decimals to 99.9")
_LEARNT, _ASKED = 240, 100  # examples of each group

Code = Callable[[float, float], np.ndarray]


class Planted(MadeStates):
    """States by layer, as precise as they are given: half precision blurs close numbers."""

    def __init__(self, values: np.ndarray, counts: Sequence[int]) -> None:
        super().__init__(values, counts)
        self._values = values.astype(np.float32)

    def layer(self, number: int) -> Any:
        return self._values[number]


def reader() -> Encoder:
    """A tiny model that reads digits."""
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=5 + len(_PIECES), hidden_size=16, num_hidden_layers=LAYERS,
        num_attention_heads=2, intermediate_size=8, max_position_embeddings=64,
    )  # fmt: skip
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    return Encoder(model, tiny.tokenizer(_PIECES), name="reader")


def value_of(word: str) -> float:
    """Of a number in any writing."""
    return _VALUES[word] if word in _VALUES else float(word.replace(" ", ""))


def linear(value: float, top: float) -> np.ndarray:
    """The value along one direction."""
    return np.r_[3 * value / top, np.zeros(WIDTH - 1)]


def table(value: float, top: float) -> np.ndarray:
    """Which part of the range it is in; nothing of what lies beyond."""
    bumps = np.exp(-0.5 * np.square((value / top - np.linspace(0, 1, WIDTH)) * WIDTH))
    return 3 * bumps if value <= top else np.zeros(WIDTH)


def nothing(value: float, top: float) -> np.ndarray:
    return np.zeros(WIDTH)


@cache
def _whole(kind: str) -> dict[str, Corpus]:
    return Numeracy().splits(corpus(kind))


def some(splits: dict[str, Corpus], seed: int = 0) -> dict[str, Corpus]:
    """A few examples of two groups."""
    found = {}
    for role, texts in splits.items():
        size = _LEARNT if role == "train" else _ASKED
        drawn = texts.take(len(texts), seed=seed).examples
        kept = [[e for e in drawn if e.get("group") == group][:size] for group in GROUPS]
        found[role] = replace(texts, examples=[e for of in kept for e in of])
    return found


def ask(
    patch: pytest.MonkeyPatch,
    code: Code,
    corpus: Corpus,
    *,
    writings: tuple[str, ...] = ("pieces",),
    only: str = "",
    shared: str = "",
    seed: int = 0,
    noise: float = 0.02,
    **options: Any,
) -> NumeracyResult:
    """The study of states that no model computed: a code in one layer, or of one group or writing.

    Copies with shuffled weights have the code of the `shared` group, too.

    Every number has a random vector of its own besides: whoever learns them by heart knows nothing
    of others.
    """
    tops = {name: float(notation.value(notation.limit)) for name, notation in NOTATIONS.items()}

    def made(encoder: Encoder, texts: Corpus, **_: Any) -> Planted:
        counts = [len(example.get("words")) for example in texts]
        found = np.zeros((LAYERS + 1, sum(counts), WIDTH))
        at = 0
        for example in texts:
            group = str(example.get("group"))
            for word in example.get("words"):
                own = np.random.default_rng([seed, crc32(f"{group} {word}".encode())])
                found[:, at] = noise * own.normal(size=(LAYERS + 1, WIDTH))
                known = only in ("", group) or (only == "digits" and " " in word)
                if known and ("shuffled" not in encoder.name or group == shared):
                    found[TOLD + 1, at] += code(value_of(word), tops[group])
                at += 1
        return Planted(found, counts)

    drawn = some(_whole(str(corpus.name).rpartition("-")[2]), seed)
    patch.setattr(Numeracy, "splits", lambda study, given: drawn)
    patch.setattr(module, "word_states", made)
    patch.setattr(Numeracy, "copies", 4)
    study = Numeracy(writings=writings, seed=seed, **{"seeds": 4, **options})
    found = planted_links.ask(study, reader(), corpus)
    assert isinstance(found, NumeracyResult)
    return found


def corpus(kind: str = "values") -> Corpus:
    """One of the bundled corpora."""
    return bt.load_corpus(f"grammar-number-{kind}")
