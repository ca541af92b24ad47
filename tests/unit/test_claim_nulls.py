"""Every claim has a null under which its false verdicts can be counted (`benchmarks/`)."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from bertology.results.known_claims import load_claims


@pytest.fixture
def benchmark() -> ModuleType:
    import claim_nulls

    return claim_nulls


def test_every_claim_has_a_null(benchmark: ModuleType) -> None:
    known = {claim for null in benchmark.NULLS for claim in null.false}
    assert {claim.id.partition(".")[2] for claim in load_claims()} == known


def test_names_of_nulls_are_keys(benchmark: ModuleType) -> None:
    names = [null.name for null in benchmark.NULLS]
    assert len(set(names)) == len(names)


def test_what_was_drawn_is_not_drawn_again(benchmark: ModuleType, tmp_path: Path) -> None:
    (null,) = (n for n in benchmark.NULLS if n.name == "types of heads shuffled")
    path = tmp_path / "nulls.jsonl"
    for repetitions in (1, 2, 2):
        benchmark.run([null], repetitions, path)
    assert [seed for _, seed in benchmark.read(path)] == [0, 1]
    *_, row = benchmark.table([null], ["heads-keep-their-map-type-over-tasks"], path)
    assert (
        row
        == "| heads-keep-their-map-type-over-tasks | types of heads shuffled | 2 | 2 | 0 | 0.776 |"
    )


def test_bounds_are_those_of_clopper_and_pearson(benchmark: ModuleType) -> None:
    assert benchmark.bounds(0, 100) == pytest.approx((0, 0.0295), abs=1e-4)
    assert benchmark.bounds(10, 100)[0] > 0.05
    assert benchmark.bounds(100, 100) == pytest.approx((0.9705, 1), abs=1e-4)
