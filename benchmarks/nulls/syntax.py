"""Nulls of relations: random models, trees given to words by lot, and models full of syntax."""

from __future__ import annotations

import random
from collections.abc import Mapping

import planted_links
import planted_syntax as planted
import planted_trees
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.studies.attention.syntax_heads import SyntaxHeads, SyntaxHeadsResult
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model, texts

SURE = "some-head-is-sure"
"""Beside the claims: whether any head surely follows any relation."""


def outcomes(reader: Encoder, corpus: Corpus) -> Mapping[str, str]:
    found: SyntaxHeadsResult = planted_links.ask(SyntaxHeads(resamples=200), reader, corpus)
    sure = (
        found.judged(found.table("links"), "excess")["sure"].any()
        or found.relations()["sure"].any()
        or found.sure_heads().any()
    )
    return {**judged("syntax-heads", found), SURE: "holds" if sure else "fails"}


def random_syntax(seed: int) -> Mapping[str, str]:
    """No head of a random model follows a relation, on sentences of the grammar."""
    return outcomes(encoder(random_model(seed)), texts(seed))


def shuffled_trees(seed: int) -> Mapping[str, str]:
    """Heads of `bertology-mini` follow relations, but not those of words drawn by lot."""
    return outcomes(mini(), planted.shuffled(texts(seed), seed))


def one_head_parses(seed: int) -> Mapping[str, str]:
    """One head attends from every word to its head, however sharply."""
    strength = random.Random(seed).uniform(1.5, 4.0)
    reader = planted_trees.encoder(planted_trees.model(strength=strength))
    return outcomes(reader, planted_trees.corpus(60, seed=seed))


def all_heads_follow(seed: int) -> Mapping[str, str]:
    """Seven of twelve heads or more follow a relation."""
    count = random.Random(seed).randint(7, 12)
    reader = planted.encoder(planted.model(followers=count, seed=seed))
    return outcomes(reader, planted.corpus(80, seed=seed))


_FOUND = (
    *(
        f"a-head-finds-{what}"
        for what in (
            "objects", "determiners", "nouns-of-prepositions", "possessors", "passive-auxiliaries",
            "clausal-complements", "markers", "particles",
        )
    ),
    "heads-attend-to-objects", "heads-find-subjects", "heads-find-adverbial-modifiers",
    "heads-find-adjectives",
)  # fmt: skip

NULLS = (
    Null("random model (relations)", random_syntax, dict.fromkeys(_FOUND, HOLDS)),
    Null("shuffled trees", shuffled_trees, dict.fromkeys(_FOUND, HOLDS)),
    Null("a head finds all heads", one_head_parses, {"no-head-finds-all-relations": HOLDS}),
    Null("most heads follow", all_heads_follow, {"most-heads-follow-no-relation": HOLDS}),
)
