"""A smaller model for a task: parts that matter least are cut, as long as the score allows.

Three sets of examples, so that no number is judged on what chose it: training data rank the parts
(by the gradients of their gates), other training data say how much can go, and held-out data,
looked at once, tell what it cost.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, DataError, JobError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.loading.pruning import (
    can_lose_layers,
    prune_heads,
    prune_layers,
    prune_mlps,
)
from bertology.model.numbering import layers_without_mlp
from bertology.model.sweeps.gate_gradients import Importances, importances
from bertology.results.comparison import beats_constant_answer
from bertology.train.answers import Answers, answer, encode_for, match_of
from bertology.train.encoded import task_of

if TYPE_CHECKING:
    from bertology.model.protocols import PretrainedModel

__all__ = ["PARTS", "Cut", "PruneSettings", "Shrunk", "shrink", "split_training"]

PARTS = ("layers", "heads", "mlps")
_TRIES = 3  # of the least important layers (or MLPs): gradients only guess which costs least
_TENTHS = range(9, 0, -1)  # shares of the heads, the largest first
_ROUNDS = 3  # of heads, each ranked anew: the first cuts most of what can go
_FEWEST = 20  # examples to rank by, and to select by

Tell = Callable[[str], None]
Units = Sequence[Any]  # layers, or (layer, head) pairs


@dataclass(frozen=True)
class PruneSettings:
    """How far a model is cut."""

    max_loss: float = 1.0  # points (hundredths) of the task's main metric, on the selection data
    parts: tuple[str, ...] = PARTS
    seed: int = 0  # which training examples rank, and which select
    batch_tokens: int = 4096

    def __post_init__(self) -> None:
        if not 0 <= self.max_loss < 100:
            raise ParameterError("max_loss", "prune", "be from 0 to below 100", self.max_loss)
        if not self.parts or not {*self.parts} <= {*PARTS}:
            raise ParameterError("parts", "prune", f"be among {', '.join(PARTS)}", self.parts)


@dataclass(frozen=True)
class Cut:
    """What is gone, by the numbers of the given model."""

    layers: tuple[int, ...] = ()
    heads: tuple[tuple[int, int], ...] = ()  # of layers that are left
    mlps: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.layers or self.heads or self.mlps)


@dataclass(frozen=True)
class Shrunk:
    """A smaller model, what was cut, and what the selection data said."""

    encoder: Encoder
    cut: Cut
    intact: float  # the score of the given model on the selection data
    score: float  # and of the smaller one
    tried: int  # models that were scored on the selection data


def split_training(train: Corpus, held_out: Corpus, *, seed: int) -> tuple[Corpus, Corpus]:
    """Examples to rank by and others to select by; no text of the held-out data is among them."""
    unseen = {e.texts for e in held_out}
    kept = [e for e in train if e.texts not in unseen]
    if len(kept) < 2 * _FEWEST:
        raise DataError(
            f"{len(kept)} training examples of {train.name!r} are not in the held-out data; "
            f"pruning needs {2 * _FEWEST}, half to rank parts by and half to select.",
            hint="Name other data (--validation) or splits (--train-split, --split), or raise "
            "--limit.",
        )
    random.Random(seed).shuffle(kept)
    middle = len(kept) // 2
    ranking, selection = (
        replace(train, examples=some, origin={}, drawn_from=None)
        for some in (kept[:middle], kept[middle:])
    )
    return ranking, selection


def shrink(
    encoder: Encoder,
    ranking: Corpus,
    selection: Corpus,
    settings: PruneSettings,
    *,
    tell: Tell = lambda text: None,
) -> Shrunk:
    """Cut what costs at most `max_loss` points on the selection data; whole layers come first.

    Layers and MLPs go one at a time, the least important first, and what is left is ranked again.
    Heads go in tenths of those that are there, in three rounds at most.
    """
    _check(encoder, settings)
    search = _Search(encoder, ranking, selection, settings, tell)
    if not beats_constant_answer(
        search.intact.predictions,
        search.intact.labels,
        classes=search.intact.task.kind != "regression",
        metric=search.intact.metric.name,
    ):
        raise CapabilityError(
            f"{encoder.name!r} does not surely beat a constant answer on {selection.name}, so "
            "nothing that is cut from it could cost anything.",
            hint=f"Fine-tune it first: bertology finetune {encoder.name} {selection.name}",
        )
    for part in PARTS:  # in this order, whatever order they are named in
        if part in settings.parts and _can_lose(encoder, part):
            search.run(part)
    if not search.cut:
        raise JobError(
            f"Nothing can be cut at a loss of at most {settings.max_loss:g} points "
            f"({search.tried} smaller models were tried).",
            hint="Allow a larger --max-loss.",
        )
    return Shrunk(search.current, search.cut, search.intact.score, search.score, search.tried)


def _can_lose(encoder: Encoder, part: str) -> bool:
    if part == "heads":
        return Capability.PRUNING in encoder.capabilities
    return can_lose_layers(encoder)


def _check(encoder: Encoder, settings: PruneSettings) -> None:
    if not any(_can_lose(encoder, part) for part in settings.parts):
        raise CapabilityError(
            f"{encoder.family.title} models cannot lose {' or '.join(settings.parts)}.",
            hint="`bertology families` shows which can be pruned.",
        )
    encoder.require(Capability.HEADS, Capability.RESIDUAL)


@dataclass
class _Search:
    """The smallest model so far."""

    given: Encoder
    ranking: Corpus
    selection: Corpus
    settings: PruneSettings
    tell: Tell
    current: Encoder = field(init=False)
    intact: Answers = field(init=False)
    score: float = field(init=False)
    cut: Cut = field(default_factory=Cut)
    tried: int = 0

    def __post_init__(self) -> None:
        self.current, self._task = self.given, task_of(self.selection)
        self._encoded = encode_for(self.given, self.selection)
        order = match_of(self.given, self._task).order
        classes = self._task.kind != "regression"
        labels = self.ranking.labels
        self._targets = [order[int(label)] if classes else label for label in labels]
        self.intact = self._answers(self.given)
        self.score = self.intact.score
        self._left = list(range(self.given.shape.layers))  # their numbers in the given model

    def run(self, part: str) -> None:
        """Cut as many parts of one kind as the score allows."""
        rounds = 0
        while any(self._accept(part, units) for units in self._proposals(part)):
            rounds += 1
            if part == "heads" and rounds == _ROUNDS:
                return

    def _proposals(self, part: str) -> Iterator[Units]:
        """What may be cut next, by the current model's numbers, the most wanted first."""
        if part == "heads":
            yield from self._head_sets()
            return
        there = list(range(self.current.shape.layers))
        if part == "mlps":
            there = [i for i in there if i not in layers_without_mlp(self.current.config)]
        elif len(there) == 1:
            return
        if there:
            found = self._importances()
            values = found.layers if part == "layers" else found.mlps
            for unit in sorted(there, key=lambda i: values[i])[:_TRIES]:
                yield [unit]

    def _head_sets(self) -> Iterator[list[tuple[int, int]]]:
        encoder, found = self.current, self._importances().heads
        stack = encoder.family.main_stack
        there = [(i, h) for i in range(len(found)) for h in encoder.numbering.kept(stack, i)]
        order = sorted(there, key=lambda place: found[place])
        for size in dict.fromkeys(len(order) * tenths // 10 for tenths in _TENTHS):
            if size:
                yield order[:size]

    def _importances(self) -> Importances:
        return importances(
            self.current,
            self.ranking.texts,
            self._targets,
            tokens_per_batch=self.settings.batch_tokens,
        )

    def _accept(self, part: str, units: Units) -> bool:
        """Cut and score; the smaller model is kept if the loss allows."""
        encoder = self.current
        smaller = _without(encoder, part, units)
        score = self._answers(smaller).score
        self.tried += 1
        loss = 100 * (self.intact.score - score)
        fits = loss <= self.settings.max_loss + 1e-9
        if fits:
            told = self._note(part, units)
            self.tell(
                f"without {told}: {self.intact.metric.name} {score:.3f} ({-loss:+.1f} points)"
            )
            self.current, self.score = smaller, score
        return fits

    def _note(self, part: str, units: Units) -> str:
        """Keep what is gone, by the numbers of the given model, and say it."""
        left, cut = self._left, self.cut
        if part == "heads":
            gone = tuple((left[i], h) for i, h in units)
            self.cut = replace(cut, heads=tuple(sorted((*cut.heads, *gone))))
            return f"{len(gone)} heads" if len(gone) > 1 else f"head {gone[0]}"
        own = left[units[0]]
        if part == "layers":
            self.cut = replace(cut, layers=tuple(sorted((*cut.layers, own))))
            left.remove(own)
            return f"layer {own}"
        self.cut = replace(cut, mlps=tuple(sorted((*cut.mlps, own))))
        return f"the MLP of layer {own}"

    def _answers(self, encoder: Encoder) -> Answers:
        return answer(encoder, self._encoded, self._task, batch_tokens=self.settings.batch_tokens)


def _without(encoder: Encoder, part: str, units: Units) -> Encoder:
    cut: dict[str, Callable[..., PretrainedModel]] = {
        "layers": prune_layers,
        "heads": prune_heads,
        "mlps": prune_mlps,
    }
    model = cut[part](encoder, units)
    return Encoder(model, encoder.tokenizer, head=encoder.head, name=encoder.name)
