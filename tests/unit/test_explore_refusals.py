"""What the explorer refuses, and how it says so; and that what comes back is data, never markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from bertology.cli.main import app
from bertology.model.encoder import Encoder
from bertology.server.explore import EXPLORE_MAX_BODY
from explorer import PORT, TEXT, answer, asking, encoder_of, maps_of, view_of

EVIL = "<img src=x onerror=alert(1)>"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return encoder_of()


@pytest.fixture(scope="module")
def client(encoder: Encoder) -> Iterator[TestClient]:
    with asking(encoder) as found:
        yield found


def refused(client: TestClient, what: str, status: int = 400, **body: Any) -> str:
    """The error and the hint of a question that must be refused, as one text."""
    done = client.post(f"/api/{what}", json=body)
    assert done.status_code == status, done.text
    told = done.json()
    assert set(told) == {"error", "hint"}
    return f"{told['error']} {told['hint']}"


# Texts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (view_of(""), "The text is empty"),
        (view_of(" \n\t "), "The text is empty"),
        (view_of("\u00a0\u2003"), "The text is empty"),
        (view_of(TEXT, pair=""), "The second text is empty"),
        (view_of("a" * 10_000), "10,000 characters; at most 4,000"),
        (view_of("key " * 600, pair="key " * 500), "4,400 characters; at most 4,000"),
        (view_of("key " * 200), "202 tokens; tiny takes 64"),
        (view_of("\x00\x01\x02"), "sees no token"),
    ],
)
def test_texts_that_cannot_be_shown(client: TestClient, view: dict[str, Any], said: str) -> None:
    for what, more in (("maps", {}), ("predict", {}), ("python", {}), ("outliers", {})):
        assert said in refused(client, what, view=view, **more)


def test_nothing_is_cut_silently(client: TestClient) -> None:
    about, _ = maps_of(client, view_of("key " * 62))
    assert about["size"] == 64
    assert "65 tokens" in refused(client, "maps", view=view_of("key " * 63))


def test_a_lone_surrogate_is_no_text(client: TestClient) -> None:
    body = json.dumps({"view": view_of("key \ud800 here")}).encode()
    done = client.post("/api/maps", content=body, headers=JSON)
    assert done.status_code in (400, 422)
    assert done.json()["error"]
    key = json.dumps({"view": view_of() | {"\udfff": 1}}).encode()
    assert client.post("/api/maps", content=key, headers=JSON).status_code == 422


@pytest.mark.parametrize("text", ["key \x00 here\x07", "שלום keys", "keys 🙂 here", "é\u0301 key"])
def test_strange_characters_are_characters(client: TestClient, text: str) -> None:
    for level in ("pieces", "words"):
        about, maps = maps_of(client, view_of(text, level=level))
        assert maps.sum(-1) == pytest.approx(1, abs=0.05)
        assert len(about["tokens"]) == about["size"]


def test_markup_comes_back_as_data(client: TestClient) -> None:
    done = client.post("/api/maps", json={"view": view_of(f"the {EVIL} key", level="words")})
    assert done.headers["content-type"] == "application/octet-stream"
    assert done.headers["X-Content-Type-Options"] == "nosniff"
    code = answer(client, "python", view=view_of(f"'''{EVIL}\\"))["code"]
    compile(code, "copied", "exec")
    told = refused(client, "search", view=view_of(), query={"kind": "pattern", "name": EVIL})
    assert "Unknown pattern" in told
    done = client.get("/api/examples", params={"task": EVIL, "number": 0})
    assert done.status_code == 400
    assert done.headers["content-type"] == "application/json"


# What is not there -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"off": {"heads": [[3, 0]]}}, "no head (3, 0)"),
        ({"off": {"heads": [[0, 4]], "how": "mean"}}, "no head (0, 4)"),
        ({"off": {"layers": [3]}}, "no layer 3"),
        ({"off": {"dimensions": [24]}}, "no dimension 24"),
        ({"masked": [99]}, "no token 99"),
        ({"masked": [0]}, "Token 0 is a special one"),
    ],
)
def test_parts_that_the_model_lacks(client: TestClient, more: dict[str, Any], said: str) -> None:
    assert said in refused(client, "maps", view=view_of(**more))
    assert said in refused(client, "predict", view=view_of(**more))


def test_heads_tasks_and_names_that_are_unknown(client: TestClient) -> None:
    view = view_of()
    assert "no head" in refused(client, "map", view=view, layer=0, head=4)
    assert "no head" in refused(client, "python", view=view, layer=9, head=0)
    assert "Give both the layer and the head" in refused(client, "python", view=view, layer=1)
    similar = {"kind": "similar", "layer": 7, "head": 0}
    assert "no head" in refused(client, "search", view=view, query=similar)
    relation = {"kind": "relation", "name": "verb-subjct"}
    assert "'verb-subject'" in refused(client, "search", view=view, query=relation)
    assert "Unknown task" in refused(client, "mean", task="../../etc/passwd", examples=1)
    assert "no head" in refused(client, "mean", task="grammar", off={"heads": [[9, 9]]})
    for params in ({"task": "grammar", "number": 200}, {"task": "/etc/passwd", "number": 0}):
        assert client.get("/api/examples", params=params).status_code == 400


# Types and sizes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("maps", {}),
        ("maps", []),
        ("maps", {"view": None}),
        ("maps", {"view": view_of(), "more": 1}),
        ("maps", {"view": view_of() | {"more": 1}}),
        ("maps", {"view": view_of() | {"text": 3}}),
        ("maps", {"view": view_of() | {"text": None}}),
        ("maps", {"view": view_of(masked=["2"])}),
        ("maps", {"view": view_of(masked=[2.0])}),
        ("maps", {"view": view_of(masked=[True])}),
        ("maps", {"view": view_of(masked=[-1])}),
        ("maps", {"view": view_of(masked=list(range(513)))}),
        ("maps", {"view": view_of(level="letters")}),
        ("maps", {"view": view_of(off={"heads": [[1]]})}),
        ("maps", {"view": view_of(off={"heads": [[1, 2, 3]]})}),
        ("maps", {"view": view_of(off={"heads": [1, 2]})}),
        ("maps", {"view": view_of(off={"heads": [[0, 10**30]]})}),
        ("maps", {"view": view_of(off={"layers": [0] * 300})}),
        ("maps", {"view": view_of(off={"how": "loudly"})}),
        ("map", {"view": view_of(), "layer": "0", "head": 0}),
        ("predict", {"view": view_of(), "top": 0}),
        ("predict", {"view": view_of(), "top": 101}),
        ("search", {"view": view_of(), "query": {"kind": "magic"}}),
        ("search", {"view": view_of(), "query": {"kind": "pattern"}}),
        ("search", {"view": view_of(), "query": {"kind": "pattern", "name": "x" * 101}}),
        ("mean", {"task": "grammar", "examples": 65}),
        ("mean", {"task": ""}),
    ],
)
def test_wrong_bodies(client: TestClient, what: str, body: Any) -> None:
    done = client.post(f"/api/{what}", json=body)
    assert done.status_code == 422, done.text
    assert done.json()["error"]
    assert len(done.text) < 2000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"view": {"text": NaN}}',
        b'{"view": {"text": "key", "masked": [NaN]}}',
        b'{"view": {"text": "key", "masked": [Infinity]}}',
        b"[" * 60_000,
    ],
)
def test_what_is_not_json(client: TestClient, content: bytes) -> None:
    done = client.post("/api/maps", content=content, headers=JSON)
    assert done.status_code in (400, 422)
    assert done.json()["error"]


def test_too_much_is_refused_however_it_comes(client: TestClient) -> None:
    fits = json.dumps({"view": view_of(" " * (EXPLORE_MAX_BODY - 300))}).encode()
    assert client.post("/api/maps", content=fits, headers=JSON).status_code == 400
    big = json.dumps({"view": view_of("x" * EXPLORE_MAX_BODY)}).encode()
    done = client.post("/api/maps", content=big, headers=JSON)
    assert done.status_code == 413
    assert "1,048,576 bytes" in done.json()["error"]
    pieces = (big[i : i + 1000] for i in range(0, len(big), 1000))  # chunked: no length is said
    assert client.post("/api/maps", content=pieces, headers=JSON).status_code == 413


def test_the_longest_text_with_every_head_off_fits(client: TestClient) -> None:
    heads = [[layer, head] for layer in range(24) for head in range(16)]
    view = view_of("\u0434" * 4000, off={"heads": heads, "dimensions": list(range(1024))})
    body = json.dumps({"view": view})  # every letter is escaped to six characters
    assert len(body) < EXPLORE_MAX_BODY


# Who may ask -------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", ""])
def test_other_hosts(client: TestClient, host: str) -> None:
    for method, address in (("GET", "/"), ("GET", "/api/model"), ("POST", "/api/maps")):
        assert client.request(method, address, headers={"Host": host}).status_code == 421


def test_browsers_leave_out_the_usual_port() -> None:
    from fastapi.testclient import TestClient

    from bertology.server.app import make_app

    pages = {"/": "explore/index.html"}
    client = TestClient(make_app([], pages, port=80), base_url="http://127.0.0.1")
    assert client.get("/").status_code == 200
    assert client.get("/", headers={"Host": "localhost:80"}).status_code == 200
    assert client.get("/", headers={"Origin": "http://localhost"}).status_code == 200
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_other_origins(client: TestClient, headers: dict[str, str]) -> None:
    body = {"view": view_of()}
    assert client.post("/api/maps", json=body, headers=headers).status_code == 403
    assert client.get("/api/model", headers=headers).status_code == 403


def test_forms_of_other_pages_cannot_post(client: TestClient) -> None:
    body = json.dumps({"view": view_of()})
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        done = client.post("/api/maps", content=body, headers={"Content-Type": kind})
        assert done.status_code == 415


@pytest.mark.parametrize(
    "address",
    [
        "/static/", "/static/explore/", "/static/explore/../../explore.py",
        "/static/explore/%2e%2e/%2e%2e/explore.py", "/static/..%2f..%2fexplore.py",
        "/static/explore/index.html", "//etc/passwd", "/etc/passwd", "/docs", "/openapi.json",
        "/annotate", "/annotate/api/state", "/api/../explore.py",
    ],
)  # fmt: skip
def test_no_other_file_is_served(client: TestClient, address: str) -> None:
    assert client.get(address).status_code == 404


def test_the_command_says_what_labelling_needs() -> None:
    done = CliRunner().invoke(app, ["explore", "--annotator", "ann"], prog_name="bertology")
    assert done.exit_code == 2
    assert "--annotator needs --annotate FILE." in done.output
