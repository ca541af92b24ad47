"""The explorer of tiny models, for tests that ask it questions."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from numpy.typing import NDArray

import tiny
from bertology.model.encoder import Encoder
from bertology.server.explore import explore_app
from bertology.server.serving import address_of, claim_port

PORT = 8764
PIECES = "the key ##s to cabinet are is here . , < b > good bad dog chase ##d it".split()
PIECES += [f"word{i}" for i in range(tiny.VOCAB - 5 - len(PIECES))]  # as many as the model knows
TEXT = "The keys to the cabinet are here."
"""[CLS] the key ##s to the cabinet are here . [SEP]"""


def encoder_of(head: str = "mlm", *, labels: int = 3, family: str = "bert") -> Encoder:
    """A tiny random model with a tokenizer of a few words."""
    made = tiny.model(family, head)
    if head == "classification":
        made.config.num_labels = labels
        made = type(made)(made.config).eval()
    tokenizer = tiny.tokenizer(PIECES, max_length=64)
    return Encoder(made, tokenizer, head=head, name="tiny")


def view_of(text: str = TEXT, **more: Any) -> dict[str, Any]:
    """A view with nothing off, but for what is given."""
    off = {"heads": [], "layers": [], "dimensions": [], "how": "uniform"} | more.pop("off", {})
    plain = {"text": text, "pair": None, "masked": [], "level": "pieces"}
    return {**plain, **more, "off": off}


@contextmanager
def asking(encoder: Encoder, **options: Any) -> Iterator[TestClient]:
    """A client of an explorer."""
    app = explore_app(encoder, port=PORT, **options)
    address = f"http://127.0.0.1:{PORT}"
    with TestClient(app, base_url=address, raise_server_exceptions=False) as client:
        yield client


@contextmanager
def serving(encoder: Encoder) -> Iterator[str]:
    """The address of an explorer that a thread of this process serves, as to a browser."""
    with served(lambda port: explore_app(encoder, port=port)) as address:
        yield address


@contextmanager
def served(app_at: Callable[[int], FastAPI]) -> Iterator[str]:
    """The address of any page, made for a free port."""
    claimed = claim_port(0)
    app = app_at(claimed.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [claimed]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield address_of(claimed)
    finally:  # or a test that fails would wait for ever
        server.should_exit = True
        thread.join()
        claimed.close()


def answer(client: httpx.Client, what: str, **body: Any) -> Any:
    """The JSON of a question that must not fail."""
    done = client.post(f"/api/{what}", json=body)
    assert done.status_code == 200, done.text
    return done.json()


def unpacked(content: bytes) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """What /api/maps sends: the description, and the maps (layers, heads, queries, keys)."""
    size = int.from_bytes(content[:4], "little")
    assert size % 4 == 0
    about = json.loads(content[4 : 4 + size])
    shape = (about["layers"], about["heads"], about["size"], about["size"])
    steps = np.frombuffer(content[4 + size :], np.uint8).reshape(shape)
    peaks = np.array(about["peaks"]).reshape(shape[:2])
    return about, steps / 255 * peaks[..., None, None]


def maps_of(client: TestClient, view: dict[str, Any]) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """All maps of a view."""
    done = client.post("/api/maps", json={"view": view})
    assert done.status_code == 200, done.text
    assert done.headers["content-type"] == "application/octet-stream"
    return unpacked(done.content)
