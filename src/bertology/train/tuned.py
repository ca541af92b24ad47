"""What fine-tuning gave: models, one for each seed, and how sure their scores are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.metrics import find_metric
from bertology.stats import Estimate, repeated
from bertology.stats.paired import score_interval
from bertology.train.records import TrainingRecord

if TYPE_CHECKING:
    import pandas as pd

    from bertology.model.encoder import Encoder


@dataclass(frozen=True, repr=False)
class Finetuned:
    """Models that were fine-tuned on a task, one for each seed; print it for the score."""

    folders: tuple[Path, ...]
    records: tuple[TrainingRecord, ...]  # as in each folder's bertology.json
    validation: Corpus
    loading: Mapping[str, Any] = field(default_factory=dict)  # keywords of `Encoder.load`

    @property
    def folder(self) -> Path:
        """The folder of the first model."""
        return self.folders[0]

    @cached_property
    def encoder(self) -> Encoder:
        """The first model, loaded with its head."""
        from bertology.model.encoder import Encoder
        from bertology.train.encoded import head_for, learnable

        head = head_for(learnable(self.validation))
        return Encoder.load(str(self.folder), head=head, **self.loading)

    @property
    def main(self) -> str:
        """The task's main metric."""
        return next(iter(self.records[0]["scores"]))

    @cached_property
    def scores(self) -> Mapping[str, Estimate]:
        """Every metric with a 95 % interval.

        Of one model, it is over the examples of the validation data; of several, over seeds.
        """
        if len(self.records) == 1:
            return self._over_examples()
        return {
            name: repeated(
                [record["scores"][name] for record in self.records], within=find_metric(name).within
            )
            for name in self.records[0]["scores"]
        }

    def _over_examples(self) -> dict[str, Estimate]:
        import numpy as np

        from bertology.train.encoded import encode, learnable
        from bertology.train.evaluate import predict
        from bertology.train.fit import row_limit

        model, tokenizer = self.encoder.model, self.encoder.tokenizer
        longest = row_limit(model, tokenizer, self.records[0]["settings"]["max_length"])
        encoded = encode(self.validation, tokenizer, longest)
        said = predict(model, encoded, learnable(self.validation))
        right = np.asarray(encoded.targets, dtype=float)
        found = {}
        for name in self.records[0]["scores"]:
            metric = find_metric(name)
            found[name] = score_interval(metric, metric.statistics(said, right))
        return found

    @property
    def constant(self) -> Mapping[str, float]:
        """The scores of always giving the same answer."""
        return self.records[0]["baseline"]

    @property
    def learnt(self) -> bool:
        """Whether a metric is clearly better than that of always giving the same answer."""
        return not is_at_chance(self.records)

    @property
    def over(self) -> str:
        """What the intervals are over."""
        seeds, examples = len(self.records), len(self.validation)
        return f"{examples:,} examples" if seeds == 1 else f"{seeds} seeds"

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        found, record = self.scores[self.main], self.records[0]
        sure = "clearly better than" if self.learnt else "not clearly better than"
        return (
            f"{record['base']['name']} fine-tuned on {record['train']['name']} has {self.main} "
            f"{found.value:.3f} (95 % interval {found.low:.3f} to {found.high:.3f}, over "
            f"{self.over}): {sure} a constant answer ({self.constant[self.main]:.3f})."
        )

    def table(self) -> pd.DataFrame:
        """A row for each seed and epoch: the loss, and every score on the validation data."""
        import pandas as pd

        return pd.DataFrame(
            {
                "seed": record["settings"]["seed"],
                "epoch": epoch["number"],
                "kept": epoch["number"] == record["kept_epoch"],
                "loss": epoch.get("loss", math.nan),
                **epoch["scores"],
            }
            for record in self.records
            for epoch in record["history"]
        )

    def __repr__(self) -> str:
        several = f", {len(self.folders)} models" if len(self.folders) > 1 else ""
        return f"Finetuned({str(self.folder)!r}{several})"

    def __str__(self) -> str:
        where = "\n".join(f"Model: {folder}" for folder in self.folders)
        return f"{self.sentence}\n{where}"


def is_at_chance(records: Sequence[TrainingRecord]) -> bool:
    """Whether no metric, in the mean over seeds, is clearly above that of a constant answer.

    Clearly: by two standard errors of a share (or of a correlation), at their largest.
    """
    root = math.sqrt(records[0]["validation"]["size"])
    for name, constant in records[0]["baseline"].items():
        lowest, highest = find_metric(name).within
        mean = sum(r["scores"][name] for r in records) / len(records)
        if mean > min(constant + (highest - lowest) / root, (constant + highest) / 2):
            return False
    return True
