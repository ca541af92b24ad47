"""Do several small models train faster side by side on one GPU than one after another?

    python benchmarks/side_by_side.py [--model NAME] [--task mrpc] [--root FOLDER] [--device cuda]
        [--seeds 4] [--orders 4] [--workers 1 2 4 8] [--limit N] [--mps]

The same study (`seed-variance`, seeds × orders runs) is done from its start with each number of
worker processes, as a user does it: starting processes, loading, tokenising, training and scoring
are all counted. With --mps each number above 1 is tried again under NVIDIA's Multi-Process
Service, which lets kernels of several processes run at the same time; without it the GPU turns from
one process to the next. Scores must be the same everywhere. Prints a markdown table.
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
) -> tuple[float, pd.DataFrame]:
    """How long the study takes with so many workers, and the scores of its runs."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bertology", "run", "seed-variance"]
        given = {"model": asked.model, "task": asked.task, "root": asked.root}
        given |= {"seeds": asked.seeds, "orders": asked.orders, "train-limit": asked.limit}
        given |= {"workers": workers, "store": folder, "device": asked.device}
        for name, value in given.items():
            command += [] if value is None else [f"--{name}", str(value)]
        started = time.perf_counter()
        own = {name: value for name, value in os.environ.items() if not name.startswith(_MPS)}
        env = {**own, **environment}
        subprocess.run(command, check=True, env=env, capture_output=True, text=True)
        took = time.perf_counter() - started
        [table] = Path(folder).glob("seed-variance/*/runs.parquet")
        return took, pd.read_parquet(table)


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
    parser.add_argument("--mps", action="store_true")
    asked = parser.parse_args()
    rows, scores = [], []
    with TemporaryDirectory() as folder:
        for title in ("in turns", *(["at the same time"] if asked.mps else [])):
            for workers in asked.workers:
                if title != "in turns" and workers == 1:
                    continue  # one process shares with none
                if title == "in turns":
                    took, found = seconds(asked, workers, {})
                else:
                    own = Path(folder) / str(workers)
                    own.mkdir()
                    with shared_by_processes(own) as environment:
                        took, found = seconds(asked, workers, environment)
                rows.append((title, workers, took))
                scores.append(found.select_dtypes("number"))
                print(json.dumps({"way": title, "workers": workers, "seconds": took}), flush=True)
    runs = asked.seeds * asked.orders
    print(f"\n{describe()}\n\n{asked.model or 'the bundled model'}, {asked.task}: {runs} runs\n")
    print("| kernels of processes run | workers | the study (s) | a run (s) | times as fast |")
    print("|---|---|---|---|---|")
    first = rows[0][2]
    for title, workers, took in rows:
        print(f"| {title} | {workers} | {took:.1f} | {took / runs:.2f} | {first / took:.2f} |")
    apart = max(float((found - scores[0]).abs().max().max()) for found in scores)
    print(f"\nThe largest difference between two scores of one run: {apart:g}")


if __name__ == "__main__":
    main()
