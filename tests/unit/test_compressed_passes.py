"""Forms that compute less of a text or of the layers, and the classifier without attention."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import bertology as bt
import tiny
from bertology.errors import BertologyError, CapabilityError
from bertology.model.compressed import (
    bilstm,
    early_exit,
    eliminated_tokens,
    input_ranges,
    low_rank,
    quantised,
)
from bertology.model.encoder import Encoder


def logits(model: Any, inputs: dict[str, Tensor] | None = None) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(**(inputs or tiny.inputs())).logits
        return found


def one_by_one(model: Any) -> Tensor:
    """Each row alone, without its padding."""
    inputs = tiny.inputs()
    found = []
    for row, mask in zip(inputs["input_ids"], inputs["attention_mask"], strict=True):
        real = mask.bool()
        found.append(
            logits(model, {"input_ids": row[real][None], "attention_mask": mask[real][None]})
        )
    return torch.cat(found)


def opened(model: Any, folder: Path) -> Any:
    model.save_pretrained(folder)
    return bt.load(str(folder), head="classification", device="cpu").model


def close(a: Tensor, b: Tensor, within: float = 1e-5) -> None:
    torch.testing.assert_close(a, b, atol=within, rtol=within)


@pytest.fixture
def model() -> Any:
    return tiny.model("bert", "classification")


# Tokens that are left out -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bert", "roberta", "electra"])
def test_keeping_every_token_changes_nothing(name: str) -> None:
    model = tiny.model(name, "classification")
    expected = logits(model)
    eliminated_tokens.eliminate(model, [9, 9, 9])
    close(logits(model), expected)


def test_padding_and_company_change_no_answer(model: Any, tmp_path: Path) -> None:
    original = logits(model)
    eliminated_tokens.eliminate(model, [6, 4, 2])
    together = logits(model)
    assert (together - original).abs().max() > 1e-3
    close(together, one_by_one(model))
    again = opened(model, tmp_path)
    close(logits(again), together)
    close(logits(copy.deepcopy(again)), together)


def test_the_most_attended_tokens_are_those_that_stay(model: Any) -> None:
    """What a layer sees is the first token and those with the largest sums of attention."""
    inputs = tiny.inputs()
    site = "layer.0.head.*.pattern"
    pattern = Encoder(copy.deepcopy(model)).run(inputs, record=site)[site]  # (B, H, T, S)
    real = inputs["attention_mask"].bool()
    sums = (pattern * real[:, None, :, None]).sum((1, 2)).masked_fill(~real, -1)
    sums[:, 0] = torch.inf
    seen: list[Tensor] = []
    first = model.bert.encoder.layer[0]
    before = []
    first.attention.register_forward_hook(lambda m, i, o: before.append(o[0]))
    eliminated_tokens.eliminate(model, [3, 3, 3])
    first.intermediate.register_forward_pre_hook(lambda m, i: seen.append(i[0]))
    logits(model, inputs)
    expected = sums.topk(3, dim=1).indices.sort(dim=1).values
    close(seen[0], before[0].gather(1, expected[..., None].expand(-1, -1, 24)))


def test_significance_leaves_padding_out() -> None:
    pattern = torch.tensor([[[[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.5, 0.5, 0.0]]]])
    allowed = torch.tensor([[[[True, True, False]]]])
    close(eliminated_tokens.significance(pattern, allowed), torch.tensor([[0.75, 1.25, -1.0]]))
    close(eliminated_tokens.significance(pattern), torch.tensor([[1.25, 1.75, 0.0]]))


def test_a_model_that_leaves_out_tokens_trains_and_is_not_looked_into(model: Any) -> None:
    eliminated_tokens.eliminate(model, [4, 3, 2])
    model.train()(**tiny.inputs()).logits.sum().backward()
    assert model.bert.encoder.layer[0].attention.self.query.weight.grad is not None
    with pytest.raises(CapabilityError, match="eliminated tokens"):
        Encoder(model).run(tiny.inputs())
    with pytest.raises(CapabilityError, match="cannot be given"):
        eliminated_tokens.eliminate(model, [1, 1, 1])


# Early exits --------------------------------------------------------------------------------------


@pytest.fixture
def leaving(model: Any) -> Any:
    early_exit.add_exits(model, [0, 1], generator=torch.Generator().manual_seed(0))
    for head in model.bert.early_exits.heads:  # as sure as trained ones may be
        head.out.weight.data.mul_(300)
    return model


def test_rows_leave_where_the_first_sure_exit_is(leaving: Any, tmp_path: Path) -> None:
    each = torch.stack(early_exit.all_logits(leaving, **tiny.inputs(batch=4))).detach()
    entropies = torch.special.entr(each.softmax(-1)).sum(-1)  # (exits and the end, B)
    limits = [0.0, 10.0, *entropies[:2].flatten().tolist()]
    places = set()
    for limit in limits:
        early_exit.set_entropy(leaving, limit)
        left = entropies < limit
        left[2] = True
        where = left.int().argmax(0)
        places |= set(where.tolist())
        expected = each[where, torch.arange(4)]
        close(logits(leaving, tiny.inputs(batch=4)), expected, 1e-4)
    assert places == {0, 1, 2}
    early_exit.set_entropy(leaving, limits[3] + 1e-6)
    again = opened(leaving, tmp_path)
    close(logits(again), logits(leaving))
    close(logits(copy.deepcopy(again)), one_by_one(leaving), 1e-4)


def test_layers_above_an_exit_are_not_run_when_all_have_left(leaving: Any) -> None:
    ran = []
    leaving.bert.encoder.layer[1].intermediate.register_forward_hook(lambda m, i, o: ran.append(o))
    early_exit.set_entropy(leaving, 10.0)
    logits(leaving)
    assert not ran
    leaving.train()  # where every row sees every layer
    logits(leaving)
    assert ran


def test_a_base_model_with_exits_has_all_states(leaving: Any, tmp_path: Path) -> None:
    early_exit.set_entropy(leaving, 10.0)
    leaving.save_pretrained(tmp_path)
    base = bt.load(str(tmp_path), device="cpu").model
    assert base(**tiny.inputs()).last_hidden_state.shape == (3, 9, 24)


def test_exits_that_cannot_be_are_refused(model: Any, leaving: Any) -> None:
    for layers, entropy in (([2], 0.1), ([], 0.1), ([0], -1.0)):
        with pytest.raises(BertologyError):
            early_exit.add_exits(tiny.model("bert", "classification"), layers, entropy=entropy)
    with pytest.raises(CapabilityError, match="cannot be given"):
        early_exit.add_exits(leaving, [0])
    with pytest.raises(CapabilityError, match="no loss"):
        leaving(**tiny.inputs(), labels=torch.zeros(3, dtype=torch.long))
    with pytest.raises(CapabilityError, match="early exit"):
        Encoder(leaving).run(tiny.inputs())


def test_rows_or_tokens_are_left_out_of_a_quantised_model(leaving: Any, tmp_path: Path) -> None:
    quantised.quantise(leaving, activations=8)
    assert leaving.bert.encoder.layer[0].forward.usual is not None
    close(logits(opened(leaving, tmp_path / "rows")), logits(leaving))
    with pytest.raises(CapabilityError, match="early exit"):
        eliminated_tokens.eliminate(leaving, [6, 5, 4])
    other = eliminated_tokens.eliminate(tiny.model("bert", "classification"), [6, 5, 4])
    quantised.quantise(other)
    close(logits(opened(other, tmp_path / "tokens")), logits(other))


# Inputs of 8 bits ---------------------------------------------------------------------------------


def with_longer_rows(inputs: dict[str, Tensor], more: int) -> dict[str, Tensor]:
    return {name: nn.functional.pad(value, (0, more)) for name, value in inputs.items()}


def in_eight_bits(model: Any, *, low: bool = False, **how: Any) -> Any:
    """Ranges are learnt from other texts than those that are asked about."""
    if low:
        low_rank.factorise(model, 8)
    ranges = input_ranges.watched_ranges(model, [tiny.inputs(batch=4, seed=s) for s in range(1, 9)])
    return quantised.quantise(model, activations=8, ranges=ranges, **how)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("bert", {}),
        ("bert", {"low": True}),
        ("bert", {"bits": 4, "scheme": "groups", "groups": 4}),
        ("roberta", {}),
        ("distilbert", {}),
        ("albert", {}),
    ],
    ids=str,
)
def test_company_and_padding_change_no_answer_in_fixed_ranges(
    name: str, how: dict[str, Any], tmp_path: Path
) -> None:
    original = tiny.model(name, "classification")
    asked = tiny.inputs()
    model = in_eight_bits(copy.deepcopy(original), **how)
    together = logits(model)
    assert (together - logits(original)).abs().max() > 1e-4
    close(together, one_by_one(model))
    close(logits(model, with_longer_rows(asked, 5)), together)
    again = opened(model, tmp_path)
    assert torch.equal(logits(again), together)
    close(logits(copy.deepcopy(again)), one_by_one(again))
    plain = copy.deepcopy(again)
    with torch.enable_grad():  # in float
        close(plain(**asked).logits.detach(), together, 0.02)


def test_in_ranges_of_the_batch_company_changes_answers(model: Any) -> None:
    quantised.quantise(model, activations=8)
    assert (logits(model) - one_by_one(model)).abs().max() > 1e-4


def test_exits_are_reached_when_ranges_are_learnt(leaving: Any) -> None:
    early_exit.set_entropy(leaving, 10.0)  # all leave at the first exit
    batches = [tiny.inputs(seed=s) for s in range(4)]
    ranges = input_ranges.watched_ranges(leaving, batches)
    assert "encoder.layer.2.output.dense" in ranges
    assert "early_exits.heads.1.out" in ranges
    quantised.quantise(leaving, activations=8, ranges=ranges)
    close(logits(leaving), one_by_one(leaving))


def test_a_map_that_no_text_reached_rounds_in_a_range_of_its_own(model: Any) -> None:
    ranges = input_ranges.watched_ranges(model, [tiny.inputs()])
    expected = logits(quantised.quantise(copy.deepcopy(model), activations=8, ranges=ranges))
    del ranges["encoder.layer.1.attention.self.query"]
    found = quantised.quantise(copy.deepcopy(model), activations=8, ranges=ranges)
    assert found.bert.encoder.layer[1].attention.self.query.span() is None
    close(logits(found), expected, 0.05)


# A BiLSTM -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [False, True])
def test_a_bilstm_is_a_classifier_that_padding_does_not_touch(pairs: bool, tmp_path: Path) -> None:
    tokenizer = tiny.tokenizer(["good", "bad", "film", "very"])
    vectors = torch.randn(9, 6, generator=torch.Generator().manual_seed(1))
    model = bilstm.make(vectors, labels=3, hidden=5, pair_tokens=(2, 3) if pairs else None)
    tokenizer.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    encoder = bt.load(str(tmp_path), head="saved", device="cpu")
    assert encoder.head == "classification"
    texts = [("good film", "bad"), ("bad", "very good film"), ("film film", "bad bad")]
    asked: Any = texts if pairs else [a for a, _ in texts]
    batch = encoder.encode(asked)
    together = logits(encoder.model, batch.inputs)
    assert together.shape == (3, 3)
    close(together, logits(model, batch.inputs))
    alone = [logits(encoder.model, encoder.encode([text]).inputs) for text in asked]
    close(together, torch.cat(alone))
    close(encoder.model.get_input_embeddings().weight, vectors)
    with pytest.raises(CapabilityError):
        encoder.require("patterns")


def test_a_bilstm_is_drawn_by_its_generator_and_learns() -> None:
    vectors = torch.randn(9, 6)
    drawn = [
        bilstm.make(vectors, labels=2, generator=torch.Generator().manual_seed(s))
        for s in (1, 1, 2)
    ]
    assert torch.equal(drawn[0].dense.weight, drawn[1].dense.weight)
    assert not torch.equal(drawn[0].dense.weight, drawn[2].dense.weight)
    inputs = {"input_ids": torch.tensor([[2, 5, 3], [2, 6, 3]])}
    nn.functional.cross_entropy(drawn[0](**inputs).logits, torch.tensor([0, 1])).backward()
    assert drawn[0].bilstm.lstm.weight_hh_l0_reverse.grad is not None
