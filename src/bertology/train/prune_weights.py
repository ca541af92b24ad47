"""Zeros in the place of single weights: of the smallest, or of those that a training moves there.

`magnitude`: a tenth of the smallest weights that are left goes at a time, as long as the score
allows. Nothing is trained, so the masks of all steps are nested, and any of them is found again.

`movement` (`train/movement.py`): a training in which weights go. How many, is decided before it; so
a few shares are tried, from many weights to few, each from the given model's weights, until one
costs too much. Only data that no training saw decide. As in the paper, matrices of layers lose
weights; pooler and head, which are small and learn the task from nothing, stay whole.

With `weights`, the share that stays is given and nothing is searched for.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch

from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import (
    WeightMask,
    gone_on,
    prunable_in_layers,
    weights_removed,
)
from bertology.model.weight_ranks import without_smallest
from bertology.train.finetune import FinetuneSettings
from bertology.train.history import History, OnStep
from bertology.train.movement import Movement
from bertology.train.prune import Cut, Shrunk, Step, Unfinished, resumed
from bertology.train.prune_judge import Judge, PruneData, Tell
from bertology.train.prune_settings import PruneSettings
from bertology.train.recovery import recover
from bertology.train.starts import default_rate, find_start

_SHARE = 0.1  # of the weights that are left, at a time
SHARES = (0.6, 0.4, 0.2, 0.1, 0.05)  # of weights that stay, tried in this order


def shrink_by_magnitude(
    encoder: Encoder,
    selection: Corpus,
    settings: PruneSettings,
    *,
    unfinished: Unfinished,
    tell: Tell = lambda text: None,
) -> Shrunk:
    """The given model with zeros in the place of its smallest weights."""
    judge = Judge(encoder, selection, settings, tell)
    mask = WeightMask.full(encoder.model)
    steps = unfinished.steps.found()
    for _ in steps:
        mask = without_smallest(encoder.model, mask, share=_SHARE)
    if steps:
        tell(resumed(steps))
    while mask.kept:
        share = _SHARE if settings.weights is None else 1 - settings.weights
        less = without_smallest(encoder.model, mask, share=share)
        with weights_removed(encoder.model, less):
            score = judge.allows(encoder, weights_text(less))
        if score is None:
            break
        mask, steps = less, [*steps, Step("weights", (less.kept,), score)]
        if settings.weights is not None:
            break
        unfinished.steps.keep(steps)
    if not steps:
        raise judge.nothing_fits()
    smaller = _copy(encoder)
    with torch.no_grad():
        for name, weight in mask.check(smaller.model).items():
            weight.masked_fill_(gone_on(mask, name, weight.device), 0.0)
    intact, score = judge.intact.score, steps[-1].score
    return Shrunk(smaller, Cut(), intact, score, judge.tried, judge.allowed, mask)


def shrink_by_movement(
    encoder: Encoder,
    data: PruneData,
    settings: PruneSettings,
    *,
    unfinished: Unfinished,
    tell: Tell = lambda text: None,
    progress: OnStep = lambda step: None,
) -> Shrunk:
    """The given model, trained further while its weights go."""
    judge = Judge(encoder, data.selection, settings, tell)
    shares = SHARES if settings.weights is None else (settings.weights,)
    for share in shares:
        unfinished.memory(_named(share)).found()  # refused here, if it is of another run
    steps = unfinished.steps.found()
    best: _Moved | None = None
    if steps:
        tell(resumed(steps))
    for number, share in enumerate(shares):
        if number < len(steps) - 1:
            continue
        made = _moved(encoder, data, share, settings, unfinished, tell, progress)
        if number == len(steps) - 1:  # it was judged before the stop
            best = made
            continue
        score = judge.allows(made.encoder, weights_text(made.mask))
        if score is None:
            break
        best, steps = made, [*steps, Step("weights", (made.mask.kept,), score)]
        unfinished.steps.keep(steps)
        if number:
            unfinished.memory(_named(shares[number - 1])).forget()
    if best is None:
        raise judge.nothing_fits()
    intact, score = judge.intact.score, steps[-1].score
    return Shrunk(
        best.encoder, Cut(), intact, score, judge.tried, judge.allowed, best.mask, best.history
    )


class _Moved(NamedTuple):
    encoder: Encoder
    mask: WeightMask
    history: History


def _moved(
    encoder: Encoder,
    data: PruneData,
    share: float,
    settings: PruneSettings,
    unfinished: Unfinished,
    tell: Tell,
    progress: OnStep,
) -> _Moved:
    """One training; finished epochs are not done again."""
    memory = unfinished.memory(_named(share))
    training = data.training.take(settings.learn_limit, seed=settings.seed)
    rate = default_rate(find_start("pretrained"), encoder.shape.hidden)
    recipe = FinetuneSettings(epochs=settings.trained, learning_rate=rate, seed=settings.seed)
    done = memory.found() or 0
    if done < recipe.epochs:
        after = f", after epoch {done} of {recipe.epochs}" if done else ""
        left = f"{100 * share:g} % of the weights"
        tell(f"training on {len(training):,} examples until {left} stay{after}")
    smaller = _copy(encoder)
    movement = Movement(prunable_in_layers(smaller), share)
    history = recover(
        smaller,
        training,
        data.selection,
        recipe,
        memory=memory,
        progress=progress,
        movement=movement,
    )
    return _Moved(smaller, movement.chosen, history)


def _named(share: float) -> str:
    return f"{share:g}"


def _copy(encoder: Encoder) -> Encoder:
    model = copy.deepcopy(encoder.model)
    return Encoder(model, encoder.tokenizer, head=encoder.head, name=encoder.name)


def weights_text(mask: WeightMask) -> str:
    """`41 % of the weights`: those that are gone, of the matrices that may lose some."""
    gone = 100 * (1 - mask.share)
    return f"{gone:.{0 if gone < 98 else 2}f} % of the weights"
