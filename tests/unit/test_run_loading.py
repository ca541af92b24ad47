"""Notes on a run reach Python users as warnings, and a command as lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bertology.run import api, loading, session
from bertology.studies.study import Needs


class EnoughError(Exception):
    """All notes were given."""


@pytest.fixture
def run_with_notes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`run_study` on an untrained head that was fine-tuned for another task; nothing is run."""
    origin = {"tuned_from": {"task": "rte"}}
    monkeypatch.setattr(loading, "describe_model", lambda encoder: origin)
    monkeypatch.setattr(session, "check_needs", lambda *given: None)

    def stop(*given: object) -> None:
        raise EnoughError

    monkeypatch.setattr(session, "as_needed", stop)
    study: Any = SimpleNamespace(needs=Needs(head="classification", task=True))
    corpus: Any = SimpleNamespace(name="mrpc", task=object(), fields=())
    encoder: Any = SimpleNamespace(new_weights=["classifier.weight"])

    def run(**more: Any) -> None:
        made = api.make_session(None)
        with pytest.raises(EnoughError):
            api.run_study("a-study", study, made, model=encoder, corpus=corpus, **more)

    return run


def test_python_users_get_warnings(run_with_notes: Any) -> None:
    with pytest.warns(UserWarning) as caught:  # noqa: PT030 - both texts are checked below
        run_with_notes()
    first, second = (str(warning.message) for warning in caught)
    assert "has random weights" in first
    assert "fine-tuned for rte, not for mrpc" in second


def test_a_command_gets_the_same_notes(run_with_notes: Any) -> None:
    notes: list[str] = []
    run_with_notes(notify=notes.append)
    assert len(notes) == 2
