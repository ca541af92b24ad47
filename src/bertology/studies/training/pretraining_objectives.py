"""Pre-training objectives: what does the same small model learn by each of them?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bertology.errors import ParameterError, UnknownNameError
from bertology.parameters import parameter
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.studies.designs.trials import Trials, TrialsResult, runs_table

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.train.pretrain.config import Pretraining

__all__ = ["OBJECTIVES", "PretrainingObjectives", "PretrainingObjectivesResult"]

REFERENCE = "mlm-nsp"
OBJECTIVES = (
    REFERENCE,
    "static",
    "same-rows",
    "static-10",
    "no-nsp",
    "whole-word",
    "ngram",
    "span",
    "span-boundary",
    "unk-mask",
    "sop",
    "three-way",
    "stream-subsampled",
    "permutation",
    "ngram-order",
    "replaced",
    "continual",
)
# Which pairs of objectives differ in just what a claim is about: quantity, one, other.
_CONTRASTS = (
    ("dynamic_over_static", "same-rows", "static"),
    ("no_nsp_over_nsp", "no-nsp", REFERENCE),
    ("whole_word_over_tokens", "whole-word", REFERENCE),
    ("ngram_over_tokens", "ngram", REFERENCE),
    ("span_over_tokens", "span", REFERENCE),
    ("span_boundary_over_no_nsp", "span-boundary", "no-nsp"),
    ("unk_over_mask", "unk-mask", REFERENCE),
    ("sop_over_nsp", "sop", REFERENCE),
    ("three_way_over_nsp", "three-way", REFERENCE),
    ("stream_over_nsp", "stream-subsampled", REFERENCE),
    ("permutation_over_no_nsp", "permutation", "no-nsp"),
    ("ngram_order_over_no_nsp", "ngram-order", "no-nsp"),
    ("replaced_over_no_nsp", "replaced", "no-nsp"),
    ("continual_over_no_nsp", "continual", "no-nsp"),
)
_ENDINGS = {"mlm": "mlm_accuracy", "pairs": "pair_accuracy", "task": "task_score"}


class PretrainingObjectivesResult(TrialsResult):
    """What models trained by each objective can do, against BERT's own, paired by seed.

    Tables: `objectives` (one row for each objective and measure) and `runs`.
    """

    kind: ClassVar[str] = "objective"
    reference: ClassVar[str] = REFERENCE

    def evidence(self) -> dict[str, Estimate]:
        """Differences between two objectives: `…_mlm`, `…_pairs` and `…_task`, as fractions."""
        found = {}
        for ending, measure in _ENDINGS.items():
            if ending == "task" and not self.informed:
                continue
            scores = self.by_seed(measure)
            for quantity, one, other in _CONTRASTS:
                estimate = self.contrast(scores, one, other)
                if estimate is not None:
                    found[f"{quantity}_{ending}"] = estimate
        return found

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """All objectives by all measures."""
        return {"objectives": lambda: self._dots("What each objective teaches")}

    def captions(self) -> Mapping[str, str]:
        """What the figure shows."""
        return {"objectives": f"One row for each pre-training objective. {self.dots_caption}"}


@dataclass(frozen=True)
class PretrainingObjectives(Trials[PretrainingObjectivesResult]):
    """What does the same small model learn by each pre-training objective?

    Method: a fresh BERT is trained for each objective and seed, with the vocabulary of the model
    that is given and the corpus as its text; examples in a row make documents. All see the same
    number of tokens, padding counted, which `sop` and `three-way` have. Every model is judged
    alike, whatever it was trained by: held-out tokens hidden 80/10/10 in rows of full sentences
    (behind [UNK] where that is its mask), minimal pairs by pseudo-log-likelihood, and a task after
    fine-tuning. Means over seeds have Student's intervals; differences to `mlm-nsp`, which is
    BERT's objective, are paired by seed, and
    `p_adjusted` is corrected (Holm) for all objectives. A claim rests on one contrast, chosen
    before looking, with an interval of its own.

    Source: A Primer in BERTology (2020), section 6.1. Limits: small models on little text say
    little about large ones. Entity masking, conditional MLM and translation LM need annotated text
    and are left out. A discriminator (`replaced`) names no tokens, so it has no score for hidden
    tokens and pairs, and its generator is not counted in its operations. Seconds depend on the
    machine. Student's intervals over few seeds are wide: one seed gives no verdict.
    """

    version: ClassVar[int] = 1
    result_type: ClassVar[type[Result]] = PretrainingObjectivesResult

    objectives: tuple[str, ...] = parameter(OBJECTIVES, "Objectives to compare.")
    layers: int = parameter(4, "Layers of the model.", minimum=1)
    heads: int = parameter(4, "Heads of each layer.", minimum=1)
    hidden: int = parameter(128, "Width of the model.", minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.objectives:
            if name not in OBJECTIVES:
                raise UnknownNameError("objective", name, OBJECTIVES)
        if REFERENCE not in self.objectives or len(set(self.objectives)) < len(self.objectives):
            must = f"hold {REFERENCE}, to which the others are compared, and none twice"
            raise ParameterError("objectives", "PretrainingObjectives", must, list(self.objectives))
        if self.hidden % self.heads:
            must = f"be a multiple of heads ({self.heads})"
            raise ParameterError("hidden", "PretrainingObjectives", must, self.hidden)

    @classmethod
    def enough_for(cls, quantities: Sequence[str]) -> dict[str, Any]:
        """The objectives that the contrasts are between, and the reference."""
        asked = {quantity.rpartition("_")[0] for quantity in quantities}
        pairs = [(one, other) for name, one, other in _CONTRASTS if name in asked]
        used = {REFERENCE, *(name for pair in pairs for name in pair)}
        return {"objectives": tuple(name for name in OBJECTIVES if name in used)}

    @property
    def variants(self) -> Sequence[str]:
        """The objectives."""
        return self.objectives

    def recipe(self, variant: str, seed: int, *, vocab_size: int) -> Pretraining:
        """The same model and number of tokens for all."""
        from bertology.train.fresh import Architecture
        from bertology.train.pretrain.objectives import find_objective

        size = Architecture(
            layers=self.layers,
            heads=self.heads,
            hidden=self.hidden,
            vocab_size=vocab_size,
            max_length=self.length,
            dropout=self.dropout,
        )
        return self.training(model=size, stages=find_objective(variant), seed=seed)

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> PretrainingObjectivesResult:
        """Means, and differences to BERT's own objective."""
        import xarray as xr

        runs = runs_table(measured, "objective")
        tables = self.tables(runs, "objective", REFERENCE, first="objectives")
        return PretrainingObjectivesResult(
            provenance, tables, xr.Dataset(attrs=self.facts(measured))
        )
