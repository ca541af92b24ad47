"""Concluding again all that a reproduction measured: seconds, forward passes, and equal results.

    python benchmarks/conclude_all.py

reproduces Dark Secrets on the bundled model (its default setup), then runs `bertology conclude
--all` and the same with `--level 0.9`, each in a process of its own that says whether torch was
loaded: without it there is no forward pass. Concluded results must equal the first ones.
With `--store FOLDER`, what was reproduced there before is taken.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WATCHED = """
import json, sys
import bertology.cli.main as cli
try:
    cli.app(sys.argv[1:])
except SystemExit as end:
    code = end.code or 0
print("WATCHED", json.dumps({"code": code, "torch": "torch" in sys.modules}))
"""


def run(*words: str) -> dict[str, object]:
    """A command in a process of its own: seconds, exit code, whether torch was loaded.

    Without torch there is no forward pass.
    """
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *words], capture_output=True, text=True, check=False
    )
    sys.stdout.write(done.stdout[-3000:] + done.stderr[-3000:])
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("WATCHED")]
    return {**json.loads(line.removeprefix("WATCHED")), "wall": time.monotonic() - started}


def contents(store: Path) -> dict[str, tuple[object, ...]]:
    """The files of each result but for its record: names and checksums, by identity."""
    found = {}
    for record in store.glob("*/*/result.json"):
        read = json.loads(record.read_text(encoding="utf-8"))
        tables = tuple((t["name"], t["sha256"]) for t in read["tables"])
        found[read["identity"]] = (tables, read["arrays"]["sha256"])
    return found


def main() -> None:
    """Reproduce, conclude, compare; fails where something differs or torch was loaded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="a folder of `reproduce --to` that is there")
    given = parser.parse_args().store
    with tempfile.TemporaryDirectory() as made:
        to = given or Path(made)
        reproduced = run("reproduce", "dark-secrets", "--to", str(to))
        store = to / "results"
        before = contents(store)
        size = sum(file.stat().st_size for file in store.glob("measured/*/*.nc"))
        same = run("conclude", "--all", "--store", str(store))
        after = contents(store)
        equal = sum(after[identity] == before[identity] for identity in before)
        level = run("conclude", "--all", "--level", "0.9", "--store", str(store))
        new = len(contents(store)) - len(after)
    print(f"reproduce dark-secrets: {reproduced['wall']:.1f} s, {len(before)} results")
    print(f"measured parts: {size / 1e6:.1f} MB")
    for name, found in (("conclude --all", same), ("conclude --all --level 0.9", level)):
        passes = "torch was loaded" if found["torch"] else "0 forward passes, torch not loaded"
        print(f"{name}: {found['wall']:.1f} s, {passes}, exit {found['code']}")
    print(f"equal: {equal} of {len(before)}; new at the other level: {new}")
    if equal < len(before) or same["torch"] or level["torch"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
