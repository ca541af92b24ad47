"""Subnetworks: planted ones are good, what they leave is bad, and equal ones are not told apart."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import bertology as bt
import planted
import planted_parts
import tiny
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import ParameterError
from bertology.model.encoder import Encoder
from bertology.model.part_masks import PartMask, parts_gated
from bertology.model.rival_masks import bad_parts, bad_weights, random_parts, random_weights
from bertology.model.weight_masks import WeightMask
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.results.verdicts import settling_text
from bertology.studies.pruning.subnetworks import (
    METHODS,
    Subnetworks,
    SubnetworksResult,
)
from bertology.studies.study import Context
from bertology.train import iterative_pruning
from bertology.train.finetune import FinetuneSettings
from bertology.train.iterative_pruning import Importance, PruningJob
from bertology.train.starts import STARTS
from bertology.train.subnetworks import answers_on, measure_cut, retrained
from bertology.train.tuning import TuningJob, tune
from made_subnetworks import made_up
from result_conformance import ResultConformance, told

# Masks -------------------------------------------------------------------------------------------


def weights(share: float, seed: int = 0) -> WeightMask:
    rng = np.random.default_rng(seed)
    return WeightMask.of({"a": rng.random((40, 30)) < share, "b": rng.random((20, 50)) < share / 2})


def places(mask: WeightMask) -> set[tuple[str, int]]:
    return {(n, int(i)) for n in mask.shapes for i in np.flatnonzero(mask.keeps(n))}


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_bad_weights_are_those_that_went_and_a_few_others(share: float) -> None:
    good = weights(share)
    survived = places(good)
    gone = {(n, i) for n in good.shapes for i in range(good.keeps(n).size)} - survived
    bad, other = (places(bad_weights(good, seed=s)) for s in (1, 2))
    assert len(bad) == len(survived)
    assert bad != other
    assert bad == places(bad_weights(good, seed=1))
    if len(gone) < len(survived):
        assert gone <= bad
    else:
        assert bad <= gone


def test_random_weights_are_as_many_and_from_everywhere() -> None:
    good = weights(0.5)
    drawn = random_weights(good, seed=3)
    assert drawn.kept == good.kept
    # By chance a share of the good ones is among them, as of all weights.
    both = len(places(drawn) & places(good))
    assert both == pytest.approx(good.kept * good.share, abs=4 * math.sqrt(good.kept / 4))
    assert drawn.kept_in("b") > good.kept_in("b") * 1.3  # over the whole model, not by matrix


def test_bad_parts_are_those_that_went_and_a_few_others() -> None:
    full = PartMask(np.ones((3, 4), bool), np.ones(3, bool))
    good = PartMask(np.arange(12).reshape(3, 4) < 8, np.array([True, False, False]))
    for seed in range(20):
        bad, drawn = bad_parts(good, full, seed=seed), random_parts(good, full, seed=seed)
        assert bad.heads.sum() == drawn.heads.sum() == 8
        assert bad.mlps.sum() == drawn.mlps.sum() == 1
        assert (bad.heads[~good.heads]).all()  # all four that went, and four of the others
        assert not (bad.mlps & good.mlps).any()
    often = np.mean([random_parts(good, full, seed=s).heads for s in range(300)], axis=0)
    assert np.abs(often - 8 / 12).max() < 0.12


# Training ----------------------------------------------------------------------------------------


def quiet(encoder: Encoder) -> Encoder:
    """Without dropout, which cut and gated models draw differently."""
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        setattr(encoder.config, name, 0.0)
    return encoder


def job(encoder: Encoder, **settings: object) -> PruningJob:
    how = FinetuneSettings(epochs=1, batch_size=8, learning_rate=1e-3, **settings)  # type: ignore[arg-type]
    learn, decide = planted_parts.corpus(60, seed=1), planted_parts.corpus(30, seed=2)
    tuning = TuningJob(encoder, learn, decide, STARTS["pretrained"], how)
    return PruningJob(tuning, planted_parts.corpus(40, seed=3), "accuracy", Importance())


def test_training_what_is_cut_is_training_behind_closed_gates() -> None:
    """An independent way to the same model: nothing is cut, gates stand at zero."""
    encoder = quiet(planted_parts.encoder())
    encoder.new_weights = [n for n, _ in encoder.model.named_parameters() if "pooler" in n]
    asked = job(encoder)
    heads = np.ones((3, 4), bool)
    heads[0, :3], heads[2, 1] = False, False
    mask = PartMask(heads, np.array([True, True, False]))
    cut = retrained(asked, mask)

    def held(model: object) -> object:
        return parts_gated(Encoder(model, encoder.tokenizer, head="classification"), mask)

    gated, _ = tune(asked.tuning, held=held)  # type: ignore[arg-type]
    kept, same = dict(cut.named_parameters()), dict(gated.named_parameters())
    for name in ("classifier.weight", "bert.pooler.dense.weight",
                 "bert.encoder.layer.1.attention.self.query.weight"):  # fmt: skip
        np.testing.assert_allclose(
            kept[name].detach().numpy(), same[name].detach().numpy(), atol=2e-5
        )
    assert kept["bert.encoder.layer.0.attention.self.query.weight"].shape == (4, 16)
    assert not kept["bert.encoder.layer.2.output.dense.bias"].detach().any()  # it adds nothing
    found = measure_cut(cut, asked.tuning, asked.report)
    assert found.reloaded
    assert 0.5 < found.memory < 1
    assert found.speed > 0


def test_weights_that_are_gone_stay_gone() -> None:
    asked = job(planted_parts.encoder())
    good = WeightMask.full(planted_parts.model())
    bad = random_weights(WeightMask.of({n: np.random.default_rng(0).random(good.shapes[n]) < 0.5
                                        for n in good.shapes}), seed=0)  # fmt: skip
    model = retrained(asked, bad)
    for name, weight in model.named_parameters():
        if name in bad.shapes:
            assert not weight.detach().numpy()[~bad.keeps(name)].any()
    assert len(answers_on(model, asked.tuning, asked.report)) == 40


# The study ---------------------------------------------------------------------------------------

AS_PUBLISHED = dict(
    zip(METHODS, (0.5, 0.6, 0.6, 0.62, 0.5, 0.65, 0.75, 0.86, 0.72, 0.84, 0.84, 0.9), strict=True)
)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up(AS_PUBLISHED, seeds=3)


def test_what_was_published_bears_the_claims_out() -> None:
    result = made_up(AS_PUBLISHED, seeds=10, n=4000)
    found = {v.claim.id.partition(".")[2]: str(told(v)) for v in result.verdicts()}
    assert set(found.values()) == {"holds"}, found
    assert "good ones score" in result.answer
    assert "50 % of weights left" in result.headline()
    assert list(result.table()["method"]) == list(METHODS)


def test_the_opposite_makes_them_fail() -> None:
    scores = {m: 1 - s for m, s in AS_PUBLISHED.items()} | {"random-importance": 0.22}
    result = made_up(scores, seeds=10, n=4000)
    found = {v.claim.id.partition(".")[2]: str(told(v)) for v in result.verdicts()}
    assert set(found.values()) == {"fails"}, found


def test_equal_subnetworks_bear_no_claim_out() -> None:
    held, draws = 0, 8
    for draw in range(draws):
        result = made_up(dict.fromkeys(METHODS, 0.75), draw=draw, n=200)
        outcomes = {v.claim.id.partition(".")[2]: str(told(v)) for v in result.verdicts()}
        outcomes.pop("good-parts-like-random-ones")  # which is true here
        held += list(outcomes.values()).count("holds")
    assert held <= binom.ppf(0.999, draws, 0.05)


def test_models_that_learnt_nothing_are_not_judged() -> None:
    result = made_up(dict.fromkeys(METHODS, 0.5), learnt=False)
    assert {str(told(v)) for v in result.verdicts()} == {"not-applicable"}
    assert "does not surely beat a constant answer" in result.answer


def test_subnetworks_that_are_nearly_the_whole_model_are_not_judged() -> None:
    result = made_up(dict.fromkeys(METHODS, 0.8), left=0.9, n=60)
    assert {str(told(v)) for v in result.verdicts() if "parts" in v.claim.id} == {"not-applicable"}
    assert "90 % of the elements are left" in result.reasons()["good_over_random_importance"]


def test_likeness_is_not_judged_where_a_training_failed() -> None:
    """Two of ten runs give one answer only; where none does, it is told how many seeds it takes."""
    fine = made_up(dict.fromkeys(METHODS, 0.75), n=2000)
    (verdict,) = (v for v in fine.verdicts() if v.claim.id.endswith("like-random-ones"))
    assert str(verdict.outcome) == "inconclusive"
    assert verdict.estimate is not None
    assert verdict.estimate.unit == "seeds"
    assert settling_text(verdict).endswith("about 6 seeds would settle it")
    failed = made_up(
        dict.fromkeys(METHODS, 0.75), n=800,
        constant={("good-importance", 1), ("random-importance", 4), ("bad-importance", 0)},
    )  # fmt: skip
    why = failed.reasons()["good_over_random_importance"]
    assert "2 of 10 trained subnetworks" in why
    found = {v.claim.id.partition(".")[2]: str(told(v)) for v in failed.verdicts()}
    assert found["good-parts-like-random-ones"] == "not-applicable"
    assert found["random-parts-above-bad-ones"] != "not-applicable"
    runs = failed.table("runs").groupby("method")["collapsed"].sum()
    assert (runs["good-importance"], runs["fine-tuned"], runs["good-magnitude"]) == (1, 0, 0)


def test_what_cannot_be_is_refused() -> None:
    for wrong in ({"prunings": ("movement",)}, {"baselines": ("cbow", "cbow")}):
        with pytest.raises(ParameterError, match="none twice"):
            Subnetworks(**wrong)  # type: ignore[arg-type]


def written(folder: Path, *, shuffled: bool = False) -> Corpus:
    folder.mkdir()
    for split, size, seed in (("train", 120, 1), ("validation", 80, 2)):
        examples = list(planted.corpus(size, seed=seed))
        labels = [int(e.get("label")) for e in examples]
        if shuffled:
            labels = np.random.default_rng(seed).permutation(labels).tolist()
        with (folder / f"{split}.csv").open("w", newline="") as file:
            rows = [(e.text, planted.TASK.labels[k]) for e, k in zip(examples, labels, strict=True)]
            csv.writer(file).writerows([("text", "label"), *rows])
    return load_corpus(str(folder))


HOW = {"seeds": 1, "epochs": 1, "batch_size": 16, "learning_rate": 1e-3, "baselines": ("majority",)}


def test_the_planted_head_makes_a_subnetwork_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One head carries the answer: subnetworks with it are good, those without it are not."""
    corpus = written(tmp_path / "task")
    encoder = Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")
    store = str(tmp_path / "store")
    result = bt.run("subnetworks", encoder, task=corpus, store=store, **HOW)
    assert isinstance(result, SubnetworksResult)
    runs = result.table("runs").groupby("method")["accuracy"]
    assert runs.min()["fine-tuned"] > 0.95
    assert runs.min()["good-importance"] > 0.9
    assert runs.max()["bad-importance"] < 0.75
    assert runs.min()["good-magnitude"] > 0.9
    assert runs.min()["good-magnitude"] > runs.max()["bad-magnitude"]
    last = int(result.arrays["importance_kept_steps"][0]) - 1
    assert int(result.arrays["heads"].to_numpy()[0, last, *planted.CARRIER]) == 1
    sizes = result.table("sizes")
    assert sizes["reloaded"].dropna().eq(1).all()
    assert sizes["left"].between(0, 1, inclusive="neither").all()
    # What was found before is not computed again, as also what importance-pruning stored.
    monkeypatch.setattr(iterative_pruning, "_course", None)
    study, context = Subnetworks(**HOW), Context(trained=Store(store).folder_of_trained())  # type: ignore[arg-type]
    again = study.measure(encoder, corpus, "importance-seed-0", context)
    good = again["predictions"].sel({"method": "good-importance"}) == again["labels"]
    assert float(good.mean()) == runs.min()["good-importance"]


def test_a_task_without_an_answer_is_not_judged(tmp_path: Path) -> None:
    corpus = written(tmp_path / "task", shuffled=True)
    encoder = Encoder(tiny.model("bert"), tiny.tokenizer(planted.WORDS), name="random")
    result = bt.run(
        "subnetworks",
        encoder,
        task=corpus,
        store=str(tmp_path / "store"),
        **{**HOW, "prunings": ("importance",)},
    )
    assert isinstance(result, Result)
    assert {str(told(v)) for v in result.verdicts()} <= {"not-applicable", "inconclusive"}
