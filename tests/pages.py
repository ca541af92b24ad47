"""What tests do on the explorer's page, served or in one file: read it, use it, look at it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from browser import Browser

IDLE = "document.getElementById('panes').ariaBusy === 'false'"
WIDTHS_AND_SCHEMES = [(w, s) for w in (1280, 390) for s in ("light", "dark")]


def idle(browser: Browser, condition: str = "true") -> None:
    """Until the page waits for no answer, and the condition holds."""
    browser.wait_for(f"{IDLE} && ({condition})")


def text(browser: Browser, selector: str) -> str:
    """The text of the first element."""
    found: str = browser.evaluate(f"document.querySelector({selector!r}).textContent")
    return found


def texts(browser: Browser, selector: str) -> list[str]:
    """The texts of all elements."""
    found: list[str] = browser.evaluate(
        f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)"
    )
    return found


def pick(browser: Browser, menu: str, value: str) -> None:
    """Choose an entry of a menu, as users do."""
    browser.evaluate(
        f"(m => {{ m.value = {json.dumps(value)}; m.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById({menu!r}))"
    )


def page_state(browser: Browser) -> dict[str, Any]:
    """What the address holds, once it is up to date."""
    time.sleep(0.5)  # the page changes its address a little later
    found: dict[str, Any] = browser.evaluate(
        "JSON.parse(decodeURIComponent(location.hash.slice(1)))"
    )
    return found


def keep(browser: Browser, name: str) -> None:
    """A picture to look at, where somebody asked for one."""
    if folder := os.environ.get("BERTOLOGY_SCREENSHOTS"):
        browser.screenshot(Path(folder) / name)
