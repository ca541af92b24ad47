"""Architecture sweep: layers, heads, width, large batches, stacking, and normalised embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.errors import ParameterError, UnknownNameError
from bertology.parameters import parameter
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.studies.designs.trials import Trials, TrialsResult, heard, runs_table
from bertology.studies.study import Context
from bertology.train.pretrain.cost import body_flops, body_parameters, matched_width

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.pretrain.config import Pretraining

__all__ = ["ArchitectureSweep", "ArchitectureSweepResult", "Shape3"]

BASE = "base"
BATCH, STACKED, NORMALISED = "large-batch", "stacked", "normalised"
EXTRAS = (BATCH, STACKED, NORMALISED)
# The parameter that varies an axis, and how the quantities open that need it.
_AXES = {
    "vary_layers": "layers_over_heads",
    "vary_heads": "layers_over_heads",
    "vary_hidden": "width",
}
_EVALUATIONS = 25  # of the runs whose progress is compared


@dataclass(frozen=True)
class Shape3:
    """Layers, heads and width."""

    layers: int
    heads: int
    hidden: int

    @property
    def name(self) -> str:
        """`4x8x128`."""
        return f"{self.layers}x{self.heads}x{self.hidden}"


class ArchitectureSweepResult(TrialsResult):
    """Models of several shapes, and several ways to train the same shape, paired by seed.

    Tables: `variants` (one row for each variant and measure), `runs` (with `layers`, `heads` and
    `hidden` as they were), `stacking` (time and operations that stacking saved, by seed). Arrays:
    held-out loss over time of the base and the stacked model.
    """

    def evidence(self) -> dict[str, Estimate]:
        """Spreads, gains and savings; those of fine-tuned scores only where there are any."""
        found: dict[str, Estimate | None] = {}
        for ending, measure in (("mlm", "mlm_accuracy"), ("task", "task_score")):
            if ending == "task" and not self.informed:
                continue
            found[f"layers_over_heads_{ending}"] = self._layers_over_heads(measure)
            found[f"width_gain_{ending}"] = self._width_gain(measure)
            scores = self.by_seed(measure)
            for variant, quantity in ((BATCH, "large_batch"), (STACKED, "stacking")):
                found[f"{quantity}_gain_{ending}"] = self.contrast(scores, variant, BASE)
        if self.informed and "task_fresh" in self.tables["runs"]:
            normalised, fresh = (
                self.by_seed(measure)[BASE] for measure in ("task_normalised", "task_fresh")
            )
            found["normalisation_gain"] = self.over_seeds(normalised - fresh)
        if "stacking" in self.tables:
            found["stacking_time_saved"] = self.over_seeds(self.tables["stacking"]["time_saved"])
        return {name: estimate for name, estimate in found.items() if estimate is not None}

    def _along(self, axis: str, measure: str) -> pd.DataFrame:
        """Seeds × values of one axis, through the base; the base itself is one of them."""
        runs = self.tables["runs"]
        on = (runs["axis"] == axis) | (runs["variant"] == BASE)
        return runs[on].pivot(index="seed", columns=f"asked_{axis}", values=measure)

    def _layers_over_heads(self, measure: str) -> Estimate | None:
        """How much more scores spread over numbers of layers than over numbers of heads."""
        spreads = []
        for axis in ("layers", "heads"):
            table = self._along(axis, measure)
            if table.shape[1] < 2:
                return None
            spreads.append(table.std(axis=1, ddof=1, skipna=False).to_numpy())
        return self.over_seeds(spreads[0] - spreads[1])

    def _width_gain(self, measure: str) -> Estimate | None:
        """What doubling the width adds, by the slope over widths."""
        table = self._along("hidden", measure)
        if table.shape[1] < 2:
            return None
        x = np.log2(table.columns.to_numpy(dtype=float))
        x = x - x.mean()
        return self.over_seeds(table.to_numpy() @ x / (x @ x))

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """All variants by all measures; and the loss over time with and without stacking."""
        drawings: dict[str, Callable[[], Figure]] = {
            "variants": lambda: self._dots("Shapes and ways to train them")
        }
        if "stacking" in self.tables:
            drawings["stacking"] = self._draw_stacking
        return drawings

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        texts = {
            "variants": "One row for each shape (layers × heads × width) or way to train it. "
            f"{self.dots_caption}",
            "stacking": "Seconds of training to the right, upwards the loss on held-out hidden "
            "tokens, in nats; one line for each seed. The sooner the stacked model's lines come "
            "down to where the base ends, the more time stacking saves.",
        }
        return {name: texts[name] for name in self.figures()}

    def _draw_stacking(self) -> Figure:
        from bertology.report.figures import Line, lines

        drawn = []
        for name in (BASE, STACKED):
            for loss, spent in zip(
                self.arrays[f"{name}_loss"].to_numpy(),
                self.arrays[f"{name}_seconds"].to_numpy(),
                strict=True,
            ):
                drawn.append(Line(name, spent, loss))
        return lines(
            drawn,
            title="Progressive stacking: shallow first, then copied",
            xlabel="seconds of training",
            ylabel="held-out loss of hidden tokens (nats)",
            note="One line for each seed.",
        )


@dataclass(frozen=True)
class ArchitectureSweep(Trials[ArchitectureSweepResult]):
    """Do layers, heads or width matter most, and what do three tricks of training gain?

    Method: from a base model one of layers, heads and width is varied at a time, or all of them
    with `grid`. With `match` the width of a variant is chosen so that its layers have as many
    parameters, or take as many operations for a token, as the base's of the asked width, as nearly
    as its number of heads allows. Three variants train the base otherwise: `large-batch` sees the
    same tokens in fewer, larger batches, with a rate that grows by the root of their size;
    `stacked` trains the lower half of the layers first and copies them (Gong et al. 2019);
    `normalised` standardises the last [CLS] embedding by the training texts before a fresh pooler
    in fine-tuning (Zhou et al. 2019), compared with a fresh pooler alone. Every model is judged as
    in `pretraining-objectives`. The time that stacking saves is that to reach the held-out loss at
    which the base of the same seed ended.

    Source: A Primer in BERTology (2020), section 6.2. Limits: small models on little text say
    little about large ones. Seconds are of the machine at hand: run parts that are compared by time
    alone and on the same one (`flops_saved` does not depend on it). A stacked run that never
    reaches the loss has no saving. Student's intervals over few seeds are wide.
    """

    version: ClassVar[int] = 1
    result_type: ClassVar[type[Result]] = ArchitectureSweepResult

    layers: int = parameter(4, "Layers of the base.", minimum=1)
    heads: int = parameter(4, "Heads of the base.", minimum=1)
    hidden: int = parameter(128, "Width of the base.", minimum=1)
    vary_layers: tuple[int, ...] = parameter((1, 2, 8), "Other numbers of layers.")
    vary_heads: tuple[int, ...] = parameter((1, 2, 8), "Other numbers of heads.")
    vary_hidden: tuple[int, ...] = parameter((64, 256), "Other widths.")
    grid: bool = parameter(False, "All combinations, not one axis at a time.")
    match: str = parameter(
        "none",
        "What variants of layers and heads have in common with the base, by their width.",
        choices=("none", "parameters", "flops"),
    )
    extras: tuple[str, ...] = parameter(EXTRAS, "Other ways to train the base.")
    batch_factor: int = parameter(4, "How much larger a large batch is.", minimum=2)
    stack_share: float = parameter(
        0.5, "Share of the updates with half of the layers.", minimum=0.01, maximum=0.99
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.extras:
            if name not in EXTRAS:
                raise UnknownNameError("way to train", name, EXTRAS)
        for name in ("vary_layers", "vary_heads", "vary_hidden"):
            values = getattr(self, name)
            if any(v < 1 for v in values):
                raise ParameterError(name, "ArchitectureSweep", "be at least 1 each", list(values))
        if STACKED in self.extras and self.layers % 2:
            raise ParameterError(
                "layers", "ArchitectureSweep", "be even to be stacked", self.layers
            )
        if self.match == "none":
            for shape in self.shapes().values():
                if shape.hidden % shape.heads:
                    must = f"be a multiple of heads ({shape.heads}) where nothing is matched"
                    raise ParameterError("hidden", "ArchitectureSweep", must, shape.hidden)

    @classmethod
    def enough_for(cls, quantities: Sequence[str]) -> dict[str, Any]:
        """The axes and the ways to train that the quantities are about."""
        found: dict[str, Any] = {}
        for name, opening in _AXES.items():
            if not any(q.startswith(opening) for q in quantities):
                found[name] = ()
        ways = {BATCH: "large_batch", STACKED: "stacking", NORMALISED: "normalisation"}
        asked = {way for way, opening in ways.items() for q in quantities if q.startswith(opening)}
        return {**found, "extras": tuple(way for way in EXTRAS if way in asked)}

    # The variants ------------------------------------------------------------------------------

    def shapes(self) -> dict[str, Shape3]:
        """The shapes that are asked for, by name; matching may still change their widths."""
        base = Shape3(self.layers, self.heads, self.hidden)
        found = {BASE: base}
        for axis in ("layers", "heads", "hidden"):
            for value in getattr(self, f"vary_{axis}"):
                if value != getattr(base, axis):
                    name = "width" if axis == "hidden" else axis
                    found[f"{name}-{value}"] = replace(base, **{axis: value})
        if self.grid:
            axes = [
                dict.fromkeys((getattr(base, a), *getattr(self, f"vary_{a}")))
                for a in ("layers", "heads", "hidden")
            ]
            named = set(found.values())
            combined = (Shape3(*values) for values in product(*axes))
            found |= {shape.name: shape for shape in combined if shape not in named}
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
        return replace(shape, hidden=width)

    @property
    def variants(self) -> Sequence[str]:
        """The shapes and the ways to train; normalisation only differs in the base's tuning."""
        return [*self.shapes(), *(name for name in self.extras if name != NORMALISED)]

    def recipe(self, variant: str, seed: int, *, vocab_size: int) -> Pretraining:
        """The base's recipe with what the variant changes."""
        from bertology.train.fresh import Architecture
        from bertology.train.pretrain.config import Phase

        shape = self.matched(self.shapes().get(variant, self.shapes()[BASE]))
        size = Architecture(
            layers=shape.layers,
            heads=shape.heads,
            hidden=shape.hidden,
            vocab_size=vocab_size,
            max_length=self.length,
            dropout=self.dropout,
        )
        more: dict[str, Any] = {}
        if variant == BATCH:
            fewer = max(1, round(self.updates / self.batch_factor))
            more = {
                "steps": fewer,
                "batch_tokens": self.update_tokens * self.batch_factor,
                "learning_rate": self.learning_rate * math.sqrt(self.batch_factor),
                "log_every": max(1, fewer // 50),
                "evaluate_every": fewer,
            }
        if variant == STACKED:
            half = Phase(self.length, self.stack_share, self.layers // 2)
            more = {"phases": (half, Phase(self.length, 1 - self.stack_share))}
        if variant in (BASE, STACKED):
            more["evaluate_every"] = max(1, self.updates // _EVALUATIONS)
        return self.training(model=size, seed=seed, **more)

    # The work ----------------------------------------------------------------------------------

    def trial(
        self, encoder: Encoder, corpus: Corpus, variant: str, seed: int, context: Context
    ) -> dict[str, Any]:
        """The measures, the shape, the costs and how the held-out loss went down."""
        from bertology.train.pretrain.loop import pretrain
        from bertology.train.pretrain.trial import costs, measure_model, task_score

        recipe = self.recipe(variant, seed, vocab_size=len(encoder.tokenizer))
        shards, task = self.text(encoder, corpus), self.load_task()
        device = str(encoder.device)
        trained = pretrain(
            recipe, shards, encoder.tokenizer, device=device, progress=heard(context)
        )
        model = trained.model.to(encoder.device)
        found: dict[str, Any] = dict(
            measure_model(
                model, recipe, shards, encoder.tokenizer, pairs=self.load_pairs(), task=task
            )
        )
        if variant == BASE and NORMALISED in self.extras and task is not None:
            for pooler in ("fresh", "normalised"):
                tuned = task._replace(pooler=pooler)
                found[f"task_{pooler}"] = task_score(model, encoder.tokenizer, tuned, seed=seed)
        size = recipe.model
        found |= {"seconds": trained.seconds, **costs(model, recipe)}
        found |= {"layers": size.layers, "heads": size.heads, "hidden": size.hidden}
        return found | _curve(trained.log)

    # The conclusion ----------------------------------------------------------------------------

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> ArchitectureSweepResult:
        """Means, differences to the base, and what stacking saved."""
        import pandas as pd
        import xarray as xr

        runs = runs_table(measured, "variant")
        asked = self.shapes()
        for axis in ("layers", "heads", "hidden"):
            runs[f"asked_{axis}"] = [
                getattr(asked.get(v, asked[BASE]), axis) for v in runs["variant"]
            ]
        runs["axis"] = [_axis(v) for v in runs["variant"]]
        tables = self.tables(runs, "variant", BASE, first="variants")
        arrays = xr.Dataset(attrs=self.facts(measured))
        if STACKED in self.extras:
            stages = {name: _curves(measured, name) for name in (BASE, STACKED)}
            for name, curves in stages.items():
                for i, kind in enumerate(("step", "seconds", "loss")):
                    dims = ("seed", f"{name}_evaluation")
                    arrays[f"{name}_{kind}"] = dims, np.stack([c[i] for c in curves])
            rows = [
                {"seed": k} | self._saved(base, stacked, self._shallow_cost(runs))
                for k, (base, stacked) in enumerate(zip(*stages.values(), strict=True))
            ]
            tables["stacking"] = pd.DataFrame(rows)
        return ArchitectureSweepResult(provenance, tables, arrays)

    def _shallow_cost(self, runs: pd.DataFrame) -> float:
        """Operations of an update with half of the layers, as a share of a whole one's.

        More than half: the output layer is the same.
        """
        whole, mean = (
            float(runs.loc[runs["variant"] == name, "flops_per_token"].iloc[0])
            for name in (BASE, STACKED)
        )
        return 1 - (1 - mean / whole) / self.stack_share

    def _saved(self, base: Curve, stacked: Curve, cost: float) -> dict[str, float]:
        """Time and operations to reach the loss at which the base ended, as saved shares.

        `cost` is that of a shallow update as a share of a whole one's.
        """
        _, seconds, loss = base
        reached = _crossing(stacked[2], float(loss[-1]))
        if math.isnan(reached):
            return {"target": float(loss[-1]), "time_saved": math.nan, "flops_saved": math.nan}
        at = np.arange(len(stacked[0]))
        step, spent = (float(np.interp(reached, at, c)) for c in stacked[:2])
        shallow = min(step, self.stack_share * self.updates)
        work = (step - shallow * (1 - cost)) / self.updates
        return {
            "target": float(loss[-1]),
            "time_saved": 1 - spent / float(seconds[-1]),
            "flops_saved": 1 - work,
        }


Curve = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def _curve(log: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Step, seconds and held-out loss wherever a run was evaluated."""
    seen = [(e["step"], e["seconds"], e["scores"]["mlm_loss"]) for e in log if e.get("scores")]
    columns = np.array(seen, dtype=np.float64).T
    names = ("curve_step", "curve_seconds", "curve_loss")
    return {name: ("evaluation", column) for name, column in zip(names, columns, strict=True)}


def _curves(measured: Mapping[str, xr.Dataset], variant: str) -> list[Curve]:
    parts = [p for p in measured.values() if p.attrs["variant"] == variant]
    parts.sort(key=lambda p: int(p.attrs["seed"]))
    names = ("curve_step", "curve_seconds", "curve_loss")
    return [tuple(p[n].to_numpy() for n in names) for p in parts]  # type: ignore[misc]


def _crossing(loss: np.ndarray[Any, Any], target: float) -> float:
    """Where, between evaluations, the loss first comes down to the target; NaN if nowhere."""
    under = np.flatnonzero(loss <= target)
    if not under.size:
        return math.nan
    i = int(under[0])
    if i == 0:
        return 0.0
    return i - float((target - loss[i]) / (loss[i - 1] - loss[i]))


def _axis(variant: str) -> str:
    """Which axis a variant lies on: layers, heads or hidden; none for all others."""
    name, dash, value = variant.partition("-")
    named = {"layers": "layers", "heads": "heads", "width": "hidden"}
    return named.get(name, "") if dash and value.isdigit() else ""
