"""`bertology distil-static`: what is written, streamed, gone on with after a stop, and refused."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bertology as bt
import planted_links as planted
import tiny
from bertology.annotated import word_contexts
from bertology.cli.main import app
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.static_vectors import read_word_vectors
from bertology.errors import DataError, InterruptedRunError, ParameterError, StoreError
from bertology.model.encoder import Encoder
from bertology.run import distilling
from bertology.train.pretrain import processes


@pytest.fixture(scope="module")
def reader() -> Encoder:
    return Encoder(planted.random_model(), planted.tokenizer(), name="planted")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    place = tmp_path / "texts.txt.gz"
    with gzip.open(place, "wt") as file:
        file.write("\n".join(one.text for one in planted.corpus(60)))
    return place


def loop(reader: Encoder, texts: Path, layer: int) -> dict[str, np.ndarray]:
    """The obvious way: transformers on one text after the other."""
    sums: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    with gzip.open(texts, "rt") as file:
        for line in file:
            given = reader.tokenizer(line.strip(), return_tensors="pt")
            states = reader.model(**given, output_hidden_states=True).hidden_states[layer + 1]
            for at, word in enumerate(line.replace(".", " .").split(), start=1):
                sums[word] = sums.get(word, 0) + states[0, at].detach().double().numpy()
                counts[word] += 1
    return {word: of / counts[word] for word, of in sums.items() if counts[word] >= 5}


def test_vectors_are_those_of_a_plain_loop_and_read_back(
    reader: Encoder, texts: Path, tmp_path: Path
) -> None:
    place = tmp_path / "new" / "vectors.txt"
    found = bt.distil_static(reader, str(texts), place, layers=[2], progress=False)
    wanted = loop(reader, texts, 2)
    assert place.read_text().splitlines()[0] == f"{len(wanted)} {reader.shape.hidden}"
    read = read_word_vectors(place, list(wanted))
    assert set(read.vectors) == set(wanted)
    for word, vector in wanted.items():
        assert read.vectors[word] == pytest.approx(vector, abs=2e-6)
    assert (found.words, found.texts, found.lost) == (len(wanted), 60, 0)
    assert found.files == {2: place}
    assert [file.name for file in place.parent.iterdir()] == ["vectors.txt"]
    first = [line.split()[0] for line in place.read_text().splitlines()[1:]]
    assert first[:1] == ["the"] or first[:1] == ["a"] or first[:1] == ["."]  # frequent ones first


def test_several_layers_are_several_files(reader: Encoder, texts: Path, tmp_path: Path) -> None:
    to = tmp_path / "v.txt"
    found = bt.distil_static(
        reader, str(texts), to, layers="all", method="component", iterations=20, progress=False
    )
    names = ["v.input.txt", *(f"v.layer-{n}.txt" for n in range(planted.LAYERS))]
    assert [file.name for file in found.files.values()] == names
    assert found.moved < 1e-6
    mean = loop(reader, texts, 1)
    component = read_word_vectors(found.files[1], list(mean)).vectors
    for word, vector in mean.items():
        cosine = vector @ component[word] / np.linalg.norm(vector) / np.linalg.norm(component[word])
        assert cosine > 0.99  # of what occurs in similar contexts


def stopped_after(monkeypatch: pytest.MonkeyPatch, blocks: int, *, killed: bool) -> list[int]:
    """Ctrl-C, or death, in a block of the work."""
    event, done = Event(), list[int]()
    plain = word_contexts.add_contexts

    def add(*args: Any, **how: Any) -> int:
        done.append(len(args[1]))
        if len(done) == blocks:
            if killed:
                raise MemoryError("killed")
            event.set()
        return plain(*args, **how)

    class Stoppable:
        def __enter__(self) -> Event:
            return event

        def __exit__(self, *_: object) -> None:
            event.clear()

    monkeypatch.setattr(word_contexts, "add_contexts", add)
    monkeypatch.setattr(processes, "stoppable", Stoppable)
    return done


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("blocks", [2, 5])  # in the first pass, and in a power iteration
def test_what_was_summed_is_not_lost(
    reader: Encoder,
    texts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    killed: bool,
    blocks: int,
) -> None:
    monkeypatch.setattr(distilling, "_BLOCK", 20)
    monkeypatch.setattr(distilling, "_KEEP", -1.0)
    how: dict[str, Any] = {"method": "component", "iterations": 2, "progress": False}
    whole = tmp_path / "whole.txt"
    bt.distil_static(reader, str(texts), whole, **how)
    to = tmp_path / "v.txt"
    with monkeypatch.context() as patch:
        stopped_after(patch, blocks, killed=killed)
        with pytest.raises(MemoryError if killed else InterruptedRunError):
            bt.distil_static(reader, str(texts), to, **how)
    assert not to.exists()
    with monkeypatch.context() as patch:
        done = stopped_after(patch, -1, killed=False)
        bt.distil_static(reader, str(texts), to, **how)
    assert len(done) == 9 - (
        blocks - 1 if killed else blocks
    )  # three blocks in each of three passes
    assert to.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_work_of_other_settings_is_not_gone_on_with(
    reader: Encoder, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distilling, "_BLOCK", 20)
    to = tmp_path / "v.txt"
    with monkeypatch.context() as patch:
        stopped_after(patch, 1, killed=False)
        with pytest.raises(InterruptedRunError, match="Stopped after 20 of 60 texts"):
            bt.distil_static(reader, str(texts), to, progress=False)
    kept = tmp_path / ".v.txt.progress"
    done = stopped_after(monkeypatch, -1, killed=False)
    bt.distil_static(reader, str(texts), to, layers=[0], progress=False)
    assert len(done) == 3
    kept.write_bytes(b"broken")
    bt.distil_static(reader, str(texts), to, force=True, progress=False)
    assert len(done) == 6
    assert not kept.exists()


def test_odd_words_are_read_back(reader: Encoder, tmp_path: Path) -> None:
    words = ["the dog", "a", "ball\u2028bone", "sees"]
    text = "the dog a ball\u2028bone sees"
    corpus = Corpus(
        "odd",
        [Example("0", text, annotations={"words": words})],
        frozenset({Field.TEXT, Field.WORDS}),
    )
    to = tmp_path / "v.txt"
    bt.distil_static(reader, corpus, to, min_count=1, progress=False)
    read = read_word_vectors(to, ["the_dog", "a", "ball_bone", "sees"])
    assert len(read.vectors) == 4
    assert len(to.read_bytes().split(b"\n")) == 6


def test_capitals_are_kept_where_the_model_tells_them(tmp_path: Path, texts: Path) -> None:
    model = Encoder(planted.random_model(), planted.tokenizer(), name="planted")
    corpus = Corpus.of_texts(["the dog sees", "The Dog sees"] * 3)
    lowered = distilling._ignores_case(model)
    for case, count in (("keep", 5), ("lower", 3), ("auto", 3 if lowered else 5)):
        to = tmp_path / f"{case}.txt"
        found = bt.distil_static(model, corpus, to, case=case, min_count=1, progress=False)
        assert found.words == count


def test_what_cannot_be_done_is_said(reader: Encoder, texts: Path, tmp_path: Path) -> None:
    def refused(
        kind: type[Exception], words: str, to: Path = tmp_path / "v.txt", **how: Any
    ) -> None:
        with pytest.raises(kind, match=words):
            bt.distil_static(reader, how.pop("corpus", str(texts)), to, progress=False, **how)

    refused(StoreError, "is a folder", tmp_path)
    refused(ParameterError, "between -1 and 3", layers=[4])
    refused(DataError, "occurs 9999 times", min_count=9999)
    refused(DataError, "no text file", corpus=str(tmp_path / "none.txt"))
    (tmp_path / "v.txt").write_text("mine")
    refused(StoreError, "--force")
    assert (tmp_path / "v.txt").read_text() == "mine"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_reader(tmp_path_factory.mktemp("model"))


def test_the_command_tells_what_it_did(folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "v.txt"
    words = ["distil-static", str(folder), "--corpus", "grammar", "--limit", "40", "--to", str(to)]
    found = CliRunner().invoke(app, [*words, "--layer", "-1,1", "--device", "cpu"])
    assert found.exit_code == 0, found.output
    assert "words × 16 dimensions" in found.output
    assert (tmp_path / "v.input.txt").exists()
    assert (tmp_path / "v.layer-1.txt").exists()
    wrong = CliRunner().invoke(app, [*words, "--layer", "top"])
    assert wrong.exit_code == 2
    assert "numbers of layers" in wrong.output
