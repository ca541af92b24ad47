"""Nulls of pruning: survivors of chance, labels of chance, and borders that lie at the truth."""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import test_importance_pruning as parts
import test_magnitude_pruning as weights

import bertology as bt
import planted as task
import planted_links
import planted_parts
from bertology.model.encoder import Encoder
from bertology.model.part_masks import PartImportances, PartMask
from bertology.studies.pruning.importance_pruning import ImportancePruning
from bertology.studies.pruning.magnitude_pruning import MagnitudePruning
from bertology.train import iterative_pruning
from bertology.train.iterative_pruning import PruneStep
from nulls import BORDER, FAILS, HOLDS, Null, at_the_truth, judged

_SEEDS = (3, 5, 10)


def random_survivors(seed: int) -> Mapping[str, str]:
    """As many heads are left with each seed, but which ones is chance."""
    share = (0.25, 0.5, 0.75)[seed % 3]
    result = parts.made_up(share, seeds=_SEEDS[seed // 3 % 3], draw=seed, fixed=True)
    return judged("importance-pruning", result)


def survivors_at_the_truth(seed: int) -> Mapping[str, str]:
    """Heads with chances of their own, from nearly equal to nearly sure."""
    rng = np.random.default_rng((seed, 1))
    middle, apart = rng.uniform(0.3, 0.6), (0.05, 0.2, 0.28)[seed % 3]
    chances = np.clip(middle + apart * rng.choice([-1.0, 1.0], parts.SHAPE), 0.02, 0.98)
    mlps = 0.4
    result = parts.made_up(
        chances, seeds=_SEEDS[seed // 3 % 3], mlps=mlps, draw=seed, by_layer=False
    )
    truth = {
        "head_kappa_in_layers": parts.kappa_of(chances),
        "heads_removed": 1 - float(chances.mean()),
        "layers_removed": float((np.prod(1 - chances, axis=1) * (1 - mlps)).mean()),
    }
    return at_the_truth("importance-pruning", result.evidence(), truth)


def random_weights(seed: int) -> Mapping[str, str]:
    """Which weights are left is chance, and how many differs from seed to seed."""
    result = weights.made_up(seeds=_SEEDS[seed % 3], same=0.0, spread=0.05, draw=seed)
    return judged("magnitude-pruning", result)


def weights_at_the_truth(seed: int) -> Mapping[str, str]:
    """How many weights are left differs from seed to seed by as much as is known."""
    share, spread = (0.4, 0.5, 0.6)[seed % 3], 0.02
    result = weights.made_up(seeds=_SEEDS[seed // 3 % 3], share=share, spread=spread, draw=seed)
    truth = {"survival_spread": spread, "weights_removed": 1 - share}
    return at_the_truth("magnitude-pruning", result.evidence(), truth)


def one_stops_early(seed: int) -> Mapping[str, str]:
    """One seed stops much earlier than the others; which heads and weights go is chance."""
    seeds = _SEEDS[seed % 3]
    stops = [2, *[3] * (seeds - 1)]
    by_parts = parts.made_up(0.25, seeds=seeds, draw=seed, fixed=True, stops=stops)
    by_size = weights.made_up(seeds=seeds, share=0.3, same=0.0, spread=0.0, draw=seed, stops=stops)
    return judged("importance-pruning", by_parts) | judged("magnitude-pruning", by_size)


def agreement_that_stops(seed: int) -> Mapping[str, str]:
    """Nearly the same heads and weights go with every seed, but seeds stop at different steps."""
    rng, seeds = np.random.default_rng((seed, 5)), (5, 10)[seed % 2]
    stops = rng.permutation([2, *rng.integers(2, 4, seeds - 2), 3]).tolist()
    chances = np.where(rng.permutation(16).reshape(parts.SHAPE) < 8, 0.97, 0.03)
    by_parts = parts.made_up(chances, seeds=seeds, draw=seed, stops=stops, same_path=True)
    by_size = weights.made_up(seeds=seeds, spread=0.0, same=0.95, draw=seed, stops=stops)
    return judged("importance-pruning", by_parts) | judged("magnitude-pruning", by_size)


def layers_alone(seed: int) -> Mapping[str, str]:
    """Layers keep very different numbers of heads, with every seed the same; which is chance."""
    counts = ((1, 3, 3, 1), (0, 4, 2, 1), (1, 1, 3, 3))[seed % 3]
    return judged(
        "importance-pruning",
        parts.random_in_layers(counts, seeds=_SEEDS[seed // 3 % 3], draw=seed),
    )


def one_head_left(seed: int) -> Mapping[str, str]:
    """A single head is left with each seed, a random one."""
    result = parts.made_up(1 / 16, seeds=_SEEDS[seed % 3], draw=seed, fixed=True)
    return judged("importance-pruning", result)


def random_importances(seed: int) -> Mapping[str, str]:
    """A task that is learnt, and a model that is really pruned, by importances that are drawn.

    Its score falls by chance, too: where heads carry the answer, those that do are always left in
    the last step that is kept, whatever importances are.
    """
    rng = np.random.default_rng((seed, 6))

    def drawn(self: iterative_pruning._ByImportance, mask: PartMask) -> PartImportances:
        return PartImportances(rng.random(mask.heads.shape), rng.random(mask.mlps.shape))

    def scored(
        self: iterative_pruning._Judged, encoder: Encoder, left: dict[str, int]
    ) -> PruneStep:
        labels = np.array(self.decide.targets, float)
        gone = 1 - left["heads"] / 12
        right = rng.random(len(labels)) < 0.97 - 0.5 * max(0.0, gone - rng.uniform(0.2, 0.6))
        said = np.where(right, labels, 1 - labels)
        score = float((said == labels).mean())
        return PruneStep(left, score, score, said.tolist())

    with (
        patch.object(iterative_pruning, "tuned_encoder", lambda *_, **__: planted_parts.encoder()),
        patch.object(iterative_pruning._ByImportance, "_importances", drawn),
        patch.object(iterative_pruning._Judged, "judged", scored),
        patch.object(ImportancePruning, "load_train", lambda *_: planted_parts.corpus(200, seed=9)),
    ):
        study = ImportancePruning(seeds=5, share=0.17, deciding=40)
        result = planted_links.ask(study, planted_parts.encoder(), planted_parts.corpus(40))
    return judged("importance-pruning", result)


def permuted_labels(seed: int) -> Mapping[str, str]:
    """Models are really trained and pruned, on labels that no text tells: no score to keep."""
    how = {"seeds": 3, "epochs": 1, "batch_size": 16, "learning_rate": 1e-3, "deciding": 60}
    with TemporaryDirectory() as folder:
        rng = random.Random(seed)
        for split, size in (("train", 300), ("validation", 100)):
            examples = task.corpus(size, seed=rng.randrange(10**6)).examples
            rows = [(e.text, rng.choice(task.TASK.labels)) for e in examples]
            with (Path(folder) / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([("text", "label"), *rows])
        knowing = Encoder(task.model(), task.tokenizer(), head="classification", name="planted")
        corpus = bt.load_corpus(folder)
        by_parts = planted_links.ask(ImportancePruning(**how), knowing, corpus)
        by_size = planted_links.ask(MagnitudePruning(**how), knowing, corpus)
    return judged("importance-pruning", by_parts) | judged("magnitude-pruning", by_size)


_PARTS = (
    "importance-pruning-is-unstable",
    "importance-pruning-beats-chance",
    "most-heads-can-go",
    "whole-layers-can-go",
)
_WEIGHTS = (
    "magnitude-pruning-is-stable",
    "magnitude-pruning-keeps-the-same-weights",
    "a-third-of-the-weights-can-go",
)

NULLS = (
    Null("survivors of chance", random_survivors, {"importance-pruning-beats-chance": HOLDS}),
    Null("border at the truth (survivors)", survivors_at_the_truth, dict.fromkeys(_PARTS, BORDER)),
    Null("weights of chance", random_weights, dict.fromkeys(_WEIGHTS[:2], HOLDS)),
    Null(
        "border at the truth (weights)",
        weights_at_the_truth,
        {_WEIGHTS[0]: BORDER, _WEIGHTS[2]: BORDER},
    ),
    Null(
        "one seed stops early, survivors of chance",
        one_stops_early,
        {_PARTS[1]: HOLDS, _WEIGHTS[0]: FAILS, _WEIGHTS[1]: HOLDS},
    ),
    Null(
        "the same survivors, seeds stop at different steps",
        agreement_that_stops,
        {_PARTS[0]: HOLDS, _WEIGHTS[0]: FAILS, _WEIGHTS[1]: FAILS},
    ),
    Null("layers differ, heads are chance", layers_alone, {_PARTS[1]: HOLDS}),
    Null("one head left", one_head_left, {_PARTS[1]: HOLDS}),
    Null("random importances of a learnt task", random_importances, {_PARTS[1]: HOLDS}),
    Null(
        "permuted labels, trained and pruned",
        permuted_labels,
        dict.fromkeys((*_PARTS, *_WEIGHTS), HOLDS),
    ),
)
