"""Recorded work: the same numbers as plain work. Without a GPU, a recording is acted out."""

from __future__ import annotations

import contextlib
import gc
from dataclasses import replace

import pytest
import torch

from bertology.data.loading import load_corpus
from bertology.errors import ParameterError
from bertology.train import recorded
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.fresh import Architecture
from bertology.train.recorded import BEFORE, Recorded
from made_classifiers import fresh_classifier

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def acted(work, pool=None):
    """A recording on a CPU: replaying does the work again and writes where it was recorded."""
    found = work()
    return found, lambda: found.copy_(work()), pool or (0, 1)


class Doubler:
    """Counts how often it really works."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, x, y):
        self.done += 1
        return 2 * x if y is None else 2 * x + y


def test_plain_where_nothing_is_recorded():
    work = Doubler()
    double = Recorded(work, record=False)
    for i in range(10):
        assert torch.equal(double(torch.full((3,), float(i)), None), torch.full((3,), 2.0 * i))
    assert work.done == 10


def test_replayed_calls_see_new_inputs_and_work_once_each(monkeypatch):
    monkeypatch.setattr(recorded, "captured", acted)
    work = Doubler()
    double = Recorded(work, record=True)
    for i in range(10):
        found = double(torch.full((3,), float(i)), None)
        assert torch.equal(found, torch.full((3,), 2.0 * i)), i
    assert work.done == 10 + 1  # acting a recording out does the work once


def test_shapes_and_keys_have_recordings_of_their_own(monkeypatch):
    pools = []
    monkeypatch.setattr(
        recorded, "captured", lambda *given: pools.append(given[1]) or acted(*given)
    )
    double = Recorded(Doubler(), record=True)
    for _ in range(BEFORE + 2):
        double(torch.ones(3), None)
        double(torch.ones(3), torch.ones(3))
        double(torch.ones(3), None, key="other")
    assert pools == [None, (0, 1), (0, 1)]  # the first brings the memory of all


def test_what_is_forgotten_is_recorded_anew(monkeypatch):
    pools, emptied = [], []
    monkeypatch.setattr(
        recorded, "captured", lambda *given: pools.append(given[1]) or acted(*given)
    )
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    double = Recorded(Doubler(), record=True)
    double.forget()
    assert not emptied  # nothing was kept
    for _ in range(2):
        for i in range(BEFORE + 1):
            assert torch.equal(double(torch.full((3,), float(i)), None), torch.full((3,), 2.0 * i))
        double.forget()
    assert pools == [None, None]
    assert len(emptied) == 2


def test_nothing_is_collected_in_the_middle_of_a_recording(monkeypatch):
    """On a GPU, an older recording that is thrown away meanwhile would spoil the new one."""

    class Graph:
        ended = 0

        def capture_begin(self, pool) -> None: ...

        def capture_end(self) -> None:
            Graph.ended += 1

        def replay(self) -> None: ...

        def pool(self): ...

    class Stream:
        def wait_stream(self, other) -> None: ...

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(recorded, "_aside", lambda device: Stream())
    assert gc.isenabled()
    found, *_ = recorded.captured(gc.isenabled)
    assert not found
    with pytest.raises(RuntimeError):
        recorded.captured(lambda: (_ for _ in ()).throw(RuntimeError))
    assert gc.isenabled()
    assert Graph.ended == 2  # also the one that failed


def test_lengths_are_multiples_up_to_the_limit():
    from bertology.train.encoded import encode

    corpus = load_corpus("grammar-paraphrase", split="train", limit=12)
    _, tokenizer = fresh_classifier(
        corpus.texts, Architecture(hidden=8, heads=1), labels=("a", "b")
    )
    encoded = encode(corpus, tokenizer, 29)
    for i in range(12):
        inputs, _ = encoded.batch([i], torch.device("cpu"), multiple=16)
        plain, _ = encoded.batch([i], torch.device("cpu"))
        length = inputs["input_ids"].shape[1]
        assert length == min(29, -(-plain["input_ids"].shape[1] // 16) * 16)
        assert inputs["attention_mask"].sum() == plain["attention_mask"].sum()


def test_recording_needs_a_gpu():
    corpus = load_corpus("grammar-paraphrase", split="train", limit=8)
    model, tokenizer = fresh_classifier(
        corpus.texts, Architecture(hidden=8, heads=1), labels=("a", "b")
    )
    with pytest.raises(ParameterError, match="but on a GPU"):
        finetune(model, tokenizer, corpus, corpus, settings=FinetuneSettings(recorded=True))


@gpu
@pytest.mark.gpu
def test_recorded_fine_tuning_equals_plain():
    corpus = load_corpus("grammar-paraphrase", split="train", limit=400)
    size = Architecture(layers=2, heads=2, hidden=32, dropout=0.0)
    found = {}
    for kind in (False, True):
        settings = FinetuneSettings(epochs=2, learning_rate=1e-3, recorded=kind)
        model, tokenizer = fresh_classifier(corpus.texts, size, labels=corpus.task.labels)
        model.cuda()
        history = finetune(model, tokenizer, corpus, corpus[:64], settings=settings)
        found[kind] = [e.loss for e in history.epochs]
    assert found[True] == pytest.approx(found[False], rel=1e-3)


@gpu
@pytest.mark.gpu
@pytest.mark.filterwarnings("default")  # compiling warns of things that are not ours
def test_recorded_pre_training_equals_plain(tmp_path):
    from bertology.train.pretrain.config import Phase, Pretraining
    from bertology.train.pretrain.loop import pretrain
    from bertology.train.pretrain.shards import Dealing, prepare
    from bertology.train.pretrain.trial_text import documents_of

    corpus = load_corpus("grammar-paraphrase", split="train", limit=2000)
    _, tokenizer = fresh_classifier(
        corpus.texts, Architecture(hidden=8, heads=1), labels=("a", "b")
    )
    shards = prepare(tmp_path / "s", documents_of(corpus, 8), tokenizer, dealing=Dealing(0.1))
    size = Architecture(layers=2, heads=2, hidden=32, max_length=32, dropout=0.0)
    recipe = Pretraining(model=size, steps=40, batch_tokens=1024, phases=(Phase(32),))
    plain, quick = (
        pretrain(replace(recipe, compile=c), shards, tokenizer, device="cuda").log[-1]["losses"]
        for c in (False, True)
    )
    assert quick == pytest.approx(plain, rel=5e-3)
