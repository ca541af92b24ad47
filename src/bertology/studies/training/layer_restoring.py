"""Layer restoring: which layers of a fine-tuned model need what fine-tuning gave them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.metrics import find_metric, judged_metric
from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, points
from bertology.results.drawing import Drawing
from bertology.results.hundredths import scores_in_hundredths
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.crossed import crossed_difference, crossed_score
from bertology.studies.designs.scored_runs import ScoredRuns, answered
from bertology.studies.designs.tables import bounded
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import reaching, split_part
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.restoring import Change


WHOLE = "whole"
WAYS = ("restored", "below", "above", "half", "fresh")
"""Columns of the table of layers: what happens to the layer, or to all up to it, or from it on."""
MARGIN = 0.05  # of the claim that lower layers can be restored: what it calls no dramatic loss
_POINTS = (0.0, 0.25, 0.5, 0.75)  # how much of fine-tuning the whole encoder keeps


def third_of(layers: int) -> int:
    """How many layers a third is; at least one."""
    return max(1, layers // 3)


def asked_changes(layers: int) -> list[Change]:
    """Every change that a table asks for, each once."""
    found = [_change(way, at, layers) for way in WAYS for at in range(layers)]
    found += [change for _, change in _parts(layers)]
    return list(dict.fromkeys(found))


def _change(way: str, layer: int, layers: int) -> Change:
    from bertology.train.restoring import Change

    if way == "below":
        return Change(tuple(range(layer + 1)))
    if way == "above":
        return Change(tuple(range(layer, layers)))
    return Change((layer,), kept=0.5 if way == "half" else 0.0, fresh=way == "fresh")


def _parts(layers: int) -> list[tuple[str, Change]]:
    """Parts of a model by what they are called in tables."""
    from bertology.train.restoring import Change

    third, every = third_of(layers), tuple(range(layers))
    found = [
        ("embeddings", Change(embeddings=True)),
        ("lowest third", Change(every[:third])),
        ("middle third", Change(every[third : 2 * third])),
        ("highest third", Change(every[layers - third :])),
        ("all layers", Change(every)),
    ]
    if 3 * third > layers:
        found = [one for one in found if one[0] != "middle third"]
    return found + [
        (f"encoder, {100 * kept:.0f} % of fine-tuning", Change(every, embeddings=True, kept=kept))
        for kept in _POINTS
    ]


@dataclass(frozen=True)
class RestoredLayers:
    """Answers of the whole model and of all changed ones, by seed."""

    runs: ScoredRuns
    metric: str
    moved: NDArray[np.float64]
    """(layers,): how far fine-tuning moved the weights."""

    @property
    def count(self) -> int:
        """How many layers there are."""
        return self.moved.size

    @property
    def third(self) -> int:
        """How many layers a third is."""
        return third_of(self.count)

    def _loss(self, change: Change, tests: int = 1) -> Estimate:
        """With bounds that hold for so many tests together (Bonferroni)."""
        runs = replace(self.runs, level=1 - (1 - self.runs.level) / tests)
        found = runs.difference(WHOLE, change.name, self.metric, in_seeds=True)
        assert found is not None
        return found

    def gain(self, *, classes: bool) -> Estimate:
        """How much better the whole models are than a constant answer, over seeds and examples.

        It is their mean that counts: to ask it of every single run is to ask more, the more runs
        there are.
        """
        metric, own = find_metric(self.metric), self.runs.statistics(WHOLE, self.metric)
        if not classes or self.metric == "matthews":  # a constant answer is worth 0
            return crossed_score(metric, own, level=self.runs.level)
        kinds, counts = np.unique(self.runs.labels, return_counts=True)
        constant = np.full(len(self.runs.labels), kinds[counts.argmax()])
        other = metric.statistics(constant, self.runs.labels)[None]
        return crossed_difference(metric, own, other, level=self.runs.level)

    def unjudged(self, *, classes: bool) -> str | None:
        """Why nothing can be said of losses; None if something can.

        A model that collapsed has nothing to lose, and one that has hardly more than the margin
        could not lose as much as would make a claim fail: it would hold emptily.
        """
        collapsed, gain = self.runs.collapsed(WHOLE), self.gain(classes=classes)
        if collapsed.any():
            how_many = f"{int(collapsed.sum())} of {collapsed.size}"
            return f"{how_many} models collapsed, and have nothing to lose"
        if gain.low > MARGIN:
            return None
        return (
            f"the whole models are not surely more than {100 * MARGIN:.0f} points better than a "
            f"constant answer ({points(gain)}), so that there is too little to lose"
        )

    def evidence(self) -> dict[str, Estimate | None]:
        """What claims are judged on."""
        parts = dict(_parts(self.count))
        lower, upper = parts["lowest third"], parts["highest third"]
        return {
            "lower_restored_loss": self._loss(lower),
            "upper_restored_loss": self._loss(upper),
            "upper_over_lower_loss": self.runs.difference(
                lower.name, upper.name, self.metric, in_seeds=True
            ),
            "embeddings_restored_loss": self._loss(parts["embeddings"]),
        }

    def layers(self) -> pd.DataFrame:
        """What each way loses in each layer; bounds hold for all layers of a way together."""
        import pandas as pd

        rows = []
        for layer in range(self.count):
            row: dict[str, float] = {"layer": layer}
            for way in WAYS:
                found = self._loss(_change(way, layer, self.count), self.count)
                row |= bounded(way, found)
                if way == "restored":
                    row["sure"] = bool(found.low > 0 or found.high < 0)
            rows.append(row | {"moved": float(self.moved[layer])})
        return pd.DataFrame(rows)

    def parts(self) -> pd.DataFrame:
        """Scores and losses of parts, the whole model first."""
        import pandas as pd

        whole = self.runs.score(WHOLE, self.metric)
        rows = [_row("whole model", whole, None)]
        for name, change in _parts(self.count):
            rows.append(_row(name, self.runs.score(change.name, self.metric), self._loss(change)))
        return pd.DataFrame(rows)


def _row(name: str, score: Estimate, loss: Estimate | None) -> dict[str, object]:
    return {"set_back": name, **bounded("score", score), **bounded("loss", loss)}


_TITLES = {
    "restored": "Loss with the layer set back",
    "below": "Loss with all layers up to it set back",
    "above": "Loss with all layers from it on set back",
    "half": "Loss with the layer half-way back",
    "fresh": "Loss with the layer drawn anew",
}
_READINGS = {
    "restored": "High: the task needs what fine-tuning changed in this layer.",
    "below": "Where it rises is where fine-tuning begins to be needed.",
    "above": "Where it falls to 0 is where fine-tuning of the layers above is not needed.",
    "half": "Low: the first half of the way is not needed, or the model bears with less.",
    "fresh": "High: the task needs what pre-training and fine-tuning put into this layer.",
}


class LayerRestoringResult(Result):
    """What is lost by layers that are set back (table `layers`), and by parts (table `parts`).

    `layers` has a row for each layer: the loss of the score with it set back (`restored`), with all
    layers up to it (`below`) or from it on (`above`), with it half-way (`half`) or drawn anew
    (`fresh`), with bounds that hold for all layers together; `sure`: `restored` is surely not 0;
    `moved`: how far fine-tuning moved its weights, as a share of their length. `parts` has thirds
    of the layers, the embeddings, and the encoder between before and after.
    """

    lead: ClassVar[int] = 7
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "layers": dict.fromkeys(_TITLES, "points") | {"moved": "%"},
        "parts": {"score": "× 100", "loss": "points"},
    }

    def in_units(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Scores times a hundred, as in figures."""
        return scores_in_hundredths(table) if name == "runs" else super().in_units(name, table)

    @property
    def answer(self) -> str:
        """What the lowest and the highest third cost."""
        found, facts = self.evidence(), self.facts
        if "lower_restored_loss" not in found:
            why = next(iter(self.reasons().values()), "not judged: nothing was set back")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        third = int(facts["third"])
        which = "layer" if third == 1 else f"{third} layers"
        return (
            f"Setting back the lowest {which} loses {points(found['lower_restored_loss'])} of "
            f"{facts['judged']}, the highest {which} {points(found['upper_restored_loss'])}; the "
            f"difference is {points(found['upper_over_lower_loss'])}."
        )

    def headline(self) -> str:
        """The task, and what the whole model scores."""
        facts, whole = self.facts, self.tables["parts"].iloc[0]
        return (
            f"{facts['task']}: {facts['train_size']} examples to learn from, {facts['examples']} "
            f"to score, {facts['seeds']} seeds; {facts['judged']} of the whole model "
            f"{100 * float(whole['score']):.1f}"
        )

    def measures(self) -> Sequence[Measure]:
        """Losses by layer."""
        table = self.tables["layers"]
        if len(table) < 2:
            return []
        bounded = table["restored_low"].notna().all()
        unit = f"points of {self.facts['judged']}"
        found = [
            Measure.of_column(
                table,
                way,
                name=f"{way}-loss",
                title=title,
                unit=unit,
                bounds=(f"{way}_low", f"{way}_high") if bounded else None,
                sure="sure" if bounded and way == "restored" else None,
                scale=100.0,
                middle=0.0,
                reading=_READINGS[way],
            )
            for way, title in _TITLES.items()
        ]
        moved = Measure.of_column(
            table,
            "moved",
            name="weights-moved",
            title="How far fine-tuning moved the weights",
            unit="% of their length",
            scale=100.0,
            reading="High: the weights of this layer changed much in fine-tuning.",
        )
        return [*found, moved]

    def drawings(self) -> Sequence[Drawing]:
        """By layer, cumulatively, and the other ways."""
        by_name = {m.name.removesuffix("-loss"): m for m in self.measures()}
        if not by_name:
            return []
        shaded = "intervals over seeds and examples, for all layers together"
        return [
            drawings.bars(by_name["restored"], self.about, name="layers"),
            drawings.profile(
                "cumulative",
                [by_name["below"], by_name["above"]],
                self.about,
                title="Loss with layers set back from below or from above",
                reading="Where fine-tuning is needed in upper layers only, the first line stays "
                "low until late, and the second is high nearly everywhere.",
                labels=["all up to the layer", "all from the layer on"],
                shaded=shaded,
            ),
            drawings.profile(
                "ways",
                [by_name["restored"], by_name["half"], by_name["fresh"]],
                self.about,
                title="Loss with a layer set back, half-way back, or drawn anew",
                reading="A layer drawn anew has lost pre-training too.",
                labels=["set back", "half-way", "drawn anew"],
                shaded=shaded,
            ),
            drawings.bars(by_name["weights-moved"], self.about, name="moved"),
        ]


_TRAINED = 0.7  # of the work, about


@dataclass(frozen=True)
class LayerRestoring(TaskTrials):
    """Which layers of a fine-tuned model need what fine-tuning gave them?

    Method: the model is fine-tuned once for each seed. Then layers are set back to the weights that
    they had before, in memory: one by one; all layers from the lowest up to one; all from one up to
    the highest; the embeddings; and thirds of the layers. What is set back is compared with the
    whole fine-tuned model on the same examples, paired by seed; its loss has an interval over
    seeds and examples together, in tables of layers wide enough for all layers. Beside it stand
    layers that are drawn anew (what a layer is worth at all), layers half-way between before and
    after, and the whole encoder at four points of that way. The pooler and the classifier stay
    fine-tuned. How far fine-tuning moved the weights of a layer is told beside them.

    Claims rest on accuracy (correlation for regressions and CoLA), and on the lowest and the
    highest third of the layers. They are judged where the whole models, over seeds and examples,
    are surely more than five points better than a constant answer, and none collapsed: who has less
    to lose than the margin of a claim cannot lose dramatically.

    Source: A Primer in BERTology (TACL 2020), section 5.2; Hao et al. 2019. Limits: layers above
    were trained with what is set back below them, and get states that they never saw; so a loss
    tells that a layer's change is used, and no loss does not tell that it learnt nothing. Upper
    layers are nearer to the classifier, which stays.
    """

    trains_models: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = LayerRestoringResult
    column: ClassVar[str] = "change"
    version: ClassVar[int] = 5  # bounds allow for rare answers that were not seen

    @property
    def variants(self) -> Sequence[str]:
        """One; runs differ in their seed only."""
        return ["fine-tuned"]

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Layers must have weights of their own, and there must be no others."""
        from bertology.model.weight_depths import weight_depths

        super().check(encoder, corpus)
        weight_depths(encoder)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Fine-tune one model, and score it with every change."""
        from bertology.train.encoded import encode_once, task_of
        from bertology.train.evaluate import predict
        from bertology.train.fit import row_limit
        from bertology.train.iterative_pruning import tuned_encoder
        from bertology.train.restoring import Restorer
        from bertology.train.starts import STARTS
        from bertology.train.tuning import TuningJob

        _, seed = split_part(part)
        train, start, reach = self.load_train(corpus), STARTS["pretrained"], reaching(context)
        job = TuningJob(
            encoder, train, corpus, start, self.settings(start, encoder.shape.hidden, seed)
        )
        tuned = tuned_encoder(
            job,
            context.trained,
            progress=lambda step: reach(int(_TRAINED * BARS * step.done / step.total)),
        )
        model, task, tokenizer = tuned.model, task_of(corpus), encoder.tokenizer
        unseen = encode_once(corpus, tokenizer, row_limit(model, tokenizer, self.max_length))
        said: dict[str, Any] = {WHOLE: predict(model, unseen, task)}
        restorer, changes = Restorer(encoder, tuned), asked_changes(encoder.shape.layers)
        for at, change in enumerate(changes, 1):
            with restorer.changed(change, seed=seed):
                said[change.name] = predict(model, unseen, task)
            reach(int(BARS * (_TRAINED + (1 - _TRAINED) * at / len(changes))))
        reach(BARS)
        return answered(said, corpus, train, classes=int(task.kind != "regression")).assign(
            moved=("layer", restorer.moved())
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Losses by layer and by part, with intervals."""
        same_training_data(measured)
        facts = next(iter(measured.values())).attrs
        metrics = str(facts["metrics"]).split()
        judged = judged_metric(metrics)
        runs = ScoredRuns.read(measured, self.level)
        moved = np.mean([part["moved"].to_numpy() for part in measured.values()], axis=0)
        found = RestoredLayers(runs, judged, moved)
        collapsed = int(runs.collapsed(WHOLE).sum())
        evidence, reasons = found.evidence(), {}
        if why := found.unjudged(classes=bool(facts["classes"])):
            evidence, reasons = {}, dict.fromkeys(evidence, f"not judged: {why}")
        return self.result(
            provenance,
            {
                "layers": found.layers(),
                "parts": found.parts(),
                "runs": runs.runs(self.column, metrics),
            },
            evidence=evidence,
            reasons=reasons,
            facts={
                "task": facts["task"],
                "judged": judged,
                "train_size": int(facts["train_size"]),
                "examples": runs.labels.size,
                "seeds": len(runs.predictions[WHOLE]),
                "epochs": self.epochs,
                "third": found.third,
                "collapsed": collapsed,
            },
        )
