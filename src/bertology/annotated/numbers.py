"""Numbers in a text: how they are written, and which of them a probe learns from or is asked about.

A number may be written as the corpus has it, which the tokenizer cuts into pieces; with its digits
apart (`1 2 3`), so that each is a piece; or with a power of ten (`1.23e2`). Numbers in words have
one writing only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Corpus
from bertology.errors import DataError

if TYPE_CHECKING:
    from bertology.data.corpus import Example

PIECES, DIGITS, SCIENTIFIC = WRITINGS = ("pieces", "digits", "scientific")
TRAIN, DEV, NEAR, FAR = ROLES = ("train", "dev", "near", "far")
"""What is learnt from, what chooses penalty and layer, numbers within the range, larger ones."""
_FIGURES = re.compile(r"-?\d+(\.\d+)?")
_HINT = "Give grammar-number-values, grammar-number-lists or grammar-number-sums."


def written(number: str, writing: str) -> str:
    """A number in figures, written another way."""
    if writing == DIGITS:
        return " ".join(number)
    if writing == SCIENTIFIC:
        exact = Decimal(number)
        digits = "".join(map(str, exact.as_tuple().digits)).lstrip("0").rstrip("0") or "0"
        mantissa = digits[0] + (f".{digits[1:]}" if digits[1:] else "")
        sign = "-" if exact < 0 else ""
        return f"{sign}{mantissa}e{exact.adjusted() if exact else 0}"
    return number


@dataclass(frozen=True)
class Numbers:
    """The examples of all roles together: as many numbers in each, with what is asked of them."""

    corpus: Corpus
    role: NDArray[np.str_]
    group: NDArray[np.str_]
    """Notation and range."""
    target: NDArray[np.float64]
    """A value; or, of lists, the place of the largest."""
    words: NDArray[np.str_]
    """(examples, numbers), as the corpus writes them."""
    lists: bool
    """Whether a place is asked for, not a value."""

    @classmethod
    def of(cls, splits: Mapping[str, Corpus]) -> Numbers:
        """From one corpus for each role; refuses what cannot be asked, in words."""
        first = splits[NEAR]
        if first.task is None or first.task.kind not in ("regression", "classification"):
            raise DataError(
                f"{first.name!r} has no task that asks for a value or a place.", hint=_HINT
            )
        examples = [example for role in ROLES for example in splits[role]]
        sizes = {len(example.get("words")) for example in examples}
        lists = first.task.kind == "classification"
        if len(sizes) > 1:
            few, many = min(sizes), max(sizes)
            raise DataError(
                f"Texts of {first.name!r} have {few} to {many} numbers. All must have as many.",
                hint=_HINT,
            )
        if lists and len(first.task.labels) != max(sizes):
            raise DataError(
                f"Labels of {first.name!r} are not places in a list: there are "
                f"{len(first.task.labels)} of them and {max(sizes)} numbers in a text.",
                hint=_HINT,
            )
        target = np.array([float(example.get("label")) for example in examples])
        if not np.isfinite(target).all():
            raise DataError(f"A label of {first.name!r} is not a number.", hint=_HINT)
        found = cls(
            replace(first, examples=examples, origin={}, drawn_from=None),
            np.repeat(ROLES, [len(splits[role]) for role in ROLES]),
            np.array([str(example.get("group")) for example in examples]),
            target,
            np.array([[str(word) for word in example.get("words")] for example in examples]),
            lists,
        )
        found._check_apart()
        return found

    @property
    def groups(self) -> list[str]:
        """Those that all roles have, in the order of the corpus."""
        by_role = [set(self.group[self.role == role]) for role in ROLES]
        return [g for g in dict.fromkeys(self.group.tolist()) if all(g in of for of in by_role)]

    @property
    def clusters(self) -> NDArray[np.int64]:
        """Examples that ask about the same number: the largest of a list, the first of a sum."""
        at = self.target.astype(int) if self.lists else np.zeros(len(self.target), int)
        named = np.char.add(np.char.add(self.group, "\t"), self.words[np.arange(len(at)), at])
        return np.unique(named, return_inverse=True)[1].astype(np.int64)

    @property
    def in_figures(self) -> NDArray[np.bool_]:
        """Whether all numbers of an example are written in figures."""
        return np.array([all(map(_FIGURES.fullmatch, row)) for row in self.words.tolist()], bool)

    def texts(self, writing: str) -> Corpus:
        """The texts in one writing; those in words as they are."""
        if writing == PIECES:
            return self.corpus
        rows = zip(self.corpus, self.in_figures.tolist(), strict=True)
        made = [_rewritten(one, writing) if figures else one for one, figures in rows]
        return replace(self.corpus, examples=made)

    def _check_apart(self) -> None:
        """No number may be both learnt from and asked about, in the same group."""
        for group in self.groups:
            own = self.group == group
            learnt = set(self.words[own & (self.role == TRAIN)].ravel().tolist())
            for role in (DEV, NEAR, FAR):
                both = learnt & set(self.words[own & (self.role == role)].ravel().tolist())
                if both:
                    raise DataError(
                        f"{min(both)!r} ({group}) is learnt from and asked about; so are "
                        f"{len(both) - 1} other numbers.",
                        hint="Give another --train-split or --split: no number may be in both.",
                    )


def _rewritten(example: Example, writing: str) -> Example:
    text, offsets, at = "", list[tuple[int, int]](), 0
    words: Sequence[str] = [written(str(word), writing) for word in example.get("words")]
    for word, (start, end) in zip(words, example.get("offsets"), strict=True):
        text += example.text[at:start]
        offsets.append((len(text), len(text) + len(word)))
        text, at = text + word, end
    about = {**example.annotations, "words": list(words), "offsets": offsets}
    return replace(example, text=text + example.text[at:], annotations=about)
