"""Reading the maps of many layers and batches together gives what reading each alone gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from torch.utils._python_dispatch import TorchDispatchMode

import tiny
from bertology.annotated.map_types import reading
from bertology.annotated.map_types.looks import Cells, Look
from bertology.annotated.map_types.network import (
    MapTypeNetwork,
    bundled_network,
    classify,
    types_of,
)
from bertology.annotated.map_types.reading import read_batches, read_maps
from bertology.model.encoder import Encoder
from bertology.model.reducers.map_measures import map_measures
from bertology.model.segments import segments_of

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


class Keeper:
    """A reducer that keeps the maps of each layer."""

    def __init__(self, kept: list[torch.Tensor]) -> None:
        self.kept = kept

    def update(self, value: torch.Tensor, place: object) -> None:
        self.kept.append(value.clone())


class Calls(TorchDispatchMode):
    """The names of all operators that were called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket._qualified_op_name.split("::")[1])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_types_and_measures_are_those_of_the_recorded_maps(pairs: bool, side: str) -> None:
    encoder, network = fresh(), bundled_network()
    encoder.tokenizer.padding_side = side
    batches = list(encoder.batches(texts(14, pairs=pairs), tokens_per_batch=40))
    assert len(batches) > 2
    found = list(read_batches(encoder, batches, measures=True))
    assert [r.batch for r in found] == batches
    for seen in found:
        segments = segments_of(seen.batch)
        kept: list[torch.Tensor] = []
        encoder.run(seen.batch, reduce={"layer.*.head.*.pattern": Keeper(kept)})
        assert len(kept) == LAYERS
        for layer, maps in enumerate(kept):
            assert classify(network, maps, Cells(segments)).equal(seen.types[:, layer])
            measures = map_measures(maps, segments)
            assert torch.allclose(measures, seen.measures[:, :, layer], atol=1e-6)


def test_types_are_named_by_few_calls_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def counted(network: Any, look: Look, *of_texts: Any, **more: Any) -> torch.Tensor:
        seen.append(look.facts.shape[:2])
        return types_of(network, look, *of_texts, **more)

    monkeypatch.setattr(reading, "types_of", counted)
    encoder = fresh()
    maps = LAYERS * encoder.shape.heads  # of one text
    batch = encoder.encode(texts(14, pairs=True))
    whole = read_maps(encoder, batch)
    assert seen == [(14, maps)]  # all layers together
    seen.clear()
    monkeypatch.setattr(reading, "_TOGETHER", 4 * maps)
    assert read_maps(encoder, batch).types.equal(whole.types)
    assert seen == [(4, maps)] * 3 + [(2, maps)]


def test_the_host_waits_for_no_number_of_the_maps() -> None:
    network = MapTypeNetwork().eval().requires_grad_(False).to("meta")
    # Tensors without numbers: whatever asks for one, or makes a tensor elsewhere, fails.
    maps, segments = torch.empty(3, 4, 9, 9, device="meta"), torch.empty(3, 9, device="meta").long()
    cells = Cells(segments)
    look = cells.look(maps, measures=True)
    assert look.measures is not None
    assert look.measures.shape[1:] == (3, 4)
    assert types_of(network, look, cells.same, cells.paired).shape == (3, 4)


def test_calls_do_not_grow_with_the_maps() -> None:
    counts, network = [], bundled_network()
    for rows, heads in ((3, 4), (12, 30)):
        maps = torch.rand(rows, heads, 9, 9).softmax(-1)
        segments = torch.zeros(rows, 9, dtype=torch.long)
        with Calls() as calls:
            classify(network, maps, Cells(segments))
        counts.append(len(calls.names))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("measures", [False, True])
@pytest.mark.parametrize(
    ("at_once", "waiting", "calls"), [(99, 99, 1), (5, 99, 5), (1, 99, 14), (99, 2, 2)]
)
def test_batches_that_are_named_together_are_given_apart(
    at_once: int, waiting: int, calls: int, measures: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = fresh()
    batches = list(encoder.batches(texts(14, pairs=True), tokens_per_batch=60))
    assert [len(batch) for batch in batches] == [3, 4, 6, 1]
    alone = [read_maps(encoder, batch, measures=measures) for batch in batches]
    seen = []

    def counted(*given: Any) -> torch.Tensor:
        seen.append(given)
        return types_of(*given)

    monkeypatch.setattr(reading, "types_of", counted)
    monkeypatch.setattr(reading, "_TOGETHER", at_once * LAYERS * encoder.shape.heads)
    monkeypatch.setattr(reading, "_WAITING", waiting)
    together = list(read_batches(encoder, batches, measures=measures))
    assert len(seen) == calls
    for one, other in zip(alone, together, strict=True):
        assert one.batch is other.batch
        assert one.types.equal(other.types)
        assert not measures or one.measures.equal(other.measures)


def test_every_choice_of_a_question_has_its_maps() -> None:
    torch.manual_seed(0)
    model = hf.BertForMultipleChoice(fresh().config).eval()
    encoder = Encoder(model, tiny.tokenizer(WORDS, max_length=32), head="multiple-choice")
    ids = [torch.randint(5, 5 + len(WORDS), (b, 4, t)) for b, t in ((3, 9), (2, 7))]
    batches = [encoder._as_batch({"input_ids": x, "attention_mask": x.gt(0).long()}) for x in ids]
    found = list(read_batches(encoder, batches, measures=True))
    assert [r.types.shape[:2] for r in found] == [(12, LAYERS), (8, LAYERS)]
    assert [r.measures.shape[1] for r in found] == [12, 8]
    for batch, together in zip(batches, found, strict=True):
        assert read_maps(encoder, batch).types.equal(together.types)


def test_measures_that_were_not_taken_are_not_given() -> None:
    encoder = fresh()
    found = read_maps(encoder, encoder.encode(["a cat"]))
    assert found.types.shape == (1, LAYERS, encoder.shape.heads)
    with pytest.raises(ValueError, match="measures=True"):
        _ = found.measures


@pytest.mark.gpu
def test_a_gpu_names_the_types_that_a_cpu_names() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    encoder = fresh()
    batches = list(encoder.batches(texts(40, pairs=True), tokens_per_batch=200))
    wanted = list(read_batches(encoder, batches, measures=True))
    encoder.model.to("cuda")
    found = list(read_batches(encoder, batches, measures=True))
    same = [a.types.eq(b.types).flatten() for a, b in zip(wanted, found, strict=True)]
    assert torch.cat(same).float().mean() > 0.98  # half precision moves maps on the border
    for a, b in zip(wanted, found, strict=True):
        assert torch.allclose(a.measures, b.measures, atol=1e-3)
