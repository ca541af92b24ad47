"""Heads that are known to look at [SEP], at nouns, and from a verb at its subject.

Sentences are like "the dog often gladly sees a ball": subject and verb stand up to four adverbs
apart, so that no fixed offset finds one from the other. Nothing is written to the stream, every
feature is +x and -x in two dimensions (LayerNorm leaves its sign alone), and whatever is not
planted attends evenly.
"""

from __future__ import annotations

import random
from typing import Any

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.studies.study import Context, Study

LINK, NOUNS, SEPARATOR = (0, 2), (1, 3), (3, 1)
DETERMINERS, SUBJECTS, OBJECTS = ["the", "a"], ["dog", "cat"], ["ball", "bone"]
VERBS, ADVERBS = ["sees", "likes"], ["often", "gladly", "now"]
WORDS = [*DETERMINERS, *SUBJECTS, *OBJECTS, *VERBS, *ADVERBS, "."]
LAYERS, HEADS, SIZE = 4, 4, 4
_NOUN, _SUBJECT, _OBJECT, _VERB, _END = range(
    5
)  # features; each also has its negative 8 dimensions on
_SEP_ID = 3


def model(*heads: tuple[int, int], seed: int = 0) -> hf.BertModel:
    """A model with these of the three heads planted."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=HEADS * SIZE, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=8, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.embeddings.word_embeddings.weight
        # Nouns of both kinds have two features, so that LayerNorm makes none of them louder.
        nouns = SUBJECTS + OBJECTS
        written = ((_NOUN, nouns), (_SUBJECT, SUBJECTS), (_OBJECT, OBJECTS), (_VERB, VERBS))
        for feature, of in written:
            for word in of:
                _write(words[5 + WORDS.index(word)], feature)
        _write(words[_SEP_ID], _END)
        for token in range(words.shape[0]):  # no token is empty
            words[token, 6], words[token, 7] = 0.1, -0.1
        if LINK in heads:
            _look(made, LINK, towards=_SUBJECT, by=_VERB)
        if NOUNS in heads:
            _look(made, NOUNS, towards=_NOUN)
        if SEPARATOR in heads:
            _look(made, SEPARATOR, towards=_END)
    return made


def _write(row: torch.Tensor, feature: int) -> None:
    row[feature], row[feature + 8] = 1.0, -1.0


def _look(made: Any, place: tuple[int, int], *, towards: int, by: int | None = None) -> None:
    """Attention to what has a feature, of all tokens or only of those that have another."""
    layer, first = made.encoder.layer[place[0]].attention.self, SIZE * place[1]
    layer.key.weight[first, towards] = 4.0
    if by is None:
        layer.query.bias[first] = 4.0
    else:
        layer.query.weight[first, by] = 4.0


def random_model(*, spread: float = 0.02, seed: int = 0) -> hf.BertModel:
    """A model of the same shape that nobody planted anything in."""
    config = model().config  # it draws numbers of its own, so the seed comes after it
    config.initializer_range = spread
    torch.manual_seed(seed)
    return hf.BertModel(config, add_pooling_layer=False).eval()


def tokenizer(max_length: int = 64) -> Any:
    return tiny.tokenizer(WORDS, max_length=max_length)


def corpus(size: int = 80, *, pairs: bool = False, seed: int = 0) -> Corpus:
    """Sentences with gold annotation; as pairs, without any."""
    rng = random.Random(seed)
    if pairs:
        examples = [
            Example(str(i), _sentence(rng)[0], text_b=_sentence(rng)[0]) for i in range(size)
        ]
        return Corpus("planted-pairs", examples, frozenset({Field.TEXT, Field.TEXT_B}))
    examples = []
    for i in range(size):
        text, annotations = _sentence(rng)
        examples.append(Example(str(i), text, annotations=annotations))
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.RELATIONS}
    return Corpus("planted-links", examples, frozenset(fields))


def _sentence(rng: random.Random) -> tuple[str, dict[str, Any]]:
    between = [rng.choice(ADVERBS) for _ in range(rng.randrange(5))]
    words = [rng.choice(DETERMINERS), rng.choice(SUBJECTS), *between, rng.choice(VERBS)]
    verb = len(words) - 1
    words += [rng.choice(DETERMINERS), rng.choice(OBJECTS), "."]
    return " ".join(words[:-1]) + ".", {
        "words": words,
        "pos": ["DET", "NOUN", *["ADV"] * len(between), "VERB", "DET", "NOUN", "PUNCT"],
        "heads": [1, verb, *[verb] * len(between), -1, verb + 2, verb, verb],
        "relations": ["det", "nsubj", *["advmod"] * len(between), "root", "det", "obj", "punct"],
    }


def ask(
    study: Study,
    encoder: Encoder,
    corpus: Corpus,
    *,
    copies: dict[str, Any] | None = None,
    **others: Encoder,
) -> Any:
    """Measured and concluded here and now: a store would draw every figure as well.

    `copies` keeps what was measured of shuffled weights, for tests where they are the same noise.
    """
    study.check(encoder, corpus)
    kept = {} if copies is None else copies
    measured = {}
    for part in study.parts(encoder.shape, corpus):
        found = kept.get(part)
        if found is None:
            found = study.measure(encoder, corpus, part, Context(others=others))
        if "shuffled" in part:
            kept[part] = found
        measured[part] = found
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in type(study).__name__)
    about = {"name": encoder.name, "fingerprint": encoder.fingerprint}
    return study.conclude(
        measured,
        Provenance(
            study=name.strip("-"),
            study_version=study.version,
            parameters=study.parameters,
            model=about,
            corpus={"name": corpus.name, "fingerprint": corpus.fingerprint},
        ),
    )
