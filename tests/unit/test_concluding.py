"""What was measured stays, and results are concluded from it again without the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import xarray as xr
from typer.testing import CliRunner

import bertology as bt
from bertology.cli.main import app
from bertology.errors import ParameterError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter, size_of
from bertology.report.atlas.gathering import _newest
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.run.session import Session
from bertology.stats import Estimate
from bertology.studies import JOINS, STUDIES
from bertology.studies.join import Join
from toy.making import Diary, ToyWorld
from toy.study import ToyLengths, ToyLengthsResult


@dataclass(frozen=True)
class ToyLevels(ToyLengths):
    """How long are texts, and how sure is it?"""

    level: float = parameter(0.95, "Confidence level.", minimum=0.5, concludes=True)

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        found = super().conclude(measured, provenance)
        wide = Estimate(5.0, 5.0 - self.level, 5.0 + self.level, n=24, level=self.level)
        return self.result(provenance, found.tables, evidence={"mean_length": wide})


@dataclass(frozen=True)
class ToySum(Join):
    """How long are they together?"""

    sources: ClassVar[tuple[str, ...]] = ("toy-lengths",)
    result_type: ClassVar[type[Result]] = ToyLengthsResult

    def combine(self, results: Sequence[Result], name: str) -> Result:
        main = results[0]
        about = self.provenance(name, main, {"toy": [r.identity for r in results]})
        levels = {"level_of_source": main.evidence()["mean_length"].level}
        return self.result(about, {"lengths": main.table()}, facts=levels)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ToyWorld:
    return ToyWorld(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def encoder(world: ToyWorld) -> bt.Encoder:
    return bt.load(world.model)


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Diary:
    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    monkeypatch.setitem(STUDIES._loaded, "toy-lengths", ToyLevels)
    monkeypatch.setitem(JOINS._loaded, "toy-sum", ToySum)
    return Diary(tmp_path / "diary")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture
def first(world: ToyWorld, encoder: bt.Encoder, store: Store, diary: Diary) -> Result:
    return bt.run("toy-lengths", encoder, task=world.corpus, store=store)


def key_of(result: Result) -> str:
    return str((result.provenance.measured or {})["key"])


def cli(*words: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})
    assert found.exit_code == code, found.output
    return found.output


def attempts(diary: Diary) -> int:
    return sum(diary.attempts().values())


def test_another_level_is_concluded_from_what_was_measured(
    first: Result, world: ToyWorld, encoder: bt.Encoder, store: Store, diary: Diary
) -> None:
    other = bt.run("toy-lengths", encoder, task=world.corpus, store=store, level=0.9)
    assert attempts(diary) == 4
    assert (other.evidence()["mean_length"].level, key_of(other)) == (0.9, key_of(first))
    assert other.identity != first.identity
    assert other.table().equals(first.table())
    more = bt.run("toy-lengths", encoder, task=world.corpus, store=store, factor=2.0)
    assert key_of(more) != key_of(first)
    assert attempts(diary) == 8


def test_a_higher_version_concludes_and_a_higher_measured_version_measures(
    first: Result,
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ToyLevels, "version", 7)
    other = bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert (other.provenance.study_version, key_of(other)) == (7, key_of(first))
    assert other.identity != first.identity
    assert attempts(diary) == 4
    monkeypatch.setattr(ToyLevels, "version", 8)
    monkeypatch.setattr(ToyLevels, "measured_version", 2)
    assert key_of(bt.run("toy-lengths", encoder, task=world.corpus, store=store)) != key_of(first)
    assert attempts(diary) == 8


@pytest.mark.parametrize("how", ["truncated", "changed", "missing"])
def test_a_damaged_part_is_told_and_only_it_is_measured_again(
    first: Result,
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    how: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = Path(store.url) / "measured" / key_of(first) / "part-2.nc"
    data = file.read_bytes()
    file.unlink()
    if how != "missing":
        file.write_bytes(data[:-9] if how == "truncated" else data[:-1] + b"?")
    other = bt.run("toy-lengths", encoder, task=world.corpus, store=store, level=0.9)
    assert diary.attempts() == {"part-0": 1, "part-1": 1, "part-2": 2, "part-3": 1}
    assert other.table().equals(first.table())
    told = "part-2.nc is damaged" in caplog.text and "measured again" in caplog.text
    assert told == (how != "missing")
    again = bt.run("toy-lengths", encoder, task=world.corpus, store=store, level=0.8)
    assert attempts(diary) == 5
    assert again.table().equals(first.table())


@pytest.mark.parametrize("keep", [None, 0])
def test_how_much_stays(
    world: ToyWorld, encoder: bt.Encoder, store: Store, diary: Diary, keep: int | None
) -> None:
    session, corpus = Session(store, keep_parts=keep), bt.load_corpus(world.corpus)
    result = session.run("toy-lengths", ToyLevels(), encoder, corpus)
    assert len(store.measured.parts(key_of(result))) == (4 if keep is None else 0)
    record = store.measured.find(key_of(result))
    assert record is not None
    assert record.kept == (keep is None)
    session.run("toy-lengths", ToyLevels(level=0.9), encoder, corpus)
    assert attempts(diary) == (4 if keep is None else 8)


def test_a_killed_run_leaves_parts_that_the_next_takes(
    world: ToyWorld, encoder: bt.Encoder, store: Store, diary: Diary, first: Result
) -> None:
    """As after kill -9 once two parts were written: no record, no result, a mark."""
    folder = Path(store.url) / "measured" / key_of(first)
    (folder / "measured.json").unlink()
    (folder / "part-3.nc").unlink()
    (folder / "part-2.nc").write_bytes(b"half a part")
    result = bt.run("toy-lengths", encoder, task=world.corpus, store=store, level=0.9)
    assert diary.attempts() == {"part-0": 1, "part-1": 1, "part-2": 2, "part-3": 2}
    assert result.table().equals(first.table())


def test_conclude_needs_no_model(
    first: Result, store: Store, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = ToySum().join([first])
    store.save(joined)

    def no_model(*_: object, **__: object) -> Any:
        raise AssertionError("a model was loaded or run")

    monkeypatch.setattr(Encoder, "load", no_model)
    monkeypatch.setattr(Encoder, "run", no_model)
    told = cli("conclude", "--all", "--store", store.url)
    assert "2 same" in told
    assert store.load(first.identity).same_content(first)
    told = cli("conclude", "toy-lengths", "--level", "0.8", "--store", store.url)
    assert "2 new" in told
    found = {p.study: store.load(p) for p in store.list() if p.parameters["level"] == 0.8}
    assert found["toy-lengths"].evidence()["mean_length"].level == 0.8
    assert found["toy-sum"].facts["level_of_source"] == 0.8
    assert "2 new" in cli(
        "conclude", first.identity[:6], "--set", "level=0.7", "--store", store.url
    )
    monkeypatch.setattr(ToyLevels, "version", 9)
    assert "new" in cli("conclude", key_of(first), "--store", store.url)
    assert attempts(diary) == 4


def test_why_nothing_is_concluded_is_said(first: Result, store: Store) -> None:
    of_before = replace(first.provenance, measured=None)
    store.save(replace(first, provenance=of_before))
    cli("drop", "--all", "--yes", "--store", store.url)
    told = cli("conclude", first.identity, "--store", store.url, code=1)
    assert "what was measured for it was not kept; bertology run toy-lengths --force" in told
    assert "Concluded in" in told


def test_of_one_measurement_the_newest_conclusion_counts(
    first: Result, world: ToyWorld, encoder: bt.Encoder, store: Store
) -> None:
    """As five results of one measurement they were corrected as if they were of five tasks."""
    for level in (0.8, 0.9):
        cli("conclude", first.identity, "--level", str(level), "--store", store.url)
    assert len(store.list()) == 3
    assert len(_newest(store.list())) == 1


def test_the_disk_is_shown_and_freed(first: Result, store: Store) -> None:
    key = key_of(first)
    shown = cli("list", "--disk", "--store", store.url)
    assert key[:8] in shown
    assert "kept" in shown
    asked = CliRunner().invoke(app, ["drop", key[:5], "--store", store.url], input="n\n")
    assert asked.exit_code == 1
    assert len(store.measured.parts(key)) == 4
    assert "Dropped 1 measurement:" in cli("drop", "toy-lengths", "--yes", "--store", store.url)
    assert store.measured.parts(key) == []
    assert store.has(first.identity)
    assert "dropped" in cli("list", "--disk", "--store", store.url)
    assert "nothing to drop" in cli("drop", "--all", "--store", store.url)


def test_a_record_that_cannot_be_read_is_made_anew(
    first: Result, world: ToyWorld, encoder: bt.Encoder, store: Store, diary: Diary
) -> None:
    record = Path(store.url) / "measured" / key_of(first) / "measured.json"
    for text in ("{", "[]", json.dumps({**json.loads(record.read_text()), "parts": 3})):
        record.write_text(text)
        bt.run("toy-lengths", encoder, task=world.corpus, store=store, level=0.6 + len(text) / 1e5)
        assert attempts(diary) == 4
        assert store.measured.find(key_of(first)) is not None


def test_a_model_is_not_loaded_where_only_judging_changed(
    world: ToyWorld, store: Store, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the hash of its files it is known which model it is."""
    asked = ("run", "toy-lengths", "--model", str(world.model), "--task", str(world.corpus))
    cli(*asked, "--store", store.url)
    load = Encoder.load
    loaded = list[object]()

    def noted(*given: Any, **options: Any) -> Encoder:
        loaded.append(given)
        return load(*given, **options)

    monkeypatch.setattr(Encoder, "load", noted)
    shown = cli(*asked, "--store", store.url, "--level", "0.9")
    assert "level = 0.9" in shown
    cli(*asked, "--store", store.url)
    assert (loaded, attempts(diary)) == ([], 4)
    cli(*asked, "--store", store.url, "--factor", "2")
    assert (len(loaded), attempts(diary)) == (1, 8)
    (record,) = (Path(store.url) / "models").iterdir()
    record.unlink()
    cli(*asked, "--store", store.url, "--level", "0.8")
    assert (len(loaded), attempts(diary)) == (2, 8)


@pytest.mark.parametrize(
    ("text", "size"),
    [("all", None), ("none", 0), ("7", 7), ("1.5 kB", 1500), ("2GB", 2 * 10**9), ("1tb", 10**12)],
)
def test_sizes(text: str, size: int | None) -> None:
    assert size_of(text) == size


def test_what_is_no_size_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"all, none or a size such as 500MB"):
        size_of("much")
