"""Studies are tested with few and small parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bertology.studies.designs.sweeps import HeadSweep
from bertology.train.probes import battery, tree_scores


@pytest.fixture(autouse=True)
def few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of tests in one or two parts: writing a part takes longer than measuring it."""
    monkeypatch.setattr(HeadSweep, "block", 256)


@pytest.fixture(scope="module")
def few_steps() -> Iterator[None]:
    """For tests where what is planted is plain, so that probes find it soon.

    `tests/unit/test_probes.py` and `test_structural.py` hold that all steps lead to the optimum.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(battery, "_STEPS", (20, 80))
        patch.setattr(tree_scores, "_STEPS", 500)
        yield
