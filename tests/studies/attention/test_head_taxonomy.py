"""Head taxonomy: planted roles are found, and no others; random models bear out no claim."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from scipy.spatial.distance import jensenshannon

import bertology as bt
import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.attention.head_taxonomy import HeadTaxonomy
from result_conformance import ResultConformance, claims_of

# Positions are one-hot, so heads that attend by place match queries with keys; marks of single
# tokens are in dimensions of their own, so heads that attend to [CLS], [SEP] or a full stop match
# these.


WORDS = ["the", "cat", "dog", "sees", "a", "bird", "and", "runs", "."]
POSITIONS, LAYERS, HEADS = 32, 4, 4
OFFSETS = {"previous": -1, "next": 1, "self": 0}
MARKS = {"cls": (2, 40), "sep": (3, 50), "punctuation": (5 + WORDS.index("."), 60)}
ROLES = {
    (0, 0): "previous",
    (0, 3): "next",
    (1, 1): "self",
    (1, 2): "cls",
    (2, 0): "sep",
    (3, 3): "punctuation",
}
"""All other heads are broad."""


def corpus(size: int = 40, *, seed: int = 0) -> Corpus:
    chance = random.Random(seed)

    def text() -> str:
        return " ".join(chance.choice(WORDS[:-1]) for _ in range(chance.randint(8, 16))) + " ."

    examples = [Example(str(i), text()) for i in range(size)]
    return Corpus("made up", examples, frozenset({Field.TEXT}))


def planted(roles: Mapping[tuple[int, int], str] = ROLES) -> Encoder:
    size = POSITIONS * HEADS
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=size, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=8, max_position_embeddings=POSITIONS,
    )  # fmt: skip
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        model.embeddings.position_embeddings.weight[:, :POSITIONS] = torch.eye(POSITIONS)
        for token, mark in MARKS.values():
            model.embeddings.word_embeddings.weight[token, mark] = 2.0
        for (layer, head), role in roles.items():
            attention = model.encoder.layer[layer].attention.self
            first = POSITIONS * head
            rows = slice(first, first + POSITIONS)
            if role in OFFSETS:
                attention.query.weight[rows, :POSITIONS] = 4 * torch.eye(POSITIONS)
                # A key says at which position it is looked for.
                shifted = torch.eye(POSITIONS).roll(-OFFSETS[role], 0)
                attention.key.weight[rows, :POSITIONS] = 4 * shifted
            else:
                attention.query.bias[first] = 20.0
                attention.key.weight[first, MARKS[role][1]] = 20.0
    return Encoder(model, tiny.tokenizer(WORDS, max_length=POSITIONS), name="planted")


CLARK = {"cls": "[CLS]", "sep": "[SEP]"}
RAGANATO = {"self": "itself", "sep": "end of sentence", "punctuation": "end of sentence"}


def ask(encoder: Encoder, of: Corpus, **how: Any) -> Result:
    found: Result = planted_links.ask(HeadTaxonomy(resamples=200, **how), encoder, of)
    return found


def fresh(seed: int) -> Encoder:
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=32, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=32, max_position_embeddings=POSITIONS,
        initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    return Encoder(model, tiny.tokenizer(WORDS, max_length=POSITIONS), name="random")


class TestResult(ResultConformance):
    measures = frozenset(
        {"class-clark", "class-raganato", "class-map-type", "clark-sep", "layer-within"}
    )

    @staticmethod
    def make() -> Result:
        return ask(planted(), corpus(12))


def test_planted_roles_are_found_and_no_others() -> None:
    heads = ask(planted(), corpus()).table("heads").set_index(["layer", "head"])
    for place, row in heads.iterrows():
        role = ROLES.get(place)  # type: ignore[call-overload]
        clark = "broad" if role is None else CLARK.get(role, role)
        assert (row["clark"], row["clark_sure"]) == (clark, True), place
        usual = role if role in ("previous", "next") else "mixed"
        raganato = RAGANATO.get(role or "", usual)
        # Evenly spread attention has no darkest cell: which one comes first is rounding.
        if role is not None:
            assert (row["raganato"], row["raganato_sure"]) == (raganato, True), place
    types = heads["map_type"]
    assert types.loc[(0, 0)] == types.loc[(0, 3)] == types.loc[(1, 1)] == "diagonal"
    assert types.loc[(1, 2)] == types.loc[(2, 0)] == types.loc[(3, 3)] == "vertical"


def test_heads_of_one_role_lie_together() -> None:
    roles = {(layer, 0): "sep" for layer in range(LAYERS)}
    roles |= {(layer, 1): "previous" for layer in range(LAYERS)}
    found = ask(planted(roles), corpus(10))
    heads = found.table("heads").set_index(["layer", "head"])
    places = {place: heads.loc[place, ["x", "y"]].to_numpy(float) for place in roles}
    apart = np.linalg.norm(places[0, 0] - places[0, 1])
    for layer in range(1, LAYERS):
        assert np.linalg.norm(places[layer, 0] - places[0, 0]) < 0.05 * apart
        assert np.linalg.norm(places[layer, 1] - places[0, 1]) < 0.05 * apart
    # Each layer has the same heads: none is nearer to its own.
    assert claims_of(found)["primer-attention.heads-of-a-layer-are-alike"] != "holds"


def test_layers_whose_heads_do_the_same_are_alike() -> None:
    """Heads of a layer attend to the same; heads of two layers are equally broad."""
    roles = {}
    for layer, role in enumerate(("previous", "next", "sep", "cls")):
        roles |= {(layer, head): role for head in range(HEADS)}
    study = HeadTaxonomy(resamples=200)
    part = study.measure(planted(roles), corpus(30), "examples-000000-000030", context())
    part["share"][:, list(part["class"].to_numpy()).index("entropy")] = 0.5
    found = study.conclude({"examples-000000-000030": part}, provenance())
    near = found.evidence()["layer_nearness"]
    assert near.value > 0.8
    assert claims_of(found)["primer-attention.heads-of-a-layer-are-alike"] == "holds"


def context() -> Any:
    from bertology.studies.study import Context

    return Context()


def provenance() -> Any:
    from bertology.results.provenance import Provenance

    return Provenance("head-taxonomy", 1, {}, {"name": "planted", "fingerprint": "0"})


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_said_of_a_random_model(seed: int) -> None:
    found = ask(fresh(seed), corpus(40, seed=seed))
    assert "holds" not in claims_of(found).values()


def test_it_equals_plain_transformers_and_scipy() -> None:
    encoder, texts = fresh(7), corpus(12, seed=3)
    found = ask(encoder, texts)
    plain = hf.BertModel(encoder.model.config, add_pooling_layer=False).eval()
    plain.load_state_dict(encoder.model.state_dict())
    plain.set_attn_implementation("eager")
    distances, shares, hits = [], [], []
    for text in texts.texts:
        inputs = encoder.tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            maps = torch.stack(plain(**inputs, output_attentions=True).attentions)[:, 0].numpy()
        flat = maps.reshape(LAYERS * HEADS, *maps.shape[2:])
        distances.append([[(jensenshannon(a, b, axis=-1) ** 2).mean() for a in flat] for b in flat])
        size, ids = flat.shape[-1], inputs["input_ids"][0].numpy()
        rows, dark = np.arange(size), flat.argmax(-1)
        near = {k: [r for r in rows if 0 <= r + k < size] for k in (-1, 1, 0)}
        signs = ids == 5 + WORDS.index(".")
        entropy = -(flat * np.log(flat)).sum(-1).mean(-1) / np.log(size)
        shares.append(
            [
                *(flat[:, own, np.array(own) + k].mean(-1) for k, own in near.items()),
                flat[..., 0].mean(-1),
                flat[..., -1].mean(-1),
                flat[..., signs].sum(-1).mean(-1),
                entropy,
                flat[..., signs | (rows == 0) | (rows == size - 1)].sum(-1).mean(-1),
            ]
        )
        goals = {k: (dark[:, own] == np.array(own) + k).mean(-1) for k, own in near.items()}
        hits.append([goals[0], goals[-1], goals[1], (dark >= size - 2).mean(-1)])
    wanted = np.mean(distances, axis=0)
    assert found.arrays["distance"].to_numpy() == pytest.approx(wanted, abs=2e-6)
    table = found.table("shares")
    for name, values in (("clark", shares), ("raganato", hits)):
        got = table[table["taxonomy"] == name]["share"].to_numpy().reshape(-1, LAYERS * HEADS)
        assert got == pytest.approx(np.mean(values, axis=0), abs=1e-5)
    layers = found.table("layers")
    blocks = wanted.reshape(LAYERS, HEADS, LAYERS, HEADS).sum((1, 3))
    assert layers["within"].to_numpy() == pytest.approx(blocks.diagonal() / 12, abs=2e-6)


def test_batches_and_padding_change_nothing(tmp_path: Path) -> None:
    encoder, texts = planted(), corpus(9)
    found = [
        bt.run(
            "head-taxonomy", encoder, corpus=texts, store=str(tmp_path / str(size)),
            batch_tokens=size, progress=False,
        )
        for size in (20, 4096)
    ]  # fmt: skip
    one, two = (f.table("shares")["share"].to_numpy() for f in found)
    assert one == pytest.approx(two, abs=1e-6)
    assert found[0].arrays["distance"].to_numpy() == pytest.approx(
        found[1].arrays["distance"].to_numpy(), abs=2e-6
    )


def test_a_text_of_one_word_has_neighbours_to_tell_of() -> None:
    short = Corpus.of_texts(["cat", "dog", "."])
    assert ask(planted(), short).table("heads").shape == (LAYERS * HEADS, 10)
