"""How long a reader of the explorer waits: for all maps of a 32-token sentence, and for new
predictions after a head was switched off. Every question is a new one, so nothing is kept.

    python benchmarks/explorer_latency.py [--count 200] [--no-page]

"Answer" is from the question to the last byte of the answer, over one connection. "On screen" is
in Chromium, from the page's question to the frame after it has drawn; it needs Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from typing import Any

import httpx
import numpy as np
from explorer_server import ROOT, sentences, serving, view_of
from machine import describe

TOKENS = 32
TARGETS = {"maps": 300, "predictions": 150}  # milliseconds
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
Times = dict[str, list[float]]


def heads() -> list[list[int]]:
    return [[layer, head] for layer in range(12) for head in range(12)]


def ask(client: httpx.Client, what: str, **body: Any) -> float:
    started = time.perf_counter()
    client.post(f"/api/{what}", json=body).raise_for_status()
    return 1000 * (time.perf_counter() - started)


def answers(address: str, count: int) -> Times:
    """Of the server alone."""
    texts = sentences(TOKENS, count + 5)
    with httpx.Client(base_url=address, timeout=60) as client:
        for text in texts[:5]:
            ask(client, "maps", view=view_of(text))
        maps = [ask(client, "maps", view=view_of(text)) for text in texts[5:]]
        predictions = []
        for at in range(count):
            text = texts[at // 20]
            if at % 20 == 0:  # the reader has seen this sentence before switching heads off
                ask(client, "predict", view=view_of(text, masked=[9]), top=8)
            off = {"heads": [heads()[(7 * at) % 144]]}
            asked = view_of(text, masked=[9], off=off)
            predictions.append(ask(client, "predict", view=asked, top=8))
    return {"maps": maps, "predictions": predictions}


def last_wait(browser: Any, name: str) -> float:
    """Between the page's newest marks of having asked and having drawn."""
    script = (
        f"performance.getEntriesByName('{name}-drawn').at(-1).startTime - "
        f"performance.getEntriesByName('{name}-asked').at(-1).startTime"
    )
    return float(browser.evaluate(script))


def drawn(browser: Any, name: str) -> int:
    return int(browser.evaluate(f"performance.getEntriesByName('{name}-drawn').length"))


def after(browser: Any, name: str, act: Any) -> float:
    """Do something, and wait until the page has drawn what came of it."""
    before = drawn(browser, name)
    act()
    browser.wait_for(f"performance.getEntriesByName('{name}-drawn').length > {before}")
    waited = last_wait(browser, name)
    browser.wait_for("document.getElementById('panes').ariaBusy === 'false'")
    return waited


def write(browser: Any, text: str) -> None:
    browser.evaluate(
        f"(t => {{ t.value = {text!r}; t.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        "(document.getElementById('text'))"
    )


def page(address: str, count: int) -> Times:
    """As a reader has it, in a browser."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import Browser

    texts = sentences(TOKENS, count + 3, seed=1)
    found: Times = {"maps": [], "predictions": []}
    with Browser(width=1280, height=900) as browser:
        browser.open(address)
        browser.wait_for("performance.getEntriesByName('maps-drawn').length > 0")
        for at, text in enumerate(texts):
            waited = after(browser, "maps", lambda text=text: write(browser, text))
            found["maps"] += [waited] if at >= 3 else []
        words = texts[0].split()
        hidden = " ".join(["[MASK]" if i == 8 else word for i, word in enumerate(words)])
        after(browser, "predictions", lambda: write(browser, hidden))
        browser.evaluate("document.querySelector('#grid [tabindex=\"0\"]').focus()")
        for at in range(min(count, 132)):
            # Along the heads and on to the next layer: one head more is off each time.
            turn = at % 12 == 11
            found["predictions"].append(after(browser, "predictions", lambda: browser.press("o")))
            way = "ArrowDown" if turn else "ArrowRight" if at // 12 % 2 == 0 else "ArrowLeft"
            browser.press(way)
        assert not browser.complaints, browser.complaints
    return found


def show(name: str, times: Times) -> None:
    titles = {"maps": "sentence to all 144 maps", "predictions": "head off to new predictions"}
    for what, values in times.items():
        half, most, nearly_all = np.percentile(values, [50, 95, 99])
        met = "yes" if most < TARGETS[what] else "no"
        print(
            f"| {titles[what]}, {name} | {len(values)} | {half:.0f} ms | {most:.0f} ms | "
            f"{nearly_all:.0f} ms | {TARGETS[what]} ms | {met} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="another one than bertology-mini, with 12 × 12 heads")
    parser.add_argument("--count", type=int, default=200, help="questions of each kind")
    parser.add_argument("--no-page", action="store_true", help="the server alone")
    options = parser.parse_args()
    print(describe())
    print("\n| what | n | p50 | p95 | p99 | target | p95 meets it |\n|---|---|---|---|---|---|---|")
    with serving(options.model) as (address, _):
        show("answer", answers(address, options.count))
        if not options.no_page and any(map(shutil.which, BROWSERS)):
            show("on screen", page(f"{address}/", min(options.count, 120)))


if __name__ == "__main__":
    main()
