"""Nulls of reasoning chains: random models, and answers that follow from nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import torch
import transformers as hf

import bertology as bt
import planted_links
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.studies.cloze.reasoning_chains import ReasoningChains
from nulls import HOLDS, Null, judged
from nulls.agreement import SHAPE
from nulls.models import SPREADS, mini

_QUESTIONS = 400


@cache
def _chains() -> Corpus:
    return bt.load_corpus("grammar-chains", split="train", limit=4000)


def _asked(encoder: Encoder, corpus: Corpus, seed: int) -> Mapping[str, str]:
    study = ReasoningChains(examples=_QUESTIONS, resamples=200, seed=seed, lens="none")
    return judged("reasoning-chains", planted_links.ask(study, encoder, corpus))


def random_chains(seed: int) -> Mapping[str, str]:
    """A random model prefers one of the candidates for no reason."""
    torch.manual_seed(seed)
    spread, tokens = SPREADS[seed % len(SPREADS)], mini().tokenizer
    shape = {**SHAPE, "max_position_embeddings": 160}
    config = hf.BertConfig(**shape, vocab_size=len(tokens), initializer_range=spread)
    made = Encoder(hf.BertForMaskedLM(config).eval(), tokens, head="mlm", name="random")
    return _asked(made, _chains(), seed)


def drawn_answers(seed: int) -> Mapping[str, str]:
    """The bundled model; which candidate is called right is drawn."""
    rng = random.Random(seed)
    drawn = [
        replace(e, annotations={**e.annotations, "answer": [rng.choice(e.get("candidates"))]})
        for e in _chains()
    ]
    return _asked(mini("mlm"), replace(_chains(), examples=drawn), seed)


_CLAIMS = ("one-step-is-found", "blanks-are-lost-with-steps")

NULLS = (
    Null("random model (chains)", random_chains, dict.fromkeys(_CLAIMS, HOLDS)),
    Null("answers drawn (chains)", drawn_answers, dict.fromkeys(_CLAIMS, HOLDS)),
)
