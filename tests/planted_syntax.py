"""A model of which three heads follow one syntactic relation each, and nothing else does.

Sentences are like "the big old dog often sees here a red ball": adjectives between determiners and
nouns, adverbs around the verb, so that no fixed offset finds a noun from its determiner, or a verb
from its subject. Every class of words has its feature, +x in one dimension and -x twelve dimensions
on (LayerNorm leaves its sign alone).
"""

from __future__ import annotations

import random
from typing import Any

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

LAYERS, HEADS, SIZE = 3, 4, 6
CLASSES = {
    "the": ["the", "every"],
    "a": ["a", "some"],
    "subject": ["dog", "cat", "child"],
    "object": ["ball", "bone", "stick"],
    "verb": ["sees", "likes", "finds"],
    "adverb": ["often", "gladly", "now", "here"],
    "adjective": ["big", "old", "red"],
}
WORDS = [word for words in CLASSES.values() for word in words]
_FEATURES = list(CLASSES)
PLANTED = {
    ("det", "to-head"): (0, 1),
    ("obj", "to-dependent"): (1, 2),
    ("nsubj", "to-head"): (2, 0),
}
"""By relation and direction, the head that follows it."""
_POINTS = {
    (0, 1): [("the", "subject"), ("a", "object")],
    (1, 2): [("verb", "object")],
    (2, 0): [("subject", "verb")],
}


def _config() -> hf.BertConfig:
    return hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=HEADS * SIZE, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=8, max_position_embeddings=64,
    )  # fmt: skip


def model(*, followers: int | None = None, seed: int = 0) -> hf.BertModel:
    """The model; what is not planted attends evenly.

    With `followers`, so many heads follow one of the three relations, which ones by the seed.
    """
    torch.manual_seed(seed)
    points = _POINTS
    if followers is not None:
        rng, places = random.Random(seed), [divmod(i, HEADS) for i in range(LAYERS * HEADS)]
        kinds = list(_POINTS.values())
        points = {at: rng.choice(kinds) for at in rng.sample(places, followers)}
    made = hf.BertModel(_config(), add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.get_input_embeddings().weight
        for row in words:  # no token is empty
            row[10], row[11] = 0.1, -0.1
        for feature, of in enumerate(CLASSES.values()):
            for word in of:
                row = words[5 + WORDS.index(word)]
                row[feature], row[feature + 12] = 1.0, -1.0
        for (layer, head), pairs in points.items():
            attention = made.encoder.layer[layer].attention.self
            for at, (source, target) in enumerate(pairs, start=SIZE * head):
                attention.query.weight[at, _FEATURES.index(source)] = 4.0
                attention.key.weight[at, _FEATURES.index(target)] = 4.0
            # Other words look at the first one: weights that are equal but for rounding have no
            # largest.
            attention.query.bias[SIZE * head + 3] = 1.0
            attention.key.weight[SIZE * head + 3, _FEATURES.index("the")] = 1.0
    return made


def random_model(*, spread: float = 0.3, seed: int = 0) -> hf.BertModel:
    """A model of the same shape that nobody planted anything in."""
    config = _config()
    config.initializer_range = spread
    torch.manual_seed(seed)
    return hf.BertModel(config, add_pooling_layer=False).eval()


def encoder(made: hf.BertModel, name: str = "planted") -> Encoder:
    return Encoder(made, tiny.tokenizer(WORDS), name=name)


def corpus(size: int = 60, *, seed: int = 0) -> Corpus:
    """Sentences with annotated trees."""
    rng = random.Random(seed)
    examples = []
    for i in range(size):
        text, annotations = _sentence(rng)
        examples.append(Example(str(i), text, annotations=annotations))
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.RELATIONS}
    return Corpus("planted-syntax", examples, frozenset(fields))


def _sentence(rng: random.Random) -> tuple[str, dict[str, Any]]:
    words: list[tuple[str, str, str]] = []  # class, relation, class of the head
    for determiner, noun, relation in (("the", "subject", "nsubj"), ("a", "object", "obj")):
        words.append((determiner, "det", noun))
        words += [("adjective", "amod", noun)] * rng.randrange(3)
        words.append((noun, relation, "verb"))
        words += [("adverb", "advmod", "verb")] * rng.randrange(3)
        if noun == "subject":
            words.append(("verb", "root", ""))
            words += [("adverb", "advmod", "verb")] * rng.randrange(3)
    kinds = [kind for kind, _, _ in words]
    tags = {"the": "DET", "a": "DET", "verb": "VERB", "adverb": "ADV", "adjective": "ADJ"}
    spelled = [rng.choice(CLASSES[kind]) for kind in kinds] + ["."]
    return " ".join(spelled[:-1]) + ".", {
        "words": spelled,
        "pos": [*(tags.get(kind, "NOUN") for kind in kinds), "PUNCT"],
        "heads": [
            *(kinds.index(head) if head else -1 for _, _, head in words),
            kinds.index("verb"),
        ],
        "relations": [*(relation for _, relation, _ in words), "punct"],
    }


def shuffled(given: Corpus, seed: int) -> Corpus:
    """The same sentences with the trees of others: links are given to words by lot."""
    rng, examples = random.Random(seed), []
    for one in given:
        count = len(one.get("words"))
        order = list(range(count))
        rng.shuffle(order)
        heads = [-1] * count
        relations = [""] * count
        for word, (head, relation) in enumerate(
            zip(one.get("heads"), one.get("relations"), strict=True)
        ):
            heads[order[word]] = -1 if head < 0 else order[head]
            relations[order[word]] = relation
        known = {**one.annotations, "heads": heads, "relations": relations}
        examples.append(Example(one.id, one.text, annotations=known))
    return Corpus(f"{given.name}-shuffled", examples, given.fields)
