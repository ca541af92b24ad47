"""A smaller model for a task: parts whose loss costs least are cut, as long as the score allows.

Three sets of examples, so that no number is judged on what chose it: some training examples rank
the parts, others say how much can go, and held-out data, looked at once, tell what it cost.

Layers and MLPs are ranked by what happens without them: each is left out once, and how far the
answers move from those of the given model is measured (`part_ranking`). Gradients of gates only
guess that, and guess badly where a whole layer goes. Heads are too many for that; gradients rank
them, and a bisection finds how many can go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, JobError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.loading.pruning import (
    can_lose_layers,
    prune_heads,
    prune_layers,
    prune_mlps,
)
from bertology.model.numbering import layers_without_mlp
from bertology.model.sweeps.gate_gradients import importances
from bertology.results.comparison import beats_constant_answer
from bertology.stats.paired import influences
from bertology.train.answers import Answers, answer, encode_for, match_of
from bertology.train.encoded import task_of
from bertology.train.part_ranking import GivenAnswers, without
from bertology.train.recovery import Recovery

if TYPE_CHECKING:
    from bertology.model.protocols import PretrainedModel

__all__ = ["PARTS", "Cut", "PruneSettings", "Shrunk", "Step", "cut_of", "replay", "shrink"]

PARTS = ("layers", "mlps", "heads")  # in the order of what they save
_TRIES = 2  # of the parts that rank best; after so many refusals the next kind begins
_HALVINGS = 4  # of the number of heads: to a sixteenth of them
_ROUNDS = 2  # of heads, each ranked anew: the first cuts most of what can go

Tell = Callable[[str], None]
Units = Sequence[Any]  # layers, or (layer, head) pairs


@dataclass(frozen=True)
class PruneSettings:
    """How far a model is cut."""

    max_loss: float = 1.0  # points (hundredths) of the task's main metric, in the end
    parts: tuple[str, ...] = PARTS
    seed: int = 0  # which training examples rank, and which select
    batch_tokens: int = 4096
    limit: int | None = None  # training examples that rank and select; None for all
    recovery: Recovery | None = None  # a training after the cut

    @property
    def allowed(self) -> float:
        """How many points the cut may cost, before any training."""
        return self.max_loss if self.recovery is None else self.recovery.cut_loss

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
class Step:
    """One cut that was made, by the numbers of the model as it was then."""

    part: str
    units: tuple[Any, ...]  # layers, or (layer, head) pairs
    score: float  # on the selection data, after it


@dataclass(frozen=True)
class Shrunk:
    """A smaller model, what was cut, and what the selection data said."""

    encoder: Encoder
    cut: Cut
    intact: float  # the score of the given model on the selection data
    score: float  # and of the smaller one
    tried: int  # models that were scored on the selection data


def shrink(
    encoder: Encoder,
    ranking: Corpus,
    selection: Corpus,
    settings: PruneSettings,
    *,
    begun: Sequence[Step] = (),
    keep: Callable[[Sequence[Step]], None] = lambda steps: None,
    tell: Tell = lambda text: None,
) -> Shrunk:
    """Cut what costs at most the `allowed` points on the selection data; layers come first.

    A cut is made where the loss and its standard error together are at most that: of the many cuts
    that are tried, those that happen to look good on these examples are taken, and the loss on
    others is larger. `begun` are the cuts of a search that was stopped; `keep` is told all of them
    after each.
    """
    _check(encoder, settings)
    search = _Search(encoder, ranking, selection, settings, tell, keep)
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
    search.go_on(begun)
    done = PARTS.index(begun[-1].part) if begun else 0
    for part in PARTS[done:]:  # in this order, whatever order they are named in
        if part in settings.parts and _can_lose(encoder, part):
            search.run(part)
    if not search.steps:
        raise JobError(
            f"Nothing can be cut at a loss of at most {settings.allowed:g} points "
            f"({search.tried} smaller models were tried).",
            hint="Allow a larger --max-loss, or select on more examples (--limit).",
        )
    cut = cut_of(search.steps, encoder.shape.layers)
    return Shrunk(search.current, cut, search.intact.score, search.score, search.tried)


def cut_of(steps: Sequence[Step], layers: int) -> Cut:
    """What is gone after these steps, by the numbers of the model that had so many layers."""
    left = list(range(layers))
    gone: dict[str, list[Any]] = {part: [] for part in PARTS}
    for step in steps:
        if step.part == "heads":
            gone["heads"] += [(left[i], h) for i, h in step.units]
            continue
        own = [left[i] for i in step.units]
        gone[step.part] += own
        if step.part == "layers":
            left = [i for i in left if i not in own]
    kept = {
        "heads": [(i, h) for i, h in gone["heads"] if i in left],
        "mlps": [i for i in gone["mlps"] if i in left],
        "layers": gone["layers"],
    }
    return Cut(**{part: tuple(sorted(units)) for part, units in kept.items()})


def replay(encoder: Encoder, steps: Sequence[Step]) -> Encoder:
    """The model after these steps."""
    for step in steps:
        encoder = _without(encoder, step.part, step.units)
    return encoder


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
    keep: Callable[[Sequence[Step]], None]
    current: Encoder = field(init=False)
    intact: Answers = field(init=False)
    score: float = field(init=False)
    steps: list[Step] = field(default_factory=list)
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
        most = self.settings.batch_tokens
        self._answered = GivenAnswers(self.given, self.ranking.texts, tokens_per_batch=most)

    def go_on(self, begun: Sequence[Step]) -> None:
        """Take up a search that was stopped."""
        if begun:
            self.steps, self.score = list(begun), begun[-1].score
            self.current = replay(self.given, begun)
            made = "1 cut was" if len(begun) == 1 else f"{len(begun)} cuts were"
            self.tell(f"{made} made before the stop")

    def run(self, part: str) -> None:
        """Cut as many parts of one kind as the score allows."""
        if part == "heads":
            for _ in range(_ROUNDS):
                if not self._cut_heads():
                    return
        else:
            while any(self._accept(part, units) for units in self._proposals(part)):
                pass

    def _proposals(self, part: str) -> Iterator[Units]:
        """Which layer, or MLP, may be cut next, by the current model's numbers, the best first."""
        there = list(range(self.current.shape.layers))
        if part == "mlps":
            there = [i for i in there if i not in layers_without_mlp(self.current.config)]
        elif len(there) == 1:
            return
        changes = {i: self._answered.change(self.current, without(part, i)) for i in there}
        for unit in sorted(there, key=lambda i: changes[i])[:_TRIES]:
            yield [unit]

    def _cut_heads(self) -> bool:
        """Cut the largest share of the heads that the score allows, least important first."""
        encoder = self.current
        stack = encoder.family.main_stack
        found = importances(
            encoder,
            self.ranking.texts,
            self._targets,
            tokens_per_batch=self.settings.batch_tokens,
        ).heads
        there = [(i, h) for i in range(len(found)) for h in encoder.numbering.kept(stack, i)]
        order = sorted(there, key=lambda place: found[place])
        few, many, best = 0, len(order), None
        for _ in range(_HALVINGS):
            size = -(-(few + many) // 2)
            if size in (few, many):
                break
            if made := self._try("heads", order[:size]):
                few, best = size, made
            else:
                many = size
        if best is not None:
            self._take(*best)
        return best is not None

    def _accept(self, part: str, units: Units) -> bool:
        """Cut and score; the smaller model is kept if the loss allows."""
        made = self._try(part, units)
        if made is not None:
            self._take(*made)
        return made is not None

    def _try(self, part: str, units: Units) -> tuple[Encoder, Step] | None:
        smaller = _without(self.current, part, units)
        found = self._answers(smaller)
        self.tried += 1
        gain, error = found.score - self.intact.score, _standard_error(self.intact, found)
        step = Step(part, tuple(units), found.score)
        fits = 100 * (error - gain) <= self.settings.allowed + 1e-9
        self.tell(
            f"{'without' if fits else 'not without'} {self._named(step)}: "
            f"{self.intact.metric.name} {found.score:.3f} "
            f"({100 * gain:+.1f} ± {100 * error:.1f} points)"
        )
        return (smaller, step) if fits else None

    def _take(self, smaller: Encoder, step: Step) -> None:
        self.steps.append(step)
        self.current, self.score = smaller, step.score
        self.keep(self.steps)

    def _named(self, step: Step) -> str:
        """What the next step cuts, by the numbers of the given model."""
        layers = self.given.shape.layers
        before, after = cut_of(self.steps, layers), cut_of([*self.steps, step], layers)
        if step.part == "heads":
            return f"{len(step.units)} heads" if len(step.units) > 1 else "one head"
        own = min({*getattr(after, step.part)} - {*getattr(before, step.part)})
        return f"layer {own}" if step.part == "layers" else f"the MLP of layer {own}"

    def _answers(self, encoder: Encoder) -> Answers:
        return answer(encoder, self._encoded, self._task, batch_tokens=self.settings.batch_tokens)


def _standard_error(before: Answers, after: Answers) -> float:
    """Of the difference of the scores, paired over examples."""
    metric = before.metric
    psi, _ = influences(metric, before.statistics(metric), after.statistics(metric)[None])
    return float(np.std(psi[0]) / np.sqrt(psi.shape[1]))


def _without(encoder: Encoder, part: str, units: Units) -> Encoder:
    cut: dict[str, Callable[..., PretrainedModel]] = {
        "layers": prune_layers,
        "heads": prune_heads,
        "mlps": prune_mlps,
    }
    model = cut[part](encoder, units)
    return Encoder(model, encoder.tokenizer, head=encoder.head, name=encoder.name)
