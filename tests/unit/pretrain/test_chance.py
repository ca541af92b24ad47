"""Random numbers that are functions: even, independent, and the same for ever."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bertology.train.pretrain.chance import Chance

ROWS = torch.arange(400)[:, None]
COLUMNS = torch.arange(128)[None, :]
WORD = 2**64
KEY = -78977244640315296
BITS = [-7582392377989882876]
UNIFORM = [[0.8272745609283447, 0.4201083183288574], [0.42635148763656616, 0.7407948970794678]]


def _mixed(z: int) -> int:
    """splitmix64's finaliser with Python's own numbers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def _bits(seed: int, path: tuple[int | str, ...], *where: int) -> int:
    key = blake2b(repr((seed, path)).encode(), digest_size=8).digest()
    state, step = int.from_bytes(key, "big"), 0x9E3779B97F4A7C15
    for index in where:
        state = _mixed(state ^ _mixed((index * step + step) % WORD))
    return state


@given(
    st.integers(0, 2**40),
    st.lists(st.integers(0, 9) | st.text(max_size=5), max_size=3),
    st.lists(st.integers(0, 2**50), min_size=1, max_size=3),
)
def test_it_is_splitmix_of_the_path_and_the_place(
    seed: int, path: list[int | str], where: list[int]
) -> None:
    expected = _bits(seed, tuple(path), *where)
    chance = Chance(seed)(*path)
    places = [torch.tensor([i]) for i in where]
    assert chance.bits(*places).item() % WORD == expected
    assert chance.uniform(*places).item() == (expected >> 40) / 2**24
    assert chance.below(1000, *places).item() == (expected >> 1) % 1000


def test_numbers_stay_what_they_are() -> None:
    # A change here changes every mask of every run that was ever made.
    assert Chance(0).key == KEY
    here = Chance(3)("mask", 1)
    assert here.bits(torch.tensor([17]), torch.tensor([5])).tolist() == BITS
    assert here.uniform(torch.tensor([[0], [1]]), torch.tensor([[0, 1]])).tolist() == UNIFORM


def test_numbers_are_even() -> None:
    u = Chance(1).uniform(ROWS, COLUMNS).flatten()
    assert 0 <= float(u.min()) < 1e-3
    assert 1 - 1e-3 < float(u.max()) < 1
    assert stats.chisquare(torch.histc(u, 64, 0, 1).numpy()).pvalue > 1e-3
    n = Chance(1).below(37, ROWS, COLUMNS).flatten()
    assert stats.chisquare(torch.bincount(n, minlength=37).numpy()).pvalue > 1e-3


def test_neighbours_are_independent() -> None:
    chance = Chance(2)("a")
    u = chance.uniform(ROWS, COLUMNS)
    pairs = {
        "rows": (u[1:], u[:-1]),
        "columns": (u[:, 1:], u[:, :-1]),
        "diagonal": (u[:128], u[:128].T),
        "seeds": (u, Chance(3)("a").uniform(ROWS, COLUMNS)),
        "names": (u, Chance(2)("b").uniform(ROWS, COLUMNS)),
        "numbers": (chance(0).uniform(ROWS, COLUMNS), chance(1).uniform(ROWS, COLUMNS)),
    }
    for name, (x, y) in pairs.items():
        if name == "diagonal":
            above = torch.triu(torch.ones(128, 128), 1).bool()
            x, y = x[above], y[above]
        cells = (x.flatten() * 8).long() * 8 + (y.flatten() * 8).long()
        counts = torch.bincount(cells, minlength=64).numpy()
        assert stats.chisquare(counts).pvalue > 1e-4, name


def test_every_bit_is_a_coin() -> None:
    bits = Chance(4).bits(ROWS, COLUMNS).flatten().numpy().view(np.uint64)
    n = len(bits)
    for k in range(64):
        ones = int(((bits >> np.uint64(k)) & np.uint64(1)).sum())
        assert abs(ones - n / 2) < 5 * np.sqrt(n) / 2, k


def test_the_layout_of_the_tensors_does_not_matter() -> None:
    chance = Chance(5)("x")
    whole = chance.uniform(ROWS, COLUMNS)
    full_rows, full_columns = torch.broadcast_tensors(ROWS, COLUMNS)
    assert torch.equal(whole, chance.uniform(full_rows, full_columns))
    assert torch.equal(whole.T, chance.uniform(ROWS.T, COLUMNS.T))
    assert torch.equal(whole[::3, 7:9], chance.uniform(ROWS[::3], COLUMNS[:, 7:9]))
    assert torch.equal(whole, chance.uniform(ROWS.int(), COLUMNS.short()))
    assert torch.equal(whole[0], chance.uniform(torch.tensor(0), COLUMNS[0]))


def test_paths_are_told_apart() -> None:
    root = Chance(0)
    sources = [root, root(1), root("1"), root(1, 2), root(12), root("1", "2"), root("12"), root("")]
    assert len({s.key for s in [*sources, Chance(1), Chance(1)(0)]}) == len(sources) + 2
    assert root("a")("b", 3) == root("a", "b", 3)
