"""What keeps people out of a page, as axe-core finds it; `make test` fetches it by npm."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser import Browser

_AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
_FIND = """axe.run(document, {resultTypes: ['violations']}).then(found =>
  found.violations.filter(v => ['serious', 'critical'].includes(v.impact)).flatMap(v =>
    v.nodes.map(n => `${v.id}: ${n.target.join(' ')}: ${n.failureSummary}`)))"""


def need_axe() -> None:
    """Skip where axe-core is not there."""
    if not _AXE.exists():
        pytest.skip("needs axe-core; fetch it with: npm ci --prefix tests")


def find_barriers(browser: Browser) -> list[str]:
    """The serious and critical ones on the page as it is now."""
    need_axe()
    if not browser.evaluate("'axe' in window"):
        browser.evaluate(_AXE.read_text(encoding="utf-8") + "; true")
    found: list[str] = browser.evaluate(_FIND)
    return found
