"""Nulls of malformed input: models that know nothing, whatever a broken text changes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import planted
import planted_agreement
import planted_links
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.studies.cloze.malformed_input import MalformedInput
from nulls import HOLDS, Null, judged
from nulls.facts import random_facts, random_masked_lm
from nulls.models import mini

# Without subjects and objects: no tagger is asked, and fewer kinds are easier to hold.
_KINDS = ("shuffled", "nearby", "reversed", "first-half", "few-words")
_PAIRS = 200


def _judged(encoder: Encoder, corpus: Corpus, seed: int) -> Mapping[str, str]:
    study = MalformedInput(seed=seed, kinds=_KINDS, resamples=500)
    return judged("malformed-input", planted_links.ask(study, encoder, corpus))


def random_blanks(seed: int) -> Mapping[str, str]:
    """A random model, which is much like a bag of words, and answers that nobody could know."""
    return _judged(random_masked_lm(seed), random_facts(seed, versions=False), seed)


def random_verbs(seed: int) -> Mapping[str, str]:
    """The same on minimal pairs, whose sentences are alike."""
    encoder = planted_agreement.encoder(planted_agreement.random_model(seed))
    return _judged(encoder, planted_agreement.corpus(_PAIRS, seed=seed), seed)


def exchanged_answers(seed: int) -> Mapping[str, str]:
    """A trained model and blanks whose answers belong to other texts: there is nothing to know."""
    facts = random_facts(seed, versions=False)
    words = ["king", "house", "water", "horse", "river", "town", "letter", "ship", "tree", "road"]
    rng, made = random.Random(seed), []
    for example in facts.examples[:_PAIRS]:
        text = f"The {rng.choice(words)} of the {rng.choice(words)} was near a [MASK]."
        answer = {**example.annotations, "answer": [rng.choice(words)]}
        made.append(replace(example, text=text, annotations=answer))
    return _judged(mini("mlm"), replace(facts, examples=made), seed)


def exchanged_labels(seed: int) -> Mapping[str, str]:
    """A classifier that reads one word, and labels that no text tells."""
    rng, texts = random.Random(seed), planted.corpus(_PAIRS, seed=seed)
    made = [replace(e, label=rng.randrange(2)) for e in texts]
    model = planted.model()
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    encoder = Encoder(model, planted.tokenizer(), head="classification", name="planted")
    return _judged(encoder, replace(texts, examples=made), seed)


_FALSE = dict.fromkeys(("malformed-input-leaves-predictions", "word-order-is-of-use"), HOLDS)

NULLS = (
    Null("random model (malformed blanks)", random_blanks, _FALSE),
    Null("random model (malformed verbs)", random_verbs, _FALSE),
    Null("answers of other texts (malformed)", exchanged_answers, _FALSE),
    Null("labels of other texts (malformed)", exchanged_labels, _FALSE),
)
