"""Nulls of trees: models in which a head holds the tree, and models in which nothing does."""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch
import transformers as hf

import planted_links
import planted_trees as planted
from bertology.model.encoder import Encoder
from bertology.studies.attention.attention_parser import AttentionParser
from bertology.studies.attention.attention_trees import AttentionTrees
from bertology.studies.cloze.impact_constituents import ImpactConstituents
from bertology.studies.cloze.perturbed_masking import PerturbedMasking
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model, texts

_BEST_EFFORT = {"resamples": 200}
_PARSER = AttentionParser(**_BEST_EFFORT, vector_size=8)


def random_trees(seed: int) -> Mapping[str, str]:
    """No head of a random model follows a relation, on sentences of the grammar."""
    study = AttentionTrees(**_BEST_EFFORT)
    found = planted_links.ask(study, encoder(random_model(seed)), texts(seed))
    return judged("attention-trees", found)


def planted_tree(seed: int) -> Mapping[str, str]:
    """One head is the tree, however sharply it attends along it."""
    strength = random.Random(seed).uniform(1.5, 4.0)
    reader = planted.encoder(planted.model(strength=strength))
    found = planted_links.ask(AttentionTrees(**_BEST_EFFORT), reader, planted.corpus(40, seed=seed))
    return judged("attention-trees", found)


def random_parsers(seed: int) -> Mapping[str, str]:
    """Training finds something in any attention; in a random model no more than without order."""
    found = planted_links.ask(_PARSER, encoder(random_model(seed)), texts(seed))
    return judged("attention-parser", found)


def parsed_by_one_head(seed: int) -> Mapping[str, str]:
    """One head is the tree, so a combination of heads has nothing to add."""
    strength = random.Random(seed).uniform(1.5, 4.0)
    reader = planted.encoder(planted.model(strength=strength))
    return judged(
        "attention-parser", planted_links.ask(_PARSER, reader, planted.corpus(40, seed=seed))
    )


def random_impacts(seed: int) -> Mapping[str, str]:
    """In a random model no word changes the guess at another for the sake of syntax."""
    torch.manual_seed(seed)
    guessing = hf.BertForMaskedLM(random_model(seed).config).eval()
    reader = Encoder(guessing, mini().tokenizer, name="random", head="mlm")
    study = PerturbedMasking(**_BEST_EFFORT)
    return judged("perturbed-masking", planted_links.ask(study, reader, texts(seed, 40)))


def random_constituents(seed: int) -> Mapping[str, str]:
    """The same for phrases: no split of a random model's impacts is one of syntax."""
    torch.manual_seed(seed)
    guessing = hf.BertForMaskedLM(random_model(seed).config).eval()
    reader = Encoder(guessing, mini().tokenizer, name="random", head="mlm")
    study = ImpactConstituents(**_BEST_EFFORT)
    return judged("impact-constituents", planted_links.ask(study, reader, texts(seed, 60)))


_IMPACT = ("impact-trees-beat-the-right-chain", "impact-trees-beat-every-baseline")
_NO_HEAD = "no-head-parses-better-than-a-chain"

_MIX = ("relations-are-in-several-heads", "objects-are-in-several-heads")

NULLS = (
    Null(
        "random model (parsers)",
        random_parsers,
        dict.fromkeys((*_MIX, "heads-together-know-syntax"), HOLDS),
    ),
    Null("a head is the tree (parsers)", parsed_by_one_head, dict.fromkeys(_MIX, HOLDS)),
    Null(
        "random model (trees)",
        random_trees,
        {"heads-find-single-relations": HOLDS, _NO_HEAD: HOLDS},
    ),
    Null("random model (impact)", random_impacts, dict.fromkeys(_IMPACT, HOLDS)),
    Null(
        "random model (phrases)",
        random_constituents,
        {"impact-constituents-beat-every-baseline": HOLDS},
    ),
    Null("a head is the tree", planted_tree, {_NO_HEAD: HOLDS}),
)
