"""Notes on a run reach Python users as warnings, and a command as lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bertology.run import api, loading
from bertology.studies.study import Needs


@pytest.fixture
def run_with_notes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`run_study` on an untrained head that was fine-tuned for another task; nothing is run."""
    origin = {"tuned_from": {"task": "rte"}}
    monkeypatch.setattr(loading, "describe_model", lambda encoder: origin)
    study = SimpleNamespace(needs=Needs(head="classification", task=True))
    corpus = SimpleNamespace(name="mrpc", task=object(), fields=())
    encoder = SimpleNamespace(new_weights=["classifier.weight"])
    session = SimpleNamespace(run=lambda *given, **named: "result")

    def run(**more: Any) -> Any:
        given: Any = (study, session)
        return api.run_study("a-study", *given, model=encoder, corpus=corpus, **more)  # type: ignore[arg-type]

    return run


def test_python_users_get_warnings(run_with_notes: Any) -> None:
    with pytest.warns(UserWarning) as caught:  # noqa: PT030 - both texts are checked below
        assert run_with_notes() == "result"
    first, second = (str(warning.message) for warning in caught)
    assert "has random weights" in first
    assert "fine-tuned for rte, not for mrpc" in second


def test_a_command_gets_the_same_notes(run_with_notes: Any) -> None:
    notes: list[str] = []
    run_with_notes(notify=notes.append)
    assert len(notes) == 2
