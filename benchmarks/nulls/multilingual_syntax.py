"""Nulls of syntax in several languages: random models over made sentences, and trees of chance."""

from __future__ import annotations

from collections.abc import Mapping

import test_multilingual_agreement as agreement
import test_structural_probe_transfer as transfer

import planted_links
import planted_trees
from bertology.studies.languages.structural_probe_transfer import StructuralProbeTransfer
from nulls import FAILS, HOLDS, Null, judged


def random_agreement(seed: int) -> Mapping[str, str]:
    """A random model likes a form in some sentences, whatever the subject and the language are."""
    texts = agreement.corpus(160, seed=seed)
    found = agreement.ask(agreement.random_encoder(seed), texts, lens="none", seed=seed)
    return judged("multilingual-agreement", found)


def random_transfer(seed: int) -> Mapping[str, str]:
    """A random model knows words and their places, and trees are of chance."""
    reader = planted_trees.encoder(planted_trees.random_model(seed=seed))
    study = StructuralProbeTransfer(rank=8, seed=seed)
    found = planted_links.ask(study, reader, transfer.corpus(60, seed=seed))
    return judged("structural-probe-transfer", found)


NULLS = (
    Null(
        "random model (agreement by language)",
        random_agreement,
        {
            "verbs-agree-in-every-language": HOLDS,
            "attractors-cost": HOLDS | FAILS,
            "english-agrees-best": HOLDS | FAILS,
        },
    ),
    Null(
        "random model (probes of other languages)",
        random_transfer,
        {
            "trees-by-probes-of-another-language": HOLDS,
            "trees-by-a-probe-of-all-others": HOLDS,
        },
    ),
)
