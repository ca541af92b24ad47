"""Task baselines: what do simple models reach on a task that a model is fine-tuned on?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.metrics import judged_metric
from bertology.parameters import check_some_of, parameter
from bertology.results.answers import NOTHING_SURE, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.scored_runs import ScoredRuns, ScoredRunsResult, answered, least
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import Reach, split_part

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

TITLES = {
    "majority": "majority class, or mean",
    "bag-of-words": "bag of words, logistic regression",
    "cbow": "CBOW (mean of static vectors)",
    "bilstm": "BiLSTM over static vectors",
    "random-start": "same architecture, random start",
    "fine-tuned": "fine-tuned model",
}
METHODS = tuple(TITLES)
SEEDLESS = ("majority", "bag-of-words")  # nothing in them is drawn: one run is all there is
_STARTS = {"random-start": "random", "fine-tuned": "pretrained"}
_SIMPLE = ("majority", "bag-of-words", "cbow", "bilstm")
# Pairs of methods by quantity; chosen before looking, so each has an interval of its own.
_CONTRASTS = {
    **{f"fine_tuned_over_{m.replace('-', '_')}": ("fine-tuned", m) for m in METHODS[:-1]},
    **{f"{m.replace('-', '_')}_over_majority": (m, "majority") for m in METHODS[1:-1]},
    "bilstm_over_cbow": ("bilstm", "cbow"),
}


class TaskBaselinesResult(ScoredRunsResult):
    """Scores of methods (table `methods`), and of each run (table `runs`).

    `methods` has one row for each method and metric: the mean over seeds, its interval over
    seeds and examples, the spread over seeds, and how much it is above the majority class.
    """

    lead: ClassVar[int] = 6

    @property
    def answer(self) -> str:
        """What fine-tuning gains over the best of the simple models."""
        facts, found = self.facts, self.evidence().get("fine_tuned_over_simple")
        if found is None:
            return f"{NOTHING_SURE}: the fine-tuned model and simple ones were not both run."
        surely = (
            "surely gains" if found.low > 0 else "surely loses" if found.high < 0
            else "does not surely gain:"
        )  # fmt: skip
        return (
            f"Fine-tuning {surely} {points(found)} of {facts['judged']} over the best simple "
            f"baseline ({facts['best_simple']})."
        )

    def headline(self) -> str:
        """What was learnt from what, and how many words have a vector."""
        facts = self.facts
        covered = float(facts["covered"])
        told = "" if math.isnan(covered) else f"; {100 * covered:.0f} % of words have a vector"
        return (
            f"{facts['task']}: {facts['train_size']} examples to learn from, "
            f"{facts['examples']} to score, {facts['seeds']} seeds{told}"
        )

    def drawings(self) -> Sequence[Drawing]:
        """The paper's table as a picture."""
        caption = (
            "One row for each method, from a constant answer to the fine-tuned model; one panel "
            "for each score of the task, times a hundred. All learn from the same data and are "
            "scored on the same held-out examples. Dots are means over seeds, with intervals over "
            "seeds and examples together. What the simple models reach needs no pre-training and "
            "no attention."
        )
        return [self.methods_drawing("methods", "What simple models reach", TITLES, caption)]


@dataclass(frozen=True)
class TaskBaselines(TaskTrials):
    """What do simple models reach on a task that a model is fine-tuned on?

    Method: each method learns from the training split and is scored on the corpus that is given,
    the validation split, with the task's own metrics. `majority` always gives the most frequent
    class (the mean, for numbers). `bag-of-words` is a logistic regression (ridge regression) over
    which words a text has; for pairs also which words both have, and how many. `cbow` is a network
    with one hidden layer over the mean of static vectors, `bilstm` the same over the highest values
    of a bidirectional LSTM; pairs are described by both texts, their difference and their product
    (Wang et al. 2018, GLUE). Vectors are the model's own input embeddings, or those of a file
    (`--vectors`, GloVe or word2vec), and stay as they are; the best of ten epochs on a tenth of the
    training data is kept. `random-start` fine-tunes the same architecture from random weights,
    `fine-tuned` from the pre-trained ones. Runs with the same seed are compared with each other;
    intervals are over seeds and examples together.

    Claims rest on accuracy (correlation for regressions and CoLA). `fine_tuned_over_simple` is the
    gain over the best of the first four: it is surely above zero where each of them surely is.

    Source: When BERT Plays the Lottery, All Tickets Are Winning (EMNLP 2020), Table 2. Limits:
    simple models have one setting each and are not tuned to a task, and input embeddings of the
    model were pre-trained with it, so that CBOW and BiLSTM have some of what it learnt. The
    fine-tuned models have the same epochs and learning rate; a random start may want more of both.
    """

    version: ClassVar[int] = 4  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = TaskBaselinesResult
    column: ClassVar[str] = "method"

    methods: tuple[str, ...] = parameter(METHODS, "Methods to compare.")
    vectors: str = parameter(
        "",
        "A file of word vectors for CBOW and BiLSTM: GloVe's text, word2vec's text or binary "
        "format, plain or gzipped. If not given: the model's input embeddings.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_some_of(self, "methods", METHODS)

    @property
    def variants(self) -> Sequence[str]:
        """The methods."""
        return self.methods

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One run each; one only where nothing is drawn."""
        named = super().parts(shape, corpus)
        return [p for p in named if split_part(p)[1] == 0 or split_part(p)[0] not in SEEDLESS]

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The training data, and the contents of the file of vectors."""
        from bertology.data.static_vectors import fingerprint_of

        known = super().ingredients(corpus)
        return known | ({"vectors": fingerprint_of(self.vectors)} if self.vectors else {})

    def trial(
        self, encoder: Encoder, corpus: Corpus, *, variant: str, seed: int, reach: Reach
    ) -> xr.Dataset:
        """Train one model and keep its answers."""
        from bertology.train.baselines import train_baseline
        from bertology.train.starts import find_start
        from bertology.train.tuning import TuningJob, answers_of, tune

        train, covered = self.load_train(corpus), math.nan
        if variant in _STARTS:
            start = find_start(_STARTS[variant])
            settings = self.settings(start, encoder.shape.hidden, seed)
            job = TuningJob(encoder, train, corpus, start, settings)
            model, _ = tune(job, progress=lambda step: reach((BARS - 1) * step.done // step.total))
            said = answers_of(model, job)
        else:
            run = train_baseline(
                variant,
                encoder,
                train,
                corpus,
                seed=seed,
                vectors=self.vectors,
                progress=lambda share: reach(int(BARS * share)),
            )
            said, covered = run.predictions, run.covered
        reach(BARS)
        return answered({variant: said}, corpus, train, covered=covered)

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means and differences, with intervals over seeds and examples."""
        same_training_data(measured)
        facts = [part.attrs for part in measured.values()]
        metrics = str(facts[0]["metrics"]).split()
        judged = judged_metric(metrics)
        runs = ScoredRuns.read(measured, self.level, SEEDLESS, METHODS)
        evidence = {name: runs.difference(*pair, judged) for name, pair in _CONTRASTS.items()}
        simple = [m for m in _SIMPLE if m in runs.predictions]
        # The best of some of them is no proof against all of them.
        against = [runs.difference("fine-tuned", m, judged) for m in _SIMPLE]
        evidence["fine_tuned_over_simple"] = least(against)
        best = max(simple, key=lambda m: runs.score(m, judged).value) if simple else ""
        covered = [c for known in facts if not math.isnan(c := float(known["covered"]))]
        reference = "majority" if "majority" in runs.predictions else None
        return self.result(
            provenance,
            {
                "methods": runs.table(self.column, metrics, reference=reference),
                "runs": runs.runs(self.column, metrics),
            },
            evidence=evidence,
            facts={
                "task": facts[0]["task"],
                "train_size": facts[0]["train_size"],
                "judged": judged,
                "best_simple": TITLES.get(best, ""),
                "covered": min(covered, default=math.nan),
                "examples": len(runs.labels),
                "seeds": self.seeds,
            },
        )
