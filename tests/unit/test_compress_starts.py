"""Students that begin with a small pre-trained model, and students that learn on text first."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import bertology as bt
import planted
import prune_killed
from bertology.errors import BertologyError, CapabilityError, ParameterError, StoreError
from bertology.model.encoder import Encoder
from bertology.train.compress import read_methods
from bertology.train.compress.compressing import compress_to
from bertology.train.compress.work import CompressWatch
from bertology.train.encoded import learnable
from bertology.train.starts import STARTS, begin
from made_compressions import applied, job, masked_lm, work

ORDER = planted.WORDS[::-1]  # the same words, numbered in another order


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small pre-trained model of the original's tokens."""
    masked_lm(tmp_path / "small", hidden=8, layers=1)
    return tmp_path / "small"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    place = tmp_path / "text.txt"
    place.write_text("\n".join(["the good up", "a bad down down", ""] * 8))
    return place


# A small pre-trained model ----------------------------------------------------------------------


def test_a_student_is_the_model_that_it_begins_with(small: Path) -> None:
    [method] = read_methods([f"soft_labels:start={small}"])
    given = work()
    found: Any = method.student(given)  # type: ignore[attr-defined]
    own = bt.load(str(small), device="cpu").model.state_dict()
    there = found.base.state_dict()
    shared = [n for n in own if n in there and "pooler" not in n]
    assert len(shared) > 10
    assert all(torch.equal(own[n], there[n]) for n in shared)
    assert (found.shape.layers, found.shape.hidden) == (1, 8)
    assert found.config.id2label == given.teacher.config.id2label
    assert f"begins with the weights of {small}" in given.notes[0]


@pytest.mark.parametrize("name", ["soft_labels", "minilm", "tiny", "alone"])
def test_a_small_model_is_taught_or_trained_alone(name: str, small: Path) -> None:
    first = ",first_epochs=1" * (name in ("minilm", "tiny"))
    made = applied(f"{name}:start={small}{first}")
    assert made.shape.hidden == 8
    assert made.tokenizer.get_vocab() == planted.tokenizer().get_vocab()


def test_other_tokens_where_none_are_compared(tmp_path: Path) -> None:
    masked_lm(tmp_path / "other", words=ORDER)
    original = work().teacher
    for name in ("soft_labels", "patient", "alone"):
        [method] = read_methods([f"{name}:start={tmp_path / 'other'}"])
        method.check_fit(original)
        made = method.apply(work())
        assert made.tokenizer.get_vocab() != original.tokenizer.get_vocab()
    for text in ("tiny", "minilm", "distil_text"):
        [method] = read_methods([f"{text}:start={tmp_path / 'other'}"])
        with pytest.raises(CapabilityError, match="cuts texts into other tokens"):
            method.check_fit(original)


def test_starts_that_do_not_fit_are_refused(small: Path) -> None:
    refused: list[tuple[str, str]] = [
        (f"soft_labels:start={small},layers=1", "layers.*be left out where start names a model"),
        (f"soft_labels:start={small},which=first", "which.*be left out"),
        (f"theseus:layers=1,start={small}", "be one of auto, layers, slices, random"),
        (f"small_vocabulary:start={small}", "be one of auto, layers, slices, random"),
        (f"layer_choice:layers=1,soft_labels:start={small}", "so only it can be the first"),
        (f"patient:start={small}", "states of one width"),
        ("soft_labels:start=slyces", "slices, random, or a small pre-trained model"),
    ]

    def check(text: str) -> None:
        for method in read_methods([text]):
            method.check_fit(work().teacher)

    for text, said in refused:
        with pytest.raises(BertologyError, match=said):
            check(text)


def test_the_models_weights_decide_and_not_its_folder(small: Path) -> None:
    def identity() -> str:
        asked = job(f"soft_labels:start={small}")
        return asked.identity(asked.methods)

    before = identity()
    assert identity() == before
    masked_lm(small, hidden=12, layers=1)
    assert identity() != before


def test_pkd_begins_with_the_first_layers_and_follows_others(tmp_path: Path) -> None:
    """Sun et al. begin with the first k layers, whichever the student follows."""
    base = masked_lm(tmp_path / "base", layers=4)
    task = learnable(work().train)
    deep = Encoder(begin(base, task, STARTS["pretrained"], seed=0), base.tokenizer)
    [method] = read_methods(["patient:layers=2,which=first,follow=last"])
    given = work(Encoder(deep.model, deep.tokenizer, head="classification"))
    found: Any = method.student(given)  # type: ignore[attr-defined]
    for own, its in zip(found.base.encoder.layer, deep.base.encoder.layer, strict=False):
        assert torch.equal(own.output.dense.weight, its.output.dense.weight)
    assert "begins with layers 1, 2 of 4" in given.notes[0]


# On text first ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        "tiny:layers=1,first_epochs=1",
        "tiny:hidden=8,heads=2,parts=2,first_epochs=0",
        "minilm:layers=1,first_epochs=0,hard=1",
        "distil_text:layers=1",
        "distil_text:start={small},cosine=0",
        "minilm:start={small},first_epochs=1",
    ],
)
def test_students_learn_on_text_first(options: str, text: Path, tmp_path: Path) -> None:
    small = tmp_path / "narrow"
    masked_lm(small, hidden=8, layers=1)
    given = work(base=masked_lm(tmp_path / "base"))
    made = applied(f"{options.format(small=small)},file={text},text_epochs=1", given)
    assert made.head == "classification"
    trainings = 2 + ("first_epochs=1" in options)
    assert (given.epochs, given.trainings) == (trainings, trainings)
    assert "1 epoch on 16 texts came first" in given.notes


def test_the_text_is_what_moves_the_body(text: Path, tmp_path: Path) -> None:
    """The task begins with the body that learnt on text, and with the head as it was."""
    base = masked_lm(tmp_path / "base")
    [method] = read_methods([f"tiny:layers=2,file={text},text_epochs=1,text_rate=0.001"])
    given = work(base=base)
    found: Any = method.student(given)  # type: ignore[attr-defined]
    original = given.teacher.model.state_dict()
    for name, weight in found.model.state_dict().items():
        as_it_was = name.startswith(("classifier", "bert.pooler")) or name.endswith("_ids")
        assert torch.equal(weight, original[name]) == as_it_was, name
    own = base.base.state_dict()  # from which the body has moved a little
    for name, weight in found.base.state_dict().items():
        if weight.dim() > 1 and "pooler" not in name:
            assert (weight - own[name]).abs().max() < 0.05, name


def test_what_text_needs_is_refused_where_it_is_not_there(text: Path) -> None:
    for written, said in (
        ("tiny:layers=1,text_epochs=2", "be left out where no text is given"),
        ("minilm:layers=1,first_epochs=0", "be at least 1 where no text comes first"),
        (f"layer_choice,minilm:file={text}", "so only it can be the first"),
    ):
        with pytest.raises(ParameterError, match=said):
            read_methods([written])
    with pytest.raises(CapabilityError, match="no masked LM can teach"):
        applied(f"tiny:layers=1,file={text}")
    assert not read_methods(["tiny:layers=1"])[0].uses_base
    assert read_methods([f"tiny:layers=1,file={text}"])[0].uses_base


def test_the_masked_lm_itself_is_kept(text: Path, tmp_path: Path) -> None:
    base, kept = masked_lm(tmp_path / "base"), tmp_path / "kept"
    written = f"distil_text:layers=1,text_epochs=1,file={text},masked_lm={kept}"
    made = applied(written, work(base=base, identity="one"))
    found = bt.load(str(kept), head="mlm", device="cpu")
    assert not found.new_weights
    assert found.shape.layers == 1
    with torch.no_grad():
        logits = found.model(**found.encode(["the good up"]).inputs).logits
    assert logits.shape[-1] == len(planted.tokenizer())
    # It is the student before the task: the task has moved its body.
    name = "encoder.layer.0.output.dense.weight"
    own, task = (m.base_model.state_dict()[name] for m in (found.model, made.model))
    assert not torch.equal(own, task)
    applied(written, work(base=base, identity="one"))  # the same once more
    with pytest.raises(StoreError, match="holds a model of other methods"):
        applied(written, work(base=base, identity="another"))
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "a.txt").write_text("mine")
    [method] = read_methods([f"distil_text:layers=1,masked_lm={taken}"])
    with pytest.raises(StoreError, match="exists already"):
        method.check_fit(prune_killed.encoder())


# What decides ----------------------------------------------------------------------------------


def test_where_files_lie_does_not_decide(small: Path, text: Path, tmp_path: Path) -> None:
    """Contents do; and that something is given at all."""

    def identity(written: str) -> str:
        asked = job(written)
        return asked.identity(asked.methods)

    moved, text_moved = tmp_path / "moved", tmp_path / "other.txt"
    shutil.copytree(small, moved)
    shutil.copy(text, text_moved)
    written = "distil_text:start={},cosine=0,file={},masked_lm={}"
    one = identity(written.format(small, text, tmp_path / "a"))
    assert identity(written.format(moved, text_moved, tmp_path / "b")) == one
    text_moved.write_text("the good")
    others = {
        identity(written.format(moved, text_moved, tmp_path / "a")),
        identity(f"distil_text:start={small},cosine=0,file={text}"),
        identity(f"distil_text:start={small},file={text},masked_lm={tmp_path}/a"),
    }
    assert len(others | {one}) == 4


def test_methods_without_places_are_hashed_as_they_are_written() -> None:
    texts = ["soft_labels", "tiny:layers=1,start=random", "distil_text:layers=1,which=2", "half"]
    for method in (read_methods([text])[0] for text in texts):
        assert method.hashed == method.text


def test_what_is_written_beside_a_model_is_missed(tmp_path: Path) -> None:
    """Of a model that is found again, it is not written somewhere else."""
    said = list[str]()
    watch, asked = CompressWatch(tell=said.append), job("half")
    made = compress_to(tmp_path / "x", asked)
    for place in ("there", "no"):
        written = read_methods([f"distil_text:layers=1,masked_lm={tmp_path / place}"])
        (tmp_path / "there").mkdir(exist_ok=True)
        moved = replace(asked, methods=(asked.methods[0], *written))
        record = {**made.record, "identity": moved.identity(moved.methods)}
        (made.folder / "bertology.json").write_text(json.dumps(record))
        compress_to(made.folder, moved, watch=watch)
    assert len(said) == 3
    assert said[-1].endswith("no (masked_lm of distil_text) is not there; --force makes it, too.")
