"""A study is one file or folder and one test: every study and join has a test of its result."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.studies import JOINS, STUDIES, find_question

TESTS = Path(__file__).parents[1] / "studies"
BUILT_IN = [
    name
    for name in [*STUDIES, *JOINS]
    if find_question(name).__module__.startswith("bertology.studies.")
]


@pytest.mark.parametrize("name", BUILT_IN)
def test_its_result_keeps_to_what_all_results_keep_to(name: str) -> None:
    topic = find_question(name).__module__.split(".")[2]
    test = TESTS / topic / f"test_{name.replace('-', '_')}.py"
    assert test.is_file(), f"{name} has no test {topic}/{test.name}"
    assert "(ResultConformance):" in test.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BUILT_IN)
def test_it_says_question_method_and_limits(name: str) -> None:
    doc = find_question(name).__doc__ or ""
    assert doc.partition("\n")[0].endswith("?")
    assert "Method:" in doc
    assert "Limits:" in doc
