"""The routes of the labelling page: what they give, and what they refuse."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.map_labels import MapRecipe, read_labels
from bertology.data.map_sampling import in_order_of, sample_maps
from bertology.errors import BertologyError, DataError
from bertology.model.encoder import Encoder
from bertology.server import map_pictures
from bertology.server.annotate import ANNOTATE_PAGES, annotate_app
from bertology.server.app import MAX_BODY
from bertology.server.labelling import Labelling

PORT = 8765
WORDS = "the keys to cabinet are is here <b>".split()


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    tokenizer = tiny.tokenizer("the keys to cabinet are is here < b >".split(), max_length=24)
    return Encoder(tiny.model("bert"), tokenizer, name="tiny")


def plan_of(encoder: Encoder, count: int = 6, *, turn: int = 1) -> list[MapRecipe]:
    fields = frozenset({Field.TEXT, Field.TEXT_B})
    examples = [Example(str(i), " ".join(WORDS[: i + 2]), "keys are here") for i in range(6)]
    corpus = Corpus("small", examples, fields, split="validation")
    places = [(layer, head) for layer in range(3) for head in range(4)]
    return in_order_of(sample_maps(encoder.name, corpus, places, count), seed=0, turn=turn)


def app_of(encoder: Encoder, path: Path, *, annotator: str = "ann", turn: int = 1) -> FastAPI:
    plan = plan_of(encoder, turn=turn)
    return annotate_app(
        Labelling(plan, path, annotator=annotator, turn=turn),
        lambda recipe: map_pictures.picture_of(encoder, recipe),
        port=PORT,
    )


def client_of(app: FastAPI) -> TestClient:
    return TestClient(app, base_url=f"http://127.0.0.1:{PORT}", raise_server_exceptions=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


@pytest.fixture
def client(encoder: Encoder, path: Path) -> Iterator[TestClient]:
    with client_of(app_of(encoder, path)) as found:
        yield found


def post(client: TestClient, what: str, **body: Any) -> Any:
    done = client.post(f"/annotate/api/{what}", json=body)
    assert done.status_code == 200, done.text
    return done.json()


# What it gives -----------------------------------------------------------------------------------


def test_a_map_is_that_of_the_model(client: TestClient, encoder: Encoder) -> None:
    recipe = plan_of(encoder)[2]
    shown = client.get("/annotate/api/maps/2").json()
    assert set(shown) == {
        "number", "text", "text_b", "tokens", "weights", "peak", "boundary",
    }, "nothing may say which layer and head it is"  # fmt: skip
    pair = (str(recipe.text), str(recipe.text_b))
    site = f"layer.{recipe.layer}.head.{recipe.head}.pattern"
    expected = encoder.run(pair, record=site)[site][0].numpy()
    size = len(shown["tokens"])
    given = np.frombuffer(base64.b64decode(shown["weights"]), "<u2").reshape(size, size)
    np.testing.assert_allclose(given / 65535 * shown["peak"], expected, atol=2e-5)
    assert given.max() == 65535
    assert shown["tokens"][0] == "[CLS]"
    assert shown["boundary"] == shown["tokens"].index("[SEP]") + 1


def test_long_and_single_texts(encoder: Encoder) -> None:
    single = MapRecipe("tiny", "c", "s", "0", "the keys", None, 0, 0)
    assert map_pictures.picture_of(encoder, single).boundary is None
    long = MapRecipe("tiny", "c", "s", "0", "the keys " * 30, "here " * 20, 0, 0)
    found = map_pictures.picture_of(encoder, long)
    assert len(found.tokens) == 24
    assert found.boundary == found.tokens.index("[SEP]") + 1
    with pytest.raises(DataError, match="no text"):
        map_pictures.picture_of(encoder, MapRecipe("tiny", "c", "s", "0", None, None, 0, 0))


def test_labels_are_on_disk_at_once_and_the_next_map_comes(
    client: TestClient, path: Path, encoder: Encoder
) -> None:
    assert client.get("/annotate/api/state").json()["current"] == 0
    state = post(client, "label", number=0, label="vertical+diagonal")
    assert (state["current"], state["labelled"], state["total"]) == (1, 1, 6)
    (label,) = read_labels(path)
    assert label.recipe == plan_of(encoder)[0]
    assert (label.label, label.annotator, label.turn) == ("vertical+diagonal", "ann", 1)
    assert post(client, "skip", number=1)["skipped"] == 1
    assert len(read_labels(path)) == 1


def test_undo_takes_labels_and_skips_back(client: TestClient, path: Path) -> None:
    post(client, "label", number=0, label="block")
    post(client, "skip", number=1)
    post(client, "label", number=2, label="diagonal")
    assert post(client, "undo")["current"] == 2
    assert [x.label for x in read_labels(path)] == ["block"]
    assert post(client, "undo")["current"] == 1
    assert post(client, "undo")["current"] == 0
    assert read_labels(path) == []
    refused = client.post("/annotate/api/undo", json={})
    assert refused.status_code == 400
    assert "nothing to undo" in refused.json()["error"]
    # Forward again, in the same order.
    assert post(client, "label", number=0, label="vertical")["current"] == 1
    assert post(client, "label", number=1, label="vertical")["current"] == 2


def test_the_next_day_goes_on_where_it_stopped(encoder: Encoder, path: Path) -> None:
    with client_of(app_of(encoder, path)) as client:
        post(client, "label", number=0, label="block")
        post(client, "skip", number=1)
        post(client, "label", number=2, label="block")
    with client_of(app_of(encoder, path)) as client:
        state = client.get("/annotate/api/state").json()
        assert (state["labelled"], state["skipped"], state["current"]) == (2, 0, 1)
        assert post(client, "undo")["current"] == 2  # the last label, not the skipped map
        assert post(client, "label", number=2, label="diagonal")["current"] == 1
    assert [x.label for x in read_labels(path)] == ["block", "diagonal"]


def test_a_second_pass_begins_anew_in_another_order(encoder: Encoder, path: Path) -> None:
    with client_of(app_of(encoder, path)) as client:
        for number in range(6):
            state = post(
                client, "label", number=number, label="block" if number % 2 else "diagonal"
            )
        assert state["current"] is None
        assert client.get("/annotate/api/agreement").json()["comparisons"] == []
    first = [x.recipe.key for x in read_labels(path)]
    labels = {x.recipe.key: x.label for x in read_labels(path)}
    plan = plan_of(encoder, turn=2)
    with client_of(app_of(encoder, path, turn=2)) as client:
        assert client.get("/annotate/api/state").json()["labelled"] == 0
        assert "label" not in client.get("/annotate/api/maps/0").json()
        for number in range(6):
            post(client, "label", number=number, label=labels[plan[number].key])
        found = client.get("/annotate/api/agreement").json()
    assert [r.key for r in plan] != first
    assert sorted(r.key for r in plan) == sorted(first)
    (comparison,) = found["comparisons"]
    assert comparison["kappa"]["value"] == 1
    assert comparison["kappa"]["low"] < 1
    assert comparison["maps"] == 6
    assert comparison["table"][3][3] == 3
    assert [c["pass"] for c in found["coders"]] == [1, 2]


def test_undo_does_not_touch_what_another_wrote_behind(encoder: Encoder, path: Path) -> None:
    with (
        client_of(app_of(encoder, path)) as ann,
        client_of(app_of(encoder, path, annotator="bob")) as bob,
    ):
        post(ann, "label", number=0, label="block")
        post(bob, "label", number=0, label="diagonal")
        assert post(ann, "undo")["current"] == 0
        assert len(read_labels(path)) == 2
        post(ann, "label", number=0, label="vertical")
    labels = {x.annotator: x.label for x in read_labels(path)}
    assert labels == {"ann": "vertical", "bob": "diagonal"}


def test_a_map_that_fails_is_told_and_tried_again(
    encoder: Encoder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bertology.server.map_pictures as pictures

    def fail(*_: Any) -> Any:
        raise BertologyError("The model is tired.", hint="Wait.")

    with monkeypatch.context() as patch:
        patch.setattr(pictures, "picture_of", fail)
        app = app_of(encoder, path)
        with client_of(app) as client:
            refused = client.get("/annotate/api/maps/0")
            assert refused.status_code == 400
            assert refused.json() == {"error": "The model is tired.", "hint": "Wait."}
            patch.undo()
            assert client.get("/annotate/api/maps/0").status_code == 200


# What it refuses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "body", "status"),
    [
        ("label", {"number": 0, "label": "stripes"}, 422),
        ("label", {"number": "0", "label": "block"}, 422),
        ("label", {"number": 0.0, "label": "block"}, 422),
        ("label", {"number": True, "label": "block"}, 422),
        ("label", {"number": -1, "label": "block"}, 422),
        ("label", {"number": 0}, 422),
        ("label", {"number": 0, "label": "block", "annotator": "bob"}, 422),
        ("label", {"number": 1, "label": "block"}, 400),  # not the one that is shown
        ("label", [0, "block"], 422),
        ("skip", {"number": 3}, 400),
        ("skip", {}, 422),
        ("undo", {"all": True}, 422),
        ("undo", None, 415),
    ],
)
def test_wrong_bodies(client: TestClient, path: Path, what: str, body: Any, status: int) -> None:
    done = client.post(f"/annotate/api/{what}", json=body)
    assert done.status_code == status, done.text
    assert done.json()["error"]
    assert path.read_bytes() == b""


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"number": NaN, "label": "block"}'])
def test_what_is_not_json(client: TestClient, content: bytes) -> None:
    done = client.post(
        "/annotate/api/label", content=content, headers={"Content-Type": "application/json"}
    )
    assert done.status_code == 422


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1.evil:{PORT}",
        "",
    ],
)
def test_other_hosts(client: TestClient, host: str) -> None:
    for method, address in (
        ("GET", "/"),
        ("GET", "/annotate/api/state"),
        ("POST", "/annotate/api/undo"),
    ):
        done = client.request(method, address, headers={"Host": host})
        assert done.status_code == 421


def test_localhost_is_this_machine_too(client: TestClient) -> None:
    assert (
        client.get("/annotate/api/state", headers={"Host": f"localhost:{PORT}"}).status_code == 200
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": f"https://127.0.0.1:{PORT}"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_other_origins(client: TestClient, path: Path, headers: dict[str, str]) -> None:
    body = {"number": 0, "label": "block"}
    assert client.post("/annotate/api/label", json=body, headers=headers).status_code == 403
    assert client.get("/annotate/api/state", headers=headers).status_code == 403
    assert path.read_bytes() == b""


def test_our_own_page_may(client: TestClient) -> None:
    own = {"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-origin"}
    body = {"number": 0, "label": "block"}
    assert client.post("/annotate/api/label", json=body, headers=own).status_code == 200
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200


def test_a_form_of_another_page_cannot_post(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
        done = client.post("/annotate/api/undo", content=b"{}", headers={"Content-Type": kind})
        assert done.status_code == 415


def test_too_much_is_refused_however_it_comes(client: TestClient) -> None:
    json_type = {"Content-Type": "application/json"}
    big = json.dumps({"number": 0, "label": "x" * MAX_BODY}).encode()
    assert client.post("/annotate/api/label", content=big, headers=json_type).status_code == 413
    pieces = (big[i : i + 100] for i in range(0, len(big), 100))  # chunked: no length is said
    assert client.post("/annotate/api/label", content=pieces, headers=json_type).status_code == 413


@pytest.mark.parametrize(
    "address",
    [
        "/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py",
        "/static/look.css/", "/etc/passwd", "/docs", "/openapi.json", "/annotate/api/maps/x",
    ],
)  # fmt: skip
def test_no_other_file_is_served(client: TestClient, address: str) -> None:
    assert client.get(address).status_code in (404, 422)


@pytest.mark.parametrize("number", ["-1", "6", "99999999999999999999"])
def test_maps_that_are_not_there(client: TestClient, number: str) -> None:
    assert client.get(f"/annotate/api/maps/{number}").status_code == 400


def test_websockets_are_refused(client: TestClient) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/annotate/api/state"):
        pass


# The pages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ANNOTATE_PAGES)
def test_pages_load_nothing_from_elsewhere(client: TestClient, address: str) -> None:
    done = client.get(address)
    assert done.status_code == 200
    assert done.headers["X-Content-Type-Options"] == "nosniff"
    policy = done.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    text = done.text.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in text
    assert "innerHTML" not in text
    assert " style=" not in text
    assert " onclick" not in text


def test_every_answer_carries_the_headers(client: TestClient) -> None:
    for address in ("/annotate/api/state", "/nowhere"):
        assert client.get(address).headers["Content-Security-Policy"]
    assert client.get("/", headers={"Host": "evil.example"}).headers["Content-Security-Policy"]


def test_an_annotator_needs_a_name(encoder: Encoder, path: Path) -> None:
    with pytest.raises(BertologyError, match="annotator"):
        Labelling(plan_of(encoder), path, annotator=" ", turn=1)
