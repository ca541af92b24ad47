"""Fine-tuning variants: which ways to fine-tune are better than the plain one, and at what cost?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from bertology.errors import ParameterError
from bertology.metrics import judged_metric
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.scored_runs import (
    ScoredRuns,
    ScoredRunsResult,
    answered,
    learnt_nothing,
)
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import reaching, split_part
from bertology.studies.study import Context
from bertology.studies.training.finetuning_variants.runs import (
    INTERMEDIATE,
    NAMED,
    PLAIN,
    TITLES,
    USUAL,
    VARIANTS,
    Trained,
    Variant,
    VariantRun,
    chosen_variants,
    train_variant,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


BETTER, WORSE = "better", "worse"
_NAMED = 3  # of those that are better, or worse, in the answer
TITLED = "title_"  # and a name: the fact that holds the title of a variant without its own


class FinetuningVariantsResult(ScoredRunsResult):
    """Scores of variants (`variants`), of each run (`runs`), on noisy texts, and what they cost.

    `variants` has one row for each variant and metric: the mean over seeds with an interval over
    seeds and examples, the spread over seeds, failed runs, and how much it is above plain
    fine-tuning with the same seeds. The bounds of that hold for all variants together, and `sure`
    says which are better or worse when all are tested. `noisy` is the same where some tokens of the
    scored texts are others. `costs` has trained weights, seconds, and the device; `time` is in
    units of plain fine-tuning, and empty where a run was on another device than plain's, such as a
    model that was kept. Claims rest on intervals of their own variant alone.
    """

    lead: ClassVar[int] = 6

    @property
    def _written(self) -> dict[str, str]:
        """Titles of variants that have no name of their own: their ways as they were written."""
        known = {name: f"{TITLED}{name}" for name in dict.fromkeys(self.table()["variant"])}
        return {name: str(self.facts[fact]) for name, fact in known.items() if fact in self.facts}

    def _title(self, name: str) -> str:
        return self._written.get(name) or TITLES[name]

    def _named(self, row: pd.Series[Any]) -> str:
        """The title of a variant, what it gains, and whether none of its runs learnt anything."""
        none_learnt = int(row["failed"]) == int(self.facts["seeds"])
        gain = points(of_row(row, ("over_plain", "over_plain_low", "over_plain_high")))
        more = f"{gain}; no run learnt" if none_learnt else gain
        return f"{self._title(str(row['variant']))} ({more})"

    @property
    def _gains(self) -> pd.DataFrame:
        table = self.table()
        wanted = (table["metric"] == self.facts["judged"]) & (table["variant"] != PLAIN)
        found: pd.DataFrame = table.loc[wanted]
        return found

    @property
    def answer(self) -> str:
        """Which variants are surely better or worse than plain fine-tuning."""
        rows = self._gains
        over = f"{len(rows)} variants; {self.facts['judged']}, over {self.facts['seeds']} seeds"
        rows = rows.sort_values("over_plain", ascending=False, kind="stable")
        told = {
            what: [self._named(row) for _, row in some[some["sure"] == what].iterrows()]
            for what, some in ((BETTER, rows), (WORSE, rows[::-1]))
        }
        if not any(told.values()):
            than = "no variant is surely better or worse than plain fine-tuning"
            return f"{NOTHING_SURE}: {than} ({over})."
        first, *others = (
            f"surely {what}: {listed(names, _NAMED)}" for what, names in told.items() if names
        )
        beside = "beside plain fine-tuning"
        return f"{first[0].upper()}{'; '.join([first[1:], *others])}, {beside} ({over})."

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
        return [
            self._draw_gains(),
            self.methods_drawing(
                "variants",
                "Scores by way to fine-tune",
                {name: self._title(name) for name in self.table()["variant"]},
                scores,
                constants=self._constants,
            ),
            self._draw_costs(),
        ]

    @property
    def _constants(self) -> dict[str, float]:
        """What a constant answer scores; older results know that of the judged metric alone."""
        known = {str(self.facts["judged"]): float(self.facts["constant"])}
        return {
            metric: float(self.facts.get(f"constant_{metric}", known.get(metric, math.nan)))
            for metric in dict.fromkeys(self.table()["metric"])
        }

    def _draw_gains(self) -> Drawing:
        judged, clean = str(self.facts["judged"]), self.table()
        rows = [PLAIN, *self._gains["variant"]]
        panels = []
        for label, table in (("texts as they are", clean), ("noisy texts", self.tables["noisy"])):
            own = table[table["metric"] == judged].set_index("variant").loc[rows]
            sides = [100 * own[f"over_plain{end}"].to_numpy(float) for end in ("", "_low", "_high")]
            for side in sides:
                side[0] = 0.0  # plain is no better than itself
            panels.append(Dots(f"points of {judged} above plain, {label}", *sides))
        return drawings.dots(
            "gains",
            panels,
            [self._title(name) for name in rows],
            self.about,
            title="What other ways to fine-tune gain",
            reference=self._title(PLAIN),
            same_scale=True,
            caption="How much better each way is than plain fine-tuning with the same seeds, in "
            "points; on the scored texts, and on the same texts with some tokens replaced at "
            "random. Intervals are over seeds and examples and hold for all rows together: those "
            "that do not reach the line are surely better or worse. Both panels have the same "
            "scale.",
            note=f"Means over {self.facts['seeds']} seeds; intervals hold for all rows together.",
        )

    def _draw_costs(self) -> Drawing:
        table = self.tables["costs"]
        panels = [
            Dots("weights trained (%)", 100 * table["share"].to_numpy(float)),
            Dots("time, plain = 1", table["time"].to_numpy(float)),
        ]
        names = [self._title(name) for name in table["variant"]]
        note = "Times count whatever else ran on the machine."
        return drawings.dots(
            "costs",
            panels,
            names,
            self.about,
            title="What they cost",
            caption="What each way costs: the share of the weights that it trains, and how long it "
            "takes in units of plain fine-tuning. Dots are means over seeds. Times count whatever "
            "else ran on the machine; those of another device than plain fine-tuning's, such as "
            "where a model of it was kept, are not compared and have no dot.",
            note=note,
        )


@dataclass(frozen=True)
class FinetuningVariants(TaskTrials):
    """Which ways to fine-tune are better than the plain one, and what do they cost?

    Method: each variant learns from the training split and is scored on the corpus that is given,
    the validation split, once for each seed; `plain` trains all weights, and every other variant is
    compared with it by seed. `layer-mix` and `joined-layers` let the head read all or the last four
    layers, `chosen-layers` the mean of these four, `features` trains the head alone,
    `frozen-bottom` keeps the lower half as it is, `top-again` draws the top quarter anew,
    `layer-rates` takes smaller steps in lower layers (0.9 for each), `bias-only`, `adapters` (width
    16) and `lora` (rank 8) train few weights, `mixout` mixes pre-trained weights in (0.7),
    `adversarial` trains on embeddings moved to where the loss is higher (2 passes), `substitution`
    replaces one token in ten, `masked-lm` and `intermediate` first train on the task's texts or on
    another task (`--intermediate`), and `early-stopping` keeps the best epoch on a part of the
    training data that is not learnt from. Models are also scored on noisy texts, in which some
    tokens are others (`--noise`), for what is said of robustness. Intervals are over seeds and
    examples together. In tables and figures, those of differences hold for all variants together
    (Bonferroni), and which variants are surely better or worse is tested for all of them (Holm). A
    variant may also be ways as `bertology finetune --way` takes them, several joined by `+`:
    `--ways adapters:size=64,mixout:share=0.9+layer_rates`; only a `+` before a letter separates,
    and {half} and {top} stand for a half and a quarter of the layers.

    Claims rest on accuracy (correlation for regressions and CoLA). Each is about one variant that
    was chosen before, so its interval is that of this variant alone. None is judged where plain
    fine-tuning does not surely beat a constant answer.

    Source: A Primer in BERTology (TACL 2020), section 6.3. Limits: every variant has one setting,
    the same for all tasks, and the epochs of plain fine-tuning; with a setting chosen for the task
    each may be better. Variants that train few weights have a higher rate (1e-3). Noise is of
    random tokens, which is not what attacks do. Runs that fail stay in, but few seeds may show none
    of a way that fails now and then. Times are compared where runs were on the same device, which
    may have had other work.
    """

    version: ClassVar[int] = 4  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = FinetuningVariantsResult
    trains_models: ClassVar[bool] = True
    column: ClassVar[str] = "variant"

    ways: tuple[str, ...] = parameter(
        USUAL,
        "Variants to compare with plain fine-tuning: names of the docs page, or ways as `bertology "
        "finetune --way` takes them, several of one variant joined by `+` "
        "(mixout:share=0.9+layer_rates:decay=0.95).",
    )
    intermediate: str = parameter("", "Another task to learn first; adds that variant.")
    intermediate_split: str = parameter("train", "The split of it to learn from.")
    intermediate_limit: int = parameter(
        20000, "Learn from so many examples of it; 0 for all.", minimum=0
    )
    noise: float = parameter(0.1, "Share of tokens that noisy texts replace.", minimum=0, maximum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = chosen_variants(self.ways)
        if not chosen and not self.intermediate:
            must = f"be some of {', '.join(NAMED)}, or ways of `bertology finetune`"
            raise ParameterError("ways", "FinetuningVariants", must, [])
        # One text for each variant, so that however it was written it is the same study.
        texts = (name if name in VARIANTS else one.title for name, one in chosen.items())
        object.__setattr__(self, "ways", tuple(texts))

    @property
    def variants(self) -> Sequence[str]:
        """Plain fine-tuning, and what is compared with it."""
        return list(self._chosen)

    @cached_property
    def _chosen(self) -> dict[str, Variant]:
        """All variants by their names, as they are written for a model of any size."""
        found = {PLAIN: VARIANTS[PLAIN], **chosen_variants(self.ways)}
        return found | ({INTERMEDIATE: VARIANTS[INTERMEDIATE]} if self.intermediate else {})

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """All variants must fit the model."""
        super().check(encoder, corpus)
        jobs = dict[str, str]()
        for name in self.variants:
            run = self._run(encoder, corpus, name, 0)
            run.check()
            if (same := jobs.setdefault(run.job.identity, name)) != name:
                must = f"be of different settings: {same!r} and {name!r} are the same"
                raise ParameterError("ways", "FinetuningVariants", must, list(self.ways))

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The training data, and what else ways read, such as another task."""
        from bertology.train.ways import read_way

        known = super().ingredients(corpus)
        for name in self.variants:
            for text in self._filled(name, 1).ways:
                known |= read_way(text).ingredients(corpus)
        return known

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Train one model, or go on with it, and keep its answers."""
        name, seed = split_part(part)
        run, reach = self._run(encoder, corpus, name, seed), reaching(context)
        trained = train_variant(run, context.trained, keep=name == PLAIN, reach=reach)
        found = self._answers(name, trained, corpus)
        reach(BARS)
        return found

    def _run(self, encoder: Encoder, corpus: Corpus, variant: str, seed: int) -> VariantRun:
        chosen = self._filled(variant, encoder.shape.layers)
        settings = partial(self.settings, hidden=encoder.shape.hidden, seed=seed)
        return VariantRun.of(encoder, self.load_train(corpus), corpus, chosen, settings)

    def _filled(self, variant: str, layers: int) -> Variant:
        """A variant as it suits a model with so many layers."""
        values: dict[str, object] = {"half": layers // 2, "top": max(1, layers // 4)}
        if variant == INTERMEDIATE:
            values["task"], values["split"] = self.intermediate, self.intermediate_split
            values["limit"] = self.intermediate_limit
        return self._chosen[variant].filled(**values)

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
            device=trained.device,
            **{f"constant_{m}": score for m, score in baseline(train, corpus).items()},
        )
        return found.assign(noisy=(("method", "example"), noisy[None]))

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores and differences, with intervals over seeds and examples; and costs."""
        same_training_data(measured)
        facts = next(iter(measured.values())).attrs
        metrics = str(facts["metrics"]).split()
        judged = judged_metric(metrics)
        order = [*VARIANTS, *(name for name in self.variants if name not in VARIANTS)]
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
        constant, reasons = float(facts[f"constant_{judged}"]), dict[str, str]()
        learnt = {name: runs.learnt(name, judged, constant) for name in runs.predictions}
        for name in others:
            if poor := [one for one in (PLAIN, name) if not learnt[one]]:
                over = f"{name.replace('-', '_')}_over_plain"
                reasons |= dict.fromkeys((over, f"{over}_noisy"), learnt_nothing(poor))
        return self.result(
            provenance,
            {
                "variants": tables[""],
                "noisy": tables["_noisy"],
                "costs": _costs(measured, order),
                "runs": runs.runs(self.column, metrics),
            },
            evidence={name: e for name, e in evidence.items() if name not in reasons},
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
                **{f"{TITLED}{n}": v.title for n, v in self._chosen.items() if n not in VARIANTS},
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
            name: BETTER if one.value > 0 else WORSE
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


def _costs(measured: Mapping[str, xr.Dataset], variants: Sequence[str]) -> pd.DataFrame:
    """Trained weights, seconds in the mean over seeds, and where, by variant in this order.

    `time` is in units of plain fine-tuning; NaN where a run was on another device than plain's of
    its seed, such as a model that was kept of an earlier study.
    """
    import pandas as pd

    rows = pd.DataFrame(
        dict(zip(("variant", "seed"), split_part(part), strict=True))
        | {name: float(found.attrs[name]) for name in ("trained", "size", "seconds")}
        | {"device": str(found.attrs.get("device", ""))}  # earlier versions did not tell it
        for part, found in measured.items()
    )
    where = {
        name: own.set_index("seed")["device"].sort_index() for name, own in rows.groupby("variant")
    }
    means = rows.groupby("variant", sort=False)[["trained", "size", "seconds"]].mean().reset_index()
    order = {name: at for at, name in enumerate(variants)}
    means = means.sort_values("variant", key=lambda names: names.map(order), ignore_index=True)
    plain = float(means.loc[means["variant"] == PLAIN, "seconds"].iloc[0])
    alike = pd.Series([where[name].equals(where[PLAIN]) for name in means["variant"]])
    return pd.DataFrame(
        {
            "variant": means["variant"],
            "trained": means["trained"].astype(int),
            "share": means["trained"] / means["size"],
            "seconds": means["seconds"],
            "time": (means["seconds"] / (plain or math.nan)).where(alike),
            "device": [", ".join(sorted(set(where[name]))) for name in means["variant"]],
        }
    )
