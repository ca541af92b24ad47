"""Error and power of every rule about ablations, by simulated sweeps that go through the studies.

An intact model answers nine in ten of N examples right. Without a head, the logits of a share of
examples are drawn anew, from the distribution that the intact model's were drawn from: scores and
losses change, and neither gets better or worse on average. All heads share the intact model's
logits, so that they go astray on the same examples. Into such a sweep an effect may be planted.
`labels at random`: the model knows nothing of the labels. Then claims must not be judged.

    python benchmarks/ablation_power.py [--repeats 100] [--examples 400] [--scenes nothing …]
    python benchmarks/ablation_power.py --real LOGITS.npz [--repeats 200]

`--real`: tests of flips, of losses by signs and of mean losses, on examples drawn from a real sweep
(`logits`, variants by examples by classes, the intact model first, and `labels`), with every head's
effect taken out.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Collection, Iterator

import numpy as np
import xarray as xr
from machine import describe

from bertology.results.comparison import example_losses
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.answer_flips import flip_tests
from bertology.stats.multiplicity import max_statistics, step_down
from bertology.stats.paired import simultaneous
from bertology.studies.ablation.head_ablation import HeadAblation
from bertology.studies.ablation.head_sets import HeadSets

LAYERS, HEADS, SIZES, SETS = 12, 12, (2, 4, 8), 10
PLANTED = 5  # the head (and layer) that has the effect
# What is drawn anew without a head, without a layer, and without sets of two, four and eight.
SHARES = {"head": (0.02, 0.05, 0.15), "layer": (0.4,), "set": (0.1, 0.2, 0.3)}

Plant = Callable[[np.ndarray, np.ndarray, np.random.Generator], None]


class Sweep:
    """Log-odds of the right answer (variant, example), the intact model first.

    `middle` 2.6 makes nine answers in ten right, 0 half of them. `positive` is the share of
    examples of the second class.
    """

    def __init__(
        self,
        seed: int,
        examples: int,
        *,
        middle: float = 2.6,
        metric: str = "accuracy",
        positive: float = 0.5,
    ) -> None:
        self.rng, self.metric = np.random.default_rng(seed), metric
        self.middle = self.rng.normal(middle, 1.9, examples)
        self.labels = (self.rng.random(examples) < positive).astype(int)
        self.intact = self._drawn()

    def _drawn(self) -> np.ndarray:
        return self.middle + 0.5 * self.rng.normal(size=self.middle.size)

    def without(self, share: float) -> np.ndarray:
        """The odds without a head that does nothing on average."""
        anew = self.rng.random(self.middle.size) < share
        return np.where(anew, self._drawn(), self.intact)

    def part(self, odds: list[np.ndarray], names: list[str], tables: list[str]) -> xr.Dataset:
        """As a study measures it."""
        signed = np.stack([self.intact, *odds]) * (2 * self.labels - 1)
        return xr.Dataset(
            {
                "logits": (
                    ("variant", "example", "output"),
                    np.stack([np.zeros_like(signed), signed], axis=-1).astype(np.float32),
                ),
                "label": ("example", self.labels.astype(float)),
            },
            coords={
                "variant": ["intact", *names],
                "table": ("variant", ["", *tables]),
                "example": range(self.labels.size),
            },
            attrs={"kind": "classification", "metric": self.metric},
        )


def ablated(
    sweep: Sweep,
    plant: Plant | None,
    *,
    planted: Collection[int] = (PLANTED,),
    task: str = "simulated",
) -> Result:
    """The heads in `planted` have the effect, and one layer."""
    heads = [sweep.without(SHARES["head"][h % 3]) for h in range(LAYERS * HEADS)]
    layers = [sweep.without(SHARES["layer"][0]) for _ in range(LAYERS)]
    if plant is not None:
        for odds in (*(heads[at] for at in planted), layers[PLANTED]):
            plant(odds, sweep.intact, sweep.rng)
    names = [f"{i}.{h}" for i in range(LAYERS) for h in range(HEADS)]
    names += [f"{i}.*" for i in range(LAYERS)]
    tables = ["heads"] * len(heads) + ["layers"] * len(layers)
    part = sweep.part([*heads, *layers], names, tables)
    study = HeadAblation(resamples=400, first_order=False)
    about = Provenance(
        "head-ablation",
        1,
        study.parameters,
        {"name": "simulated", "fingerprint": "0"},
        {"name": task, "fingerprint": task},
    )
    return study.conclude({f"examples-0-{sweep.labels.size}": part}, about)


def with_sets(sweep: Sweep, plant: Plant | None) -> Result:
    odds, sizes = [], []
    for size, share in zip(SIZES, SHARES["set"], strict=True):
        for at in range(SETS):
            odds.append(sweep.without(share))
            sizes.append(size)
            if plant is not None and at < SETS // 2:
                plant(odds[-1], sweep.intact, sweep.rng)
    names = [f"{size}-{at}" for at, size in enumerate(sizes)]
    part = sweep.part(odds, names, ["sets"] * len(odds)).assign_coords(
        size=("variant", [0, *sizes])
    )
    part = part.assign_attrs(heads_of_a_layer=HEADS, heads_in_all=LAYERS * HEADS)
    study = HeadSets(resamples=400, sizes=SIZES, sets=SETS)
    about = Provenance("head-sets", 1, study.parameters, {"name": "simulated", "fingerprint": "0"})
    return study.conclude({f"examples-0-{sweep.labels.size}": part}, about)


def turn_wrong(odds: np.ndarray, intact: np.ndarray, rng: np.random.Generator) -> None:
    """One right answer in forty turns wrong, and nothing else changes."""
    odds[:] = intact
    right = rng.permutation(np.flatnonzero(intact > 0))[: intact.size // 40]
    odds[right] = -odds[right]


def turn_right(odds: np.ndarray, intact: np.ndarray, rng: np.random.Generator) -> None:
    """As many wrong answers turn right."""
    odds[:] = intact
    wrong = rng.permutation(np.flatnonzero(intact < 0))[: intact.size // 40]
    odds[wrong] = -odds[wrong]


def doubt(odds: np.ndarray, intact: np.ndarray, rng: np.random.Generator) -> None:
    """All answers become a little less probable."""
    odds -= 0.1


SCENES: dict[str, tuple[Plant | None, float]] = {
    "nothing": (None, 2.6),
    "one answer in 40 turns wrong": (turn_wrong, 2.6),
    "one answer in 40 turns right": (turn_right, 2.6),
    "odds fall by 0.1": (doubt, 2.6),
    "labels at random": (None, 0.0),
}


def verdicts(
    scenes: list[str], repeats: int, examples: int
) -> Iterator[tuple[str, str, Counter[str]]]:
    """By scene and claim: how often it came out how."""
    for scene in scenes:
        plant, middle = SCENES[scene]
        found: dict[str, Counter[str]] = {}
        for seed in range(repeats):
            sweep = Sweep(seed, examples, middle=middle)
            for result in (ablated(sweep, plant), with_sets(sweep, plant)):
                for verdict in result.verdicts():
                    name = verdict.claim.id.partition(".")[2]
                    found.setdefault(name, Counter())[str(verdict.outcome)] += 1
                for table in ("heads", "layers"):
                    for column in ("sure", "loss_sure") if table in result.tables else ():
                        rows = result.tables[table][column].to_numpy()
                        counts = found.setdefault(f"{table}: {column}", Counter())
                        counts["holds"] += bool(rows[PLANTED] if plant else rows.any())
                        if plant:
                            counts["fails"] += bool(np.delete(rows, PLANTED).any())
        yield from ((scene, name, counts) for name, counts in found.items())


def real(path: str, repeats: int) -> Iterator[tuple[str, int, float, float]]:
    """Shares of sweeps with a false claim, and in which one planted head is found.

    Examples are drawn from a real sweep whose effects were taken out. The planted head flips one
    answer in forty, all for the worse; of losses, it raises three in forty.
    """
    stored = np.load(path)
    logits, labels = stored["logits"], stored["labels"]
    heads = slice(1, 1 + LAYERS * HEADS)
    right = (logits.argmax(-1) == labels).astype(float)
    losses = example_losses(logits, labels.astype(float))
    change = losses[heads] - losses[0]
    signs = np.where(np.abs(change) < 0.01, 0.0, np.sign(change))
    centred = change - change.mean(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    for examples in (200, 400):
        false: Counter[str] = Counter()
        found: Counter[str] = Counter()
        for seed in range(repeats):
            drawn = rng.integers(labels.size, size=examples)
            flips = _balanced(right[heads] - right[0], drawn, rng)
            moved = _balanced(signs, drawn, rng)
            for name, rows, test, share in (
                ("flips: exact tests", flips, _exact, 40),
                ("flips: likelihood bounds", flips, _bounds, 40),
                ("signs of the loss: exact tests", moved, _exact, 13),
                ("mean loss: max-T", centred[:, drawn], _max_t, 0),
            ):
                false[name] += bool((test(rows, seed) < 0.05).any())
                if share:
                    planted = rows.copy()
                    planted[PLANTED] = 0
                    planted[PLANTED, : examples // share] = -1
                    found[name] += bool(test(planted, seed)[PLANTED] < 0.05)
        yield from ((n, examples, c / repeats, found[n] / repeats) for n, c in false.items())


def _exact(rows: np.ndarray, seed: int) -> np.ndarray:
    return flip_tests(rows, resamples=500, seed=seed)[1]


def _bounds(rows: np.ndarray, seed: int) -> np.ndarray:
    return simultaneous(rows, np.ones(len(rows)), resamples=300, seed=seed).p


def _max_t(rows: np.ndarray, seed: int) -> np.ndarray:
    t = rows.mean(axis=1) / rows.std(axis=1, ddof=1) * np.sqrt(rows.shape[1])
    return step_down(np.abs(t), max_statistics([rows], resamples=300, seed=seed))


def _balanced(signs: np.ndarray, drawn: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some examples, with so many of a head's more frequent sign left out that none prevails."""
    up, down = ((signs == way).sum(axis=1, keepdims=True) for way in (1, -1))
    keep = np.where(signs > 0, down / np.maximum(up, 1), up / np.maximum(down, 1))
    some = signs[:, drawn]
    return np.where(rng.random(some.shape) < keep[:, drawn], some, 0.0)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=100)
    arguments.add_argument("--examples", type=int, default=400)
    arguments.add_argument("--scenes", nargs="+", choices=list(SCENES), default=list(SCENES))
    arguments.add_argument("--real")
    given = arguments.parse_args()
    print(describe())
    if given.real:
        print("| tests | examples | sweeps | false (0.05 allowed) | found |\n|---|---|---|---|---|")
        for name, examples, false, found in real(given.real, given.repeats):
            cells = f"{given.repeats} | {false:.3f} | {found:.2f}"
            print(f"| {name} | {examples} | {cells} |", flush=True)
        return
    outcomes = ("holds", "size-open", "fails", "negligible", "inconclusive", "not-applicable")
    print(f"| planted | rule | {' | '.join(outcomes)} |\n|---|---|{5 * '---|'}")
    for scene, name, counts in verdicts(given.scenes, given.repeats, given.examples):
        cells = " | ".join(
            f"{counts[o] / given.repeats:.2f}" if counts[o] else "" for o in outcomes
        )
        print(f"| {scene} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
