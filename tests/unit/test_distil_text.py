"""Masked LMs that learn from masked LMs, on texts without a task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError
from bertology.train.distil.layers import LayerFollowing
from bertology.train.distil.relations import RelationFollowing
from bertology.train.distil.students import StudentShape, make_student
from bertology.train.distil.teacher import Teacher
from bertology.train.distil.text import Text, TextFollowing, distil_text
from bertology.train.finetune import finetune
from bertology.train.memory import Memory
from made_students import QUICK, TOKENS, batch, lesson_of, teacher_model, train_data
from made_tunings import KilledError, corpus, killed_at, same

TEXTS = Corpus.of_texts([e.text for e in train_data(16)])
ONCE = replace(QUICK, epochs=1)


def test_a_full_student_has_nothing_to_learn_of_its_teacher() -> None:
    teacher = Teacher(teacher_model("BertForMaskedLM"))
    student = make_student(teacher.model)
    way = TextFollowing(teacher, hard=0.0)
    lesson = lesson_of(_held(student))
    way.prepare(lesson)
    inputs = batch(student)
    loss = way.loss(lesson, lambda i, t: torch.zeros(()), inputs, torch.zeros(8))
    assert float(loss.detach()) == pytest.approx(0, abs=1e-5)


def _held(student: Any) -> Any:
    from bertology.train.distil.text import _Masked

    return _Masked(student)


def test_a_student_comes_nearer_and_a_stop_changes_nothing(tmp_path: Path) -> None:
    teacher = Teacher(teacher_model("BertForMaskedLM"))

    def learn(memory: Memory | None = None, **more: Any) -> tuple[dict[str, Any], list[float]]:
        student = make_student(teacher.model, StudentShape(layers=1))
        settings = replace(QUICK, epochs=6, learning_rate=5e-3)
        history = distil_text(
            teacher, student, TOKENS, TEXTS, settings=settings, memory=memory, **more
        )
        return dict(student.state_dict()), [epoch.loss for epoch in history.epochs]

    whole, losses = learn()
    assert min(losses[-2:]) < 0.9 * losses[0]
    memory = Memory(tmp_path / "run", "text")
    with pytest.raises(KilledError):
        learn(memory, progress=killed_at(7))
    assert memory.found() == 3
    assert same(learn(memory)[0], whole)


@pytest.mark.parametrize("kind", [LayerFollowing, RelationFollowing])
def test_a_teachers_inside_is_learnt_on_texts_too(kind: Any) -> None:
    teacher = Teacher(teacher_model("BertForMaskedLM").base_model)
    student = make_student(teacher_model("BertForMaskedLM"), StudentShape(layers=2), start="random")
    head = {n: w.clone() for n, w in student.cls.state_dict().items() if "decoder" not in n}
    settings = replace(QUICK, epochs=4, learning_rate=1e-2)
    history = distil_text(teacher, student, TOKENS, TEXTS, settings=settings, way=kind(teacher))
    losses = [epoch.loss for epoch in history.epochs]
    assert losses[-1] < 0.9 * losses[0]
    assert same(head, {n: w for n, w in student.cls.state_dict().items() if "decoder" not in n})


def test_a_stage_before_fine_tuning(tmp_path: Path) -> None:
    teacher = Teacher(teacher_model("BertForMaskedLM"))
    student = make_student(teacher_model(), StudentShape(layers=2))
    before = {n: w.clone() for n, w in student.state_dict().items()}
    lesson = lesson_of(student, folder=tmp_path)
    Text(teacher, epochs=1, rate=1e-3).prepare(lesson)
    after = dict(student.state_dict())
    moved = {n for n in after if not torch.equal(after[n], before[n])}
    assert "bert.encoder.layer.1.output.dense.weight" in moved
    assert not any(n.startswith(("classifier", "bert.pooler")) for n in moved)
    again = make_student(teacher_model(), StudentShape(layers=2))
    Text(teacher, epochs=1, rate=1e-3).prepare(lesson_of(again, folder=tmp_path))
    assert same(after, dict(again.state_dict()))
    settings = replace(ONCE, ways=(Text(teacher),))
    finetune(again, TOKENS, train_data(16), corpus(40, 50), settings=settings)


def test_what_cannot_be_compared_is_refused() -> None:
    teacher = Teacher(teacher_model("BertForMaskedLM"))
    narrow = make_student(teacher.model, StudentShape(hidden=8), start="random")
    with pytest.raises(CapabilityError, match="cosine"):
        distil_text(teacher, narrow, TOKENS, TEXTS, settings=ONCE)
    way = TextFollowing(teacher, cosine=0.0)
    distil_text(teacher, narrow, TOKENS, TEXTS, settings=ONCE, way=way)
    narrow.config.vocab_size += 1
    with pytest.raises(CapabilityError, match="pieces"):
        distil_text(teacher, narrow, TOKENS, TEXTS, settings=ONCE, way=way)
