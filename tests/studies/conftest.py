"""Studies are tested for their numbers; that stored results are drawn is tested once for each."""

from __future__ import annotations

import pytest

from bertology.results.store import Store
from bertology.studies.designs.sweeps import HeadSweep


@pytest.fixture(autouse=True)
def nothing_drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store draws all figures of what it saves, which takes longer than most studies here."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(Store, "_draw", lambda *given: None)


@pytest.fixture
def drawn() -> None:
    """Lets a test have the figures drawn."""


@pytest.fixture(autouse=True)
def few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of tests in one or two parts: writing a part takes longer than measuring it."""
    monkeypatch.setattr(HeadSweep, "block", 256)
