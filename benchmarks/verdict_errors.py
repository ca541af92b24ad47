"""How often the rules behind verdicts err on drawn nulls, and how often they see what is there.

A family is a function below: it draws worlds in which the truth is known, lets the package judge
them, and says in which share of the draws of each world the verdict was false (surely on either
side of the truth, or surely above it where only that is claimed), and in which share an effect was
surely seen. Another family is another function that is `listed`.

    python benchmarks/verdict_errors.py [--draws 1000] [--only FAMILY …] [--before SRC]

`--before` is the `src` of another checkout: the same draws are judged by its code, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
from machine import describe
from numpy.typing import NDArray

from bertology.results.over_tasks import corrected
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.verdicts import Claim, Published, Source, Verdict
from bertology.stats import Estimate
from bertology.stats.balanced import Balanced, balanced_means, balanced_rows
from bertology.stats.crossed import bounds_over
from bertology.stats.least_means import least_means
from bertology.stats.partial_means import partial_means
from bertology.studies.designs.shares import per_item

Floats = NDArray[np.float64]
Rng = np.random.Generator
LEVEL = 0.95


@dataclass(frozen=True)
class Row:
    """One world of a family; `power` is None where the world has no effect to see."""

    world: str
    false: float
    power: float | None = None


Family = Callable[[Rng, int], Iterator[Row]]
FAMILIES: dict[str, Family] = {}


def listed(name: str) -> Callable[[Family], Family]:
    """Names a family."""

    def keep(family: Family) -> Family:
        FAMILIES[name] = family
        return family

    return keep


def apart(low: Floats, high: Floats, truth: float) -> float:
    """The share of intervals that lie on one side of the truth."""
    return float(((low > truth) | (high < truth)).mean())


# A claim on several tasks

RULE = Rule("gain", Relation.ABOVE, 0.0)
CLAIM = Claim("a.b", Source("A", "1"), "So.", Published("3"), "some-study", RULE, "Because.")


def _decided(each: Sequence[Estimate | None], effect: float) -> list[bool]:
    """On which tasks a claim "above 0" is decided; on which it holds where there is an effect."""
    known = [one for one in each if one is not None]
    verdicts = [Verdict(CLAIM, RULE.judge(one), one, one.n) for one in known]
    decided = (Outcome.HOLDS,) if effect else (Outcome.HOLDS, Outcome.FAILS)
    return [verdict.outcome in decided for verdict in corrected(verdicts)]


# Values: their mean is 0 and their spread 1

Draw = Callable[[Rng, tuple[int, ...]], Floats]


SHAPES: dict[str, Draw] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "skewed (exponential)": lambda rng, size: rng.exponential(size=size) - 1,
    "heavy tails (t, 4 degrees)": lambda rng, size: rng.standard_t(4, size) / np.sqrt(2),
    "at both ends (Beta ½, ½)": lambda rng, size: (rng.beta(0.5, 0.5, size) - 0.5) * np.sqrt(8),
}
EFFECT = 0.3  # spreads, over 100 values


# Families


@listed("means over examples")
def means(rng: Rng, draws: int) -> Iterator[Row]:
    """One mean of values of which the largest possible one is not known (`partial_means`)."""
    for name, draw in SHAPES.items():
        for n in (30, 100, 400):
            values = draw(rng, (draws, n))
            effect = EFFECT * np.sqrt(100 / n)
            yield Row(f"{name}, {n}", *_of_means(values, effect))


def _of_means(values: Floats, effect: float, **known: float) -> tuple[float, float]:
    null, some = (partial_means(values + shift, among=1, **known) for shift in (0.0, effect))
    return apart(null.alone_low, null.alone_high, 0.0), float((some.alone_low > 0).mean())


@listed("means on eight tasks")
def means_of_tasks(rng: Rng, draws: int) -> Iterator[Row]:
    """A claim on eight tasks, corrected (`over_tasks`): false on any of them; seen on each."""
    for name, draw in SHAPES.items():
        for n in (30, 100):
            rates = []
            for effect in (0.0, EFFECT * np.sqrt(100 / n)):
                found = partial_means(draw(rng, (8 * draws, n)) + effect, among=1)
                each = [found.estimate(at) for at in range(8 * draws)]
                judged = [_decided(each[at : at + 8], effect) for at in range(0, 8 * draws, 8)]
                rates.append(np.array(judged))
            yield Row(f"{name}, {n}", float(rates[0].any(axis=1).mean()), float(rates[1].mean()))


@listed("gains in right answers")
def flips(rng: Rng, draws: int) -> Iterator[Row]:
    """Right answers of one less those of another: -1, 0 and 1 (`partial_means`, reach 1)."""
    for share in (0.04, 0.2):
        for n in (100, 400, 1000):
            gain = 4 * np.sqrt(share / n)  # four standard errors
            rates = []
            for more in (0.0, min(gain, share)):
                up = (share + more) / 2
                values = rng.choice(
                    [1.0, -1.0, 0.0], size=(draws, n), p=[up, share - up, 1 - share]
                )
                found = partial_means(values, among=1, reach=1.0, within=(-1, 1))
                rates.append((found.alone_low, found.alone_high))
            yield Row(
                f"{100 * share:g} % differ, {n}",
                apart(*rates[0], 0.0),
                float((rates[1][0] > 0).mean()),
            )


@listed("shares of facts")
def shares(rng: Rng, draws: int) -> Iterator[Row]:
    """The share of right answers (`facts.share`)."""
    from bertology.studies.cloze.facts.asked import share

    yield from _of_shares(rng, draws, lambda hits: share(hits, LEVEL), (0.5, 0.1, 0.02))


@listed("scores over runs")
def scores(rng: Rng, draws: int) -> Iterator[Row]:
    """Accuracy of a run that is right about nearly all examples, or half of them (`crossed`)."""
    from bertology.metrics import find_metric
    from bertology.stats.crossed import crossed_score

    def score(hits: NDArray[np.bool_]) -> Estimate:
        told = np.stack([hits.astype(float), np.ones(len(hits))], axis=1)
        return crossed_score(find_metric("accuracy"), told[None], level=LEVEL)

    yield from _of_shares(rng, draws, score, (0.5, 0.9, 0.98))


def _of_shares(
    rng: Rng, draws: int, judge: Callable[[NDArray[np.bool_]], Estimate], truths: Sequence[float]
) -> Iterator[Row]:
    for truth in truths:
        for n in (50, 100, 400, 1000):
            error = np.sqrt(truth * (1 - truth) / n)
            rates = []
            for at in (truth, min(truth + 3.5 * error, (1 + truth) / 2)):
                hits, back = np.unique(rng.binomial(n, at, draws), return_inverse=True)
                each = [judge(np.arange(n) < count) for count in hits]
                low, high = (
                    np.array([getattr(e, side) for e in each])[back] for side in ("low", "high")
                )
                rates.append((low, high))
            power = float((rates[1][0] > truth).mean())
            yield Row(f"{100 * truth:g} % of {n}", apart(*rates[0], truth), power)


@listed("many means together")
def many(rng: Rng, draws: int) -> Iterator[Row]:
    """The largest of 144 heads whose means are 0 and hang together (`partial_means`)."""
    n = 100
    for name in ("normal", "skewed (exponential)"):
        false, seen = 0, 0
        for _ in range(draws):
            values = SHAPES[name](rng, (145, n))
            values = np.sqrt(0.3) * values[:1] + np.sqrt(0.7) * values[1:]
            found = partial_means(values, resamples=200)
            false += bool(((found.simultaneous_low > 0) | (found.simultaneous_high < 0)).any())
            seen += bool(found.simultaneous_low[0] + 5 / np.sqrt(n) > 0)
        yield Row(f"{name}, {n} sentences", false / draws, seen / draws)


@listed("values within bounds")
def within(rng: Rng, draws: int) -> Iterator[Row]:
    """Means of values that must lie between -1 and 1, also where losses are too rare to be seen."""
    for n, rare in ((200, 0.012), (200, 0.03), (1000, 0.002), (1000, 0.012)):
        lost = rng.random((draws, n)) < rare
        gained = rng.normal(rare / (1 - rare), rare, (draws, n))
        found = partial_means(np.where(lost, -1.0, gained), support=(-1.0, 1.0), among=1)
        yield Row(
            f"rare losses, {100 * rare:g} % of {n}", apart(found.alone_low, found.alone_high, 0.0)
        )
    for n in (100, 400):
        even, more = (
            partial_means(np.sign(rng.random((draws, n)) - share), support=(-1.0, 1.0), among=1)
            for share in (0.5, 0.5 - 1.4 / np.sqrt(n))
        )
        power = float((more.alone_low > 0).mean())
        yield Row(f"hits and misses, {n}", apart(even.alone_low, even.alone_high, 0.0), power)


@listed("answers that seldom differ")
def seldom(rng: Rng, draws: int) -> Iterator[Row]:
    """Answers of two models: rows by chance, of which none is there (`least_means`).

    Power: 90 % of the answers that differ are gains.
    """
    for rows in (1, 144):
        for n in (60, 200, 1000):
            for share in (0.005, 0.02, 0.05):
                found = []
                for gains, count in ((0.5, rows), (0.9, 1)):
                    odds = [share * gains, share * (1 - gains), 1 - share]
                    up, down, _ = np.moveaxis(rng.multinomial(n, odds, (draws, count)), -1, 0)
                    found.append((_sure_flips(n, up, down, rows), _sure_flips(n, down, up, rows)))
                false = (found[0][0] | found[0][1]).any(axis=1).mean()
                name = f"{100 * share:g} % of {n} differ, {rows} row{'s' if rows > 1 else ''}"
                yield Row(name, float(false), float(found[1][0].mean()))


def _sure_flips(
    n: int, up: NDArray[np.int64], down: NDArray[np.int64], rows: int
) -> NDArray[np.bool_]:
    """Whether the mean of so many flips each way is surely above 0, as one of some rows."""
    pairs, back = np.unique(np.stack([up.ravel(), down.ravel()]), axis=1, return_inverse=True)
    at, some = np.arange(n), pairs[:, :, None]
    values = (at < some[0]) * 1.0 - ((at >= some[0]) & (at < some.sum(axis=0)))
    return (_alone(values, rows)[0] > 0)[back.ravel()].reshape(up.shape)


def _alone(values: Floats, rows: int = 1) -> tuple[Floats, Floats]:
    """Bounds of `least_means` for each row as one of so many rows; ten times as many at once."""
    found = [
        least_means([some], level=1 - (1 - LEVEL) * len(some) / rows)
        for some in (values[at : at + 10 * rows] for at in range(0, len(values), 10 * rows))
    ]
    return np.concatenate([of.low for of in found]), np.concatenate([of.high for of in found])


@listed("differences of other kinds that are rare")
def seldom_skewed(rng: Rng, draws: int) -> Iterator[Row]:
    """One row in which few values differ, by how much varies (`least_means`)."""
    for name, draw in (
        ("either way, exponential", lambda x, sign: x * sign),
        ("skewed, mean 0", lambda x, sign: 1 - x),
        ("in sentences of several words", None),
    ):
        for n in (100, 200, 1000):
            for share in (0.01, 0.05, 0.1):
                differ = rng.random((draws, n)) < share
                sign = rng.choice([-1.0, 1.0], (draws, n))
                if draw is None:
                    values = per_item(differ * sign, 1 + rng.poisson(1.0, (draws, n)))
                else:
                    values = differ * draw(rng.exponential(size=(draws, n)), sign)
                low, high = _alone(values)
                yield Row(f"{name}, {100 * share:g} % of {n}", apart(low, high, 0.0))


@listed("influences within bounds")
def influences(rng: Rng, draws: int) -> Iterator[Row]:
    """Differences of scores over runs, also where losses are too rare to be seen (`crossed`)."""
    within = (-1.0, 1.0)

    def lows(values: Floats) -> tuple[Floats, Floats]:
        low, high = np.array([bounds_over(row, within, LEVEL) for row in values]).T
        return low, high

    for n in (200,):
        for lost in (2.4, 12):
            for spread in (0.01, 0.2):
                rare = lost / n
                gained = rng.normal(rare / (1 - rare), spread, (draws, n)).clip(*within)
                values = np.where(rng.random((draws, n)) < rare, -1.0, gained)
                yield Row(
                    f"{lost:g} losses in {n}, gains scatter by {spread}", apart(*lows(values), 0.0)
                )
        for share in (0.02, 0.05, 0.2):
            even, more = (
                rng.choice(
                    [1.0, -1.0, 0.0], (draws, n), p=[share * up, share * (1 - up), 1 - share]
                )
                for up in (0.5, 0.85)
            )
            power = float((lows(more)[0] > 0).mean())
            yield Row(f"{100 * share:g} % of {n} differ", apart(*lows(even), 0.0), power)


@listed("balanced choices")
def balanced(rng: Rng, draws: int) -> Iterator[Row]:
    """Accuracy over nouns that weigh differently (`balanced_means`); verbs that agree."""
    for units, pairs in ((16, 240), (29, 329), (107, 300)):
        often = 1 / np.arange(5, 5 + units)
        for truth, even in ((0.5, 2.0), (0.5, 20.0), (0.88, 3.0)):
            lows, highs = (np.empty(draws) for _ in range(2))
            for at in range(draws):
                found = balanced_means(
                    _choices(rng, units, pairs, often, truth, even), resamples=100
                )
                lows[at], highs[at] = found.alone_low[0], found.alone_high[0]
            power = None
            if truth == 0.5:
                seen = []
                for _ in range(draws):
                    some = _choices(rng, units, pairs, often, 0.62, even)
                    seen.append(balanced_means(some, resamples=100).alone_low[0] > 0.5)
                power = float(np.mean(seen))
            alike = {2.0: "nouns differ", 20.0: "nouns alike", 3.0: "nouns differ"}[even]
            yield Row(
                f"{100 * truth:g} %, {units} nouns, {alike}", apart(lows, highs, truth), power
            )


def _choices(
    rng: Rng, units: int, pairs: int, often: Floats, truth: float, even: float
) -> Balanced:
    at = rng.choice(units, size=pairs, p=often / often.sum())
    each = rng.beta(truth * even, (1 - truth) * even, size=units)
    right = (rng.random(pairs) < each[at]).astype(float)
    weights = rng.choice([1.0, 0.6], size=pairs)
    return balanced_rows(right[None], weights, at.astype(str).tolist())


_COPIES: dict[str, Draw] = {
    "normal": SHAPES["normal"],
    "skewed (exponential)": SHAPES["skewed (exponential)"],
    "best of 12 layers": lambda rng, size: rng.standard_normal((*size, 12)).max(axis=-1) / 0.57,
}


@listed("beyond copies")
def copies(rng: Rng, draws: int) -> Iterator[Row]:
    """A model that is one more copy with shuffled weights, on some tasks (`among_copies`)."""
    for name, draw in _COPIES.items():
        for tasks in (1, 2, 4, 8):
            judged = partial(_beyond_copies, rng, draw, tasks)
            false = np.mean([any(judged(0.0)) for _ in range(draws)])
            power = np.mean([np.mean(judged(4.0)) for _ in range(draws)])
            yield Row(f"{name}, {tasks} task{'s' if tasks > 1 else ''}", float(false), float(power))


def _beyond_copies(rng: Rng, draw: Draw, tasks: int, effect: float) -> list[bool]:
    """On which tasks the claim is decided; a model `effect` spreads of copies above them."""
    from bertology.studies.designs.probe_scores import among_copies
    from bertology.studies.probing.sentence_probes import SentenceProbes

    size, error = SentenceProbes.copies, 0.3  # error of the mean over sentences
    each: list[Estimate | None] = []
    for _ in range(tasks):
        model, *others = draw(rng, (size + 1,))
        gain = float(model + effect - np.mean(others) + error * rng.standard_normal())
        found = Estimate(gain, gain - 1.96 * error, gain + 1.96 * error, 400, LEVEL, "sentences")
        each.append(among_copies(found, [float(x) for x in others]))
    return _decided(each, effect)


@listed("a head for one relation")
def relations(rng: Rng, draws: int) -> Iterator[Row]:
    """Claims about single relations, of a head that gains nothing over the best offset."""
    from bertology.studies.attention.syntax_heads import SyntaxHeads

    study, sizes = SyntaxHeads(resamples=100), np.repeat((30, 75, 150, 400), 5)
    for name, offset in (("offset finds 40 %", 0.4), ("offset finds 85 %", 0.85)):
        rates = []
        for gain in (0.0, 0.15 if offset < 0.5 else 0.1):
            worlds = [_relations(rng, sizes, offset, gain) for _ in range(-(-draws // 5))]
            rates.append(np.array([_sure_relations(study, *world) for world in worlds]))
        false, seen = (of.reshape(-1, 4, 5).mean(axis=(0, 2)) for of in rates)
        for at, n in enumerate((30, 75, 150, 400)):
            yield Row(f"{name}, {n} sentences", float(false[at]), float(seen[at]))


def _relations(
    rng: Rng, sizes: NDArray[np.int64], offset: float, gain: float
) -> tuple[dict[str, list[Floats]], list[int]]:
    """What the head, the offset and the head from elsewhere find of the links of each sentence."""
    from bertology.studies.designs.shares import per_item

    most = int(sizes.max())
    values: dict[str, list[Floats]] = {n: [] for n in ("share", "elsewhere", "special", "baseline")}
    for n in sizes:
        links = 1 + rng.poisson(0.5, n)
        ease = rng.standard_normal(n) * 0.5  # sentences that are easy for both
        found = {}
        for name, share in (("share", offset + gain), ("baseline", offset), ("elsewhere", 0.1)):
            odds = np.log(share / (1 - share)) * 1.06 + (ease if name != "elsewhere" else 0.0)
            found[name] = rng.binomial(links, 1 / (1 + np.exp(-odds)))
        for name, row in (found | {"special": found["share"]}).items():
            whole = np.full(most, np.nan)
            whole[:n] = per_item(row[None].astype(float), links)[0]
            values[name].append(whole)
    return values, [0] * len(sizes)


def _sure_relations(study: object, values: dict[str, list[Floats]], best: list[int]) -> list[bool]:
    from bertology.studies.attention.syntax_heads import followed_links

    names = [f"r{at}" for at in range(len(best))]
    columns = {"relation": names, "direction": ["forward"] * len(best), "links": [1] * len(best)}
    picked = followed_links._Picked(len(values["share"][0]), best, columns, values)
    table = study._picked_table(picked, (1, 1))  # type: ignore[attr-defined]
    return [found.low > 0 for _, found in study.gains(table)]  # type: ignore[attr-defined]


@listed("facts over 12 relations")
def facts(rng: Rng, draws: int) -> Iterator[Row]:
    """The mean of 12 relations' gains over guessing (`facts.share`)."""
    from bertology.studies.cloze.facts.asked import share

    yield from _over_relations(rng, draws, lambda x: share(x, LEVEL, least=-1.0))


@listed("facts over 12 relations, Hall's bound (not taken)")
def facts_by_hall(rng: Rng, draws: int) -> Iterator[Row]:
    """The same by the farther of Hall's and Student's bounds."""
    from bertology.stats.skewed_means import skewed_mean

    def hall(x: Floats) -> Estimate:
        found = skewed_mean(x, LEVEL, within=(-1.0, 1.0))
        assert found is not None
        return found

    yield from _over_relations(rng, draws, hall)


def _over_relations(rng: Rng, draws: int, judge: Callable[[Floats], Estimate]) -> Iterator[Row]:
    def guessing(size: tuple[int, ...]) -> Floats:
        """A model that knows nothing, in relations of 10 to 300 facts and 1 to 40 % by guessing."""
        facts = np.exp(rng.uniform(np.log(10), np.log(300), size)).astype(int)
        chance = rng.uniform(0.01, 0.4, size)
        return rng.binomial(facts, chance) / facts - chance

    def one_side(size: tuple[int, ...]) -> Floats:
        """Gains that lean to one side: most a little below the mean, some far above."""
        return rng.beta(1, 4, size) - 0.2

    def rarely(size: tuple[int, ...]) -> Floats:
        """One relation of ten asks in words that make the model lose what it gains elsewhere."""
        return np.where(rng.random(size) < 0.1, -0.27, 0.03) + rng.normal(0, 0.02, size)

    for name, draw in (
        ("guessing", guessing),
        ("one-sided", one_side),
        ("one of ten lost", rarely),
    ):
        known = [judge(row) for row in draw((draws, 12))]
        more = [judge(row) for row in draw((draws, 12)) + 0.15]
        low, high = (np.array([getattr(e, side) for e in known]) for side in ("low", "high"))
        yield Row(name, apart(low, high, 0.0), float(np.mean([e.low > 0 for e in more])))


@listed("chosen against random draws")
def outliers(rng: Rng, draws: int) -> Iterator[Row]:
    """Dimensions that were chosen, and do what 20 random sets do (`over_draws`)."""
    from bertology.stats.over_draws import over_draws

    def sets(name: str, size: int) -> Floats:
        if name == "nothing matters":
            return np.zeros(size)
        if name == "one of many matters":
            return np.where(rng.random(size) < 0.04, 1.0, 0.0)
        return rng.exponential(0.1, size)

    for name in ("nothing matters", "all matter a little", "one of many matters"):
        for texts in (40, 200):
            rates = []
            for more in (0.0, 0.3):
                sure = 0
                for _ in range(draws):
                    effects = sets(name, 21)
                    effects[0] += more
                    each = effects[:, None] + rng.standard_t(4, (21, texts)) * 0.5
                    found = over_draws(each[:1] - each[1:], resamples=100)
                    sure += found is not None and found.low > 0
                rates.append(sure / draws)
            yield Row(f"{name}, {texts} texts", *rates)


@listed("spread over seeds")
def spread(rng: Rng, draws: int) -> Iterator[Row]:
    """A spread of 0.02 that must not be called smaller, and one of 0.01 (`spread_over_runs`)."""
    from bertology.stats.survivors import spread_over_runs
    from bertology.studies.pruning.magnitude_pruning import MagnitudePruning

    for name, alike in (("matrices move together", 1.0), ("matrices move alone", 0.0)):
        rates = []
        for truth in (0.02, 0.01):
            runs = (draws, MagnitudePruning().seeds)
            values = alike * rng.standard_normal((*runs, 1)) + (1 - alike) * rng.standard_normal(
                (*runs, 72)
            )
            rates.append(np.mean([spread_over_runs(truth * x, LEVEL).high < 0.02 for x in values]))
        yield Row(name, *(float(rate) for rate in rates))


# The table


def judged(only: list[str], draws: int) -> dict[str, list[Row]]:
    """The rows of each family by the package that is imported."""
    found = {}
    for name, family in FAMILIES.items():
        if only and name not in only:
            continue
        started = time.perf_counter()
        found[name] = list(family(np.random.default_rng(0), draws))
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return found


def judged_by(source: str, only: list[str], draws: int) -> dict[str, list[Row]]:
    """The same by the package in another folder."""
    command = [sys.executable, __file__, "--draws", str(draws), "--rows"]
    command += ["--only", *only] if only else []
    told = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": source}, check=True, stdout=subprocess.PIPE
    )
    rows: dict[str, list[dict[str, str | float]]] = json.loads(told.stdout)
    return {name: [Row(**row) for row in some] for name, some in rows.items()}  # type: ignore[arg-type]


def table(now: dict[str, list[Row]], before: dict[str, list[Row]]) -> Iterator[str]:
    """A line for each world."""
    yield "| family | world | false before | false | power before | power |"
    yield "|---|---|---|---|---|---|"
    for name, rows in now.items():
        others = {row.world: row for row in before.get(name, [])}
        for row in rows:
            other = others.get(row.world)
            numbers = (other and other.false, row.false, other and other.power, row.power)
            told = " | ".join("" if x is None else f"{x:.3f}" for x in numbers)
            yield f"| {name} | {row.world} | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", nargs="+", default=[], choices=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--before", help="the src folder of another checkout")
    parser.add_argument("--rows", action="store_true", help="print rows as JSON, and no table")
    asked = parser.parse_args()
    now = judged(asked.only, asked.draws)
    if asked.rows:
        print(json.dumps({name: [asdict(row) for row in rows] for name, rows in now.items()}))
        return
    before = judged_by(asked.before, asked.only, asked.draws) if asked.before else {}
    print(f"{describe()}; {asked.draws:,} draws of each world\n")
    print(*table(now, before), sep="\n")


if __name__ == "__main__":
    main()
