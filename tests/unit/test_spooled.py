"""Numbers on disk: what goes in comes back, group by group."""

from __future__ import annotations

import gc
import tempfile
from typing import Any

import numpy as np
import pytest

from bertology.errors import StoreError
from bertology.studies.designs.parts import Spooled


def test_groups_come_back_whole() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((7, 3, 2, 4)).astype(np.float32)
    spooled = Spooled()
    assert len(spooled) == 0
    for at in (0, 3, 5):
        spooled.append(values[at : at + 3 if at == 0 else at + 2])
    assert len(spooled) == 3
    for group in range(3):
        np.testing.assert_array_equal(spooled[group], values[:, group])
        np.testing.assert_array_equal(spooled.rows(group), values[:, group].reshape(7, -1).T)


def test_numbers_keep_their_kind() -> None:
    spooled = Spooled()
    spooled.append(np.array([[1.5, np.nan]]))
    assert spooled[1].dtype == np.float64
    assert np.isnan(spooled[1]).all()


def test_a_full_disk_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def seek(self, *where: int) -> int:
            return 0

        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            pass

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    with pytest.raises(StoreError, match="No space left") as told:
        Spooled().append(np.zeros((2, 2)))
    assert "TMPDIR" in str(told.value.hint)


def test_no_place_for_temporary_files_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", nowhere)
    with pytest.raises(StoreError, match="No usable temporary directory"):
        Spooled()


def test_pieces_of_another_kind_are_made_alike() -> None:
    spooled = Spooled()
    spooled.append(np.ones((2, 1), np.float32))
    spooled.append(np.full((1, 1), 2.0))
    assert spooled[0].tolist() == [1, 1, 2]


def test_the_file_goes_with_it() -> None:
    """Warnings are errors here: a file left open would be one."""
    spooled = Spooled()
    spooled.append(np.zeros((2, 2)))
    file = spooled._file
    del spooled
    gc.collect(1)  # it is young; to look through all that tests left takes seconds
    assert file.closed
