"""Roles of the words of a sentence, under which a vector may be a sum of words bound to roles.

Five schemes (McCoy et al. 2019): places counted from the left, from the right, from both ends, no
roles at all, and the path that leads to a word from the root of its dependency tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertology.arrays import Ints
from bertology.data.corpus import Example
from bertology.errors import DataError

Roles = Sequence[str]
FEWEST = 5  # words of training sentences with a role, for it to have a vector of its own
_OTHER = 0


def tree_paths(heads: Sequence[int]) -> list[str]:
    """The way from the root to each word: `root.L1.R2` is the second word that hangs to the right
    of the first word that hangs to the left of the root, counted from the head outwards.
    """
    steps: dict[int, str] = {}
    roots = [word for word, head in enumerate(heads) if head < 0]
    for number, root in enumerate(roots):
        steps[root] = "root" if number == 0 else f"root{number + 1}"
    for head in range(len(heads)):
        children = [word for word, its in enumerate(heads) if its == head]
        left = [word for word in reversed(children) if word < head]
        right = [word for word in children if word > head]
        for side, own in (("L", left), ("R", right)):
            steps.update({word: f"{side}{n}" for n, word in enumerate(own, 1)})
    found = []
    for word in range(len(heads)):
        path: list[str] = []
        at = word
        while at >= 0 and len(path) <= len(heads):
            path.append(steps[at])
            at = heads[at] if at in steps else -1
        if at >= 0:
            raise DataError(
                f"The heads {list(heads)} are no tree: they lead in a circle.",
                hint="Mend the annotation; a root has the head 0 in CoNLL-U.",
            )
        found.append(".".join(reversed(path)))
    return found


@dataclass(frozen=True)
class RoleScheme:
    """One scheme: what it is called, and the role of each word of an example."""

    name: str
    title: str
    roles: Callable[[Example], Roles]


def _by_place(role: Callable[[int, int], str]) -> Callable[[Example], Roles]:
    def roles(example: Example) -> Roles:
        n = len(example.get("words"))
        return [role(word, n - 1 - word) for word in range(n)]

    return roles


TREE = "tree"
SCHEMES: Mapping[str, RoleScheme] = {
    scheme.name: scheme
    for scheme in (
        RoleScheme("left-to-right", "left to right", _by_place(lambda left, right: f"{left}")),
        RoleScheme("right-to-left", "right to left", _by_place(lambda left, right: f"{right}")),
        RoleScheme("bag-of-words", "bag of words", _by_place(lambda left, right: "word")),
        RoleScheme(
            "bidirectional", "from both ends", _by_place(lambda left, right: f"{left}-{right}")
        ),
        RoleScheme(TREE, "dependency tree", lambda example: tree_paths(example.get("heads"))),
    )
}
"""All schemes by name."""


@dataclass(frozen=True)
class RoleNumbers:
    """The roles of all sentences by number; 0 is shared by what is rare in training sentences."""

    roles: Sequence[Ints]
    count: int
    """How many roles have a vector of their own."""
    rare: float
    """The share of words of sentences that do not train whose role is among the rare ones."""


def numbered(roles: Sequence[Roles], train: Sequence[bool]) -> RoleNumbers:
    """Number the roles that enough words of the sentences that train have."""
    counts = Counter(
        role for own, trains in zip(roles, train, strict=True) if trains for role in own
    )
    kept = sorted(role for role, count in counts.items() if count >= FEWEST)
    number = {role: at for at, role in enumerate(kept, _OTHER + 1)}
    found = [np.array([number.get(role, _OTHER) for role in own], np.int64) for own in roles]
    others = [own for own, trains in zip(found, train, strict=True) if not trains and len(own)]
    rare = float((np.concatenate(others) == _OTHER).mean()) if others else 0.0
    return RoleNumbers(found, len(kept), rare)


def dealt(roles: Sequence[Ints], seed: int) -> list[Ints]:
    """The control: the roles of each sentence, dealt to its words at random.

    So every sentence has the same roles as before, and only which word has which one is lost.
    """
    rng = np.random.default_rng(seed)
    return [rng.permutation(own) for own in roles]
