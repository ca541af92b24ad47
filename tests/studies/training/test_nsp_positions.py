"""NSP positions: a planted effect of the loss is found, noise is not, and a tiny study runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bertology as bt
import tiny
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.training.nsp_positions import NspPositions
from bertology.train.vocabulary import wordpieces
from result_conformance import ResultConformance, claims_of

CLAIM = "primer-training.sentence-position-is-from-nsp"
_OBJECTIVES = ("mlm-nsp", "no-sentence-loss", "no-nsp")


def planted(
    gain: float, *, seeds: int = 5, noise: float = 0.01, draw: int = 0, told: float = 0.8
) -> Result:
    """Measurements that are made up: the shift with NSP is larger by so much."""
    rng = np.random.default_rng(draw)
    parts = {}
    for seed in range(seeds):
        luck = rng.normal(0, 0.05)  # of the seed, which pairing takes out
        for name in _OBJECTIVES:
            shift = 0.3 + luck + rng.normal(0, noise) + (gain if name == "mlm-nsp" else 0)
            numbers: dict[str, Any] = {
                "position_shift": shift,
                "place_shift": shift / 3,
                "segment_shift": shift / 2,
                "position_told": 0.9,
                "mlm_accuracy": 0.3 + rng.normal(0, 0.01),
                "sentence_accuracy": told + rng.normal(0, 0.01) if name == "mlm-nsp" else np.nan,
                "position_by_layer": ("depth", shift * np.array([1.0, 0.8, 1.0])),
            }
            facts = {"mlm_baseline": 0.1, "baseline": np.nan, "metric": ""}
            parts[f"{name}-seed-{seed}"] = xr.Dataset(numbers, attrs=facts)
    about = {"name": "made", "fingerprint": "made"}
    provenance = Provenance("nsp-positions", 1, {}, about, about)
    return NspPositions(seeds=seeds).conclude(parts, provenance)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return planted(0.1)


def test_a_planted_effect_is_found() -> None:
    found = planted(0.1)
    assert claims_of(found)[CLAIM] == "holds"
    assert found.evidence()["nsp_position_shift"].value == pytest.approx(0.1, abs=0.02)
    assert found.answer.startswith("Surely: next-sentence prediction")
    assert claims_of(planted(-0.1))[CLAIM] == "fails"
    rows = found.table("layers")
    assert list(rows["layer"][:3]) == [-1, 0, 1]


def test_noise_is_not_taken_for_an_effect() -> None:
    held = [claims_of(planted(0.0, draw=d, seeds=3))[CLAIM] == "holds" for d in range(20)]
    assert sum(held) <= 3
    assert claims_of(planted(0.1, seeds=1))[CLAIM] == "inconclusive"


def test_models_that_do_not_tell_next_sentences_are_not_judged() -> None:
    found = planted(0.1, told=0.5)
    assert claims_of(found)[CLAIM] == "not-applicable"
    assert "next sentence" in found.reasons()["nsp_position_shift"]
    assert "Nothing is sure" in found.answer


@pytest.fixture(scope="module")
def text() -> Corpus:
    return load_corpus("grammar", split="train", limit=200)


def _with_vocabulary(size: int) -> Any:
    model = tiny.model("bert")
    model.resize_token_embeddings(size)
    return model


def test_a_tiny_study_runs_to_its_end(text: Corpus, tmp_path: Path) -> None:
    lines = [str(t) for t in text.texts]
    pieces = wordpieces(lambda: lines, vocab_size=300, max_length=48)
    encoder = Encoder(_with_vocabulary(300), pieces, name="vocabulary")
    found = bt.run(
        "nsp-positions", encoder, corpus=text, store=str(tmp_path), progress=False, layers=1,
        heads=2, hidden=16, updates=6, update_tokens=192, length=48, seeds=1, sentences=10,
    )  # fmt: skip
    runs = found.table("runs").set_index("objective")
    shifts = runs[["position_shift", "place_shift", "segment_shift", "position_told"]]
    assert np.isfinite(shifts.to_numpy()).all()
    assert 0 <= runs.loc["mlm-nsp", "sentence_accuracy"] <= 1
    assert np.isnan(runs.loc["no-nsp", "sentence_accuracy"])
    assert claims_of(found)[CLAIM] in ("inconclusive", "not-applicable")


def test_refuses_before_any_work() -> None:
    with pytest.raises(ParameterError, match="hold mlm-nsp"):
        NspPositions(objectives=("no-nsp",))
    with pytest.raises(ParameterError, match="multiple of heads"):
        NspPositions(heads=3)


def test_refuses_text_without_sentences_to_move_before_training(text: Corpus) -> None:
    encoder = Encoder(tiny.model("bert"), tiny.tokenizer(["sun"]), name="vocabulary")
    long = Corpus.of_texts([f"sun {t}" for t in text.texts][:40])
    with pytest.raises(DataError, match="fit twice into 8 tokens"):
        NspPositions(length=8).check(encoder, long)
    NspPositions(length=64).check(encoder, long)


def test_sentences_differ_from_seed_to_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else intervals over seeds would tell nothing of other sentences."""
    drawn: list[int] = []

    def stop(*_: Any, seed: int, **__: Any) -> Any:
        drawn.append(seed)
        raise InterruptedError

    monkeypatch.setattr("bertology.annotated.moved_sentences.drawn_sentences", stop)
    study = NspPositions()
    model = tiny.model("bert")
    encoder = Encoder(model, tiny.tokenizer(["sun"]), name="vocabulary")
    for seed in (0, 3):
        recipe = study.recipe("mlm-nsp", seed, vocab_size=32)
        with pytest.raises(InterruptedError):
            study.more(
                encoder, Corpus.of_texts(["a"]), SimpleNamespace(model=model),  # type: ignore[arg-type]
                variant="mlm-nsp", recipe=recipe,
            )  # fmt: skip
    assert len(set(drawn)) == 2
