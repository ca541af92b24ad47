"""Example maps of each type: the right ones, with the right labels, whatever the blocks are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import planted_links
from bertology.annotated.map_types.examples import ExampleMap, add_kept, choose, kept_in, merge
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.map_labels import MAP_TYPES
from bertology.papers.dark_secrets.exhibits import example_table, examples_by_type
from bertology.results.formats import arrays_from_bytes, arrays_to_bytes
from bertology.studies.attention.map_types import MapTypes, MapTypesResult
from planted_maps import PREVIOUS, STRIPE, corpus, planted


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
