"""Magnitude pruning: shares and overlaps are those of the masks, and chance gives no agreement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import xarray as xr

import planted_links
import planted_parts
from bertology.results.result import Result
from bertology.studies.pruning.magnitude_pruning import MagnitudePruning, MagnitudePruningResult
from bertology.train import iterative_pruning
from made_prunings import FACTS, deciding, planes_of, provenance
from result_conformance import ResultConformance, claims_of

KINDS = ("attention.self.query", "output.dense")
LAYERS, SIZE = 3, 4000  # weights of a matrix


def made_up(
    *,
    seeds: int = 5,
    share: float = 0.5,
    spread: float = 0.002,
    same: float = 0.9,
    draw: int = 0,
    learnt: bool = True,
    stops: Sequence[int] | None = None,
) -> Result:
    """Masks whose weights are the `same` with this share, the others drawn anew with each seed.

    `spread` is the standard deviation over seeds of the share that is left, alike in all matrices.
    Seeds that are named in `stops` keep that many steps only (3 for all, the whole model counted).
    """
    rng = np.random.default_rng(draw)
    places = [(layer, kind) for layer in range(LAYERS) for kind in KINDS] + [(-1, "classifier")]
    common, fixed = rng.random((2, len(places), SIZE))
    parts = {}
    for k in range(seeds):
        left = np.clip(share + rng.normal(0, spread), 0, 1)
        order = np.where(fixed < same, common, rng.random(common.shape))
        ranks = np.argsort(np.argsort(order, axis=1), axis=1)
        steps = [ranks < round(of * SIZE) for of in (1, (1 + left) / 2, left, 0.9 * left)]
        reported = np.array([0.9, 0.88, 0.84, 0.6]) + rng.normal(0, 0.01, 4)
        parts[f"magnitude-seed-{k}"] = xr.Dataset(
            {
                "planes": (("plane", "byte"), planes_of(steps)),
                "kept": (("step", "matrix"), [mask.sum(1) for mask in steps]),
                "size": ("matrix", [SIZE] * len(places)),
                "layer": ("matrix", [layer for layer, _ in places]),
                "kind": ("matrix", [kind for _, kind in places]),
                "score": ("step", reported),
                "reported": ("step", reported),
                "left_weights": ("step", [mask.sum() for mask in steps]),
                "learnt": int(learnt),
                "floor": 0.8,
                **deciding(3 if stops is None else stops[k]),
            },
            attrs={**FACTS, "mask": "f"},
        )
    return MagnitudePruning(seeds=seeds).conclude(parts, provenance("magnitude-pruning"))


class TestResult(ResultConformance):
    measures = frozenset({"weights-left"})

    @staticmethod
    def make() -> Result:
        return made_up()


def test_what_was_published_bears_the_claims_out() -> None:
    found = claims_of(made_up(seeds=5, spread=0.001))
    assert set(found.values()) == {"holds"}
    assert len(found) == 3


def test_other_weights_and_other_sizes_do_not() -> None:
    found = claims_of(made_up(same=0.0, spread=0.1, share=0.7, seeds=8))
    assert found["nuggets-lottery.magnitude-pruning-keeps-the-same-weights"] == "fails"
    assert found["nuggets-lottery.magnitude-pruning-is-stable"] == "fails"
    assert found["primer-redundancy.a-third-of-the-weights-can-go"] != "holds"
    assert set(claims_of(made_up(learnt=False)).values()) == {"not-applicable"}


def test_tables_are_those_of_the_masks() -> None:
    result = made_up(seeds=3, same=0.0, spread=0.0)
    overlaps = result.tables["overlaps"]
    assert len(overlaps) == 3
    np.testing.assert_allclose(overlaps["jaccard"], overlaps["chance"], atol=0.02)
    np.testing.assert_allclose(overlaps["kappa"], 0, atol=0.03)
    assert result.tables["matrices"]["mean"].to_numpy() == pytest.approx(0.5)
    assert (result.tables["matrices"]["layer"] == -1).sum() == 1
    assert result.tables["layers"]["layer"].tolist() == [0, 1, 2]


def test_seeds_that_stop_at_other_steps_are_compared_where_as_much_is_left() -> None:
    """Seeds go 25 or 50 % far; at the step that all kept they keep the same weights."""
    result = made_up(seeds=5, spread=0.0, same=1.0, stops=(2, 3, 3, 2, 3))
    assert result.facts["compared_left"] == pytest.approx(0.75)
    assert result.tables["overlaps"]["kappa"].tolist() == [1] * 10
    assert result.tables["matrices"]["mean"].to_numpy() == pytest.approx(0.75)
    assert result.tables["matrices"]["std"].max() == 0
    assert claims_of(result)["nuggets-lottery.magnitude-pruning-is-stable"] != "fails"
    assert result.evidence()["weights_removed"].value == pytest.approx((2 * 0.25 + 3 * 0.5) / 5)
    none = made_up(seeds=3, stops=(1, 3, 3))
    assert "no step was kept" in none.reasons()["survival_spread"]
    assert "no step was kept" in none.reasons()["mask_kappa"]


@pytest.mark.parametrize("start", ["fine-tuned", "rewound"])
def test_a_small_study_runs_to_its_end(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        MagnitudePruning, "load_train", lambda self, corpus: planted_parts.corpus(150, seed=9)
    )
    trained = []
    real = iterative_pruning.tune
    monkeypatch.setattr(
        iterative_pruning, "tune", lambda *given, **how: trained.append(1) or real(*given, **how)
    )
    study = MagnitudePruning(
        seeds=2, start=start, share=0.8, epochs=1, learning_rate=1e-3, deciding=25
    )
    result = planted_links.ask(study, planted_parts.encoder(), planted_parts.corpus(60))
    assert isinstance(result, MagnitudePruningResult)
    runs = result.tables["runs"]
    assert (runs["left"] < 1).all()
    steps = len(result.tables["steps"]) - 2  # the whole models are no steps
    assert len(trained) == 2 + (steps if start == "rewound" else 0)
    assert (result.tables["overlaps"]["kappa"] > 0.2).all()
