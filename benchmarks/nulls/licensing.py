"""Nulls of negative polarity items: random models, factors dealt anew, words liked everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import test_npi_licensing as simulated
import torch
import transformers as hf
import xarray as xr

import bertology as bt
from bertology.annotated.sentence_vectors import sentence_vectors
from bertology.annotated.states import word_states
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.model.weight_noise import shuffled_copy
from bertology.results.provenance import Provenance
from bertology.studies.cloze.npi_licensing import NpiLicensing, folds_of, labels_of
from bertology.studies.cloze.npi_licensing.paradigms import Paradigms
from bertology.studies.study import Context
from bertology.train.probes.ridge import held_out_leanings
from nulls import HOLDS, Null, judged
from nulls.agreement import SHAPE
from nulls.models import SPREADS, mini

_SENTENCES = 448  # a paradigm for each environment and item of the grammar
_STUDY = NpiLicensing(resamples=100)


@cache
def _paradigms(seed: int = 0) -> Corpus:
    return bt.load_corpus("grammar-licensing", limit=_SENTENCES, seed=seed)


def random_licensing(seed: int) -> Mapping[str, str]:
    """A random model knows no licensor."""
    torch.manual_seed(seed)
    spread, tokens = SPREADS[seed % len(SPREADS)], mini().tokenizer
    config = hf.BertConfig(**SHAPE, vocab_size=len(tokens), initializer_range=spread)
    made = Encoder(hf.BertForMaskedLM(config).eval(), tokens, head="mlm", name="random")
    return judged("npi-licensing", simulated.ask(made, _paradigms(seed % 10)))


@cache
def _of_mini() -> tuple[xr.Dataset, list[np.ndarray]]:
    """Likelihoods of `bertology-mini`, and sentence vectors of it and of four copies."""
    corpus, reader = _paradigms(), mini("mlm")
    part = _STUDY.measure(reader, corpus, f"examples-000000-{len(corpus):06d}", Context())
    readers = [reader, *(shuffled_copy(reader, seed=copy) for copy in range(_STUDY.copies))]
    states = [word_states(one, corpus, pooling="tokens") for one in readers]
    return part, [sentence_vectors(of, first=False) for of in states]


def dealt_factors(seed: int) -> Mapping[str, str]:
    """The sentences of each paradigm get each other's factors: no word and no order tells them."""
    part, vectors = _of_mini()
    known, rng = Paradigms.of(_paradigms()), np.random.default_rng(seed)
    order = np.arange(len(known.label))
    for item in np.unique(known.item):
        own = np.flatnonzero(known.item == item)
        order[own] = rng.permutation(own)
    dealt = replace(known, factors=known.factors[order], label=known.label[order])
    leanings = [held_out_leanings(of, labels_of(dealt), folds_of(dealt, seed)) for of in vectors]
    names = ["states", *(f"states-shuffled-{copy}" for copy in range(_STUDY.copies))]
    parts = {
        name: xr.Dataset({"leaning": (("question", "layer", "example"), of)})
        for name, of in zip(names, leanings, strict=True)
    }
    first = part.assign(dealt.dataset(slice(None)))
    first["filled"] = first["filled"] * np.nan  # blanks stand where the true factors are
    about = Provenance("npi-licensing", 1, {}, {"name": "m", "fingerprint": "f"},
                       {"name": "c", "fingerprint": "c"})  # fmt: skip
    found = _STUDY.conclude({f"examples-000000-{len(order):06d}": first, **parts}, about)
    return judged("npi-licensing", found)


def liked_everywhere(seed: int) -> Mapping[str, str]:
    """Probes tell what is new by chance, likelihoods are of words liked everywhere."""
    return judged("npi-licensing", simulated.chance(seed))


_FALSE = dict.fromkeys(
    (
        "items-are-told-better-than-scope",
        "licensors-are-told-better-than-scope",
        "licensors-are-told-better-than-scope-in-pairs",
    ),
    HOLDS,
)

NULLS = (
    Null("random model (licensing)", random_licensing, _FALSE),
    Null("factors dealt anew (licensing)", dealt_factors, _FALSE),
    Null("words liked everywhere (licensing)", liked_everywhere, _FALSE),
)
