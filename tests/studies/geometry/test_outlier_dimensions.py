"""Outlier dimensions: those that carry the answer, those that carry nothing, and none at all."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import planted
import planted_outliers as outliers
import tiny
from bertology.cli.results import show_result
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.hidden_words import HiddenWords
from bertology.model.outliers import weight_outliers
from bertology.model.weight_edits import ZeroLastOperation
from bertology.results.result import Result
from bertology.stats.partial_means import partial_means
from bertology.studies.geometry.outlier_dimensions.questions import (
    DRAW,
    LONE,
    SINGLE,
    TOGETHER,
    DimensionSet,
    Uninformed,
    dimension_sets,
)
from bertology.studies.geometry.outlier_dimensions.scores import Effects
from result_conformance import ResultConformance, claims_of


def drawn(chosen: list[int], width: int, draws: int = 30, kind: str = DRAW) -> list[set[int]]:
    sets = dimension_sets(chosen, width, draws=draws, seed=3)
    return [set(s.dimensions) for s in sets if s.kind == kind]


@pytest.mark.parametrize(("chosen", "width"), [([3], 64), ([3, 9, 60], 192), ([*range(12)], 768)])
def test_no_dimension_is_in_two_sets(chosen: list[int], width: int) -> None:
    found = drawn(chosen, width)
    assert len(found) == 30
    assert all(len(one) == len(chosen) for one in found)
    assert len(set().union(set(chosen), *found)) == 31 * len(chosen)
    alone = drawn(chosen, width, kind=LONE) if len(chosen) > 1 else found
    assert len(set().union(*alone) - set(chosen)) == 30


def test_there_are_as_many_as_dimensions_allow_and_none_above_one_half() -> None:
    assert len(drawn([0, 1, 2, 3], 40)) == 9
    assert len(drawn([*range(20)], 40)) == 1
    assert drawn([*range(21)], 40) == []


def test_a_random_choice_is_largest_no_more_often_than_any_draw() -> None:
    """Where one dimension rules, a choice of six of 120 holds it in 5 % of all cases."""
    rng, largest = np.random.default_rng(0), 0
    for seed in range(400):
        chosen = rng.choice(120, 6, replace=False).tolist()
        sets = dimension_sets(chosen, 120, draws=30, seed=seed)
        some = [s.dimensions for s in sets if s.watched]
        assert len(some) == 20
        values = [float(7 in one) + 1e-3 * rng.random() for one in some]
        largest += values[0] == max(values)
    assert largest <= 31  # 1 of 20 is 20; more than 31 come in less than 1 % of cases


TEXTS = 200


def effects(rises: np.ndarray) -> Effects:
    """Seven outliers together and each alone; the intact model knows 2 nats."""
    rng = np.random.default_rng(0)
    intact = rng.normal(3, 0.2, TEXTS)
    seen: Any = {
        "losses": np.stack([intact, *(intact + rise for rise in rises)], axis=1),
        "uninformed": np.stack([intact + 2, intact + 2], axis=1),
    }
    sets = [DimensionSet("outliers", TOGETHER, tuple(range(7)))]
    sets += [DimensionSet(f"dimension {i}", SINGLE, (i,)) for i in range(7)]
    return Effects(seen, sets, [70, *[10] * 7], {"level": 0.95, "resamples": 200, "seed": 0})


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.5, (8, TEXTS))


def test_one_outlier_that_breaks_the_model_is_enough() -> None:
    rises = noise(1)
    rises[[0, 3]] += 1.6
    found = effects(rises).knowledge_lost(10)
    assert found is not None
    assert found.low > 0.5
    assert abs(found.value - 0.8) < 0.1


def test_the_largest_of_nothing_is_nothing() -> None:
    lost = [effects(noise(seed)).knowledge_lost(10) for seed in range(40)]
    assert abs(np.mean([one.value for one in lost if one])) < 0.01
    assert sum(one.low > 0 for one in lost if one) <= 4
    assert effects(noise(0)).fewest_touched() == 10


def test_true_frequencies_are_no_knowledge() -> None:
    """They beat what was counted on as many other texts, and that must not count as knowledge."""
    kinds, said, beaten = 2000, 0, 0
    odds = 1 / np.arange(1, kinds + 1)
    odds /= odds.sum()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        texts = rng.choice(kinds, (2, 100, 12), p=odds)
        own, others = (np.bincount(t.ravel(), minlength=kinds).astype(float) for t in texts)
        asked = texts[0, :, :2]
        blind = Uninformed(own, others, np.ones(kinds, bool)).losses(asked).mean(axis=1)
        losses = -np.log(odds[asked]).mean(axis=1)
        seen: Any = {"losses": np.stack([losses, losses + 1], axis=1), "uninformed": blind}
        sets = [DimensionSet("outliers", TOGETHER, (0,))]
        found = Effects(seen, sets, [10], {"level": 0.95, "resamples": 200, "seed": 0})
        assert found.knowledge() is not None
        said += found.knows or found.knowledge_lost() is not None
        most = partial_means((blind[:, 1] - losses)[None], resamples=200).estimate(0)
        beaten += most is not None and most.low > 0
    assert said == 0
    assert beaten > 15


def test_what_cannot_be_asked_for_gets_nothing() -> None:
    possible = np.array([True, True, False, False])
    blind = Uninformed(np.array([3.0, 1, 0, 0]), np.array([1.0, 0, 0, 0]), possible)
    odds = np.exp(-blind.losses(np.array([0, 1])))
    assert np.allclose(odds[:, 0], [0.75, 0.25])
    assert np.allclose(odds.sum(axis=0), 1)


def test_the_share_lost_is_bounded_by_the_least_and_the_most_that_is_known() -> None:
    rises = np.full((1, TEXTS), 1.0)
    found = effects(np.concatenate([rises, noise(0)[1:]]))
    found.seen["uninformed"][:, 1] += 2
    lost, known = found.knowledge_lost(), found.knowledge()
    assert lost is not None
    assert known is not None
    assert (lost.low, lost.value, lost.high) == pytest.approx((1 / 4, 1 / 3, 1 / 2), rel=0.02)
    assert (known.low, known.value, known.high) == pytest.approx((2, 3, 4), rel=0.02)


_QUICK = {"resamples": 200}
WIDE = 768  # so many weights that those of the outliers are below a ten-thousandth of all
COST = "nuggets-outliers.disabling-outliers-costs-more-than-random-dimensions"
BREAKS = "nuggets-outliers.a-ten-thousandth-of-the-weights-breaks-the-model"
MILLIONTH = "nuggets-outliers.a-millionth-of-the-weights-breaks-the-model"
PLACES = "nuggets-outliers.the-same-position-in-all-layers"
MOST = "nuggets-outliers.a-dimension-is-an-outlier-in-most-layers"


def run(made: Any, store: object = "memory://outliers", **how: Any) -> Result:
    asked = {"corpus": outliers.corpus(40), **_QUICK, **how}
    encoder = made if isinstance(made, Encoder) else outliers.encoder(made)
    return bt.run("outlier-dimensions", encoder, store=f"{store}", progress=False, **asked)


@cache
def carried() -> Result:
    return run(outliers.model(wide=WIDE))


class TestResult(ResultConformance):
    measures = frozenset({"norm-outlier", "large-dimension", "sep-intact", "sep-without"})

    @staticmethod
    def make() -> Result:
        return carried()


def test_what_is_sure_is_told_apart_from_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sure rise of the loss is said even where random dimensions may cost as much."""
    result, whole = carried(), carried().evidence()

    def told(rise: float, over: float) -> str:
        found = dict(whole)
        for name, low in (("loss_rise", rise), ("cost_over_random", over)):
            found[name] = replace(whole[name], low=low)
        with monkeypatch.context() as patched:
            patched.setattr(type(result), "evidence", lambda _: found)
            return result.answer

    assert "Surely: without" in told(0.1, 0.1)
    assert "not surely" not in told(0.1, 0.1)
    assert "Surely: without" in told(0.1, -0.1)
    assert "but not surely more than without random ones" in told(0.1, -0.1)
    assert "Nothing is sure" in told(-0.1, -0.1)


def test_what_carries_the_answer_is_found_and_nothing_else() -> None:
    found = carried()
    assert set(found.table("dimensions")["dimension"]) == set(outliers.CARRIERS)
    evidence, outcomes = found.evidence(), claims_of(found)
    for claim in (COST, BREAKS, PLACES, MOST):
        assert outcomes[claim] == "holds", (claim, outcomes)
    assert outcomes[MILLIONTH] == "not-applicable"
    assert "not below 0.0001 %" in found.reasons()["knowledge_lost_millionth"]
    sets = found.table("sets").set_index("set")
    assert evidence["loss_rise"].value > 1
    drawn = found.table("draws")
    assert len(drawn) == 60
    assert (drawn["loss_rise"].abs() < 0.1).all()
    assert sets.loc["outliers", "weights"] == 2 * 2 * outliers.LAYERS
    # Without the outliers all is one word, and right at most half of the time.
    assert sets.loc["intact", "right"] == 1
    assert sets.loc["outliers", "commonest"] == 1
    assert sets.loc["outliers", "entropy"] == pytest.approx(0)
    told = found.table("completions")
    assert (told["intact"] == told["text"]).all()
    assert told["text"].str.contains(r"\[good\]|\[bad\]").all()
    assert (told["random"] == told["text"]).all()
    assert (told["without"] != told["text"]).any()


def test_the_result_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    """Short tables first; completions are printed whole, since they differ at their ends."""
    found = carried()
    assert list(found.tables) == ["sets", "dimensions", "layers", "completions", "draws"]
    sets = found.table("sets").set_index("set")
    assert len(sets) == 4 + 2 + 4
    drawn = found.table("draws").query("kind == 'draw'")
    assert sets.loc["random, most costly of 30", "loss_rise"] == drawn["loss_rise"].max()
    row = sets.loc["outliers"]
    assert np.isfinite(row[["frequency_link", "sep_change", "size_change"]].astype(float)).all()
    assert "related" in {drawing.name for drawing in found.drawings()}
    long = found.table("completions").map(lambda text: f"{text} {'good ' * 9}end")
    show_result(replace(found, tables={**found.tables, "completions": long}))
    assert "end\n  intact: " in capsys.readouterr().out


def test_loud_dimensions_that_carry_nothing_are_found_and_cost_nothing(tmp_path: object) -> None:
    found = run(outliers.model(outliers.SILENT), tmp_path)
    assert set(found.table("dimensions")["dimension"]) == set(outliers.SILENT)
    outcomes = claims_of(found)
    assert outcomes[PLACES] == "holds"
    assert outcomes[COST] != "holds"
    assert outcomes[BREAKS] != "holds"
    assert found.evidence()["loss_rise"].value < 0.1


def test_a_random_model_has_none(tmp_path: object) -> None:
    torch.manual_seed(0)
    made = hf.BertForMaskedLM(outliers.model().config).eval()
    found = run(made, tmp_path)
    assert len(found.table("dimensions")) == 0
    assert "holds" not in claims_of(found).values()
    assert found.reasons()["cost_over_random"].startswith("not judged: no dimension")
    assert found.evidence()["largest_sigma"].value < 3
    assert "exact: no interval" in found.answer


def test_marked_dimensions_that_differ_in_nothing_are_as_random_ones(tmp_path: object) -> None:
    """A scale of 1.001 among scales of 1 is an outlier by the rule, and means nothing."""
    torch.manual_seed(1)
    made = hf.BertForMaskedLM(outliers.model().config).eval()
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            layer.output.LayerNorm.weight[[4, 11]] = 1.001
    found = run(made, tmp_path)
    assert set(found.table("dimensions")["dimension"]) == {4, 11}
    outcomes = claims_of(found)
    held = {claim for claim, outcome in outcomes.items() if outcome == "holds"}
    assert held <= {PLACES, MOST}, outcomes


@pytest.mark.parametrize("by", ["bias", "outliers"])
def test_a_model_that_knows_frequencies_only_cannot_be_broken(tmp_path: object, by: str) -> None:
    """It beats what was counted on a few texts, and all it knows may stand in its outliers."""
    encoder, corpus = outliers.frequency_encoder(by, wide=WIDE // 2), outliers.frequency_corpus(40)
    found = run(encoder, tmp_path, corpus=corpus, draws=19)
    assert set(found.table("dimensions")["dimension"]) == set(outliers.SILENT)
    outcomes, evidence = claims_of(found), found.evidence()
    assert evidence["knowledge"].low < 0 < evidence["knowledge"].high
    assert (evidence["loss_rise"].value > 0.3) == (by == "outliers")
    assert outcomes[BREAKS] == "not-applicable"
    assert found.reasons()["knowledge_lost_ten_thousandth"].startswith(
        "not judged: the intact model does not surely know"
    )
    held = {claim for claim, outcome in outcomes.items() if outcome == "holds"}
    assert held <= {PLACES, MOST, *([COST] if by == "outliers" else [])}, outcomes


def test_outliers_of_the_states_are_found_on_the_other_half(tmp_path: object) -> None:
    made = outliers.model((), scale=1.0)
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            layer.output.LayerNorm.bias[7] = 9.0
    found = run(made, tmp_path, by="states", draws=5)
    assert found.table("dimensions")["dimension"].tolist() == [7]
    study = bt.studies.STUDIES.get("outlier-dimensions")(examples=20)
    texts = outliers.corpus()
    halves = [{e.id for e in half} for half in (study.shown(texts), study.looked_at(texts))]
    assert not halves[0] & halves[1]
    assert len(halves[0] | halves[1]) == 20


def test_it_equals_weights_set_to_zero_by_hand(tmp_path: object) -> None:
    """Another copy of the model, whose entries are zeroed, gives the loss that the study tells."""
    made, found = outliers.model(wide=WIDE), carried()
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            for parameter in layer.output.LayerNorm.parameters():
                parameter[list(outliers.CARRIERS)] = 0
    by_hand = run(made, tmp_path, draws=0)
    assert by_hand.tables.keys() == {"layers", "dimensions"}
    study = type(bt.studies.STUDIES.get("outlier-dimensions")())
    from bertology.studies.study import Context

    texts = outliers.corpus(40)
    part = study(draws=0).measure(
        outliers.encoder(made), texts, "examples-000000-000020", Context()
    )
    sets = found.table("sets").set_index("set")
    assert float(part["losses"].mean()) == pytest.approx(sets.loc["outliers", "loss"], rel=1e-4)


def test_a_classifier_is_judged_by_its_task(tmp_path: object) -> None:
    made = planted.model()
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            weight = layer.output.LayerNorm.weight
            weight += 0.01 * torch.randn(weight.shape)
            weight[1] *= 1.5  # the answer
    encoder = Encoder(made, planted.tokenizer(), name="planted", head="classification")
    # 16 wide: 15 other dimensions are too few draws for 95 %.
    found = run(encoder, tmp_path, corpus=planted.corpus(60), level=0.9)
    sets = found.table("sets").set_index("set")
    assert sets.loc["intact", "right"] > 0.9
    assert sets.loc["outliers", "right"] < 0.8
    assert claims_of(found)[COST] == "holds"


def test_where_dimensions_do_not_suffice_for_draws_this_is_said(tmp_path: object) -> None:
    made = planted.model()
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            layer.output.LayerNorm.weight[1] = 5.0
    encoder = Encoder(made, planted.tokenizer(), name="planted", head="classification")
    for draws, why in ((30, "only 15 sets of as many"), (5, "at a level of 95 % 19 draws")):
        found = run(encoder, tmp_path, corpus=planted.corpus(8), draws=draws)
        assert claims_of(found)[COST] == "not-applicable"
        assert why in found.reasons()["cost_over_random"]
        assert why in found.reasons()["frequency_over_random"]


def test_few_texts_and_families_without_norms_are_refused(tmp_path: object) -> None:
    with pytest.raises(DataError, match="four or more"):
        run(outliers.model(), tmp_path, corpus=outliers.corpus(3))
    encoder = outliers.encoder(outliers.model())
    stack = encoder.family.stacks["encoder"]
    bare = type(stack)(stack.block, stack.attention)
    encoder.family = type(encoder.family)("bert", "Bare", {"encoder": bare})
    with pytest.raises(CapabilityError, match="no LayerNorm"):
        run(encoder, tmp_path)


def test_the_study_of_before_is_named_where_it_went() -> None:
    with pytest.raises(UnknownNameError, match=r"(?s)norm-outliers.*outlier-dimensions"):
        bt.studies.STUDIES.get("norm-outliers")


FAMILIES = (
    "bert", "roberta", "electra", "distilbert", "albert", "mobilebert", "modernbert", "mpnet",
    "deberta", "xlnet", "xlm", "gpt2", "bart", "t5",
)  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_planted_outliers_are_found_and_zeroed_in_every_family(family: str) -> None:
    encoder = Encoder(tiny.model(family), name=family)
    chosen = [5, 17]
    stack = encoder.family.stacks[encoder.family.main_stack]
    template = stack.mlp if stack.pre_norm else stack.norms["output"]
    assert template is not None
    with torch.no_grad():
        for layer in range(encoder.shape.layers):
            module: Any = encoder.module(template, layer)
            rows = module.weight
            if rows.dim() == 2 and not isinstance(module, torch.nn.Linear):
                rows = rows.T  # transformers' Conv1D
            rows[chosen] = rows[chosen].abs() * 3 + 3
    found = weight_outliers(encoder)
    assert found is not None
    assert sorted(found.in_most_layers()) == chosen
    before = {n: p.detach().clone() for n, p in encoder.model.named_parameters()}
    edit = ZeroLastOperation(chosen)
    changed = edit.weights(encoder)
    differing = sum(int((before[n] != t).sum()) for n, t in changed.items())
    zeros = sum(int((t == 0).sum() - (before[n] == 0).sum()) for n, t in changed.items())
    assert differing == zeros <= edit.touched(encoder)
    with torch.no_grad():
        site = f"layer.{encoder.shape.layers - 1}.residual"
        seen = encoder.run(tiny.inputs(), do=edit, record=[site])
    if not stack.pre_norm:
        assert float(seen[site][..., chosen].abs().max()) == 0
    assert all(torch.equal(before[n], p) for n, p in encoder.model.named_parameters())


def _trained(family: str) -> Encoder:
    """A tiny model, loud in one dimension, that learns for a moment to tell hidden words."""
    prefix, size = tiny.ROWS[family]
    named = {"gpt2": "GPT2LMHeadModel"}
    torch.manual_seed(0)
    small = {"vocab_size": 5 + len(outliers.WORDS), "pad_token_id": 0}
    config = getattr(hf, f"{prefix}Config")(**{**size, **small})
    made = getattr(hf, named.get(family, f"{prefix}ForMaskedLM"))(config)
    head = "causal" if family == "gpt2" else "mlm"
    encoder = outliers.encoder(made, head)
    stack = encoder.family.stacks[encoder.family.main_stack]
    template = stack.mlp if stack.pre_norm else stack.norms["output"]
    assert template is not None
    with torch.no_grad():
        for layer in range(encoder.shape.layers):
            module: Any = encoder.module(template, layer)
            weight = module.weight if module.weight.dim() == 1 else module.weight.T  # Conv1D
            weight[5] *= 4 if weight.dim() == 1 else 8
    batch = encoder.encode(outliers.corpus(16))
    ids = batch.inputs["input_ids"]
    masked = ids.clone()
    if head == "mlm":
        masked[:, 2] = encoder.tokenizer.mask_token_id
    optimizer = torch.optim.Adam(made.parameters(), lr=5e-3)
    made.eval()  # without dropout it learns in fewer steps
    for _ in range(100):
        given = {"input_ids": masked, "attention_mask": batch.inputs["attention_mask"]}
        logits = made(**given).logits
        seen = logits[:, 2 if head == "mlm" else 1]
        loss = torch.nn.functional.cross_entropy(seen, ids[:, 2])
        if float(loss.detach()) < 0.2:
            break
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return encoder


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "distilbert", "gpt2"])
def test_trained_families_lose_more_with_their_outliers(family: str) -> None:
    encoder = _trained(family)
    found = weight_outliers(encoder)
    assert found is not None
    assert found.in_most_layers() == [5]
    batch = encoder.encode(outliers.corpus(40, seed=1))
    places = np.full((40, 1), 2)
    words = HiddenWords(encoder, batch, places, np.ones((40, 1), bool))
    rng = np.random.default_rng(0)
    drawn = [[int(d)] for d in rng.choice(np.setdiff1d(np.arange(24), [5]), 6, replace=False)]
    losses = [
        words.predict(*([ZeroLastOperation(d)] if d else [])).losses.mean()
        for d in ([], [5], *drawn)
    ]
    assert losses[0] < 0.5
    # GPT-2 copies the word before by attention alone, and needs no MLP for it.
    assert family == "gpt2" or losses[1] > np.mean(losses[2:])


def test_a_model_that_predicts_nothing_is_looked_at_by_its_states(tmp_path: object) -> None:
    made = tiny.model("xlnet")
    with torch.no_grad():
        for layer in made.layer:
            layer.ff.layer_norm.weight[3] = 5.0
    found = run(Encoder(made, outliers.tokenizer(), name="xlnet"), tmp_path)
    assert found.table("dimensions")["dimension"].tolist() == [3]
    assert found.reasons()["cost_over_random"].startswith("not judged: this model predicts")
    assert found.table("sets")["loss"].isna().all()
    assert "frequency_over_random" in found.evidence()
