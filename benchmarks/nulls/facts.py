"""Nulls of facts: random models, which know none, asked in wordings, negated and misprimed."""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch
import transformers as hf

import made_facts
import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder
from bertology.studies.cloze.facts import Facts
from nulls import FAILS, HOLDS, Null, judged

_NAMES = [f"name{i}" for i in range(60)]
_OBJECTS = [f"thing{i}" for i in range(12)]
_WORDS = [*_NAMES, *_OBJECTS, "likes", "has", "with", "a", "not", "often", ".", "?"]
_WORDINGS = ("[X] has a [Y] .", "[X] often likes a [Y] .", "a [Y] likes [X] .")


def random_facts(seed: int, *, versions: bool) -> Corpus:
    """Facts that nobody could know, some objects more frequent than others."""
    rng, examples = random.Random(seed), list[Example]()
    for i in range(200):
        name = " ".join(rng.sample(_NAMES, 2))
        answer = _OBJECTS[min(rng.randrange(12), rng.randrange(12))]
        about = {"answer": [answer], "group": f"r{i % 4}", "entity": name}
        text = f"{name} has a [MASK] ."
        if not versions:
            examples.append(Example(str(i), text, annotations={**about, "wordings": _WORDINGS}))
            continue
        prime = rng.choice(_OBJECTS)
        given = {"plain": text, "negated": f"{name} has not a [MASK] ."}
        for version, said in {**given, "misprimed": f"{prime} ? {text}"}.items():
            kept = {"item": str(i), "condition": version}
            kept |= {"prime": prime} if version == "misprimed" else {}
            examples.append(Example(f"{i}-{version}", said, annotations={**about, **kept}))
    more = {Field.ITEM, Field.CONDITION} if versions else {Field.WORDINGS}
    fields = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ENTITY, *more})
    return Corpus("random facts", examples, fields)


def random_masked_lm(seed: int) -> Encoder:
    torch.manual_seed(seed)
    config = hf.BertConfig(
        vocab_size=5 + len(_WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=32,
        initializer_range=(0.02, 0.1, 0.3)[seed % 3],
    )  # fmt: skip
    made = hf.BertForMaskedLM(config).eval()
    return Encoder(made, tiny.tokenizer(_WORDS, max_length=32), name="random", head="mlm")


def in_wordings(seed: int) -> Mapping[str, str]:
    facts = random_facts(seed, versions=False)
    return judged("facts", planted_links.ask(Facts(seed=seed), random_masked_lm(seed), facts))


def in_versions(seed: int) -> Mapping[str, str]:
    facts = random_facts(seed, versions=True)
    return judged("facts", planted_links.ask(Facts(seed=seed), random_masked_lm(seed), facts))


def one_answer(seed: int) -> Mapping[str, str]:
    return judged("facts", made_facts.one_answer(seed))


def templates_differ(seed: int) -> Mapping[str, str]:
    return judged("facts", made_facts.templates_differ(seed))


_KNOWN = "facts-beyond-frequency"
NULLS = (
    Null("one answer for every subject (facts)", one_answer, {_KNOWN: HOLDS}),
    Null("templates that work or do not (facts)", templates_differ, {_KNOWN: HOLDS | FAILS}),
    Null(
        "random model (facts in wordings)",
        in_wordings,
        dict.fromkeys((_KNOWN, "wordings-get-different-answers"), HOLDS),
    ),
    Null(
        "random model (negated and misprimed facts)",
        in_versions,
        dict.fromkeys((_KNOWN, "negation-leaves-the-answer", "misprimed-by-a-word"), HOLDS),
    ),
)
