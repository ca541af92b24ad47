"""The study of the documentation is tested as studies are."""

from __future__ import annotations

import pytest


@pytest.fixture
def drawn() -> None:
    """Figures are drawn here in any case."""
