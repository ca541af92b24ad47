"""Nulls of prompts: random models, of which some wordings say the most frequent answer."""

from __future__ import annotations

from collections.abc import Mapping

import planted_links
from bertology.studies.cloze.prompts import Prompts
from nulls import HOLDS, Null, judged
from nulls.facts import random_facts, random_masked_lm


def of_random_models(seed: int) -> Mapping[str, str]:
    facts = random_facts(seed, versions=False)
    study = Prompts(seed=seed, resamples=100, together=2)
    return judged("prompts", planted_links.ask(study, random_masked_lm(seed), facts))


NULLS = (
    Null("random model (best wordings)", of_random_models, {"good-wordings-tell-more": HOLDS}),
)
