"""False verdicts of every claim: worlds in which it is known what must not be said.

Each null draws one world from a seed and lets the study or join judge it (`nulls/`): random models,
permuted links and labels, weight noise in the place of fine-tuning, shuffled layers, heads and map
types, answers and scores that change without getting better. Where a claim only describes a model,
no world makes it false; there the border of its rule is moved to the truth, and both verdicts are
counted: that is how often its interval misses. Every repetition is one line of the file, so that
the command can be stopped and goes on where it was.

    python benchmarks/claim_nulls.py [--repetitions 100] [--jobs 1] [--only CLAIM …]
        [--worlds NULL …] [--file claim_nulls.jsonl]
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import pkgutil
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import nulls
import torch
from machine import describe
from nulls import Null
from scipy.stats import beta

from bertology.results.known_claims import load_claims

NULLS: tuple[Null, ...] = tuple(
    null
    for found in pkgutil.iter_modules(nulls.__path__, "nulls.")
    for null in getattr(importlib.import_module(found.name), "NULLS", ())
)
ALLOWED = 0.05
UNJUDGED = "not-applicable"
World = tuple[str, int]  # the null and its seed


def read(path: Path) -> dict[tuple[str, int], dict[str, str]]:
    """What is there already, by null and seed."""
    rows = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = [json.loads(row) for row in rows]
    return {(row["null"], row["seed"]): row["outcomes"] for row in found}


def draw(name: str, seed: int) -> dict[str, str]:
    """One world, in any process."""
    (null,) = (null for null in NULLS if null.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(null.draw(seed))


def drawn(wanted: list[World], jobs: int) -> Iterator[tuple[World, dict[str, str]]]:
    """All worlds as they are ready, from so many processes."""
    if jobs == 1:
        yield from ((one, draw(*one)) for one in wanted)
        return
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(jobs, context, torch.set_num_threads, (1,)) as pool:
        waiting = {pool.submit(draw, *one): one for one in wanted}
        yield from ((waiting[ready], ready.result()) for ready in as_completed(waiting))


def run(chosen: list[Null], repetitions: int, path: Path, jobs: int = 1) -> None:
    """Draw what is missing."""
    done = read(path)
    # All nulls by turns: where it is stopped, each has been drawn as often.
    every = ((null.name, seed) for seed in range(repetitions) for null in chosen)
    wanted = [world for world in every if world not in done]
    begun = time.perf_counter()
    with path.open("a", encoding="utf-8") as file:
        for number, ((name, seed), outcomes) in enumerate(drawn(wanted, jobs), 1):
            row = {"null": name, "seed": seed, "outcomes": outcomes}
            print(json.dumps(row, ensure_ascii=False), file=file, flush=True)
            if number % 50 == 0 or number == len(wanted):
                seconds = time.perf_counter() - begun
                print(f"{number} of {len(wanted)} drawn, {seconds:.0f} s", flush=True)


def bounds(false: int, judged: int) -> tuple[float, float]:
    """Clopper and Pearson's: each end errs in 5 %."""
    low = float(beta.ppf(0.05, false, judged - false + 1)) if false else 0.0
    high = float(beta.ppf(0.95, false + 1, judged - false)) if false < judged else 1.0
    return low, high


def table(chosen: list[Null], claims: list[str], path: Path) -> Iterator[str]:
    """A row for each claim and null."""
    yield "| claim | null | repetitions | judged | false verdicts | upper 95 % bound |"
    yield "|---|---|---|---|---|---|"
    found = read(path)
    for claim in claims:
        of_claim = [null for null in chosen if claim in null.false]
        if not of_claim:
            yield f"| {claim} | none is known | | | | |"
        for null in of_claim:
            counts = Counter(
                o.get(claim, UNJUDGED) for (n, _), o in found.items() if n == null.name
            )
            repetitions = counts.total()
            judged = repetitions - counts[UNJUDGED]
            false = sum(counts[outcome] for outcome in null.false[claim])
            told = "/".join(sorted(null.false[claim]))
            # A world that was not judged has no false verdict either: all repetitions count.
            low, high = bounds(false, repetitions)
            rate = f"{false} ({told})" if false else "0"
            sure = " **above 0.05**" if low > ALLOWED else ""
            name = null.name.partition(" (")[0]  # in brackets: which claims it is drawn for
            yield f"| {claim} | {name} | {repetitions} | {judged} | {rate} | {high:.3f}{sure} |"


def main() -> None:
    """Draw, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", nargs="+", help="claims, with or without their paper")
    parser.add_argument("--worlds", nargs="+", help="nulls, by their names or the first words")
    parser.add_argument("--file", type=Path, default=Path("claim_nulls.jsonl"))
    asked = parser.parse_args()
    claims = [claim.id.partition(".")[2] for claim in load_claims()]
    if asked.only:
        wanted = {one.rpartition(".")[2] for one in asked.only}
        if unknown := sorted(wanted - set(claims)):
            parser.error(f"there is no claim {unknown[0]!r}; see: bertology claims")
        claims = [claim for claim in claims if claim in wanted]
    chosen = [null for null in NULLS if set(null.false) & set(claims)]
    if asked.worlds:
        chosen = [null for null in chosen if null.name.startswith(tuple(asked.worlds))]
    print(describe())
    run(chosen, asked.repetitions, asked.file, asked.jobs)
    print(*table(chosen, claims, asked.file), sep="\n")


if __name__ == "__main__":
    main()
