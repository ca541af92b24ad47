"""Starts: planted knowledge is found, noise is not, and a tiny study runs to its end."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom
from transformers.models.bert.modeling_bert import BertEncoder

import bertology as bt
import planted
import tiny
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import (
    CapabilityError,
    DataError,
    InterruptedRunError,
    ParameterError,
)
from bertology.metrics import judged_metric
from bertology.model.encoder import Encoder
from bertology.model.shape import Shape
from bertology.results.known_claims import judge
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.verdicts import Claim, Published, Source
from bertology.studies.designs.trials import split_part
from bertology.studies.study import Context
from bertology.studies.training.fine_tuning_starts import (
    COMPARED_STARTS,
    FineTuningStarts,
    FineTuningStartsResult,
)
from bertology.train.finetune import FinetuneSettings
from bertology.train.starts import find_start
from bertology.train.tuning import TuningJob, tune
from result_conformance import ResultConformance, told

CLAIMS = {
    "fine_tuned_over_frozen": Rule("fine_tuned_over_frozen", Relation.ABOVE, 0.1),
    "pretrained_over_random": Rule("pretrained_over_random", Relation.ABOVE, 0.0),
    "random_worse": Rule("random_over_frozen", Relation.BELOW, 0.0),
}


def made_up(
    scores: dict[str, float], *, seeds: int = 4, noise: float = 0.01, draw: int = 0, task: str = "t"
) -> Result:
    """Measurements that are made up: a start's score, the luck of seed or classifier, noise."""
    rng = np.random.default_rng(draw)
    study, luck = FineTuningStarts(seeds=seeds), rng.normal(0, 0.02, seeds)
    parts = {}
    for part in study.parts(Shape(1, 1, 1, 1, 1), planted.corpus(2)):
        name, seed = split_part(part)
        # Of random classifiers, or of the seed, which pairing takes out.
        chance = rng.normal(0, 0.1, study.classifiers) if name == "frozen" else luck[seed]
        values = scores[name] + chance + rng.normal(0, noise, (2, np.size(chance)))
        facts = {
            "task": task, "train_size": 9, "train_fingerprint": "x", "truncated": 0,
            "truncated_validation": 0, "constant_f1": 0.4, "constant_accuracy": 0.5,
        }  # fmt: skip
        parts[part] = by_run({"f1": values[0], "accuracy": values[1]}, seed, facts)
    return study.conclude(parts, provenance())


def by_run(scores: dict[str, Any], seed: int, facts: dict[str, Any]) -> xr.Dataset:
    """One part of the study: one run, or several classifiers."""
    found = {name: np.ravel(of) for name, of in scores.items()} | {
        "learning_rate": np.array([1e-3])
    }
    drawn = len(next(iter(found.values())))
    if drawn == 1:
        return xr.Dataset({name: float(of[0]) for name, of in found.items()}, attrs=facts)
    del found["learning_rate"]
    seeds = {"seed": range(seed, seed + drawn)}
    return xr.Dataset({n: ("seed", of) for n, of in found.items()}, seeds, facts)


def provenance() -> Provenance:
    return Provenance(
        study="fine-tuning-starts",
        study_version=1,
        parameters={},
        model={"name": "m", "fingerprint": "f"},
        corpus={"name": "made-up", "fingerprint": "c"},
    )


def outcomes(result: Result) -> dict[str, Outcome]:
    claims = [
        Claim(name, Source("p", "4.3"), "s", Published("t"), "fine-tuning-starts", rule, "e")
        for name, rule in CLAIMS.items()
    ]
    judged = judge("fine-tuning-starts", result.evidence(), claims, reasons=result.reasons())
    return {v.claim.id: told(v) for v in judged}


AS_PUBLISHED = {"pretrained": 0.84, "random": 0.5, "frozen": 0.6, "frozen-features": 0.7}


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up(dict.fromkeys(COMPARED_STARTS, 0.6), seeds=2)


def test_what_was_published_bears_the_claims_out() -> None:
    result = made_up(AS_PUBLISHED, task="qnli")
    assert set(outcomes(result).values()) == {Outcome.HOLDS}
    table = result.table().set_index(["start", "metric"])
    assert list(table.index.get_level_values(0).unique()) == list(COMPARED_STARTS)
    row = table.loc[("pretrained", "accuracy")]
    assert row["over_random"] == pytest.approx(0.34, abs=0.02)
    assert row["over_frozen_low"] < row["over_frozen"] < row["over_frozen_high"]
    assert row["over_random_p"] <= row["over_random_p_adjusted"] < 0.05
    assert row["median"] == pytest.approx(row["mean"], abs=0.05)
    assert np.isnan(table.loc[("frozen", "f1"), "over_frozen_p"])
    assert "qnli" in result.headline()


def test_the_opposite_makes_them_fail() -> None:
    opposite = {"pretrained": 0.6, "random": 0.9, "frozen": 0.75, "frozen-features": 0.7}
    assert set(outcomes(made_up(opposite, task="sts-b")).values()) == {Outcome.FAILS}


def test_a_start_that_learnt_nothing_judges_nothing() -> None:
    result = made_up(AS_PUBLISHED | {"pretrained": 0.45}, task="qnli")
    found = outcomes(result)
    assert found["fine_tuned_over_frozen"] is Outcome.NOT_APPLICABLE
    assert found["pretrained_over_random"] is Outcome.NOT_APPLICABLE
    assert found["random_worse"] is Outcome.HOLDS  # that it learns nothing is what is said of it
    told = result.reasons()["pretrained_over_random"]
    assert "pre-trained start does not surely beat a constant answer" in told


def test_a_claim_about_two_tasks_is_not_judged_on_others() -> None:
    result = made_up(AS_PUBLISHED, task="mrpc")  # on a corpus that is neither of the two
    about = {v.claim.id: v for v in result.verdicts()}
    verdict = about["dark-secrets.random-start-below-no-training"]
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert "STS-B and QNLI only" in verdict.measured


def correlations(scores: dict[str, list[float]]) -> Result:
    """A regression, scored by its correlation: a score for each seed, or for each classifier."""
    facts = {
        "task": "sts-b", "train_size": 9, "train_fingerprint": "x", "truncated": 0,
        "truncated_validation": 0, "constant_pearson": 0.0,
    }  # fmt: skip
    trained = {name: of for name, of in scores.items() if name != "frozen"}
    parts = {
        f"{name}-seed-{seed}": by_run({"pearson": r}, seed, facts)
        for name, found in trained.items()
        for seed, r in enumerate(found)
    } | {"frozen-seed-1000": by_run({"pearson": scores["frozen"]}, 1000, facts)}
    seeds = len(next(iter(trained.values())))
    return FineTuningStarts(seeds=seeds, starts=tuple(scores)).conclude(parts, provenance())


def test_the_sign_of_a_random_head_says_nothing() -> None:
    """Without fine-tuning r is +0.3 or -0.3 by chance: the model knows as much either way."""
    result = correlations(
        {
            "pretrained": [0.85, 0.86, 0.84, 0.85],
            "random": [0.02, 0.03, 0.02, 0.03],
            "frozen": [0.30, -0.32, 0.31, -0.33],
        }
    )
    table = result.table().set_index("start")
    assert table.loc["frozen", "mean"] == pytest.approx(0.315)
    assert result.evidence()["fine_tuned_over_frozen"].value == pytest.approx(0.535)
    assert outcomes(result)["random_worse"] is Outcome.HOLDS


def test_table_and_claims_treat_signs_alike() -> None:
    """The random start kept its sign in the table and lost it in the claim: they contradicted."""
    scores = {
        "pretrained": [0.85, -0.45, 0.84, 0.85],  # one seed has the other sign
        "random": [-0.40, -0.41, -0.42, -0.41],
        "frozen": [0.30, -0.32, 0.31, -0.33],
    }
    result = correlations(scores)
    table, evidence = result.table().set_index("start"), result.evidence()
    for start, reference, quantity in (
        ("random", "over_frozen", "random_over_frozen"),
        ("pretrained", "over_frozen", "fine_tuned_over_frozen"),
        ("pretrained", "over_random", "pretrained_over_random"),
    ):
        row, found = table.loc[start], evidence[quantity]
        assert row[reference] == pytest.approx(found.value)
        assert row[f"{reference}_low"] == pytest.approx(found.low)
    assert table.loc["random", "over_frozen"] == pytest.approx(0.41 - 0.315)
    runs = result.table("runs").set_index(["start", "seed"])["pearson"]
    assert runs["random"].tolist() == scores["random"]  # as they were measured
    assert "without their sign" in result.figures()["starts"].caption


def test_two_starts_that_know_nothing_are_not_told_apart_by_signs() -> None:
    rng, worse = np.random.default_rng(0), 0
    for _ in range(30):
        drawn = {"random": 5, "frozen": 20}
        noise = {name: rng.normal(0, 0.03, n).tolist() for name, n in drawn.items()}
        worse += outcomes(correlations(noise))["random_worse"] is Outcome.HOLDS
    assert worse <= binom.ppf(0.999, 30, 0.025)


def test_intervals_end_where_scores_do() -> None:
    table = correlations({"random": [0.99, 0.7], "frozen": [0.99, -0.6]}).table()
    assert table["high"].max() <= 1
    assert table["low"].min() >= 0


def test_noise_is_not_taken_for_an_effect() -> None:
    """Every claim where it just does not hold: each may be wrong in 2.5 % of all cases."""
    edge = {"pretrained": 0.6, "random": 0.6, "frozen": 0.5, "frozen-features": 0.5}
    draws, held = 30, 0
    for draw in range(draws):
        found = outcomes(made_up(edge, noise=0.03, draw=draw))
        held += list(found.values()).count(Outcome.HOLDS)
    assert held <= binom.ppf(0.999, 2 * draws, 0.025)


def test_many_random_classifiers_decide_what_three_could_not() -> None:
    """A random head scores 32 or 68 on MRPC, as its draw has it; three of them told nothing."""
    facts = {
        "task": "mrpc", "train_size": 9, "train_fingerprint": "x", "truncated": 0,
        "truncated_validation": 0, "constant_accuracy": 0.68,
    }  # fmt: skip
    parts = {
        f"pretrained-seed-{k}": by_run({"accuracy": score}, k, facts)
        for k, score in enumerate((0.80, 0.81, 0.79))
    }
    luck = np.random.default_rng(0).permutation(np.repeat([0.32, 0.68], 10))
    seen = {}
    for drawn in (3, 20):
        study = FineTuningStarts(starts=("pretrained", "frozen"), classifiers=drawn)
        heads = {"frozen-seed-1000": by_run({"accuracy": luck[:drawn]}, 1000, facts)}
        seen[drawn] = study.conclude(parts | heads, provenance())
    assert outcomes(seen[3])["fine_tuned_over_frozen"] is Outcome.INCONCLUSIVE
    assert outcomes(seen[20])["fine_tuned_over_frozen"] is Outcome.HOLDS
    found = seen[20].evidence()["fine_tuned_over_frozen"]
    assert (found.n, found.unit) == (20, "random classifiers")
    assert found.value == pytest.approx(0.30)
    row = seen[20].table().set_index("start").loc["pretrained"]
    assert row["over_frozen_low"] == pytest.approx(found.low)
    assert seen[20].table().set_index("start").loc["frozen", "seeds"] == 20
    assert "20 random classifiers" in seen[20].headline()


def test_random_classifiers_are_those_of_single_runs_and_read_the_texts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, given = load_corpus(str(written(tmp_path / "task"))), knowing()
    study, calls = FineTuningStarts(classifiers=4), 0
    forward = BertEncoder.forward

    def counted(self: Any, *args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        return forward(self, *args, **more)

    monkeypatch.setattr(BertEncoder, "forward", counted)
    [part] = [p for p in study.parts(given.shape, corpus) if p.startswith("frozen-seed")]
    found = study.measure(given, corpus, part, Context())
    together, calls = calls, 0
    settings = FinetuneSettings(seed=1002)
    job = TuningJob(given, study.load_train(corpus), corpus, find_start("frozen"), settings)
    _, alone = tune(job)
    assert calls == together
    assert float(found["accuracy"].sel(seed=1002)) == alone.scores["accuracy"]
    assert len(set(found["accuracy"].to_numpy().tolist())) > 1
    monkeypatch.undo()
    assert "forward" not in vars(given.base)


def test_one_seed_decides_nothing() -> None:
    result = made_up(AS_PUBLISHED, seeds=1, task="qnli")
    assert set(outcomes(result).values()) == {Outcome.INCONCLUSIVE}
    assert result.plot().axes


def test_the_figure_shows_every_metric_and_the_constant_answer() -> None:
    figure = made_up(AS_PUBLISHED).plot()
    assert [a.get_xlabel() for a in figure.axes] == ["f1 (%)", "accuracy (%)"]
    named = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert len(named) == 5
    assert named[-1] == "always the same answer"


# The real thing, tiny ----------------------------------------------------------------------------


def written(folder: Path, *, shuffled: bool = False) -> Path:
    """A task in files: which way the one marked word points, or nothing at all."""
    folder.mkdir()
    for split, size, seed in (("train", 160, 1), ("validation", 80, 2)):
        rows = [(e.text, planted.TASK.labels[int(e.get("label"))]) for e in _texts(size, seed)]
        if shuffled:
            labels = np.random.default_rng(seed).permutation([label for _, label in rows])
            rows = [(text, str(label)) for (text, _), label in zip(rows, labels, strict=True)]
        with (folder / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    return folder


def _texts(size: int, seed: int) -> Corpus:
    return planted.corpus(size, seed=seed)


def knowing() -> Encoder:
    """An encoder whose pooler knows the answer, and a head that is thrown away."""
    return Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")


def test_planted_knowledge_is_worth_what_it_is(tmp_path: Path) -> None:
    corpus = load_corpus(str(written(tmp_path / "task")))
    result = bt.run(
        "fine-tuning-starts",
        knowing(),
        task=corpus,
        store=str(tmp_path / "store"),
        epochs=2,
        batch_size=16,
        learning_rate=1e-3,
        seeds=2,
    )
    assert isinstance(result, FineTuningStartsResult)
    runs = result.tables["runs"]
    scores = {name: of.set_index("seed")["accuracy"] for name, of in runs.groupby("start")}
    assert set(scores) == set(COMPARED_STARTS)
    assert scores["pretrained"].min() > 0.95
    assert scores["frozen-features"].min() > 0.95
    assert scores["random"].max() < 0.75
    assert runs["learning_rate"].dropna().unique() == pytest.approx([1e-3])
    assert len(runs[runs["start"] == "frozen"]) == 20
    assert "20 random classifiers" in result.headline()
    assert "160 examples, 2 epochs" in result.headline()
    study = FineTuningStarts(epochs=2, batch_size=16, learning_rate=1e-3, seeds=2)
    part = study.measure(knowing(), corpus, "random-seed-1", Context())
    assert float(part["accuracy"]) == scores["random"][1]  # a pure function of what it is given


def test_nothing_is_found_where_there_is_nothing(tmp_path: Path) -> None:
    corpus = load_corpus(str(written(tmp_path / "task", shuffled=True)))
    model = tiny.model("bert")
    result = bt.run(
        "fine-tuning-starts",
        Encoder(model, tiny.tokenizer(planted.WORDS), name="random"),
        task=corpus,
        store=str(tmp_path / "store"),
        epochs=1,
        learning_rate=1e-3,
        seeds=3,
    )
    assert isinstance(result, FineTuningStartsResult)
    assert Outcome.HOLDS not in outcomes(result).values()


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    study, given = FineTuningStarts(), knowing()
    folder = written(tmp_path / "task")
    corpus = load_corpus(str(folder))
    study.check(given, corpus)
    with pytest.raises(CapabilityError, match="does not say where its split"):
        study.check(given, corpus[:20])
    with pytest.raises(DataError, match="'nope'"):
        FineTuningStarts(train_split="nope").check(given, corpus)
    with pytest.raises(DataError, match="the same examples"):
        FineTuningStarts(train_split="validation").check(given, corpus)
    with pytest.raises(ParameterError, match="have the task of the corpus"):
        FineTuningStarts(train="grammar-entailment").check(given, corpus)
    for wrong in ((), ("random", "random"), ("thawed",)):
        with pytest.raises(ParameterError, match="none twice"):
            FineTuningStarts(starts=wrong)


def test_data_that_changed_on_the_way_are_noticed() -> None:
    study = FineTuningStarts(starts=("frozen",), seeds=2)
    parts = {
        f"frozen-seed-{k}": xr.Dataset({"accuracy": 0.5}, attrs={"train_fingerprint": str(k)})
        for k in (0, 1)
    }
    with pytest.raises(DataError, match="changed between two parts"):
        study.conclude(parts, Provenance("s", 1, {}, {"fingerprint": "f"}))


def test_ctrl_c_is_left_to_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*given: Any, **more: Any) -> None:
        raise InterruptedRunError("stopped")

    monkeypatch.setattr("bertology.train.tuning.tune", stop)
    corpus = load_corpus(str(written(tmp_path / "task")))
    with pytest.raises(InterruptedRunError):
        FineTuningStarts().measure(knowing(), corpus, "random-seed-0", Context())


def test_progress_is_told_in_per_cents(tmp_path: Path) -> None:
    corpus = load_corpus(str(written(tmp_path / "task")), limit=20)
    told: list[int] = []
    study = FineTuningStarts(epochs=1, examples=64, max_length=8)
    context = Context(advance=told.append)
    found = study.measure(knowing(), corpus, "random-seed-0", context)
    assert sum(told) == study.steps("", knowing().shape, corpus) == 100
    assert found.attrs["train_size"] == 64
    assert found.attrs["truncated"] > 0
    assert found.attrs["truncated_validation"] > 0


def test_cola_is_judged_by_its_own_score() -> None:
    assert judged_metric(["matthews", "accuracy"]) == "matthews"
    assert judged_metric(["f1", "accuracy"]) == "accuracy"
    assert judged_metric(["pearson", "spearman"]) == "pearson"
