"""What fine-tuning starts from: four kinds of starting weights, over the same encoder.

The first three are those of Table 1 of "Revealing the Dark Secrets of BERT" (Kovaleva et al.
2019); the last one is ours. The classifier is always a new one, drawn by the seed: a head that the
encoder was fine-tuned with before is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.data.corpus import Task
from bertology.errors import CapabilityError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import load_pruned
from bertology.train.protocols import Classifier, Model

if TYPE_CHECKING:
    from bertology.train.ways.way import Way

# The least width, and the learning rate from there on. At 3e-4 a model of width 384 loses what it
# had learnt on some tasks (CoLA, all seeds), at 1e-4 on none. Width 192 learns too little at 1e-4
# (SST-2, STS-B), and at 3e-4 loses CoLA with more seeds than at 2e-4.
_RATES = ((512, 2e-5), (256, 1e-4), (0, 2e-4))
_HEAD_RATE = 1e-3
_SPREADS = ("initializer_range", "init_std")  # what configs call the spread of first weights
_USUAL_SPREAD = 0.02


@dataclass(frozen=True)
class Start:
    """Which weights a run starts with, and which of them are trained."""

    name: str
    title: str
    learns: str  # "all", "head" or "nothing"
    pretrained: bool = True


STARTS = {
    start.name: start
    for start in (
        Start("pretrained", "fine-tuned from the pre-trained weights", "all"),
        Start("random", "fine-tuned from normally distributed weights", "all", pretrained=False),
        Start("frozen", "pre-trained, not fine-tuned, random head", "nothing"),
        Start("frozen-features", "pre-trained and frozen, trained head (not in the paper)", "head"),
    )
}


def find_start(name: str) -> Start:
    """The start called `name`; an UnknownNameError offers the nearest."""
    if name not in STARTS:
        raise UnknownNameError("start", name, STARTS)
    return STARTS[name]


def default_rate(start: Start, hidden: int, ways: Iterable[Way] = ()) -> float:
    """A learning rate that suits most tasks: small models, and heads alone, need a higher one.

    So do ways that train few weights.
    """
    if start.learns == "head":
        return _HEAD_RATE
    if usual := [way.usual_rate for way in ways if way.usual_rate is not None]:
        return max(usual)
    return next(rate for width, rate in _RATES if hidden >= width)


def begin(encoder: Encoder, task: Task, start: Start, *, seed: int) -> Classifier:
    """A classifier of texts, or of answers, over a copy of the encoder's weights, on its device.

    New weights, which for the random start are all of them, are drawn by `seed`: matrices from the
    normal distribution with the spread that the config names, biases 0, scales of LayerNorms 1.
    """
    model, new = _classifier_over(encoder, task)
    draw_weights(model, new if start.pretrained else None, seed=seed)
    if start.learns == "head":
        head = set(new)
        for name, weight in model.named_parameters():
            weight.requires_grad_(name in head)
    return model.to(encoder.device).eval()


def new_weights(encoder: Encoder, model: Classifier) -> frozenset[str]:
    """Which weights of a classifier that `begin` made the encoder did not give."""
    drawn = set(encoder.new_weights)
    prefix = f"{encoder.model.base_model_prefix}."
    given = {f"{prefix}{name}" for name in encoder.base.state_dict()} - drawn
    given -= {f"{prefix}{name}" for name in drawn}
    return frozenset(name for name, _ in model.named_parameters() if name not in given)


def draw_heads(
    encoder: Encoder, task: Task, *, seeds: Sequence[int]
) -> tuple[Classifier, list[dict[str, Tensor]]]:
    """The classifier that `begin` gives without training, and its new weights for each seed."""
    model, new = _classifier_over(encoder, task)
    weights, heads = dict(model.named_parameters()), []
    for seed in seeds:
        draw_weights(model, new, seed=seed)
        heads.append({name: weights[name].detach().clone().to(encoder.device) for name in new})
    return model.to(encoder.device).eval(), heads


def _classifier_over(encoder: Encoder, task: Task) -> tuple[Classifier, list[str]]:
    """The classifier, and the names of the weights that the encoder did not give."""
    import transformers

    config = copy.deepcopy(encoder.config)
    chooses = task.kind == "multiple-choice"
    config.num_labels = 1 if chooses else max(1, len(task.labels))
    # Copies: transformers would use the very tensors, and training would change the encoder.
    held = {n: w.detach().cpu() for n, w in encoder.base.state_dict().items()}
    given = {n: (w.float() if w.is_floating_point() else w).clone() for n, w in held.items()}
    prefix = f"{encoder.model.base_model_prefix}."
    for name in encoder.new_weights:  # drawn when the encoder was loaded, so not pre-trained
        given.pop(name.removeprefix(prefix), None)
    auto = (
        transformers.AutoModelForMultipleChoice
        if chooses
        else transformers.AutoModelForSequenceClassification
    )
    try:
        with torch.random.fork_rng(devices=[]):
            # In bfloat16, as an encoder may be, small updates of weights would be rounded away.
            model, info = load_pruned(
                None,
                auto,
                config=config,
                state_dict=given,
                dtype=torch.float32,
                output_loading_info=True,
            )
    except ValueError as error:
        if "Unrecognized configuration class" not in str(error):
            raise
        lacking = "head for multiple choice" if chooses else "classifier"
        raise _unfit(encoder, f"transformers has no {lacking} for them") from error
    new = sorted(info["missing_keys"])
    body = [n for n in new if n.startswith(prefix) and "pooler" not in n]
    if body:
        raise _unfit(encoder, f"their classifier needs more than the encoder, {body[0]} …")
    return model, new


def _unfit(encoder: Encoder, why: str) -> CapabilityError:
    return CapabilityError(
        f"{encoder.family.title} models cannot be fine-tuned here: {why}.",
        hint="See all families with: bertology families",
    )


def draw_weights(model: Model, names: Iterable[str] | None, *, seed: int) -> None:
    """Draw the weights of these names anew, in the order in which the model has them."""
    wanted = None if names is None else set(names)
    generator = torch.Generator().manual_seed(seed)
    spread = next(
        (float(v) for n in _SPREADS if (v := getattr(model.config, n, None))), _USUAL_SPREAD
    )
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if wanted is not None and name not in wanted:
                continue
            if weight.dim() > 1:
                # Drawn on the CPU, so that they are the same on every device.
                drawn = weight if weight.device.type == "cpu" else torch.empty(weight.shape)
                weight.copy_(drawn.normal_(0.0, spread, generator=generator))
            else:
                weight.fill_(0.0 if name.endswith("bias") else 1.0)
