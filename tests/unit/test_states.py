"""States of words: those of a plain pass, computed once, resumed, bounded, refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertology as bt
import planted_trees as planted
import tiny
from bertology.annotated import states as module
from bertology.annotated.states import POOLINGS, word_states
from bertology.annotated.words import words_of
from bertology.errors import ParameterError, StoreError
from bertology.model.encoder import Encoder


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return planted.encoder(planted.random_model())


@pytest.mark.parametrize("pooling", POOLINGS)
def test_they_are_those_of_a_plain_pass(pooling: str) -> None:
    """Of the bundled model, whose words have several pieces."""
    mini, corpus = bt.load(device="cpu"), bt.load_corpus("grammar", limit=6)
    found = word_states(mini, corpus, pooling=pooling)
    assert found.missing == 0
    wanted: list[list[Any]] = [[] for _ in range(mini.shape.layers + 1)]
    for read in words_of(mini, corpus):
        inputs = mini.encode(read.example.text)
        with torch.no_grad():
            hidden = mini.model(**inputs.inputs, output_hidden_states=True).hidden_states
        for layer, of in enumerate(hidden):
            pieces = of[0].numpy()
            if pooling == "tokens":
                wanted[layer] += list(pieces)
                continue
            for word in range(len(read.alignment)):
                own = pieces[list(read.alignment.pieces_of(word))]
                chosen = {"first": own[0], "last": own[-1], "mean": own.mean(0)}[pooling]
                wanted[layer].append(chosen)
    for layer in range(mini.shape.layers + 1):
        assert np.allclose(found.layer(layer), np.stack(wanted[layer]), atol=0.02)
    assert len(found) == len(wanted[0]) == found.counts.sum() == len(found.examples)


def test_they_are_computed_once(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 4)
    corpus, seen = planted.corpus(10), []
    first = word_states(encoder, corpus, folder=tmp_path, advance=seen.append)
    assert sum(seen) == 10
    files = sorted(first.folder.iterdir())
    assert len(files) == len(first.block_sizes) == 3
    assert sum(f.stat().st_size for f in files) < 2.2 * len(first) * 4 * 16 + 3 * 400
    files[1].unlink()  # as if the run was stopped
    passes = []
    monkeypatch.setattr(encoder, "run", _counted(encoder.run, passes))
    again = word_states(encoder, corpus, folder=tmp_path)
    assert len(passes) == 1
    assert np.array_equal(again.layer(2), first.layer(2))
    assert np.array_equal(np.concatenate([again.block(b)[2] for b in range(3)]), again.layer(2))


@pytest.mark.parametrize("pooling", ["first", "last", "mean"])
def test_of_chosen_words_they_are_the_same_numbers(
    pooling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 4)
    mini, corpus = bt.load(device="cpu"), bt.load_corpus("grammar", limit=10)
    words = [[2, 0, 2], *([i % 3] for i in range(1, 4)), *[[]] * 4, [1], [0, 1]]
    every = word_states(mini, corpus, pooling=pooling, folder=tmp_path)
    some = word_states(mini, corpus, words=words, pooling=pooling, folder=tmp_path)
    assert some.folder != every.folder
    assert some.counts.tolist() == [2, 1, 1, 1, 0, 0, 0, 0, 1, 2]
    assert (some.missing, some.block_sizes) == (0, [5, 0, 3])
    starts = np.cumsum([0, *every.counts[:-1]])
    rows = [int(starts[at]) + word for at, own in enumerate(words) for word in sorted(set(own))]
    assert np.array_equal(np.flatnonzero(some.there), rows)
    for layer in range(mini.shape.layers + 1):
        assert np.array_equal(some.layer(layer), every.layer(layer)[rows])
    sorted(some.folder.iterdir())[2].unlink()  # as if the run was stopped
    passes: list[int] = []
    monkeypatch.setattr(mini, "run", _counted(mini.run, passes))
    again = word_states(mini, corpus, words=words, pooling=pooling, folder=tmp_path)
    assert (again.folder, len(passes)) == (some.folder, 1)
    assert np.array_equal(again.layer(1), some.layer(1))
    other = word_states(mini, corpus, words=[[0]] * 10, pooling=pooling, folder=tmp_path)
    assert other.folder not in (some.folder, every.folder)


def _counted(run: Any, passes: list[int]) -> Any:
    def counted(*given: Any, **how: Any) -> Any:
        passes.append(1)
        return run(*given, **how)

    return counted


def test_other_text_model_or_pooling_is_another_folder(encoder: Encoder, tmp_path: Path) -> None:
    other = planted.encoder(planted.random_model(seed=5))
    folders = [
        word_states(one, corpus, pooling=pooling, folder=tmp_path).folder
        for one, corpus, pooling in (
            (encoder, planted.corpus(4), "mean"),
            (other, planted.corpus(4), "mean"),
            (encoder, planted.corpus(4, seed=1), "mean"),
            (encoder, planted.corpus(4), "first"),
        )
    ]
    assert len(set(folders)) == 4


def test_words_that_are_cut_off_are_counted() -> None:
    model = planted.model()
    short = Encoder(model, tiny.tokenizer(planted.WORDS), name="short")
    short.tokenizer.model_max_length = 6  # two of them special
    corpus = planted.corpus(5)
    found = word_states(short, corpus)
    words = sum(len(e.get("words")) for e in corpus)
    assert (len(found), found.missing) == (20, words - 20)
    assert len(found.there) == words
    ends = [[0, len(e.get("words")) - 1] for e in corpus]
    found = word_states(short, corpus, words=ends)
    assert (len(found), found.missing) == (5, 5)  # the last words are cut off


def test_too_much_is_refused_before_any_work(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(module.ROOM, "0.000001")
    with pytest.raises(StoreError, match="on disk") as refused:
        word_states(encoder, planted.corpus(40), folder=tmp_path)
    assert f"{module.ROOM}=1 " in str(refused.value.hint)
    assert "--limit" in str(refused.value.hint)
    assert "remove" not in str(refused.value.hint)  # nothing is there yet
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(module.ROOM, "plenty")
    with pytest.raises(ParameterError, match="gigabytes"):
        word_states(encoder, planted.corpus(4), folder=tmp_path)
    with pytest.raises(ParameterError, match="pooling"):
        word_states(encoder, planted.corpus(4), pooling="middle")
    with pytest.raises(ParameterError, match="where some are chosen"):
        word_states(encoder, planted.corpus(4), words=[[0]] * 4, pooling="tokens")
    monkeypatch.setenv(module.ROOM, "0.00002")  # some words fit where all do not
    corpus = planted.corpus(40)
    with pytest.raises(StoreError, match="on disk"):
        word_states(encoder, corpus, folder=tmp_path)
    assert len(word_states(encoder, corpus, words=[[0]] * 40, folder=tmp_path)) == 40


def test_a_damaged_file_is_told(encoder: Encoder, tmp_path: Path) -> None:
    found = word_states(encoder, planted.corpus(4), folder=tmp_path)
    (file,) = found.folder.iterdir()
    file.write_bytes(b"no states")
    with pytest.raises(StoreError, match="cannot be read"):
        word_states(encoder, planted.corpus(4), folder=tmp_path)


def test_a_store_does_not_take_them_for_results(encoder: Encoder, tmp_path: Path) -> None:
    store = bt.Store(tmp_path)
    folder = store.folder_of_states()
    assert folder is not None
    word_states(encoder, planted.corpus(4), folder=folder)
    assert store.list() == []
    assert bt.Store("memory://nowhere").folder_of_states() is None
