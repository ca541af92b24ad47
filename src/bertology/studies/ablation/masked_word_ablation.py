"""Masked-word ablation: how much harder are hidden words without each head, and each layer?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.annotated.plain_classes import PlainClass
from bertology.arrays import Floats
from bertology.errors import CapabilityError
from bertology.parameters import drawn, parameter
from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, head_name, of_row, plain
from bertology.results.compared import row_mean
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.ranking import Ranking
from bertology.results.result import Result
from bertology.stats import mean_interval
from bertology.stats.best_of_many import cross_fitted
from bertology.stats.partial_means import PartialMeans, partial_means
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import gather, start_of
from bertology.studies.designs.sweeps import every_head, every_layer
from bertology.studies.designs.tables import head_table, labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

NATS = "nats"
HEAD_COST = "loss of hidden words without one head, mean over heads"
WORST_LAYER = "loss of hidden words without the layer that the other half misses most"
LEAST_LAYER = "loss of hidden words without the layer that the other half misses least"
NOT_INFORMED = (
    "not judged: the intact model does not surely predict hidden words better than their frequency"
)
_ROW = ("rise", "rise_low", "rise_high")


class MaskedWordAblationResult(Result):
    """Losses of hidden words with heads disabled, less that of the intact model.

    Tables `heads` and `layers` (all heads of one): the mean rise over texts, with bounds and tests
    for all rows of the table together. Array `half_rises`: rises of heads over every other text
    and over the rest, by which heads are compared on texts that they do not share.
    """

    strongest: ClassVar[Mapping[str, Ranking]] = {"heads": "|rise|", "layers": "|rise|"}
    lead: ClassVar[int] = 4

    @property
    def answer(self) -> str:
        """What is lost without a layer, and without a head."""
        if not self.facts["informed"]:
            return (
                f"{NOTHING_SURE}: the intact model does not surely predict hidden words better "
                "than their frequency."
            )
        return " ".join(self._lost(name) for name in ("layers", "heads"))

    def _lost(self, name: str) -> str:
        """The largest change, among sure ones if there are any: the first row."""
        table = self.tables[name]
        sure, row = int(table["sure"].sum()), table.loc[self.shown(name).index[0]]
        found, which = plain(of_row(row, _ROW), ".2f", NATS), head_name(row)
        if not sure:
            return (
                f"None of {len(table)} {name} surely changes the loss of hidden words; {which} "
                f"changes it most, by {found}."
            )
        verb = "changes" if sure == 1 else "change"
        return (
            f"{sure} of {len(table)} {name} surely {verb} the loss of hidden words, {which} most: "
            f"{found} without it."
        )

    def headline(self) -> str:
        """The intact loss, to which all rises are."""
        loss, known = (number_text(self.facts[name], ".2f") for name in ("intact_loss", "known"))
        return (
            f"Intact loss of a hidden word: {loss} nats over {self.facts['examples']} texts, "
            f"{known} less than by frequency"
        )

    def measures(self) -> Sequence[Measure]:
        """The rise without each head, and without each layer."""
        return [
            Measure.of_column(
                self.tables[f"{one}s"],
                "rise",
                name=f"{prefix}masked-loss",
                title=f"Rise of the loss of hidden words without the {one}",
                unit=NATS,
                sure="sure",
                middle=0.0,
                reading=f"Above 0: hidden words are harder without the {one}.",
            )
            for one, prefix in (("head", ""), ("layer", "layer-"))
        ]

    def drawings(self) -> Sequence[Drawing]:
        """A grid of heads, and bars of layers."""
        if not self.facts["examples"]:
            return []
        heads, layers = self.measures()
        return [
            drawings.grid(heads, self.about, name="heads"),
            drawings.bars(layers, self.about, name="layers"),
        ]


@dataclass(frozen=True)
class MaskedWordAblation(Resampled):
    """How much harder are hidden words without each head, and without each layer?

    Method: what `head-ablation` asks of a task, asked of texts without labels. In each text a share
    of the pieces of words is masked, drawn by the seed and the number of the text, the same for the
    whole model and with each head disabled. The loss of a text is the mean of minus the
    log-probability of what is hidden. Every head, and all heads of every layer, are disabled in
    turn; a disabled head attends to all tokens alike, gives nothing ("zero"), or gives its mean
    output over the corpus. Rises of the loss are paired over texts, with bounds and tests for all
    heads (or all layers) together. The sweep is exact, as that of `head-ablation`. Claims are
    judged only where the intact model surely predicts hidden words better than how often these are
    hidden in the other texts (one added to each count).

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.6, on the masked language
    model itself. Limits: one head at a time says nothing about heads that stand in for each other;
    pieces are hidden, not whole words, so that some are told by the rest of their word; pieces of
    one language are not as hard as those of another.
    """

    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns", "heads", "masked-lm"}),
        fields=frozenset({"text"}),
        head="mlm",
    )
    result_type: ClassVar[type[Result]] = MaskedWordAblationResult
    block: ClassVar[int] = 32  # the most that an interrupted run loses
    all_heads: ClassVar[bool] = True

    examples: int = drawn(200)
    hidden: float = parameter(0.15, "Share of pieces that are masked.", minimum=0.01, maximum=0.5)
    method: str = parameter(
        "uniform", "What a disabled head gives.", choices=("uniform", "zero", "mean")
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse tokenizers without a mask."""
        super().check(encoder, corpus)
        encoder.require_tokenizer()
        if encoder.tokenizer.mask_token_id is None:
            raise CapabilityError(f"The tokenizer of {encoder.name!r} has no mask.")

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Losses of every variant, text by text, and which pieces were hidden."""
        import xarray as xr

        from bertology.annotated.plain_classes import plain_classes
        from bertology.model.batch import unknown_id
        from bertology.model.masked_lm.hidden_words import HiddenWords, draw_hidden
        from bertology.model.sweeps.replay import Sweep, Variant

        texts, start, shape = self.of_block(part, corpus).texts, start_of(part), encoder.shape
        means = None
        if self.method == "mean":
            read = self.shown(corpus).texts
            means = encoder.head_means(read, tokens_per_batch=context.batch_tokens)
        variants = [*every_head(shape), *every_layer(shape)]
        sweep = Sweep(
            encoder, [Variant(one.heads) for one in variants], method=self.method, means=means
        )
        losses = np.full((len(texts), 1 + len(variants)), np.nan, np.float32)
        pieces, of = [], []
        for batch in sweep.batches(texts, context.batch_tokens):
            at = list(batch.indices)
            known = batch.inputs["input_ids"].cpu().numpy() != unknown_id(encoder.tokenizer)
            open_ = plain_classes(encoder, batch)[:, list(PlainClass).index(PlainClass.WORDS)]
            numbers = [start + i for i in at]
            places = draw_hidden(open_ & known, numbers, share=self.hidden, seed=self.seed)
            words = HiddenWords(encoder, batch, *places)
            losses[at] = sweep.word_losses(words).numpy().T
            pieces.append(words.wanted[words.there])
            of.append(np.repeat(numbers, words.there.sum(axis=1)))
            context.advance(len(at))
        return xr.Dataset(
            {
                "loss": (("example", "variant"), losses),
                "piece": ("hidden", np.concatenate(pieces)),
                "of_text": ("hidden", np.concatenate(of)),
            },
            coords={"variant": ["intact", *(one.name for one in variants)]},
            attrs={
                "layers": shape.layers,
                "heads": shape.heads,
                "pieces": int(encoder.config.vocab_size),
            },
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Rises of the loss with bounds, and whether the intact model knows anything."""
        import xarray as xr

        seen = gather(measured, concatenate=("loss", "piece", "of_text"))
        intact, others = seen["loss"][:, 0], seen["loss"][:, 1:]
        rises = (others - intact[:, None]).T  # (variant, text)
        shape = int(seen.facts["layers"]), int(seen.facts["heads"])
        of_heads, of_layers = rises[: shape[0] * shape[1]], rises[shape[0] * shape[1] :]
        heads, layers = self.means(of_heads), self.means(of_layers)
        there = np.isfinite(intact)
        frequent = by_frequency(seen["piece"], seen["of_text"], len(intact), seen.facts["pieces"])
        known = None  # of texts without a word that the tokenizer knows
        if there.sum() > 1:
            known = mean_interval((frequent - intact)[there], self.level).counting("texts")
        informed = known is not None and known.low > 0
        halves = [partial_means(of_heads[:, half::2], among=1).value for half in (0, 1)]
        numbers = {
            HEAD_COST: of_heads.mean(axis=0),
            WORST_LAYER: cross_fitted(of_layers.T[:, None])[0][:, 0],
            LEAST_LAYER: -cross_fitted(-of_layers.T[:, None])[0][:, 0],
        }
        return self.result(
            provenance,
            {
                "heads": head_table(shape, _columns(heads)),
                "layers": labelled_table({"layer": range(shape[0])}, _columns(layers)),
            },
            evidence={
                "known": known,
                "largest_head_rise": heads.largest(),
                "smallest_head_rise": heads.smallest(),
                "largest_layer_rise": layers.largest(),
                "smallest_layer_rise": layers.smallest(),
            }
            if informed
            else {},
            reasons={} if informed else {"": NOT_INFORMED},
            facts={
                "examples": int(there.sum()),
                "intact_loss": float(intact[there].mean()) if there.any() else np.nan,
                "known": np.nan if known is None else known.value,
                "informed": int(informed),
            },
            arrays=xr.Dataset(
                {"half_rises": (("half", "layer", "head"), np.reshape(halves, (2, *shape)))}
            ),
            compared=[
                row_mean(title, rows, level=self.level, unit=NATS, counted="texts")
                for title, rows in numbers.items()
            ]
            if informed
            else [],
        )


def _columns(rises: PartialMeans) -> dict[str, ArrayLike]:
    sure = (rises.simultaneous_low > 0) | (rises.simultaneous_high < 0)
    return {**with_bounds("rise", rises), "sure": sure & (rises.p_adjusted < 1 - rises.level)}


def by_frequency(pieces: Floats, of_text: Floats, texts: int, vocabulary: int) -> Floats:
    """The loss (texts,) of guessing by how often pieces are hidden in the other texts.

    One is added to each count; NaN where nothing is hidden.
    """
    found = np.full(texts, np.nan)
    counts = np.bincount(pieces.astype(int), minlength=int(vocabulary))
    for text in np.unique(of_text.astype(int)):
        own = pieces[of_text == text].astype(int)
        others = counts - np.bincount(own, minlength=len(counts))
        found[text] = -np.log((others[own] + 1) / (others.sum() + len(counts))).mean()
    return found
