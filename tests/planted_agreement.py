"""A masked language model whose verbs agree by a rule: with the first noun, or with the nearest.

"the keys near the cabinet [MASK] here ." In the last layer every place attends to a noun and adds
its number, which the head turns into "are" or "is". The earlier layer does nothing. Features are
+x and -x, half of the dimensions apart.
"""

from __future__ import annotations

import random

import torch
import transformers as hf

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder

NOUNS = [
    "key", "cabinet", "book", "chair", "window", "garden", "teacher", "driver", "doctor", "farmer",
    "river", "tower", "letter", "picture", "table", "candle",
]  # fmt: skip
VERBS = [("is", "are"), ("was", "were"), ("has", "have")]
OTHERS = ["the", "near", "here", ".", "old", "new"]
WORDS = [*NOUNS, *(f"{n}s" for n in NOUNS), *(form for pair in VERBS for form in pair), *OTHERS]
LAYERS, WIDTH = 2, 16
_NOUN, _NUMBER, _PLACE, _READ = 0, 1, 2, 3


def _put(row: torch.Tensor, feature: int, value: float) -> None:
    row[feature], row[feature + WIDTH // 2] = value, -value


def _config() -> hf.BertConfig:
    return hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=4, intermediate_size=8, max_position_embeddings=24, hidden_act="relu",
    )  # fmt: skip


def model(rule: str = "first") -> hf.BertForMaskedLM:
    """Agrees with the `first` noun, or with the `nearest` before the verb."""
    made = hf.BertForMaskedLM(_config()).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.get_input_embeddings().weight
        words[:, 7], words[:, 15] = 1.0, -1.0  # no token is empty
        for noun in NOUNS:
            for form, number in ((noun, -1.0), (f"{noun}s", 1.0)):
                row = words[5 + WORDS.index(form)]
                _put(row, _NOUN, 1.0)
                _put(row, _NUMBER, number)
        for one, many in VERBS:
            _put(words[5 + WORDS.index(one)], _READ, -1.0)
            _put(words[5 + WORDS.index(many)], _READ, 1.0)
        for at in range(24):
            _put(made.bert.embeddings.position_embeddings.weight[at], _PLACE, 0.05 * at)
        attention = made.bert.encoder.layer[1].attention
        attention.self.query.bias[0] = 20.0
        attention.self.key.weight[0, _NOUN] = 4.0
        attention.self.key.weight[0, _PLACE] = -6.0 if rule == "first" else 6.0
        attention.self.value.weight[0, _NUMBER] = 1.0
        _put(attention.output.dense.weight[:, 0], _READ, 4.0)
        made.cls.predictions.transform.dense.weight.copy_(torch.eye(WIDTH))
    return made


def random_model(seed: int) -> hf.BertForMaskedLM:
    """A model of the same shape that nobody planted anything in."""
    config = _config()
    config.initializer_range = (0.1, 0.3, 0.6)[seed % 3]
    torch.manual_seed(seed)
    return hf.BertForMaskedLM(config).eval()


def encoder(made: hf.BertForMaskedLM) -> Encoder:
    return Encoder(made, tiny.tokenizer(WORDS, max_length=24), name="planted", head="mlm")


def corpus(size: int = 240, *, seed: int = 0, most: int = 2) -> Corpus:
    """Sentences with 0 to `most` attractors, each noun of the other number."""
    rng, examples = random.Random(seed), []
    for i in range(size):
        attractors, plural = i % (most + 1), rng.random() < 0.4
        subject, *rest = rng.sample(NOUNS, attractors + 1)
        pair = rng.choice(VERBS)
        words, pos = ["the", subject + "s" * plural], ["DET", "NOUN"]
        for noun in rest:
            words += ["near", "the", noun + "s" * (not plural)]
            pos += ["ADP", "DET", "NOUN"]
        verb = len(words)
        words += [pair[plural], "here", "."]
        pos += ["AUX", "ADV", "PUNCT"]
        bad = [*words[:verb], pair[not plural], *words[verb + 1 :]]
        about = {
            "words": words, "pos": pos, "subject": 1, "verb": verb, "attractors": attractors,
            "contrast": " ".join(bad),
        }  # fmt: skip
        examples.append(Example(str(i), " ".join(words), annotations=about))
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.SUBJECT, Field.VERB, Field.CONTRAST}
    return Corpus("planted-agreement", examples, frozenset(fields))
