"""Make the pictures of the pages that the README and the how-tos show, with Chromium.

Usage: python docs/make_pictures.py [--report FILE.html] [--senses FILE.html] [--to FOLDER]

The explorer is started for `bertology-mini` and photographed at work: as one uses it, and before a
class, in the middle of its tour. The page of `bertology view` is written and photographed too. A
report is a file that `bertology report` wrote; that of senses has a result of `word-senses`.
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
from bertology.server.view_page import view  # noqa: E402
from browser import Browser  # noqa: E402

WIDTH, TALL = 1280, 1200  # pixels
MODEL = "bertology-mini"
QUALITY = 88  # of WebP, in percent
TOO_LARGE = 300_000  # bytes; a README should open at once

# A hidden verb, the head that goes from it to its subject switched off, and those that are left.
VIEW = {
    "text": "The keys to the old cabinet are on the table.",
    "pair": None,
    "masked": [7],
    "level": "pieces",
    "off": {"heads": [[9, 2]], "layers": [], "dimensions": [], "how": "uniform"},
    "page": {
        "chosen": {"layer": 8, "head": 4},
        "look": "matrix",
        "search": {"kind": "relation", "name": "verb-subject"},
    },
}
IDLE = "document.getElementById('panes').ariaBusy === 'false'"
DRAWN = (
    f"{IDLE} && document.querySelector('#predictions .both')"
    " && document.querySelector('#ranking li')"
)


LESSON = 800  # pixels: the height of a small projector
PAIR = ("The keys to the old cabinet are on the table.", "They open the door.")


@contextmanager
def explorer(encoder: Encoder) -> Iterator[str]:
    """The explorer's address, as long as it is served."""
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


def photograph(
    browser: Browser,
    path: Path,
    *,
    height: float,
    width: float = WIDTH,
    left: float = 0,
    top: float = 0,
) -> None:
    """The page from its top, or a part of it, as WebP."""
    area = {"x": left, "y": top, "width": width, "height": height, "scale": 1}
    done = browser.call(
        "Page.captureScreenshot",
        format="webp",
        quality=QUALITY,
        clip=area,
        captureBeyondViewport=top > 0,
    )
    content = base64.b64decode(done["data"])
    if len(content) > TOO_LARGE:
        raise SystemExit(f"{path.name} has {len(content)} bytes; at most {TOO_LARGE} are wanted")
    path.write_bytes(content)
    print(f"{path}: {len(content) // 1000} kB")


def photograph_all(browser: Browser, path: Path) -> None:
    """The page down to its end."""
    height = browser.evaluate(
        "Math.ceil(document.querySelector('main').getBoundingClientRect().bottom) + 16"
    )
    browser.resize(WIDTH, height)
    time.sleep(0.5)  # the last frame
    photograph(browser, path, height=height)


def show_explorer(browser: Browser, address: str, path: Path) -> None:
    """A sentence, its maps, and what two heads do to it."""
    browser.open(f"{address}#{quote(json.dumps(VIEW))}")
    browser.wait_for(DRAWN)
    photograph_all(browser, path)


def show_lesson(browser: Browser, address: str, path: Path) -> None:
    """The step of the tour with a head that follows grammar, in large type."""
    browser.resize(WIDTH, LESSON)
    browser.open("about:blank")
    browser.open(address)
    browser.wait_for(f"{IDLE} && document.querySelector('#predictions td')")
    browser.click("#present")
    browser.click("#start-tour")
    for step in range(1, 6):
        here = f"document.getElementById('tour-count').textContent.startsWith('Step {step}')"
        browser.wait_for(f"{IDLE} && {here}")
        if step < 5:
            browser.click("#tour-next")
    browser.evaluate("scrollTo(0, 0)")
    time.sleep(0.5)  # the last frame
    photograph(browser, path, height=LESSON)


def show_view(browser: Browser, encoder: Encoder, folder: Path, path: Path) -> None:
    """The page that a class gets, with a head as lines."""
    page = view(encoder, PAIR).save(folder / "page.html")
    browser.resize(WIDTH, TALL)
    browser.open(page.as_uri())
    browser.wait_for(f"{IDLE} && !document.getElementById('worth').hidden")
    browser.click("input[value=words] + span")
    browser.click("input[value=lines] + span")
    browser.wait_for(IDLE)
    browser.evaluate("scrollTo(0, 0)")
    photograph_all(browser, path)


def show_report(browser: Browser, report: Path, path: Path) -> None:
    """The beginning of a report, with a head opened."""
    browser.open(f"{report.resolve().as_uri()}#head=2.1")
    browser.wait_for("document.readyState === 'complete'")
    time.sleep(1.0)  # pictures are drawn after it has loaded
    browser.evaluate("scrollTo(0, 0)")
    browser.resize(WIDTH, TALL)
    time.sleep(0.5)  # the last frame
    photograph(browser, path, height=TALL)


def show_senses(browser: Browser, report: Path, path: Path) -> None:
    """The plane of the first word in a report, with an occurrence read by keyboard."""
    browser.open(report.resolve().as_uri())
    browser.wait_for("document.querySelector('.plane canvas').height > 100")
    browser.resize(1000, TALL)
    browser.evaluate("document.querySelector('.plane canvas').focus()")
    for _ in range(12):  # near the frame, where the label covers few marks
        browser.press("ArrowUp")
    time.sleep(0.5)  # the last frame
    left, top, width, height = browser.evaluate(
        "(b => [b.left + scrollX, b.top + scrollY, b.width, b.height])"
        "(document.querySelector('figure.points').getBoundingClientRect())"
    )
    photograph(browser, path, height=height + 8, width=width + 16, left=left - 8, top=top - 8)


def main() -> None:
    """Read the command line and make what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--report", type=Path, help="a report to photograph too")
    parser.add_argument("--senses", type=Path, help="a report with planes of words, too")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "images")
    asked = parser.parse_args()
    for report in (asked.report, asked.senses):
        if report is not None and not report.is_file():
            parser.error(f"there is no report {report}")
    asked.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Browser(width=WIDTH, height=1000) as browser:
        browser.prefer("light")
        encoder = Encoder.load(MODEL, head=saved_head(MODEL))
        with explorer(encoder) as address:
            show_explorer(browser, address, asked.to / "explorer.webp")
            show_lesson(browser, address, asked.to / "lesson.webp")
        show_view(browser, encoder, Path(folder), asked.to / "view-page.webp")
        if asked.report is not None:
            show_report(browser, asked.report, asked.to / "report.webp")
        if asked.senses is not None:
            show_senses(browser, asked.senses, asked.to / "senses-plane.webp")
        if browser.complaints:
            raise SystemExit(f"The pages complain: {browser.complaints}")


if __name__ == "__main__":
    main()
