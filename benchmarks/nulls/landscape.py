"""Nulls of loss landscapes: two sets of one kind of start, and borders that lie at the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import test_loss_landscape as made

from bertology.studies.study import Context
from bertology.studies.training.loss_landscape import LossLandscape, read_part
from bertology.train.starts import find_start
from bertology.train.tuning import TuningJob
from nulls import BORDER, HOLDS, Null, at_the_truth, judged

_STUDY = "loss-landscape"
_CLAIMS = tuple(claim.partition(".")[2] for claim in made.CLAIMS)
_OTHER_SEEDS = 500  # of the second set of random starts


def equal_starts(seed: int) -> Mapping[str, str]:
    """Widths and curvatures of both starts are drawn alike, with noise of any size."""
    noise = (0.05, 0.2, 0.6)[seed % 3]
    seeds = 3 + seed // 3 % 5
    failed = (1,) if seeds > 4 and seed % 2 else ()  # runs that did not train, whatever their width
    found = made.made_up(noise=noise, seeds=seeds, draw=seed, surfaces=False, failed=failed)
    return judged(_STUDY, found)


def gains_at_the_truth(seed: int) -> Mapping[str, str]:
    """A known gain, and rules whose border lies there."""
    wider, flatter = (0.3, -0.5, 1.5)[seed % 3], (1.0, 0.2, -0.7)[seed % 3]
    found = made.made_up(wider, flatter, seeds=3 + seed // 3 % 5, draw=seed, surfaces=False)
    truth = {"width_gain": wider, "flatness_gain": flatter}
    truth |= {f"matched_{name}": value for name, value in truth.items()}
    return at_the_truth(_STUDY, found.evidence(), truth)


def two_sets_of_random_starts(seed: int) -> Mapping[str, str]:
    """Models are really trained, both kinds from random weights, on a task that all of them learn.

    What stands for the pre-trained start are random starts of other seeds: one encoder for all
    seeds would be one draw, whose own width is no null.
    """
    plain = LossLandscape._job

    def random_too(self: LossLandscape, *given: Any) -> TuningJob:
        *rest, start, number = given
        job = plain(self, *rest, start, number)
        if start == "random":
            return job
        settings = replace(job.settings, seed=_OTHER_SEEDS + job.settings.seed)
        return replace(job, start=find_start("random"), settings=settings)

    with TemporaryDirectory() as folder, patch.object(LossLandscape, "_job", random_too):
        corpus = made.written(Path(folder) / "task", seed=seed)
        how = made.SMALL | {"seeds": 4, "epochs": 10, "without_surfaces": True, "iterations": 6}
        study, encoder = LossLandscape(**how), made.blank(seed)
        # Runs only: no claim rests on lines between them.
        runs = [p for p in study.parts(encoder.shape, corpus) if read_part(p).kind == "run"]
        measured = {part: study.measure(encoder, corpus, part, Context()) for part in runs}
        found = study.conclude(measured, made.provenance())
    return judged(_STUDY, found)


NULLS = (
    Null("optima of two starts that are alike", equal_starts, dict.fromkeys(_CLAIMS, HOLDS)),
    Null("border at the truth (optima)", gains_at_the_truth, dict.fromkeys(_CLAIMS, BORDER)),
    Null(
        "two sets of random starts, trained",
        two_sets_of_random_starts,
        dict.fromkeys(_CLAIMS, HOLDS),
    ),
)
