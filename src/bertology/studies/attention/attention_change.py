"""Attention change: which heads look elsewhere than they did before training?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, head_name, of_row, plain, raised
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance, short_model
from bertology.results.result import Result
from bertology.stats import mean_interval
from bertology.stats.multiplicity import RowBlocks
from bertology.studies.designs.noise import NO_NOISE, NoiseControlled, last_layers
from bertology.studies.designs.parts import gather, start_of
from bertology.studies.designs.tables import head_table, labelled_table
from bertology.studies.study import MAPS_OF_TEXTS, Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike

    from bertology.data.corpus import Corpus
    from bertology.model.batch import Text
    from bertology.model.encoder import Encoder

_CHANGE = ("change", "simultaneous_low", "simultaneous_high")
_COMPARED = ("change", "divergence", "neighbour")
_SAME = "not judged: this is the same model twice"
_UNRELATED = "not judged: heads of the same number are no more alike than others"


class AttentionChangeResult(Result):
    """How far each head's maps moved between two models.

    Tables `heads` and `layers`: `cosine` of the maps, `change` (1 - cosine) and `divergence`
    (Jensen-Shannon, nats), each with its interval over examples; simultaneous bounds of `change`
    hold for all rows together. Table `noise`: the change of each layer in noisy copies, and what
    training changed (`trained`) in the same examples.
    """

    lead: ClassVar[int] = 8
    strongest: ClassVar[Mapping[str, str]] = {"heads": "change"}

    @property
    def answer(self) -> str:
        """The layer and the head that moved most."""
        rows = [self.tables[name].nlargest(1, "change").iloc[0] for name in ("layers", "heads")]
        layer, head = ((head_name(row), plain(of_row(row, _CHANGE), ".3f")) for row in rows)
        moved = (
            f"attention moved most from {self._before} in {layer[0]}: {layer[1]} (1 − cosine of "
            f"the maps; 0: as before); of single heads in {head[0]}: {head[1]}."
        )
        sure = any(row[_CHANGE[1]] > 0 for row in rows)
        return raised(moved) if sure else f"{NOTHING_SURE}: {moved}"

    def headline(self) -> str:
        """How alike the two are over all heads."""
        cosine = number_text(float(self.tables["heads"]["cosine"].mean()))
        examples = self.facts["examples"]
        return f"Mean cosine with the maps of {self._before}: {cosine} over {examples} examples"

    def measures(self) -> Sequence[Measure]:
        """How far each head and each layer moved."""
        return [*self._moved("heads", "", "head"), *self._moved("layers", "layer-", "layer")]

    def _moved(self, table: str, prefix: str, one: str) -> Iterator[Measure]:
        yield Measure.of_column(
            self.tables[table],
            "change",
            name=f"{prefix}change",
            title=f"How far the {one}'s attention moved from {self._before}",
            unit="1 − cosine similarity",
            bounds=("simultaneous_low", "simultaneous_high"),
            reading=f"0: the same maps as before; high: the {one} looks elsewhere.",
        )
        yield Measure.of_column(
            self.tables[table],
            "divergence",
            name=f"{prefix}divergence",
            title=f"Divergence of the {one}'s attention from {self._before}",
            unit="nats",
            reading="0: the same attention as before; 0.69 (ln 2): nothing in common.",
        )

    def drawings(self) -> Sequence[Drawing]:
        """The paper's Figure 5, its profile over layers, and the same by divergence."""
        return [
            drawings.grid(self.measure("change"), self.about, name="heads"),
            drawings.bars(self.measure("layer-change"), self.about, name="layers"),
            drawings.grid(self.measure("divergence"), self.about),
        ]

    @property
    def _before(self) -> str:
        return short_model(str(self.provenance.others["before"]["name"]))


@dataclass(frozen=True)
class AttentionChange(NoiseControlled):
    """Which heads look elsewhere than they did before training?

    Method: the model and the one `before` it (of the same build and tokenizer) read the same
    texts. For every head and example, the two L × L maps are flattened and their cosine is taken;
    beside it the Jensen-Shannon divergence of each query's two distributions, averaged over
    queries. Padding enters neither. Means are over at most `examples` examples, drawn by `seed`;
    intervals are Student's. The simultaneous ones hold for all rows together, and for rare large
    changes of which none was seen, since no change can be larger than 1.

    Any change of the weights moves attention, and higher layers more. So `noise` copies of the
    model before are measured too, with random changes as large as those of the training, spread
    evenly over all weights; the table `noise` gives the profile of their layers. Copies differ more
    than examples do, so each reads a random part of these. A claim must hold beyond the profile of
    a copy, scaled to the same mean change in the same examples. Claims are judged only where the
    two models are related: where heads of the same number are surely more alike than a head and the
    other model's next one.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.3, Figure 5. Limits: a layer
    whose input has changed looks elsewhere even with its old weights, so change adds up towards
    the top; and intervals are over texts: the same training once more may move other heads.
    """

    version: ClassVar[int] = 7  # controls are gates; "most in the last layers" asks for their order
    all_heads: ClassVar[bool] = True
    needs: ClassVar[Needs] = MAPS_OF_TEXTS
    help_options: ClassVar[tuple[str, str]] = (
        "--before bertology-mini@2416",
        "--before user/the-same-before",
    )
    result_type: ClassVar[type[Result]] = AttentionChangeResult

    before: str = parameter(
        "",
        "The model to compare with, as it was before. If not given: the one that MODEL was "
        "fine-tuned from, as its bertology.json says.",
        model=True,
        before=True,
    )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """The measures of every example and head in one block."""
        import xarray as xr

        from bertology.model.reducers.map_comparison import compare_maps

        start, texts = start_of(part), self.of_block(part, corpus).texts
        found = compare_maps(
            encoder,
            context.others["before"],
            texts,
            tokens_per_batch=context.batch_tokens,
            done=context.advance,
        )
        compared = (found.cosine_distance, found.divergence, found.distance_to_neighbour)
        dims = ("example", "layer", "head")
        return xr.Dataset(
            {n: (dims, m.numpy()) for n, m in zip(_COMPARED, compared, strict=True)},
            coords={"example": np.arange(start, start + len(texts))},
        ).assign(
            noise=(
                ("example", "copy", "layer"),
                self._noise(encoder, texts, self.read_by_copies(part, corpus), context),
            )
        )

    def _noise(
        self,
        encoder: Encoder,
        texts: Sequence[Text],
        read: Sequence[NDArray[np.int64]],
        context: Context,
    ) -> NDArray[np.float32]:
        """(example, copy, layer): how far copies move, mean over heads; NaN where none was read."""
        from bertology.model.reducers.map_comparison import compare_maps
        from bertology.model.weight_noise import noisy_copies

        before = context.others["before"]
        found = np.full((len(texts), self.noise, encoder.shape.layers), np.nan, np.float32)
        copies = noisy_copies(before, encoder, draws=self.noise, seed=self.seed, even=True)
        for at, noisy in enumerate(copies):
            chosen = [texts[i] for i in read[at]]
            if chosen:
                moved = compare_maps(noisy, before, chosen, tokens_per_batch=context.batch_tokens)
                found[read[at], at] = moved.cosine_distance.mean(-1).numpy()
        return found

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means over examples by head and by layer, and the test of the last two layers."""
        import pandas as pd

        seen = gather(
            measured,
            concatenate={n: partial(_by_layer, name=n) for n in ("change", "divergence")},
            add={
                "nearer": _nearer,
                "noise": lambda part: np.nansum(part["noise"], axis=0, dtype=float),
                "matched": _matched,
                "read": lambda part: np.isfinite(part["noise"][:, :, 0]).sum("example"),
            },
            spool=("change", "divergence"),
        )
        examples, layers = seen["change"].shape
        heads = seen["nearer"].size // layers
        of_heads = (
            RowBlocks(partial(map, seen.spooled[name].rows, range(layers)))
            for name in ("change", "divergence")
        )
        tables = {
            "heads": head_table((layers, heads), self._columns(*of_heads)),
            "layers": pd.DataFrame(
                {
                    "layer": np.arange(layers),
                    **self._columns(seen["change"].T, seen["divergence"].T),
                }
            ),
        }
        # (copy, layer), both over the examples that the copy read
        noise, matched = (seen[name] / seen["read"][:, None] for name in ("noise", "matched"))
        if self.noise:
            tables["noise"] = labelled_table(
                {"copy": range(self.noise), "layer": range(layers)},
                {"change": noise, "trained": matched},
            )
        # Over heads and not examples: unrelated models are as (un)like on every example.
        nearer = np.ravel(seen["nearer"] / examples)
        related = nearer.size > 1 and mean_interval(nearer, self.level).low > 0
        before = provenance.others.get("before", {}).get("fingerprint", "")
        same = before == provenance.model["fingerprint"] or not seen["change"].any()
        why = _SAME if same else _UNRELATED if not related else "" if self.noise else NO_NOISE
        return self.result(
            provenance,
            tables,
            evidence={}
            if why
            else last_layers(
                seen["change"].clip(0, 1),  # rounding
                noise,
                matched.clip(0, 1),
                partial(self.means, support=(-1, 1)),
            ),
            reasons={"": why} if why else {},
            facts={"examples": examples, "related": int(related)},
        )

    def _columns(
        self, change: ArrayLike | RowBlocks, divergence: ArrayLike | RowBlocks
    ) -> dict[str, ArrayLike]:
        """Columns of the table of those that changed."""
        moved = self.means(change, support=(0, 1))
        apart = self.means(divergence, support=(0, math.log(2)))
        return {
            "cosine": 1 - moved.value,
            "cosine_low": 1 - moved.high,
            "cosine_high": 1 - moved.low,
            "change": moved.value,
            "simultaneous_low": moved.simultaneous_low,
            "simultaneous_high": moved.simultaneous_high,
            "divergence": apart.value,
            "divergence_low": apart.low,
            "divergence_high": apart.high,
        }


def _by_layer(part: xr.Dataset, name: str) -> Floats:
    """(example, layer), mean over heads."""
    found: Floats = part[name].to_numpy().astype(float).mean(2)
    return found


def _matched(part: xr.Dataset) -> Floats:
    """(copy, layer): sums of the change by training over the examples that the copy read."""
    change, read = _by_layer(part, "change"), np.isfinite(part["noise"].to_numpy()[:, :, 0])
    found: Floats = read.T.astype(float) @ change
    return found


def _nearer(part: xr.Dataset) -> Floats:
    """How much more alike heads of the same number are than neighbours: sums (layer, head)."""
    neighbour, change = (part[n].to_numpy().astype(float) for n in ("neighbour", "change"))
    found: Floats = (neighbour - change).sum(0)
    return found
