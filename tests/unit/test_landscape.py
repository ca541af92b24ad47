"""Landscapes whose shape is known: a quadratic loss bends as theory says, to 1 %."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import planted
from bertology.drafts import alone_with
from bertology.model.encoder import Encoder
from bertology.train.finetune import FinetuneSettings
from bertology.train.landscape.curvature import Hessian, largest_eigenvalues
from bertology.train.landscape.directions import (
    difference,
    filter_scales,
    length,
    plane_through,
    random_direction,
)
from bertology.train.landscape.survey import constant_loss
from bertology.train.landscape.terrain import Terrain, copied, points_together, standing_at
from bertology.train.landscape.walks import Walk, end_of, walked
from bertology.train.landscape.widths import barrier, measure_widths
from bertology.train.starts import STARTS, begin
from bertology.train.tuning import TuningJob

ROWS, WIDE = 400, 40


class Line(nn.Module):
    """A linear regression: its squared error is a quadratic function of the weights."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.dense = nn.Linear(WIDE, 1)
        with torch.no_grad():
            self.dense.weight.copy_(weights)
            self.dense.bias.zero_()

    def forward(self, features: Tensor) -> Any:
        return SimpleNamespace(logits=self.dense(features))


@pytest.fixture(scope="module")
def bowl() -> tuple[Terrain, np.ndarray]:
    """A terrain whose model stands at the minimum, and its Hessian over the matrix."""
    generator = torch.Generator().manual_seed(0)
    # A few steep directions and many shallow ones, as in real networks.
    features = torch.randn(ROWS, WIDE, generator=generator) * torch.linspace(3, 0.2, WIDE)
    features -= features.mean(0)
    targets = torch.randn(ROWS, generator=generator)
    targets -= targets.mean()
    best = torch.linalg.lstsq(features.double(), targets.double()[:, None]).solution.float()
    batches = [
        ({"features": features[i : i + 150]}, targets[i : i + 150]) for i in range(0, ROWS, 150)
    ]
    x = features.double().numpy()
    return Terrain(Line(best.T), batches, "regression"), 2 * x.T @ x / ROWS


def test_eigenvalues_and_trace_of_a_quadratic_are_those_of_theory(
    bowl: tuple[Terrain, np.ndarray],
) -> None:
    terrain, hessian = bowl
    size = float(copied(terrain.model)["dense.weight"].norm())
    scales = filter_scales(copied(terrain.model))
    expected = hessian * size**2 / WIDE  # one filter, as long as the row of weights
    known = np.sort(np.linalg.eigvalsh(expected))[::-1]
    found = Hessian(terrain, scales).spectrum(iterations=40, count=3, tolerance=1e-6)
    assert found.largest == pytest.approx(known[:3], rel=0.01)
    assert found.errors[0] < 0.01 * known[0]
    traces = Hessian(terrain, scales).traces(probes=1000, seed=0)
    error = traces.std(ddof=1) / np.sqrt(len(traces))
    assert 4 * error < 0.01 * np.trace(expected)  # enough probes: a right estimate is within 1 %
    assert traces.mean() == pytest.approx(np.trace(expected), rel=0.01)
    # In plain coordinates the bias counts too; its curvature is 2.
    plain = Hessian(terrain).spectrum(iterations=41, count=1, tolerance=1e-6)
    assert plain.largest[0] == pytest.approx(np.linalg.eigvalsh(hessian)[-1], rel=0.01)
    exact = sum(
        float(Hessian(terrain).product(unit)[i]) for i, unit in enumerate(torch.eye(WIDE + 1))
    )
    assert exact == pytest.approx(np.trace(hessian) + 2, rel=0.01)


def test_widths_of_a_quadratic_are_those_of_theory(bowl: tuple[Terrain, np.ndarray]) -> None:
    terrain, hessian = bowl
    here = copied(terrain.model)
    ways = [random_direction(here, seed=(0, number)) for number in range(4)]
    found = measure_widths(terrain, here, ways, rise=0.3, reach=2.0, points=11)
    steps = [way["dense.weight"].double().numpy()[0] for way in ways]
    mean = np.mean([step @ hessian @ step for step in steps])
    assert found.width == pytest.approx(np.sqrt(2 * 0.3 / mean), rel=0.01)
    assert found.losses.shape == (4, 11)
    assert found.losses[:, 5] == pytest.approx(terrain.loss())
    # What is measured does not depend on how far is drawn, within five times of it.
    near = measure_widths(terrain, here, ways, rise=0.3, reach=found.width / 3, points=5)
    assert near.width == pytest.approx(found.width, rel=0.01)
    far = measure_widths(terrain, here, ways[:1], rise=1e9, reach=0.1, points=5)
    assert np.isinf(far.width)


def test_directions_have_the_length_of_filters_and_leave_biases_alone() -> None:
    weights = {
        "a.weight": torch.tensor([[3.0, 4.0], [0.0, 0.0]]),
        "a.bias": torch.ones(2),
    }
    found = random_direction(weights, seed=(3, 1))
    assert list(found) == ["a.weight"]
    assert found["a.weight"].norm(dim=1).tolist() == pytest.approx([5.0, 0.0])
    again, other = (random_direction(weights, seed=(3, n)) for n in (1, 2))
    assert torch.equal(found["a.weight"], again["a.weight"])
    assert not torch.equal(found["a.weight"], other["a.weight"])


def test_a_plane_goes_through_its_three_models() -> None:
    generator = torch.Generator().manual_seed(1)
    start, end, twin, off = ({"w": torch.randn(5, 7, generator=generator)} for _ in range(4))
    plane = plane_through(start, end, twin)
    assert plane.place(start) == pytest.approx((0, 0, 1))
    assert plane.place(end) == pytest.approx((1, 0, 1), abs=1e-5)
    x, y, inside = plane.place(twin)
    assert inside == pytest.approx(1, abs=1e-5)
    made = {"w": start["w"] + x * plane.along["w"] + y * plane.across["w"]}
    assert length(difference(made, twin)) < 1e-4
    assert plane.place(off)[2] < 0.9


def test_a_barrier_is_what_stands_above_the_straight_line() -> None:
    assert barrier(np.array([1.0, 3.0, 2.0])) == pytest.approx(1.5)
    assert barrier(np.array([1.0, 0.5, 2.0])) == 0.0  # both ends lie on the line


def test_lanczos_ends_where_the_space_does() -> None:
    found = largest_eigenvalues(lambda v: 3 * v, torch.ones(4), iterations=9, count=2)
    assert found.largest.tolist() == pytest.approx([3.0])
    assert found.steps == 1


# A real model ------------------------------------------------------------------------------------


def job(*, seed: int = 0, epochs: int = 2, size: int = 48) -> TuningJob:
    encoder = Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")
    settings = FinetuneSettings(epochs=epochs, batch_size=16, learning_rate=1e-3, seed=seed)
    train, unseen = planted.corpus(size, seed=1), planted.corpus(16, seed=2)
    return TuningJob(encoder, train, unseen, STARTS["pretrained"], settings)


def over(asked: TuningJob, tokens: int = 256) -> Terrain:
    from bertology.train.encoded import encode, task_of

    model = begin(asked.encoder, task_of(asked.train), asked.start, seed=0)
    encoded = encode(asked.train, asked.encoder.tokenizer, None)
    return Terrain.over(model, encoded, task_of(asked.train), batch_tokens=tokens)


def test_points_are_the_same_together_and_one_by_one_and_leave_no_trace() -> None:
    terrain = over(job())
    here = copied(terrain.model)
    ways = [random_direction(here, seed=(0, n)) for n in range(2)]
    steps = np.random.default_rng(0).normal(size=(5, 2))
    alone = terrain.losses(here, ways, steps, together=1)
    assert terrain.losses(here, ways, steps, together=3) == pytest.approx(alone, rel=1e-5)
    # The slow way: a model whose weights are those of the point.
    moved = {
        n: w + sum(s * way[n] for s, way in zip(steps[2], ways, strict=True) if n in way)
        for n, w in here.items()
    }
    with standing_at(terrain.model, moved):
        assert terrain.loss() == pytest.approx(alone[2], rel=1e-5)
    assert all(torch.equal(w, here[n]) for n, w in copied(terrain.model).items())
    assert points_together(terrain) == 1  # no GPU, nothing to fill


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_points_of_a_recording_are_those_of_plain_passes() -> None:
    asked = job()
    asked.encoder.model.cuda()
    terrain = over(asked)
    assert terrain.recorded
    here = copied(terrain.model)
    ways = [random_direction(here, seed=(0, n)) for n in range(2)]
    steps = np.random.default_rng(0).normal(size=(9, 2))
    found = terrain.losses(here, ways, steps, together=1)
    plain = replace(terrain, recorded=False).losses(here, ways, steps, together=1)
    assert found == pytest.approx(plain, rel=1e-5)
    assert len(set(found)) == len(steps)


def test_curvature_is_that_of_small_steps() -> None:
    terrain = over(job(size=16))
    here = copied(terrain.model)
    way = random_direction(here, seed=(0, 5))
    flat = torch.cat([way.get(n, torch.zeros_like(w)).reshape(-1) for n, w in here.items()])
    bent = float(flat @ Hessian(terrain).product(flat))
    terrain.model.double()
    exact = {n: w.double() for n, w in here.items()}
    step = 1e-3
    low, middle, high = terrain.losses(
        exact, [{n: w.double() for n, w in way.items()}], [[-step], [0], [step]]
    )
    assert bent == pytest.approx((low - 2 * middle + high) / step**2, rel=0.01)


def test_at_like_loss_answers_that_are_only_surer_are_as_sharp(
    bowl: tuple[Terrain, np.ndarray],
) -> None:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(200, WIDE, generator=generator)
    wanted = torch.randn(2, WIDE, generator=generator)
    targets = (features @ wanted.T + torch.randn(200, 2, generator=generator)).argmax(1)
    found = []
    for times in (0.3, 1.0):
        line = Line(torch.zeros(1, WIDE))
        line.dense = nn.Linear(WIDE, 2)
        with torch.no_grad():
            line.dense.weight.copy_(times * wanted)
            line.dense.bias.zero_()
        terrain = Terrain(line, [({"features": features}, targets)], "classification")
        alike = terrain.softened_to(0.4, copied(line))
        assert alike is not None
        assert alike.loss() == pytest.approx(0.4, abs=1e-6)
        scales = filter_scales(copied(line))
        bends = [Hessian(t, scales).spectrum(iterations=20).largest[0] for t in (terrain, alike)]
        found.append(bends)
    assert found[0][0] != pytest.approx(found[1][0], rel=0.2)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-3)
    assert terrain.softened_to(0.01, copied(line)) is None  # it is not below that
    assert bowl[0].softened_to(0.4, copied(bowl[0].model)) is None  # no classes


def test_a_constant_answer_costs_the_entropy_of_the_labels() -> None:
    corpus = planted.corpus(40)
    share = np.mean([e.get("label") for e in corpus])
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert constant_loss(corpus) == pytest.approx(entropy)


def test_ways_are_kept_and_a_killed_one_goes_on_with_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = walked(Walk(job()), None)
    assert len(whole) == 2

    class Killed(BaseException):
        """As if the process had ended."""

    def killed(done: float) -> None:
        if done > 0.5:
            raise Killed

    with pytest.raises(Killed):
        walked(Walk(job()), tmp_path, tell=killed)
    assert [p.name for p in (tmp_path / "walks").iterdir() if p.suffix == ""] != []
    resumed = walked(Walk(job()), tmp_path)
    for one, other in zip(whole, resumed, strict=True):
        assert all(torch.equal(w, other[n]) for n, w in one.items())
    assert [p.name for p in (tmp_path / "walks").iterdir()] == [Walk(job()).identity]
    # The end is that of the model which all studies share.
    assert all(torch.equal(w, whole[-1][n]) for n, w in end_of(job(), None).items())
    monkeypatch.setattr("bertology.train.landscape.walks._train", None)  # nothing is trained
    assert len(walked(Walk(job()), tmp_path)) == 2


def test_a_twin_begins_alike_and_ends_elsewhere() -> None:
    one = walked(Walk(job(epochs=1)), None)[-1]
    [twin] = walked(Walk(job(epochs=1), order=77, last=True), None)
    assert any(not torch.equal(w, twin[n]) for n, w in one.items())
    assert Walk(job(), order=77).identity != Walk(job()).identity


def test_one_process_at_a_time_is_alone(tmp_path: Path) -> None:
    with alone_with(tmp_path / "lock"):
        assert (tmp_path / "lock").exists()
