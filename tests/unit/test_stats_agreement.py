"""Cohen's kappa, Krippendorff's alpha: others' numbers, and intervals that claim no more."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from bertology.errors import DataError, UnknownNameError
from bertology.stats.agreement import cohens_kappa, krippendorffs_alpha

CLASSES = ("a", "b", "c")


@given(st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES)), min_size=2))
def test_it_is_the_number_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    first, second = [list(side) for side in zip(*pairs, strict=True)]
    found = cohens_kappa(first, second, CLASSES, resamples=50)
    if len({*first, *second}) == 1:
        assert found.kappa is None
        return
    assert found.kappa is not None
    expected = cohen_kappa_score(first, second, labels=list(CLASSES))
    assert found.kappa.value == pytest.approx(expected)
    assert found.kappa.low <= found.kappa.value <= found.kappa.high
    assert found.same == pytest.approx(np.mean([a == b for a, b in pairs]))


def test_the_table_has_the_first_in_rows() -> None:
    found = cohens_kappa(["a", "a", "b"], ["a", "b", "b"], CLASSES)
    assert found.table == ((1, 1, 0), (0, 1, 0), (0, 0, 0))
    assert found.n == 3


def test_full_agreement_on_few_things_is_not_certainty() -> None:
    few = cohens_kappa(["a", "b"] * 4, ["a", "b"] * 4, CLASSES).kappa
    many = cohens_kappa(["a", "b"] * 200, ["a", "b"] * 200, CLASSES).kappa
    assert few is not None
    assert many is not None
    assert few.value == many.value == 1
    assert few.low < 0.6 < 0.9 < many.low


def test_the_interval_covers_the_truth() -> None:
    """Two who agree on 80 % of three equally frequent classes: kappa is 0.7."""
    rng = np.random.default_rng(0)
    joint = np.full((3, 3), 0.2 / 6)
    np.fill_diagonal(joint, 0.8 / 3)
    covered = 0
    for seed in range(60):
        cells = rng.choice(9, size=80, p=joint.ravel())
        first, second = ([CLASSES[c] for c in side] for side in (cells // 3, cells % 3))
        found = cohens_kappa(first, second, CLASSES, resamples=400, seed=seed).kappa
        assert found is not None
        covered += found.low <= 0.7 <= found.high
    assert covered >= 52  # 57 are expected; fewer than 52 would come once in a hundred times


def test_chance_is_not_agreement() -> None:
    rng = np.random.default_rng(1)
    first, second = ([CLASSES[i] for i in rng.integers(3, size=300)] for _ in range(2))
    found = cohens_kappa(first, second, CLASSES).kappa
    assert found is not None
    assert not found.excludes(0)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(DataError, match="lists of 1 and 2"):
        cohens_kappa(["a"], ["a", "b"], CLASSES)
    with pytest.raises(DataError):
        cohens_kappa([], [], CLASSES)
    with pytest.raises(UnknownNameError, match="'d'"):
        cohens_kappa(["d"], ["a"], CLASSES)


# Any number of people ----------------------------------------------------------------------------


def test_alpha_is_that_of_nltk() -> None:
    from nltk.metrics import AnnotationTask

    chance = random.Random(0)
    things, rows = [], []
    for thing in range(60):
        true = chance.choice("abc")
        people = chance.sample("wxyz", chance.choice([2, 3, 4]))
        said = [true if chance.random() < 0.7 else chance.choice("abc") for _ in people]
        things.append(said)
        rows += [(who, thing, name) for who, name in zip(people, said, strict=True)]
    found = krippendorffs_alpha([*things, ["a"]])  # what one person sorted says nothing
    assert found is not None
    assert found.value == pytest.approx(AnnotationTask(data=rows).alpha())
    assert found.low < found.value < found.high
    assert found.n == 60


def test_alpha_has_its_ends() -> None:
    sure = krippendorffs_alpha([["a", "a"], ["b", "b", "b"]])
    assert sure is not None
    assert sure.value == 1
    assert krippendorffs_alpha([["a", "a"], ["a", "a"]]) is None
    with pytest.raises(DataError, match="at least twice"):
        krippendorffs_alpha([["a"], ["b"]])


def test_alpha_of_few_things_that_agree_is_not_certain() -> None:
    few = krippendorffs_alpha([["a", "a"], ["b", "b"]] * 5, resamples=100)
    many = krippendorffs_alpha([["a", "a"], ["b", "b"]] * 200, resamples=100)
    assert few is not None
    assert many is not None
    assert few.value == few.high == 1
    assert few.low < 0.6 < 0.9 < many.low
    assert few.unit == "things"


def test_the_interval_of_alpha_covers_the_truth() -> None:
    """Three even classes, two people who err once in a hundred: alpha is 0.97, things are 30.

    The bootstrap alone misses it in three of five cases, whenever nobody happens to err.
    """
    rng, error, missed = np.random.default_rng(0), 0.0101, 0
    said = np.full((3, 3), error / 2) + np.eye(3) * (1 - 1.5 * error)
    alpha = 1 - (1 - (said**2).sum() / 3) / (1 - 1 / 3)
    assert alpha == pytest.approx(0.97, abs=0.001)
    for seed in range(40):
        true = rng.integers(3, size=(30, 1))
        wrong = rng.random((30, 2)) < error
        given_ = np.where(wrong, (true + rng.integers(1, 3, (30, 2))) % 3, true)
        found = krippendorffs_alpha([list(map(str, r)) for r in given_], resamples=100, seed=seed)
        assert found is not None
        missed += found.excludes(alpha)
    assert missed <= 6  # 2 are allowed


def test_alpha_of_chance_is_about_zero() -> None:
    chance = np.random.default_rng(0)
    found = krippendorffs_alpha([list(map(str, chance.integers(3, size=3))) for _ in range(400)])
    assert found is not None
    assert found.low < 0 < found.high
