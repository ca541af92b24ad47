"""Studies are tested with few and small parts."""

from __future__ import annotations

import pytest

from bertology.studies.designs.sweeps import HeadSweep


@pytest.fixture(autouse=True)
def few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of tests in one or two parts: writing a part takes longer than measuring it."""
    monkeypatch.setattr(HeadSweep, "block", 256)
