"""Students begin as said, kept answers are those of a pass, soft labels are as in theory."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import tiny
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.errors import CapabilityError, ModelError, ParameterError, StoreError
from bertology.train.distil import teacher as teacher_module
from bertology.train.distil.patient import Patient, followed_layers
from bertology.train.distil.seen import FIRST, LOGITS, SCORES, STATES, VALUES, Needs, see
from bertology.train.distil.soft_labels import SoftLabels, soft_loss
from bertology.train.distil.students import StudentShape, chosen_layers, make_student
from bertology.train.distil.teacher import Teacher
from bertology.train.encoded import encode
from bertology.train.evaluate import predict
from bertology.train.finetune import finetune
from bertology.train.memory import Memory
from made_students import QUICK, TOKENS, asking, batch, lesson_of, teacher_model, train_data
from made_tunings import LENGTH, YES_NO, KilledError, corpus, killed_at, same

ALL = Needs(logits=True, first=(1, 3), states=(0, 2, 4), scores=(2, 4), values=(4,))


# Students ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertForMaskedLM"])
def test_a_full_student_is_the_teacher_to_the_bit(kind: str) -> None:
    teacher = teacher_model(kind)
    student = make_student(teacher, seed=3)
    assert same(dict(teacher.state_dict()), dict(student.state_dict()))
    inputs = batch(teacher)
    with torch.no_grad():
        assert torch.equal(student(**inputs).logits, teacher(**inputs).logits)
    # … and is not the teacher itself.
    with torch.no_grad():
        next(student.parameters()).add_(1.0)
    assert not same(dict(teacher.state_dict()), dict(student.state_dict()))


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "distilbert"])
def test_layers_are_taken_in_every_family_that_has_them_apart(family: str) -> None:
    teacher = tiny.model(family, "classification")
    student = make_student(teacher, StudentShape(layers=2), which="1+3")
    inputs = tiny.inputs()
    deep = {"output_hidden_states": True}
    with torch.no_grad():
        own, its = student(**inputs, **deep), teacher(**inputs, **deep)
    assert torch.equal(own.hidden_states[1], its.hidden_states[1])
    assert len(own.hidden_states) == 3
    for start in ("slices", "random"):
        small = make_student(teacher, StudentShape(2, 2, 12, 20), start=start)
        assert torch.isfinite(small(**inputs).logits).all()


def test_layers_by_pattern() -> None:
    assert chosen_layers("even", 6, 12) == (2, 4, 6, 8, 10, 12)
    assert chosen_layers("even", 2, 3) == (1, 3)
    assert chosen_layers("first", 2, 4) == (1, 2)
    assert chosen_layers("last", 2, 4) == (3, 4)
    assert chosen_layers("1+4", 2, 4) == (1, 4)
    for wrong in ("1+5", "1", "odd"):
        with pytest.raises(ParameterError, match="which"):
            chosen_layers(wrong, 2, 4)


def test_slices_are_the_first_entries_of_the_first_heads() -> None:
    teacher = teacher_model()
    student = make_student(
        teacher, StudentShape(layers=2, heads=2, hidden=6, intermediate=5), start="slices"
    )
    own, its = student.bert.encoder.layer[0], teacher.bert.encoder.layer[1]
    entries = [0, 1, 2, 4, 5, 6]  # three of four of each head
    query = its.attention.self.query.weight[entries][:, :6]
    assert torch.equal(own.attention.self.query.weight, query)
    output = its.attention.output.dense.weight[:6][:, entries]
    assert torch.equal(own.attention.output.dense.weight, output)
    assert torch.equal(own.intermediate.dense.weight, its.intermediate.dense.weight[:5, :6])
    assert torch.equal(own.output.LayerNorm.weight, its.output.LayerNorm.weight[:6])


def test_another_vocabulary_takes_the_pieces_it_shares() -> None:
    teacher = teacher_model()
    tokens = tiny.tokenizer(["owl", "cat", "bee"])
    student = make_student(teacher, tokenizer=tokens, teacher_tokenizer=TOKENS, seed=1)
    own, its = (m.get_input_embeddings().weight for m in (student, teacher))
    assert own.shape == (len(tokens), 16)
    for piece in ("[CLS]", "owl", "cat"):
        one, other = tokens.get_vocab()[piece], TOKENS.get_vocab()[piece]
        assert torch.equal(own[one], its[other])
    assert not any(torch.equal(own[tokens.get_vocab()["bee"]], row) for row in its)


def test_random_students_depend_on_the_seed_alone() -> None:
    teacher = teacher_model()
    shape = StudentShape(layers=1, hidden=8)
    one, again, other = (
        make_student(teacher, shape, start="random", seed=seed) for seed in (1, 1, 2)
    )
    assert same(dict(one.state_dict()), dict(again.state_dict()))
    assert not same(dict(one.state_dict()), dict(other.state_dict()))
    assert (one.config.num_attention_heads, one.config.intermediate_size) == (2, 12)


@pytest.mark.parametrize(
    ("shape", "start", "told"),
    [
        (StudentShape(hidden=8), "layers", "slices or random"),
        (StudentShape(layers=5), "layers", "random"),
        (StudentShape(heads=1), "slices", "random"),
        (StudentShape(hidden=10, heads=4), "random", "multiple"),
        (StudentShape(), "best", "one of"),
    ],
)
def test_impossible_students_are_refused(shape: StudentShape, start: str, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        make_student(teacher_model(), shape, start=start)


def test_shared_layers_have_no_students() -> None:
    with pytest.raises(CapabilityError, match="student"):
        make_student(tiny.model("albert", "classification"))


# Teachers ----------------------------------------------------------------------------------------


def test_what_is_seen_is_what_the_model_computes() -> None:
    model = teacher_model()
    model.set_attn_implementation("eager")
    inputs = batch(model)
    with torch.no_grad():
        out = model(**inputs, output_hidden_states=True, output_attentions=True)
        found = see(model, inputs, ALL)
    assert torch.equal(found[LOGITS], out.logits)
    assert torch.equal(found[FIRST][:, 1], out.hidden_states[3][:, 0])
    assert torch.equal(found[STATES][:, 2], out.hidden_states[4])
    real = inputs["attention_mask"].bool()[:, None, None]
    pattern = found[SCORES][:, 0].masked_fill(~real, -torch.inf).softmax(-1)
    assert torch.allclose(pattern, out.attentions[1], atol=1e-6)
    assert found[VALUES].shape == found[SCORES][:, :1].shape


@pytest.mark.parametrize("keep", ["memory", "disk"])
def test_kept_answers_are_those_of_a_pass(keep: str, tmp_path: Path) -> None:
    model, data = teacher_model(), train_data()
    kept = Teacher(model, keep=keep, folder=tmp_path).ready(lesson_of(model, data), ALL)
    live = Teacher(model, keep="never").ready(lesson_of(model, data), ALL)
    assert kept.kept is not None
    assert live.kept is None
    chosen = [17, 3, 8, 0]
    rows = encode(data, TOKENS, 32)
    for multiple in (1, 16):  # however they are padded
        inputs, _ = rows.batch(chosen, torch.device("cpu"), multiple=multiple)
        real = inputs["attention_mask"].bool()
        one, other = kept.answers(chosen, inputs), live.answers(chosen, inputs)
        assert one.keys() == other.keys() == {LOGITS, FIRST, STATES, SCORES, VALUES}
        for name in one:
            shown = one[name].shape
            assert shown == other[name].shape
            inside = torch.ones(shown, dtype=torch.bool)
            if name == STATES:
                inside = real[:, None, :, None].expand(shown)
            if name in (SCORES, VALUES):
                inside = (real[:, :, None] & real[:, None])[:, None, None].expand(shown)
            assert torch.allclose(one[name][inside], other[name][inside], atol=1e-5), name
            assert not one[name][~inside].any()


def test_answers_are_kept_where_that_pays() -> None:
    model = teacher_model()
    student = make_student(model, StudentShape(layers=2))
    teacher = Teacher(model)
    needs = Needs(logits=True)
    assert teacher.ready(lesson_of(student, epochs=1), needs).kept is None
    first = teacher.ready(lesson_of(student, epochs=2), needs)
    passes = teacher.asked
    assert first.kept is not None
    # The next student of the same teacher asks nothing.
    assert teacher.ready(lesson_of(student, epochs=2), needs).kept is first.kept
    assert teacher.asked == passes
    small = Teacher(model, memory=first.kept.layout.bytes - 1)
    assert small.ready(lesson_of(student, epochs=2), needs).kept is None


def test_answers_on_disk_go_on_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = teacher_model()
    monkeypatch.setattr("bertology.train.distil.teacher._TOKENS_PER_BATCH", {"cpu": 16})
    monkeypatch.setattr(teacher_module, "_NOTED_EVERY", 2)
    whole = Teacher(model, keep="memory")
    wanted = whole.ready(lesson_of(model), ALL).kept
    fatal = Teacher(model, keep="disk", folder=tmp_path)
    real, count = teacher_module.Kept.put, iter(range(100))

    def dies(self: Any, *given: Any) -> None:
        if next(count) == 5:
            raise KilledError
        real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(teacher_module.Kept, "put", dies)
        with pytest.raises(KilledError):
            fatal.ready(lesson_of(model), ALL)
    again = Teacher(model, keep="disk", folder=tmp_path)
    found = again.ready(lesson_of(model), ALL).kept
    assert wanted is not None
    assert found is not None
    assert again.asked == whole.asked - 4  # four batches were noted
    assert same(dict(wanted.arrays), dict(found.arrays))
    # A third finds all of it.
    third = Teacher(model, keep="disk", folder=tmp_path)
    third.ready(lesson_of(model), ALL)
    assert third.asked == 1  # how large answers are
    # What is damaged is said to be.
    place = next(tmp_path.glob("teacher-*"))
    (place / "logits.npy").write_bytes((place / "first.npy").read_bytes())
    with pytest.raises(StoreError, match="damaged"):
        Teacher(model, keep="disk", folder=tmp_path).ready(lesson_of(model), ALL)


def test_teachers_that_cannot_answer_are_refused() -> None:
    model = teacher_model()
    with pytest.raises(ParameterError, match="keep"):
        Teacher(model, keep="always")
    with pytest.raises(ParameterError, match="folder"):
        Teacher(model, keep="disk").ready(lesson_of(model), ALL)
    alike = Teacher(model, copy.deepcopy(TOKENS), keep="never")  # another object, the same tokens
    assert not alike.ready(lesson_of(model), ALL).own_rows
    with pytest.raises(CapabilityError, match="different tokens"):
        Teacher(model, tiny.tokenizer(["cat"])).ready(lesson_of(model), ALL)
    three = copy.deepcopy(model)
    three.config.num_labels = 3
    with pytest.raises(ModelError, match="3 outputs"):
        SoftLabels(Teacher(three)).prepare(lesson_of(model))


# Soft labels -------------------------------------------------------------------------------------


def test_temperatures_have_their_limits() -> None:
    torch.manual_seed(0)
    own, its = torch.randn(2, 5, 3).double()
    assert float(soft_loss(own, own, 2.0, match="probabilities")) == 0
    # High: the squared difference of the logits, without what all classes share (Hinton et al.).
    apart = own - its
    apart = apart - apart.mean(1, keepdim=True)
    far = apart.square().sum(1).mean() / (2 * 3)
    assert float(soft_loss(own, its, 1e4, match="probabilities")) == pytest.approx(float(far), 1e-3)
    # At 1 with a sure teacher: the cross-entropy of its answer.
    sure = soft_loss(own, 1e4 * its, 1.0, match="probabilities")
    plain = functional.cross_entropy(own, its.argmax(1))
    assert float(sure) == pytest.approx(float(plain), 1e-6)


def test_all_labels_are_plain_fine_tuning_to_the_bit() -> None:
    teacher = asking()
    plain, soft = (make_student(teacher.model, StudentShape(layers=1)) for _ in range(2))
    data = train_data(), corpus(40, 50)
    finetune(plain, TOKENS, *data, settings=QUICK)
    finetune(soft, TOKENS, *data, settings=replace(QUICK, ways=(SoftLabels(teacher, hard=1.0),)))
    assert same(dict(plain.state_dict()), dict(soft.state_dict()))


def test_a_full_student_has_nothing_to_learn() -> None:
    teacher = asking("never")
    for way in (SoftLabels(teacher, hard=0.0), Patient(teacher, hard=0.0, weight=3.0)):
        student = make_student(teacher.model)
        lesson, inputs = lesson_of(student), batch(student)
        way.prepare(lesson)
        lesson.moment.begin(0, 1, list(range(8)))
        lesson.moment.beside = way.beside(lesson, inputs)
        loss = way.loss(lesson, lambda i, t: torch.zeros(()), inputs, torch.zeros(8).long())
        assert float(loss.detach()) == pytest.approx(0, abs=1e-9)
        loss.backward()
        assert all(p.grad is None or p.grad.abs().max() < 1e-6 for p in student.parameters())
        way.finish(lesson)
        assert not lesson.kept


def test_a_student_learns_the_teacher_and_not_the_labels() -> None:
    """The teacher is a planted one: it says whether there is a dog; labels, whether a cat."""
    data, unseen = corpus(0, 60), corpus(60, 90)
    rows = encode(unseen, TOKENS, 32)
    model = teacher_model(layers=1)
    examples = [replace(e, label=int("dog" in e.text)) for e in data]
    dogs = replace(data, examples=examples)
    finetune(model, TOKENS, dogs, unseen, settings=replace(QUICK, epochs=10, learning_rate=5e-3))
    its = predict(model, rows, YES_NO)
    assert (its == [("dog" in e.text) for e in unseen]).mean() > 0.9
    student = make_student(teacher_model(layers=1))  # what the teacher was before it learnt
    way = SoftLabels(Teacher(model), hard=0.0, temperature=1.0)
    settings = replace(QUICK, epochs=10, learning_rate=5e-3, ways=(way,))
    finetune(student, TOKENS, data, unseen, settings=settings)
    assert (predict(student, rows, YES_NO) == its).mean() > 0.9


def test_kept_and_asked_answers_teach_the_same_and_a_stop_changes_nothing(tmp_path: Path) -> None:
    model, data = teacher_model(), (train_data(), corpus(40, 50))

    def learn(keep: str, memory: Memory | None = None, **more: Any) -> tuple[Any, list[float]]:
        student = make_student(model, StudentShape(layers=2))
        way = Patient(Teacher(model, keep=keep, folder=tmp_path), temperature=3.0)
        settings = replace(QUICK, ways=(way,))
        history = finetune(student, TOKENS, *data, settings=settings, memory=memory, **more)
        return dict(student.state_dict()), [epoch.loss for epoch in history.epochs]

    (_, live), (held, losses), (disk, _) = (learn(keep) for keep in ("never", "memory", "disk"))
    assert same(held, disk)
    assert live == pytest.approx(losses, rel=1e-5)
    memory = Memory(tmp_path / "run", "a run")
    with pytest.raises(KilledError):
        learn("disk", memory, progress=killed_at(5))
    assert memory.found() == 1
    assert same(learn("disk", memory)[0], disk)


def test_ways_are_named_and_their_teacher_is_an_ingredient() -> None:
    teacher = asking()
    way = SoftLabels(teacher, temperature=4.0, hard=0.1)
    assert way.text == "soft_labels:temperature=4,hard=0.1,match=probabilities"
    settings = replace(QUICK, ways=(way,))
    assert settings.as_record()["ways"] == [way.text]
    (named,) = way.ingredients(train_data()).values()
    assert named == teacher.fingerprint()
    with pytest.raises(ParameterError, match="hard"):
        SoftLabels(teacher, hard=2.0)


def test_patient_layers() -> None:
    assert followed_layers("skip", 6, 12) == (2, 4, 6, 8, 10)
    assert followed_layers("last", 6, 12) == (7, 8, 9, 10, 11)
    with pytest.raises(CapabilityError, match="layer by layer"):
        followed_layers("skip", 3, 2)
    teacher = asking()
    narrow = make_student(teacher.model, StudentShape(hidden=8), start="slices")
    with pytest.raises(CapabilityError, match="one width"):
        Patient(teacher).prepare(lesson_of(narrow))


def test_numbers_and_choices_are_taught_too() -> None:
    numbers = corpus(0, 16, LENGTH)
    offered = {"candidates": ["cat", "elk hen"]}
    questions = Corpus(
        "choices",
        [
            Example(str(i), e.text, "which ?", label=i % 2, annotations=offered)
            for i, e in enumerate(corpus(0, 16))
        ],
        frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.CANDIDATES}),
        Task("choice", "multiple-choice", ("a", "b"), ("accuracy",)),
    )
    for data, kind in (
        (numbers, "BertForSequenceClassification"),
        (questions, "BertForMultipleChoice"),
    ):
        model = teacher_model(kind)
        model.config.num_labels = 1
        if kind == "BertForSequenceClassification":
            model = _with_one_output(model)
        student = make_student(model, StudentShape(layers=1))
        losses = []
        for keep in ("never", "memory"):
            way = SoftLabels(Teacher(model, keep=keep), hard=0.0)
            history = finetune(
                copy.deepcopy(student), TOKENS, data, data[:4], settings=replace(QUICK, ways=(way,))
            )
            losses.append([epoch.loss for epoch in history.epochs])
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
        assert losses[0][0] > 0


def _with_one_output(model: Any) -> Any:
    model.classifier = torch.nn.Linear(16, 1)
    model.num_labels = 1
    return model


@pytest.mark.parametrize(
    ("keep", "side"), [("never", "right"), ("memory", "right"), ("never", "left")]
)
def test_a_teacher_that_reads_fewer_tokens_reads_its_own_rows(keep: str, side: str) -> None:
    """Of the same vocabulary; its answers to texts that fit are those to the student's rows."""
    tokens = copy.deepcopy(TOKENS)
    tokens.padding_side, tokens.model_max_length = side, 10**30
    model = teacher_model()
    student = make_student(model, StudentShape(layers=1))
    student.config.max_position_embeddings = 64
    student.bert.embeddings.position_embeddings = torch.nn.Embedding(64, 16)
    student.bert.embeddings.position_ids = torch.arange(64)[None]
    student.bert.embeddings.token_type_ids = torch.zeros(1, 64, dtype=torch.long)
    data = train_data()
    lesson = replace(lesson_of(student, data), tokenizer=tokens)
    chosen, device = [5, 0, 3], torch.device("cpu")
    far, _ = encode(data, tokens, 64).batch(chosen, device, multiple=48)  # wider than it can read
    found = Teacher(model, keep=keep).ready(lesson, ALL)
    near, _ = found.rows.batch(chosen, device)
    expected, real = see(model, near, ALL), near["attention_mask"].bool()
    answers, wide = found.answers(chosen, far), far["attention_mask"].bool()
    assert answers[STATES].shape[2] == 48
    assert torch.allclose(answers[LOGITS], expected[LOGITS], atol=1e-5)
    assert torch.allclose(
        answers[STATES].transpose(1, 2)[wide], expected[STATES].transpose(1, 2)[real], atol=1e-5
    )
    own, its = (one.permute(0, 3, 4, 1, 2) for one in (answers[SCORES], expected[SCORES]))
    pairs = wide[:, :, None] & wide[:, None], real[:, :, None] & real[:, None]
    assert torch.allclose(own[pairs[0]], its[pairs[1]], atol=1e-4)
    # A text that does not fit is cut for what it says of it as a whole, and else refused.
    long = replace(data.examples[0], text=" ".join(["owl"] * 50))
    lesson = replace(lesson, train=replace(data, examples=[long, *data.examples[1:]]))
    asked = Teacher(model, keep=keep)
    wide_row = {"input_ids": torch.zeros(1, 52)}
    wide_row["attention_mask"] = torch.ones(1, 52)
    found = asked.ready(lesson, Needs(logits=True, first=(1,)))
    assert found.answers([0], wide_row)[LOGITS].shape == (1, 2)
    with pytest.raises(CapabilityError, match=r"at most 32 tokens, and 1 of 24 texts.*\n.*=32"):
        asked.ready(lesson, Needs(states=(1,)))
