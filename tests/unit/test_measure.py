"""A measure keeps to one shape, and its name to one alphabet."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.errors import ParameterError
from bertology.results.measures import Measure, dashed


def test_a_measure_whose_bounds_have_another_shape_is_refused() -> None:
    with pytest.raises(ParameterError, match="low"):
        Measure("a", "A", np.zeros((2, 2)), low=np.zeros(2))


def test_names_of_the_data_become_pieces_of_names() -> None:
    assert dashed("role:Agent") == "role-agent"
    assert dashed("vertical+diagonal") == "vertical-diagonal"
