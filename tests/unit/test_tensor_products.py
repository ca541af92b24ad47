"""Tensor products: roles as the papers have them, and the least squares of a plain network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bertology.annotated.role_schemes import SCHEMES, dealt, numbered, tree_paths
from bertology.data.corpus import Example
from bertology.errors import DataError
from bertology.train.probes import tensor_products as module
from bertology.train.probes.tensor_products import Sentences, tensor_products

LAYERS, WIDTH, GIVEN, WORDS, ROLES = 2, 5, 3, 9, 4


def example(heads: list[int]) -> Example:
    words = [f"w{i}" for i in range(len(heads))]
    return Example("0", " ".join(words), annotations={"words": words, "heads": heads})


def made(n: int = 120, *, seed: int = 0) -> tuple[Sentences, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 7, n)
    words = [rng.integers(0, WORDS, of) for of in lengths]
    roles = [rng.integers(0, ROLES, of) for of in lengths]
    fillers, maps = rng.normal(size=(WORDS, GIVEN)), rng.normal(size=(ROLES, LAYERS, WIDTH, GIVEN))
    targets = np.stack(
        [
            np.mean([maps[z] @ fillers[w] for w, z in zip(*of, strict=True)], axis=0)
            for of in zip(words, roles, strict=True)
        ],
        axis=1,
    )
    targets = targets + 0.1 * rng.normal(size=targets.shape)
    split = np.array([0, 0, 2, 0, 0, 1, 0, 2, 0, 0])[np.arange(n) % 10]
    return Sentences(fillers, words, targets, split), roles


class Network(nn.Module):
    """What the papers train: fillers and roles are looked up, bound, and mapped by one layer."""

    def __init__(self, fillers: np.ndarray, roles: np.ndarray) -> None:
        super().__init__()
        self.fillers = nn.Embedding.from_pretrained(torch.from_numpy(fillers))
        self.roles = nn.Embedding.from_pretrained(torch.from_numpy(roles))
        wide = fillers.shape[1] * roles.shape[1]
        self.last = nn.Linear(wide, WIDTH, dtype=torch.float64)

    def bound(self, words: Sequence[np.ndarray], roles: Sequence[np.ndarray]) -> torch.Tensor:
        found = []
        for own in zip(words, roles, strict=True):
            f, r = (of(torch.from_numpy(at)) for of, at in zip(self.looked_up, own, strict=True))
            found.append((f.T @ r).flatten() / len(f))
        return torch.stack(found)

    @property
    def looked_up(self) -> tuple[nn.Embedding, nn.Embedding]:
        return self.fillers, self.roles


@pytest.mark.parametrize(("own", "penalty"), [(0.3, 0.01), (1.0, 0.1), (0.03, 0.001)])
def test_least_squares_are_those_of_a_plain_network(
    monkeypatch: pytest.MonkeyPatch, own: float, penalty: float
) -> None:
    given, roles = made(60)
    monkeypatch.setattr(module, "OWN", (own,))
    monkeypatch.setattr(module, "PENALTIES", (penalty,))
    found = tensor_products(given, roles).errors
    train, tested = (np.flatnonzero(given.split == part) for part in (0, 2))
    fillers = module._standardised(given)

    def size(bound: Any) -> float:
        return float(np.mean([(bound(at) ** 2).sum() for at in train]))

    # Both parts of a role are as large as each other before they are mixed.
    hot = np.eye(ROLES)
    shared = size(lambda at: fillers[given.words[at]].mean(0))
    apart = size(lambda at: fillers[given.words[at]].T @ hot[roles[at]] / len(roles[at]))
    table = np.concatenate(
        [np.full((ROLES, 1), np.sqrt((1 - own) / shared)), np.sqrt(own / apart) * hot], axis=1
    )
    for layer in range(LAYERS):
        network = Network(fillers, table)
        bound = network.bound(given.words, roles)
        target = torch.from_numpy(given.centred()[:, layer])
        search = torch.optim.LBFGS(
            network.last.parameters(), max_iter=2000, tolerance_grad=1e-12, tolerance_change=1e-15,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def loss(
            network: Network = network, bound: torch.Tensor = bound, target: torch.Tensor = target
        ) -> torch.Tensor:
            network.zero_grad()
            away = network.last(bound[train]) - target[train]
            total = away.square().sum() + penalty * network.last.weight.square().sum()
            total.backward()
            return total

        search.step(loss)
        with torch.no_grad():
            errors = (network.last(bound[tested]) - target[tested]).square().sum(1)
        assert found[:, layer] == pytest.approx(errors.numpy(), rel=1e-4)


def test_roles_that_made_the_sentences_explain_them_and_dealt_ones_do_not() -> None:
    given, roles = made(600)
    right = tensor_products(given, roles).errors.sum() / given.totals().sum()
    wrong = tensor_products(given, dealt(roles, 1)).errors.sum() / given.totals().sum()
    none = tensor_products(given, [np.zeros_like(own) for own in roles]).errors.sum()
    assert right < 0.08
    assert wrong > 0.4
    assert none / given.totals().sum() > 0.4


def test_what_nothing_explains_is_left_whole() -> None:
    given, roles = made(600)
    noise = np.random.default_rng(1).normal(size=given.targets.shape)
    given = Sentences(given.fillers, given.words, noise, given.split)
    found = tensor_products(given, roles)
    assert (found.errors.sum(0) / given.totals().sum(0)) == pytest.approx(1, abs=0.03)
    assert (found.penalty >= 1).all()


def test_steps_are_told() -> None:
    steps: list[int] = []
    given, roles = made(60)
    tensor_products(given, roles, advance=steps.append)
    assert sum(steps) == len(module.OWN)
    tensor_products(given, [np.ones_like(own) for own in roles], advance=steps.append)
    assert sum(steps) == 2 * len(module.OWN)


def test_schemes_give_the_roles_of_the_papers() -> None:
    # "the dog sees a small ball"
    one = example([1, 2, -1, 5, 5, 2])
    assert {name: list(scheme.roles(one)) for name, scheme in SCHEMES.items()} == {
        "left-to-right": ["0", "1", "2", "3", "4", "5"],
        "right-to-left": ["5", "4", "3", "2", "1", "0"],
        "bag-of-words": ["word"] * 6,
        "bidirectional": ["0-5", "1-4", "2-3", "3-2", "4-1", "5-0"],
        "tree": ["root.L1.L1", "root.L1", "root", "root.R1.L2", "root.R1.L1", "root.R1"],
    }


def test_paths_of_a_tree_are_all_different_and_circles_refused() -> None:
    rng = np.random.default_rng(0)
    for n in range(1, 12):
        heads = [-1, *(int(rng.integers(0, word)) for word in range(1, n))]
        assert len(set(tree_paths(heads))) == n
    assert tree_paths([-1, -1, 1]) == ["root", "root2", "root2.R1"]
    with pytest.raises(DataError, match="circle"):
        tree_paths([1, 0, -1])


def test_rare_roles_are_one_and_counted() -> None:
    roles = [["a", "b"]] * 5 + [["a", "c"]] * 4 + [["a", "c"], ["d", "b"]]
    known = numbered(roles, [True] * 9 + [False] * 2)
    assert known.count == 2  # a and b; all others are one
    assert [list(own) for own in known.roles[-2:]] == [[1, 0], [0, 2]]
    assert known.rare == 0.5


def test_dealt_roles_are_those_of_each_sentence() -> None:
    roles = [np.arange(9), np.array([], np.int64), np.array([1, 1, 2])]
    found = dealt(roles, 0)
    assert [sorted(own) for own in found] == [sorted(own) for own in roles]
    assert (found[0] != roles[0]).any()
    assert all((a == b).all() for a, b in pairwise([dealt(roles, 3)[0], dealt(roles, 3)[0]]))
