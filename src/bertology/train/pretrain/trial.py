"""One small pre-training run and the scores of its model: the unit that studies compare.

All models are scored alike, whatever they were trained by: held-out tokens masked 80/10/10 in rows
of full sentences, minimal pairs by pseudo-log-likelihood, a task after fine-tuning.

Embedding normalisation is one of the things that are compared: Zhou et al. (2019) observe that the
values of the last [CLS] embedding are not centred, and standardise them by the mean and the spread
over the training texts, before the pooler. The pooler begins with a linear map, so its weights can
do the same: W (x - μ) / σ + b = W' x + b' with W' = W / σ and b' = b - W' μ. The model stays an
ordinary BERT; fine-tuning starts where the explicit form would, and learns W' from there.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bertology.data.corpus import Corpus, Field
from bertology.model.encoder import Encoder
from bertology.model.loading.models import find_device
from bertology.model.masked_lm.scoring import compare_pairs
from bertology.train.encoded import encode, task_of
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.pretrain.config import Pretraining
from bertology.train.pretrain.cost import TRIAL_MEASURES, body_parameters, training_flops
from bertology.train.pretrain.evaluate import evaluate_mlm
from bertology.train.pretrain.log import LogEntry, StepReport
from bertology.train.pretrain.loop import pretrain
from bertology.train.pretrain.shards import Shards
from bertology.train.protocols import Bert, BertClassifier, PretrainingBert, Tokenizer
from bertology.train.recorded import gains_by_recording

_PREDICTS_TOKENS = {"mlm", "order", "permutation"}  # losses that train the output layer
_TOKENS_PER_BATCH = 4096
_LEAST = 1e-6  # a value that never varies is centred and left at its size


class Tuning(NamedTuple):
    """A task to fine-tune on; a plain (train, validation) is enough."""

    train: Corpus
    validation: Corpus
    settings: FinetuneSettings = FinetuneSettings()
    pooler: str = "kept"  # as it was pre-trained; "fresh"; or "normalised", which is fresh too


@dataclass(frozen=True)
class Trial:
    """A model that was pre-trained, the log of its training, and its scores."""

    model: PretrainingBert
    log: list[LogEntry]
    numbers: dict[str, float]
    """The `TRIAL_MEASURES`, NaN for what was not asked for or cannot be measured for such a model;
    `seconds` (of training), `parameters`, `body_parameters` and `flops_per_token` (`costs`)."""


def run_trial(
    recipe: Pretraining,
    shards: Shards,
    tokenizer: Tokenizer,
    *,
    device: str | torch.device = "auto",
    pairs: Corpus | None = None,
    task: Tuning | tuple[Corpus, Corpus] | None = None,
    progress: Callable[[StepReport], None] = lambda report: None,
) -> Trial:
    """Pre-train by the recipe and score the model; its seed is also that of the fine-tuning."""
    trained = pretrain(recipe, shards, tokenizer, device=str(device), progress=progress)
    model = trained.model.to(find_device(str(device)))
    found = measure_model(model, recipe, shards, tokenizer, pairs=pairs, task=task)
    numbers = found | {"seconds": trained.seconds} | costs(model, recipe)
    return Trial(model, trained.log, numbers)


def measure_model(
    model: PretrainingBert,
    recipe: Pretraining,
    shards: Shards,
    tokenizer: Tokenizer,
    *,
    pairs: Corpus | None = None,
    task: Tuning | tuple[Corpus, Corpus] | None = None,
) -> dict[str, float]:
    """The `TRIAL_MEASURES` of a model that was trained by the recipe."""
    found = dict.fromkeys(TRIAL_MEASURES, math.nan)
    token = recipe.stages[0].objective.masking.token
    # A discriminator never learns to name a token; a number for it would be made up.
    if any(_PREDICTS_TOKENS & set(stage.objective.losses) for stage in recipe.stages):
        length = recipe.phases[-1].length
        scores = evaluate_mlm(model, shards, length=length, token=token)
        found |= {name: scores[name] for name in ("mlm_loss", "mlm_accuracy")}
        if pairs is not None:
            found["pair_accuracy"] = pair_accuracy(model, tokenizer, pairs, token=token)
    if task is not None:
        found["task_score"] = task_score(model, tokenizer, Tuning(*task), seed=recipe.seed)
    return found


def costs(model: PretrainingBert, recipe: Pretraining) -> dict[str, float]:
    """`parameters` (of the model that is kept), `body_parameters` and `flops_per_token`.

    Operations are those of training by formula (`cost.training_flops`), averaged over the phases.
    """
    size = recipe.model
    flops = sum(
        phase.share
        * training_flops(
            phase.layers or size.layers,
            size.hidden,
            length=phase.length,
            vocab_size=model.config.vocab_size,
            share=recipe.stages[0].objective.masking.share,
        )
        for phase in recipe.phases
    )
    return {
        "parameters": float(sum(p.numel() for p in model.parameters())),
        "body_parameters": float(body_parameters(size.layers, size.hidden)),
        "flops_per_token": float(flops),
    }


def pair_accuracy(
    model: PretrainingBert, tokenizer: Tokenizer, pairs: Corpus, *, token: str = "mask"
) -> float:
    """The share of minimal pairs of which the good sentence is the likelier one.

    Pairs that are longer than the model's rows are left out; NaN if none is left.
    """
    pairs.require(Field.TEXT, Field.CONTRAST)
    if token == "unk":
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.mask_token = tokenizer.unk_token
    encoder = Encoder(model, tokenizer, head="pretraining", name="trial")
    good = [e.text for e in pairs]
    bad = [str(e.get(Field.CONTRAST)) for e in pairs]
    limit = encoder.max_length or math.inf
    sizes = [
        [len(ids) for ids in tokenizer(side, padding=False, verbose=False)["input_ids"]]
        for side in (good, bad)
    ]
    kept = [i for i, both in enumerate(zip(*sizes, strict=True)) if max(both) <= limit]
    if not kept:
        return math.nan
    better = compare_pairs(encoder, [good[i] for i in kept], [bad[i] for i in kept])
    # A tie is no preference: half of it counts.
    return float(np.mean((better > 0) + 0.5 * (better == 0)))


def task_score(
    model: PretrainingBert, tokenizer: Tokenizer, task: Tuning, *, seed: int = 0
) -> float:
    """The task's main score after the body was fine-tuned with a fresh classification head."""
    classifier = classifier_on(model, task, seed=seed)
    if task.pooler == "normalised":
        normalise_cls(classifier, tokenizer, task.train)
    settings = replace(task.settings, seed=seed, recorded=gains_by_recording(classifier))
    history = finetune(classifier, tokenizer, task.train, task.validation, settings=settings)
    return float(next(iter(history.scores.values())))


def classifier_on(model: PretrainingBert, task: Tuning, *, seed: int = 0) -> BertClassifier:
    """A sequence classifier whose body is a copy of the model's."""
    import transformers

    learnt_task = task_of(task.train)
    config = copy.deepcopy(model.config)
    config.num_labels = max(1, len(learnt_task.labels))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        classifier: BertClassifier = transformers.BertForSequenceClassification(config)
    body = {
        name: value
        for name, value in model.bert.state_dict().items()
        if task.pooler == "kept" or not name.startswith("pooler.")
    }
    classifier.bert.load_state_dict(body, strict=task.pooler == "kept")
    return classifier.to(model.device).eval()


def normalise_cls(model: BertClassifier, tokenizer: Tokenizer, corpus: Corpus) -> None:
    """Let the pooler of a sequence classifier see standardised [CLS] embeddings, in place."""
    body = model.base_model
    mean, spread = cls_statistics(body, tokenizer, corpus)
    fold_standardisation(body.pooler.dense, mean, spread)


def cls_statistics(body: Bert, tokenizer: Tokenizer, corpus: Corpus) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (hidden,) of the last [CLS] embedding over the corpus."""
    encoded = encode(corpus, tokenizer, body.config.max_position_embeddings)
    total = square = torch.zeros(body.config.hidden_size, dtype=torch.float64)
    was_training = body.training
    body.eval()
    try:
        with torch.no_grad():
            for chosen in encoded.in_order_of_length(_TOKENS_PER_BATCH):
                inputs, _ = encoded.batch(chosen, body.device)
                states = body(**inputs).last_hidden_state[:, 0].double().cpu()  # (B, hidden)
                total = total + states.sum(0)
                square = square + (states**2).sum(0)
    finally:
        body.train(was_training)
    mean = total / len(encoded)
    spread = (square / len(encoded) - mean**2).clamp(min=0).sqrt()
    return mean, torch.where(spread < _LEAST, 1.0, spread)


def fold_standardisation(linear: nn.Linear, mean: Tensor, spread: Tensor) -> None:
    """Change a linear map in place so that it does to x what it did to (x - mean) / spread."""
    with torch.no_grad():
        weight = linear.weight.double()
        where = weight.device
        scaled = weight / spread.double().to(where)  # (out, in)
        linear.bias.sub_(scaled @ mean.double().to(where))
        linear.weight.copy_(scaled)
