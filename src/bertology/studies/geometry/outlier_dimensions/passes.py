"""The passes of `outlier-dimensions` over a block of texts: intact, disabled, the sink cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.plain_classes import PlainClass, plain_classes
from bertology.studies.designs.layer_places import first_upper
from bertology.studies.geometry.outlier_dimensions.questions import DRAW, DimensionSet

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.hidden_words import Predicted
    from bertology.studies.geometry.outlier_dimensions.questions import Asked, Uninformed

GROUPS = 40
"""Groups of texts whose sums are kept, for intervals over texts."""
KEPT = 6
"""Texts whose completions are kept."""

_SEP, _WORDS = (list(PlainClass).index(k) for k in (PlainClass.SEP, PlainClass.WORDS))
_PATTERN, _RESIDUAL = "layer.*.head.*.pattern", "layer.*.residual"

Floats = NDArray[np.float32]


@dataclass
class Passes:
    """What is measured of some texts, filled batch by batch; see `arrays`."""

    encoder: Encoder
    sets: Sequence[DimensionSet]
    frequency: NDArray[np.float64]  # of each piece of the vocabulary, in logarithms
    uninformed: Uninformed
    norms: Sequence[str]
    texts: int
    start: int  # the number of the first text
    _found: dict[str, NDArray[Any]] = field(default_factory=dict)
    _best: list[NDArray[np.int64]] = field(default_factory=list)
    _told: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = self.encoder.shape
        layers, dims, sets = shape.layers, len(self.dimensions), len(self.sets)
        watched = 1 + len(self.watched)
        sizes = {
            "losses": (self.texts, 1 + sets),
            "right": (self.texts, 1 + sets),
            "uninformed": (self.texts, 2),
            "sep": (self.texts, watched, layers),
            "cut": (self.texts, watched - 1),
        }
        self._found = {name: np.full(size, np.nan, np.float32) for name, size in sizes.items()}
        self._found |= {
            "tokens": np.zeros((GROUPS, 3)),
            "sums": np.zeros((GROUPS, layers, dims, 3)),
            "cut_sums": np.zeros((layers, dims)),
        }
        self._told = {name: [""] * self.texts for name in ("given", "intact", "disabled", "drawn")}

    @property
    def watched(self) -> list[DimensionSet]:
        """The sets whose attention and predictions are looked at: the outliers, and each draw."""
        return [s for s in self.sets if s.watched]

    @property
    def dimensions(self) -> list[int]:
        """The dimensions whose activations are looked at."""
        return sorted({d for s in self.watched for d in s.dimensions})

    def take(self, batch: Batch, asked: Asked) -> None:
        """Run a batch intact, with each set disabled, and with the sink cut."""
        import torch

        from bertology.model.reducers.magnitudes import DimensionSums
        from bertology.model.reducers.token_share import TokenShare
        from bertology.model.weight_edits import ZeroLastOperation

        at = list(batch.indices)
        kinds = plain_classes(self.encoder, batch)
        sep = torch.as_tensor(kinds[:, _SEP])
        seen = self._seen(batch, asked, kinds)
        number = torch.as_tensor(self.frequency)[batch.inputs["input_ids"].cpu()]
        sums = DimensionSums(self.dimensions, seen, number)
        share = TokenShare(sep)
        looks = "patterns" in self.encoder.capabilities
        maps = {_PATTERN: share} if looks else {}
        states = {_RESIDUAL: sums} if self.dimensions else {}
        before = asked.predict(reduce={**maps, **states})
        self._keep(at, 0, before, asked)
        best, heard = [before.best], [0]
        if looks:
            self._found["sep"][at, 0] = share.value()
        for i, one in enumerate(self.sets, 1):
            edit = ZeroLastOperation(
                one.dimensions, scale=one.scale, bias=one.bias, norms=self.norms
            )
            share = TokenShare(sep)
            watch = looks and one.watched
            after = asked.predict(edit, reduce={_PATTERN: share} if watch else None)
            self._keep(at, i, after, asked)
            if one.watched:
                heard.append(i)
                best.append(after.best)
                if watch:
                    self._found["sep"][at, len(heard) - 1] = share.value()
        there = asked.there
        self._best.append(np.stack([b[there] for b in best], axis=-1))
        self._tell(batch, asked, best, at)
        if states:
            self._count(at, seen.numpy(), number.numpy(), sums)
            if looks:
                self._cut_sink(at, asked, kinds, seen, number, sums)
        self._found["sep"][
            [i for i, row in zip(at, kinds[:, _SEP], strict=True) if not row.any()]
        ] = np.nan

    def _seen(self, batch: Batch, asked: Asked, kinds: NDArray[np.bool_]) -> Any:
        """Tokens (B, T) that the model sees and that are not special."""
        import torch

        seen = kinds[:, 2] | kinds[:, 3]  # punctuation and words
        places = getattr(asked, "places", None)
        if places is not None and not self.encoder.family.causal:
            rows, columns = np.nonzero(asked.there)
            seen[rows, places[rows, columns]] = False
        return torch.as_tensor(seen)

    def _keep(self, at: list[int], row: int, found: Predicted, asked: Asked) -> None:
        there = asked.there
        some = there.any(axis=1)
        self._found["losses"][at, row] = np.where(some, found.losses, np.nan)
        hits = ((found.best == asked.wanted) & there).sum(1) / np.maximum(there.sum(1), 1)
        self._found["right"][at, row] = np.where(some, hits, np.nan)
        if row == 0 and some.any():
            blind = np.where(there[..., None], self.uninformed.losses(asked.wanted), 0.0).sum(1)
            means = blind / np.maximum(there.sum(1), 1)[:, None]
            self._found["uninformed"][at] = np.where(np.asarray(some)[:, None], means, np.nan)

    def _count(self, at: list[int], seen: Any, number: Any, sums: Any) -> None:
        """Sums over the tokens of each group of texts."""
        found = sums.value()
        for row, i in enumerate(at):
            group = (self.start + i) % GROUPS
            f = number[row][seen[row]]
            self._found["tokens"][group] += (len(f), f.sum(), (f * f).sum())
            self._found["sums"][group] += np.stack(
                [found.size[row], found.square[row], found.product[row]], axis=-1
            )

    def _cut_sink(
        self, at: list[int], asked: Asked, kinds: Any, seen: Any, number: Any, sums: Any
    ) -> None:
        """By how much a set's activations change without attention to [SEP], in logarithms."""
        import torch

        from bertology.model.attention_cuts import CutAttention
        from bertology.model.reducers.magnitudes import DimensionSums

        if not kinds[:, _SEP].any():
            return
        layers = self.encoder.shape.layers
        first = first_upper(layers)
        classes = torch.as_tensor(kinds)
        cut = CutAttention(classes[:, _SEP], classes[:, _WORDS], range(first, layers))
        after = DimensionSums(self.dimensions, seen, number)
        asked.predict(cut, reduce={_RESIDUAL: after})
        sizes = [s.value().size for s in (sums, after)]  # (B, L, D)
        self._found["cut_sums"] += sizes[1].sum(axis=0)
        place = {d: i for i, d in enumerate(self.dimensions)}
        for i, one in enumerate(self.watched):
            chosen = [place[d] for d in one.dimensions]
            whole, less = (s[:, first:][..., chosen].mean((1, 2)) for s in sizes)
            ratio = np.log(np.maximum(less, 1e-12) / np.maximum(whole, 1e-12))
            there = kinds[:, _SEP].any(-1) & (whole > 0)
            self._found["cut"][at, i] = np.where(there, ratio, np.nan)

    def _tell(self, batch: Batch, asked: Asked, best: list[Any], at: list[int]) -> None:
        """The first texts, with what is predicted in the place of hidden words."""
        places = getattr(asked, "places", None)
        if places is None or len(best) < 2:
            return
        ids, real = batch.inputs["input_ids"].cpu().numpy(), batch.real.cpu().numpy()
        drawn = next((i for i, s in enumerate(self.watched, 1) if s.kind == DRAW), None)
        kept = {"given": asked.wanted, "intact": best[0], "disabled": best[1]}
        if drawn is not None:
            kept["drawn"] = best[drawn]
        for row, i in enumerate(at):
            if self.start + i >= KEPT:
                continue
            where = places[row][asked.there[row]]
            for name, pieces in kept.items():
                told = dict(
                    zip(where.tolist(), pieces[row][asked.there[row]].tolist(), strict=True)
                )
                self._told[name][i] = completed(self.encoder.tokenizer, ids[row], real[row], told)

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Of each text: `losses` and `right` (intact first, then each set), `uninformed` (at the
        least, at the most), attention to [SEP] (`sep`), `cut`; of each place `best`; sums by group;
        texts with completions.
        """
        dims = {
            "losses": ("example", "variant"),
            "right": ("example", "variant"),
            "uninformed": ("example", "bound"),
            "sep": ("example", "watched", "layer"),
            "cut": ("example", "set"),
            "tokens": ("group", "moment"),
            "sums": ("group", "layer", "dimension", "moment"),
            "cut_sums": ("layer", "dimension"),
        }
        found: dict[str, tuple[tuple[str, ...], Any]] = {
            name: (dims[name], self._found[name]) for name in dims
        }
        found["best"] = (("place", "watched"), np.concatenate(self._best).astype(np.int32))
        for name, texts in self._told.items():
            found[f"text_{name}"] = (("example",), np.array(texts, dtype=str))
        return found


def completed(tokenizer: Any, ids: Any, real: Any, told: Mapping[int, int]) -> str:
    """A text with pieces in brackets at some places, as on the slides."""
    special, pieces = set(tokenizer.all_special_ids), []
    for place in np.flatnonzero(real).tolist():
        if place in told:
            (piece,) = tokenizer.convert_ids_to_tokens([told[place]])
            joint = "##" if piece.startswith("##") else piece[0] if piece[:1] in "Ġ▁" else ""
            pieces.append(f"{joint}[{piece.removeprefix(joint) or piece}]")
        elif int(ids[place]) not in special:
            pieces += tokenizer.convert_ids_to_tokens([int(ids[place])])
    # A tokenizer that came without a decoder leaves the joints of pieces in.
    return str(tokenizer.convert_tokens_to_string(pieces)).replace(" ##", "").strip()
