"""Nulls of languages: noise, random models, and sentences whose items or links were dealt anew."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest
import test_language_space as space
import test_word_alignment as words

import planted_links
from bertology.results.known_claims import load_claims
from bertology.studies.languages.language_space import LanguageSpace
from bertology.studies.languages.word_alignment import WordAlignment
from nulls import HOLDS, Null, judged

_SOME = ("ar", "de", "en", "fr", "ja", "ru")


def noisy_sentences(seed: int) -> Mapping[str, str]:
    """Sentences of which no layer knows anything."""
    with pytest.MonkeyPatch.context() as patch:
        found = space.ask(patch, planted=False, seed=seed, items=(20, 40, 60)[seed % 3])
    return judged("language-space", found)


def random_space(seed: int, *, dealt: bool) -> Mapping[str, str]:
    """A random model over sentences of the same words, or over items that were dealt out anew.

    The same words are other pieces in each language, so that nothing is shared.
    """
    texts = space.corpus(_SOME, 30, seed=seed)
    texts = space.dealt(texts, seed) if dealt else texts
    study = LanguageSpace(resamples=200, seed=seed)
    found = planted_links.ask(study, space.encoder(_SOME, seed=seed), texts)
    return judged("language-space", found)


def renamed(seed: int) -> Mapping[str, str]:
    """Languages lie by kin, and then they are named anew."""
    named = np.random.default_rng([seed, 2]).permutation(len(space.CODES))
    with pytest.MonkeyPatch.context() as patch:
        kin = space.offsets
        patch.setattr(space, "offsets", lambda rng: kin(rng)[named])
        found = space.ask(patch, seed=seed, items=24)
    return judged("language-space", found)


def noisy_words(seed: int, *, planted: bool) -> Mapping[str, str]:
    """States that know nothing; or words that are known, and links to any word."""
    with pytest.MonkeyPatch.context() as patch:
        found = words.ask(patch, planted=planted, dealt=planted, seed=seed)
    return judged("word-alignment", found)


def random_alignment(seed: int) -> Mapping[str, str]:
    """A random model knows places, and no words of another language."""
    study = WordAlignment(resamples=200, copy_sentences=20, seed=seed)
    found = planted_links.ask(study, words.encoder(seed=seed), words.corpus(40, seed=seed))
    return judged("word-alignment", found)


# Of a model, also a random one, this is true: what has means loses them when they are taken off.
_SPACE = {
    claim.id.partition(".")[2]: HOLDS
    for claim in load_claims()
    if claim.study == "language-space" and claim.rule.quantity != "identity_fall"
}
_FALL = "centring-takes-identity-away"
_WORDS = {c.id.partition(".")[2]: HOLDS for c in load_claims() if c.study == "word-alignment"}
_ALIGNED = {name: of for name, of in _WORDS.items() if name != "offsets-translate-words"}
_TYPOLOGY = ("centroids-lie-by-family", "aware-of-typology")

NULLS = (
    # No language has a mean of its own there, so that centring takes nothing away.
    Null("noise in the place of sentences", noisy_sentences, {**_SPACE, _FALL: HOLDS}),
    Null("random model (languages)", partial(random_space, dealt=False), _SPACE),
    Null("items dealt out anew", partial(random_space, dealt=True), _SPACE),
    Null("languages named anew", renamed, dict.fromkeys(_TYPOLOGY, HOLDS)),
    Null("noise in the place of words", partial(noisy_words, planted=False), _WORDS),
    # A word's own translation is in its sentence, and so linked to it more often than others are:
    # that the offset leads there is true.
    Null("links dealt out anew (words)", partial(noisy_words, planted=True), _ALIGNED),
    Null("random model (alignment)", random_alignment, _WORDS),
)
