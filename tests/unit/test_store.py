"""The store: what is saved is found and read back, and every failure is told."""

from __future__ import annotations

import errno
import json
import logging
import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

import bertology.results.result as result_module
from bertology.errors import (
    ParameterError,
    ResultNotFoundError,
    SchemaVersionError,
    StoreError,
)
from bertology.results import Provenance, Result, Store
from bertology.results.drawing import Drawing
from bertology.results.files import LocalFiles


class Drawn(Result):
    def drawings(self) -> Sequence[Drawing]:
        def broken() -> Figure:
            raise ZeroDivisionError("nothing to draw")

        heads = Drawing("heads", lambda: Figure(figsize=(1, 1)), "Heads.")
        return [Drawing("broken", broken, "Broken."), heads]


def result(seed: int = 0, *, study: str = "head-ablation", kind: type[Result] = Result) -> Result:
    provenance = Provenance(
        study, 1, {"seed": seed}, {"name": "tiny", "fingerprint": "m"}, created=f"2026-01-{seed:02}"
    )
    index = pd.MultiIndex.from_product([[0, 1], [0, 1]], names=["layer", "head"])
    effects = pd.DataFrame({"gain": [0.1, np.nan, -1, seed], "é": list("abcd")}, index=index)
    arrays = xr.Dataset(
        {"gain": (("layer", "head"), np.full((2, 3), float(seed)), {"unit": "points"})},
        coords={"layer": [0, 1], "kept": ("layer", [True, False])},
        attrs={"metric": "f1"},
    )
    return kind(provenance, {"effects": effects, "none": pd.DataFrame()}, arrays)


def part(value: float) -> xr.Dataset:
    return xr.Dataset({"score": ("x", [value, np.nan])})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def folder_of(store: Store, saved: Result) -> Path:
    return Path(store.folder(saved.provenance))


# Saving and finding


def test_a_result_reads_back_equal_from_plain_files(store: Store) -> None:
    saved = result()
    assert not store.has(saved.identity)
    assert store.save(saved) == saved.identity
    for name in (saved.identity, saved.provenance, saved.provenance.key, saved.identity[:6]):
        assert store.load(name).equals(saved)
    assert store.has(saved.identity)
    assert store.has(saved.provenance)
    assert not store.has(saved.identity[:6])
    names = sorted(os.listdir(folder_of(store, saved)))
    assert names == ["arrays.nc", "effects.parquet", "none.parquet", "result.json"]
    record = json.loads((folder_of(store, saved) / "result.json").read_text(encoding="utf-8"))
    assert record["schema_version"] == 1
    assert record["tables"][0]["columns"] == ["gain", "é"]
    assert record["arrays"]["sizes"] == {"layer": 2, "head": 3}


def test_the_class_is_the_studys_or_the_given_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(result())
    monkeypatch.setattr(result_module, "_find", None)
    assert type(store.load(result().identity)) is Result
    assert type(store.load(result().identity, Drawn)) is Drawn
    monkeypatch.setattr(result_module, "_find", {"head-ablation": Drawn}.get)
    assert type(store.load(result().identity)) is Drawn


@pytest.mark.usefixtures("drawn")
def test_figures_are_drawn_and_a_broken_one_loses_nothing(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    saved = result(kind=Drawn)
    store.save(saved)
    assert os.listdir(folder_of(store, saved) / "figures") == ["heads.svg"]
    assert "broken" in caplog.text
    assert store.load(saved.identity).equals(saved)


@pytest.mark.usefixtures("drawn")
def test_a_fatal_drawing_leaves_the_data(store: Store) -> None:
    class Fatal(Result):
        def drawings(self) -> Sequence[Drawing]:
            raise KeyboardInterrupt

    saved = result(kind=Fatal)
    with pytest.raises(KeyboardInterrupt):
        store.save(saved)
    assert store.load(saved.identity).equals(saved)


def test_list_is_newest_first_and_by_study(store: Store) -> None:
    assert store.list() == []
    saved = [result(1), result(3), result(2, study="probe")]
    for one in saved:
        store.save(one)
    (Path(store.url) / "notes.txt").write_text("a stray file")
    assert [p.parameters["seed"] for p in store.list()] == [3, 2, 1]
    assert store.list("probe") == [saved[2].provenance]


def test_saving_again_replaces_also_with_other_numbers(store: Store) -> None:
    first = result()
    store.save(first)
    store.save(first)
    assert len(os.listdir(folder_of(store, first))) == 4
    other = Result(replace(first.provenance, duration=3.0), {"effects": first.table() * 2})
    store.save(other)
    assert store.load(first.identity).equals(other)


def test_unknown_and_ambiguous_names(store: Store) -> None:
    with pytest.raises(ResultNotFoundError, match=r"no finished result 'abc'.*\n.*bertology list"):
        store.load("abc")
    saved = [result(seed) for seed in range(17)]
    for one in saved:
        store.save(one)
    first = [one.identity[0] for one in saved]
    twice = next(letter for letter in first if first.count(letter) > 1)
    with pytest.raises(ResultNotFoundError, match=f"'{twice}' is ambiguous.*\n.*more characters"):
        store.load(twice)
    with pytest.raises(ResultNotFoundError, match="no finished result ''"):
        store.load("")
    with pytest.raises(ResultNotFoundError):
        store.load(f"probe/{saved[0].identity}")


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a b"])
def test_names_cannot_leave_the_store(store: Store, name: str) -> None:
    with pytest.raises(ParameterError, match="'part' parameter of the store must be letters"):
        store.measured.save_part("abc", name, part(0))
    with pytest.raises(ParameterError, match="'table'"):
        store.save(Result(result().provenance, {name: pd.DataFrame()}))


# Parts


def test_parts_are_kept_until_deleted(store: Store) -> None:
    key = result().identity
    assert store.measured.parts(key) == []
    assert not store.measured.has_part(key, "layer-0")
    store.measured.drop(key)
    store.measured.save_part(key, "layer-0", part(1))
    store.measured.save_part(key, "layer.1", part(2))
    store.measured.save_part(key, "layer-0", part(3))
    assert store.measured.parts(key) == ["layer-0", "layer.1"]
    assert store.measured.has_part(key, "layer.1")
    xr.testing.assert_identical(store.measured.load_part(key, "layer-0"), part(3))
    assert store.list() == []
    with pytest.raises(ResultNotFoundError, match="has no part 'layer-2'"):
        store.measured.load_part(key, "layer-2")
    store.save(result())
    assert store.measured.parts(key) == ["layer-0", "layer.1"]
    store.measured.drop(key)
    assert store.measured.parts(key) == []
    assert store.has(key)


# Failures


def test_an_unfinished_folder_is_not_seen(store: Store) -> None:
    saved = result()
    store.save(saved)
    (folder_of(store, saved) / "result.json").unlink()
    assert not store.has(saved.identity)
    assert store.list() == []
    with pytest.raises(ResultNotFoundError):
        store.load(saved.identity)


@pytest.mark.parametrize(
    ("version", "mend"),
    [(2, "pip install -U bertology"), (0, "Run the study again"), (None, "Run the study again")],
)
def test_another_schema_version(
    store: Store, version: int | None, mend: str, caplog: pytest.LogCaptureFixture
) -> None:
    saved = result()
    store.save(saved)
    file = folder_of(store, saved) / "result.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**record, "schema_version": version}), encoding="utf-8")
    with pytest.raises(SchemaVersionError, match=f"schema version {version}.*reads 1.\n.*{mend}"):
        store.load(saved.identity)
    assert store.list() == []
    assert "schema version" in caplog.text


@pytest.mark.parametrize("name", ["arrays.nc", "effects.parquet"])
@pytest.mark.parametrize("how", ["truncated", "changed", "missing"])
def test_a_damaged_file_is_told_and_mended(store: Store, name: str, how: str) -> None:
    saved = result()
    store.save(saved)
    file = folder_of(store, saved) / name
    data = file.read_bytes()
    file.unlink()
    if how != "missing":
        file.write_bytes(data[:-9] if how == "truncated" else data[:-1] + b"?")
    with pytest.raises(StoreError, match=f"{name} is damaged: .*\n.*--force"):
        store.load(saved.identity)
    store.save(saved)
    assert store.load(saved.identity).equals(saved)


@pytest.mark.parametrize("text", ["", '{"schema_version": 1', "[]", '{"schema_version": 1}'])
def test_a_damaged_record_is_told(store: Store, text: str) -> None:
    saved = result()
    store.save(saved)
    other = result(1)
    store.save(other)
    (folder_of(store, saved) / "result.json").write_text(text)
    with pytest.raises(StoreError):
        store.load(saved.identity)
    assert store.list() == [other.provenance]


def test_a_damaged_part_is_told(store: Store) -> None:
    store.measured.save_part("0" * 16, "a", part(1))
    (Path(store.url) / "measured" / ("0" * 16) / "a.nc").write_bytes(b"not hdf5")
    with pytest.raises(StoreError, match=r"a\.nc is damaged"):
        store.measured.load_part("0" * 16, "a")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSPC, "The disk is full: .* could not be written.\nFree some space.* is kept"),
        (errno.EACCES, "No permission to write .*\n.*--store"),
        (errno.EROFS, "No permission to write .*\n.*--store"),
        (errno.EIO, "could not be written: OSError"),
    ],
)
def test_failing_disks(
    store: Store, monkeypatch: pytest.MonkeyPatch, code: int, message: str
) -> None:
    key = result().identity
    store.measured.save_part(key, "a", part(1))
    real = os.fsync

    def fail(descriptor: int) -> None:
        real(descriptor)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=message):
        store.measured.save_part(key, "b", part(2))
    with pytest.raises(StoreError, match=message):
        store.save(result())
    monkeypatch.undo()
    assert store.measured.parts(key) == ["a"]
    assert not store.has(key)
    leftovers = [name for _, _, names in os.walk(store.url) for name in names]
    assert leftovers == ["a.nc"]


def test_a_file_in_the_place_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    store = Store(tmp_path / "taken")
    with pytest.raises(StoreError, match="there is a file instead of a folder"):
        store.save(result())
    with pytest.raises(StoreError, match="there is a file instead of a folder"):
        store.list()


def test_what_the_formats_cannot_hold_is_told(store: Store) -> None:
    mixed = pd.DataFrame({"a": ["x", 1]})
    with pytest.raises(StoreError, match=r"t\.parquet cannot be written in its format"):
        store.save(Result(result().provenance, {"t": mixed}))
    with pytest.raises(StoreError, match=r"a\.nc cannot be written in its format"):
        store.measured.save_part("0" * 16, "a", xr.Dataset({"a/b": 1}))
    assert store.list() == []


def test_unknown_kinds_of_store() -> None:
    with pytest.raises(StoreError, match=r"'nowhere://x' cannot be opened.*\n.*pip install s3fs"):
        Store("nowhere://x").list()


def test_disks_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    files = LocalFiles("x", str(tmp_path))
    assert files.create("a", b"1")
    assert not files.create("a", b"2")
    assert files.read("a") == b"1"


# Memory, and travelling


def test_memory_store() -> None:
    store = Store("memory://test-store-of-results")
    saved = result(kind=Drawn)
    logging.getLogger("bertology").setLevel(logging.ERROR)
    store.save(saved)
    logging.getLogger("bertology").setLevel(logging.NOTSET)
    assert Store("memory://test-store-of-results").load(saved.identity[:5]).equals(saved)
    other = Result(saved.provenance, {"effects": saved.table() * 2})
    store.save(other)
    assert store.load(saved.identity).equals(other)
    store.measured.save_part(saved.identity, "a", part(1))
    assert store.measured.parts(saved.identity) == ["a"]
    store.measured.drop(saved.identity)
    assert store.measured.parts(saved.identity) == []
    assert store.list() == [saved.provenance]
    assert not store.measured.has_part(saved.identity, "a")


def test_a_store_travels_to_other_processes(store: Store) -> None:
    store.save(result())
    copy = pickle.loads(pickle.dumps(store))
    assert copy.has(result().identity)
    assert repr(copy) == f"Store({store.url!r})"


@pytest.mark.usefixtures("drawn")
def test_figures_are_drawn_again_by_other_code_or_of_other_data_only(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = list[str]()

    def rendered(result: Result, name: str) -> bytes:
        drawn.append(name)
        return b"<svg/>"

    monkeypatch.setattr(Result, "svg", rendered)
    first = result(kind=Drawn)
    store.save(first)
    once = len(drawn)
    assert once
    later = replace(first.provenance, created="2031-01-01", duration=9.0)
    store.save(Drawn(later, first.tables, first.arrays))
    assert len(drawn) == once
    store.save(Drawn(later, {"effects": first.table() * 2}, first.arrays))
    assert len(drawn) == 2 * once
    monkeypatch.setattr("bertology.results.store.drawn_by", lambda kind: "other code")
    store.save(Drawn(later, {"effects": first.table() * 2}, first.arrays))
    assert len(drawn) == 3 * once


def test_only_code_that_draws_makes_figures_stale() -> None:
    from bertology.results import drawing_code
    from bertology.studies.attention.cls_attention import ClsAttentionResult

    seen = {*drawing_code._imported(ClsAttentionResult.__module__)}
    assert any(name.startswith("bertology.report.") for name in seen)
    assert not any(name.startswith(("bertology.model.", "bertology.run.")) for name in seen)
    assert drawing_code.drawn_by(ClsAttentionResult) != drawing_code.drawn_by(Drawn)
