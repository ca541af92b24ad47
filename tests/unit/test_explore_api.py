"""The explorer's answers are those of the model, with what is off switched off."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

import planted
import tiny
from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.model.interventions import (
    Intervention,
    MeanHead,
    SkipLayer,
    UniformAttention,
    ZeroDimensions,
    ZeroHead,
)
from bertology.model.loading.pruning import prune_heads
from bertology.model.outliers import weight_outliers
from bertology.server.explore import EXPLORE_PAGES
from bertology.server.reading import MEANS_OVER
from explorer import PIECES, TEXT, answer, asking, encoder_of, maps_of, unpacked, view_of

MAPS = "layer.*.head.*.pattern"


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return encoder_of()


@pytest.fixture(scope="module")
def client(encoder: Encoder) -> Iterator[TestClient]:
    with asking(encoder) as found:
        yield found


def changes_of(encoder: Encoder, off: dict[str, Any]) -> list[Intervention]:
    heads = [tuple(pair) for pair in off.get("heads", [])]
    made: list[Intervention] = []
    if heads:
        means = encoder.head_means(load_corpus("grammar", limit=MEANS_OVER).texts)
        kinds: dict[str, Intervention] = {
            "uniform": UniformAttention(heads),
            "zero": ZeroHead(heads),
            "mean": MeanHead(heads, means),
        }
        made.append(kinds[off.get("how", "uniform")])
    made += [SkipLayer(off["layers"])] if off.get("layers") else []
    made += [ZeroDimensions(off["dimensions"])] if off.get("dimensions") else []
    return made


OFF: list[dict[str, Any]] = [
    {},
    {"heads": [[0, 1], [2, 3]], "how": "uniform"},
    {"heads": [[0, 1], [2, 3]], "how": "zero"},
    {"heads": [[1, 0]], "how": "mean"},
    {"layers": [1]},
    {"dimensions": [3, 17]},
    {"heads": [[0, 0]], "layers": [2], "dimensions": [5], "how": "zero"},
]


# The model ---------------------------------------------------------------------------------------


def test_the_model_is_described(client: TestClient, encoder: Encoder) -> None:
    about = client.get("/api/model").json()
    assert (about["layers"], about["heads"], about["hidden"]) == (3, 4, 24)
    assert about["parameters"] == sum(p.numel() for p in encoder.model.parameters())
    assert about["can"] == {"maps": True, "masked": True, "classes": False, "words": True}
    assert (about["labels"], about["value"], about["mask_token"]) == (None, False, "[MASK]")
    assert about["limits"] == {"characters": 4000, "tokens": 64}
    assert about["hows"] == ["uniform", "zero", "mean"]
    assert about["annotate"] is False
    assert "grammar" in {task["name"] for task in about["tasks"]}
    assert all(set(row) == {"name", "title", "own"} for row in about["tasks"])
    for menu in ("relations", "patterns"):
        assert all(set(row) == {"name", "title"} for row in about[menu])
    assert {"text", "pair"} == set(about["examples"][0])


# Maps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", OFF)
def test_maps_are_those_of_the_model(
    client: TestClient, encoder: Encoder, off: dict[str, Any]
) -> None:
    about, maps = maps_of(client, view_of(off=off))
    expected = encoder.run(TEXT, record=MAPS, do=changes_of(encoder, off))[MAPS][:, 0].numpy()
    peaks = expected.max(axis=(-2, -1), keepdims=True)
    assert np.all(np.abs(maps - expected) <= peaks / 255 / 2 + 1e-6)
    assert about["tokens"] == "[CLS] the key ##s to the cabinet are here . [SEP]".split()
    assert about["words"] == [None, 0, 1, 1, 2, 3, 4, 5, 6, 7, None]
    assert about["special"] == [True, *[False] * 9, True]
    assert about["pieces"] == [[i] for i in range(11)]
    assert about["boundary"] is None


def test_words_are_sums_and_means_over_pieces(client: TestClient, encoder: Encoder) -> None:
    about, maps = maps_of(client, view_of(level="words", masked=[2, 3]))
    assert about["tokens"] == "[CLS] The [MASK] to the cabinet are here . [SEP]".split()
    assert about["originals"][2] == "keys"
    assert about["pieces"][2] == [2, 3]
    _, pieces = maps_of(client, view_of(masked=[2, 3]))
    assert maps.sum(-1) == pytest.approx(1, abs=0.02)
    assert maps[:, :, 4, 2] == pytest.approx(pieces[:, :, 5, 2:4].sum(-1), abs=0.01)
    assert maps[:, :, 2, 4] == pytest.approx(pieces[:, :, 2:4, 5].mean(-1), abs=0.01)


def test_pairs_have_a_boundary(client: TestClient) -> None:
    for level, boundary in (("pieces", 5), ("words", 4)):
        about, _ = maps_of(client, view_of("keys here", pair="it is", level=level))
        assert about["boundary"] == boundary
        assert about["tokens"][boundary] == "it"


@pytest.mark.parametrize("level", ["pieces", "words"])
def test_one_map_comes_in_full(client: TestClient, level: str) -> None:
    view = view_of(level=level, off={"heads": [[0, 1]]})
    shown = answer(client, "map", view=view, layer=1, head=2)
    size = len(shown["tokens"])
    steps = np.frombuffer(base64.b64decode(shown["weights"]), "<u2").reshape(size, size)
    _, maps = maps_of(client, view)
    assert steps / 65535 * shown["peak"] == pytest.approx(maps[1, 2], abs=0.004)
    assert steps.max() == 65535


def test_pruned_heads_are_told_and_empty() -> None:
    whole = encoder_of()
    encoder = Encoder(prune_heads(whole, [(1, 2)]), whole.tokenizer, head="mlm", name="tiny")
    with asking(encoder) as client:
        assert client.get("/api/model").json()["gone"] == [[1, 2]]
        about, maps = maps_of(client, view_of())
        assert about["peaks"][1 * 4 + 2] == 0
        assert maps[1, 2].max() == 0
        query = {"kind": "pattern", "name": "previous"}
        found = answer(client, "search", view=view_of(), query=query)["heads"]
        assert len(found) == 11
        refused = client.post("/api/map", json={"view": view_of(), "layer": 1, "head": 2})
        assert refused.status_code == 400
        assert "pruned" in refused.json()["error"]


# Predictions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", OFF)
def test_hidden_words_before_and_after(
    client: TestClient, encoder: Encoder, off: dict[str, Any]
) -> None:
    found = answer(client, "predict", view=view_of(masked=[2, 7], off=off), top=3)
    batch = encoder.encode(TEXT)
    batch.inputs["input_ids"][0, [2, 7]] = encoder.tokenizer.mask_token_id
    expected = {}
    for name, changes in (("before", []), ("after", changes_of(encoder, off))):
        expected[name] = encoder.run(batch, do=changes).logits[0, [2, 7]].softmax(-1)
    assert (found["after"] is None) == (not off)
    for name in ("before", "after") if off else ("before",):
        for row, told in zip(expected[name], found[name]["masked"], strict=True):
            listed = {p["token"]: p["probability"] for p in told["predictions"]}
            top = row.topk(3)
            names = [encoder.tokenizer.decode([i]) for i in top.indices.tolist()]
            assert list(listed)[:3] == names
            assert list(listed.values())[:3] == pytest.approx(top.values.tolist(), abs=1e-5)
            assert list(listed.values()) == sorted(listed.values(), reverse=True)
    assert [row["position"] for row in found["before"]["masked"]] == [2, 7]
    assert [row["original"] for row in found["before"]["masked"]] == ["key", "are"]
    if off:
        both = [found["before"], found["after"]]
        tokens = [{p["token"] for p in one["masked"][0]["predictions"]} for one in both]
        assert tokens[0] == tokens[1], "what either lists, both tell"


def test_a_written_mask_is_hidden_too(client: TestClient) -> None:
    (row,) = answer(client, "predict", view=view_of("The [MASK] are here."))["before"]["masked"]
    assert row["position"] == 2
    assert len(row["predictions"]) == 10
    about, _ = maps_of(client, view_of("The [MASK] are here.", level="words"))
    assert about["tokens"] == about["originals"] == "[CLS] The [MASK] are here . [SEP]".split()


def test_switching_off_the_head_that_knows_changes_the_class() -> None:
    tokenizer = tiny.tokenizer(planted.WORDS)
    encoder = Encoder(planted.model(), tokenizer, head="classification", name="planted")
    encoder.config.id2label = {0: "bad", 1: "good"}
    with asking(encoder) as client:
        assert client.get("/api/model").json()["labels"] == ["bad", "good"]
        view = view_of("the good a", off={"heads": [list(planted.CARRIER)], "how": "zero"})
        found = answer(client, "predict", view=view)
        before, after = (
            {c["label"]: c["probability"] for c in found[k]["classes"]} for k in ("before", "after")
        )
        assert before["good"] > 0.9
        assert after["good"] < 0.6
        assert sum(before.values()) == pytest.approx(1)
        # A classifier may be shown masked words, but it does not fill them.
        masked = answer(client, "predict", view=view_of("the good a", masked=[2]))["before"]
        assert masked["masked"] == []
        assert masked["classes"] != found["before"]["classes"]


def test_a_regression_model_gives_a_value() -> None:
    encoder = encoder_of("classification", labels=1)
    with asking(encoder) as client:
        about = client.get("/api/model").json()
        assert (about["value"], about["labels"], about["can"]["classes"]) == (True, None, False)
        found = answer(client, "predict", view=view_of(off={"layers": [0]}))
        assert found["before"]["value"] == pytest.approx(float(encoder.run(TEXT).logits), abs=1e-5)
        assert found["after"]["value"] != found["before"]["value"]


def test_a_model_without_a_head_says_so() -> None:
    with asking(encoder_of("base")) as client:
        about = client.get("/api/model").json()
        assert about["can"] == {"maps": True, "masked": False, "classes": False, "words": True}
        refused = client.post("/api/predict", json={"view": view_of()})
        assert refused.status_code == 400
        assert "neither a head for masked words nor a classifier" in refused.json()["error"]
        assert maps_of(client, view_of())[0]["size"] == 11


def test_the_next_sentence_head_judges_pairs_only() -> None:
    import transformers as hf

    torch.manual_seed(0)
    made = hf.BertForPreTraining(tiny.config("bert")).eval()
    encoder = Encoder(made, tiny.tokenizer(PIECES), head="pretraining", name="tiny")
    with asking(encoder) as client:
        about = client.get("/api/model").json()
        assert about["labels"] == ["follows", "does not follow"]
        assert about["asks_next"]
        assert answer(client, "predict", view=view_of())["before"]["classes"] is None
        found = answer(client, "predict", view=view_of(pair="it is here", masked=[2]))["before"]
        assert sum(c["probability"] for c in found["classes"]) == pytest.approx(1)
        assert len(found["masked"]) == 1


@pytest.mark.parametrize(("task", "pairs"), [("grammar-entailment", True), ("cola", False)])
def test_who_learned_from_pairs_is_shown_a_pair(tmp_path: Path, task: str, pairs: bool) -> None:
    encoder = encoder_of("classification")
    encoder.name = str(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    record = {"schema": 1, "method": "finetune", "task": task}
    (tmp_path / "bertology.json").write_text(json.dumps(record))
    with asking(encoder) as client:
        about = client.get("/api/model").json()
        assert (about["examples"][0]["pair"] is not None) == pairs
        assert len(about["examples"]) == 4
        assert not about["asks_next"]


def test_a_next_sentence_head_that_learned_nothing_is_not_asked(tmp_path: Path) -> None:
    import transformers as hf

    encoder = Encoder(
        hf.BertForPreTraining(tiny.config("bert")), tiny.tokenizer(PIECES),
        head="pretraining", name=str(tmp_path),
    )  # fmt: skip
    (tmp_path / "config.json").write_text("{}")
    for losses, pairing, labels in (
        (["mlm"], "full-sentences", None),
        (["mlm", "sentence"], "three-way", None),
        (["mlm", "sentence"], "nsp", ["follows", "does not follow"]),
    ):
        stage = {"objective": {"losses": losses, "pairing": pairing}}
        record = {"schema": 1, "method": "pretrain", "recipe": {"stages": [stage]}}
        (tmp_path / "bertology.json").write_text(json.dumps(record))
        with asking(encoder) as client:
            assert client.get("/api/model").json()["labels"] == labels


# Outliers, means, examples -----------------------------------------------------------------------


def test_a_planted_outlier_is_found_and_stays_found_when_it_is_off() -> None:
    encoder = encoder_of()
    with torch.no_grad():
        for layer in encoder.base.encoder.layer:  # type: ignore[union-attr]
            layer.output.LayerNorm.weight[7] = 40.0
    with asking(encoder) as client:
        for off in ({}, {"dimensions": [7]}):
            found = answer(client, "outliers", view=view_of(off=off))
            (row,) = found["dimensions"]
            assert row["dimension"] == 7
            assert row["layers"] == row["norms"] == [0, 1, 2]
            assert row["ratio"] > 5
            assert row["in_study"]
            assert "3 σ" in found["rule"]


def test_outliers_are_those_of_the_study_also_where_they_are_small_in_a_text() -> None:
    encoder = encoder_of()
    with torch.no_grad():
        for layer in encoder.base.encoder.layer:  # type: ignore[union-attr]
            layer.output.LayerNorm.weight[5] = 0.0  # far from 1
    found = weight_outliers(encoder)
    assert found is not None
    with asking(encoder) as client:
        (row,) = answer(client, "outliers", view=view_of())["dimensions"]
    assert [row["dimension"]] == found.in_most_layers() == [5]
    assert row["in_study"]
    assert row["layers"] == []


def test_the_mean_over_examples(client: TestClient, encoder: Encoder) -> None:
    done = client.post("/api/mean", json={"task": "grammar", "examples": 3, "off": {"layers": [1]}})
    about, maps = unpacked(done.content)
    assert (about["size"], about["examples"], about["tokens"][6]) == (24, 3, "25 %")
    assert maps.sum(-1) == pytest.approx(1, abs=0.05)


def test_examples_of_a_task(client: TestClient) -> None:
    asked = {"task": "grammar-entailment", "number": 3}
    found = client.get("/api/examples", params=asked).json()
    example = load_corpus("grammar-entailment", limit=200)[3]
    assert (found["text"], found["pair"]) == (example.text, example.text_b)
    assert found["label"] in ("entailment", "non-entailment")
    assert (found["number"], found["total"]) == (3, 200)


@pytest.mark.parametrize("address", EXPLORE_PAGES)
def test_pages_load_nothing_from_elsewhere(client: TestClient, address: str) -> None:
    done = client.get(address)
    assert done.status_code == 200
    policy = done.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    text = done.text.replace("http://www.w3.org/", "")
    for word in ("http:", "https:", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("):
        assert word not in text
