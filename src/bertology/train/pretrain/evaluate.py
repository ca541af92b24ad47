"""The loss and the accuracy of a model on text that it was not trained on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch

from bertology.errors import DataError
from bertology.train.fresh import Architecture
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Masking, Objective, Stage
from bertology.train.pretrain.masking import MaskableVocabulary
from bertology.train.pretrain.network import Network
from bertology.train.pretrain.pairings import find_pairing
from bertology.train.pretrain.rows import RowPlan, Rows, ShardText, fill
from bertology.train.pretrain.shards import HELD_OUT, Shard, Shards
from bertology.train.protocols import PretrainingBert

_ROWS = 4096  # at most; half a million tokens of length 128


def held_out(
    network: Network, shards: Shards, *, length: int, batch_tokens: int, seed: int = 0
) -> dict[str, float]:
    """`{loss}_loss` and `{loss}_accuracy` for every loss, on held-out rows and fixed masks.

    A loss that several stages share is measured as its first stage has it.
    """
    found: dict[str, float] = {}
    for number, stage in enumerate(network.stages):
        wanted = [n for n in stage.objective.losses if f"{n}_loss" not in found]
        if not wanted:
            continue
        sums = _summed(network, shards, number, length, batch_tokens, seed)
        for name in wanted:
            loss, correct, count = sums[name]
            found[f"{name}_loss"] = loss / max(count, 1)
            found[f"{name}_accuracy"] = correct / max(count, 1)
    return found


def check_held_out(
    stages: tuple[Stage, ...], shards: Shards, *, length: int, seed: int = 0
) -> None:
    """Refuse, before any training, held-out text that `held_out` could not measure on."""
    shard = shards.open(HELD_OUT)
    for stage in stages:
        _plan(shard, stage, length, _draw(_chance(seed)))


def evaluate_mlm(
    model: PretrainingBert,
    shards: Shards,
    *,
    length: int = 128,
    batch_tokens: int = 16384,
    token: str = "mask",
    pairing: str = "full-sentences",
    seed: int = 0,
) -> dict[str, float]:
    """Loss and accuracy on tokens masked 80/10/10, whatever the model was trained by.

    `model` is a BertForPreTraining or BertForMaskedLM. With the pairing `nsp` the accuracy of
    next-sentence prediction is measured too.
    """
    sentence = pairing == "nsp"
    objective = Objective(
        pairing, replace(Masking(), token=token), ("mlm", "sentence") if sentence else ("mlm",)
    )
    config = model.config
    size = Architecture(config.num_hidden_layers, config.num_attention_heads, config.hidden_size)
    network = Network(model, (Stage(objective),), size)
    length = min(length, config.max_position_embeddings)
    return held_out(network, shards, length=length, batch_tokens=batch_tokens, seed=seed)


def constant_accuracy(shards: Shards) -> float:
    """The masked-token accuracy that always naming the commonest token surely does not exceed.

    Its share of the held-out text, and three standard errors for which tokens happen to be masked.
    """
    tokens = shards.open(HELD_OUT).tokens
    share = float(np.bincount(tokens).max()) / len(tokens)
    masked = max(1.0, Masking().share * len(tokens))
    return min(1.0, share + 3 * float(np.sqrt(share * (1 - share) / masked)))


def _summed(
    network: Network, shards: Shards, stage: int, length: int, batch_tokens: int, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Loss (summed over predictions), right predictions, and predictions, for each loss."""
    device = next(network.parameters()).device
    pieces = MaskableVocabulary.of(shards, device)
    chance = _chance(seed)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    with _judging(network):
        for rows in _batches(network, shards, stage, length, batch_tokens, chance):
            for name, outcome in network(rows, pieces, chance, stage).items():
                count = float(outcome.count)
                sums[name][0] += float(outcome.loss) * count
                sums[name][1] += float(outcome.correct)
                sums[name][2] += count
    return {name: (a, b, c) for name, (a, b, c) in sums.items()}


def _batches(
    network: Network, shards: Shards, stage: int, length: int, batch_tokens: int, chance: Chance
) -> Iterator[Rows]:
    device = next(network.parameters()).device
    shard = shards.open(HELD_OUT)
    text = ShardText.of(shard, shards, device)
    draw = _draw(chance)
    plan = _plan(shard, network.stages[stage], length, draw)
    chosen = np.sort(draw.permutation(len(plan))[:_ROWS])
    step = max(1, batch_tokens // length)
    for start in range(0, len(chosen), step):
        index = chosen[start : start + step]
        yield fill(text, plan.take(index), index, length)


def _chance(seed: int) -> Chance:
    return Chance(seed)("held-out")


def _draw(chance: Chance) -> np.random.Generator:
    return np.random.default_rng(abs(chance("plan").key))


def _plan(shard: Shard, stage: Stage, length: int, draw: np.random.Generator) -> RowPlan:
    pairing = find_pairing(stage.objective.pairing)
    try:
        plan = pairing.plan(shard, length, draw)
    except DataError as error:
        raise DataError(
            f"The held-out text cannot be used. {error.problem}", hint=error.hint
        ) from error
    if not len(plan):
        raise DataError(
            f"The held-out text is too short for rows of {length} tokens ({pairing.name}).",
            hint="Give more text, a larger held-out share, or shorter rows.",
        )
    return plan


@contextmanager
def _judging(network: Network) -> Iterator[None]:
    was_training = network.model.training  # the network itself may be new
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(was_training)
