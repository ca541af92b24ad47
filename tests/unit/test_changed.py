"""Which tests a change can reach is found from imports and names."""

from __future__ import annotations

import pytest

from changed import ROOT, SHARED, every_test, reached, reaching, tells

STUDIES = "tests/unit/test_studies_are_tested.py"
MASKS = "tests/unit/test_weight_masks.py"
LAW = "tests/unit/test_import_laws.py"
CLOZES = "tests/unit/test_clozes.py"
ASK = "tests/cli/test_ask.py"


def test_a_test_reaches_what_it_imports_and_what_that_imports() -> None:
    files = reached(CLOZES)
    assert {CLOZES, "tests/tiny.py"} <= files
    assert {"src/bertology/model/masked_lm/clozes.py", "src/bertology/model/batch.py"} <= files
    assert "src/bertology/model/masked_lm/__init__.py" in files  # importing runs it
    assert not [path for path in reached(MASKS) if path.startswith("src/bertology/train/")]


@pytest.mark.parametrize(
    ("test", "changed", "told"),
    [
        (CLOZES, "src/bertology/model/masked_lm/clozes.py", True),
        (CLOZES, "src/bertology/train/pretrain/loop.py", False),
        (MASKS, "src/bertology/claims/dark-secrets.yaml", False),
        (ASK, "src/bertology/cli/ask.py", True),  # found by its name
        (ASK, "src/bertology/run/asking.py", True),
        (ASK, "src/bertology/cli/pretrain.py", False),
        (ASK, "src/bertology/cli/gone.py", False),
        (LAW, "src/bertology/train/pretrain/loop.py", True),  # looks at all sources
        (MASKS, "src/bertology/model/weight_masks.py", True),
        (MASKS, "src/bertology/stats/crossed.py", False),
        (MASKS, "tests/planted_facts.py", False),
        ("tests/unit/test_atlas.py", "tests/toy_atlas.py", True),  # a fixture that all may name
        ("tests/unit/test_docs.py", "docs/tutorial.md", True),
        (ASK, "docs/tutorial.md", False),
        ("tests/unit/test_claims.py", "src/bertology/claims/dark-secrets.yaml", True),
        ("tests/unit/test_catalog.py", "src/bertology/data/catalog/grammar.yaml", True),
        (
            "tests/unit/test_studies_are_tested.py",
            "src/bertology/studies/attention/cls_attention.py",
            True,
        ),
    ],
)
def test_only_what_it_reaches_matters(test: str, changed: str, told: bool) -> None:
    assert (ROOT / test).is_file()
    assert tells(test, changed) == told


@pytest.mark.parametrize("changed", [*SHARED, "tests/package.json"])
def test_where_it_cannot_be_told_all_tests_are_meant(changed: str) -> None:
    assert reaching([changed]) == every_test()
    assert LAW in every_test()
