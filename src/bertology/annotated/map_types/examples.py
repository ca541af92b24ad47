"""Example maps of each type: which ones are kept, and how the parts of a study share them.

Maps are not chosen by their look: texts are taken in order, then layers, then heads, and a type has
no head twice. The first few of all parts are therefore among the first few of each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.map_types.crossing import has_crossing

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

EACH = 3  # maps of one type
SHORTEST = 10  # tokens of a text: a map of fewer shows hardly any pattern
LONGEST = 40  # of a text whose map can still be labelled
VARIABLE = "example_map"
_DIMS = (VARIABLE, "query", "key")
Ints = NDArray[np.integer]
MapAddress = tuple[int, int, int]  # text, layer, head


@dataclass(frozen=True)
class ExampleMap:
    """One map, with what it takes to label it and to make it again."""

    example: str  # its id in the corpus
    layer: int
    head: int
    type: int  # index into MAP_TYPES
    tokens: list[str]
    second: int | None  # where the second sentence of a pair begins
    weights: NDArray[np.float32]  # rows attend to columns

    @property
    def name(self) -> str:
        """Of its head, as people write it: 3.7."""
        return f"{self.layer}.{self.head}"

    @property
    def crosses(self) -> bool:
        """Whether a diagonal runs between the sentences."""
        end = len(self.tokens) if self.second is None else self.second
        return has_crossing(self.weights, (np.arange(len(self.tokens)) >= end).astype(np.int64))


def choose(
    types: Ints, lengths: Ints, *, each: int = EACH, longest: int = LONGEST
) -> list[MapAddress]:
    """The first maps of each type among texts that are short enough, in order.

    Args:
        types: (texts, layers, heads).
        lengths: Tokens of each text.
        each: Maps of a type, at most.
        longest: Tokens of a text, at most; at least it has SHORTEST.
    """
    tokens = np.asarray(lengths)
    short = np.flatnonzero((tokens >= SHORTEST) & (tokens <= longest))
    chosen: list[MapAddress] = []
    for kind in np.unique(types[short]):
        shown = types[short] == kind
        firsts = shown.argmax(0)  # the text in which each head first shows it
        places = sorted((int(firsts[i, j]), int(i), int(j)) for i, j in np.argwhere(shown.any(0)))
        chosen += [(int(short[text]), layer, head) for text, layer, head in places[:each]]
    return sorted(chosen)


def record(
    encoder: Encoder,
    corpus: Corpus,
    types: Ints,
    places: Sequence[MapAddress],
    *,
    batch_tokens: int,
) -> list[ExampleMap]:
    """The maps of these texts and heads, by running these texts once more."""
    from bertology.model.segments import segments_of

    texts = sorted({text for text, _, _ in places})
    given = [corpus.texts[i] for i in texts]
    sites = sorted({_site(*place) for place in places})
    found: dict[MapAddress, ExampleMap] = {}
    # Padding on the left moves the positions of some families.
    equal = getattr(encoder.tokenizer, "padding_side", "right") == "left"
    batches = encoder.batches(given, tokens_per_batch=batch_tokens, equal_length=equal)
    for batch in batches if given else ():
        trace = encoder.run(batch, record=sites)
        segments, real = segments_of(batch).cpu().numpy(), batch.real.cpu().numpy()
        tokens = batch.tokens
        for row, index in enumerate(batch.indices):
            own = np.flatnonzero(real[row])
            text, second = texts[index], np.flatnonzero(segments[row, own] == 1)
            for place in (p for p in places if p[0] == text):
                weights = trace[_site(*place)][row].float().cpu().numpy()
                found[place] = ExampleMap(
                    example=corpus[text].id,
                    layer=place[1],
                    head=place[2],
                    type=int(types[place]),
                    tokens=tokens[row],
                    second=int(second[0]) if len(second) else None,
                    weights=weights[np.ix_(own, own)],
                )
    return [found[place] for place in places]


def _site(text: int, layer: int, head: int) -> str:
    return f"layer.{layer}.head.{head}.pattern"


def merge(parts: Iterable[Sequence[ExampleMap]], *, each: int = EACH) -> list[ExampleMap]:
    """The first of each type in all parts, as if they had been one; sorted by type."""
    by_type: dict[int, dict[tuple[int, int], ExampleMap]] = {}
    for kept in (one for part in parts for one in part):
        own = by_type.setdefault(kept.type, {})
        if len(own) < each:
            own.setdefault((kept.layer, kept.head), kept)
    return [one for kind in sorted(by_type) for one in by_type[kind].values()]


def add_kept(arrays: xr.Dataset, kept: Sequence[ExampleMap]) -> xr.Dataset:
    """`arrays` with these maps, padded to one size; unchanged where there are none."""
    import xarray as xr

    if not kept:
        return arrays
    maps = np.zeros((len(kept), LONGEST, LONGEST), np.float32)
    recipes = []
    for i, one in enumerate(kept):
        size = len(one.tokens)
        maps[i, :size, :size] = one.weights
        recipes.append({k: v for k, v in asdict(one).items() if k != "weights"})
    return arrays.assign({VARIABLE: xr.DataArray(maps, dims=_DIMS, attrs={"recipes": recipes})})


def kept_in(arrays: xr.Dataset) -> list[ExampleMap]:
    """What `add_kept` put there."""
    if VARIABLE not in arrays:
        return []
    stored, found = arrays[VARIABLE], []
    for weights, recipe in zip(stored.to_numpy(), stored.attrs["recipes"], strict=True):
        size = len(recipe["tokens"])
        found.append(ExampleMap(**recipe, weights=weights[:size, :size]))
    return found
