"""Which examples rank parts, and which others decide whether a smaller model is good enough."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bertology.data.corpus import Corpus, Example
from bertology.data.loading import load_corpus
from bertology.errors import BertologyError, CapabilityError, DataError, JobError
from bertology.model.encoder import Encoder
from bertology.stats.paired import influences
from bertology.train.answers import Answers, answer, encode_for
from bertology.train.checkpoint import read_record
from bertology.train.encoded import task_of
from bertology.train.evaluate import baseline
from bertology.train.prune_settings import THINNING, PruneSettings

Tell = Callable[[str], None]
_FEWEST = 20  # examples to rank by, and to select by
_RANKING = 5  # one of so many examples ranks; selection decides, and gets the others
_DECIDING = 5  # of movement pruning: one of so many examples selects, the others are learnt from
_MOST_RANKING = 200  # more make a ranking slower, and hardly better
Texts = tuple[str, ...]


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
    batch_tokens: int = 4096
    intact: Answers = field(init=False)
    allowed: float | None = field(init=False)  # points; None where all are
    tried: int = 0  # models that were scored

    def __post_init__(self) -> None:
        self._task = task_of(self.selection)
        self._encoded = encode_for(self.given, self.selection)
        self.intact = self._answers(self.given)
        metric = self.intact.metric.name
        if not self.intact.knowing:
            name = self.given.name
            raise CapabilityError(
                f"{name!r} does not surely beat a constant answer on {self.selection.name}, so "
                "nothing that is cut from it could cost anything.",
                hint=f"Fine-tune it first: bertology finetune {name} {self.selection.name}",
            )
        constant = baseline(self.selection, self.selection)[metric]
        self.allowed = self.settings.allowed(self.intact.score, constant)

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
        return answer(encoder, self._encoded, self._task, batch_tokens=self.batch_tokens)

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


@dataclass(frozen=True)
class PruneData:
    """Training examples for two uses."""

    ranking: Corpus | None  # of parts; single weights are ranked without any
    selection: Corpus
    training: Corpus  # what a training may learn from
    seen: bool  # whether the model was trained on those that rank and select, as far as is known


def split_training(
    train: Corpus,
    *,
    seed: int,
    limit: int | None = None,
    learned: frozenset[Texts] = frozenset(),
    method: str = "measured",
) -> PruneData:
    """Split what may be learnt from; examples that the model did not learn from come first.

    A model answers what it learned from better than anything else, so the loss on such examples
    is not that on others. A training after the cut may learn from all, since nothing is chosen by
    what it gives. Movement pruning trains models that are then chosen from: those that select are
    at most a fifth of the data there, and no training learns from them.
    """
    kept = list(train)
    fresh = [e for e in kept if e.texts not in learned] if learned else []
    usable = fresh if len(fresh) >= 2 * _FEWEST * _RANKING else kept.copy()
    if len(usable) < 2 * _FEWEST:
        raise DataError(
            f"{len(usable)} training examples of {train.name!r} are not in the held-out data; "
            f"pruning needs {2 * _FEWEST}: some rank parts, the others select.",
            hint="Name other data (--validation) or splits (--train-split, --split), or raise "
            "--limit.",
        )
    random.Random(seed).shuffle(usable)
    if method == "movement":
        fifth = max(2 * _FEWEST, len(kept) // _DECIDING)
        limit = fifth if limit is None else min(limit, fifth)
    drawn = usable[:limit]
    middle = 0 if method in THINNING else min(max(_FEWEST, len(drawn) // _RANKING), _MOST_RANKING)
    selection = drawn[middle:]
    if method == "movement":
        deciding = {e.texts for e in selection}
        kept = [e for e in kept if e.texts not in deciding]
    return PruneData(
        _part(train, drawn[:middle]) if middle else None,
        _part(train, selection),
        _part(train, kept),
        seen=usable is not fresh,
    )


def _part(corpus: Corpus, examples: Sequence[Example]) -> Corpus:
    return replace(corpus, examples=examples, origin={}, drawn_from=None)


def learned_texts(model: str) -> frozenset[Texts]:
    """What a model of ours was fine-tuned on, by its record; nothing where that is not known."""
    try:
        record = read_record(model) or {}
        origin = record["train"]["origin"] if "train" in record else {}
        corpus = load_corpus(**origin) if "name_or_path" in origin else None  # type: ignore[arg-type]
    except (BertologyError, KeyError, TypeError, OSError):
        return frozenset()  # the data are no longer where they were
    return frozenset(e.texts for e in corpus or ())
