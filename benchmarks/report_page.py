"""How large the report of a model is, and how soon a browser shows it. Needs Chromium.

    python benchmarks/report_page.py [MODEL] [--store FOLDER]

Without a store, the standard set is measured first, into a folder of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bertology.cli.main import app
from browser import Browser

ROUNDS = 5
TIMES = "(e => [e.domInteractive, e.loadEventEnd])(performance.getEntriesByType('navigation')[0])"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    arguments.add_argument("model", nargs="?", default="bertology-mini")
    arguments.add_argument("--store", help="results that are there already")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        words = ["report", given.model, "--to", str(page), "--store"]
        words += [given.store] if given.store else [str(Path(folder) / "results"), "--measure"]
        done = CliRunner().invoke(app, words, prog_name="bertology")
        if done.exit_code:
            sys.exit(done.output)
        print(f"{page.stat().st_size / 1e6:.1f} MB")
        print("round  first paint  interactive  loaded (ms)")
        with Browser(width=1280) as browser:
            for number in range(ROUNDS):
                browser.open("about:blank")
                browser.open(page.as_uri())
                browser.wait_for(f"{TIMES}[1] > 0 && document.querySelector('#grid td') && {PAINT}")
                ready, loaded = browser.evaluate(TIMES)
                print(f"{number:5}  {browser.evaluate(PAINT):11.0f}  {ready:11.0f}  {loaded:6.0f}")


if __name__ == "__main__":
    main()
