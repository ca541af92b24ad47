"""What each loss shows the body and asks of it, told again by plain loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import tiny_rows
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.losses import LossInput
from bertology.train.pretrain.losses.boundary import span_ends
from bertology.train.pretrain.losses.order import NgramOrder
from bertology.train.pretrain.losses.replaced import _drawn

# -- boundary


def _span(view: LossInput, row: int, at: int) -> tuple[int, int]:
    """The span a chosen token is in, by walking left and right."""
    chosen, unit = view.hidden.chosen[row].tolist(), view.hidden.unit[row].tolist()
    first = last = at
    while chosen[first - 1] and unit[first - 1] == unit[at]:
        first -= 1
    while chosen[last + 1] and unit[last + 1] == unit[at]:
        last += 1
    return first, last


@pytest.mark.parametrize("units", ["tokens", "words", "ngrams", "spans"])
def test_ends_of_spans(units: str) -> None:
    view = tiny_rows.view(tiny_rows.rows(8, 32), units=units, share=0.5)
    first, last = span_ends(view.hidden)
    spans = set()
    for row, at in view.hidden.chosen.nonzero().tolist():
        spans.add(_span(view, row, at))
        assert (first[row, at], last[row, at]) == _span(view, row, at)
    assert units == "tokens" or any(b > a for a, b in spans)


def test_spans_that_touch_stay_apart() -> None:
    view = tiny_rows.view(tiny_rows.rows(1))
    chosen = torch.zeros(1, 16, dtype=torch.bool)
    chosen[0, [1, 2, 3, 4, 6]] = True
    unit = torch.tensor([[0, 1, 1, 3, 3, 3, 3, *range(7, 16)]])
    first, last = span_ends(replace(view.hidden, chosen=chosen, unit=unit))
    assert first[0, [1, 2, 3, 4, 6]].tolist() == [1, 1, 3, 3, 6]
    assert last[0, [1, 2, 3, 4, 6]].tolist() == [2, 2, 4, 4, 6]


def test_boundary_tells_tokens_from_both_sides_and_the_place() -> None:
    view = tiny_rows.view(tiny_rows.rows(), units="spans", share=0.4)
    judge, body = tiny_rows.loss("boundary"), tiny_rows.model(spread=0.3)
    ran = tiny_rows.run(judge, body, view)
    each = []
    for row, at in view.hidden.chosen.nonzero().tolist():
        first, last = _span(view, row, at)
        place = judge.get_submodule("place")(torch.tensor(at - first))
        sides = torch.cat([ran.states[row, first - 1], ran.states[row, last + 1], place])
        logits = body.cls.predictions.decoder(judge.get_submodule("mix")(sides))
        each.append(functional.cross_entropy(logits, view.rows.ids[row, at]))
    assert ran.outcome.count == len(each)
    assert ran.outcome.loss.item() == pytest.approx(torch.stack(each).mean().item(), rel=1e-5)


# -- order


def _told_apart(view: LossInput) -> LossInput:
    """Every token another one, so that it is clear where each came from."""
    batch, length = view.rows.ids.shape
    ids = torch.arange(batch * length).view(batch, length) + 1000
    rows = replace(view.rows, ids=torch.where(view.rows.fixed, view.rows.ids, ids))
    seen = torch.where(view.hidden.chosen, tiny_rows.MASK, rows.ids)
    return LossInput.masked(rows, replace(view.hidden, ids=seen), view.pieces)


def test_order_shuffles_trigrams_of_what_is_seen() -> None:
    view = _told_apart(tiny_rows.view(tiny_rows.rows(8, 32), share=0.15))
    judge = NgramOrder(0.3)
    ready = judge.prepare(view, None, Chance(3))
    places, targets, weights = ready.notes["order"]
    before, after = view.inputs["input_ids"], ready.inputs["input_ids"]
    kinds = set()
    for row in range(8):
        used = [int(p) for p, w in zip(places[row], weights[row], strict=True) if w]
        assert len(set(used)) == len(used)
        for i in range(0, len(used), 3):
            at = used[i : i + 3]
            assert at == [at[0], at[0] + 1, at[0] + 2]
            assert not view.rows.fixed[row, at].any()
            assert not view.hidden.chosen[row, at].any()
            old, new = before[row, at].tolist(), after[row, at].tolist()
            assert sorted(old) == sorted(new)
            assert old != new
            kinds.add(tuple(new.index(token) for token in old))
        rest = [p for p in range(32) if p not in used]
        assert before[row, rest].equal(after[row, rest])
    assert len(kinds) == 5
    assert targets.equal(view.rows.ids.gather(1, places))


def test_order_shuffles_the_share_that_was_asked_for() -> None:
    view = tiny_rows.view(tiny_rows.rows(600, 64), share=0.15)
    places, _, weights = NgramOrder(0.05).prepare(view, None, Chance(0)).notes["order"]
    share = weights.sum() / (~view.rows.fixed).sum()
    assert share.item() == pytest.approx(0.05, rel=0.05)
    starts = places[:, ::3][weights[:, ::3] > 0]
    counts = torch.bincount(starts % 3, minlength=3).double()  # no place in a row is left out
    assert counts.min() > 0.8 * counts.mean()


def test_order_with_nothing_to_shuffle() -> None:
    rows = tiny_rows.rows()
    rows = replace(rows, fixed=torch.ones_like(rows.fixed))
    judge, view = tiny_rows.loss("order"), tiny_rows.view(rows)
    ran = tiny_rows.run(judge, tiny_rows.model(), view)
    assert ran.view.inputs["input_ids"].equal(view.inputs["input_ids"])
    assert ran.outcome.loss == ran.outcome.count == 0


# -- permutation


def _when(view: LossInput, seed: int = 0) -> Tensor:
    return Chance(seed)("order").uniform(*view.rows.at)


def _may_see(view: LossInput, row: int, one: int, other: int) -> bool:
    """Whether `one` attends to `other`; numbers from T on are queries."""
    length = view.rows.ids.shape[1]
    hidden, when = view.hidden, _when(view)[row]
    assert view.rows.real is not None
    if other >= length:
        return one == other
    if not view.rows.real[row, other]:
        return False
    if one >= length and not hidden.weights[row, one - length]:
        return False
    if not hidden.chosen[row, other]:
        return True
    if one >= length:
        return bool(when[other] < when[hidden.positions[row, one - length]])
    return bool(hidden.chosen[row, one] and when[other] <= when[one])


def test_permutation_shows_the_text_and_its_queries() -> None:
    rows = tiny_rows.rows(3)
    view = tiny_rows.view(replace(rows, positions=torch.arange(16).flip(0).expand(3, -1)))
    inputs = tiny_rows.loss("permutation").prepare(view, tiny_rows.model(), Chance(0)).inputs
    asked = view.hidden.positions
    room = asked.shape[1]
    assert (view.hidden.weights == 0).any()
    assert inputs["input_ids"][:, :16].equal(rows.ids)
    assert inputs["input_ids"][:, 16:].eq(tiny_rows.MASK).all()
    for row in range(3):
        for k in range(room):
            at = int(asked[row, k])
            assert inputs["position_ids"][row, 16 + k] == 15 - at
            assert inputs["token_type_ids"][row, 16 + k] == rows.segments[row, at]
        for one in range(16 + room):
            seen = [_may_see(view, row, one, other) for other in range(16 + room)]
            assert inputs["attention_mask"][row, 0, one].eq(0).tolist() == seen
            assert any(seen)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_permutation_does_not_leak(attention: str) -> None:
    view = tiny_rows.view(tiny_rows.rows(2), share=0.4)
    judge, body = tiny_rows.loss("permutation"), tiny_rows.model(spread=0.4, attention=attention)

    def queries(of: LossInput) -> Tensor:
        return tiny_rows.run(judge, body, of).states[:, 16:]

    before = queries(view)
    for row in range(2):
        asked = view.hidden.positions[row][view.hidden.weights[row] > 0]
        order = _when(view)[row, asked].argsort()  # slots, in the order they are told
        for turn, slot in enumerate(order):
            ids = view.rows.ids.clone()
            ids[row, asked[slot]] = (ids[row, asked[slot]] + 1) % 30 + 5
            after = queries(LossInput.masked(replace(view.rows, ids=ids), view.hidden, view.pieces))
            differs = (after[row] - before[row]).abs().amax(-1)
            assert differs[order[: turn + 1]].max() < 1e-6
            assert (differs[order[turn + 1 :]] > 1e-4).all()
            assert after[1 - row].allclose(before[1 - row], atol=1e-6)


def test_permutation_is_the_same_in_both_kinds_of_attention() -> None:
    view = tiny_rows.view(tiny_rows.rows())
    judge = tiny_rows.loss("permutation")
    one, two = (
        tiny_rows.run(judge, tiny_rows.model(spread=0.3, attention=kind), view).outcome.loss
        for kind in ("sdpa", "eager")
    )
    assert one.item() == pytest.approx(two.item(), rel=1e-5)


def test_permutation_judges_the_queries() -> None:
    view = tiny_rows.view(tiny_rows.rows())
    body = tiny_rows.model(spread=0.3)
    ran = tiny_rows.run(tiny_rows.loss("permutation"), body, view)
    each = [
        functional.cross_entropy(
            body.cls.predictions(ran.states[row, 16 + k]), view.hidden.targets[row, k]
        )
        for row, k in view.hidden.weights.nonzero().tolist()
    ]
    assert ran.outcome.count == len(each)
    assert ran.outcome.loss.item() == pytest.approx(torch.stack(each).mean().item(), rel=1e-5)


# -- replaced


def test_replaced_shows_what_the_generator_drew() -> None:
    view = tiny_rows.view(tiny_rows.rows())
    judge, body = tiny_rows.loss("replaced"), tiny_rows.model(spread=0.3)
    ran = tiny_rows.run(judge, body, view)
    logits = judge.generator(**view.inputs).logits  # (B, T, V)
    chance, generator, decisions, right = Chance(0)("fill"), [], [], 0
    for row, at in (~view.rows.fixed).nonzero().tolist():
        token, was = ran.view.inputs["input_ids"][row, at], view.rows.ids[row, at]
        if view.hidden.chosen[row, at]:
            where = view.rows.index[row], torch.tensor(at), torch.arange(tiny_rows.VOCAB)
            u = chance.uniform(*(w.reshape(-1) for w in where))
            assert token == (logits[row, at] - (-u.log()).log()).argmax()
            generator.append(functional.cross_entropy(logits[row, at], was))
        else:
            assert token == was
        score = judge.get_submodule("head")(ran.states[row, at])[0]
        decisions.append(-functional.logsigmoid(score if token != was else -score))
        right += int((score > 0) == (token != was))
    want = torch.stack(generator).mean() + 50 * torch.stack(decisions).mean()
    assert ran.outcome.loss.item() == pytest.approx(want.item(), rel=1e-5)
    assert ran.outcome.count == len(decisions)
    assert ran.outcome.correct == right
    assert ran.view.inputs["input_ids"][view.rows.fixed].equal(view.rows.ids[view.rows.fixed])


def test_what_the_generator_guesses_right_is_not_replaced() -> None:
    view = tiny_rows.view(tiny_rows.rows())
    judge, body = tiny_rows.loss("replaced"), tiny_rows.model()
    row, at = view.hidden.chosen.nonzero()[0].tolist()
    bias = judge.generator.cls.predictions.bias
    with torch.no_grad():
        bias[view.rows.ids[row, at]] = 1000.0  # it will always say this
    seen = judge.prepare(view, body, Chance(0)).inputs["input_ids"]
    assert (seen[view.hidden.chosen] == view.rows.ids[row, at]).all()
    with torch.no_grad():
        judge.get_submodule("head.2").weight.zero_()
        judge.get_submodule("head.2").bias.fill_(-1.0)  # it calls nothing replaced
    outcome = tiny_rows.run(judge, body, view).outcome
    assert outcome.count - outcome.correct == (seen != view.rows.ids).sum()
    assert seen[row, at] == view.rows.ids[row, at]


def test_decisions_do_not_teach_the_generator() -> None:
    view = tiny_rows.view(tiny_rows.rows())
    grads = []
    for weight in (0.0, 1.0):
        judge, body = tiny_rows.loss("replaced"), tiny_rows.model()
        with torch.no_grad():
            judge.get_submodule("head.2").weight.mul_(weight)  # 0: decisions are all alike
        tiny_rows.run(judge, body, view).outcome.loss.backward()
        grads.append(judge.generator.bert.embeddings.word_embeddings.weight.grad)
    assert grads[0].equal(grads[1])
    assert grads[0].abs().sum() > 0


def test_tokens_are_drawn_by_their_chances() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])
    positions = torch.arange(100).expand(200, -1)
    drawn = _drawn(logits.expand(200 * 100, -1), torch.arange(200)[:, None], positions, Chance(5))
    shares = torch.bincount(drawn.flatten(), minlength=4) / drawn.numel()
    assert shares.allclose(logits.softmax(0), atol=0.012)
    # Neighbours are drawn independently of each other.
    same = torch.stack([drawn[:, a] == drawn[:, b] for a, b in pairwise(range(100))])
    assert same.float().mean().item() == pytest.approx(
        (logits.softmax(0) ** 2).sum().item(), abs=0.015
    )


def test_the_generator_is_smaller_and_fits_its_heads() -> None:
    from bertology.train.fresh import Architecture
    from bertology.train.pretrain.losses.replaced import ReplacedTokens

    for heads, hidden, width in ((1, 8, 4), (2, 16, 8), (3, 15, 7), (6, 30, 15)):
        size = Architecture(layers=3, heads=heads, hidden=hidden, max_length=16)
        config = ReplacedTokens(size, 50).generator.config
        assert (config.hidden_size, config.num_hidden_layers) == (width, 1)
        assert config.hidden_size % config.num_attention_heads == 0


def test_labels_in_place_of_segments_reach_only_the_body() -> None:
    view = tiny_rows.view(tiny_rows.rows())
    labels = torch.full_like(view.rows.segments, 5)
    labelled = replace(view, inputs={**view.inputs, "token_type_ids": labels})
    ready = tiny_rows.loss("replaced").prepare(labelled, None, Chance(0))
    assert ready.inputs["token_type_ids"].equal(labels)
