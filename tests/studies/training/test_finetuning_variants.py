"""Fine-tuning variants: planted gains are found, noise is not, and a kill changes no number."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom, norm

import bertology as bt
import tiny
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import BertologyError, ParameterError
from bertology.model.encoder import Encoder
from bertology.report.look import PAPER
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.scored_runs import ScoredRuns
from bertology.studies.designs.trials import split_part
from bertology.studies.study import Context
from bertology.studies.training.finetuning_variants import (
    PLAIN,
    FinetuningVariants,
    FinetuningVariantsResult,
)
from bertology.studies.training.finetuning_variants import _at_once as variants_at_once
from bertology.studies.training.finetuning_variants import _costs as costs_table
from bertology.studies.training.finetuning_variants import _surely as surely
from bertology.studies.training.finetuning_variants.runs import TITLES, chosen_variants
from bertology.train.encoded import encode
from made_tunings import WORDS, KilledError
from made_variants import made_up
from made_ways import other_task, with_its_head
from result_conformance import ResultConformance, told


def outcomes(result: Result) -> dict[str, str]:
    return {v.claim.id.partition(".")[2]: str(told(v)) for v in result.verdicts()}


AS_PUBLISHED = {"layer-mix": 0.85, "joined-layers": 0.85, "intermediate": 0.85, "features": 0.6}


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up(AS_PUBLISHED, seeds=2, n=200)


def test_what_was_published_bears_the_claims_out() -> None:
    result = made_up(AS_PUBLISHED, {"adversarial": 0.85, PLAIN: 0.65}, n=3000)
    assert set(outcomes(result).values()) == {"holds"}
    table = result.table().set_index(["variant", "metric"])
    row = table.loc[("layer-mix", "accuracy")]
    assert row["over_plain"] == pytest.approx(0.1, abs=0.03)
    assert row["over_plain_low"] < row["over_plain"] < row["over_plain_high"]
    assert np.isnan(table.loc[(PLAIN, "accuracy"), "over_plain"])
    better, worse = result.answer.split("; surely worse: ")
    assert better.startswith("Surely better: ")
    best = table[table["sure"] == "better"]["over_plain"].xs("accuracy", level="metric").idxmax()
    assert better.startswith(f"Surely better: {TITLES[str(best)]} (")
    assert worse.startswith("head on frozen features (-")
    costs = result.table("costs").set_index("variant")
    assert costs.loc["adapters", "share"] == pytest.approx(0.01)
    assert costs.loc["adapters", "time"] == 1
    # F1 of a constant answer may be high: a figure that does not show it misleads.
    scores = next(one for one in result.drawings() if one.name == "variants")
    assert {axes.get_xlabel() for axes in scores.draw().axes} == {"accuracy (%)", "f1 (%)"}
    for axes in scores.draw().axes:
        hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == PAPER]
        assert [list(line.get_xdata()) for line in hollow] == [[50]]


def test_the_opposite_makes_them_fail() -> None:
    worse = dict.fromkeys(AS_PUBLISHED, 0.6) | {"adapters": 0.6, "features": 0.9}
    found = outcomes(made_up(worse, {"adversarial": 0.5}, n=3000))
    assert set(found.values()) == {"fails"}


def test_intervals_hold_for_all_variants_together() -> None:
    """Of six draws in which all variants have the same skill, hardly any shows a difference."""
    seen = 0
    for draw in range(6):
        table = made_up(draw=draw, n=200, seeds=3).table()
        rows = table[table["metric"] == "accuracy"].dropna(subset=["over_plain"])
        seen += bool(((rows["over_plain_low"] > 0) | (rows["over_plain_high"] < 0)).any())
    assert seen <= binom.ppf(0.999, 6, 0.05)


def test_a_claim_is_about_its_own_variant_alone() -> None:
    """The table looks at all six at once, so its intervals are wider than a claim's."""
    result = made_up(AS_PUBLISHED, seeds=3, n=300)
    row = result.table().set_index(["variant", "metric"]).loc[("adapters", "accuracy")]
    found = result.evidence()["adapters_over_plain"]
    assert found.value == pytest.approx(row["over_plain"])
    assert row["over_plain_low"] < found.low < found.high < row["over_plain_high"]
    assert found.level == 0.95
    assert found.unit == "seeds"


def test_those_that_surely_differ_leave_fewer_to_look_at() -> None:
    """Holm: the third differs at the level of one test, once the first two are told."""

    class Told(ScoredRuns):
        def difference(self, one: str, other: str, metric: str, **how: object) -> Estimate:
            half = norm.isf((1 - self.level) / 2)
            value = {"adapters": -2.1, "features": -9.0, "mixout": 2.4}[one]
            return Estimate(value, value - half, value + half, 9, self.level)

    names = ("adapters", "features", "mixout")
    runs = Told(dict.fromkeys(names, np.zeros((2, 2))), np.zeros(2), 0.95)
    first = variants_at_once(runs, names, "accuracy")
    alone = [name for name, one in first.items() if one is not None and one.excludes(0)]
    assert alone == ["features", "mixout"]
    told = {"features": "worse", "mixout": "better", "adapters": "worse"}
    assert surely(runs, first, "accuracy") == told


def test_where_plain_fine_tuning_learns_nothing_there_is_no_verdict() -> None:
    result = made_up(AS_PUBLISHED, constant=0.8)
    assert set(outcomes(result).values()) <= {"inconclusive", "not applicable", "not-applicable"}
    assert not result.evidence()
    assert "does not surely beat" in next(iter(result.reasons().values()))


def test_a_variant_that_learnt_nothing_judges_nothing() -> None:
    """Adapters at chance, after few updates, say nothing of adapters; those that learnt do."""
    result = made_up(AS_PUBLISHED | {"adapters": 0.5}, n=3000)
    assert outcomes(result)["adapters-nearly-as-good"] == "not-applicable"
    why = "not judged: adapters does not surely beat a constant answer"
    assert result.reasons()["adapters_over_plain"] == why
    assert outcomes(result)["fine-tuning-above-features"] == "holds"
    learnt = made_up(AS_PUBLISHED | {"adapters": 0.6}, n=3000)
    assert outcomes(learnt)["adapters-nearly-as-good"] == "fails"


def test_one_seed_decides_nothing() -> None:
    result = made_up(AS_PUBLISHED, seeds=1, n=200)
    assert "holds" not in outcomes(result).values()
    assert result.plot().axes


NONE = [
    (), ("plain",), ("intermediate",), ("adapters", "adapters"), ("layer_mix", "layer-mix"),
    ("mixout:share=0.9", "mixout: share=0.9"),
]  # fmt: skip


@pytest.mark.parametrize("ways", NONE)
def test_variants_that_are_none_are_refused(ways: tuple[str, ...]) -> None:
    with pytest.raises(ParameterError, match="layer-mix"):
        FinetuningVariants(ways=ways)


# The real thing, tiny ----------------------------------------------------------------------------


def encoder() -> Encoder:
    return Encoder(tiny.model("bert"), tiny.tokenizer(list(WORDS)), name="tiny")


def written(folder: Path) -> Corpus:
    rng = np.random.default_rng(0)
    folder.mkdir()
    for split, size in (("train", 160), ("validation", 60)):
        rows = [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(size)]
        with (folder / f"{split}.csv").open("w", newline="") as file:
            told = [(text, "yes" if "cat" in text else "no") for text in rows]
            csv.writer(file).writerows([("text", "label"), *told])
    return load_corpus(str(folder))


WAYS = ("adapters", "features", "early-stopping", "chosen-layers", "layer_rates+bias_only")


def test_the_whole_study_runs_and_a_kill_changes_no_number(tmp_path: Path) -> None:
    corpus = written(tmp_path / "task")
    given = {"ways": WAYS, "epochs": 2, "seeds": 1, "learning_rate": 3e-3, "batch_size": 16}
    result = bt.run(
        "finetuning-variants", encoder(), task=corpus, store=str(tmp_path / "store"), **given
    )
    assert isinstance(result, FinetuningVariantsResult)
    runs = result.table("runs").set_index(["variant", "seed"])["accuracy"]
    assert len(runs) == 6
    assert costs_of(result)["layer-rates-bias-only"] < costs_of(result)["chosen-layers"] == 1
    assert "160 examples to learn from, 60 to score" in result.headline()
    costs = result.table("costs").set_index("variant")
    assert costs.loc["features", "trained"] == 50
    assert costs.loc["plain", "share"] == 1
    assert set(costs["device"]) == {"cpu"}
    (kept,) = (tmp_path / "store" / "trained").rglob("model.safetensors")  # of plain fine-tuning
    study = FinetuningVariants(**given)
    record = kept.with_name("bertology.json")
    record.write_text(record.read_text().replace('"device": "cpu"', '"device": "H200"'))
    trained = next((tmp_path / "store").rglob("trained"))
    found = study.measure(encoder(), corpus, "plain-seed-0", Context(trained=trained))
    assert found.attrs["device"] == "H200"  # as it was trained, and not where it is loaded
    for part in ("adapters-seed-0", "early-stopping-seed-0"):
        with pytest.raises(KilledError):
            study.measure(encoder(), corpus, part, killed(tmp_path / "trained"))
        assert list((tmp_path / "trained").rglob("state.safetensors"))
        again = study.measure(encoder(), corpus, part, Context(trained=tmp_path / "trained"))
        score = float((again["predictions"][0] == again["labels"]).mean())
        assert score == runs[split_part(part)]
        assert not list((tmp_path / "trained").rglob("*.safetensors"))


def test_times_of_different_devices_are_not_compared() -> None:
    def part(seconds: float, device: str | None) -> xr.Dataset:
        told = {} if device is None else {"device": device}
        return xr.Dataset(attrs={"trained": 5, "size": 10, "seconds": seconds, **told})

    parts = {
        "plain-seed-0": part(2.0, "H200"),
        "plain-seed-1": part(8.0, "cpu"),
        "adapters-seed-0": part(4.0, "H200"),
        "adapters-seed-1": part(16.0, "cpu"),
        "features-seed-0": part(1.0, "cpu"),
        "features-seed-1": part(1.0, "cpu"),
    }
    found = costs_table(parts, ("plain", "features", "adapters")).set_index("variant")
    assert list(found.index) == ["plain", "features", "adapters"]
    assert found["time"].to_dict() == pytest.approx(
        {"plain": 1, "features": np.nan, "adapters": 2}, nan_ok=True
    )
    assert found.loc["adapters", "device"] == "H200, cpu"
    earlier = {"plain-seed-0": part(2.0, None), "adapters-seed-0": part(3.0, None)}
    assert list(costs_table(earlier, ("plain", "adapters"))["time"]) == [1, 1.5]


def test_three_seeds_tokenise_each_corpus_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, seen = written(tmp_path / "task"), Counter[str]()
    (tmp_path / "other").mkdir()
    other_task(tmp_path / "other")

    def counted(one: Corpus, *given: Any) -> Any:
        seen[one.fingerprint] += 1
        return encode(one, *given)

    monkeypatch.setattr("bertology.train.encoded.encode", counted)
    given = with_its_head(tmp_path / "model")
    study = FinetuningVariants(
        ways=("early-stopping",), intermediate=str(tmp_path / "other"), seeds=3, epochs=1,
        batch_size=80,
    )  # fmt: skip
    for name in study.parts(given.shape, corpus):
        study.measure(given, corpus, name, Context())
    assert len(seen) == 6
    assert set(seen.values()) == {1}


def costs_of(result: Result) -> dict[str, float]:
    return result.table("costs").set_index("variant")["share"].to_dict()


def killed(folder: Path) -> Context:
    told = 0

    def advance(steps: int) -> None:
        nonlocal told
        told += steps
        if told > 60:
            raise KilledError

    return Context(advance=advance, trained=folder)


def test_what_does_not_fit_is_refused_before_any_work(tmp_path: Path) -> None:
    corpus = written(tmp_path / "task")
    albert = Encoder(tiny.model("albert"), tiny.tokenizer(list(WORDS)), name="tiny")
    with pytest.raises(BertologyError, match="cannot have parts added"):
        FinetuningVariants(ways=("adapters",)).check(albert, corpus)
    with pytest.raises(BertologyError, match="no-such-task"):
        FinetuningVariants(intermediate="no-such-task").ingredients(corpus)
    few = FinetuningVariants(ways=("early-stopping",), examples=40)
    with pytest.raises(BertologyError, match=r"Early stopping needs data of its own") as refused:
        few.check(encoder(), corpus)
    assert "leave early-stopping out" in str(refused.value)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("adapter", "adapters"),
        ("adapters:width=3", "size=16"),
        ("mixout+adapters", "their pre-trained values already"),
        ("features+layer_rates", "the head alone"),
        ("frozen_bottom:layers={some}", "half, top"),
        ("adapters:size=16", "'adapters' and 'adapters-size-16' are the same"),
        ("mixout+plain", "fine-tuning is plain"),
        ("top_again:layers=9", "at most 3"),
    ],
)
def test_ways_that_make_no_sense_are_refused_before_any_work(
    way: str, message: str, tmp_path: Path
) -> None:
    study = FinetuningVariants(ways=("adapters", way))
    with pytest.raises(BertologyError, match=message):
        study.check(encoder(), written(tmp_path / "task"))


def test_ways_are_written_as_for_fine_tuning_too() -> None:
    assert FinetuningVariants(ways=("layer_mix",)) == FinetuningVariants(ways=("layer-mix",))
    # As they come from the command line, which takes a list apart at commas.
    given = (
        "adapters:size=64", "features", "mixout:share=0.9+layer_rates:decay=0.95",
        "layer_choice:which=2+5", "how=mean", "early_stopping+layer-mix",
    )  # fmt: skip
    study = FinetuningVariants(ways=given)
    assert study.ways == (*given[:3], "layer_choice:which=2+5,how=mean", given[-1])
    names = [
        "adapters-size-64", "features", "mixout-share-0-9-layer-rates-decay-0-95",
        "layer-choice-which-2and5-how-mean", "early-stopping-layer-mix",
    ]  # fmt: skip
    assert study.variants == [PLAIN, *names]
    assert FinetuningVariants(ways=study.ways) == study
    chosen = chosen_variants(given)
    assert [chosen[name].ways for name in names] == [
        ("adapters:size=64",), (), ("mixout:share=0.9", "layer_rates:decay=0.95"),
        ("layer_choice:which=2+5,how=mean",), ("layer_mix",),
    ]  # fmt: skip
    assert chosen["early-stopping-layer-mix"].patience == 1
    assert chosen_variants(["features+layer-mix"])["features-layer-mix"].start == "frozen-features"
    halves = chosen_variants(["frozen_bottom:layers={half}+mixout"])[
        "frozen-bottom-layers-half-mixout"
    ]
    assert halves.filled(half=6, top=3).ways == ("frozen_bottom:layers=6", "mixout:share=0.7")


def test_names_that_are_given_mean_what_they_always_did(tmp_path: Path) -> None:
    """Stored results are found again: neither parameters nor ingredients are others."""
    assert FinetuningVariants().ways == (
        "layer-mix", "joined-layers", "features", "frozen-bottom", "top-again", "layer-rates",
        "bias-only", "adapters", "mixout", "adversarial", "substitution", "masked-lm",
        "early-stopping",
    )  # fmt: skip
    corpus = written(tmp_path / "task")
    assert [*FinetuningVariants().ingredients(corpus)] == ["training_data"]
    # LoRA drew otherwise before, and data of another task may change under the same name.
    lora = FinetuningVariants(ways=("lora",)).ingredients(corpus)
    assert [*lora] == ["training_data", "lora draws"]
    other = f"intermediate:task={tmp_path / 'task'}"
    free = FinetuningVariants(ways=(other,)).ingredients(corpus)
    assert [*free] == ["training_data", f"intermediate {tmp_path / 'task'}"]


def test_what_was_written_is_the_title() -> None:
    text = "mixout:share=0.9+layer_rates:decay=0.95"
    result = made_up({"mixout-share-0-9-layer-rates-decay-0-95": 0.9}, ways=(text, "features"))
    assert result.answer.startswith(f"Surely better: {text} (")
    assert "beside plain fine-tuning (3 variants" in result.answer
    assert "mixout_share_0_9_layer_rates_decay_0_95_over_plain" in result.evidence()
    assert list(result.table("costs")["variant"])[-1].startswith("mixout-share")
    for drawing in result.drawings():
        labels = {label.get_text() for label in drawing.draw().axes[0].get_yticklabels()}
        assert {text, "head on frozen features"} <= labels
