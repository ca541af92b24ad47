"""Students that follow a teacher's inside: layers, relations, replaced modules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from bertology.errors import CapabilityError, ParameterError
from bertology.model.loading.pruning import prune_heads
from bertology.train.distil import staged
from bertology.train.distil.layers import LayerFollowing, Layers
from bertology.train.distil.patient import Patient
from bertology.train.distil.relations import RelationFollowing, Relations, relation_loss
from bertology.train.distil.seen import SCORES, STATES, VALUES, Needs, see
from bertology.train.distil.soft_labels import SoftLabels
from bertology.train.distil.students import StudentShape, make_student
from bertology.train.distil.teacher import Teacher
from bertology.train.distil.theseus import Replacing, Theseus, groups_of
from bertology.train.finetune import finetune
from bertology.train.memory import Memory
from bertology.train.optimizers import make_optimizer
from made_students import QUICK, TOKENS, asking, batch, lesson_of, teacher_model, train_data
from made_tunings import KilledError, corpus, same

DATA = train_data(), corpus(40, 50)


def loss_of(way: Any, student: Any) -> torch.Tensor:
    """Of the first eight examples."""
    lesson, inputs = lesson_of(student), batch(student)
    way.prepare(lesson)
    lesson.moment.begin(0, 1, list(range(8)))
    lesson.moment.beside = way.beside(lesson, inputs)
    loss: torch.Tensor = way.loss(lesson, None, inputs, torch.zeros(8).long())
    way.finish(lesson)
    return loss


@pytest.mark.parametrize("keep", ["never", "memory"])
def test_a_full_student_follows_already(keep: str) -> None:
    teacher = asking(keep)
    for way in (LayerFollowing(teacher), RelationFollowing(teacher), RelationFollowing(
        teacher, heads=2)):  # fmt: skip
        student = make_student(teacher.model)
        names = set(dict(student.named_parameters()))
        assert float(loss_of(way, student).detach()) == pytest.approx(0, abs=1e-9)
        assert set(dict(student.named_parameters())) == names  # the maps are gone
        other = make_student(teacher.model, start="random")
        assert float(loss_of(way, other).detach()) > 0.01


def test_kept_and_asked_losses_are_the_same() -> None:
    for kind in (LayerFollowing, RelationFollowing):
        kept, live = (
            loss_of(
                kind(asking(keep), heads=2),
                make_student(teacher_model(), StudentShape(layers=2, heads=2), start="random"),
            )
            for keep in ("memory", "never")
        )
        assert float(kept.detach()) == pytest.approx(float(live.detach()), rel=1e-5)


def test_losses_know_no_padding() -> None:
    torch.manual_seed(0)
    own, its = torch.randn(2, 1, 1, 2, 4, 4)
    real = torch.ones(1, 4).bool()
    wider = [torch.nn.functional.pad(x, (0, 3, 0, 3), value=9.0) for x in (own, its)]
    longer = torch.nn.functional.pad(real, (0, 3))
    plain = relation_loss(own, its, real)
    assert float(relation_loss(*wider, longer)) == pytest.approx(float(plain), rel=1e-6)
    one, other = own.softmax(-1), its.softmax(-1)
    by_hand = (other * (other / one).log()).sum(-1).mean()
    assert float(plain) == pytest.approx(float(by_hand), rel=1e-5)


def test_narrow_students_come_nearer_by_a_map_that_is_learnt() -> None:
    teacher = asking()
    shape = StudentShape(layers=2, hidden=8)

    def apart(student: Any) -> float:
        way = RelationFollowing(teacher, heads=2)
        return float(loss_of(way, student).detach())

    begin, tuned = (make_student(teacher.model, shape, start="random") for _ in range(2))
    way = Relations(teacher, epochs=8, rate=2e-2, heads=2)
    finetune(tuned, TOKENS, *DATA, settings=replace(QUICK, epochs=1, ways=(way,)))
    assert apart(tuned) < 0.7 * apart(begin)
    begin, tuned = (make_student(teacher.model, shape, start="random") for _ in range(2))
    history = finetune(
        tuned,
        TOKENS,
        *DATA,
        settings=replace(
            QUICK, epochs=4, learning_rate=1e-2, ways=(LayerFollowing(teacher, heads=2),)
        ),
    )
    losses = [epoch.loss for epoch in history.epochs]
    assert losses[-1] < 0.8 * losses[0]
    assert torch.equal(tuned.classifier.weight, begin.classifier.weight)  # no answer was learnt


def test_two_stages_go_on_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = teacher_model()
    way = Layers(Teacher(model), epochs=2, hard=0.0, temperature=1.0)

    def learn(memory: Memory | None) -> dict[str, torch.Tensor]:
        student = make_student(model, StudentShape(layers=2))
        finetune(student, TOKENS, *DATA, settings=replace(QUICK, ways=(way,)), memory=memory)
        return dict(student.state_dict())

    whole = learn(None)
    memory = Memory(tmp_path / "run", "two stages")
    keep, kept = Memory.keep, []

    def dies(self: Memory, course: Any) -> None:
        keep(self, course)
        kept.append(self.folder.name)
        if len(kept) in (1, 4):  # after an epoch of the first stage, and of the second
            raise KilledError

    monkeypatch.setattr(Memory, "keep", dies)
    for _ in range(2):
        with pytest.raises(KilledError):
            learn(memory)
    assert same(learn(memory), whole)
    assert kept == ["layers", "layers", "run", "run"]


def test_what_cannot_be_compared_is_refused() -> None:
    teacher = asking("never")
    fewer = make_student(teacher.model, StudentShape(heads=2), start="random")
    for way in (LayerFollowing(teacher), RelationFollowing(teacher)):
        with pytest.raises(CapabilityError, match="heads"):
            way.prepare(lesson_of(fewer))
    with pytest.raises(CapabilityError, match="cut into 5"):
        RelationFollowing(teacher, heads=5).prepare(lesson_of(fewer))
    with pytest.raises(ParameterError, match="at most 4"):
        RelationFollowing(teacher, layer=5).prepare(lesson_of(teacher.model))
    deeper = make_student(teacher.model, StudentShape(layers=6), start="random")
    with pytest.raises(CapabilityError, match="6 layers"):
        LayerFollowing(teacher).prepare(lesson_of(deeper))


def test_what_other_ways_freeze_is_not_what_helps() -> None:
    teacher = asking("never")
    student = make_student(teacher.model)
    lesson = lesson_of(student)
    LayerFollowing(teacher).prepare(lesson)
    lesson.train_only(lambda name: name.endswith("bias"))
    learning = {n.split(".")[0] for n, p in student.named_parameters()
                if p.requires_grad and not n.endswith("bias")}  # fmt: skip
    assert learning == {"training_helper"}


# Module replacing --------------------------------------------------------------------------------


def test_groups() -> None:
    assert groups_of(2, 4) == [range(2), range(2, 4)]
    assert groups_of(2, 3) == [range(1), range(1, 3)]
    with pytest.raises(CapabilityError, match="fewer"):
        groups_of(3, 2)


def test_replaced_layers_are_the_teachers_or_the_students() -> None:
    """With probability 0 the student computes what the teacher does, with 1 what it does itself."""
    teacher = asking("never")
    model, inputs = teacher.model, batch(teacher.model)
    needs = Needs(states=(2,), scores=())
    for start, same_as in ((0.0, "teacher"), (1.0, "student")):
        student = make_student(model, StudentShape(layers=2), which="first")
        alone = make_student(model, StudentShape(layers=2), which="first")
        for drop in [m for m in student.modules() if isinstance(m, torch.nn.Dropout)]:
            drop.p = 0.0
        student.config.attention_probs_dropout_prob = 0.0
        for module in student.modules():
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0
        lesson = lesson_of(student)
        way = Replacing(teacher, start=start)
        way.prepare(lesson)
        student.train()
        own = see(student, inputs, needs)[STATES]
        wanted = (
            see(model, inputs, Needs(states=(4,)))[STATES]
            if same_as == "teacher"
            else see(alone, inputs, needs)[STATES]
        )
        assert torch.allclose(own, wanted, atol=1e-6)
        student.eval()  # answers are the student's own
        assert torch.allclose(
            see(student, inputs, needs)[STATES], see(alone, inputs, needs)[STATES], atol=1e-6
        )
        learning = {n for n, p in student.named_parameters() if p.requires_grad}
        assert learning
        assert all(".layer." in n for n in learning)
        way.finish(lesson)
        assert not any("forward" in vars(m) for m in student.modules())


def test_the_probability_rises_in_a_line() -> None:
    way = Replacing(asking("never"), start=0.2, risen=0.5)
    lesson = lesson_of(way.teacher.model)
    found = []
    for done in (0, 25, 50, 99):
        lesson.moment.begin(done, 100, ())
        found.append(way.probability(lesson))
    assert found == pytest.approx([0.2, 0.6, 1.0, 1.0])


def test_successors_are_trained_and_then_all_of_the_student() -> None:
    teacher = asking("never")
    before = {n: w.clone() for n, w in teacher.model.state_dict().items()}
    student = make_student(teacher.model, StudentShape(layers=2), which="first")
    at_first = {n: w.clone() for n, w in student.state_dict().items()}
    way = Theseus(teacher, epochs=1)
    finetune(student, TOKENS, *DATA, settings=replace(QUICK, epochs=1, ways=(way,)))
    assert same(before, dict(teacher.model.state_dict()))  # the teacher is as it was
    after = dict(student.state_dict())
    moved = {n for n in after if not torch.equal(after[n], at_first[n])}
    assert {"classifier.weight", "bert.encoder.layer.0.output.dense.weight"} <= moved
    narrow = make_student(teacher.model, StudentShape(hidden=8), start="slices")
    with pytest.raises(CapabilityError, match="one width"):
        finetune(narrow, TOKENS, *DATA, settings=replace(QUICK, ways=(way,)))


def outside(model: Any) -> dict[str, torch.Tensor]:
    return {n: w.clone() for n, w in model.state_dict().items() if ".layer." not in n}


def test_only_layers_of_a_student_are_random_between_those_of_a_teacher() -> None:
    """Else the teacher's layers would read random embeddings, and their answers random weights."""
    teacher = asking("never")
    student = make_student(teacher.model, StudentShape(layers=2), start="random")
    first = student.bert.encoder.layer[0].output.dense.weight.clone()
    assert not same(outside(student), outside(teacher.model))
    way = Replacing(teacher, start=0.0)
    way.prepare(lesson_of(student))
    assert same(outside(student), outside(teacher.model))
    assert torch.equal(student.bert.encoder.layer[0].output.dense.weight, first)
    # As long as no new layer computes, the answers are the teacher's.
    student.train()
    for module in student.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    teacher.model.eval()
    inputs = batch(student)
    with torch.no_grad():
        answers = student(**inputs).logits, teacher.model(**inputs).logits
    assert torch.allclose(*answers, atol=1e-6)
    way.finish(lesson_of(student))


def test_the_second_stage_begins_with_the_teachers_classifier(tmp_path: Path) -> None:
    teacher = asking("never")
    way = Theseus(teacher, epochs=1)
    for _ in range(2):  # made, and then taken from its file
        student = make_student(teacher.model, StudentShape(layers=2), start="random")
        way.prepare(lesson_of(student, folder=tmp_path))
        assert same(outside(student), outside(teacher.model))
        assert all(weight.requires_grad for weight in student.parameters())


def test_layers_between_other_vocabularies_or_labels_are_refused() -> None:
    teacher = asking("never")
    tokens = tiny.tokenizer(["owl", "cat"])
    student = make_student(teacher.model, tokenizer=tokens, teacher_tokenizer=TOKENS)
    with pytest.raises(CapabilityError, match=r"word_embeddings\.weight is not as large"):
        Replacing(teacher).prepare(lesson_of(student))


# Recorded steps ----------------------------------------------------------------------------------


def _acted(work: Any, pool: Any) -> Any:
    """A recording on a CPU: replaying does the work, on the tensors that it was made with."""
    found = torch.zeros(())
    return found, lambda: found.copy_(work()), pool


@pytest.mark.parametrize("keep", ["never", "memory"])
@pytest.mark.parametrize("kind", [SoftLabels, Patient, LayerFollowing, RelationFollowing])
def test_recorded_steps_see_the_answers_to_their_own_batch(
    kind: Any, keep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losses(*, recorded: bool) -> list[float]:
        teacher = asking(keep)
        student = make_student(teacher.model, StudentShape(layers=2))
        for module in student.modules():  # draws would be others
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        settings = replace(QUICK, recorded=recorded, ways=(kind(teacher),))
        history = finetune(student, TOKENS, *DATA, settings=settings)
        return [epoch.loss for epoch in history.epochs]

    plain = losses(recorded=False)
    monkeypatch.setattr("bertology.train.recorded.captured", _acted)
    monkeypatch.setattr("bertology.train.recorded.BEFORE", 1)
    monkeypatch.setattr("bertology.train.finetune._check_device", lambda *given: None)
    own = make_optimizer
    monkeypatch.setattr(
        "bertology.train.finetune.make_optimizer",
        lambda *given, capturable, **more: own(*given, **more),
    )
    assert losses(recorded=True) == pytest.approx(plain, rel=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("keep", ["never", "memory"])
@pytest.mark.parametrize("kind", [SoftLabels, Patient, LayerFollowing, RelationFollowing])
def test_steps_that_are_recorded_on_a_gpu_are_those_that_are_not(kind: Any, keep: str) -> None:
    def losses(*, recorded: bool) -> list[float]:
        teacher = asking(keep, teacher_model().cuda())
        student = make_student(teacher.model, StudentShape(layers=2))
        for module in student.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        settings = replace(QUICK, epochs=4, recorded=recorded, ways=(kind(teacher),))
        history = finetune(student, TOKENS, *DATA, settings=settings)
        return [epoch.loss for epoch in history.epochs]

    assert losses(recorded=True) == pytest.approx(losses(recorded=False), rel=0.1)


def pruned(*heads: tuple[int, int]) -> Any:
    return prune_heads(teacher_model(), heads)


def test_heads_that_are_left_are_read_whole() -> None:
    model, whole = pruned((3, 0), (3, 2)), teacher_model()
    inputs, last = batch(model), Needs(scores=(4,), values=(4,))
    with torch.no_grad():
        found, there = see(model, inputs, last), see(whole, inputs, last)
    for name in (SCORES, VALUES):
        assert torch.allclose(found[name], there[name][:, :, [1, 3]], atol=1e-5), name


def test_heads_that_are_gone_are_not_compared() -> None:
    teacher = asking("never")
    for kind in (LayerFollowing, RelationFollowing):
        with pytest.raises(CapabilityError, match=r"2 heads in layer 4 of the student.*\n.*parts"):
            kind(teacher).prepare(lesson_of(pruned((3, 0), (3, 2))))
        with pytest.raises(CapabilityError, match="Layer 4 of the student has no heads left"):
            kind(teacher, heads=2).prepare(lesson_of(pruned(*((3, h) for h in range(4)))))
        with pytest.raises(CapabilityError, match=r"width 4 .layer 4 of the student.*8 parts"):
            kind(teacher, heads=8).prepare(lesson_of(pruned((3, 0), (3, 1), (3, 2))))
        for student in (pruned((3, 0), (3, 2)), pruned((0, 1), (3, 0), (3, 1), (3, 2))):
            assert torch.isfinite(loss_of(kind(teacher, heads=4), student))
    # Of relations, only the last layer counts.
    RelationFollowing(teacher).prepare(lesson_of(pruned((0, 1))))
    with pytest.raises(CapabilityError, match="heads in layer"):
        LayerFollowing(teacher).prepare(lesson_of(pruned((0, 1))))


def test_a_stage_is_the_same_on_a_gpu_and_on_a_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are recorded where that is quicker, of models with no forms of their own."""
    asked: list[tuple[bool, str]] = []

    def noted(*given: Any, settings: Any, memory: Memory, **more: Any) -> None:
        asked.append((settings.recorded, memory.identity))

    monkeypatch.setattr(staged, "finetune", noted)
    student = make_student(teacher_model(), StudentShape(layers=1))
    way, lesson = Relations(asking("never")), lesson_of(student, folder=tmp_path)
    for gains in (True, False, True):
        monkeypatch.setattr(staged, "gains_by_recording", lambda model, gains=gains: gains)
        staged.learn_first(lesson, way, way.first(), epochs=1, rate=0)
        student.config.bertology_pruned_mlps = [0] if len(asked) == 2 else None
    assert [recorded for recorded, _ in asked] == [True, False, False]
    assert len({identity for _, identity in asked}) == 1
