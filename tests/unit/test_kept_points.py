"""Points of a surface that were computed survive a kill, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted
from bertology.model.encoder import Encoder
from bertology.train.finetune import FinetuneSettings
from bertology.train.landscape import survey as survey_module
from bertology.train.landscape.survey import PLANES, Asked, Survey, in_pieces
from bertology.train.landscape.terrain import Terrain
from bertology.train.starts import STARTS
from bertology.train.tuning import TuningJob

GRID = 7
LOSSES = np.random.default_rng(0).normal(size=12) / 3  # no short decimals


class KilledError(BaseException):
    """As if the process had gone."""


class Asking:
    """Gives the losses of points, each after so many seconds, and knows which were asked for."""

    def __init__(self, clock: list[float], seconds: float, killed_at: int = 99) -> None:
        self.clock, self.seconds, self.killed_at = clock, seconds, killed_at
        self.pieces: list[tuple[int, int]] = []

    def __call__(self, first: int, last: int) -> Any:
        if first <= self.killed_at < last:
            raise KilledError
        self.pieces.append((first, last))
        self.clock[0] += self.seconds * (last - first)
        return LOSSES[first:last]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A time that passes only while points are computed."""
    now = [0.0]
    monkeypatch.setattr(survey_module.time, "monotonic", lambda: now[0])
    return now


def test_slow_points_are_kept_one_by_one(clock: list[float], tmp_path: Path) -> None:
    file = tmp_path / "rows" / "one.json"
    with pytest.raises(KilledError):
        in_pieces(Asking(clock, 60.0, killed_at=5), 12, file)
    assert json.loads(file.read_text()) == LOSSES[:5].tolist()
    rest = Asking(clock, 60.0)
    assert np.array_equal(in_pieces(rest, 12, file), LOSSES)
    assert rest.pieces == [(i, i + 1) for i in range(5, 12)]
    assert list(file.parent.iterdir()) == []


def test_fast_points_are_computed_together_and_never_wait_for_the_disk(
    clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "_write", None)
    fast = Asking(clock, 0.01)
    assert np.array_equal(in_pieces(fast, 12, tmp_path / "one.json"), LOSSES)
    assert fast.pieces == [(0, 1), (1, 12)]
    # Points that share a pass stay together.
    grouped = Asking(clock, 0.2)
    monkeypatch.undo()
    monkeypatch.setattr(survey_module.time, "monotonic", lambda: clock[0])
    assert np.array_equal(in_pieces(grouped, 12, tmp_path / "one.json", multiple=4), LOSSES)
    assert grouped.pieces == [(0, 4), (4, 8), (8, 12)]


def test_what_cannot_be_read_is_computed_again(clock: list[float], tmp_path: Path) -> None:
    for text in ("", "[0.1, ", "7", '["x"]', "[null]"):
        (tmp_path / "one.json").write_text(text)
        assert np.array_equal(in_pieces(Asking(clock, 1.0), 12, tmp_path / "one.json"), LOSSES)


@pytest.mark.parametrize("plane", PLANES)
def test_a_killed_row_asks_the_model_for_the_other_points_only(
    plane: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = survey(tmp_path / "whole").row(plane, 2)
    passes, points, killed_at = 0, Terrain._moved, 4

    def counted(*given: Any) -> Any:
        nonlocal passes
        if passes == killed_at:
            raise KilledError
        passes += 1
        return points(*given)

    monkeypatch.setattr(survey_module, "_EVERY", 0.0)  # as if points were slow
    monkeypatch.setattr(Terrain, "_moved", counted)
    with pytest.raises(KilledError):
        survey(tmp_path / "cut").row(plane, 2)
    (file,) = (tmp_path / "cut" / "rows").iterdir()
    assert json.loads(file.read_text()) == whole[:killed_at].tolist()
    passes, killed_at = 0, 99
    assert survey(tmp_path / "cut").row(plane, 2).tolist() == whole.tolist()
    assert passes == GRID - 4
    assert not file.exists()
    passes = 0
    survey(tmp_path / "cut").row(plane, 3)  # another row has a file of its own
    assert passes == GRID


def survey(folder: Path) -> Survey:
    encoder = Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")
    settings = FinetuneSettings(epochs=1, batch_size=16, learning_rate=1e-3)
    train, unseen = planted.corpus(48, seed=1), planted.corpus(16, seed=2)
    job = TuningJob(encoder, train, unseen, STARTS["pretrained"], settings)
    return Survey(job, Asked(sample=16, grid=GRID), folder, drawn=True)
