"""Trees by the matrices of a structural probe that was trained before and lies in a store.

The page does not train: a probe takes a minute, and a text that is typed should take none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.errors import BertologyError
from bertology.server.sentences import encode

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.results.result import Result
    from bertology.server.reading import ModelReader
    from bertology.server.shown import Shown

STRUCTURAL = "structural"
_STUDY = "structural-probe"


@dataclass(frozen=True)
class StructuralTree:
    """The head of each word, undirected, and what it was read off, in words."""

    heads: list[int]
    source: str


class StructuralTrees:
    """The distance probes of all layers, out of a result of `structural-probe`."""

    def __init__(self, result: Result) -> None:
        table = result.tables["layers"]
        shares = zip(table["layer"].to_numpy(), table["uuas"].to_numpy(), strict=True)
        self._found = {int(layer): float(share) for layer, share in shares}
        layers = [layer for layer in self._found if layer >= 0]
        self.best = max(layers, key=lambda layer: self._found[layer])
        matrices = result.arrays["projection"].sel(kind="distance")
        self._matrices = {
            int(layer): matrices.sel(layer=layer).to_numpy().astype(np.float64)
            for layer in matrices["layer"].to_numpy()
        }
        self._pooling = str(result.provenance.parameters["pooling"])
        self.corpus = result.provenance.corpus_name

    @property
    def about(self) -> dict[str, object]:
        """What the page is told."""
        return {"corpus": self.corpus, "best": self.best}

    def of(
        self,
        reader: ModelReader,
        shown: Shown,
        pieces: Sequence[Sequence[int]],
        layer: int | None,
    ) -> StructuralTree:
        """The tree over words that are spelled by `pieces`."""
        from bertology.annotated.trees.spanning import undirected_trees

        at = self.best if layer is None else layer
        states = reader.worker.do(lambda: _states(reader, shown, at))
        points = _pooled(states, pieces, self._pooling) @ self._matrices[at]
        apart = ((points[:, None] - points) ** 2).sum(axis=-1)
        heads = undirected_trees(-apart[None])[0]
        source = (
            f"a structural probe of layer {at}, trained on {self.corpus}, where it finds "
            f"{100 * self._found[at]:.0f} % of the arcs of other sentences"
            + ("" if at == self.best else f"; layer {self.best} finds most")
        )
        return StructuralTree([int(head) for head in heads], source)


def needed(probe: StructuralTrees | None, model: str) -> StructuralTrees:
    """The probe, or an error that says how to get one."""
    if probe is None:
        raise BertologyError(
            "There is no structural probe of this model in the store.",
            hint=f"Train one: bertology run {_STUDY} --model {model} --corpus grammar, or with a "
            "treebank such as ud-ewt. Then start the explorer again, with the same --store.",
        )
    return probe


def find_probe(store: str, encoder: Encoder) -> StructuralTrees | None:
    """The newest structural probe of this very model in a store, if there is one."""
    from bertology.model.loading.fingerprint import states_fingerprint
    from bertology.results.store import Store

    place, own = Store(store), ""
    for about in place.list(_STUDY):
        if about.model.get("shape", {}).get("hidden") != encoder.shape.hidden:
            continue
        result = place.load(about)
        own = own or states_fingerprint(encoder.base, encoder.tokenizer)
        if result.facts.get("weights") == own:
            return StructuralTrees(result)
    return None


def _states(reader: ModelReader, shown: Shown, layer: int) -> NDArray[np.float64]:
    """(pieces, dimensions) after one layer, with what is off."""
    _, batch = encode(reader.encoder, shown)
    site = f"layer.{layer}.residual"
    trace = reader.encoder.run(batch, record=[site], do=reader.interventions(shown.changes))
    found: NDArray[np.float64] = trace[site][0].double().cpu().numpy()
    return found


def _pooled(
    states: NDArray[np.float64], pieces: Sequence[Sequence[int]], pooling: str
) -> NDArray[np.float64]:
    """(words, dimensions): of the first piece of each word, the last, or the mean."""
    some = {"first": slice(0, 1), "last": slice(-1, None)}.get(pooling, slice(None))
    return np.stack([states[list(own)[some]].mean(axis=0) for own in pieces])
