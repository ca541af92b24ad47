"""Small models that are pre-trained on equal terms: the recipe, the text, and what they are worth.

The model that is given lends its vocabulary only, the corpus is the text; every part trains a
fresh model, judges it and throws it away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from bertology.metrics import find_metric
from bertology.parameters import parameter
from bertology.results.answers import NOTHING_SURE, largest_row, of_row, points
from bertology.results.drawing import Drawing
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.trials import (
    Reach,
    Reference,
    Runs,
    Trials,
    TrialsResult,
    split_part,
)
from bertology.studies.study import Needs
from bertology.train.pretrain.cost import TRIAL_MEASURES

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import xarray as xr
    from numpy.typing import NDArray

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.pretrain.config import Pretraining
    from bertology.train.pretrain.shards import Shards
    from bertology.train.pretrain.trial import Trial, Tuning

    Found = Mapping[str, float | tuple[str, NDArray[np.float64]]]

NONE = "none"
NOT_LEARNT = "not judged: {} does not surely beat a constant answer in {}"
_COMPILED = 2000  # updates from which on compiling on a GPU pays


class PretrainingTrialsResult(TrialsResult):
    """Runs by variant and seed (table `runs`), and their means (the first table).

    The first table has one row for each variant and measure: the mean over seeds with Student's
    interval, and the difference to the reference, paired by seed; `p_adjusted` is corrected (Holm)
    for all variants.
    """

    @property
    def answer(self) -> str:
        """The variant whose score surely differs most from the reference."""
        table, reference = self.table(), str(self.facts["reference"])
        variant, measure = table.columns[:2]
        rows = table[(table[variant] != reference) & table["difference"].notna()]
        for name in ("task_score", "mlm_accuracy"):
            if (rows[measure] == name).any():
                return self._largest(rows[rows[measure] == name], TRIAL_MEASURES[name])
        return f"{NOTHING_SURE}: no variant was compared with {reference}."

    def _largest(self, rows: pd.DataFrame, measured: str) -> str:
        """The largest difference, among sure ones if there are any; bounds are for all variants."""
        level, seeds = float(self.facts["level"]), int(self.facts["seeds"])
        sure = rows[rows["p_adjusted"] < 1 - level]
        among = sure if len(sure) else rows
        row = largest_row(among, "difference", size=True)
        columns = ("difference", "difference_low", "difference_high")
        found = of_row(row, columns, n=seeds, level=level)
        if not math.isnan(found.low):
            found = found.at_level(1 - (1 - level) / len(rows))
        what = (
            f"{row.iloc[0]} differs most from {self.facts['reference']} by the "
            f"{measured.removesuffix(' (%)')}, by {points(found)} over {seeds} seeds"
        )
        return (
            f"Surely: {what}." if len(sure) else f"{NOTHING_SURE} of {len(rows)} variants: {what}."
        )

    def headline(self) -> str:
        """What all differences are to."""
        facts, runs = self.facts, self.tables["runs"]
        own = runs[runs.iloc[:, 0] == facts["reference"]]
        accuracy = number_text(100 * own["mlm_accuracy"].mean(), ".1f")
        return (
            f"{facts['reference']}: masked-token accuracy {accuracy} % "
            f"over {len(own)} seeds; task {facts['task']}, pairs {facts['pairs']}"
        )

    def of_all(self, title: str, *, rows: str) -> Drawing:
        """All variants by all measures; `rows` says what a row is."""
        reference = str(self.facts["reference"])
        return self.dots(
            next(iter(self.tables)),
            title,
            TRIAL_MEASURES,
            f"One row for each {rows}. One panel for each thing that the trained model is judged "
            "by: the loss of masked tokens in nats (less is better), and shares of right answers "
            "in per cent (more is better). Dots are means over seeds with their intervals; the "
            f"line is {reference}, to which the others are compared.",
            about=f"trained on {self.provenance.corpus_name}",
            reference=reference,
        )


@dataclass(frozen=True)
class PretrainingTrials(Trials):
    """The parameters that all of them share, and what is done in each run.

    A subclass says which variants there are, which of them is the `reference`, and how each is
    trained (`recipe`).
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}))
    trains_models: ClassVar[bool] = True
    reference: ClassVar[str] = "base"
    told: ClassVar[Mapping[str, str]] = TRIAL_MEASURES  # what the tables tell of all runs

    layers: int = parameter(4, "Layers of the model, where they are not varied.", minimum=1)
    heads: int = parameter(4, "Heads of each layer, where they are not varied.", minimum=1)
    hidden: int = parameter(128, "Width of the model, where it is not varied.", minimum=1)
    updates: int = parameter(2000, "Updates of the weights in each run.", minimum=1)
    update_tokens: int = parameter(4096, "Tokens of one update.", minimum=8)
    length: int = parameter(64, "Tokens of a row.", minimum=8)
    learning_rate: float = parameter(1e-3, "The highest learning rate.", minimum=1e-9)
    dropout: float = parameter(0.1, "Dropout while training.", minimum=0.0, maximum=0.9)
    document_size: int = parameter(8, "Examples in a row that make a document.", minimum=1)
    held_out: float = parameter(
        0.1, "Share of the documents to measure on.", minimum=0.001, maximum=0.9
    )
    pairs: str = parameter("grammar-agreement", "Corpus of minimal pairs, or none.")
    pair_examples: int = parameter(500, "At most so many pairs.", minimum=1)
    finetune: str = parameter("grammar-paraphrase", "Corpus to fine-tune on, or none.")
    finetune_examples: int = parameter(2000, "At most so many examples, in each split.", minimum=2)
    finetune_epochs: int = parameter(3, "Epochs of fine-tuning.", minimum=1)
    finetune_rate: float = parameter(3e-4, "Learning rate of fine-tuning.", minimum=1e-9)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """The vocabulary must do, and the corpora to judge by must be there."""
        from bertology.data.corpus import Field
        from bertology.data.loading import load_corpus
        from bertology.train.encoded import task_of
        from bertology.train.pretrain.trial_text import check_tokenizer

        check_tokenizer(encoder.tokenizer, encoder.name)
        if self.pairs != NONE:
            load_corpus(self.pairs, limit=1).require(Field.TEXT, Field.CONTRAST)
        if self.finetune != NONE:
            for split in ("train", "validation"):
                task_of(load_corpus(self.finetune, split=split, limit=1))

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """None: rows are made of the joined corpus, so no text of it can be too long."""
        return []

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One for each update."""
        return self.recipe(*split_part(part), vocab_size=32).steps

    # One run -----------------------------------------------------------------------------------

    def recipe(self, variant: str, seed: int, *, vocab_size: int) -> Pretraining:
        """`shared_recipe` with what the variant changes: the objective, if not overridden."""
        from bertology.train.pretrain.objectives import find_objective

        size = (self.layers, self.heads, self.hidden)
        shared = self.shared_recipe(size, seed, vocab_size=vocab_size)
        return replace(shared, stages=find_objective(variant))

    def shared_recipe(
        self, size: tuple[int, int, int], seed: int, *, vocab_size: int
    ) -> Pretraining:
        """What all variants share; `size` is layers, heads and width."""
        from bertology.train.fresh import Architecture
        from bertology.train.pretrain.config import Phase, Pretraining

        layers, heads, hidden = size
        return Pretraining(
            model=Architecture(
                layers=layers,
                heads=heads,
                hidden=hidden,
                vocab_size=vocab_size,
                max_length=self.length,
                dropout=self.dropout,
            ),
            steps=self.updates,
            batch_tokens=self.update_tokens,
            phases=(Phase(self.length),),
            learning_rate=self.learning_rate,
            compile=None if self.updates >= _COMPILED else False,
            seed=seed,
            log_every=max(1, self.updates // 50),
            evaluate_every=self.updates,
        )

    def trial(
        self, encoder: Encoder, corpus: Corpus, *, variant: str, seed: int, reach: Reach
    ) -> xr.Dataset:
        """The measures and costs of one model."""
        import xarray as xr

        from bertology.train.evaluate import baseline
        from bertology.train.pretrain.evaluate import constant_accuracy
        from bertology.train.pretrain.trial import run_trial

        recipe = self.recipe(variant, seed, vocab_size=len(encoder.tokenizer))
        task, shards = self.load_task(), self.text(encoder, corpus)
        trial = run_trial(
            recipe,
            shards,
            encoder.tokenizer,
            device=str(encoder.device),
            pairs=self.load_pairs(),
            task=task,
            progress=lambda report: reach(report.step),
        )
        more = self.more(encoder, corpus, trial, variant=variant, recipe=recipe)
        facts: dict[str, float | str] = {"mlm_baseline": constant_accuracy(shards)}
        facts |= {"baseline": math.nan, "metric": ""}
        if task is not None:
            metric, score = next(iter(baseline(task.train, task.validation).items()))
            facts |= {"baseline": float(score), "metric": metric}
        return xr.Dataset({**trial.numbers, **more}, attrs=facts)

    def more(
        self, encoder: Encoder, corpus: Corpus, trial: Trial, *, variant: str, recipe: Pretraining
    ) -> Found:
        """What else is found of one model; nothing if not overridden."""
        return {}

    def text(self, encoder: Encoder, corpus: Corpus) -> Shards:
        """The corpus as text to train on."""
        from bertology.train.pretrain.trial_text import prepare_trial_text

        return prepare_trial_text(
            encoder.tokenizer, corpus, document_size=self.document_size, held_out=self.held_out
        )

    def load_pairs(self) -> Corpus | None:
        """The minimal pairs to judge by."""
        from bertology.data.loading import load_corpus

        if self.pairs == NONE:
            return None
        return load_corpus(self.pairs, limit=self.pair_examples)

    def load_task(self) -> Tuning | None:
        """The task to fine-tune on."""
        from bertology.data.loading import load_corpus
        from bertology.train.finetune import FinetuneSettings
        from bertology.train.pretrain.trial import Tuning

        if self.finetune == NONE:
            return None
        train, validation = (
            load_corpus(self.finetune, split=split, limit=self.finetune_examples)
            for split in ("train", "validation")
        )
        settings = FinetuneSettings(epochs=self.finetune_epochs, learning_rate=self.finetune_rate)
        # Only some objectives train a pooler, so none is kept.
        return Tuning(train, validation, settings, pooler="fresh")

    # The conclusion ----------------------------------------------------------------------------

    def runs(self, measured: Mapping[str, xr.Dataset]) -> Runs:
        """All runs; shares and scores end where their metrics do."""
        runs = super().runs(measured)
        metric = str(runs.facts.get("metric", ""))
        task = find_metric(metric).within if metric else (-1.0, 1.0)
        shares = dict.fromkeys(("mlm_accuracy", "pair_accuracy"), (0.0, 1.0))
        return replace(runs, limits={**shares, "mlm_loss": (0.0, math.inf), "task_score": task})

    def judged(
        self,
        provenance: Provenance,
        runs: Runs,
        *,
        evidence: Callable[[Runs], Mapping[str, Estimate | None]],
        needs: Mapping[str, Mapping[str, Sequence[str]]],
        together: Sequence[str] = (),
        tables: Mapping[str, pd.DataFrame] | None = None,
        arrays: xr.Dataset | None = None,
    ) -> Result:
        """The result, with further tables and arrays if there are any.

        `evidence` makes all quantities of runs, at their level. `needs` says which variants a
        quantity compares, by measure: where one of them does not surely beat a constant answer in
        it, its training collapsed, and the quantity says nothing about what was to be compared.
        `together`: quantities of claims, corrected for each other.
        """
        found = runs.corrected(evidence, together)
        reasons = {name: why for name in found if (why := self._not_learnt(runs, needs[name]))}
        found = {name: e for name, e in found.items() if name not in reasons}
        return self.result(
            provenance,
            {**runs.tables(self.told, (Reference(self.reference),)), **(tables or {})},
            evidence=found,
            reasons=reasons,
            facts={
                "reference": self.reference,
                "task": self.finetune,
                "pairs": self.pairs,
                "baseline": float(runs.facts["baseline"]),
                "seeds": self.seeds,
            },
            arrays=arrays,
        )

    def _not_learnt(self, runs: Runs, compared: Mapping[str, Sequence[str]]) -> str:
        """Why variants cannot be compared by these measures; empty where they can."""
        baselines = {
            "mlm_accuracy": float(runs.facts["mlm_baseline"]),
            "pair_accuracy": 0.5,
            "task_score": float(runs.facts["baseline"]),
            "sentence_accuracy": 0.5,
        }
        for measure, variants in compared.items():
            for name in variants:
                if not runs.learnt(measure, name, baselines[measure]):
                    return NOT_LEARNT.format(name, self.told[measure].removesuffix(" (%)"))
        return ""
