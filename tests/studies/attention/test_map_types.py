"""Map types: planted heads get their type, a random model bears out no claim."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr
from numpy.typing import NDArray

import bertology as bt
import planted_links
import tiny
from bertology.annotated.map_types.examples import ExampleMap, add_kept, choose, kept_in, merge
from bertology.annotated.map_types.mistakes import bundled_mistakes
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.papers.dark_secrets.exhibits import example_table, examples_by_type
from bertology.results.formats import arrays_from_bytes, arrays_to_bytes
from bertology.results.result import Result
from bertology.results.rules import Relation, Rule
from bertology.studies.attention.map_types import HETEROGENEOUS, MapTypes, MapTypesResult
from result_conformance import ResultConformance

WORDS = ["the", "cat", "dog", "sees", "a", "bird", "and", "runs"]
SEP, MARK = 3, 60  # the token's id; the feature that only it has
POSITIONS = 32
PREVIOUS, STRIPE = (0, 1), (1, 0)


def corpus(size: int = 40, *, pairs: bool = False) -> Corpus:
    chance = random.Random(0)

    def text() -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.randint(7, 13)))

    examples = [Example(str(i), text(), text() if pairs else None) for i in range(size)]
    fields = {Field.TEXT, Field.TEXT_B} if pairs else {Field.TEXT}
    return Corpus("made up", examples, frozenset(fields))


def planted() -> Encoder:
    """Head 0.1 attends to the previous token, head 1.0 to [SEP], all others to everything."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=POSITIONS,
    )  # fmt: skip
    model = hf.BertModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        model.embeddings.position_embeddings.weight[:, :POSITIONS] = torch.eye(POSITIONS)
        model.embeddings.word_embeddings.weight[SEP, MARK] = 2.0
        layer, head = PREVIOUS
        attention, rows = (
            model.encoder.layer[layer].attention.self,
            slice(32 * head, 32 * head + 32),
        )
        attention.query.weight[rows, :POSITIONS] = 4 * torch.eye(32)
        # A key says at which position it is the previous one.
        attention.key.weight[rows, :POSITIONS] = 4 * torch.eye(32).roll(1, 0)
        layer, head = STRIPE
        attention = model.encoder.layer[layer].attention.self
        attention.query.bias[32 * head] = 20.0
        attention.key.weight[32 * head, MARK] = 20.0
    return Encoder(model, tiny.tokenizer(WORDS, max_length=POSITIONS), name="planted")


def found(of: Corpus) -> MapTypesResult:
    result = planted_links.ask(MapTypes(), planted(), of)
    assert isinstance(result, MapTypesResult)
    return result


def heads(result: MapTypesResult, kind: str) -> list[tuple[int, int]]:
    return [(k.layer, k.head) for k in kept_in(result.arrays) if MAP_TYPES[k.type] == kind]


def labels(axes: object) -> list[str]:
    return [t.get_text() for t in axes.get_xticklabels()]  # type: ignore[attr-defined]


def test_planted_maps_are_kept_with_their_tokens() -> None:
    of = corpus(12)
    result = found(of)
    assert heads(result, "diagonal")[0] == PREVIOUS
    assert heads(result, "vertical")[0] == STRIPE
    assert len(heads(result, "heterogeneous")) == len(set(heads(result, "heterogeneous"))) <= 3
    texts = {e.id: e.text for e in of}
    for one in kept_in(result.arrays):
        assert one.tokens == ["[CLS]", *texts[one.example].split(), "[SEP]"]
        assert one.second is None
        assert one.weights.shape == (len(one.tokens),) * 2
        assert np.allclose(one.weights.sum(-1), 1, atol=1e-5)
    by_head = {(k.layer, k.head): k for k in kept_in(result.arrays) if k.example == "0"}
    size = len(by_head[PREVIOUS].tokens)
    assert (by_head[PREVIOUS].weights.argmax(-1)[1:] == np.arange(size - 1)).all()
    assert (by_head[STRIPE].weights.argmax(-1) == size - 1).all()


@pytest.mark.parametrize("side", ["left", "right"])
def test_kept_maps_are_those_of_each_text_alone(side: str) -> None:
    """Padding on the left would move positions, and so the maps."""
    encoder, of = planted(), corpus(12)
    encoder.tokenizer.padding_side = side
    result = planted_links.ask(MapTypes(), encoder, of)
    texts = {e.id: e.text for e in of}
    for one in kept_in(result.arrays):
        trace = encoder.run(texts[one.example], record="layer.*.head.*.pattern")
        alone = trace["layer.*.head.*.pattern"][one.layer, 0, one.head]
        np.testing.assert_allclose(one.weights, alone, atol=1e-5)


def test_pairs_say_where_the_second_sentence_begins() -> None:
    of = corpus(8, pairs=True)
    result, texts = found(of), {e.id: e.text for e in of}
    kept = kept_in(result.arrays)
    assert kept
    for one in kept:
        assert one.second == len(texts[one.example].split()) + 2
    figure = result.plot("examples")
    first = next(a for a in figure.axes if a.images)
    assert first.get_title(loc="left") == f"head {kept[0].name}"
    assert labels(first) == kept[0].tokens
    assert len(first.lines) == 2
    note = figure.get_supxlabel()
    assert "second sentence" in note
    assert len([a for a in figure.axes if a.images]) == len(kept)


def test_blocks_of_any_size_keep_the_same_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    of = corpus(12)
    whole = found(of)
    monkeypatch.setattr(MapTypes, "block", 2)
    cut = found(of)
    assert [(k.name, k.type, k.example) for k in kept_in(cut.arrays)] == [
        (k.name, k.type, k.example) for k in kept_in(whole.arrays)
    ]
    assert np.allclose(cut.arrays["example_map"], whole.arrays["example_map"], atol=1e-6)


def parts(
    types: NDArray[np.int64], lengths: NDArray[np.int64], size: int
) -> Iterator[list[ExampleMap]]:
    for start in range(0, len(types), size):
        own, short = types[start : start + size], lengths[start : start + size]
        yield [
            ExampleMap(
                str(start + t), layer, head, int(own[t, layer, head]), [], None, np.zeros((0, 0))
            )
            for t, layer, head in choose(own, short)
        ]


def test_the_first_of_all_parts_are_those_of_one_part() -> None:
    chance = np.random.default_rng(0)
    for _ in range(20):
        types = chance.choice(5, (30, 2, 3), p=[0.6, 0.2, 0.1, 0.09, 0.01])
        lengths = chance.integers(30, 50, 30)
        whole = merge(parts(types, lengths, 30))
        for size in (1, 4, 7):
            assert [(k.example, k.name, k.type) for k in merge(parts(types, lengths, size))] == [
                (k.example, k.name, k.type) for k in whole
            ]
        for kind in range(5):
            own = [k for k in whole if k.type == kind]
            assert len({k.name for k in own}) == len(own) <= 3
        assert all(lengths[int(k.example)] <= 40 for k in whole)


def test_maps_are_chosen_in_the_order_of_texts_layers_and_heads() -> None:
    types = np.array([[[0, 0], [0, 0]], [[1, 0], [2, 0]], [[1, 1], [2, 0]]])
    lengths = np.array([41, 40, 10])
    assert choose(types, lengths, each=2) == [(1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1), (2, 0, 1)]
    assert choose(types, np.full(3, 41)) == []
    assert choose(types, np.full(3, 9)) == []


def test_what_is_kept_survives_the_store() -> None:
    arrays = found(corpus(6, pairs=True)).arrays
    assert arrays_from_bytes(arrays_to_bytes(arrays)).identical(arrays)


def test_long_texts_have_no_examples_and_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "bertology.studies.attention.map_types.choose", lambda *a: choose(*a, longest=3)
    )
    result = found(corpus(4))
    assert kept_in(result.arrays) == []
    assert list(result.figures()) == ["layers", "heads"]
    assert examples_by_type({"Long": result}) is None
    assert example_table({"Long": result}).rows == (("Long", *["–"] * 5),)


def test_the_page_shows_maps_of_all_data_in_turn() -> None:
    results = {"One": found(corpus(6)), "Two": found(corpus(6, pairs=True))}
    figure = examples_by_type(results)
    assert figure is not None
    # The same heads in both: after the first of one comes another head of the other.
    titles = [a.get_title(loc="left") for a in figure.axes if a.images]
    assert {t.partition(", ")[2] for t in titles} == {"One", "Two"}
    numbers = example_table(results)
    assert [row[0] for row in numbers.rows] == ["One", "Two"]
    assert numbers.rows[0][1 + MAP_TYPES.index("diagonal")].startswith("0.1")


def test_many_tokens_are_not_written_over_each_other() -> None:
    from bertology.report.figures import TitledMap, example_sheet

    few, many = ["a"] * 8, ["b"] * 80
    maps = [TitledMap(t[0], np.eye(len(t)), t) for t in (few, many)]
    figure = example_sheet({"row": maps, "other": maps[:1]}, title="t", note="n")
    shown = [labels(a) for a in figure.axes if a.images]
    assert shown[0] == shown[2] == few
    assert 0 < len(shown[1]) <= len(many) / 2  # every few are named
    assert "second sentence" not in figure.get_supxlabel()


def test_nothing_is_added_where_nothing_is_kept() -> None:
    arrays = found(Corpus("one", [Example("0", "the cat")] * 2, frozenset({Field.TEXT}))).arrays
    assert add_kept(arrays, []) is arrays


def fresh() -> Encoder:
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=POSITIONS,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.BertModel(config).eval()
    return Encoder(model, tiny.tokenizer(WORDS, max_length=POSITIONS), name="random")


def look(encoder: Encoder, store: Path, of: Corpus, **how: object) -> MapTypesResult:
    found = bt.run("map-types", encoder, corpus=of, store=str(store), progress=False, **how)
    assert isinstance(found, MapTypesResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"map-type", "share-vertical-diagonal", "form-entropy"})

    @staticmethod
    def make() -> Result:
        found: Result = planted_links.ask(MapTypes(), planted(), corpus(12))
        return found

    def test_kinds_are_the_types(self, result: Result) -> None:
        assert result.measure("map-type").kinds == MAP_TYPES


def test_planted_heads_have_their_type_and_no_other_head_has(tmp_path: Path) -> None:
    heads = look(planted(), tmp_path, corpus()).table("heads").set_index(["layer", "head"])
    assert heads.loc[PREVIOUS, "type"] == "diagonal"
    assert heads.loc[STRIPE, "type"] == "vertical"
    assert heads.loc[PREVIOUS, "share"] > 0.9
    assert heads.loc[STRIPE, "share"] > 0.9
    assert heads.loc[PREVIOUS, "near"] > 0.9
    assert heads.loc[STRIPE, "stripes"] > 0.9
    others = heads.drop(index=[PREVIOUS, STRIPE])
    assert (others["type"] == "heterogeneous").all()


def test_shares_add_up_and_lie_in_their_intervals(tmp_path: Path) -> None:
    result = look(planted(), tmp_path, corpus(), measures=False)
    shares = result.table("shares")
    assert np.allclose(shares.groupby("layer")[["share", "named"]].sum(), 1)
    assert ((shares["low"] <= shares["share"]) & (shares["share"] <= shares["high"])).all()
    assert "entropy" not in result.table("heads")
    for estimate in result.evidence().values():
        assert 0 <= estimate.low < estimate.value < estimate.high <= 1
    # One share has one interval, wherever it is shown.
    row = shares[(shares["layer"] == "all") & (shares["type"] == "heterogeneous")].iloc[0]
    mixed = result.evidence()["heterogeneous_share"]
    assert (row["share"], row["low"], row["high"]) == (mixed.value, mixed.low, mixed.high)


def conclude(share: float, count: int = 300) -> Result:
    """Of heads whose maps the network names heterogeneous so often, and vertical otherwise."""
    chance = np.random.default_rng(0)
    mixed = chance.random((count, 2, 4)) < share
    types = np.where(mixed, HETEROGENEOUS, 0).astype(np.uint8)
    part = xr.Dataset({"type": (("example", "layer", "head"), types)}, attrs={"first": 0})
    study = MapTypes(measures=False)
    of = planted_links.ask(study, planted(), corpus(2)).provenance
    return study.conclude({"block-0": part}, of)


def test_the_share_is_what_the_network_names_less_its_mistakes() -> None:
    """The table of mistakes is the bundled one: names are planted, shares follow."""
    table = bundled_mistakes().table
    for true in (0.0, 0.2, 0.5):
        named = true * table[HETEROGENEOUS, HETEROGENEOUS] + (1 - true) * table[0, HETEROGENEOUS]
        found = conclude(named).evidence()["heterogeneous_share"]
        assert found.low <= true <= found.high
        assert found.high - found.low > 0.04  # three hundred examples alone would give half of it
        assert found.unit == "labelled maps"
        assert found.n == len(bundled_mistakes().seen)


def test_nothing_holds_for_a_random_model(tmp_path: Path) -> None:
    evidence = look(fresh(), tmp_path, corpus()).evidence()
    mixed = Rule("heterogeneous_share", Relation.BETWEEN, values=(0.32, 0.61))
    formed = Rule("first_three_share", Relation.ABOVE, value=1 / 3)
    assert not mixed.judge(evidence["heterogeneous_share"]).is_there
    assert not formed.judge(evidence["first_three_share"]).is_there


def test_batches_and_limits_change_no_type(tmp_path: Path) -> None:
    result = look(fresh(), tmp_path, corpus(30, pairs=True))
    alone = [look(fresh(), tmp_path, corpus(30, pairs=True)[i : i + 2]) for i in (0, 2)]
    assert result.arrays.attrs["examples"] == 30
    assert alone[0].arrays.attrs["examples"] == 2
    few = look(fresh(), tmp_path, corpus(30, pairs=True), examples=7)
    assert few.arrays.attrs["examples"] == 7


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_does_not_change_the_shares(tmp_path: Path, side: str) -> None:
    from bertology.annotated.map_types.reading import read_maps

    encoder, texts = planted(), corpus(6, pairs=True).texts
    encoder.tokenizer.padding_side = side
    if side == "left":  # absolute positions move with the padding: only the types may stay
        texts = [texts[0]] * 2
    together = read_maps(encoder, encoder.encode(texts)).types
    alone = [read_maps(encoder, encoder.encode(text)).types[0] for text in texts]
    assert together.equal(torch.stack(alone))


def test_a_pruned_model_is_refused_before_any_work() -> None:
    smaller = Encoder(prune_heads(tiny.model("bert"), [(1, 0)]), tiny.tokenizer(WORDS))
    with pytest.raises(CapabilityError, match="were pruned"):
        MapTypes().check(smaller, None)


def test_one_example_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="two examples or more"):
        look(fresh(), tmp_path, corpus()[:1])
