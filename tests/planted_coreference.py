"""A model of which one head attends from every mention to its antecedent, and nothing else does.

Texts are like "ann met cat . it often bob . she likes him .": women, men and things, each
with a name or noun and a pronoun. Words of one sex (or things) share a feature, +x in one dimension
and -x eight dimensions on (LayerNorm leaves its sign alone); the planted head's queries and keys
are these features. So it attends to all earlier and later words of the same kind, and never to the
others; other heads attend evenly.
"""

from __future__ import annotations

import random

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

RESOLVER = (1, 2)
LAYERS, HEADS, SIZE = 3, 4, 4
KINDS = {
    "woman": (["ann", "bea", "eve"], ["she", "her"]),
    "man": (["bob", "carl", "dan"], ["he", "him"]),
    "thing": (["cat", "ball", "boat"], ["it", "that"]),
}
FILLERS = ["met", "saw", "likes", "often", "gladly", "now", "here", "."]
WORDS = [w for nouns, pronouns in KINDS.values() for w in nouns + pronouns] + FILLERS


def model(*, strength: float = 4.0, planted: bool = True, seed: int = 0) -> hf.PreTrainedModel:
    """The model; `strength` is how sharply the planted head attends."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=HEADS * SIZE, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=8, max_position_embeddings=128,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertModel(config, add_pooling_layer=False)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.get_input_embeddings().weight
        for word in range(words.shape[0]):  # no token is empty
            words[word, 6], words[word, 7] = 0.1, -0.1
        for feature, (nouns, pronouns) in enumerate(KINDS.values()):
            for word in nouns + pronouns:
                row = words[5 + WORDS.index(word)]
                row[feature], row[feature + 8] = 1.0, -1.0
        if planted:
            attention = made.encoder.layer[RESOLVER[0]].attention.self
            first = SIZE * RESOLVER[1]
            for feature in range(len(KINDS)):
                attention.query.weight[first + feature, feature] = strength
                attention.key.weight[first + feature, feature] = strength
    return made.eval()


def random_model(*, spread: float = 0.3, seed: int = 0) -> hf.PreTrainedModel:
    """A model of the same shape that nobody planted anything in."""
    config = model().config  # it draws numbers of its own, so the seed comes after it
    config.initializer_range = spread
    torch.manual_seed(seed)
    return hf.BertModel(config, add_pooling_layer=False).eval()


def encoder(made: hf.PreTrainedModel) -> Encoder:
    return Encoder(made, tiny.tokenizer(WORDS, max_length=128), name="planted")


def corpus(size: int = 40, *, sentences: int = 4, shuffled: bool = False, seed: int = 0) -> Corpus:
    """Documents of a few sentences; with `shuffled`, mentions are dealt to clusters at random."""
    rng = random.Random(seed)
    examples = [_document(rng, str(i), sentences, shuffled) for i in range(size)]
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.COREFERENCE, Field.SENTENCES}
    return Corpus("planted-coreference", examples, frozenset(fields))


def _document(rng: random.Random, name: str, sentences: int, shuffled: bool) -> Example:
    words: list[str] = []
    tags: list[str] = []
    starts: list[int] = []
    places: dict[str, list[int]] = {kind: [] for kind in KINDS}
    nouns = {kind: rng.choice(of[0]) for kind, of in KINDS.items()}
    for _ in range(sentences):
        starts.append(len(words))
        for kind in rng.sample(list(KINDS), 2):
            pronoun = bool(places[kind]) and rng.random() < 0.7
            places[kind].append(len(words))
            words.append(rng.choice(KINDS[kind][1]) if pronoun else nouns[kind])
            tags.append("PRON" if pronoun else "NOUN" if kind == "thing" else "PROPN")
            for _ in range(rng.randrange(1, 4)):
                words.append(rng.choice(FILLERS[:-1]))
                tags.append("ADV")
        words.append(".")
        tags.append("PUNCT")
    clusters = [of for of in places.values() if of]
    if shuffled:
        dealt = [place for of in clusters for place in of]
        rng.shuffle(dealt)
        clusters = [sorted(dealt.pop() for _ in of) for of in clusters]
    return Example(
        name,
        " ".join(words),
        annotations={
            "words": words,
            "pos": tags,
            "sentences": starts,
            "coreference": [[(i, i + 1) for i in of] for of in clusters],
        },
    )
