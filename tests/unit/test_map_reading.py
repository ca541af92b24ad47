"""Reading the maps of many layers and batches together gives what reading each alone gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from torch.utils._python_dispatch import TorchDispatchMode

import tiny
from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.map_measures import map_measures, own_segment
from bertology.train.map_types import reading
from bertology.train.map_types.network import Cells, MapTypeNetwork, bundled_network, classify
from bertology.train.map_types.procedural import make_maps
from bertology.train.map_types.reading import AT_ONCE, read_batches, read_maps

WORDS = "the cat sat on a mat and saw one bird".split()
LAYERS = 3


def texts(count: int, *, pairs: bool) -> list[Any]:
    chance = torch.Generator().manual_seed(3)

    def sentence() -> str:
        length = int(torch.randint(1, 9, (1,), generator=chance))
        return " ".join(
            WORDS[int(i)] for i in torch.randint(len(WORDS), (length,), generator=chance)
        )

    return [(sentence(), sentence()) if pairs else sentence() for _ in range(count)]


def fresh() -> Encoder:
    """A random model whose heads differ, over the words."""
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=16, num_hidden_layers=LAYERS, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=32, initializer_range=0.7,
    )  # fmt: skip
    return Encoder(hf.BertModel(config).eval(), tiny.tokenizer(WORDS, max_length=32))


class Calls(TorchDispatchMode):
    """The names of all operators that were called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket._qualified_op_name.split("::")[1])
        return func(*args, **(kwargs or {}))


def several(encoder: Encoder, *, pairs: bool) -> list[Batch]:
    return list(encoder.batches(texts(14, pairs=pairs), tokens_per_batch=40))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_together_or_layer_by_layer_is_the_same(pairs: bool, side: str) -> None:
    encoder = fresh()
    encoder.tokenizer.padding_side = side
    batches = several(encoder, pairs=pairs)
    assert len({b.real.shape[1] for b in batches}) > 1  # so that some are padded once more
    alone = list(read_batches(encoder, batches, measures=True, at_once=0))
    size = max(b.real.shape[0] * b.real.shape[1] ** 2 for b in batches) * encoder.shape.heads
    # All at once, two layers at a time, a few batches at a time.
    for at_once in (AT_ONCE, 2 * size, 7 * size):
        found = list(read_batches(encoder, batches, measures=True, at_once=at_once))
        assert [r.batch for r in found] == batches
        for one, other in zip(alone, found, strict=True):
            assert one.types.equal(other.types)
            assert torch.allclose(one.measures, other.measures, atol=1e-5)


def test_one_call_reads_all_layers_of_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def counted(network: Any, maps: torch.Tensor, cells: Cells, **more: Any) -> torch.Tensor:
        seen.append(maps.shape)
        return classify(network, maps, cells, **more)

    monkeypatch.setattr(reading, "classify", counted)
    encoder = fresh()
    batches = several(encoder, pairs=True)
    widest = max(b.real.shape[1] for b in batches)
    list(read_batches(encoder, batches, at_once=AT_ONCE))
    assert seen == [(14, LAYERS * encoder.shape.heads, widest, widest)]
    seen.clear()
    list(read_batches(encoder, batches))  # on a CPU each layer by itself
    assert len(seen) == LAYERS * len(batches)


def test_no_more_than_was_asked_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def measured(network: Any, maps: torch.Tensor, cells: Cells, **more: Any) -> torch.Tensor:
        sizes.append(maps.numel())
        return classify(network, maps, cells, **more)

    monkeypatch.setattr(reading, "classify", measured)
    encoder = fresh()
    batches = several(encoder, pairs=False)
    layer = max(b.real.shape[0] * b.real.shape[1] ** 2 for b in batches) * encoder.shape.heads
    for at_once in (2 * layer, 5 * layer):
        sizes.clear()
        list(read_batches(encoder, batches, at_once=at_once))
        assert max(sizes) <= at_once


def test_the_host_waits_for_no_number_of_the_maps() -> None:
    network = MapTypeNetwork().eval().requires_grad_(False).to("meta")
    # Tensors without numbers: whatever asks for one, or makes a tensor elsewhere, fails.
    maps, segments = torch.empty(3, 4, 9, 9, device="meta"), torch.empty(3, 9, device="meta").long()
    cells = Cells(segments)
    assert classify(network, maps, cells, multiple=16).shape == (3, 4)
    assert map_measures(maps, segments >= 0, own_segment(segments)).shape[1:] == (3, 4)


def test_calls_do_not_grow_with_the_maps() -> None:
    counts, network = [], bundled_network()
    for rows, heads in ((3, 4), (12, 30)):
        maps = torch.rand(rows, heads, 9, 9).softmax(-1)
        segments = torch.zeros(rows, 9, dtype=torch.long)
        with Calls() as calls:
            classify(network, maps, Cells(segments))
        counts.append(len(calls.names))
    assert counts[0] == counts[1]


def test_texts_that_fill_up_change_nothing() -> None:
    maps = torch.rand(3, 2, 9, 9).mul(4).softmax(-1)
    cells, network = Cells(torch.zeros(3, 9, dtype=torch.long)), bundled_network()
    plain = classify(network, maps, cells)
    assert classify(network, maps, cells, multiple=16).equal(plain)
    assert classify(network, maps, cells, multiple=3).equal(plain)


def test_measures_that_were_not_taken_are_not_given() -> None:
    encoder = fresh()
    found = read_maps(encoder, encoder.encode(["a cat"]))
    assert found.types.shape == (1, LAYERS, encoder.shape.heads)
    with pytest.raises(ValueError, match="measures=True"):
        _ = found.measures


def test_half_precision_is_enough() -> None:
    """As a GPU reads types."""
    network, same = bundled_network(), []
    for made in make_maps(120, seed=3, longest=60):
        maps = torch.from_numpy(made.weights).float()[None, None]
        cells = Cells(torch.from_numpy(made.segments)[None])
        assert torch.allclose(cells.shrink(maps.half()), cells.shrink(maps), atol=2e-3)
        same.append(classify(network, maps.half(), cells).equal(classify(network, maps, cells)))
    assert sum(same) >= 119


def test_answers_that_are_owed_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = fresh()
    batches = several(encoder, pairs=True)
    monkeypatch.setattr(reading, "_LITTLE", 0)
    monkeypatch.setattr(reading, "_PADDING", 0.0)  # so that most batches are read by themselves
    found = list(read_batches(encoder, batches, at_once=AT_ONCE))
    assert [r.batch for r in found] == batches
