"""Whether a smaller model is good enough, by examples that only decide that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, JobError
from bertology.model.encoder import Encoder
from bertology.results.comparison import beats_constant_answer
from bertology.stats.paired import influences
from bertology.train.answers import Answers, answer, encode_for
from bertology.train.encoded import task_of
from bertology.train.evaluate import baseline
from bertology.train.prune_settings import PruneSettings

Tell = Callable[[str], None]


@dataclass
class Judge:
    """The given model's answers to the selection data, and how far others may fall below them.

    A smaller model is allowed where the loss and its standard error together are: of the many that
    are tried, those that happen to look good on these examples are taken, and the loss on others
    is larger.
    """

    given: Encoder
    selection: Corpus
    settings: PruneSettings
    tell: Tell = lambda text: None
    intact: Answers = field(init=False)
    allowed: float | None = field(init=False)  # points; None where all are
    tried: int = 0  # models that were scored

    def __post_init__(self) -> None:
        self._task = task_of(self.selection)
        self._encoded = encode_for(self.given, self.selection)
        self.intact = self._answers(self.given)
        metric = self.intact.metric.name
        if not beats_constant_answer(
            self.intact.predictions,
            self.intact.labels,
            classes=self._task.kind != "regression",
            metric=metric,
        ):
            name = self.given.name
            raise CapabilityError(
                f"{name!r} does not surely beat a constant answer on {self.selection.name}, so "
                "nothing that is cut from it could cost anything.",
                hint=f"Fine-tune it first: bertology finetune {name} {self.selection.name}",
            )
        constant = baseline(self.selection, self.selection)[metric]
        self.allowed = self.settings.cut_loss(self.intact.score, constant)

    def allows(self, smaller: Encoder, what: str) -> float | None:
        """The score of a model without `what`, or None where it lost too much."""
        found = self._answers(smaller)
        self.tried += 1
        gain, error = found.score - self.intact.score, _standard_error(self.intact, found)
        fits = self.allowed is None or 100 * (error - gain) <= self.allowed + 1e-9
        self.tell(
            f"{'without' if fits else 'not without'} {what}: "
            f"{self.intact.metric.name} {found.score:.3f} "
            f"({100 * gain:+.1f} ± {100 * error:.1f} points)"
        )
        return found.score if fits else None

    def _answers(self, encoder: Encoder) -> Answers:
        return answer(encoder, self._encoded, self._task, batch_tokens=self.settings.batch_tokens)

    def nothing_fits(self) -> JobError:
        """What is raised where no smaller model is allowed."""
        models = "1 smaller model was" if self.tried == 1 else f"{self.tried} smaller models were"
        less = "smaller --keep" if self.settings.keep is not None else "larger --max-loss"
        # With movement, a short training is what costs most, however many examples select.
        moves = self.settings.method == "movement"
        more = "train longer (--epochs)" if moves else "select on more examples (--limit)"
        return JobError(
            f"Nothing can be cut at a loss of at most {self.allowed:.3g} points ({models} tried).",
            hint=f"Allow a {less}, or {more}.",
        )


def _standard_error(before: Answers, after: Answers) -> float:
    """Of the difference of the scores, paired over examples."""
    metric = before.metric
    psi, _ = influences(metric, before.statistics(metric), after.statistics(metric)[None])
    return float(np.std(psi[0]) / np.sqrt(psi.shape[1]))
