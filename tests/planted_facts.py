"""A masked language model that knows a table of facts, learnt by nobody: its weights are set.

"dante comes from [MASK] ." In the first layer every place attends to the words that name a subject
or a relation and adds what they are. In the second layer each known pair of subject and relation
has a unit of the MLP, which adds the object. So the answer is there after the second layer and not
before, only for pairs in the table, and not where the subject is masked. `lean` makes one object
likelier everywhere: what a template's prior should take away. Features are +x and -x, half of the
dimensions apart, so that LayerNorm leaves their signs alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import transformers as hf

import tiny
from bertology.model.encoder import Encoder

SUBJECTS = ["dante", "goethe", "hugo", "woolf"]
RELATIONS = ["from", "writes"]
OBJECTS = ["florence", "weimar", "paris", "london", "italian", "german", "french", "english"]
WORDS = [*SUBJECTS, *RELATIONS, *OBJECTS, "comes", "in", "the", ".", "no", "##body"]
FACTS = {
    (subject, relation): OBJECTS[4 * j + i]
    for j, relation in enumerate(RELATIONS)
    for i, subject in enumerate(SUBJECTS)
}
LAYERS, WIDTH = 2, 64
_CONTENT, _FIRST = 20, 24  # the feature of words to be read, and the first of what was read
_OBJECT = 8


def _put(row: torch.Tensor, feature: int, value: float = 1.0) -> None:
    row[feature], row[feature + WIDTH // 2] = value, -value


def model(
    facts: Mapping[tuple[str, str], str] = FACTS, *, lean: str | None = None
) -> hf.BertForMaskedLM:
    """Features 0 to 5: subjects and relations; 8 to 15: objects; from 24: what was read."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=4, intermediate_size=16, max_position_embeddings=24, hidden_act="relu",
    )  # fmt: skip
    made = hf.BertForMaskedLM(config).eval()
    named = [*SUBJECTS, *RELATIONS]
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        words = made.get_input_embeddings().weight
        for i, word in enumerate(named):
            _put(words[5 + WORDS.index(word)], i)
            _put(words[5 + WORDS.index(word)], _CONTENT)
        for i, word in enumerate(OBJECTS):
            _put(words[5 + WORDS.index(word)], _OBJECT + i)
        reading, knowing = made.bert.encoder.layer
        reading.attention.self.query.bias[0] = 8.0
        reading.attention.self.key.weight[0, _CONTENT] = 8.0
        for i in range(len(named)):
            reading.attention.self.value.weight[i, i] = 1.0
            _put(reading.attention.output.dense.weight[:, i], _FIRST + i, 4.0)
        for unit, ((subject, relation), answer) in enumerate(facts.items()):
            for word in (subject, relation):
                knowing.intermediate.dense.weight[unit, _FIRST + named.index(word)] = 1.0
            knowing.intermediate.dense.bias[unit] = -6.0
            _put(knowing.output.dense.weight[:, unit], _OBJECT + OBJECTS.index(answer), 6.0)
        made.cls.predictions.transform.dense.weight.copy_(torch.eye(WIDTH))
        if lean is not None:
            made.cls.predictions.bias[5 + WORDS.index(lean)] = 20.0
    return made


def encoder(made: hf.BertForMaskedLM) -> Encoder:
    return Encoder(made, tiny.tokenizer(WORDS, max_length=24), name="planted", head="mlm")


def text(subject: str, relation: str) -> str:
    return f"{subject} comes {relation} {{mask}} ."
