"""How often weight noise in the place of fine-tuning bears out a claim, and bounds of rare changes.

1. A small model gets noise on all weights; `attention-change` and `token-classes` judge it as if it
   had been fine-tuned. Without the noise control the claims rest on the interval over texts alone.
2. Numbers in place of models: noisy copies differ by 1, and their means over all examples by `own`
   for other examples. The trained model is one more copy (error: the claim is borne out, or its
   opposite is) or larger by 4 (power), with 5 copies of all examples and with 20 of a quarter each;
   also at the level that the first of seven tasks needs (99.29 %).
3. Of 144 heads each has a large change in 3 % of the texts. A sample is missed if the simultaneous
   bounds of any head miss the truth.

    python benchmarks/noise_control.py [--repeats 100] [--only-copies]
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import planted_links as planted
import tiny
from bertology.model.encoder import Encoder
from bertology.results.rules import Outcome
from bertology.stats import mean_interval
from bertology.stats.partial_means import partial_means
from bertology.studies.attention.attention_change import AttentionChange
from bertology.studies.attention.token_classes import TokenClasses
from bertology.studies.designs.noise import beyond_noise


def with_noise(model: torch.nn.Module, share: float, seed: int) -> torch.nn.Module:
    """Every weight moved at random by this share of the spread of its matrix."""
    changed, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in changed.parameters():
            noise = torch.randn(weights.shape, generator=generator)
            weights.add_(noise * weights.square().mean().sqrt() * share)
    return changed


def of_layers(repeats: int, share: float) -> Counter[str]:
    """Noise judged by `attention-change`."""
    found = Counter[str]()
    for seed in range(repeats):
        model = tiny.model("bert", seed=seed % 10)
        start, moved = (
            Encoder(m, planted.tokenizer(), name=n)
            for m, n in ((model, "before"), (with_noise(model, share, seed), "after"))
        )
        study = AttentionChange(before="before", resamples=100)
        result = planted.ask(study, moved, planted.corpus(60), before=start)
        profile = result.table("layers")["change"].to_numpy()
        found["without control"] += bool(profile[-2:].mean() - profile[:-2].mean() > 0.001)
        found["held"] += any(v.outcome is Outcome.HOLDS for v in result.verdicts())
    return found


def of_classes(repeats: int, share: float) -> Counter[str]:
    """Noise judged by `token-classes`."""
    found = Counter[str]()
    for seed in range(repeats):
        model = planted.model(planted.NOUNS, planted.SEPARATOR)  # some heads attend to nouns
        start, moved = (
            Encoder(m, planted.tokenizer(), name=n)
            for m, n in ((model, "before"), (with_noise(model, share, seed), "after"))
        )
        study = TokenClasses(other="before", resamples=100)
        result = planted.ask(study, moved, planted.corpus(60), other=start)
        rows = result.table()
        nouns = rows[rows["class"] == "noun"]
        found["without control"] += bool((nouns["change_low"] > 0.001).any())
        outcome = {v.claim.id.rpartition("-")[2]: v.outcome for v in result.verdicts()}
        found["held"] += outcome["nouns"] is Outcome.HOLDS
    return found


def of_copies(repeats: int, copies: int, own: float, more: float) -> list[float]:
    """How often the claim is borne out: at 95 %, at the strict level; and its opposite at 95 %."""
    rng, n, told = np.random.default_rng(0), 200, np.zeros(3)
    size = n * min(copies, 5) // copies
    for _ in range(repeats):
        # Noise changes 20 by itself, so that the change is surely there: what matters is how much.
        moved = 20 + rng.normal(size=(copies + 1, 1)) + rng.normal(0, own * n**0.5, (copies + 1, n))
        trained = moved[0] + more
        read = [rng.permutation(n)[:size] for _ in range(copies)]
        pairs = [(trained[r].mean(), moved[1 + i, r].mean()) for i, r in enumerate(read)]
        found = beyond_noise(mean_interval(trained), *np.transpose(pairs))
        strict = found.at_level(1 - 0.05 / 7)
        told += [found.surely_there, strict.surely_there, found.high < 0]
    return (told / repeats).tolist()


def rare_changes(repeats: int, n: int, support: tuple[float, float] | None) -> float:
    rng, missed = np.random.default_rng(0), 0
    truth = 0.03 * 0.5 + 0.97 * 0.01
    for seed in range(repeats):
        values = np.where(rng.random((144, n)) < 0.03, 0.5, 0.01)
        found = partial_means(values, support=support, resamples=200, seed=seed)
        missed += bool(((found.simultaneous_low > truth) | (found.simultaneous_high < truth)).any())
    return missed / repeats


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--only-copies", action="store_true")
    asked = parser.parse_args()
    repeats = asked.repeats
    print("| own | copies | error | its opposite | power | power at 99.29 % |\n" + "|---" * 6 + "|")
    for own in (0.1, 0.3, 0.5, 1.0):
        for copies in (5, 20):
            wrong, _, opposite = of_copies(20 * repeats, copies, own, 0)
            right, strict, _ = of_copies(20 * repeats, copies, own, 4)
            cells = " | ".join(f"{rate:.3f}" for rate in (wrong, opposite, right, strict))
            print(f"| {own} | {copies} | {cells} |", flush=True)
    if asked.only_copies:
        return
    print("\n| texts | missed, bounds from what was seen | missed, changes are at most 1 |")
    print("|---|---|---|")
    for n in (200, 1000):
        rates = [rare_changes(repeats, n, support) for support in (None, (0.0, 1.0))]
        print(f"| {n} | {rates[0]:.2f} | {rates[1]:.2f} |", flush=True)
    print("\n| noise | claim | without control | with it |\n|---|---|---|---|")
    for share in (0.05, 0.1):
        for name, judged in (("last two layers", of_layers), ("nouns rise", of_classes)):
            found = judged(repeats, share)
            alone, held = (found[k] / repeats for k in ("without control", "held"))
            print(f"| {share:.0%} | {name} | {alone:.2f} | {held:.2f} |", flush=True)


if __name__ == "__main__":
    main()
