"""Forms of smaller models: equal to the original where theory says so, saved and opened again."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors import safe_open
from torch import Tensor, nn

import tiny
from bertology.errors import BertologyError, CapabilityError, ModelError
from bertology.model.compressed import (
    low_rank,
    quantised,
    shared_layers,
    sixteen_bit,
)
from bertology.model.compressed.forms import nonzero_parameters, parameters, stored_bytes
from bertology.model.compressed.packing import pack, packed_size, unpack
from bertology.model.compressed.rounding import Format, rounded
from bertology.model.compressed.written import named_maps
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import is_plain, prune_heads, prune_layers, prune_mlps

FAMILIES = ["bert", "roberta", "electra", "distilbert"]


def logits(model: Any) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(**tiny.inputs()).logits
        return found


def opened(model: Any, folder: Path) -> Any:
    """The model after it was saved and loaded; its file is as large as it says."""
    model.save_pretrained(folder)
    with safe_open(folder / "model.safetensors", "pt") as file:
        tensors = [file.get_tensor(name) for name in file.keys()]  # noqa: SIM118 - no dict
    assert sum(t.numel() * t.element_size() for t in tensors) == stored_bytes(model)
    again = Encoder.load(str(folder), head="classification", device="cpu")
    assert again.new_weights == []
    return again.model


def close(a: Tensor, b: Tensor, within: float = 1e-5) -> None:
    torch.testing.assert_close(a, b, atol=within, rtol=within)


@pytest.fixture
def model() -> Any:
    return tiny.model("bert", "classification")


# Low rank ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_the_full_rank_changes_nothing(name: str, tmp_path: Path) -> None:
    model = tiny.model(name, "classification")
    expected = logits(model)
    low_rank.factorise(model, 24, maps="all")
    close(logits(model), expected, 1e-4)
    assert not is_plain(model.config)
    close(logits(opened(model, tmp_path)), logits(model))


def test_a_low_rank_takes_fewer_numbers_and_is_the_best_of_its_rank(
    model: Any, tmp_path: Path
) -> None:
    original = copy.deepcopy(model)
    low_rank.factorise(model, 3)
    assert parameters(model) < parameters(original)
    here, there = (m.bert.encoder.layer[1].intermediate.dense for m in (model, original))
    values = torch.linalg.svdvals(there.weight)
    lost = torch.linalg.matrix_norm(here.weight - there.weight)
    close(lost, values[3:].square().sum().sqrt(), 1e-4)
    assert (logits(model) - logits(original)).abs().max() > 1e-3
    close(logits(opened(model, tmp_path)), logits(model))


def test_tables_are_factorised_as_in_albert(model: Any, tmp_path: Path) -> None:
    low_rank.factorise(model, ranks={"embeddings.word_embeddings": 4})
    table = model.get_input_embeddings()
    assert table.first.weight.shape == (tiny.VOCAB, 4)
    close(table(torch.arange(tiny.VOCAB)), table.weight)
    close(logits(opened(model, tmp_path)), logits(model))


# Whole numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", range(1, 9))
def test_packed_numbers_come_back(bits: int) -> None:
    codes = torch.randint(0, 2**bits, (7, 5))
    packed = pack(codes, bits)
    assert len(packed) == packed_size(35, bits) == -(-35 * bits // 8)
    assert torch.equal(unpack(packed, bits, 35).reshape(7, 5).long(), codes)


def test_the_lowest_bits_come_first() -> None:
    assert pack(torch.tensor([1, 2, 3, 0, 1]), 2).tolist() == [1 + 2 * 4 + 3 * 16, 1]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(
    ("scheme", "groups"),
    [("symmetric", "row"), ("symmetric", "tensor"), ("groups", 3), ("groups", "row")],
)
def test_rounded_weights_are_within_half_a_step(bits: int, scheme: str, groups: Any) -> None:
    weight = torch.randn(10, 16, generator=torch.Generator().manual_seed(0))
    weight[3] = 0
    form = Format.of(weight, bits, scheme, groups, -4.0)
    held = form.of_weight(weight, limit=-4.0)
    near = rounded(weight, bits, scheme=scheme, groups=groups)
    step = held["step"].max() if len(held["step"]) != 10 else held["step"][:, None]
    assert ((near - weight).abs() <= step / 2 + 1e-6).all()
    if scheme == "symmetric":
        assert (near[3] == 0).all()
    if groups == 3:  # groups of 3, 3 and 4 rows, each with its own least value
        close(held["least"], torch.stack([weight[a:b].min() for a, b in ((0, 3), (3, 6), (6, 10))]))
        assert len(near[:3].unique()) <= 2**bits


def test_a_dictionary_keeps_outliers_and_finds_planted_centroids() -> None:
    generator = torch.Generator().manual_seed(0)
    planted = torch.tensor([-0.05, -0.02, 0.0, 0.06])
    weight = planted[torch.randint(0, 4, (40, 40), generator=generator)]
    weight[5, 7], weight[20, 1] = 3.0, -2.0
    form = Format.of(weight, 2, "dictionary", "row", -4.0)
    held = form.of_weight(weight, limit=-4.0)
    assert form.outliers == 2
    close(held["centroids"], planted)
    close(form.values(held), weight)
    with_noise = weight + 0.002 * torch.randn(40, 40, generator=generator)
    near = rounded(with_noise, 2, scheme="dictionary")
    assert near[5, 7] == with_noise[5, 7]
    assert (near - with_noise).abs().max() < 0.01


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"groups": "tensor"},
        {"bits": 4},
        {"bits": 3, "scheme": "groups", "groups": 5, "bits_of": {0: 8, 2: 2}},
        {"bits": 3, "scheme": "dictionary"},
        {"activations": 8},
        {"activations": 8, "groups": "tensor"},
    ],
    ids=str,
)
def test_quantised_models_are_what_their_rounded_weights_make(
    options: dict[str, Any], model: Any, tmp_path: Path
) -> None:
    expected = copy.deepcopy(model)
    how = {k: v for k, v in options.items() if k in ("scheme", "groups")}
    for name, module in expected.bert.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            layer = int(name.split(".")[2]) if name.startswith("encoder") else None
            bits = options.get("bits_of", {}).get(layer, options.get("bits", 8))
            module.weight.data = rounded(module.weight.data, bits, **how)
    size, count = stored_bytes(model), parameters(model)
    quantised.quantise(model, **options)
    assert parameters(model) == count
    assert stored_bytes(model) < (0.5 if options.get("bits", 8) == 8 else 0.35) * size
    within = 0.15 if "activations" in options else 1e-4
    close(logits(model), logits(expected), within)
    again = opened(model, tmp_path)
    assert torch.equal(logits(again), logits(model))
    with torch.enable_grad():  # the same rounding in float
        close(again(**tiny.inputs()).logits.detach(), logits(model), 0.02)


def test_what_was_made_of_the_numbers_follows_them(model: Any) -> None:
    quantised.quantise(model, activations=8)
    before = logits(model)
    twin = copy.deepcopy(model)
    close(logits(twin), before)
    with torch.no_grad():
        twin.bert.encoder.layer[0].output.dense.bias[0] += 1
    assert (logits(twin) - before).abs().max() > 1e-3
    twin.load_state_dict(model.state_dict())
    close(logits(twin), before)
    close(logits(model.double().float()), before)


@pytest.mark.parametrize("name", ["bert", "roberta", "electra"])
@pytest.mark.parametrize("rank", [None, 6])
def test_lean_layers_compute_what_the_layers_themselves_do(name: str, rank: int | None) -> None:
    model = tiny.model(name, "classification")
    if rank is not None:
        low_rank.factorise(model, rank)
    quantised.quantise(model, activations=8)
    layers = model.base_model.encoder.layer
    assert all("forward" in layer.__dict__ for layer in layers)
    lean = logits(model)
    called: list[object] = []
    hook = layers[1].output.register_forward_hook(lambda *given: called.append(given))
    close(logits(model), lean)  # of which layer 1 is not lean
    hook.remove()
    assert len(called) == 1
    logits(model)
    assert len(called) == 1
    for layer in layers:
        del layer.forward
    close(logits(model), lean)


# Shared layers, 16 bits ---------------------------------------------------------------------------


def test_shared_layers_are_one_and_stored_once(model: Any, tmp_path: Path) -> None:
    expected = copy.deepcopy(model)
    expected.bert.encoder.layer[1].load_state_dict(expected.bert.encoder.layer[0].state_dict())
    one_layer = sum(p.numel() for p in model.bert.encoder.layer[0].parameters())
    count = parameters(model)
    shared_layers.share(model, [0, 0, 2])
    close(logits(model), logits(expected))
    assert parameters(model) == count - one_layer
    again = opened(model, tmp_path)
    close(logits(again), logits(model))
    assert again.bert.encoder.layer[1] is again.bert.encoder.layer[0]
    again.load_state_dict(model.state_dict())  # strictly: nothing is missing
    close(logits(copy.deepcopy(again)), logits(model))
    trace = Encoder(again).run(tiny.inputs(), record="layer.*.head.*.pattern")
    assert trace["layer.1.head.0.pattern"].shape[0] == 3


def test_groups_of_layers_and_their_mean(model: Any) -> None:
    layers = [copy.deepcopy(one) for one in model.bert.encoder.layer]
    shared_layers.share(model, groups=2, how="mean")
    assert model.config.bertology_compressed == [{"form": "shared_layers", "layers": [0, 0, 2]}]
    mean = (layers[0].output.dense.weight + layers[1].output.dense.weight) / 2
    close(model.bert.encoder.layer[1].output.dense.weight, mean)
    close(model.bert.encoder.layer[2].output.dense.weight, layers[2].output.dense.weight)


def test_sixteen_bits_change_nothing_of_what_was_in_sixteen(model: Any, tmp_path: Path) -> None:
    model.half().float()
    expected, size = logits(model), stored_bytes(model)
    sixteen_bit.store(model)
    assert is_plain(model.config)
    assert stored_bytes(model) < 0.51 * size
    assert torch.equal(logits(opened(model, tmp_path)), expected)


# Together ----------------------------------------------------------------------------------------


COMBINED: dict[str, list[Callable[[Any], Any]]] = {
    "low rank in 8 bits": [
        lambda m: low_rank.factorise(m, 6, maps="all"),
        lambda m: quantised.quantise(m, activations=8),
    ],
    "ALBERT in 4 bits": [
        lambda m: low_rank.factorise(m, 4, maps="embeddings"),
        lambda m: shared_layers.share(m, groups=1),
        lambda m: quantised.quantise(m, 4, scheme="groups", groups=4),
    ],
    "8 bits with steps of 16": [quantised.quantise, sixteen_bit.store],
}


@pytest.mark.parametrize("name", COMBINED)
def test_forms_combine(name: str, model: Any, tmp_path: Path) -> None:
    for change in COMBINED[name]:
        change(model)
    expected = logits(copy.deepcopy(model).float())
    close(logits(opened(model, tmp_path)), expected)


def test_pruned_models_are_quantised_and_not_the_other_way_round(
    model: Any, tmp_path: Path
) -> None:
    smaller = prune_mlps(prune_heads(model, [(0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]), [2])
    quantised.quantise(smaller)
    close(logits(opened(smaller, tmp_path)), logits(smaller))
    with pytest.raises(CapabilityError):
        prune_heads(smaller, [(0, 0)])
    with pytest.raises(CapabilityError):
        prune_layers(smaller, [0])


def test_a_compressed_encoder_is_looked_into_and_read_as_a_base_model(
    model: Any, tmp_path: Path
) -> None:
    low_rank.factorise(model, 6)
    quantised.quantise(model, maps="embeddings")
    site = "layer.1.head.2.contribution"
    expected = Encoder(model).run(tiny.inputs(), record=site)[site]
    model.save_pretrained(tmp_path)
    base = Encoder.load(str(tmp_path), device="cpu")
    close(base.run(tiny.inputs(), record=site)[site], expected)
    assert base.fingerprint == Encoder(base.model).fingerprint


# What does not fit -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"form": "low_rank"}, "It is a list"),
        ([{"form": "smaller"}], "no form 'smaller'"),
        ([{"form": "low_rank", "rank": 3}], "no such options"),
        ([{"form": "low_rank", "ranks": {"encoder.layer.9": 3}}], "no module"),
        ([{"form": "low_rank", "ranks": {"pooler.dense": 99}}], "rank of 'pooler.dense' is 99"),
        ([{"form": "quantised", "maps": {"pooler.dense": {"bits": 9}}}], "is stored as"),
        ([{"form": "quantised", "maps": {"pooler": {}}}], "no linear map or table"),
        ([{"form": "quantised", "maps": {}, "ranges": "fixed"}], "ranges are 'fixed'"),
        ([{"form": "quantised", "maps": {}, "activations": 8, "ranges": 3}], "ranges are 3"),
        ([{"form": "shared_layers", "layers": [1, 1, 1]}], "layers are"),
        ([{"form": "eliminated_tokens", "keep": [3, 4, 5]}], "keep is"),
        ([{"form": "early_exit", "layers": [2], "entropy": 0.1}], "layers are"),
    ],
    ids=str,
)
def test_configs_that_do_not_fit_are_refused(
    written: Any, words: str, model: Any, tmp_path: Path
) -> None:
    model.config.bertology_compressed = written
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError) as refused:
        Encoder.load(str(tmp_path), head="classification", device="cpu")
    assert words in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    "change",
    [
        lambda m: low_rank.factorise(m),
        lambda m: low_rank.factorise(m, 0),
        lambda m: low_rank.factorise(m, 99),
        lambda m: low_rank.factorise(m, 3, maps="heads"),
        lambda m: low_rank.factorise(m, ranks={"classifier": 1}),
        lambda m: quantised.quantise(m, 9),
        lambda m: quantised.quantise(m, 1),
        lambda m: quantised.quantise(m, scheme="odd"),
        lambda m: quantised.quantise(m, groups=4),
        lambda m: quantised.quantise(m, scheme="groups", groups="column"),
        lambda m: quantised.quantise(m, activations=4),
        lambda m: quantised.quantise(m, bits_of={7: 4}),
        lambda m: shared_layers.share(m),
        lambda m: shared_layers.share(m, [0, 2, 2]),
        lambda m: shared_layers.share(m, groups=4),
        lambda m: shared_layers.share(m, groups=1, how="last"),
        lambda m: sixteen_bit.store(m, "float8"),
    ],
)
def test_wishes_that_cannot_be_are_refused_and_change_nothing(
    change: Callable[[Any], Any], model: Any
) -> None:
    expected = logits(model)
    with pytest.raises(BertologyError):
        change(model)
    assert torch.equal(logits(model), expected)
    assert is_plain(model.config)


def test_a_head_for_words_keeps_its_table() -> None:
    words = transformers.BertForMaskedLM(tiny.config("bert"))
    with pytest.raises(CapabilityError, match="shares its weights"):
        quantised.quantise(words)
    quantised.quantise(words, maps="layers")


@pytest.mark.parametrize(
    ("rows", "groups"), [(1, 1), (2, 2), (7, 3), (30, 8), (100, 64), (130, 128), (384, 128)]
)
def test_groups_of_rows_are_what_they_are_one_by_one(rows: int, groups: int) -> None:
    torch.manual_seed(rows)
    weight = torch.randn(rows, 9)
    held = Format("groups", 4, groups).of_weight(weight, limit=-4.0)
    cuts = [rows * i // groups for i in range(groups + 1)]
    for group, (begin, end) in enumerate(itertools.pairwise(cuts)):
        part = weight[begin:end]
        step = ((part.max() - part.min()) / 15).clamp_min(1e-12)
        codes = ((part - part.min()) / step).round().clamp(0, 15).to(torch.uint8)
        assert torch.equal(held["least"][group], part.min())
        assert torch.equal(held["step"][group], step)
        assert torch.equal(held["codes"][begin:end], codes)


def test_zeros_are_counted_also_where_they_are_stored_as_whole_numbers(model: Any) -> None:
    given = model
    with torch.no_grad():
        for _, one in named_maps(given, "layers"):
            one.weight[:, ::2] = 0
    there, nonzero = parameters(given), nonzero_parameters(given)
    halved = sum(m.weight.numel() for _, m in named_maps(given, "layers")) // 2
    assert there - nonzero >= halved
    tables = [m.weight.numel() for _, m in named_maps(given, "embeddings")]
    made = quantised.quantise(copy.deepcopy(given), 8)
    assert parameters(made) == there
    # Small weights that are rounded to zero are zeros, too.
    assert nonzero - sum(tables) // 10 < nonzero_parameters(made) <= nonzero
    assert all(m._made is None for m in made.modules() if isinstance(m, quantised.Quantised))
