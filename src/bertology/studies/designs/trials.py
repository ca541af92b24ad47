"""What studies that pre-train small models have in common: their parameters, runs and tables.

The model that is given lends its vocabulary only, the corpus is the text; every part trains a
fresh model, judges it and throws it away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import InterruptedRunError
from bertology.parameters import parameter
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate, adjusted, paired_p, repeated
from bertology.studies.study import Context, Needs, Study

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.pretrain.config import Pretraining
    from bertology.train.pretrain.loop import StepReport
    from bertology.train.pretrain.shards import Shards
    from bertology.train.pretrain.trial import Tuning

__all__ = ["LABELS", "MEASURES", "Trials", "TrialsResult", "heard", "runs_table", "split_part"]

MEASURES = ("mlm_loss", "mlm_accuracy", "pair_accuracy", "task_score")
LABELS = {
    "mlm_loss": "held-out loss of hidden tokens (nats)",
    "mlm_accuracy": "hidden tokens told (%)",
    "pair_accuracy": "minimal pairs (%)",
    "task_score": "fine-tuned score (%)",
}
NONE = "none"
_COMPILED = 2000  # updates from which on compiling on a GPU pays

R = TypeVar("R", bound=Result)
Floats = NDArray[np.float64]


class TrialsResult(Result):
    """Runs by variant and seed (table `runs`), and their means (the first table).

    The first table has one row for each variant and measure: the mean over seeds with Student's
    interval, and the difference to the reference, paired by seed; `p_adjusted` is corrected (Holm)
    for all variants.
    """

    kind: ClassVar[str] = "variant"  # what the column of variants is called
    reference: ClassVar[str] = "base"

    def by_seed(self, measure: str) -> dict[str, Floats]:
        """One number for each seed, for each variant."""
        table = self.tables["runs"].pivot(index="seed", columns=self.kind, values=measure)
        return {str(name): table[name].to_numpy(dtype=np.float64) for name in table}

    def contrast(self, found: Mapping[str, Floats], one: str, other: str) -> Estimate | None:
        """How much higher `one` is than `other`, paired by seed; None where it was not measured."""
        if one not in found or other not in found:
            return None
        return self.over_seeds(found[one] - found[other])

    def over_seeds(self, values: Any) -> Estimate | None:
        """The mean with its interval; None where there is nothing."""
        array = np.asarray(values, dtype=np.float64)
        if not array.size or np.isnan(array).any():
            return None
        return repeated(array, float(self.arrays.attrs["level"]))

    @property
    def informed(self) -> bool:
        """Whether fine-tuned reference models may be told from a constant answer."""
        found = self.over_seeds(self.by_seed("task_score")[self.reference])
        # Without an interval no verdict will follow anyway.
        return found is not None and not found.low <= float(self.arrays.attrs["baseline"])

    def why_not(self) -> str | None:
        """Claims about fine-tuned scores are about models that have learnt their task."""
        scores = self.by_seed("task_score")[self.reference]
        if not np.isnan(scores).any() and not self.informed:
            return "not judged: the fine-tuned reference does not surely beat a constant answer"
        return None

    def headline(self) -> str:
        """What all differences are to."""
        facts = self.arrays.attrs
        measured = self.by_seed("mlm_accuracy")[self.reference]
        return (
            f"{self.reference}: {100 * measured.mean():.1f} % of hidden tokens told, over "
            f"{len(measured)} seeds; task {facts['task']}, pairs {facts['pairs']}"
        )

    @property
    def dots_caption(self) -> str:
        """What the panels of `_dots` show, but for the rows."""
        return (
            "One panel for each thing that the trained model is judged by: the loss on hidden "
            "tokens in nats (less is better), and shares of right answers in per cent (more is "
            "better). Dots are means over seeds with their intervals; the line is "
            f"{self.reference}, to which the others are compared."
        )

    def _dots(self, title: str) -> Figure:
        from bertology.report.figures import Dots, interval_dots

        table = self.table()
        panels = []
        for measure, label in LABELS.items():
            rows = table[table["measure"] == measure]
            scale = 1.0 if measure == "mlm_loss" else 100.0
            if rows["mean"].notna().any():
                bounds = (scale * rows[c].to_numpy() for c in ("mean", "low", "high"))
                panels.append(Dots(label, *bounds))
        names = list(dict.fromkeys(table[self.kind]))
        corpus = (self.provenance.corpus or {}).get("name")
        return interval_dots(
            panels,
            names,
            title=f"{title}\ntrained on {corpus}",
            reference=self.reference,
            note=f"Means over {int(self.arrays.attrs['seeds'])} seeds with "
            f"{100 * float(self.arrays.attrs['level']):.0f} % Student intervals (hollow: none). "
            "Claims rest on differences paired by seed, which are surer than these.",
        )


@dataclass(frozen=True)
class Trials(Study[R]):
    """The parameters that all of them share."""

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}))

    updates: int = parameter(2000, "Updates of the weights in each run.", minimum=1)
    update_tokens: int = parameter(4096, "Tokens of one update.", minimum=8)
    length: int = parameter(64, "Tokens of a row.", minimum=8)
    learning_rate: float = parameter(1e-3, "The highest learning rate.", minimum=1e-9)
    dropout: float = parameter(0.1, "Dropout while training.", minimum=0.0, maximum=0.9)
    seeds: int = parameter(3, "Runs of each variant; one gives no verdicts.", minimum=1)
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
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
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

    @classmethod
    def enough_for(cls, quantities: Sequence[str]) -> dict[str, Any]:
        """Parameters by which no more is trained than these quantities of the evidence rest on."""
        return {}

    @property
    def variants(self) -> Sequence[str]:
        """Names of what is compared."""
        raise NotImplementedError

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """None: rows are made of the joined corpus, so no text of it can be too long."""
        return []

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One run each."""
        return [f"{name}-seed-{k}" for k in range(self.seeds) for name in self.variants]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One for each update."""
        return self.recipe(*split_part(part), vocab_size=32).steps

    def recipe(self, variant: str, seed: int, *, vocab_size: int) -> Pretraining:
        """How the model of a part is trained."""
        raise NotImplementedError

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Train one model and judge it."""
        import xarray as xr

        try:
            found = self.trial(encoder, corpus, *split_part(part), context)
        except InterruptedRunError:
            # The session knows what is kept; a lone run does not.
            raise KeyboardInterrupt from None
        variant, seed = split_part(part)
        facts = {"variant": variant, "seed": seed, "task": self.finetune, "pairs": self.pairs}
        return xr.Dataset(found, attrs={**facts, "baseline": self._baseline()})

    def trial(
        self, encoder: Encoder, corpus: Corpus, variant: str, seed: int, context: Context
    ) -> dict[str, Any]:
        """What is found of one variant: numbers, and arrays if there are any."""
        from bertology.train.pretrain.trial import run_trial

        found: dict[str, Any] = run_trial(
            self.recipe(variant, seed, vocab_size=len(encoder.tokenizer)),
            self.text(encoder, corpus),
            encoder.tokenizer,
            device=str(encoder.device),
            pairs=self.load_pairs(),
            task=self.load_task(),
            progress=heard(context),
        )
        return found

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
        return Tuning(train, validation, settings)

    def _baseline(self) -> float:
        """The task's score of always saying the same."""
        from bertology.train.evaluate import baseline

        task = self.load_task()
        if task is None:
            return float("nan")
        return float(next(iter(baseline(task.train, task.validation).values())))

    def training(self, **more: Any) -> Pretraining:
        """A recipe with what all variants share."""
        from bertology.train.pretrain.config import Phase, Pretraining

        given: dict[str, Any] = {
            "steps": self.updates,
            "batch_tokens": self.update_tokens,
            "phases": (Phase(self.length),),
            "learning_rate": self.learning_rate,
            "compile": None if self.updates >= _COMPILED else False,
            "log_every": max(1, self.updates // 50),
            "evaluate_every": self.updates,
        }
        return Pretraining(**(given | more))

    # The conclusion ----------------------------------------------------------------------------

    def tables(
        self, runs: pd.DataFrame, kind: str, reference: str, *, first: str
    ) -> dict[str, pd.DataFrame]:
        """The table of means, called `first`, and the runs."""
        import pandas as pd

        names = list(dict.fromkeys(runs[kind]))
        rows = []
        for measure in MEASURES:
            table = runs.pivot(index="seed", columns=kind, values=measure)
            base = table[reference] if reference in table else table[names[0]] * np.nan
            block = [
                {kind: n, "measure": measure} | _row(table[n], base, self.level) for n in names
            ]
            corrected = adjusted([row["p"] for row in block])
            rows += [row | {"p_adjusted": p} for row, p in zip(block, corrected, strict=True)]
        return {first: pd.DataFrame(rows), "runs": runs}

    def facts(self, measured: Mapping[str, xr.Dataset]) -> dict[str, Any]:
        """What figures and claims must know."""
        known = next(iter(measured.values())).attrs
        shared = {name: known[name] for name in ("task", "pairs", "baseline")}
        return {**shared, "level": self.level, "seeds": self.seeds}

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> R:
        """Means, differences and their intervals."""
        raise NotImplementedError


def runs_table(measured: Mapping[str, xr.Dataset], kind: str) -> pd.DataFrame:
    """One row for each part, with all its plain numbers."""
    import pandas as pd

    rows = []
    for part in measured.values():
        numbers = {str(n): float(v) for n, v in part.data_vars.items() if not v.dims}
        rows.append({kind: part.attrs["variant"], "seed": int(part.attrs["seed"])} | numbers)
    return pd.DataFrame(rows)


def split_part(part: str) -> tuple[str, int]:
    """`no-nsp-seed-2` as its variant and seed."""
    variant, _, seed = part.rpartition("-seed-")
    return variant, int(seed)


def heard(context: Context) -> Callable[[StepReport], None]:
    """Tells the progress bar of each report what is new."""
    done = 0

    def tell(report: StepReport) -> None:
        nonlocal done
        context.advance(report.step - done)
        done = report.step

    return tell


def _row(values: pd.Series[float], base: pd.Series[float], level: float) -> dict[str, Any]:
    mean = repeated(values, level)
    difference = values - base
    compared = repeated(difference, level)
    return {
        "mean": mean.value,
        "low": mean.low,
        "high": mean.high,
        "difference": compared.value,
        "difference_low": compared.low,
        "difference_high": compared.high,
        "p": paired_p(difference),
        "seeds": mean.n,
    }
