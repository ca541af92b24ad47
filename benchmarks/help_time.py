"""How long `bertology --help` and `import bertology` take: the best and median of several."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from machine import describe

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import bertology": [sys.executable, "-c", "import bertology"],
    "bertology --help": [sys.executable, "-m", "bertology.cli.main", "--help"],
    "bertology run head-ablation --help": [
        sys.executable, "-m", "bertology.cli.main", "run", "head-ablation", "--help",
    ],
}  # fmt: skip


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    print(describe())
    print("| command | best | median of 9 |\n|---|---|---|")
    for name, command in COMMANDS.items():
        times = [seconds(command) for _ in range(9)]
        print(f"| `{name}` | {min(times):.2f} s | {statistics.median(times):.2f} s |")


if __name__ == "__main__":
    main()
