"""Trees by a stored structural probe in the explorer: those of plain states; how to get one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from scipy.sparse.csgraph import minimum_spanning_tree

import planted_impact
import tiny
from bertology.data.corpus import Corpus, Example
from bertology.model.encoder import Encoder
from bertology.model.loading.fingerprint import states_fingerprint
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.server.explore import explore_app
from bertology.server.trees import StructuralTrees, find_probe
from browser import Browser, find_browser
from explorer import answer, asking, served, view_of
from pages import idle, keep, pick, text

RANK, BEST = 3, 1
WORDS = "the dog often gladly sees a ball".split()
TEXT = " ".join(WORDS)
PIECES = [*WORDS, *"keys to old cabinet are on table . < b > chased ##ing".split()]


def encoder() -> Encoder:
    """A tiny model with a tokenizer of a few words."""
    made = tiny.model("bert", "mlm")
    return Encoder(made, tiny.tokenizer(PIECES, max_length=64), head="mlm", name="tiny <b>")


def corpus() -> Corpus:
    """One annotated sentence, with a full stop."""
    known = {
        "words": [*WORDS, "."],
        "heads": [*planted_impact.HEADS, 4],
        "relations": [*planted_impact.RELATIONS, "punct"],
    }
    plain = planted_impact.corpus(2)
    return replace(plain, name="own-trees", examples=[Example("a", f"{TEXT} .", annotations=known)])


def probe_of(made: Encoder, *, pooling: str = "mean", seed: int = 0) -> Result:
    """A result as `structural-probe` stores it, with matrices of chance."""
    layers, rng = [-1, *range(made.shape.layers)], np.random.default_rng(seed)
    shape = (2, len(layers), made.shape.hidden, RANK)
    arrays = xr.Dataset(
        {"projection": (("kind", "layer", "dimension", "column"), rng.normal(size=shape))},
        coords={"kind": ["distance", "depth"], "layer": layers},
        attrs={"weights": states_fingerprint(made.base, made.tokenizer)},
    )
    uuas = [0.9 if layer == BEST else 0.25 for layer in layers]
    return Result(
        Provenance(
            study="structural-probe",
            study_version=1,
            parameters={"pooling": pooling},
            model={"name": made.name, "fingerprint": "0", "shape": {"hidden": made.shape.hidden}},
            corpus={"name": "own <trees>", "fingerprint": "0"},
        ),
        {"layers": pd.DataFrame({"layer": layers, "uuas": uuas})},
        arrays,
    )


@pytest.mark.parametrize("layer", [0, 1, None])
def test_trees_are_those_of_plain_states(layer: int | None) -> None:
    made = encoder()
    result = probe_of(made)
    with asking(made, probe=StructuralTrees(result)) as client:
        found = answer(client, "tree", view=view_of(TEXT), layer=layer, head=0, tree="structural")
    at = BEST if layer is None else layer
    given = made.tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        states = made.model(**given, output_hidden_states=True).hidden_states[at + 1][0, 1:-1]
    matrix = result.arrays["projection"].sel(kind="distance", layer=at).to_numpy()
    points = states.double().numpy() @ matrix
    plain = minimum_spanning_tree(((points[:, None] - points) ** 2).sum(-1)).tocoo()
    assert found["words"] == WORDS
    arcs = {frozenset((w, h)) for w, h in enumerate(found["heads"]) if h >= 0}
    assert arcs == {frozenset(map(int, pair)) for pair in zip(*plain.coords, strict=True)}
    assert found["directed"] is False
    assert f"layer {at}, trained on own <trees>" in found["source"]
    assert ("layer 1 finds most" in found["source"]) is (at != BEST)


def test_words_of_several_pieces_are_pooled_as_they_were_trained() -> None:
    made, heads = encoder(), {}
    for pooling in ("first", "last", "mean"):
        probe = StructuralTrees(probe_of(made, pooling=pooling))
        with asking(made, probe=probe) as client:
            view = view_of("the dog chaseding a keysing ball")
            found = answer(client, "tree", view=view, layer=0, tree="structural")
        heads[pooling] = found["heads"]
        assert len(found["heads"]) == 6
    assert heads["first"] != heads["last"]


def test_without_a_probe_it_is_told_how_to_get_one(tmp_path: Path) -> None:
    made = encoder()
    with asking(made) as client:
        assert client.get("/api/model").json()["structural"] is None
        done = client.post("/api/tree", json={"view": view_of(TEXT), "tree": "structural"})
    assert done.status_code == 400
    assert "bertology run structural-probe" in done.json()["hint"]
    assert find_probe(str(tmp_path / "none"), made) is None


def test_a_probe_is_found_by_the_weights_of_its_model(tmp_path: Path) -> None:
    made, store = encoder(), Store(str(tmp_path))
    store.save(probe_of(made))
    found = find_probe(str(tmp_path), made)
    assert found is not None
    assert found.about == {"corpus": "own <trees>", "best": BEST}
    with torch.no_grad():
        made.base.get_input_embeddings().weight[7] += 1
    assert find_probe(str(tmp_path), made) is None


def shown(browser: Browser) -> None:
    idle(browser, "document.querySelector('#matrix canvas')")
    browser.evaluate("document.querySelector('input[name=look][value=tree]').click()")
    idle(browser, "document.querySelectorAll('#tree-frame path').length > 0")
    pick(browser, "tree-kind", "structural")


def test_the_page_shows_it_by_layer(tmp_path: Path) -> None:
    find_browser()
    made = encoder()
    probe = StructuralTrees(probe_of(made))

    def app(port: int) -> Any:
        return explore_app(made, port=port, own=[corpus()], probe=probe)

    with served(app) as address, Browser(width=1280, height=900) as browser:
        browser.open(address)
        shown(browser)
        note = "document.getElementById('tree-note').textContent"
        idle(browser, f"{note}.includes('structural probe of layer')")
        assert "trained on own <trees>" in text(browser, "#tree-note")
        assert browser.evaluate("document.querySelectorAll('#tree-frame path.gold').length") == 6
        browser.evaluate("document.querySelector('.chosen').scrollIntoView()")
        keep(browser, "structural-tree.png")
        assert not browser.complaints


def test_the_page_says_how_to_get_one(tmp_path: Path) -> None:
    find_browser()
    with (
        served(lambda port: explore_app(encoder(), port=port)) as address,
        Browser(width=1280, height=900) as browser,
    ):
        browser.open(address)
        shown(browser)
        idle(browser, "document.getElementById('tree-note').textContent.includes('--corpus')")
        assert browser.evaluate("document.getElementById('tree-frame').hidden")
        assert "--model tiny <b>" in text(browser, "#tree-note")
        assert not browser.complaints
