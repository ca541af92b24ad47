"""A store that several processes share, and one that lies behind S3."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bertology.errors import ResultNotFoundError, StoreError
from bertology.results import Provenance, Result, Store

ROUNDS = 4


def result(seed: int, writer: int = 0) -> Result:
    provenance = Provenance("probe", 1, {"seed": seed}, {"name": "m", "fingerprint": "f"})
    table = pd.DataFrame({"writer": [writer] * 50, "x": np.arange(50)})
    return Result(provenance, {"t": table}, xr.Dataset({"writer": ("x", [writer] * 40)}))


def write(url: str, writer: int) -> None:
    """Save results that only this process writes, and one that every process writes differently."""
    store = Store(url)
    for round in range(ROUNDS):
        store.save(result(1000 * (writer + 1) + round))
        store.save(result(0, writer))
        store.measured.save_part("0" * 16, f"part-{round}", result(0).arrays)
        read = store.load(result(0).identity)
        assert set(read.table()["writer"]) == set(read.arrays["writer"].values.tolist())


def test_two_processes_share_a_store(tmp_path: Path) -> None:
    url = str(tmp_path / "results")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=write, args=(url, writer)) for writer in (0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    store = Store(url)
    assert len(store.list()) == 2 * ROUNDS + 1
    for provenance in store.list():
        read = store.load(provenance)
        assert len(set(read.table()["writer"]) | set(read.arrays["writer"].values.tolist())) == 1
    assert len(store.measured.parts("0" * 16)) == ROUNDS
    assert not list(Path(url).rglob("*.tmp"))


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, object]]:
    """Options of an S3 server that lives in this process."""
    pytest.importorskip("s3fs", reason="needs s3fs: pip install s3fs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server_module = pytest.importorskip(
            "moto.server",
            reason="needs moto's server: pip install 'moto[server]'",
            exc_type=ImportError,
        )
    import logging

    import fsspec

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options: dict[str, object] = {
        "key": "k", "secret": "s", "endpoint_url": f"http://{host}:{port}",
        "skip_instance_cache": True,
    }  # fmt: skip
    fsspec.filesystem("s3", **options).mkdir("bucket", region_name="eu-central-1")
    yield options
    server.stop()


def test_s3(s3: dict[str, object]) -> None:
    store, other = (Store("s3://bucket/results", options=s3) for _ in range(2))
    saved = result(5)
    assert not other.has(saved.identity)
    assert other.list() == []
    store.save(saved)
    assert other.has(saved.identity)
    assert other.load(saved.identity[:7]).equals(saved)
    changed = Result(saved.provenance, {"t": saved.table() * 2})
    other.save(changed)
    assert store.load(saved.provenance).equals(changed)
    store.measured.save_part(saved.identity, "a", saved.arrays)
    assert other.measured.parts(saved.identity) == ["a"]
    xr.testing.assert_identical(other.measured.load_part(saved.identity, "a"), saved.arrays)
    other.measured.drop(saved.identity)
    assert not store.measured.has_part(saved.identity, "a")
    assert store.list() == [saved.provenance]
    with pytest.raises(ResultNotFoundError):
        store.load("zzz")


def test_s3_without_its_bucket(s3: dict[str, object]) -> None:
    with pytest.raises(StoreError, match=r"s3://no-such-bucket/.* could not be written"):
        Store("s3://no-such-bucket/results", options=s3).save(result(1))
