"""Make the pictures of the pages that the README shows, with Chromium.

Usage: python docs/make_pictures.py [--report FILE.html] [--to FOLDER]

The explorer is started for `bertology-mini` and photographed at work; a report is a file that
`bertology report` wrote.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import uvicorn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from bertology.model.encoder import Encoder  # noqa: E402
from bertology.model.loading.saved_head import saved_head  # noqa: E402
from bertology.server.explore import explore_app  # noqa: E402
from bertology.server.serving import address_of, claim_port  # noqa: E402
from browser import Browser  # noqa: E402

WIDTH, TALL = 1280, 1200  # pixels
MODEL = "bertology-mini"
QUALITY = 88  # of WebP, in percent
TOO_LARGE = 300_000  # bytes; a README should open at once

# A hidden verb, the heads that go from it to its subject, and the first of them switched off.
VIEW = {
    "text": "The keys to the old cabinet are on the table.",
    "pair": None,
    "masked": [7],
    "level": "pieces",
    "off": {"heads": [[9, 2], [10, 7]], "layers": [], "dimensions": [], "how": "uniform"},
    "page": {
        "chosen": {"layer": 9, "head": 10},
        "look": "matrix",
        "search": {"kind": "relation", "name": "verb-subject"},
    },
}
DRAWN = (
    "document.getElementById('panes').ariaBusy === 'false'"
    " && document.querySelector('#predictions .both') && document.querySelector('#ranking li')"
)


@contextmanager
def explorer() -> Iterator[str]:
    """The explorer's address, as long as it is served."""
    encoder = Encoder.load(MODEL, head=saved_head(MODEL))
    with claim_port(0) as claimed:
        app = explore_app(encoder, port=claimed.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [claimed]})
        thread.start()
        try:
            yield address_of(claimed)
        finally:
            server.should_exit = True
            thread.join()


def photograph(browser: Browser, path: Path, *, height: int) -> None:
    """The window from its top, as WebP."""
    area = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    done = browser.call("Page.captureScreenshot", format="webp", quality=QUALITY, clip=area)
    content = base64.b64decode(done["data"])
    if len(content) > TOO_LARGE:
        raise SystemExit(f"{path.name} has {len(content)} bytes; at most {TOO_LARGE} are wanted")
    path.write_bytes(content)
    print(f"{path}: {len(content) // 1000} kB")


def show_explorer(browser: Browser, path: Path) -> None:
    """A sentence, its maps, and what two heads do to it."""
    with explorer() as address:
        browser.open(f"{address}#{quote(json.dumps(VIEW))}")
        browser.wait_for(DRAWN)
        height = browser.evaluate(
            "Math.ceil(document.querySelector('main').getBoundingClientRect().bottom) + 16"
        )
        browser.resize(WIDTH, height)
        time.sleep(0.5)  # the last frame
        photograph(browser, path, height=height)


def show_report(browser: Browser, report: Path, path: Path) -> None:
    """The beginning of a report, with a head opened."""
    browser.open(f"{report.resolve().as_uri()}#head=2.1")
    browser.wait_for("document.readyState === 'complete'")
    time.sleep(1.0)  # pictures are drawn after it has loaded
    browser.evaluate("scrollTo(0, 0)")
    browser.resize(WIDTH, TALL)
    time.sleep(0.5)  # the last frame
    photograph(browser, path, height=TALL)


def main() -> None:
    """Read the command line and make what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--report", type=Path, help="a report to photograph too")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "images")
    asked = parser.parse_args()
    if asked.report is not None and not asked.report.is_file():
        parser.error(f"there is no report {asked.report}")
    asked.to.mkdir(parents=True, exist_ok=True)
    folder = tempfile.TemporaryDirectory()
    with folder as profile, Browser(Path(profile), width=WIDTH, height=1000) as browser:
        browser.prefer("light")
        show_explorer(browser, asked.to / "explorer.webp")
        if asked.report is not None:
            show_report(browser, asked.report, asked.to / "report.webp")
        if browser.complaints:
            raise SystemExit(f"The pages complain: {browser.complaints}")


if __name__ == "__main__":
    main()
