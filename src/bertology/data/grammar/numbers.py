"""Numbers to decode, to compare and to add (after Wallace et al. 2019).

- values: one number; LABEL is its value;
- lists: five numbers; LABEL is the place of the largest, each as often. They lie close together,
  so that the count of digits does not tell it, and as close in every split: a split that holds more
  of the numbers would else have harder lists;
- sums: two numbers; LABEL is their sum.

GROUP is the notation and range. A number belongs to one split, in every corpus and for every seed,
so that validation and test ask about numbers of the range that were not learnt (interpolation); the
split `extrapolation` has larger numbers than those, up to a third.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

EXTRAPOLATION = "extrapolation"
LISTED = 5
_LEAST_SPAN = 48
_MOST_TRIES = 10_000
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(number: int) -> str:
    """A number from 0 to 999 in words, hyphens between them: one word of a text."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    return f"{_ONES[hundreds]}-hundred" + (f"-{in_words(rest)}" if rest else "")


@dataclass(frozen=True)
class _Notation:
    """How whole numbers up to a limit are written, and what they stand for."""

    limit: int
    write: Callable[[int], str]
    scale: float = 1.0
    least: int = 0

    def value(self, number: int) -> float:
        return number * self.scale if self.scale == 1.0 else round(number * self.scale, 1)


NOTATIONS: dict[str, _Notation] = {
    "integers to 99": _Notation(99, str),
    "integers to 999": _Notation(999, str),
    "integers to 9999": _Notation(9999, str),
    "integers from -99 to 99": _Notation(99, str, least=-99),
    "decimals to 99.9": _Notation(999, lambda n: f"{n / 10:.1f}", scale=0.1),
    "words to 99": _Notation(99, in_words),
}


class NumberDraw:
    """Random numbers of one split; `split_of` says to which split a written number belongs."""

    def __init__(self, random: random.Random, split: str, split_of: Callable[[str], str]) -> None:
        self.random = random
        self._numbers: dict[str, list[int]] = {}
        for name, notation in NOTATIONS.items():
            top = notation.limit
            if split == EXTRAPOLATION:
                found = list(range(top + 1, top + 1 + (top + 1) // 3))
            else:
                every = range(notation.least, top + 1)
                found = [n for n in every if split_of(notation.write(n)) == split]
            self._numbers[name] = found

    def values(self) -> Iterator[tuple[str, list[str], float]]:
        """Every number of the split once, notations in turn: notation, number, value."""
        left = {name: self.random.sample(of, len(of)) for name, of in self._numbers.items()}
        while left:
            for name in list(left):
                if not left[name]:
                    del left[name]
                    continue
                number = left[name].pop()
                notation = NOTATIONS[name]
                yield name, [notation.write(number)], notation.value(number)

    def lists(self) -> Iterator[tuple[str, list[str], float]]:
        """Lists of five numbers with the place of the largest, which is first … fifth in turn."""
        return self._drawn(LISTED, self._largest, near=True)

    def sums(self) -> Iterator[tuple[str, list[str], float]]:
        """Pairs of numbers with their sum."""
        return self._drawn(2, lambda name, of, _: NOTATIONS[name].value(sum(of)))

    def _drawn(
        self, size: int, label: Callable[[str, list[int], int], float], *, near: bool = False
    ) -> Iterator[tuple[str, list[str], float]]:
        seen: set[tuple[str, ...]] = set()
        tries = turn = 0
        while tries < _MOST_TRIES:
            for name, of in self._numbers.items():
                some = self._neighbours(of, NOTATIONS[name].limit // 100) if near else of
                drawn = self.random.sample(some, size)
                found = label(name, drawn, turn)
                written = [NOTATIONS[name].write(n) for n in drawn]
                if (name, *written) in seen:
                    tries += 1
                    continue
                seen.add((name, *written))
                yield name, written, found
            turn += 1

    def _neighbours(self, numbers: list[int], hundredth: int) -> list[int]:
        """Those within a hundredth of the range, or of some width at least."""
        span = max(_LEAST_SPAN, hundredth)
        first = min(self.random.choice(numbers), numbers[-1] + 1 - span)
        found = numbers[bisect_left(numbers, first) : bisect_left(numbers, first + span)]
        return found if len(found) >= LISTED else numbers[-LISTED:]

    @staticmethod
    def _largest(_: str, numbers: list[int], turn: int) -> float:
        """Moves the largest to the place whose turn it is."""
        at, place = numbers.index(max(numbers)), turn % LISTED
        numbers[at], numbers[place] = numbers[place], numbers[at]
        return place
