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
from bertology.train.compress.work import Work
from bertology.train.movement import Movement
from bertology.train.prune import Progress, Shrunk, Step, shrunk
from bertology.train.prune_judge import Judge

_SHARE = 0.1  # of the weights that are left, at a time
SHARES = (0.6, 0.4, 0.2, 0.1, 0.05)  # of weights that stay, tried in this order


def shrink_by_magnitude(judge: Judge, progress: Progress) -> Shrunk:
    """The judge's model itself, with zeros in the place of its smallest weights."""
    model, asked = judge.given.model, judge.settings.weights
    mask, steps = WeightMask.full(model), progress.found(judge.tell)
    for _ in steps:
        mask = without_smallest(model, mask, share=_SHARE)
    while mask.kept:
        less = without_smallest(model, mask, share=_SHARE if asked is None else 1 - asked)
        with weights_removed(model, less):
            score = judge.allows(judge.given, weights_text(less.share))
        if score is None:
            break
        mask, steps = less, [*steps, Step("weights", (less.kept,), score)]
        if asked is not None:
            break
        progress.keep(steps)
    found = shrunk(judge.given, steps, judge, mask=mask)
    with torch.no_grad():
        for name, weight in mask.check(model).items():
            weight.masked_fill_(gone_on(mask, name, weight.device), 0.0)
    return found


def shrink_by_movement(work: Work, training: Corpus, judge: Judge, progress: Progress) -> Shrunk:
    """The judge's model, trained further while its weights go."""
    asked, epochs = judge.settings.weights, judge.settings.trained
    shares = SHARES if asked is None else (asked,)
    steps = progress.found(judge.tell)
    best: tuple[Encoder, WeightMask] | None = None
    for number, share in enumerate(shares):
        if number < len(steps) - 1:
            work.trained(epochs)  # before the stop; the next share was good enough, too
            continue
        judge.tell(f"training until {100 * share:g} % of the weights stay")
        smaller = work.copy()
        movement = Movement(prunable_in_layers(smaller), share)
        work.train_on(smaller, name=f"{share:g}", epochs=epochs, on=training, movement=movement)
        mask = movement.chosen
        if number >= len(steps):  # else it was judged before the stop
            score = judge.allows(smaller, weights_text(mask.share))
            if score is None:
                break
            steps = [*steps, Step("weights", (mask.kept,), score)]
            progress.keep(steps)
            if number:
                _forget(work, shares[number - 1])
        best = smaller, mask
    if best is None:
        _forget(work, shares[0])  # with another limit it is another run
        raise judge.nothing_fits()
    return shrunk(best[0], steps, judge, mask=best[1])


def _forget(work: Work, share: float) -> None:
    if memory := work.memory(f"{share:g}"):
        memory.forget()


def weights_text(left: float) -> str:
    """`41 % of the weights`: those that are gone, of the matrices that may lose some."""
    gone = 100 * (1 - left)
    return f"{gone:.{0 if gone < 98 else 2}f} % of the weights"
