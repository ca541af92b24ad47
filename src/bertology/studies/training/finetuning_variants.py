"""Fine-tuning variants: which ways to fine-tune are better than the plain one, and at what cost?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import InterruptedRunError, ParameterError
from bertology.metrics import judged_metric
from bertology.parameters import parameter
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed
from bertology.results.drawing import Drawing
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.studies.designs.scored_runs import ScoredRuns, ScoredRunsResult, answered
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import reaching, split_part
from bertology.studies.designs.variant_runs import Trained, Variant, VariantRun, train_variant
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

__all__ = ["FinetuningVariants", "FinetuningVariantsResult"]

PLAIN, INTERMEDIATE = "plain", "intermediate"
# What ways say of a model with so many layers: {half} of them, {top} a quarter.
VARIANTS: dict[str, Variant] = {
    PLAIN: Variant("plain fine-tuning"),
    "layer-mix": Variant("learnt mix of all layers", ("layer_mix",)),
    "joined-layers": Variant("last four layers joined", ("layer_choice:which=last-4,how=joined",)),
    "features": Variant("head on frozen features", start="frozen-features"),
    "frozen-bottom": Variant("lower half frozen", ("frozen_bottom:layers={half}",)),
    "top-again": Variant("top quarter drawn anew", ("top_again:layers={top}",)),
    "layer-rates": Variant("rates falling by layer", ("layer_rates:decay=0.9",)),
    "bias-only": Variant("bias terms only", ("bias_only",)),
    "adapters": Variant("adapters", ("adapters:size=16",)),
    "lora": Variant("LoRA", ("lora:rank=8",)),
    "mixout": Variant("mixout", ("mixout:share=0.7",)),
    "adversarial": Variant("adversarial embeddings", ("adversarial:steps=2",)),
    "substitution": Variant("tokens substituted", ("substitution:share=0.1",)),
    "masked-lm": Variant("more masked-LM first", ("masked_lm:epochs=1",)),
    INTERMEDIATE: Variant(
        "another task first", ("intermediate:task={task},split={split},limit={limit}",)
    ),
    "early-stopping": Variant("early stopping", patience=1),
}
TITLES = {name: variant.title for name, variant in VARIANTS.items()}
# LoRA needs another package, and another task must be named.
USUAL = tuple(name for name in VARIANTS if name not in (PLAIN, "lora", INTERMEDIATE))
_BETTER, _WORSE = "better", "worse"
_UNLEARNT = (
    "not judged: plain fine-tuning does not surely beat a constant answer, so that there is "
    "nothing to improve on"
)


class FinetuningVariantsResult(ScoredRunsResult):
    """Scores of variants (`variants`), of each run (`runs`), on noisy texts, and what they cost.

    `variants` has one row for each variant and metric: the mean over seeds with an interval over
    seeds and examples, the spread over seeds, failed runs, and how much it is above plain
    fine-tuning with the same seeds. The bounds of that hold for all variants together, and `sure`
    says which are better or worse when all are tested. `noisy` is the same where some tokens of the
    scored texts are others. `costs` has trained weights and seconds. Claims rest on intervals of
    their own variant alone.
    """

    lead: ClassVar[int] = 6

    @property
    def _gains(self) -> pd.DataFrame:
        table = self.table()
        wanted = (table["metric"] == self.facts["judged"]) & (table["variant"] != PLAIN)
        found: pd.DataFrame = table.loc[wanted]
        return found

    @property
    def answer(self) -> str:
        """Which variants are surely better or worse than plain fine-tuning."""
        rows, told = self._gains, []
        for what in (_BETTER, _WORSE):
            names = [TITLES[name] for name in rows.loc[rows["sure"] == what, "variant"]]
            if names:
                told.append(f"{listed(names)} surely {'is' if len(names) == 1 else 'are'} {what}")
        of = f"than plain fine-tuning, of {len(rows)} variants ({self.facts['judged']}, over "
        over = f"{of}{self.facts['seeds']} seeds)."
        if not told:
            return f"{NOTHING_SURE}: no variant is surely better or worse {over}"
        first, rest = "; ".join(told)[0].upper(), "; ".join(told)[1:]
        return f"{first}{rest} {over}"

    def headline(self) -> str:
        """What was learnt from what."""
        facts = self.facts
        return (
            f"{facts['task']}: {facts['train_size']} examples to learn from, {facts['examples']} "
            f"to score, {facts['epochs']} epochs, {facts['seeds']} seeds"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Gains over plain fine-tuning, all scores, and what variants cost."""
        scores = (
            "One row for each way to fine-tune; one panel for each score of the task, times a "
            "hundred. Dots are means over seeds, with intervals over seeds and examples together. "
            "All variants learn from the same data with the same seeds. The last row is always "
            "the same answer, which a way must beat to have learnt anything."
        )
        gains = (
            "How much better each way is than plain fine-tuning with the same seeds, in points; on "
            "the scored texts, and on the same texts with some tokens replaced at random. "
            "Intervals are over seeds and examples and hold for all rows together: those that do "
            "not reach the line are surely better or worse. Both panels have the same scale."
        )
        costs = (
            "What each way costs: the share of the weights that it trains, and how long it takes "
            "in units of plain fine-tuning. Dots are means over seeds. Times are of one machine, "
            "and count whatever else ran on it."
        )
        return [
            Drawing("gains", self._draw_gains, gains),
            self.methods_drawing(
                "variants",
                "Scores by way to fine-tune",
                TITLES,
                scores,
                constants=self._constants,
            ),
            Drawing("costs", self._draw_costs, costs),
        ]

    @property
    def _constants(self) -> dict[str, float]:
        """What a constant answer scores; older results know that of the judged metric alone."""
        known = {str(self.facts["judged"]): float(self.facts["constant"])}
        return {
            metric: float(self.facts.get(f"constant_{metric}", known.get(metric, math.nan)))
            for metric in dict.fromkeys(self.table()["metric"])
        }

    def _draw_gains(self) -> Figure:
        judged, clean = str(self.facts["judged"]), self.table()
        rows = [PLAIN, *self._gains["variant"]]
        panels = []
        for label, table in (("texts as they are", clean), ("noisy texts", self.tables["noisy"])):
            own = table[table["metric"] == judged].set_index("variant").loc[rows]
            sides = [100 * own[f"over_plain{end}"].to_numpy(float) for end in ("", "_low", "_high")]
            for side in sides:
                side[0] = 0.0  # plain is no better than itself
            panels.append(Dots(f"points of {judged} above plain, {label}", *sides))
        return interval_dots(
            panels,
            [TITLES[name] for name in rows],
            title=f"What other ways to fine-tune gain\n{self.about}",
            reference=TITLES[PLAIN],
            same_scale=True,
            note=f"Means over {self.facts['seeds']} seeds; intervals hold for all rows together.",
        )

    def _draw_costs(self) -> Figure:
        table = self.tables["costs"]
        none = np.full(len(table), math.nan)
        panels = [
            Dots("weights trained (%)", 100 * table["share"].to_numpy(float), none, none),
            Dots("time, plain = 1", table["time"].to_numpy(float), none, none),
        ]
        names = [TITLES[name] for name in table["variant"]]
        note = "Times count whatever else ran on the machine."
        return interval_dots(panels, names, title=f"What they cost\n{self.about}", note=note)


@dataclass(frozen=True)
class FinetuningVariants(TaskTrials):
    """Which ways to fine-tune are better than the plain one, and what do they cost?

    Method: each variant learns from the training split and is scored on the corpus that is given,
    the validation split, once for each seed; `plain` trains all weights, and every other variant
    is compared with it by seed. `layer-mix` and `joined-layers` let the head read all or the last
    four layers, `features` trains the head alone, `frozen-bottom` keeps the lower half as it is,
    `top-again` draws the top quarter anew, `layer-rates` takes smaller steps in lower layers (0.9
    for each), `bias-only`, `adapters` (width 16) and `lora` (rank 8) train few weights, `mixout`
    mixes pre-trained weights in (0.7), `adversarial` trains on embeddings moved to where the loss
    is higher (2 passes), `substitution` replaces one token in ten, `masked-lm` and `intermediate`
    first train on the task's texts or on another task (`--intermediate`), and `early-stopping`
    keeps the best epoch on a part of the training data that is not learnt from. Models are also
    scored on noisy texts, in which some tokens are others (`--noise`), for what is said of
    robustness. Intervals are over seeds and examples together. In tables and figures, those of
    differences hold for all variants together (Bonferroni), and which variants are surely better or
    worse is tested for all of them (Holm).

    Claims rest on accuracy (correlation for regressions and CoLA). Each is about one variant that
    was chosen before, so its interval is that of this variant alone. None is judged where plain
    fine-tuning does not surely beat a constant answer.

    Source: A Primer in BERTology (TACL 2020), section 6.3. Limits: every variant has one setting,
    the same for all tasks, and the epochs of plain fine-tuning; with a setting chosen for the task
    each may be better. Variants that train few weights have a higher rate (1e-3). Noise is of
    random tokens, which is not what attacks do. Runs that fail stay in, but few seeds may show none
    of a way that fails now and then. Times are of one machine that may have had other work.
    """

    version: ClassVar[int] = 2
    result_type: ClassVar[type[Result]] = FinetuningVariantsResult
    trains_models: ClassVar[bool] = True
    column: ClassVar[str] = "variant"

    ways: tuple[str, ...] = parameter(USUAL, "Variants to compare with plain fine-tuning.")
    intermediate: str = parameter("", "Another task to learn first; adds that variant.")
    intermediate_split: str = parameter("train", "The split of it to learn from.")
    intermediate_limit: int = parameter(
        20000, "Learn from so many examples of it; 0 for all.", minimum=0
    )
    noise: float = parameter(0.1, "Share of tokens that noisy texts replace.", minimum=0, maximum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        # Ways of `bertology finetune` may be written with either line.
        object.__setattr__(self, "ways", tuple(name.replace("_", "-") for name in self.ways))
        known = [name for name in VARIANTS if name not in (PLAIN, INTERMEDIATE)]
        odd = [name for name in self.ways if name not in known]
        none = not self.ways and not self.intermediate
        if odd or none or len(set(self.ways)) < len(self.ways):
            must = f"be some of {', '.join(known)}, none twice"
            raise ParameterError("ways", "FinetuningVariants", must, odd or list(self.ways))

    @property
    def variants(self) -> Sequence[str]:
        """Plain fine-tuning, and what is compared with it."""
        return [PLAIN, *self.ways, *([INTERMEDIATE] if self.intermediate else [])]

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """All variants must fit the model."""
        super().check(encoder, corpus)
        assert corpus is not None
        for name in self.variants:
            self._run(encoder, corpus, name, 0).check()

    def ingredients(self, corpus: Corpus | None) -> dict[str, str]:
        """The training data, and those of the other task."""
        from bertology.train.ways import read_way

        assert corpus is not None
        known = super().ingredients(corpus)
        if self.intermediate:
            (text,) = self._filled(INTERMEDIATE, 1).ways
            known |= read_way(text).ingredients(corpus)
        return known

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Train one model, or go on with it, and keep its answers."""
        name, seed = split_part(part)
        run, reach = self._run(encoder, corpus, name, seed), reaching(context)
        try:
            trained = train_variant(run, context.trained, keep=name == PLAIN, reach=reach)
            found = self._answers(name, trained, corpus)
        except InterruptedRunError:
            raise KeyboardInterrupt from None  # the session knows what is kept
        reach(BARS)
        return found

    def _run(self, encoder: Encoder, corpus: Corpus, variant: str, seed: int) -> VariantRun:
        chosen = self._filled(variant, encoder.shape.layers)
        settings = partial(self.settings, hidden=encoder.shape.hidden, seed=seed)
        return VariantRun.of(encoder, self.load_train(corpus), corpus, chosen, settings)

    def _filled(self, variant: str, layers: int) -> Variant:
        """A variant as it suits a model with so many layers."""
        return VARIANTS[variant].filled(
            half=layers // 2,
            top=max(1, layers // 4),
            task=self.intermediate,
            split=self.intermediate_split,
            limit=self.intermediate_limit,
        )

    def _answers(self, name: str, trained: Trained, corpus: Corpus) -> xr.Dataset:
        from bertology.train.evaluate import baseline

        train = self.load_train(corpus)
        said, noisy = trained.answers(corpus, noise=self.noise)
        found = answered(
            {name: said},
            corpus,
            train,
            trained=trained.weights,
            size=trained.size,
            seconds=trained.seconds,
            **{f"constant_{m}": score for m, score in baseline(train, corpus).items()},
        )
        return found.assign(noisy=(("method", "example"), noisy[None]))

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores and differences, with intervals over seeds and examples; and costs."""
        same_training_data(measured)
        facts = next(iter(measured.values())).attrs
        metrics = str(facts["metrics"]).split()
        judged, order = judged_metric(metrics), list(VARIANTS)
        runs = ScoredRuns.read(measured, self.level, order=order)
        seen_with = {
            n: p.drop_vars("predictions").rename(noisy="predictions") for n, p in measured.items()
        }
        noisy = ScoredRuns.read(seen_with, self.level, order=order)
        others = [name for name in runs.predictions if name != PLAIN]
        evidence, tables = dict[str, Estimate | None](), {}
        for ending, scored in (("", runs), ("_noisy", noisy)):
            tables[ending] = _table(scored, metrics)
            for name in others:
                quantity = f"{name.replace('-', '_')}_over_plain{ending}"
                evidence[quantity] = _over_plain(scored, name, judged)
        plain, constant = runs.score(PLAIN, judged), float(facts[f"constant_{judged}"])
        learnt = not constant >= (plain.value if math.isnan(plain.low) else plain.low)
        reasons = {} if learnt else dict.fromkeys(evidence, _UNLEARNT)
        return self.result(
            provenance,
            {
                "variants": tables[""],
                "noisy": tables["_noisy"],
                "costs": _costs(measured),
                "runs": runs.runs(self.column, metrics),
            },
            evidence=evidence if learnt else {},
            reasons=reasons,
            facts={
                "task": facts["task"],
                "train_size": facts["train_size"],
                "judged": judged,
                "examples": len(runs.labels),
                "epochs": self.epochs,
                "seeds": self.seeds,
                "noise": self.noise,
                "constant": constant,
                **{f"constant_{m}": float(facts[f"constant_{m}"]) for m in metrics},
            },
        )


def _over_plain(runs: ScoredRuns, name: str, metric: str) -> Estimate | None:
    return runs.difference(name, PLAIN, metric, in_seeds=True, once=True)


def _at_once(runs: ScoredRuns, names: Sequence[str], metric: str) -> dict[str, Estimate | None]:
    """Differences to plain fine-tuning of so many variants; intervals hold for all together.

    They are made at the stricter level. Stretching those of one variant is not the same: with three
    seeds that spread much, they would miss more often than they may.
    """
    strict = replace(runs, level=1 - (1 - runs.level) / max(1, len(names)))
    return {name: _over_plain(strict, name, metric) for name in names}


def _surely(runs: ScoredRuns, first: Mapping[str, Estimate | None], metric: str) -> dict[str, str]:
    """Which variants are better or worse, when all are tested: Holm's method, step by step.

    Those that differ where all are looked at make the next step less strict for the others.
    """
    found, open_yet = dict[str, str](), dict(first)
    while open_yet:
        told = {
            name: _BETTER if one.value > 0 else _WORSE
            for name, one in open_yet.items()
            if one is not None and one.excludes(0.0)
        }
        if not told:
            break
        found |= told
        open_yet = _at_once(runs, [name for name in open_yet if name not in told], metric)
    return found


def _table(runs: ScoredRuns, metrics: Sequence[str]) -> pd.DataFrame:
    """Scores, failed runs, and differences to plain fine-tuning."""
    table = runs.table("variant", metrics)
    failed = {name: int(runs.collapsed(name).sum()) for name in runs.predictions}
    table["failed"] = [failed[name] for name in table["variant"]]
    over, sure = dict[tuple[str, str], Estimate | None](), dict[tuple[str, str], str]()
    for metric in metrics:
        found = _at_once(runs, [name for name in runs.predictions if name != PLAIN], metric)
        over |= {(name, metric): one for name, one in found.items()}
        sure |= {(name, metric): w for name, w in _surely(runs, found, metric).items()}
    keys = list(zip(table["variant"], table["metric"], strict=True))
    for end, of in (("", "value"), ("_low", "low"), ("_high", "high")):
        each = [over.get(key) for key in keys]
        table[f"over_plain{end}"] = [math.nan if e is None else getattr(e, of) for e in each]
    table["sure"] = [sure.get(key, "") for key in keys]
    return table


def _costs(measured: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """Trained weights, and seconds in the mean over seeds, by variant."""
    import pandas as pd

    rows = [
        {"variant": split_part(part)[0]}
        | {name: float(found.attrs[name]) for name in ("trained", "size", "seconds")}
        for part, found in measured.items()
    ]
    means = pd.DataFrame(rows).groupby("variant", sort=False).mean().reset_index()
    order = {name: at for at, name in enumerate(VARIANTS)}
    means = means.sort_values("variant", key=lambda names: names.map(order), ignore_index=True)
    share = means["trained"] / means["size"]
    plain = float(means.loc[means["variant"] == PLAIN, "seconds"].iloc[0])
    time = means["seconds"] / plain if plain else math.nan
    whole = {"trained": means["trained"].astype(int)}
    return means.assign(**whole, share=share, time=time)[
        ["variant", "trained", "share", "seconds", "time"]
    ]
