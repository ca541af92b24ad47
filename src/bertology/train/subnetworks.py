"""Good, random and bad subnetworks of the same size, each trained again from the first weights.

    masks = found_masks(job, folder=context.trained)      # a good one, and its rivals
    said = retrained(job, masks["bad"], seed)             # a Classifier

Masks of weights are held at zero during training. Heads and MLPs are cut out before it, so that
what is trained, saved and timed is a smaller model.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.model.nested_masks import NestedWeights
from bertology.model.numbering import layers_without_mlp
from bertology.model.part_masks import PartMask
from bertology.model.rival_masks import bad_parts, bad_weights, random_parts, random_weights
from bertology.model.weight_masks import WeightMask, weights_held_at_zero
from bertology.train.encoded import encode, task_of
from bertology.train.evaluate import predict
from bertology.train.fit import row_limit
from bertology.train.iterative_pruning import Mask, PruningJob
from bertology.train.protocols import Classifier
from bertology.train.speed import measure_speeds
from bertology.train.starts import STARTS, begin
from bertology.train.tuning import TuningJob, answers_of, tune

Tell = Callable[[float], None]


def rivals(good: Mask, encoder: Encoder, *, seed: int) -> dict[str, Mask]:
    """The good mask, and a random and a bad one of its size."""
    if isinstance(good, WeightMask):
        return {
            "good": good,
            "random": random_weights(good, seed=seed),
            "bad": bad_weights(good, seed=seed),
        }
    full = PartMask.full(encoder)
    return {
        "good": good,
        "random": random_parts(good, full, seed=seed),
        "bad": bad_parts(good, full, seed=seed),
    }


def retrained(
    job: PruningJob, mask: Mask, *, start: str = "pretrained", tell: Tell = lambda done: None
) -> Classifier:
    """Train what a mask leaves, as the whole model was trained."""
    tuning = replace(job.tuning, start=STARTS[start])

    def held(model: Classifier) -> AbstractContextManager[object]:
        assert isinstance(model, torch.nn.Module)
        if isinstance(mask, WeightMask):
            return weights_held_at_zero(model, mask)
        _hold_closed_mlps(model)
        return nullcontext()

    if isinstance(mask, PartMask):
        tuning = replace(tuning, encoder=mask.cut(tuning.encoder))
    model, _ = tune(tuning, held=held, progress=lambda step: tell(step.done / step.total))
    return model


def _hold_closed_mlps(model: Classifier) -> None:
    """A cut MLP still has the bias of its output, at zero: it is not to be learnt."""
    encoder = Encoder(model, head="classification")
    path = encoder.family.stacks[encoder.family.main_stack].mlp
    for layer in layers_without_mlp(encoder.config):
        assert path is not None
        bias = encoder.module(path, layer).bias
        if bias is not None:
            bias.requires_grad_(False)


def answers_on(model: Classifier, tuning: TuningJob, corpus: Corpus) -> Floats:
    """What a model says of data that neither trained it nor decided anything."""
    return answers_of(model, replace(tuning, validation=corpus))


@dataclass(frozen=True)
class Cut:
    """A model that was cut, beside the whole one."""

    speed: float  # times as many examples in a second
    memory: float  # the share of bytes that its weights take
    reloaded: bool  # whether it gives the same answers after it was saved and loaded


def measure_cut(model: Classifier, tuning: TuningJob, corpus: Corpus) -> Cut:
    """Save it, load it again, and time it beside the whole model, whose weights do not matter."""
    encoder, task = tuning.encoder, task_of(corpus)
    whole = begin(encoder, task, tuning.start, seed=0)
    limit = row_limit(model, encoder.tokenizer, tuning.settings.max_length)
    encoded = encode(corpus, encoder.tokenizer, limit)
    with TemporaryDirectory(prefix="bertology-cut-") as folder:
        model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        back = Encoder.load(str(Path(folder)), head="classification", device=str(encoder.device))
    same = np.array_equal(predict(model, encoded, task), predict(back.model, encoded, task))
    pair = [
        Encoder(one, encoder.tokenizer, head="classification", name=encoder.name)
        for one in (whole, model)
    ]
    slow, fast = measure_speeds(pair, encoded)
    sizes = [sum(w.numel() * w.element_size() for w in one.model.parameters()) for one in pair]
    return Cut(fast.examples_per_second / slow.examples_per_second, sizes[1] / sizes[0], bool(same))


def body_planes(masks: NestedWeights, model: Encoder) -> tuple[NDArray[np.uint8], int]:
    """(plane, byte): the step in which each weight of the encoder went, as packed bits of it.

    Without the head, which differs from task to task; and how many weights they are of.
    """
    prefix, shapes = f"{model.model.base_model_prefix}.", masks.whole.shapes
    names = [n for n in shapes if n.startswith(prefix) and "pooler" not in n]
    found = [np.concatenate([plane.bits[n] for n in names]) for plane in masks.planes]
    length = sum(len(masks.whole.bits[n]) for n in names)
    size = sum(int(np.prod(shapes[n])) for n in names)
    return np.stack(found) if found else np.zeros((0, length), np.uint8), size
