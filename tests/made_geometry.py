"""States of words whose geometry is known, read by studies as if a model had computed them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder
from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.shuffled_copies import MODEL
from bertology.studies.geometry.shared.text_blocks import TextBlocks
from bertology.studies.study import Context

WIDTH, LAYERS = 64, 4
WORDS = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o")]
FIRST = 5  # the number of the first word; special tokens come before
States = Callable[[torch.Tensor, int, torch.Generator], torch.Tensor]
"""Of tokens (B, T) and the number of a layer (0: the input): (B, T, WIDTH)."""


class MadeEncoder(Encoder):
    """Has the shape of a model and a tokenizer; its states are made."""

    def __init__(self, states: States, *, seed: int = 0) -> None:
        config = hf.BertConfig(
            vocab_size=FIRST + len(WORDS), hidden_size=WIDTH, num_hidden_layers=LAYERS,
            num_attention_heads=4, intermediate_size=8, max_position_embeddings=32,
        )  # fmt: skip
        model = hf.BertModel(config, add_pooling_layer=False).eval()
        super().__init__(model, tiny.tokenizer(WORDS, max_length=32), name="made")
        self._states, self._seed = states, seed

    def run(self, inputs: Any, **asked: Any) -> Any:
        tokens = inputs.inputs["input_ids"]
        for site, reducer in asked["reduce"].items():
            kind = Kind.EMBEDDINGS if site == "embeddings" else Kind.RESIDUAL
            for number in [0] if kind is Kind.EMBEDDINGS else range(1, LAYERS + 1):
                key = f"{self._seed} {number} {tokens.tolist()}"
                generator = torch.Generator().manual_seed(crc32(key.encode()))
                at = SiteContext("encoder", max(number - 1, 0), kind, inputs.real, len(inputs))
                reducer.update(self._states(tokens, number, generator), at)


def corpus(size: int = 120, *, length: int = 8, seed: int = 0) -> Corpus:
    """Texts of words of chance."""
    rng = np.random.default_rng(seed)
    examples = [
        Example(str(i), " ".join(rng.choice(WORDS, int(rng.integers(length // 2, 2 * length)))))
        for i in range(size)
    ]
    return Corpus("made", examples, frozenset({Field.TEXT}))


def noise(tokens: torch.Tensor, _: int, generator: torch.Generator) -> torch.Tensor:
    """Isotropic Gaussians."""
    return torch.randn(*tokens.shape, WIDTH, generator=generator)


def _across(axis: torch.Tensor, random: torch.Tensor) -> torch.Tensor:
    """Unit vectors of any direction that is at right angles to unit vectors `axis`."""
    rest = random - (random * axis).sum(-1, keepdim=True) * axis
    return rest / rest.norm(dim=-1, keepdim=True)


def cone(cosines: Mapping[int, float], axis: torch.Tensor) -> States:
    """Pairs of words with such an expected cosine after each layer, around one axis; any length."""

    def made(tokens: torch.Tensor, number: int, generator: torch.Generator) -> torch.Tensor:
        way = axis.expand(*tokens.shape, WIDTH)
        rest = _across(way, noise(tokens, number, generator))
        share = cosines[number]
        length = 1 + torch.rand(*tokens.shape, 1, generator=generator)
        return length * (share**0.5 * way + (1 - share) ** 0.5 * rest)

    return made


def own_ways(similar: Mapping[int, float]) -> States:
    """Each word has a direction of its own, and its occurrences such an expected cosine."""
    # Few words more than dimensions would do; 48 words have directions at right angles.
    ways = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(9))).Q[
        : len(WORDS)
    ]

    def made(tokens: torch.Tensor, number: int, generator: torch.Generator) -> torch.Tensor:
        way = ways[(tokens - FIRST).clamp_min(0)]
        rest = _across(way, noise(tokens, number, generator))
        share = similar[number]
        return 3 * (share**0.5 * way + (1 - share) ** 0.5 * rest)

    return made


def falling(first: float, last: float) -> dict[int, float]:
    """On a line from the first layer to the last; the input is like the first."""
    line = np.linspace(first, last, LAYERS).tolist()
    return dict(enumerate([first, *line]))


def ask(study: TextBlocks, texts: Corpus, states: States, copies: States, *, seed: int = 0) -> Any:
    """The result of states that are made, beside `copies` in the place of shuffled weights."""
    measured = {}
    own = MadeEncoder(states, seed=seed)
    shown = study.shown(texts)
    for at, part in enumerate(study.parts(own.shape, texts)):
        whole = part == MODEL
        reader = own if whole else MadeEncoder(copies, seed=1000 * (seed + 1) + at)
        measured[part] = study.one_pass(reader, shown, Context(), whole=whole)
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in type(study).__name__)
    about = Provenance(
        study=name.strip("-"),
        study_version=study.version,
        parameters=study.parameters,
        model={"name": "made", "fingerprint": f"made-{seed}"},
        corpus={"name": texts.name, "fingerprint": texts.fingerprint},
    )
    found = study.conclude(measured, about)
    assert isinstance(found, Result)
    return found
