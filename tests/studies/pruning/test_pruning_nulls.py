"""Claims on pruning in worlds where nothing is to be found: a few draws of each.

`benchmarks/claim_nulls.py` draws a hundred; here a null that errs often is caught early.
"""

from __future__ import annotations

from collections import Counter

import pytest
from scipy.stats import binom

DRAWS = {
    "one seed stops early, survivors of chance": 6,
    "the same survivors, seeds stop at different steps": 6,
    "layers differ, heads are chance": 9,
    "one head left": 9,
    "random importances of a learnt task": 1,
    "trainings that fail": 5,
    "tasks keep the same heads": 3,
}


@pytest.mark.parametrize("name", DRAWS)
def test_false_verdicts_are_rare(name: str) -> None:
    from nulls import lottery, pruning

    (null,) = (n for n in (*lottery.NULLS, *pruning.NULLS) if n.name == name)
    wrong = Counter[str]()
    for seed in range(DRAWS[name]):
        found = null.draw(seed)
        assert set(null.false) <= set(found)
        wrong.update(claim for claim, false in null.false.items() if found[claim] in false)
    most = binom.ppf(0.9995, DRAWS[name], 0.05)
    assert all(count <= most for count in wrong.values()), wrong
