"""Which sentences a study of links looks at, and how many each limit leaves.

The limits are those of Kovaleva et al. (2019, section 4.2): elements of at most three tokens,
sentences of at most twelve, linked words at least two tokens apart. Tokens are the words of the
corpus, punctuation included; neighbours are one token apart, so a distance of at least two leaves
out what a head that looks at the previous or the next token would find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bertology.data.corpus import Example
from bertology.data.words.links import Link, links_of


@dataclass(frozen=True)
class LinkedSentence:
    """A sentence that is looked at: where it stands in the corpus, and its links."""

    index: int
    example: Example
    links: tuple[Link, ...]


@dataclass(frozen=True)
class LinkLimits:
    """Limits on elements, sentences and distances; 0 stands for none.

    With `every`, a sentence is left out when one of its links is outside the limits; without it,
    only that link is.
    """

    relation: str
    max_element: int = 3
    max_tokens: int = 12
    min_distance: int = 2
    every: bool = True

    @property
    def stages(self) -> list[str]:
        """What is counted, in the order in which it is applied."""
        return [
            "all sentences",
            f"with a link ({self.relation})",
            f"elements of at most {self.max_element} tokens" if self.max_element else "any element",
            f"at most {self.max_tokens} tokens" if self.max_tokens else "any length",
            f"linked words at least {self.min_distance} tokens apart",
        ]

    def passing(
        self, examples: Iterable[Example], *, first: int = 0
    ) -> tuple[list[LinkedSentence], list[int]]:
        """The sentences within the limits, and how many are left after each of `stages`.

        `first` is the position in the corpus of the first example.
        """
        kept, reached = list[LinkedSentence](), Counter[int]()
        for index, example in enumerate(examples, start=first):
            links, stage = self._passing(example)
            reached[stage] += 1
            if links:
                kept.append(LinkedSentence(index, example, tuple(links)))
        last = len(self.stages)
        return kept, [sum(reached[s] for s in range(at, last)) for at in range(last)]

    def _passing(self, example: Example) -> tuple[list[Link], int]:
        """The links that are left, and the last stage with any."""
        stage, links = 0, links_of(example, self.relation)
        short = self.max_tokens == 0 or len(example.get("words")) <= self.max_tokens
        within = (
            [True] * len(links),
            [not self.max_element or link.longest <= self.max_element for link in links],
            [short] * len(links),
            [link.distance >= self.min_distance for link in links],
        )
        left = [True] * len(links)
        for stage, fits in enumerate(within):
            left = [a and b for a, b in zip(left, fits, strict=True)]
            if not any(left) or (self.every and not all(left)):
                return [], stage
        return [link for link, stays in zip(links, left, strict=True) if stays], stage + 1
