"""`bertology.run` in one process: cached, resumable, refusing before any work."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
import xarray as xr

import bertology as bt
import tiny
from bertology.errors import (
    CapabilityError,
    InterruptedRunError,
    JobError,
    ParameterError,
    StoreError,
    UnknownNameError,
)
from bertology.model.shape import Shape
from bertology.results.measured import Measurements, PartLostError
from bertology.results.store import Store
from bertology.run.local import LocalEngine
from bertology.run.session import Session
from bertology.run.stored_parts import StoredParts
from bertology.run.worker import SECONDS
from bertology.studies import STUDIES
from bertology.studies.attention.map_types import MapTypes
from bertology.studies.study import Needs
from toy.making import WORDS, Diary, ToyWorld
from toy.study import STEPS, ToyLengths


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ToyWorld:
    return ToyWorld(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def encoder(world: ToyWorld) -> bt.Encoder:
    return bt.load(world.model)


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Diary:
    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    monkeypatch.setitem(STUDIES._loaded, "toy-lengths", ToyLengths)
    return Diary(tmp_path / "diary")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


class Heard:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.total, self.done, self.stopped = 0, 0, False

    def start(self, title: str, total: int) -> None:
        self.total = total

    def advance(self, steps: int) -> None:
        self.done += steps

    def stop(self) -> None:
        self.stopped = True


def test_a_result_is_measured_once(
    world: ToyWorld, encoder: bt.Encoder, store: Store, diary: Diary
) -> None:
    heard = Heard()
    first = bt.run("toy-lengths", encoder, task=world.corpus, store=store, progress=heard)
    assert diary.attempts() == {f"part-{i}": 1 for i in range(4)}
    assert (heard.total, heard.done, heard.stopped) == (4 * STEPS, 4 * STEPS, True)
    key = str((first.provenance.measured or {})["key"])
    assert store.measured.parts(key) == [f"part-{i}" for i in range(4)]  # they stay
    again = bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert sum(diary.attempts().values()) == 4
    assert again.equals(first)
    assert type(again) is type(first)
    other = bt.run("toy-lengths", encoder, task=world.corpus, store=store, factor=2.0)
    assert other.identity != first.identity


def test_bundled_files_that_decide_numbers_are_part_of_the_identity(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    monkeypatch.setattr(ToyLengths, "ingredients", lambda self, corpus: {"weights": "others"})
    other = bt.run(ToyLengths(), encoder, task=world.corpus, store=store)
    assert other.identity != first.identity
    assert other.provenance.ingredients == {"weights": "others"}


def test_names_are_loaded_and_what_was_asked_is_kept(
    world: ToyWorld, store: Store, diary: Diary
) -> None:
    result = bt.run(ToyLengths(pieces=1), world.model, corpus=world.corpus, store=store.url)
    p = result.provenance
    assert p.study == "toy-lengths"
    assert p.parameters["pieces"] == 1
    assert (p.model["family"], p.model["head"], p.model["shape"]["layers"]) == ("bert", "base", 3)
    assert p.corpus is not None
    assert p.corpus["size"] == 6
    assert p.duration > 0


@pytest.mark.parametrize("how", ["interrupt", "stopped-training"])
def test_an_interrupted_run_keeps_its_parts_and_resumes(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    whole = bt.run("toy-lengths", encoder, task=world.corpus, store=f"{store.url}-undisturbed")
    for note in diary.folder.iterdir():
        note.unlink()
    monkeypatch.setenv("TOY_FAULT", f"part-2={how}")
    with pytest.raises(InterruptedRunError, match="2 of 4 parts") as caught:
        bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert "call bt.run(...) again with the same store" in str(caught.value.hint)
    assert caught.value.exit_code == 130
    result = bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert diary.attempts() == {"part-0": 1, "part-1": 1, "part-2": 2, "part-3": 1}
    assert result.table().equals(whole.table())


def test_the_command_that_resumes_is_said(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOY_FAULT", "part-0=interrupt")
    session = Session(store, command="bertology run toy-lengths --model m")
    with pytest.raises(InterruptedRunError) as caught:
        session.run("toy-lengths", ToyLengths(), encoder, bt.load_corpus(world.corpus))
    assert str(caught.value.hint).endswith("with: bertology run toy-lengths --model m")


def test_force_measures_anew_and_resumes_if_interrupted(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def again() -> Any:
        return bt.run("toy-lengths", encoder, task=world.corpus, store=store, force=True)

    bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    again()
    assert set(diary.attempts().values()) == {2}
    for note in diary.folder.glob("part-3.*"):
        note.unlink()
    monkeypatch.setenv("TOY_FAULT", "part-3=interrupt")
    with pytest.raises(InterruptedRunError):
        again()
    again()
    assert diary.attempts() == {"part-0": 3, "part-1": 3, "part-2": 3, "part-3": 2}


def test_a_bug_fails_one_part_and_keeps_the_others(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOY_FAULT", "part-1=bug")
    with pytest.raises(JobError, match="1 of 4 parts of 'toy-lengths' failed") as caught:
        bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert "ZeroDivisionError: a bug in the study" in caught.value.problem
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    monkeypatch.delenv("TOY_FAULT")
    bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert diary.attempts() == {"part-0": 1, "part-1": 2, "part-2": 1, "part-3": 1}


def test_parts_that_are_timed_are_done_one_by_one_when_all_others_are(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ToyLengths, "timed_parts", frozenset({"part-0", "part-2"}))
    told = list[list[str]]()

    class Noting(LocalEngine):
        def run(self, jobs: Any, inputs: Any, advance: Any) -> Any:
            told.append([job.part for job in jobs])
            yield from super().run(jobs, inputs, advance)

    bt.run("toy-lengths", encoder, task=world.corpus, store=store, engine=Noting())
    assert told == [["part-1", "part-3"], ["part-0"], ["part-2"]]


def test_a_hiccup_is_tried_again(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = Heard()
    monkeypatch.setenv("TOY_FAULT", "part-1=hiccup")
    bt.run("toy-lengths", encoder, task=world.corpus, store=store, progress=heard)
    assert diary.attempts()["part-1"] == 2
    assert heard.done == heard.total


def test_a_full_disk_stops_at_once_and_keeps_what_is_done(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOY_FAULT", "part-1=full")
    with pytest.raises(StoreError, match="The disk is full"):
        bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert diary.attempts() == {"part-0": 1, "part-1": 1}
    monkeypatch.delenv("TOY_FAULT")
    bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert diary.attempts()["part-0"] == 1


def test_a_store_that_cannot_be_written_is_noticed_before_any_work(
    world: ToyWorld, encoder: bt.Encoder, tmp_path: Path, diary: Diary
) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreError):
        bt.run("toy-lengths", encoder, task=world.corpus, store=str(tmp_path / "taken"))
    assert diary.attempts() == {}


def test_what_another_process_finished_meanwhile_is_taken(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other process has saved the result and cleaned the parts while we were at work."""
    load_part = Measurements.load_part

    def faster(self: Measurements, key: str, part: str) -> Any:
        monkeypatch.setattr(Measurements, "load_part", load_part)
        bt.run("toy-lengths", encoder, task=world.corpus, store=store)
        self.drop(key)
        return load_part(self, key, part)

    monkeypatch.setattr(Measurements, "load_part", faster)
    result = bt.run("toy-lengths", encoder, task=world.corpus, store=store)
    assert len(result.table()) == 24


def test_parts_are_read_one_by_one_and_not_held(
    world: ToyWorld, encoder: bt.Encoder, store: Store, diary: Diary
) -> None:
    key = "0" * 16
    store.measured.save_part(key, "part-0", xr.Dataset(attrs={SECONDS: 2.0, "kept": 1}))
    parts = StoredParts(store.measured, key, ["part-0", "part-1"])
    assert list(parts) == ["part-0", "part-1"]
    assert parts["part-0"].attrs == {"kept": 1}
    assert parts["part-0"] is not parts["part-0"]
    assert parts.seconds("part-0") == 2
    with pytest.raises(KeyError):
        parts["part-9"]
    with pytest.raises(PartLostError):
        parts["part-1"]


@pytest.mark.parametrize(
    ("device", "asked", "given"), [("cpu", None, 4096), ("cuda", None, 999), ("cuda", 64, 64)]
)
def test_batches_are_as_large_as_suits_the_device(
    world: ToyWorld, store: Store, device: str, asked: int | None, given: int
) -> None:
    class Hungry(ToyLengths):
        def tokens_on_gpu(self, shape: Shape) -> int:
            return 3 * shape.hidden

    encoder: Any = SimpleNamespace(device=torch.device(device), shape=Shape(2, 2, 333, 4, 32))
    assert Session(store, batch_tokens=asked).tokens_per_batch(Hungry(), encoder) == given


def test_parts_of_another_size_are_other_parts() -> None:
    """Or a run that goes on on another device would take few examples for many."""
    on_cpu, on_gpu = (SimpleNamespace(device=torch.device(d), shape=None) for d in ("cpu", "cuda"))
    study = MapTypes()
    many: Any = range(600)
    plans = []
    for encoder in (on_cpu, on_gpu):
        with mock.patch.object(MapTypes, "shown", lambda self, of: of):
            plans.append(study.plan(encoder, many))  # type: ignore[arg-type]
            assert sum(study.steps(part, encoder.shape, many) for part in plans[-1]) == 600
    assert len(plans[0]) == 5
    assert plans[1] == ["examples-000000-000512", "examples-000512-000600"]


def test_needs_are_checked_before_any_work(
    world: ToyWorld,
    encoder: bt.Encoder,
    store: Store,
    diary: Diary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(needs: Needs, **given: Any) -> str:
        monkeypatch.setattr(ToyLengths, "needs", needs)
        with pytest.raises(CapabilityError) as caught:
            bt.run("toy-lengths", encoder, store=store, **given)
        return str(caught.value)

    masked = refused(Needs(capabilities=frozenset({"masked-lm"})), task=world.corpus)
    assert "needs masked-lm, which the BERT model" in masked
    assert "bertology families" in masked
    head = refused(Needs(head="mlm"), task=world.corpus)
    assert f"bt.load({world.model!r}, head='mlm')" in head
    assert "needs a task; none was given" in refused(Needs(task=True))
    assert "a corpus with heads" in refused(Needs(fields=frozenset({"heads"})))
    fields = refused(Needs(fields=frozenset({"heads"})), corpus=world.corpus)
    assert "needs the fields heads" in fields
    assert "It has: label, text" in fields
    plain = bt.Corpus("plain", [bt.Example("1", "a")], frozenset({bt.Field.TEXT}))
    assert "'plain' has none" in refused(Needs(task=True), corpus=plain)
    assert "'plain' has no task" in refused(Needs(), task=plain)
    assert diary.attempts() == {}


def test_a_head_with_other_labels_is_refused(world: ToyWorld, store: Store, diary: Diary) -> None:
    corpus = bt.load_corpus(world.corpus)
    model = tiny.model("bert", "classification")
    model.config.num_labels = 3
    three = bt.Encoder(model, tiny.tokenizer(WORDS), head="classification")
    with pytest.raises(CapabilityError, match=r"has 2 labels; the model .* gives 3"):
        bt.run("head-ablation", three, task=corpus, store=store)


def test_a_study_of_the_body_has_one_result_whatever_the_head(tmp_path: Path) -> None:
    folder, store = tiny.save_reader(tmp_path / "model"), str(tmp_path / "results")
    asked: dict[str, Any] = {
        "corpus": "grammar", "limit": 8, "store": store, "progress": False, "keep": 0,
    }  # fmt: skip
    made = [
        bt.run("attention-maps", bt.load(str(folder), head=head), **asked)
        for head in ("mlm", "base")
    ]
    assert made[0].identity == made[1].identity
    assert len(Store(store).list()) == 1
    changed = bt.load(str(folder), head="mlm")
    with torch.no_grad():
        changed.model.get_input_embeddings().weight.add_(1)  # no longer what the folder holds
    other = bt.run("attention-maps", changed, **asked)
    assert other.identity != made[0].identity


def test_what_lives_in_memory_stays_in_this_process(
    world: ToyWorld, encoder: bt.Encoder, store: Store, diary: Diary
) -> None:
    loose = bt.Encoder(tiny.model("bert"), tiny.tokenizer(WORDS))
    with pytest.raises(CapabilityError, match="model was made in memory") as caught:
        bt.run("toy-lengths", loose, task=world.corpus, store=store, workers=2)
    assert "workers=1" in str(caught.value.hint)
    corpus = bt.load_corpus(world.corpus)[:3]
    with pytest.raises(CapabilityError, match="corpus was made in memory"):
        bt.run("toy-lengths", encoder, task=corpus, store=store, workers=2)
    with pytest.raises(CapabilityError, match="store in memory"):
        bt.run("toy-lengths", encoder, task=world.corpus, store="memory://x", workers=2)
    assert len(bt.run("toy-lengths", loose, task=corpus, store="memory://x").table()) == 12


def test_wrong_names_are_answered_with_right_ones(
    world: ToyWorld, encoder: bt.Encoder, diary: Diary
) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'toy-lengths'"):
        bt.run("toy-length", encoder)
    with pytest.raises(UnknownNameError, match="it combines stored results"):
        bt.run("head-profile")
    with pytest.raises(ParameterError, match="a mapping of fields to columns"):
        bt.run("toy-lengths", corpus="a.csv", columns="text=a")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="a name, a path or a Corpus, or a list of texts"):
        bt.run("toy-lengths", corpus=3)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="Did you mean 'factor'"):
        bt.run("toy-lengths", encoder, factr=1)
    with pytest.raises(UnknownNameError, match="engine 'dask'"):
        bt.run("toy-lengths", encoder, task=world.corpus, engine="dask")
    with pytest.raises(ParameterError, match="'corpus' parameter of run must be left out"):
        bt.run("toy-lengths", encoder, task="mrpc", corpus="mrpc")
    with pytest.raises(ParameterError, match="'workers' parameter"):
        bt.run("toy-lengths", encoder, task=world.corpus, workers=-1)
    with pytest.raises(ParameterError, match="be a name or a class"):
        bt.run(ToyLengths(), encoder, factor=2.0)
    with pytest.raises(ParameterError, match="'factor' parameter of ToyLengths"):
        bt.run(ToyLengths, encoder, factor=-1.0)


def test_the_verb_stays_callable_whatever_is_imported() -> None:
    import inspect

    import bertology.run.session

    assert callable(bt.run)
    assert list(inspect.signature(bt.run).parameters)[:2] == ["study", "encoder"]
    assert bertology.run.session.Session is Session
