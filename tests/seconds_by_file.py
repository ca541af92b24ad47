"""Seconds of CPU that each test file took, children included: recorded, and printed at the end.

Seconds of CPU and not of a clock, since other programs of the machine do not add to them.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

RECORD = Path(".pytest_cache") / "seconds_by_file.json"
SHOWN = 12


def spent() -> float:
    """Seconds of CPU of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Notes what a test with its fixtures took; a worker sends it along with the test's report."""
    before = spent()
    item.user_properties.append(("seconds", lambda: spent() - before))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Says what was taken so far when the test is taken down."""
    report = yield
    report.user_properties = [
        (name, round(value(), 3)) if callable(value) else (name, value)
        for name, value in report.user_properties
        if not callable(value) or call.when == "teardown"
    ]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the dearest files, and writes all of them down."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "seconds":
                    seconds[report.nodeid.split("::")[0]] += value
                    tests[report.nodeid] += value
    if not seconds:
        return
    RECORD.parent.mkdir(exist_ok=True)
    tested = sum(seconds.values())
    beside = spent() - tested  # workers have ended, and are children that were waited for
    record = {
        "tests of all files": round(tested, 1),
        "importing and collecting": round(beside, 1),
        "files": {name: round(value, 1) for name, value in seconds.most_common()},
        "tests": {name: round(value, 1) for name, value in tests.most_common(400)},
    }
    RECORD.write_text(json.dumps(record, indent=1), encoding="utf-8")
    terminalreporter.section("seconds of CPU by file")
    terminalreporter.line(f"{tested + beside:7.0f}  in all; all files: {RECORD}")
    terminalreporter.line(f"{beside:7.0f}  importing and collecting")
    for name, value in seconds.most_common(SHOWN):
        terminalreporter.line(f"{value:7.1f}  {name}")
