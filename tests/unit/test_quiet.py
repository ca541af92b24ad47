"""The libraries below are silent, unless the user wants to hear them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings

import pytest

from bertology.quiet import VERBOSE_VARIABLE, be_verbose, hush, is_verbose


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in (VERBOSE_VARIABLE, "TRANSFORMERS_VERBOSITY", "TOKENIZERS_PARALLELISM"):
        os.environ.pop(name, None)


def test_hush_sets_the_environment_and_respects_the_users() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    hush()
    assert os.environ["TRANSFORMERS_VERBOSITY"] == "error"
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"
    assert logging.getLogger("transformers").level == logging.ERROR


def test_warnings_of_the_libraries_are_dropped_and_others_are_not() -> None:
    hush()
    for library in ("transformers", "tqdm"):  # tqdm misses widgets in every notebook
        silenced = {"__name__": f"{library}.anything"}
        exec("import warnings; warnings.warn('library noise')", silenced)
    with pytest.warns(UserWarning, match="the user's own"):
        warnings.warn("the user's own", stacklevel=1)


def test_verbose_undoes_it_also_for_workers() -> None:
    hush()
    be_verbose()
    assert is_verbose()
    assert os.environ[VERBOSE_VARIABLE] == "1"
    assert "TRANSFORMERS_VERBOSITY" not in os.environ
    hush()
    assert "TRANSFORMERS_VERBOSITY" not in os.environ


def test_import_alone_changes_nothing() -> None:
    code = (
        "import os, sys; before = dict(os.environ); import bertology\n"
        "assert dict(os.environ) == before\n"
        "assert set(bertology.__all__) <= set(dir(bertology))\n"
        "assert not hasattr(bertology, 'no_such_name')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
