"""Minimal pairs: a model that knows which sentence is good, and one that knows nothing."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import bertology as bt
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.cloze.minimal_pairs import MinimalPairs
from result_conformance import ResultConformance

WORDS = ["the", "key", "keys", "is", "are", "here"]


def concluded(better: dict[str, list[float]]) -> Result:
    values = np.concatenate(list(better.values()))
    groups = [name for name, given in better.items() for _ in given]
    part = xr.Dataset({"better": ("example", values), "group": ("example", groups)})
    provenance = Provenance(
        "minimal-pairs", 1, {}, {"name": "m", "fingerprint": "f"}, {"name": "c", "fingerprint": "c"}
    )
    return MinimalPairs().conclude({"examples-000000-000128": part}, provenance)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return concluded({"agreement": [1.0, 2.0, -1.0], "islands": [0.5, -0.5]})


def test_pairs_are_counted_by_group_and_ties_count_half() -> None:
    result = concluded({"a": [1.0] * 40, "b": [1.0, -1.0] * 20, "c": [0.0] * 20})
    table = result.table().set_index("group")
    assert table.loc["a", "accuracy"] == 1
    assert table.loc["a", "low"] < 1  # forty right pairs are no certainty
    assert table.loc["b", "accuracy"] == table.loc["c", "accuracy"] == 0.5
    found = result.evidence()["pair_accuracy"]
    assert found.value == pytest.approx(0.7)
    assert (found.n, found.unit) == (100, "pairs")
    assert "70.0 % [" in result.answer


def test_intervals_cover_the_truth() -> None:
    rng, missed = np.random.default_rng(0), 0
    for _ in range(40):
        right = rng.random(60) < 0.8
        found = concluded({"a": np.where(right, 1.0, -1.0).tolist()}).evidence()["pair_accuracy"]
        missed += found.excludes(0.8)
    assert missed <= 6


def test_it_runs_on_a_corpus_without_groups(tmp_path: object) -> None:
    encoder = Encoder(tiny.model("bert", head="mlm"), tiny.tokenizer(WORDS), head="mlm", name="m")
    examples = [
        Example(id=str(i), text="the keys are here", annotations={"contrast": "the keys is here"})
        for i in range(4)
    ]
    corpus = Corpus("pairs", examples, frozenset({Field.TEXT, Field.CONTRAST}))
    result = bt.run("minimal-pairs", encoder, corpus=corpus, store=str(tmp_path), progress=False)
    assert list(result.table()["group"]) == ["all"]
