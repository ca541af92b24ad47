"""Other students: with a small vocabulary, without a transformer, and with more texts to learn."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, ParameterError
from bertology.train.compress.students import masked_copies
from bertology.train.distil.small_vocabulary import (
    SmallVocabulary,
    dual_teacher,
    small_student,
    small_tokenizer,
)
from bertology.train.distil.soft_labels import SoftLabels
from bertology.train.distil.students import StudentShape
from bertology.train.distil.teacher import Teacher
from bertology.train.encoded import encode
from bertology.train.evaluate import predict
from bertology.train.finetune import finetune
from made_students import QUICK, TOKENS, batch, lesson_of, teacher_model, train_data
from made_tunings import YES_NO, corpus, same

ONCE = replace(QUICK, epochs=1)


# A small vocabulary ------------------------------------------------------------------------------


def test_words_are_cut_by_either_vocabulary() -> None:
    data = train_data()
    small = small_tokenizer(data, TOKENS, pieces=40)
    assert small("CAT")["input_ids"] == small("cat")["input_ids"]  # as the other one
    model, own = teacher_model(), len(TOKENS)
    rows = encode(data, TOKENS, 32)
    plain, _ = rows.batch([3, 11, 0], torch.device("cpu"))
    for share in (0.0, 1.0):
        way, lesson = SmallVocabulary(small, own, share=share), lesson_of(model, data)
        way.prepare(lesson)
        lesson.moment.begin(0, 1, [3, 11, 0])
        found = way.inputs(lesson, plain)
        ids = found["input_ids"]
        if share == 0:
            assert same(found, plain)
            continue
        for row, i in zip(ids, (3, 11, 0), strict=True):
            inner = [int(x) - own for x in row if x >= own]
            assert inner == small(data[i].text, add_special_tokens=False)["input_ids"]
        marks = ids[found["attention_mask"].bool() & (ids < own)]
        assert set(marks.tolist()) == {2, 3}
        way.finish(lesson)
        assert not lesson.kept


def test_rows_are_cut_to_the_longest_that_is_allowed() -> None:
    pair = Corpus("pair", [Example("0", "cat dog owl fox", "hen elk", label=0)],
                  frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL}), YES_NO)  # fmt: skip
    small = small_tokenizer(train_data(), TOKENS, pieces=40)
    way = SmallVocabulary(small, len(TOKENS), share=0.0)
    lesson = lesson_of(teacher_model(), pair, max_length=7)
    way.prepare(lesson)
    lesson.moment.begin(0, 1, [0])
    plain, _ = encode(pair, TOKENS, 7).batch([0], torch.device("cpu"))
    assert same(way.inputs(lesson, plain), plain)


def test_a_dual_teacher_reads_both_and_a_small_student_begins_with_its_rows() -> None:
    data, unseen = train_data(), corpus(40, 50)
    small = small_tokenizer(data, TOKENS, pieces=40)
    model, own = teacher_model(), len(TOKENS)
    before = {n: w.clone() for n, w in model.state_dict().items()}
    dual = dual_teacher(model, TOKENS, small, data, unseen, settings=ONCE)
    assert same(before, dict(model.state_dict()))  # it is a copy
    table = dual.get_input_embeddings().weight
    assert len(table) == own + len(small) == dual.config.vocab_size
    student = small_student(dual, TOKENS, small, StudentShape(layers=2))
    rows = student.get_input_embeddings().weight
    piece = small.get_vocab()["c"]
    assert torch.equal(rows[piece], table[own + piece])
    assert torch.equal(rows[small.get_vocab()["[CLS]"]], table[TOKENS.get_vocab()["[CLS]"]])
    assert torch.equal(
        student.bert.encoder.layer[1].output.dense.weight,
        dual.bert.encoder.layer[3].output.dense.weight,
    )
    # It is taught by a teacher that reads other tokens.
    student = small_student(dual, TOKENS, small, StudentShape(layers=1), start="random")
    way = SoftLabels(Teacher(dual, TOKENS), hard=0.0)
    settings = replace(QUICK, epochs=6, learning_rate=1e-2, ways=(way,))
    history = finetune(student, small, data, unseen, settings=settings)
    assert history.epochs[-1].loss < history.epochs[0].loss


def test_all_small_pieces_begin_in_the_teachers_space() -> None:
    """Before any training, a word whose small piece is the whole word is read as before."""
    small = small_tokenizer(train_data(), TOKENS, pieces=60)
    shared = [w for w in ("cat", "dog", "owl") if w in small.get_vocab()]
    assert shared
    model = teacher_model()
    from bertology.train.distil.small_vocabulary import _add_rows

    inputs = batch(model)
    with torch.no_grad():
        wanted = model(**inputs).logits
        own = len(TOKENS)
        _add_rows(model, TOKENS, small)
        ids = inputs["input_ids"].clone()
        for word in shared:
            ids[ids == TOKENS.get_vocab()[word]] = own + small.get_vocab()[word]
        assert torch.equal(model(**{**inputs, "input_ids": ids}).logits, wanted)


def test_tokenizers_that_do_not_cut_words_are_refused() -> None:
    class Joins:
        backend_tokenizer = TOKENS.backend_tokenizer
        model_max_length = 32

        def __call__(self, text: str, **more: Any) -> dict[str, list[int]]:
            return {"input_ids": [len(text)]}

    way = SmallVocabulary(TOKENS, 11)
    with pytest.raises(CapabilityError, match="by themselves"):
        way.prepare(replace(lesson_of(teacher_model()), tokenizer=Joins()))


# Without a transformer ---------------------------------------------------------------------------


class Bilstm(nn.Module):
    """A classifier of no family: what any model must have to be taught."""

    base_model_prefix = ""

    def __init__(self, vectors: Tensor, size: int = 12) -> None:
        super().__init__()
        self.config: Any = SimpleNamespace(model_type="some-bilstm", num_labels=2, id2label={})
        self.vectors = nn.Embedding.from_pretrained(vectors.clone(), freeze=False)
        self.lstm = nn.LSTM(vectors.shape[1], size, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * size, 2)

    @property
    def base_model(self) -> nn.Module:
        return self

    @property
    def device(self) -> torch.device:
        return self.out.weight.device

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **more: Tensor) -> Any:
        states, _ = self.lstm(self.vectors(input_ids))
        inside = attention_mask[..., None]
        return SimpleNamespace(logits=self.out((states * inside).amax(1)))


def test_a_bilstm_learns_a_teachers_logits() -> None:
    """Planted: the teacher says whether there is a dog; labels, whether there is a cat."""
    data, unseen = corpus(0, 60), corpus(60, 90)
    dogs = replace(data, examples=[replace(e, label=int("dog" in e.text)) for e in data])
    model = teacher_model(layers=1)
    finetune(model, TOKENS, dogs, unseen, settings=replace(QUICK, epochs=10, learning_rate=5e-3))
    torch.manual_seed(0)
    student: Any = Bilstm(model.get_input_embeddings().weight.detach())
    way = SoftLabels(Teacher(model), hard=0.0, match="logits")
    more = masked_copies(data, copies=1, mask=TOKENS.mask_token)
    settings = replace(QUICK, epochs=8, learning_rate=2e-2, ways=(way,))
    history = finetune(student, TOKENS, more, unseen, settings=settings)
    assert history.epochs[-1].loss < 0.2 * history.epochs[0].loss
    rows = encode(unseen, TOKENS, 32)
    its, own = (predict(m, rows, YES_NO) for m in (model, student))
    assert (own == its).mean() > 0.9


# More texts --------------------------------------------------------------------------------------


def test_copies_hide_words_and_are_there_once() -> None:
    data = train_data()
    found = masked_copies(data, copies=5, share=0.4, runs=0.0, seed=1)
    assert list(found[: len(data)]) == list(data)
    assert len({e.texts for e in found}) == len({e.texts for e in data}) + len(found) - len(data)
    by_id = {e.id: e for e in data}
    for example in found[len(data) :]:
        source = by_id[example.id.partition("+")[0]]
        words, before = example.text.split(), source.text.split()
        assert len(words) == len(before)
        assert all(w in (b, "[MASK]") for w, b in zip(words, before, strict=True))
        assert example.label == source.label
    again = masked_copies(data, copies=5, share=0.4, runs=0.0, seed=1)
    assert again.fingerprint == found.fingerprint
    assert masked_copies(data, copies=0).fingerprint == data.fingerprint
    short = masked_copies(data, copies=3, share=0.0, runs=1.0)
    assert all(e.text in by_id[e.id.partition("+")[0]].text for e in short[len(data) :])


def test_copies_of_pairs_change_one_text_or_both() -> None:
    pair = Corpus("pair", [Example("0", "a b c d", "e f g h", label=1)],
                  frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL}), YES_NO)  # fmt: skip
    found = masked_copies(pair, copies=3, share=1.0, runs=0.0)
    hidden = "[MASK] [MASK] [MASK] [MASK]"
    assert [e.texts for e in found[1:]] == [
        (hidden, "e f g h"),
        ("a b c d", hidden),
        (hidden, hidden),
    ]
    with pytest.raises(ParameterError, match="share"):
        masked_copies(pair, share=2.0)
