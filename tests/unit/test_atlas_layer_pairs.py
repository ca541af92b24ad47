"""Layers of two models in the comparison: found in either direction, in a browser, by keyboard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toy_atlas as toy
from accessibility import find_barriers
from bertology.errors import ResultNotFoundError
from bertology.report.atlas.about import About, read_about
from bertology.report.atlas.compare import Side, two_models
from bertology.report.atlas.gathering import gather
from bertology.report.atlas.maps import layer_pairs
from bertology.report.atlas.page import atlas_page
from bertology.results import result as result_module
from bertology.results.measures import LayerGrid
from bertology.results.result import Result
from bertology.results.store import Store
from browser import Browser, find_browser

OTHER = {"name": "other", "fingerprint": "dddd", "head": "base"}
VALUES = np.array([[1.0, 0.5, 0.25, 0.1], [0.6, 0.9, 0.3, 0.2], [0.2, 0.4, 0.7, np.nan]])


class Pairs(toy.Toy):
    """Three states of the one model, four of the other."""

    def layer_grids(self) -> Sequence[LayerGrid]:
        return [
            LayerGrid(
                "cka", f"How alike {toy.EVIL}", VALUES, "CKA", "1: alike.",
                low=VALUES - 0.05, high=VALUES + 0.05, other="against",
            ),
            LayerGrid("own", "Within", VALUES[:, :3], "CKA", "1: alike."),
        ]  # fmt: skip


def compared(model: Mapping[str, Any], other: Mapping[str, Any], data: str = "plain") -> Pairs:
    made = toy.make(model, data, study="pair-study", others={"against": dict(other)})
    return Pairs(made.provenance, made.tables, made.arrays)


@pytest.fixture
def store(toy_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    def find(study: str) -> type[Result]:
        return Pairs if study == "pair-study" else toy.Toy

    monkeypatch.setattr(result_module, "_find", find)
    return toy_store


def about(study: str) -> About:
    return read_about("Does it? Method: we look. Limits: none.", defaults={"seed": 0})


def test_rows_are_of_the_first_model_whichever_was_asked(store: Store) -> None:
    store.save(compared(toy.MODEL, OTHER))
    first, second = two_models(gather(store, "toy"), gather(store, "other"))
    (grid,) = layer_pairs(first, second)  # what is within one model is no comparison
    assert (grid["rows"], grid["columns"]) == (
        ["input", "0", "1"],
        ["input", "0", "1", "2"],
    )
    assert grid["values"][:4] == [1, 0.5, 0.25, 0.1]
    assert grid["values"][-1] is None
    assert grid["low"][1] == pytest.approx(0.45)
    (turned,) = layer_pairs(second, first)
    assert turned["values"][:3] == [1, 0.6, 0.2]
    assert (turned["rows"], turned["columns"]) == (grid["columns"], grid["rows"])
    # The other one asked the same over the same data: shown once.
    store.save(compared(OTHER, toy.MODEL))
    assert len(layer_pairs(*two_models(gather(store, "toy"), gather(store, "other")))) == 1


def test_other_weights_of_the_name_are_not_the_model(store: Store) -> None:
    store.save(compared(toy.MODEL, {**OTHER, "fingerprint": "of old"}))
    assert layer_pairs(*two_models(gather(store, "toy"), gather(store, "other"))) == []
    # Results of another head have another fingerprint for the same weights.
    store.save(compared(toy.MODEL, {**OTHER, "fingerprint": "of masks", "head": "mlm"}, "far"))
    assert len(layer_pairs(*two_models(gather(store, "toy"), gather(store, "other")))) == 1


def test_before_and_after_fine_tuning(store: Store) -> None:
    origin = {"name": "toy", "fingerprint": toy.MODEL["fingerprint"], "task": "task-a"}
    tuned = {"name": toy.TUNED_A, "fingerprint": "bbbb", "tuned_from": origin}
    store.save(compared(tuned, {**toy.MODEL, "head": "base"}, "task-a"))
    whole = gather(store, "toy")
    before = Side("toy", (), model=whole.model)  # it needs no result of its own
    after = Side("tuned", tuple(e for e in whole.entries if e.task == "task-a"))
    (grid,) = layer_pairs(before, after)
    assert grid["label"] == "fine-tuned on task-a"
    assert grid["values"][:3] == [1, 0.6, 0.2]


def test_a_model_that_others_were_compared_with_needs_no_result(store: Store) -> None:
    store.save(compared(toy.MODEL, {"name": "far/away", "fingerprint": "ffff"}))
    with pytest.raises(ResultNotFoundError):
        gather(store, "far/away")
    other = gather(store, "far/away", compared=True)
    assert (other.name, other.entries) == ("far/away", ())
    subject = gather(store, "toy")
    page = atlas_page(subject, about, two_models(subject, other))
    data = page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    assert len(json.loads(data)["layerPairs"]) == 1
    assert "No measure of heads is known of both" not in page


def test_the_grid_in_a_browser(store: Store, tmp_path: Path) -> None:
    find_browser()
    store.save(compared(toy.MODEL, OTHER))
    subject, other = gather(store, "toy"), gather(store, "other")
    path = tmp_path / "page.html"
    path.write_text(atlas_page(subject, about, two_models(subject, other)), encoding="utf-8")
    with Browser() as browser:
        browser.open(path.as_uri())
        browser.wait_for("document.querySelectorAll('#pairs-grid td').length === 12")
        cells = "document.querySelectorAll('#pairs-grid td')"
        label = f"{cells}[6].getAttribute('aria-label')"
        told = "toy, layer 0; other, layer 1: 0.3 CKA, 95 % interval [0.25, 0.35]"
        assert browser.evaluate(label) == told
        assert browser.evaluate(f"{cells}[11].getAttribute('aria-label')").endswith("not measured")
        browser.evaluate(f"{cells}[0].focus()")
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            browser.press(key)
        assert browser.evaluate("document.activeElement.getAttribute('aria-label')") == told
        readout = "document.querySelector('#pairs-grid .readout').textContent"
        assert browser.evaluate(readout) == f"{told}."
        names = "[...document.querySelectorAll('#pairs-grid th')].map(th => th.textContent)"
        assert browser.evaluate(names) == ["", "in", "0", "1", "2", "in", "0", "1"]
        assert browser.evaluate("document.querySelectorAll('#compare-grids .pane').length") == 3
        assert browser.complaints == []
        assert find_barriers(browser) == []
