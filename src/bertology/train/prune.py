"""A smaller model for a task: parts whose loss costs least are cut, as long as the score allows.

Three sets of examples, so that no number is judged on what chose it: some training examples rank
the parts, others say how much can go, and held-out data, looked at once, tell what it cost.

`measured`: layers and MLPs are ranked by what happens without them: each is left out once, and how
far the answers move from those of the given model is measured (`part_ranking`). Gradients of gates
only guess that, and guess badly where a whole layer goes. Heads are too many for that; gradients
rank them, and a bisection finds how many can go.

`importance`: gradients of gates rank heads and MLPs (Michel et al., 2019); a tenth of all heads and
one MLP go at a time, and what is left is ranked anew (Prasanna et al., 2020).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.data.corpus import Corpus
from bertology.drafts import write_whole
from bertology.errors import CapabilityError, StoreError
from bertology.model.compressed.forms import compressed_forms
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.loading.pruning import (
    can_lose_layers,
    prune_heads,
    prune_layers,
    prune_mlps,
)
from bertology.model.numbering import layers_without_mlp
from bertology.model.part_masks import PartMask, part_importances
from bertology.model.sweeps.gate_gradients import importances
from bertology.model.weight_masks import WeightMask
from bertology.plain_files import read_json
from bertology.train.answers import match_of
from bertology.train.encoded import task_of
from bertology.train.part_ranking import GivenAnswers, without
from bertology.train.prune_judge import Judge, Tell
from bertology.train.prune_settings import PARTS, PruneSettings

if TYPE_CHECKING:
    from bertology.model.protocols import PretrainedModel

_TRIES = 2  # of the parts that rank best; after so many refusals the next kind begins
_HALVINGS = 4  # of the number of heads: to a sixteenth of them
_ROUNDS = 2  # of heads, each ranked anew: the first cuts most of what can go
_SHARE = 0.1  # of all heads, at a time, by importance
Units = Sequence[Any]  # layers, or (layer, head) pairs
Change = tuple[str, Units]  # a kind of parts, and which


@dataclass(frozen=True)
class Cut:
    """What is gone, by the numbers of the given model."""

    layers: tuple[int, ...] = ()
    heads: tuple[tuple[int, int], ...] = ()  # of layers that are left
    mlps: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """`2 layers (3, 7), 14 heads and 1 MLP (0)`"""
        told = []
        for units, name in ((self.layers, "layer"), (self.heads, "head"), (self.mlps, "MLP")):
            if units:
                plural = "" if len(units) == 1 else "s"
                which = "" if name == "head" else f" ({', '.join(str(i) for i in units)})"
                told.append(f"{len(units)} {name}{plural}{which}")
        return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))


@dataclass(frozen=True)
class Step:
    """One cut that was made, by the numbers of the model as it was then."""

    part: str  # a kind of parts, or "weights"
    units: tuple[Any, ...]  # layers, or (layer, head) pairs; of weights, how many are left
    score: float  # on the selection data, after it


@dataclass(frozen=True)
class Shrunk:
    """A smaller model, what was cut, and what the selection data said."""

    encoder: Encoder
    cut: Cut
    intact: float  # the score of the given model on the selection data
    score: float  # and of the smaller one
    tried: int  # models that were scored on the selection data
    allowed: float | None  # points that might be lost there; None where all were
    mask: WeightMask | None = None  # of single weights, where these went


def shrink(
    encoder: Encoder,
    ranking: Corpus,
    selection: Corpus,
    settings: PruneSettings,
    *,
    progress: Progress | None = None,
    tell: Tell = lambda text: None,
    batch_tokens: int = 4096,
) -> Shrunk:
    """Cut what costs no more than is allowed on the selection data.

    `progress` keeps the cuts, so that a search that was stopped goes on.
    """
    _check(encoder, settings)
    judge, kept = Judge(encoder, selection, settings, tell, batch_tokens), progress or Progress()
    search, begun = _Search(judge, ranking, kept.keep), kept.found(tell)
    search.go_on(begun)
    if settings.method == "importance":
        while search.cut_least_important():
            pass
    else:
        done = PARTS.index(begun[-1].part) if begun else 0
        for part in PARTS[done:]:  # in this order, whatever order they are named in
            if part in settings.may_go and _can_lose(encoder, part):
                search.run(part)
    cut = cut_of(search.steps, encoder.shape.layers)
    return shrunk(search.current, search.steps, judge, cut=cut)


def shrunk(
    encoder: Encoder,
    steps: Sequence[Step],
    judge: Judge,
    *,
    cut: Cut | None = None,
    mask: WeightMask | None = None,
) -> Shrunk:
    """The model after a search; an error where nothing could go."""
    if not steps:
        raise judge.nothing_fits()
    intact, score = judge.intact.score, steps[-1].score
    return Shrunk(encoder, cut or Cut(), intact, score, judge.tried, judge.allowed, mask)


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
    if not any(_can_lose(encoder, part) for part in settings.may_go):
        forms = ", ".join(name.replace("_", " ") for name in compressed_forms(encoder.config))
        which = f"models with compressed parts ({forms})" if forms else "models"
        raise CapabilityError(
            f"{encoder.family.title} {which} cannot lose {' or '.join(settings.may_go)}.",
            hint="Prune the model first, and compress what is left."
            if forms
            else "`bertology families` shows which can be pruned. Single weights of any model can "
            "go (--method magnitude).",
        )
    encoder.require(Capability.HEADS, Capability.RESIDUAL)


@dataclass
class _Search:
    """The smallest model so far."""

    judge: Judge
    ranking: Corpus
    keep: Callable[[Sequence[Step]], None]
    current: Encoder = field(init=False)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._given, self._settings = self.judge.given, self.judge.settings
        self.current = self._given
        task = task_of(self.ranking)
        order = match_of(self._given, task).order
        classes = task.kind != "regression"
        labels = self.ranking.labels
        self._targets = [order[int(label)] if classes else label for label in labels]

    @cached_property
    def _answered(self) -> GivenAnswers:
        most = self.judge.batch_tokens
        return GivenAnswers(self._given, self.ranking.texts, tokens_per_batch=most)

    def go_on(self, begun: Sequence[Step]) -> None:
        """Take up a search that was stopped."""
        self.steps, self.current = list(begun), replay(self._given, begun)

    def cut_least_important(self) -> bool:
        """Cut a tenth of all heads and one MLP, or only one of these where both cost too much."""
        encoder, there = self.current, PartMask.full(self.current)
        found = part_importances(
            encoder,
            self.ranking.texts,
            self._targets,
            tokens_per_batch=self.judge.batch_tokens,
        )
        heads = max(1, round(_SHARE * there.heads.size))
        less = there.without_least(found, heads=heads, mlps=1)
        gone: dict[str, Units] = {
            "heads": [(int(i), int(h)) for i, h in np.argwhere(there.heads & ~less.heads)],
            "mlps": [int(i) for i in np.flatnonzero(there.mlps & ~less.mlps)],
        }
        able = [p for p in self._settings.may_go if _can_lose(encoder, p)]
        changes = [(part, units) for part in able if (units := gone[part])]
        tries = [changes, *([change] for change in changes if len(changes) > 1)]
        return any(self._accept(*these) for these in tries if these)

    def run(self, part: str) -> None:
        """Cut as many parts of one kind as the score allows."""
        if part == "heads":
            for _ in range(_ROUNDS):
                if not self._cut_heads():
                    return
        else:
            while any(self._accept((part, units)) for units in self._proposals(part)):
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
            tokens_per_batch=self.judge.batch_tokens,
        ).heads
        there = [(i, h) for i in range(len(found)) for h in encoder.numbering.kept(stack, i)]
        order = sorted(there, key=lambda place: found[place])
        few, many, best = 0, len(order), None
        for _ in range(_HALVINGS):
            size = -(-(few + many) // 2)
            if size in (few, many):
                break
            if made := self._try(("heads", order[:size])):
                few, best = size, made
            else:
                many = size
        if best is not None:
            self._take(*best)
        return best is not None

    def _accept(self, *changes: Change) -> bool:
        """Cut and score; the smaller model is kept if the loss allows."""
        made = self._try(*changes)
        if made is not None:
            self._take(*made)
        return made is not None

    def _try(self, *changes: Change) -> tuple[Encoder, list[Step]] | None:
        smaller = self.current
        for part, units in changes:
            smaller = _without(smaller, part, units)
        score = self.judge.allows(smaller, " and ".join(self._named(*c) for c in changes))
        if score is None:
            return None
        return smaller, [Step(part, tuple(units), score) for part, units in changes]

    def _take(self, smaller: Encoder, steps: Sequence[Step]) -> None:
        self.steps += steps
        self.current = smaller
        self.keep(self.steps)

    def _named(self, part: str, units: Units) -> str:
        """What the next step cuts, by the numbers of the given model."""
        if part == "heads":
            return f"{len(units)} heads" if len(units) > 1 else "one head"
        layers, step = self._given.shape.layers, Step(part, tuple(units), 0.0)
        before, after = cut_of(self.steps, layers), cut_of([*self.steps, step], layers)
        own = min({*getattr(after, part)} - {*getattr(before, part)})
        return f"layer {own}" if part == "layers" else f"the MLP of layer {own}"


def _without(encoder: Encoder, part: str, units: Units) -> Encoder:
    cut: dict[str, Callable[..., PretrainedModel]] = {
        "layers": prune_layers,
        "heads": prune_heads,
        "mlps": prune_mlps,
    }
    model = cut[part](encoder, units)
    return Encoder(model, encoder.tokenizer, head=encoder.head, name=encoder.name)


@dataclass(frozen=True)
class Progress:
    """A file that keeps the cuts of a search, for one that was stopped; without it, nothing is."""

    path: Path | None = None

    def found(self, tell: Tell = lambda text: None) -> list[Step]:
        """The cuts of the search that was stopped; what cannot be read is done again."""
        if self.path is None or not self.path.is_file():
            return []
        try:
            steps = [_step(each) for each in read_json(self.path, error=StoreError)]
        except (StoreError, KeyError, TypeError, ValueError):
            return []
        made = "1 cut was" if len(steps) == 1 else f"{len(steps)} cuts were"
        tell(f"{made} made before the stop")
        return steps

    def keep(self, steps: Sequence[Step]) -> None:
        """Keep all cuts so far; the file is whole at any time."""
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, json.dumps([asdict(step) for step in steps]) + "\n")
        except OSError as error:
            raise StoreError(
                f"The cuts so far cannot be written to {self.path}: {error.strerror or error}.",
                hint="Choose a folder you may write to, on a disk with space.",
            ) from error


def _step(kept: Any) -> Step:
    part, units, score = kept["part"], kept["units"], kept["score"]
    if part not in (*PARTS, "weights") or not isinstance(score, float):
        raise ValueError(kept)
    pairs = part == "heads"
    return Step(part, tuple((int(u[0]), int(u[1])) if pairs else int(u) for u in units), score)
