"""The network for map types: what it is given, what it says, and that padding does not matter."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from map_type_training.procedural import make_map, make_maps
from map_type_training.training import (
    Settings,
    answers,
    made_sample,
    sample_of,
    train_network,
)
from map_type_training.training_sets import TrainingSets, seen_by
from map_type_training.variation import SeenMap, vary

from bertology.annotated.map_types.facts import FACTS
from bertology.annotated.map_types.labelled import bundled_labels, bundled_maps
from bertology.annotated.map_types.looks import GRID, Cells
from bertology.annotated.map_types.network import (
    WEIGHTS,
    MapTypeNetwork,
    UnrolledNetwork,
    bundled_network,
    classify,
)
from bertology.data.map_labels import MAP_TYPES, given_by_map
from bertology.stats.agreement import krippendorffs_alpha


def macro_f1(types: torch.Tensor, found: torch.Tensor) -> float:
    scores = []
    for kind in types.unique():
        hit = int(((types == kind) & (found == kind)).sum())
        scores.append(2 * hit / int((types == kind).sum() + (found == kind).sum()))
    return float(np.mean(scores))


def test_made_maps_are_attention_and_repeat_themselves() -> None:
    maps = make_maps(50, seed=3)
    again = make_maps(50, seed=3)
    for one, other in zip(maps, again, strict=True):
        assert np.array_equal(one.weights, other.weights)
        assert np.allclose(one.weights.sum(-1), 1)
        assert (one.weights >= 0).all()
        assert 8 <= len(one.segments) <= 128
    assert Counter(m.label for m in maps) == dict.fromkeys(MAP_TYPES, 10)
    assert all(m.segments.any() for m in maps if m.label == "block")


@pytest.mark.parametrize("length", [5, GRID, 40])
def test_shrunk_rows_still_sum_to_one(length: int) -> None:
    weights = torch.rand(2, 3, length, length).softmax(-1)
    cells = Cells(torch.zeros(2, length, dtype=torch.long))
    small = cells.shrink(weights)
    assert small.shape == (2, 3, GRID, GRID)
    assert torch.allclose(small.sum(-1), torch.ones(2, 3, GRID), atol=1e-5)
    assert not cells.same.any()
    even = cells.shrink(torch.full((2, 1, length, length), 1 / length))
    assert torch.allclose(even, torch.full_like(even, 1 / GRID), atol=1e-6)


def test_cells_know_the_sentences_of_a_pair() -> None:
    cells = Cells(torch.tensor([[0] * 8 + [1] * 8]))
    half = GRID // 2
    assert cells.same[0, :half, :half].min() == 1
    assert cells.same[0, :half, half:].max() == 0


def test_fresh_made_maps_are_recognised() -> None:
    sample = made_sample(make_maps(300, seed=12345))
    # Below what record.json says they reach (0.92 on other seeds); the aim is 0.95.
    assert macro_f1(sample.types, answers(bundled_network(), sample)) > 0.9


def test_written_out_as_matrices_it_answers_the_same() -> None:
    sample, network = made_sample(make_maps(100, seed=7)), bundled_network()
    assert isinstance(network, MapTypeNetwork)
    # Four heads a text: the sentences of the first serve all of them.
    small, facts = sample.small.view(25, 4, GRID, GRID), sample.facts.view(25, 4, -1)
    given = small, sample.same[::4], facts
    plain = network(*given)
    assert torch.allclose(UnrolledNetwork(network, torch.float32)(*given), plain, atol=1e-4)
    half = UnrolledNetwork(network)(*given)
    assert half.dtype == torch.float32
    assert not half.requires_grad
    assert torch.allclose(half, plain, atol=5e-3)
    none = UnrolledNetwork(network)(*(x[:0] for x in given))
    assert none.shape == (0, 4, len(MAP_TYPES))


@pytest.mark.parametrize("before", [0, 7])
def test_padding_does_not_matter(before: int) -> None:
    chance = np.random.default_rng(0)
    for label in MAP_TYPES:
        made = make_map(label, 21, chance)
        weights = torch.from_numpy(made.weights).float()
        segments = torch.from_numpy(made.segments)
        place = slice(before, before + 21)
        padded, marks = torch.zeros(28, 28), torch.full((28,), -1)
        padded[place, place], marks[place] = weights, segments
        padded[[i for i in range(28) if marks[i] < 0]] = 1 / 28  # what padding attends to
        plain, wide = Cells(segments[None]), Cells(marks[None])
        small, same = plain.shrink(weights[None, None]), wide.shrink(padded[None, None])
        assert torch.allclose(small, same, atol=1e-6)
        network = bundled_network()
        here, there = weights[None, None], padded[None, None]
        facts = plain.look(here).facts, wide.look(there).facts
        assert torch.allclose(*facts, atol=1e-5)
        assert classify(network, here, plain).equal(classify(network, there, wide))


def test_a_single_sentence_is_never_a_block() -> None:
    made = make_map("block", 30, np.random.default_rng(1))
    weights = torch.from_numpy(made.weights).float()[None, None]
    found = {}
    for name, segments in (("pair", made.segments), ("single", np.zeros_like(made.segments))):
        cells = Cells(torch.from_numpy(segments)[None])
        found[name] = MAP_TYPES[int(classify(bundled_network(), weights, cells))]
    assert found["pair"] == "block"
    assert found["single"] != "block"


def test_the_network_is_small_and_has_eight_layers() -> None:
    import bertology

    folder = Path(bertology.__file__).parent / "checkpoints" / "map-types"
    assert (folder / WEIGHTS).stat().st_size < 500_000
    assert (folder / "record.json").is_file()
    network = MapTypeNetwork()
    assert 1 + len(network.rest) == 8


def test_folding_keeps_the_answers() -> None:
    sample = made_sample(make_maps(40, seed=5, longest=30))
    network = train_network(sample, sample, Settings(steps=12))
    again = train_network(sample, sample, Settings(steps=12))
    assert answers(network, sample).equal(answers(again, sample))  # equal seeds, equal networks
    live = MapTypeNetwork(normalised=True)
    given = (sample.small[:, None], sample.same, sample.facts[:, None])
    live(*given)  # fills the running means
    live.eval()
    with torch.no_grad():
        one = live(*given)
        other = live.folded()(*given)
    assert torch.allclose(one, other, atol=1e-4)


def test_the_labels_are_many_varied_and_agree() -> None:
    labels = bundled_labels()
    first = [label for label in labels if label.turn == 1]
    assert len({label.recipe.key for label in first}) >= 400
    assert {label.label for label in first} == set(MAP_TYPES)
    assert {label.recipe.key for label in labels} == set(bundled_maps())
    by_map = given_by_map(labels)
    assert all(len(given) >= 3 for given in by_map.values())
    assert all(len(given) == 7 for given in by_map.values() if len(set(given[:3])) > 1)
    # Of the three that every map had: disputed maps were given to four more.
    agreement = krippendorffs_alpha([given[:3] for given in by_map.values()], resamples=200)
    assert agreement is not None
    assert agreement.low > 0.75
    # Shared corpora are named, not copied.
    texts = [label.recipe for label in labels if label.recipe.text is not None]
    assert all(recipe.corpus.startswith("grammar") for recipe in texts)


@pytest.mark.parametrize(
    ("model", "least"),
    # It learned from maps of the first two: this asks whether weights, maps and labels belong
    # together. What it reaches on maps that it did not learn from stands in record.json.
    [("bertology-mini", 0.8), ("english-12x384", 0.8), ("sop-8x128", 0.8)],
)
def test_labelled_maps_are_recognised(model: str, least: float) -> None:
    seen = seen_by(bundled_labels())
    stored = [m for m in bundled_maps().values() if m.key[0] == model][::5]  # to be quick
    assert len(stored) > 100
    sample = sample_of([SeenMap(m.weights, m.segments, seen[m.key]) for m in stored])
    assert (answers(bundled_network(), sample) == sample.types).float().mean() > least


def test_a_map_has_the_same_type_alone_and_in_a_batch() -> None:
    maps = make_maps(15, seed=8, longest=40)
    longest = max(len(m.segments) for m in maps)
    together = torch.zeros(len(maps), 1, longest, longest)
    marks = torch.full((len(maps), longest), -1)
    alone = []
    for i, m in enumerate(maps):
        weights, segments = torch.from_numpy(m.weights).float(), torch.from_numpy(m.segments)
        length = len(segments)
        start = (longest - length) * (i % 2)  # padding on either side
        place = slice(start, start + length)
        together[i, 0, place, place], marks[i, place] = weights, segments
        found = classify(bundled_network(), weights[None, None], Cells(segments[None]))
        alone.append(int(found))
    found = classify(bundled_network(), together, Cells(marks))
    assert found[:, 0].tolist() == alone
    assert len(set(alone)) == len(MAP_TYPES)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_very_short_maps_have_finite_facts(length: int) -> None:
    weights = torch.eye(length)[None, None]
    facts = Cells(torch.zeros(1, length, dtype=torch.long)).look(weights).facts
    assert facts.shape == (1, 1, FACTS)
    assert facts.isfinite().all()


def test_variants_are_attention_with_the_same_label() -> None:
    chance = np.random.default_rng(0)
    for made in make_maps(20, seed=2):
        varied = vary(SeenMap(made.weights, made.segments, (1.0, 0.0, 0.0, 0.0, 0.0)), chance)
        assert np.allclose(varied.weights.sum(-1), 1)
        assert varied.seen == (1.0, 0.0, 0.0, 0.0, 0.0)
        assert set(varied.segments) == set(made.segments)
        assert (np.diff(varied.segments) >= 0).all()


def test_nothing_is_learned_from_maps_that_were_not_chosen() -> None:
    sure = np.eye(len(MAP_TYPES))
    maps = [
        SeenMap(m.weights, m.segments, tuple(sure[i % len(MAP_TYPES)]))
        for i, m in enumerate(make_maps(10, seed=4, longest=20))
    ]
    lessons = TrainingSets(maps, seed=0)
    learned = lessons.learned_from(np.array([0, 5]))
    assert set(learned.types.tolist()) == {0}


def test_labellers_who_disagree_share_a_map() -> None:
    labels = [x for x in bundled_labels() if x.turn == 1]
    shares = seen_by(labels)
    assert set(shares) == {x.recipe.key for x in labels}
    assert all(abs(sum(share) - 1) < 1e-9 for share in shares.values())
    assert any(max(share) < 1 for share in shares.values())
