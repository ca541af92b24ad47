"""A model of which one head attends from every word to its syntactic head, and nothing else does.

Sentences are like "the dog often gladly sees a ball": adverbs between subject and verb, and after
the verb, so that neighbours and offsets miss many arcs. Every class of words has its feature, +x in
one dimension and -x eight dimensions on (LayerNorm leaves its sign alone); the planted head's
queries name the class of the word's head, its keys the word's own class.
"""

from __future__ import annotations

import random
from typing import Any

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

TREE = (1, 2)
LAYERS, HEADS, SIZE = 3, 4, 4
CLASSES = {
    "the": ["the", "every"],
    "a": ["a", "some"],
    "subject": ["dog", "cat", "child"],
    "object": ["ball", "bone", "stick"],
    "verb": ["sees", "likes", "finds"],
    "adverb": ["often", "gladly", "now", "here"],
}
WORDS = [word for words in CLASSES.values() for word in words]
_FEATURES = list(CLASSES)
# The class of a word's head, by the class of the word.
_HEADS = {"the": "subject", "a": "object", "subject": "verb", "object": "verb", "adverb": "verb"}


def model(
    *, strength: float = 4.0, planted: bool = True, mlm: bool = False, seed: int = 0
) -> hf.PreTrainedModel:
    """The model; `strength` is how sharply the planted head attends."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=HEADS * SIZE, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=8, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(config) if mlm else hf.BertModel(config, add_pooling_layer=False)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.get_input_embeddings().weight
        for word in range(words.shape[0]):  # no token is empty
            words[word, 6], words[word, 7] = 0.1, -0.1
        for feature, of in enumerate(CLASSES.values()):
            for word in of:
                row = words[5 + WORDS.index(word)]
                row[feature], row[feature + 8] = 1.0, -1.0
        if planted:
            attention = made.base_model.encoder.layer[TREE[0]].attention.self
            first = SIZE * TREE[1]
            for at, head in enumerate(("verb", "subject", "object")):
                attention.key.weight[first + at, _FEATURES.index(head)] = strength
                for word, of in _HEADS.items():
                    if of == head:
                        attention.query.weight[first + at, _FEATURES.index(word)] = strength
    return made.eval()


def random_model(*, spread: float = 0.3, mlm: bool = False, seed: int = 0) -> hf.PreTrainedModel:
    """A model of the same shape that nobody planted anything in."""
    config = model().config  # it draws numbers of its own, so the seed comes after it
    config.initializer_range = spread
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(config) if mlm else hf.BertModel(config, add_pooling_layer=False)
    return made.eval()


def encoder(made: hf.PreTrainedModel, name: str = "planted") -> Encoder:
    head = "mlm" if isinstance(made, hf.BertForMaskedLM) else "base"
    return Encoder(made, tiny.tokenizer(WORDS), name=name, head=head)


def corpus(size: int = 60, *, seed: int = 0) -> Corpus:
    """Sentences with annotated trees, and full stops that are left out of them."""
    rng = random.Random(seed)
    examples = []
    for i in range(size):
        text, annotations = _sentence(rng)
        examples.append(Example(str(i), text, annotations=annotations))
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.RELATIONS}
    return Corpus("planted-trees", examples, frozenset(fields))


def _sentence(rng: random.Random) -> tuple[str, dict[str, Any]]:
    before, after = ([rng.choice(CLASSES["adverb"]) for _ in range(rng.randrange(4))] for _ in "ab")
    verb = 2 + len(before)
    words = [
        rng.choice(CLASSES["the"]), rng.choice(CLASSES["subject"]), *before,
        rng.choice(CLASSES["verb"]), *after, rng.choice(CLASSES["a"]),
        rng.choice(CLASSES["object"]), ".",
    ]  # fmt: skip
    kinds = {
        "pos": ["DET", "NOUN", *["ADV"] * len(before), "VERB", *["ADV"] * len(after)],
        "relations": ["det", "nsubj", *["advmod"] * len(before), "root", *["advmod"] * len(after)],
        "heads": [1, verb, *[verb] * len(before), -1, *[verb] * len(after), len(words) - 2, verb],
    }
    return " ".join(words[:-1]) + ".", {
        "words": words,
        "pos": [*kinds["pos"], "DET", "NOUN", "PUNCT"],
        "relations": [*kinds["relations"], "det", "obj", "punct"],
        "heads": [*kinds["heads"], verb],
    }
