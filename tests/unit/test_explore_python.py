"""The lines that the explorer gives to copy do run, and give the numbers that it shows."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny
from bertology.model.encoder import Encoder
from bertology.model.loading.saved_head import saved_head
from explorer import PIECES, answer, asking, encoder_of, maps_of, view_of

EVIL = "it's \"here\" \\ '''the keys''' {dog}"
VIEWS: list[dict[str, Any]] = [
    view_of(),
    view_of(masked=[2, 7], off={"heads": [[0, 1], [2, 3]], "how": "uniform"}),
    view_of(masked=[2], off={"heads": [[1, 1]], "how": "mean", "layers": [2], "dimensions": [4]}),
    view_of(level="words", off={"heads": [[0, 0]], "how": "zero"}),
    view_of("the keys", pair="it is here", level="words", off={"layers": [0]}),
    view_of("The [MASK] are here"),
    view_of(EVIL, pair="it's\nhere"),
]


@pytest.fixture(scope="module", params=["mlm", "classification"])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    """A model that can be loaded by its name, as the copied lines do."""
    folder = tmp_path_factory.mktemp("model")
    made = encoder_of(request.param)
    made.model.save_pretrained(folder)
    tiny.tokenizer(PIECES, max_length=64).save_pretrained(folder)
    assert saved_head(str(folder)) == request.param
    return Encoder.load(str(folder), head=request.param, device="cpu")


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "copied", "exec"), names)
    return names


def test_copied_lines_give_what_is_shown(encoder: Encoder) -> None:
    with asking(encoder) as client:
        for view in VIEWS:
            names = run(answer(client, "python", view=view, layer=1, head=2)["code"])
            shown = answer(client, "map", view=view, layer=1, head=2)
            size = len(shown["tokens"])
            steps = np.frombuffer(base64.b64decode(shown["weights"]), "<u2").reshape(size, size)
            weights = steps / 65535 * shown["peak"]
            np.testing.assert_allclose(names["attention"], weights, atol=1e-5)
            found = answer(client, "predict", view=view, top=5)
            told = found["after"] or found["before"]
            for row, place in enumerate(told["masked"]):
                top = sorted((p["probability"] for p in place["predictions"]), reverse=True)[:5]
                values = names["probabilities"][row].topk(5).values.tolist()
                assert values == pytest.approx(top, abs=1e-5)
            if told["classes"] is not None:
                shares = [c["probability"] for c in told["classes"]]
                assert names["classes"].tolist() == pytest.approx(shares, abs=1e-5)
                assert names["labels"] == [c["label"] for c in told["classes"]]


def test_without_a_head_all_maps_come(encoder: Encoder) -> None:
    with asking(encoder) as client:
        for view in VIEWS[:4]:
            names = run(answer(client, "python", view=view)["code"])
            _, maps = maps_of(client, view)
            assert names["attention"] == pytest.approx(maps, abs=0.005)


def test_heads_that_models_were_saved_with(tmp_path: Path) -> None:
    import transformers as hf

    folder = tmp_path / "model"
    for kind, head in (
        (hf.BertForPreTraining, "pretraining"),
        (hf.BertModel, "base"),
        (hf.BertForTokenClassification, "base"),
    ):
        kind(tiny.config("bert")).save_pretrained(folder)
        assert saved_head(str(folder)) == head
    hf.ElectraForPreTraining(tiny.config("electra")).save_pretrained(folder)
    assert saved_head(str(folder)) == "base"
    hf.GPT2LMHeadModel(tiny.config("gpt2")).save_pretrained(folder)
    assert saved_head(str(folder)) == "causal"
    assert saved_head() == "pretraining"
