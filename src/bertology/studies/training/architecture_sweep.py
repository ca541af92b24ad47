"""Architecture sweep: layers, heads, width, large batches, stacking, and normalised embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bertology.errors import ParameterError, UnknownNameError
from bertology.parameters import parameter
from bertology.report.figures import Line, lines
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.trials import Runs, split_part
from bertology.studies.training.shared import PretrainingTrials, PretrainingTrialsResult
from bertology.train.pretrain.cost import (
    TRIAL_MEASURES,
    Curve,
    body_flops,
    body_parameters,
    matched_width,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.studies.training.shared import Found
    from bertology.train.pretrain.config import Pretraining
    from bertology.train.pretrain.trial import Trial

BASE = "base"
BATCH, STACKED, NORMALISED = "large-batch", "stacked", "normalised"
# Other ways to train, and how the names of the quantities begin that need them; axes likewise.
EXTRAS = {BATCH: "large_batch", STACKED: "stacking", NORMALISED: "normalisation"}
AXES = {"layers": "layers_over_heads", "heads": "layers_over_heads", "hidden": "width"}
_CONTRASTS = {"large_batch_gain": (BATCH, BASE), "stacking_gain": (STACKED, BASE)}
# What claims are judged on: corrected together, as far as it was measured.
_JUDGED = (
    *(
        f"{n}_{m}"
        for n in ("layers_over_heads", "width_gain", "large_batch_gain")
        for m in ("mlm", "task")
    ),
    "normalisation_gain",
    "stacking_time_saved",
    "stacking_gain_task",
)
_EVALUATIONS = 25  # of the runs whose progress is compared


class Shape3(NamedTuple):
    """Layers, heads and width."""

    layers: int
    heads: int
    hidden: int


class ArchitectureSweepResult(PretrainingTrialsResult):
    """Models of several shapes, and several ways to train the same shape, paired by seed.

    Tables: `variants` (one row for each variant and measure), `runs` (with `layers`, `heads` and
    `hidden` as they were), `stacking` (time and operations that stacking saved, by seed). Arrays:
    held-out loss over time of the base and the stacked model.
    """

    def drawings(self) -> Sequence[Drawing]:
        """All variants by all measures; and the loss over time with and without stacking."""
        rows = "shape (layers × heads × width) or way to train it"
        found = [self.of_all("Shapes and ways to train them", rows=rows)]
        if "stacking" in self.tables:
            caption = (
                "Seconds of training to the right, upwards the held-out loss of masked tokens, in "
                "nats; one line for each seed. The sooner the stacked model's lines come down to "
                "where the base ends, the more time stacking saves."
            )
            found.append(Drawing("stacking", self._draw_stacking, caption))
        return found

    def _draw_stacking(self) -> Figure:
        drawn = []
        for name in (BASE, STACKED):
            seconds, loss = (self.arrays[f"{name}_{c}"].to_numpy() for c in ("seconds", "loss"))
            drawn += [Line(name, *run) for run in zip(seconds, loss, strict=True)]
        return lines(
            drawn,
            title="Progressive stacking: shallow first, then copied",
            xlabel="seconds of training",
            ylabel=TRIAL_MEASURES["mlm_loss"],
            note="One line for each seed.",
        )


@dataclass(frozen=True)
class ArchitectureSweep(PretrainingTrials):
    """Do layers, heads or width matter most, and what do three tricks of training gain?

    Method: from a base model one of layers, heads and width is varied at a time, or all of them
    with `grid`. With `match` the width of a variant is chosen so that its layers have as many
    parameters, or take as many operations for a token, as the base's of the asked width, as nearly
    as its number of heads allows. Three variants train the base otherwise: `large-batch` sees the
    same tokens in fewer, larger batches, with a rate that grows by the root of their size;
    `stacked` trains the lower half of the layers first and copies them (Gong et al. 2019);
    `normalised` standardises the last [CLS] embedding by the training texts before a fresh pooler
    in fine-tuning (Zhou et al. 2019), compared with a fresh pooler alone, which all others have.
    Every model is judged as in `pretraining-objectives`. The time that stacking saves is that to
    reach the held-out loss at which the base of the same seed ended.

    Source: A Primer in BERTology (2020), section 6.2. Limits: small models on little text say
    little about large ones. Seconds are of the machine at hand: run parts that are compared by time
    alone and on the same one (`flops_saved` does not depend on it). A stacked run that never
    reaches the loss has no saving. Student's intervals over few seeds are wide; those of claims
    are corrected (Bonferroni) for all claims that were asked about.
    """

    version: ClassVar[int] = 3  # fresh poolers; claims corrected together, of models that learnt
    result_type: ClassVar[type[Result]] = ArchitectureSweepResult
    reference: ClassVar[str] = BASE

    vary_layers: tuple[int, ...] = parameter((1, 2, 8), "Other numbers of layers.")
    vary_heads: tuple[int, ...] = parameter((1, 2, 8), "Other numbers of heads.")
    vary_hidden: tuple[int, ...] = parameter((64, 256), "Other widths.")
    grid: bool = parameter(False, "All combinations, not one axis at a time.")
    match: str = parameter(
        "none",
        "What variants of layers and heads have in common with the base, by their width.",
        choices=("none", "parameters", "flops"),
    )
    extras: tuple[str, ...] = parameter(tuple(EXTRAS), "Other ways to train the base.")
    batch_factor: int = parameter(4, "How much larger a large batch is.", minimum=2)
    stack_share: float = parameter(
        0.5, "Share of the updates with half of the layers.", minimum=0.01, maximum=0.99
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.extras:
            if name not in EXTRAS:
                raise UnknownNameError("way to train", name, EXTRAS)
        for axis in AXES:
            name, given = f"vary_{axis}", list(self._varied(axis))
            if min(given, default=1) < 1:
                raise ParameterError(name, "ArchitectureSweep", "be at least 1 each", given)
        if STACKED in self.extras and self.layers % 2:
            must = "be even to be stacked"
            raise ParameterError("layers", "ArchitectureSweep", must, self.layers)
        for shape in self.shapes().values():
            if self.match == "none" and shape.hidden % shape.heads:
                must = f"be a multiple of heads ({shape.heads}) where nothing is matched"
                raise ParameterError("hidden", "ArchitectureSweep", must, shape.hidden)

    @classmethod
    def enough_for(cls, quantities: Sequence[str]) -> dict[str, Any]:
        """The axes and the ways to train that the quantities are about."""

        def asked(opening: str) -> bool:
            return any(quantity.startswith(opening) for quantity in quantities)

        unused = {f"vary_{axis}": () for axis, opening in AXES.items() if not asked(opening)}
        return {**unused, "extras": tuple(way for way, opening in EXTRAS.items() if asked(opening))}

    # The variants ------------------------------------------------------------------------------

    def _varied(self, axis: str) -> tuple[int, ...]:
        """The values of an axis beside the base's own."""
        values: tuple[int, ...] = getattr(self, f"vary_{axis}")
        return values

    def shapes(self) -> dict[str, Shape3]:
        """The shapes that are asked for, by name; matching may still change their widths."""
        base = Shape3(self.layers, self.heads, self.hidden)
        found = {BASE: base}
        for axis in AXES:
            for value in self._varied(axis):
                if value != getattr(base, axis):
                    name = "width" if axis == "hidden" else axis
                    found[f"{name}-{value}"] = base._replace(**{axis: value})
        if self.grid:
            axes = [dict.fromkeys((getattr(base, a), *self._varied(a))) for a in AXES]
            named = set(found.values())
            combined = (Shape3(*values) for values in product(*axes))
            found |= {"x".join(map(str, s)): s for s in combined if s not in named}
        return found

    def matched(self, shape: Shape3) -> Shape3:
        """The shape with the width that `match` gives it."""
        if self.match == "none":
            return shape

        def cost(layers: int, hidden: int) -> int:
            if self.match == "parameters":
                return body_parameters(layers, hidden)
            return body_flops(layers, hidden, self.length)

        wanted = cost(self.layers, shape.hidden)
        if cost(shape.layers, shape.hidden) == wanted and shape.hidden % shape.heads == 0:
            return shape
        width = matched_width(lambda w: cost(shape.layers, w), wanted, heads=shape.heads)
        return shape._replace(hidden=width)

    @property
    def variants(self) -> Sequence[str]:
        """The shapes and the ways to train; normalisation only differs in the base's tuning."""
        return [*self.shapes(), *(name for name in self.extras if name != NORMALISED)]

    def recipe(self, variant: str, seed: int, *, vocab_size: int) -> Pretraining:
        """The base's recipe with what the variant changes."""
        from bertology.train.pretrain.config import Phase

        shape = self.matched(self.shapes().get(variant, self.shapes()[BASE]))
        recipe = self.shared_recipe(shape, seed, vocab_size=vocab_size)
        if variant == BATCH:
            fewer = max(1, round(self.updates / self.batch_factor))
            return replace(
                recipe,
                steps=fewer,
                batch_tokens=self.update_tokens * self.batch_factor,
                learning_rate=self.learning_rate * math.sqrt(self.batch_factor),
                log_every=max(1, fewer // 50),
                evaluate_every=fewer,
            )
        if variant == STACKED:
            half = Phase(self.length, self.stack_share, self.layers // 2)
            recipe = replace(recipe, phases=(half, Phase(self.length, 1 - self.stack_share)))
        if variant in (BASE, STACKED):
            recipe = replace(recipe, evaluate_every=max(1, self.updates // _EVALUATIONS))
        return recipe

    def more(
        self, encoder: Encoder, corpus: Corpus, trial: Trial, *, variant: str, recipe: Pretraining
    ) -> Found:
        """The shape, scores with other poolers, and how the held-out loss went down."""
        from bertology.train.pretrain.trial import task_score

        found: dict[str, float] = {axis: getattr(recipe.model, axis) for axis in AXES}
        task = self.load_task()
        if variant == BASE and NORMALISED in self.extras and task is not None:
            found["task_normalised"] = task_score(
                trial.model, encoder.tokenizer, task._replace(pooler="normalised"), seed=recipe.seed
            )
        curve = Curve.of_log(trial.log)._asdict()
        return found | {f"curve_{name}": ("evaluation", values) for name, values in curve.items()}

    # The conclusion ----------------------------------------------------------------------------

    def runs(self, measured: Mapping[str, xr.Dataset]) -> Runs:
        """All runs, with the shape that was asked for and the axis that it lies on, if any."""
        runs, known = super().runs(measured), self.shapes()
        asked = [known.get(name, known[BASE]) for name in runs.table["variant"]]
        columns = {f"asked_{axis}": [getattr(shape, axis) for shape in asked] for axis in AXES}
        axis = [_axis(shape, known[BASE]) for shape in asked]
        return replace(runs, table=runs.table.assign(**columns, axis=axis))

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means, differences to the base, and what stacking saved."""
        import pandas as pd
        import xarray as xr

        runs, tables, arrays = self.runs(measured), dict[str, pd.DataFrame](), xr.Dataset()
        if STACKED in self.extras:
            curves = {name: _curves(measured, name) for name in (BASE, STACKED)}
            for name, found in curves.items():
                for kind, values in zip(Curve._fields, zip(*found, strict=True), strict=True):
                    arrays[f"{name}_{kind}"] = ("seed", f"{name}_evaluation"), np.stack(values)
            # Operations of an update with half of the layers, as a share of a whole one's. More
            # than half: the output layer is the same
            flops = runs.by_seed("flops_per_token").iloc[0]
            cost = float(1 - (1 - flops[STACKED] / flops[BASE]) / self.stack_share)
            pairs = zip(curves[BASE], curves[STACKED], strict=True)
            saved = [self._saved(base, stacked, cost) for base, stacked in pairs]
            tables["stacking"] = pd.DataFrame(saved).rename_axis("seed").reset_index()
        return self.judged(
            provenance,
            runs,
            evidence=partial(_evidence, stacking=tables.get("stacking")),
            needs=self._compared(runs),
            together=_JUDGED,
            tables=tables,
            arrays=arrays,
        )

    def _compared(self, runs: Runs) -> dict[str, dict[str, Sequence[str]]]:
        """The variants that must have learnt, by quantity and measure.

        A shape may be too small for the task, and that is an answer; one that cannot even name
        masked tokens has collapsed.
        """
        by_axis = runs.table.groupby("axis")["variant"].unique()
        layers, heads, widths = ([BASE, *by_axis.get(axis, [])] for axis in AXES)
        axes = {"layers_over_heads": [*layers, *heads], "width_gain": widths}
        found: dict[str, dict[str, Sequence[str]]] = {}
        for name, variants in axes.items():
            found[f"{name}_mlm"] = {"mlm_accuracy": variants}
            found[f"{name}_task"] = {"mlm_accuracy": variants, "task_score": [BASE]}
        for name, pair in _CONTRASTS.items():
            found[f"{name}_mlm"] = {"mlm_accuracy": pair}
            found[f"{name}_task"] = {"task_score": pair}
        found["normalisation_gain"] = {"task_score": [BASE]}
        found["stacking_time_saved"] = {"mlm_accuracy": _CONTRASTS["stacking_gain"]}
        return found

    def _saved(self, base: Curve, stacked: Curve, cost: float) -> dict[str, float]:
        """Time and operations to reach the loss at which the base ended, as saved shares.

        `cost` is that of a shallow update as a share of a whole one's.
        """
        target = float(base.loss[-1])
        step, seconds = stacked.reaches(target)
        shallow = float(np.minimum(step, self.stack_share * self.updates))
        return {
            "target": target,
            "time_saved": 1 - seconds / float(base.seconds[-1]),
            "flops_saved": 1 - (step - shallow * (1 - cost)) / self.updates,
        }


def _evidence(runs: Runs, *, stacking: pd.DataFrame | None) -> dict[str, Estimate | None]:
    """All that claims may ask, at the level of the runs."""
    found = {**_gains(runs, "mlm_accuracy", "mlm"), **_gains(runs, "task_score", "task")}
    if "task_normalised" in runs.table:
        normalised, fresh = (runs.by_seed(n)[BASE] for n in ("task_normalised", "task_score"))
        within = runs.differences_within("task_score")
        found["normalisation_gain"] = runs.over_seeds(normalised - fresh, within)
    if stacking is not None:
        found["stacking_time_saved"] = runs.over_seeds(stacking["time_saved"], (-math.inf, 1.0))
    return found


def _axis(shape: Shape3, base: Shape3) -> str:
    """The one axis in which the shape differs from the base; none where it is not one."""
    changed = [axis for axis in AXES if getattr(shape, axis) != getattr(base, axis)]
    return changed[0] if len(changed) == 1 else ""


def _gains(runs: Runs, measure: str, ending: str) -> dict[str, Estimate | None]:
    """What layers, heads, width and other ways to train do to one measure."""
    return {
        f"layers_over_heads_{ending}": _layers_over_heads(runs, measure),
        f"width_gain_{ending}": _width_gain(runs, measure),
        **runs.contrasts(measure, _CONTRASTS, ending=f"_{ending}"),
    }


def _along(runs: Runs, axis: str, measure: str) -> pd.DataFrame:
    """Seeds × values of one axis, through the base; the base itself is one of them."""
    on = (runs.table["axis"] == axis) | (runs.table["variant"] == BASE)
    return runs.table[on].pivot(index="seed", columns=f"asked_{axis}", values=measure)


def _layers_over_heads(runs: Runs, measure: str) -> Estimate | None:
    """How much more scores spread over numbers of layers than over numbers of heads."""
    layers, heads = (_along(runs, axis, measure) for axis in ("layers", "heads"))
    if min(layers.shape[1], heads.shape[1]) < 2:
        return None
    over_layers, over_heads = (t.std(axis=1, ddof=1, skipna=False) for t in (layers, heads))
    return runs.over_seeds(over_layers - over_heads)


def _width_gain(runs: Runs, measure: str) -> Estimate | None:
    """What doubling the width adds, by the slope over widths."""
    table = _along(runs, "hidden", measure)
    if table.shape[1] < 2:
        return None
    x = np.log2(table.columns.to_numpy(dtype=float))
    x = x - x.mean()
    return runs.over_seeds(table.to_numpy() @ x / (x @ x))


def _curves(measured: Mapping[str, xr.Dataset], variant: str) -> list[Curve]:
    """Of all runs of a variant, by seed."""
    seeds = sorted(seed for name, seed in map(split_part, measured) if name == variant)
    parts = [measured[f"{variant}-seed-{seed}"] for seed in seeds]
    return [Curve(*(p[f"curve_{kind}"].to_numpy() for kind in Curve._fields)) for p in parts]
