"""Loss landscapes: planted widths are found, equal ones not told apart, a tiny study runs."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr
from scipy.stats import binom

import bertology as bt
import planted
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import DataError, InterruptedRunError, JobError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.shape import Shape
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.study import Context
from bertology.studies.training.loss_landscape import LossLandscape, Part, read_part
from bertology.train.landscape.survey import Survey
from result_conformance import ResultConformance, claims_of

WIDER = "primer-finetuning.pretraining-widens-optima"
FLATTER = "primer-finetuning.pretraining-flattens-optima"
LIKE = tuple(f"{claim}-at-like-loss" for claim in (WIDER, FLATTER))
CLAIMS = (WIDER, FLATTER, *LIKE)
SMALL: dict[str, Any] = {
    "epochs": 8, "batch_size": 16, "learning_rate": 1e-2, "seeds": 2, "sample": 32, "grid": 5,
    "directions": 2, "probes": 2, "iterations": 4, "reach": 1.0,
    "drawn_seed": 1,
}  # fmt: skip


def made_up(
    wider: float = 0.0,
    flatter: float = 0.0,
    *,
    seeds: int = 4,
    noise: float = 0.2,
    loss: float = 0.1,
    draw: int = 0,
    grid: int = 7,
    surfaces: bool = True,
    failed: Sequence[int] = (),
    rough: float = 0.01,
    drawn: int = 0,
) -> Result:
    """Measurements that are made up: doublings of width and of flatness, and noise of each run."""
    rng = np.random.default_rng(draw)
    study = LossLandscape(seeds=seeds, grid=grid, without_surfaces=not surfaces, drawn_seed=drawn)
    luck = rng.normal(0, 0.3, seeds)  # of seeds, which pairing takes out
    parts = {}
    for name in study.parts(Shape(1, 1, 1, 1, 1), planted.corpus(2)):
        part = read_part(name)
        gains = (wider, flatter) if part.start == "pretrained" else (0.0, 0.0)
        parts[name] = _part(
            part, rng, gains, luck, noise=noise, loss=loss, grid=grid, failed=failed, rough=rough
        )
    return study.conclude(parts, provenance())


def provenance() -> Provenance:
    model, corpus = {"name": "m", "fingerprint": "f"}, {"name": "made-up", "fingerprint": "c"}
    return Provenance("loss-landscape", 1, {}, model=model, corpus=corpus)


def _part(
    part: Part,
    rng: np.random.Generator,
    gains: tuple[float, float],
    luck: np.ndarray,
    *,
    noise: float,
    loss: float,
    grid: int,
    failed: Sequence[int] = (),
    rough: float = 0.01,
) -> xr.Dataset:
    facts = {"task": "mrpc", "train_size": 9, "train_fingerprint": "x", "sample": 9}
    facts |= {"constant_f1": 0.8, "constant_accuracy": 0.68}
    x = np.linspace(-1, 1, grid)
    arrays: dict[str, Any]
    if part.kind == "run":
        at, sharp, like = luck[part.numbers[0]] + rng.normal(0, noise, (3, 2))
        if part.numbers[0] in failed and part.start == "random":
            loss = 0.6
        arrays = {
            "loss": loss, "constant_loss": 0.63, "validation_loss": 0.7, "f1": 0.8,
            "accuracy": 0.75 + rng.normal(0, 0.01), "moved": 0.1,
            "width": 0.1 * 2 ** (gains[0] + at[0]),
            "eigenvalue_1": 5 * 2 ** (-gains[1] + sharp[0]), "eigenvalue_error": rough,
            "trace": 50 * 2 ** (-gains[1] + sharp[1]),
            "matched_width": 0.1 * 2 ** (gains[0] + at[1]), "matched_eigenvalue_error": rough,
            "matched_eigenvalue_1": 5 * 2 ** (-gains[1] + like[0]),
            "matched_trace": 50 * 2 ** (-gains[1] + like[1]),
            "around_losses": (("direction", "place"), loss + np.stack([x**2, 2 * x**2])),
            "way_losses": ("place", loss + (x - 0.7) ** 2),
        }  # fmt: skip
    elif part.kind == "between":
        arrays = {"losses": ("place", 1 - x**2), "barrier": 1.0 + rng.normal(0, 0.1)}
    elif part.kind == "way":
        way = np.linspace(0, 1, 4)
        arrays = {"x": ("stop", way), "y": ("stop", way * (1 - way)), "inside": ("stop", way**0)}
        arrays["loss"] = ("stop", 1 - 0.9 * way)
    else:
        arrays = {"losses": ("place", x**2 + x[part.numbers[0]] ** 2)}
    return xr.Dataset(arrays, attrs=facts)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up(1.0, 1.5)


def test_wider_and_flatter_optima_are_found() -> None:
    result = made_up(1.0, 1.5)
    assert claims_of(result) == dict.fromkeys(CLAIMS, "holds")
    row = result.table().set_index(["measure", "start"]).loc[("width", "pretrained")]
    assert row["over_random"] == pytest.approx(2, rel=0.3)
    assert row["over_random_low"] < row["over_random"] < row["over_random_high"]
    assert row["counted"] == "all seeds"
    assert result.evidence()["width_gain"].unit == "seeds"
    assert "times as wide" in result.answer
    assert "mrpc" in result.headline()


def test_the_opposite_fails_and_the_same_is_negligible() -> None:
    assert claims_of(made_up(-1.0, -1.5)) == dict.fromkeys(CLAIMS, "fails")
    same = made_up(noise=0.005)
    assert claims_of(same) == dict.fromkeys(CLAIMS, "negligible")
    assert "Nothing is sure" in same.answer


def test_two_sets_of_the_same_kind_are_not_told_apart() -> None:
    draws, held = 8, 0
    for draw in range(draws):
        noise, seeds = (0.1, 0.5)[draw % 2], 3 + draw % 4
        found = claims_of(made_up(noise=noise, draw=draw, seeds=seeds, surfaces=False))
        held += list(found.values()).count("holds")
    assert held <= binom.ppf(0.999, len(CLAIMS) * draws, 0.025)


def test_a_plateau_is_not_taken_for_an_optimum() -> None:
    """A run that did not train is flat everywhere, and nothing is judged."""
    result = made_up(1.0, 1.5, loss=0.5)
    assert set(claims_of(result).values()) == {"not-applicable"}
    assert "8 of 8 runs did not train" in result.reasons()["width_gain"]
    assert "did not train" in result.answer
    assert "barrier_difference" not in result.evidence()


def test_seeds_count_that_trained_from_both_starts() -> None:
    result = made_up(1.0, 1.5, seeds=6, failed=(0, 4), noise=0.1)
    assert result.evidence()["width_gain"].n == 4
    assert "(over 4 of 6 seeds, which trained)" in result.answer
    rows = result.table().set_index(["counted", "measure", "start"])["over_random"]
    judged = 2 ** result.evidence()["width_gain"].value
    assert rows["seeds that trained", "width", "pretrained"] == pytest.approx(judged)
    assert rows["all seeds", "width", "pretrained"] != pytest.approx(judged, rel=1e-3)
    titles = [axes.get_title("left") + axes.get_title() for axes in result.plot("surfaces").axes]
    assert sum("did not train" in title for title in titles) == 1
    other = made_up(1.0, 1.5, seeds=6, failed=(0, 4), noise=0.1, drawn=1).plot("surfaces")
    assert not any("did not train" in axes.get_title("left") for axes in other.axes)
    (note,) = (t.get_text() for t in result.plot("sharpness").texts if "Means" in t.get_text())
    assert "4 of 6 seeds" in note
    assert claims_of(result)[WIDER] == "holds"
    few = made_up(1.0, 1.5, seeds=4, failed=(1, 3))
    assert "2 of 8 runs did not train" in few.reasons()["width_gain"]


def test_a_largest_eigenvalue_that_is_not_known_is_not_judged() -> None:
    result = made_up(1.0, 1.5, rough=20.0)
    assert "more --iterations" in result.reasons()["flatness_gain"]
    assert claims_of(result)[WIDER] == "holds"


def test_what_was_not_reached_is_not_judged() -> None:
    result = made_up(np.inf, np.inf)
    assert set(claims_of(result).values()) == {"not-applicable"}
    assert "within five times the reach" in result.reasons()["width_gain"]
    assert "no curvature above zero" in result.reasons()["flatness_gain"]


def test_one_seed_decides_nothing() -> None:
    result = made_up(1.0, 1.5, seeds=1)
    assert set(claims_of(result).values()) == {"inconclusive"}
    assert "(no interval)" in result.answer
    assert set(result.figures()) == {"surfaces", "paths", "sharpness", "lines"}
    result.plot("lines")


def test_both_starts_are_drawn_on_the_same_scale() -> None:
    result = made_up(1.0, 1.0)
    for name in ("surfaces", "paths"):
        one, other, bar = result.plot(name).axes
        assert one.get_xlim() == other.get_xlim()
        assert one.get_ylim() == other.get_ylim()
        norms = [axes.collections[0].norm for axes in (one, other)]
        assert (norms[0].vmin, norms[0].vmax) == (norms[1].vmin, norms[1].vmax)
        assert "loss" in bar.get_ylabel()
    panels = result.plot("lines").axes
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert len(panels) == 3


def test_without_surfaces_there_are_none() -> None:
    result = made_up(1.0, surfaces=False)
    assert set(result.figures()) == {"sharpness", "lines"}
    study = LossLandscape(**LossLandscape.enough_for(["width_gain"]))
    kinds = {read_part(p).kind for p in study.parts(Shape(1, 1, 1, 1, 1), planted.corpus(2))}
    assert kinds == {"run", "between"}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match="be odd"):
        LossLandscape(grid=8)
    with pytest.raises(ParameterError, match="rise"):
        LossLandscape(rise=0.9)
    with pytest.raises(ParameterError, match="be below the number of seeds"):
        LossLandscape(seeds=2, drawn_seed=2)
    parts = {
        f"random-run-{k}": xr.Dataset({"loss": 0.5}, attrs={"train_fingerprint": str(k)})
        for k in (0, 1)
    }
    with pytest.raises(DataError, match="changed between two parts"):
        LossLandscape().conclude(parts, Provenance("s", 1, {}, {"fingerprint": "f"}))


# The real thing, tiny ----------------------------------------------------------------------------


def written(folder: Path, *, seed: int = 0, size: int = 96) -> Corpus:
    """A task that every start learns: which of two words is in the text."""
    folder.mkdir(parents=True)
    rng = random.Random(seed)
    for split, count in (("train", size), ("validation", 24)):
        rows = []
        for _ in range(count):
            label, words = rng.randrange(2), [rng.choice(["the", "a", "up"]) for _ in range(4)]
            words.insert(rng.randrange(5), ["bad", "good"][label])
            rows.append((" ".join(words), planted.TASK.labels[label]))
        with (folder / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    return load_corpus(str(folder))


def blank(seed: int = 0) -> Encoder:
    """An encoder that knows nothing, so that its start is a random one, too."""
    torch.manual_seed(seed)
    config = hf.BertConfig(
        vocab_size=5 + len(planted.WORDS), hidden_size=16, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=32, max_position_embeddings=16,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.1,
    )  # fmt: skip
    return Encoder(hf.BertModel(config).eval(), planted.tokenizer(), name="blank")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return written(tmp_path_factory.mktemp("landscape") / "task")


@pytest.fixture(scope="module")
def result(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Stopped in the middle of a surface, and then done by the same command."""
    store, rows, done = str(tmp_path_factory.mktemp("landscape-store")), Survey.row, 0

    def some(self: Survey, plane: str, number: int) -> Any:
        nonlocal done
        done += 1
        if done > 3:
            raise RuntimeError("killed")
        return rows(self, plane, number)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(Survey, "row", some)
        with pytest.raises(JobError, match="killed"):
            bt.run("loss-landscape", blank(), task=corpus, store=store, **SMALL)
    with pytest.MonkeyPatch.context() as changed:  # no model is trained again
        changed.setattr("bertology.train.landscape.walks._train", None)
        changed.setattr("bertology.train.tuning.tune", None)
        return bt.run("loss-landscape", blank(), task=corpus, store=store, **SMALL)


def test_a_study_of_a_real_model_runs_to_its_end(result: Result) -> None:
    runs = result.tables["runs"].set_index(["start", "seed"])
    assert runs["trained"].all()
    assert (runs["accuracy"] > 0.9).all()
    assert (runs["eigenvalue_1"] > 0).all()
    assert np.isfinite(runs["width"]).all()
    assert (runs[["matched_width", "matched_eigenvalue_1"]] > 0).to_numpy().all()
    surfaces = result.tables["surfaces"]
    assert len(surfaces) == 2 * 2 * 25
    middle = surfaces[(surfaces["plane"] == "around") & (surfaces["x"] == 0) & (surfaces["y"] == 0)]
    for start, loss in zip(middle["start"], middle["loss"], strict=True):
        assert loss == pytest.approx(runs.loc[(start, 1), "loss"], rel=1e-4)
    path = result.tables["path"].set_index(["start", "stop"])
    last = f"epoch {SMALL['epochs']}"
    for start in ("pretrained", "random"):
        assert path.loc[(start, last), "x"] == pytest.approx(1, abs=1e-4)
        assert path.loc[(start, last), "loss"] == pytest.approx(
            runs.loc[(start, 1), "loss"], rel=1e-4
        )
        assert path.loc[(start, "twin's end"), "inside"] == pytest.approx(1, abs=1e-4)
    lines = result.tables["lines"]
    between = lines[(lines["line"] == "between") & (lines["start"] == "random")]
    assert len(between) == SMALL["grid"]


def test_what_was_stopped_has_the_numbers_of_one_that_was_not(
    result: Result, corpus: Corpus
) -> None:
    """A part is a function of model, data and parameters: alone, in another process, again."""
    study = LossLandscape(**SMALL)
    alone = study.measure(blank(), corpus, "random-path-row-2", Context())
    surfaces = result.tables["surfaces"]
    chosen = (surfaces["start"] == "random") & (surfaces["plane"] == "path")
    row = surfaces[chosen & np.isclose(surfaces["y"], 0.5)]
    assert row["loss"].tolist() == alone["losses"].to_numpy().tolist()


def test_ctrl_c_is_left_to_the_worker(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*given: Any, **more: Any) -> None:
        raise InterruptedRunError("stopped")

    monkeypatch.setattr("bertology.train.landscape.survey.walked", stop)
    with pytest.raises(InterruptedRunError):
        LossLandscape(**SMALL).measure(blank(), corpus, "random-run-1", Context())


def test_the_random_start_may_have_more_epochs(corpus: Corpus) -> None:
    study = LossLandscape(epochs=2, random_epochs=9)
    epochs = {s: study._job(blank(), corpus, s, 0).settings.epochs for s in study.variants}
    assert epochs == {"pretrained": 2, "random": 9}
