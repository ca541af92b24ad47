"""The best heads of BERT-base by Clark et al. (2019), Table 1, under the names of our relations.

They used Stanford Dependencies on the Penn Treebank's Wall Street Journal. Where Universal
Dependencies has another name, that is what stands here; where it has another analysis, the pairs of
words that come nearest:

- `pobj` leads from a preposition to its noun. That is `case` turned round, which also holds the
  possessive 's of nouns.
- `prep` leads from a word to a preposition that depends on it. Here it is put together: from what
  the noun of a preposition hangs from to the preposition.
- `aux` has the "to" of infinitives, which is `mark` in Universal Dependencies. So both differ.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bertology.data.words.links import PLAIN


@dataclass(frozen=True)
class Published:
    """A row of the table; shares are of words, and layers and heads are counted from one there."""

    name: str
    head: str
    share: float
    baseline: float
    offset: int  # where the head stands, seen from the dependent


PUBLISHED = {
    "all": Published("All", "7-6", 0.345, 0.263, 1),
    "prep": Published("prep", "7-4", 0.667, 0.618, -1),
    "case": Published("pobj", "9-6", 0.763, 0.346, 2),  # -2 from the noun, where it depends
    "det": Published("det", "8-11", 0.943, 0.517, 1),
    f"compound:{PLAIN}": Published("nn", "4-10", 0.704, 0.702, 1),
    f"nsubj:{PLAIN}": Published("nsubj", "8-2", 0.585, 0.455, 1),
    "amod": Published("amod", "4-10", 0.756, 0.683, 1),
    "obj": Published("dobj", "8-10", 0.868, 0.400, -2),
    "advmod": Published("advmod", "7-6", 0.488, 0.402, 1),
    f"aux:{PLAIN}": Published("aux", "4-10", 0.811, 0.715, 1),
    "nmod:poss": Published("poss", "7-6", 0.805, 0.477, 1),
    "aux:pass": Published("auxpass", "4-10", 0.825, 0.405, 1),
    "ccomp": Published("ccomp", "8-1", 0.488, 0.124, -2),
    "mark": Published("mark", "8-2", 0.507, 0.145, 2),
    "compound:prt": Published("prt", "6-7", 0.991, 0.914, -1),
}
"""By the name of a relation."""


def published(relation: str, among: Collection[str]) -> Published | None:
    """The row for a relation; without subtypes in the data, `aux` is what is called `aux` there."""
    plain = f"{relation}:{PLAIN}"
    return PUBLISHED.get(relation) or (None if plain in among else PUBLISHED.get(plain))
