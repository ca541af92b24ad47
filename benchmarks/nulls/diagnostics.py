"""Nulls of diagnostics: random models, scores of chance, words that are liked everywhere."""

from __future__ import annotations

from collections.abc import Mapping

import test_diagnostics as simulated
import torch
import transformers as hf

import made_diagnostics
from bertology.model.encoder import Encoder
from nulls import HOLDS, Null, judged
from nulls.agreement import SHAPE
from nulls.models import SPREADS, mini


def random_diagnostics(seed: int) -> Mapping[str, str]:
    """A random model prefers words for no reason."""
    torch.manual_seed(seed)
    spread, tokens = SPREADS[seed % len(SPREADS)], mini().tokenizer
    config = hf.BertConfig(**SHAPE, vocab_size=len(tokens), initializer_range=spread)
    made = Encoder(hf.BertForMaskedLM(config).eval(), tokens, head="mlm", name="random")
    found = simulated.ask(made, made_diagnostics.corpus(seed), seed=seed, lens="none")
    return judged("diagnostics", found)


def chance(seed: int) -> Mapping[str, str]:
    """Log-probabilities are drawn."""
    return judged("diagnostics", simulated.chance(seed))


def liked_everywhere(seed: int) -> Mapping[str, str]:
    """Words are liked or not, whatever the context is."""
    return judged("diagnostics", simulated.liked_everywhere(seed))


def popular(seed: int) -> Mapping[str, str]:
    """The words that are good most of the time are liked, whatever the context is."""
    return judged("diagnostics", simulated.popular(seed))


_FALSE = dict.fromkeys(
    (
        "good-completions-are-preferred",
        "related-fillers-are-preferred",
        "roles-are-heeded",
        "roles-are-heeded-weakly",
        "negation-is-not-understood",
    ),
    HOLDS,
)

NULLS = (
    Null("random model (diagnostics)", random_diagnostics, _FALSE),
    Null("log-probabilities of chance (diagnostics)", chance, _FALSE),
    Null("words liked everywhere (diagnostics)", liked_everywhere, _FALSE),
    Null("words liked that are mostly good (diagnostics)", popular, _FALSE),
)
