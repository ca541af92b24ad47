"""Nulls of agreement: random models, and verbs that belong to other sentences."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import torch
import transformers as hf

import bertology as bt
import made_agreement
import planted_links
from bertology.data.corpus import Corpus, Example
from bertology.model.encoder import Encoder
from bertology.studies.cloze.agreement import Agreement
from bertology.studies.designs.clozes import pair_blank
from nulls import HOLDS, Null, judged
from nulls.models import SPREADS, mini

_PAIRS = 300
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


@cache
def _grammar() -> Corpus:
    return bt.load_corpus("grammar-agreement", limit=4000)


def random_agreement(seed: int) -> Mapping[str, str]:
    """A random model likes a form in some sentences, whatever the subject is."""
    torch.manual_seed(seed)
    spread = SPREADS[seed % len(SPREADS)]
    tokens = mini().tokenizer
    config = hf.BertConfig(**SHAPE, vocab_size=len(tokens), initializer_range=spread)
    made = Encoder(hf.BertForMaskedLM(config).eval(), tokens, head="mlm", name="random")
    study = Agreement(resamples=200, seed=seed, lens="none")
    pairs = _grammar().take(_PAIRS, seed=seed)
    return judged("agreement", planted_links.ask(study, made, pairs))


def exchanged(corpus: Corpus, seed: int) -> Corpus:
    """Which form is called right is that of another sentence with the same verb."""
    rng, by_verb = random.Random(seed), defaultdict(list)
    for one in corpus:
        blank = pair_blank(one.text, str(one.get("contrast")))
        if blank is not None:
            by_verb[frozenset((blank.good, blank.bad))].append((one, blank))
    found: list[Example] = []
    for same in by_verb.values():
        given = rng.sample([blank.good for _, blank in same], len(same))
        for (one, blank), right in zip(same, given, strict=True):
            words, at = list(one.get("words")), one.get("critical")
            words[at] = right
            bad = {"contrast": one.text if right != blank.good else one.get("contrast")}
            text = one.text if right == blank.good else str(one.get("contrast"))
            found.append(
                replace(one, text=text, annotations={**one.annotations, **bad, "words": words})
            )
    rng.shuffle(found)
    return replace(corpus, examples=found)


def exchanged_verbs(seed: int) -> Mapping[str, str]:
    """The bundled model, asked for forms that agree with nothing."""
    study = Agreement(resamples=200, seed=seed, lens="none")
    pairs = exchanged(_grammar().take(_PAIRS, seed=seed), seed)
    return judged("agreement", planted_links.ask(study, mini("mlm"), pairs))


def equal_layers(seed: int) -> Mapping[str, str]:
    """Every layer tells the number as well as any other, and noise decides which looks best."""
    clear = (0.0, 0.5, 1.0, 2.0)[seed % 4]
    return judged("agreement", made_agreement.layered((clear,) * 10, seed))


_MIDDLE = "agreement-is-best-in-the-middle"
_CLAIMS = ("verbs-agree", "verbs-agree-across-attractors", "verbs-agree-in-nonsense")

NULLS = (
    Null("random model (agreement)", random_agreement, dict.fromkeys(_CLAIMS, HOLDS)),
    Null("layers that are alike (agreement)", equal_layers, {_MIDDLE: {"holds", "fails"}}),
    Null("forms of other sentences (agreement)", exchanged_verbs, dict.fromkeys(_CLAIMS, HOLDS)),
)
