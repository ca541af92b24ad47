"""Do several small models train faster side by side on one GPU than one after another?

    python benchmarks/side_by_side.py [--model NAME] [--task mrpc] [--root FOLDER] [--device cuda]
        [--seeds 4] [--orders 4] [--workers 1 2 4 8] [--limit N] [--sharing turns,together]

The same study (`seed-variance`, seeds × orders runs) is done from its start with each number of
worker processes, as a user does it: starting processes, loading, tokenising, training and scoring
are all counted. A study of many runs feels the start little: what counts for it is how many runs
finish in a minute once each worker has finished its first. With `together`, processes share the
GPU under NVIDIA's Multi-Process Service, which lets their kernels run at the same time; in `turns`
the GPU turns from one process to the next. On a GPU, runs of one seed differ a little, since sums
are made in another order each time: how far scores are apart is told. Prints a markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from machine import describe

_MPS = "CUDA_MPS_"
_PIPE = f"{_MPS}PIPE_DIRECTORY"  # is set where the service runs already


@contextmanager
def shared_by_processes(folder: Path) -> Iterator[dict[str, str]]:
    """What processes need in their environment to share the GPU, while the service runs."""
    if _PIPE in os.environ:
        yield {name: value for name, value in os.environ.items() if name.startswith(_MPS)}
        return
    places = {f"{_MPS}{name}_DIRECTORY": str(folder / name.lower()) for name in ("PIPE", "LOG")}
    for place in places.values():
        Path(place).mkdir()
    own = {**os.environ, **places}
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env=own, check=True)
    try:
        yield places
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=own, check=False)


def seconds(
    asked: argparse.Namespace, workers: int, environment: Mapping[str, str]
) -> tuple[float, float, pd.DataFrame]:
    """How long the study takes with so many workers, runs a minute, and the scores of its runs."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bertology", "run", "seed-variance"]
        given = {"model": asked.model, "task": asked.task, "root": asked.root}
        given |= {"seeds": asked.seeds, "orders": asked.orders, "train-limit": asked.limit}
        given |= {"workers": workers, "store": folder, "device": asked.device}
        for name, value in given.items():
            command += [] if value is None else [f"--{name}", str(value)]
        own = {name: value for name, value in os.environ.items() if not name.startswith(_MPS)}
        started = time.perf_counter()
        finished = list[float]()  # when each run was there
        with subprocess.Popen(
            command,
            env={**own, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as study:
            while study.poll() is None:
                there = len(list(Path(folder).glob("measured/*/order-*.nc")))
                finished += [time.perf_counter()] * (there - len(finished))
                time.sleep(0.02)
        if study.returncode:
            raise SystemExit(f"The study failed: {' '.join(command)}")
        took = time.perf_counter() - started
        later = finished[workers:]
        rate = 60 * len(later) / (later[-1] - finished[workers - 1])
        [table] = Path(folder).glob("seed-variance/*/runs.parquet")
        return took, rate, pd.read_parquet(table)


def main() -> None:
    """Measure, compare scores, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--task", default="mrpc")
    parser.add_argument("--root")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--orders", type=int, default=4)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--sharing", default="turns,together")
    asked = parser.parse_args()
    if asked.seeds * asked.orders <= max(asked.workers):
        parser.error("There must be more runs (--seeds × --orders) than --workers.")
    rows, scores = [], []
    ways = [("alone", 1)] if 1 in asked.workers else []
    ways += [(way, n) for way in asked.sharing.split(",") for n in asked.workers if n > 1]
    with TemporaryDirectory() as folder:
        for way, workers in ways:
            if way == "together":
                own = Path(folder) / str(workers)
                own.mkdir()
                with shared_by_processes(own) as environment:
                    took, rate, found = seconds(asked, workers, environment)
            else:
                took, rate, found = seconds(asked, workers, {})
            rows.append((way, workers, took, rate))
            scores.append(found.select_dtypes("number"))
            done = {"way": way, "workers": workers, "seconds": took, "rate": rate}
            print(json.dumps(done), flush=True)
    runs = asked.seeds * asked.orders
    print(f"\n{describe()}\n\n{asked.model or 'the bundled model'}, {asked.task}: {runs} runs\n")
    print("| processes | workers | all runs (s) | times as fast | runs a minute | times as many |")
    print("|---|---|---|---|---|---|")
    _, _, first, base = rows[0]
    for way, workers, took, rate in rows:
        print(
            f"| {way} | {workers} | {took:.1f} | {first / took:.2f} "
            f"| {rate:.1f} | {rate / base:.2f} |"
        )
    apart = max(float((found - scores[0]).abs().max().max()) for found in scores)
    print(f"\nThe largest difference between two scores of one run: {apart:g}")


if __name__ == "__main__":
    main()
