"""Methods over other forms of a model and over students: equal where theory says so, and saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import bertology as bt
import planted
import prune_killed
from bertology import SkipLayer
from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, ParameterError
from bertology.model.compressed.forms import stored_bytes
from bertology.model.compressed.quantised_maps import QuantisedLinear
from bertology.model.compressed.written import KEY
from bertology.model.loading.pruning import loads_elsewhere
from bertology.train.answers import answer, encode_for
from bertology.train.checkpoint import save_checkpoint
from bertology.train.compress import METHODS, read_methods
from bertology.train.compress.compressing import compress_to
from bertology.train.compress.early_exit import Exits, highest_limit
from bertology.train.compress.mixed_precision import sensitivities
from bertology.train.compress.token_elimination import numbers_left
from bertology.train.compress.work import CompressWatch, Work
from bertology.train.encoded import task_of
from bertology.train.history import Step
from bertology.train.landscape.curvature import Hessian
from bertology.train.ways import Lesson
from made_compressions import (
    HELD_OUT,
    ONCE,
    TEXTS,
    TRAIN,
    applied,
    job,
    logits,
    masked_lm,
    stop_at,
    work,
)
from made_tunings import KilledError

# Small versions of every method that trains or stores something else.
SMALL = {
    "low_rank": "low_rank:share=0.4",
    "factorised": "factorised:rank=4",
    "int8": "int8",
    "int8_aware": "int8_aware",
    "mixed_precision": "mixed_precision:low=3,high=6",
    "dictionary": "dictionary",
    "soft_labels": "soft_labels:layers=1",
    "patient": "patient:layers=1",
    "tiny": "tiny:hidden=8,heads=2,parts=2,first_epochs=1",
    "minilm": "minilm:layers=1,first_epochs=1",
    "theseus": "theseus:layers=1,first_epochs=1",
    "token_elimination": "token_elimination:keep=0.5",
    "early_exit": "early_exit:exits=1,entropy=0.5",
    "bilstm": "bilstm:hidden=8,copies=1",
    "small_vocabulary": "small_vocabulary:pieces=50,layers=1,dual_epochs=1",
}


@pytest.mark.parametrize(
    "text",
    [
        "low_rank:rank=16,epochs=0",
        "factorised:rank=16,groups=2,epochs=0",
        "token_elimination:keep=1,epochs=0",
        "early_exit:exits=1,entropy=0",
    ],
)
def test_what_takes_nothing_away_changes_nothing(text: str) -> None:
    torch.testing.assert_close(logits(applied(text)), logits(work().teacher), atol=1e-4, rtol=1e-4)


def test_a_full_size_student_begins_as_the_original() -> None:
    for text in ("soft_labels:layers=2", "patient:layers=2", "theseus:layers=2"):
        [method] = read_methods([text])
        found = method.student(work())  # type: ignore[attr-defined]
        assert torch.equal(logits(found), logits(work().teacher))


def test_whole_numbers_are_within_their_step() -> None:
    given = work()
    found = applied("int8:inputs=float", given).model.bert
    for name, module in work().teacher.model.bert.named_modules():
        if isinstance(module, torch.nn.Linear):
            weight = module.weight
            step = weight.abs().amax(1, keepdim=True) / 127
            away = (found.get_submodule(name).weight - weight).abs()
            assert (away <= step / 2 + 1e-6).all(), name


def check_elsewhere(folder: Path, made: bt.Encoder) -> None:
    """Plain transformers gives the same answers, or refuses and says how the model is loaded."""
    load = transformers.AutoModelForSequenceClassification.from_pretrained
    if loads_elsewhere(made.model.config):
        with torch.no_grad():
            said = load(folder).eval()(**made.encode(TEXTS).inputs).logits
        torch.testing.assert_close(said, logits(made))
        return
    with pytest.raises(ValueError, match=r"import bertology as bt; bt.load"):
        load(folder)


@pytest.mark.parametrize("name", SMALL)
def test_every_method_makes_a_model_that_opens_again(name: str, tmp_path: Path) -> None:
    given = work()
    made = applied(SMALL[name], given)
    assert METHODS.get(name).summary
    save_checkpoint(tmp_path / "x", made.model, made.tokenizer, record={})
    again = bt.load(str(tmp_path / "x"), head="classification", device="cpu")
    torch.testing.assert_close(logits(again), logits(made))
    assert again.config.id2label == given.teacher.config.id2label
    if name not in ("early_exit", "token_elimination", "bilstm", "small_vocabulary"):
        sizes = [stored_bytes(one.model) for one in (given.teacher, again)]
        assert sizes[1] < sizes[0]
    check_elsewhere(tmp_path / "x", made)
    if name in ("int8", "mixed_precision"):  # packed numbers are counted, too
        assert again.parameters == given.teacher.parameters


def test_methods_combine_and_go_on_after_a_kill(tmp_path: Path) -> None:
    """Fewer layers, of low rank, that learn from the original; then in 8 bits."""
    texts = ("layer_choice:layers=1,epochs=0", "low_rank:share=0.5,epochs=0", "soft_labels", "int8")
    asked = job(*texts)
    before = {n: w.clone() for n, w in asked.original.model.state_dict().items()}
    whole = compress_to(tmp_path / "whole", asked)
    assert all(torch.equal(w, before[n]) for n, w in asked.original.model.state_dict().items())
    assert all(w.requires_grad for w in asked.original.model.parameters()), "as it was"
    assert whole.times_smaller > 2
    assert not whole.measured["plain"]
    card = (whole.folder / "README.md").read_text()
    assert "import bertology as bt" in card
    assert bt.score(str(whole.folder), HELD_OUT).scores["accuracy"] == whole.after
    with pytest.raises(KilledError):
        compress_to(tmp_path / "x", job(*texts), watch=stop_at(3, "soft_labels"))
    said: list[str] = []
    again = compress_to(tmp_path / "x", job(*texts), watch=CompressWatch(tell=said.append))
    assert any("2 of 4: low_rank:share=0.5,epochs=0: done before the stop" in s for s in said)
    files = [f.folder / "model.safetensors" for f in (whole, again)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert whole.after == again.after


def test_a_method_of_two_stages_goes_on_after_a_kill(tmp_path: Path) -> None:
    def taught(place: str, watch: CompressWatch | None = None) -> Work:
        given = work(folder=tmp_path / place, identity="x", number="tiny")
        given.watch = watch or CompressWatch()
        given.encoder = applied("tiny:layers=1,first_epochs=2", given)
        return given

    expected = taught("whole").encoder.model.state_dict()
    for stage in ("tiny first stage", "tiny"):
        with pytest.raises(KilledError):
            taught("again", stop_at(3, stage))
    again = taught("again")
    found = again.encoder.model.state_dict()
    assert all(torch.equal(w, found[n]) for n, w in expected.items())
    assert (again.epochs, again.trainings) == (3, 2), "also where a stage was done before the stop"


STAGES = {
    "tiny:layers=1,first_epochs=2": ("first stage", 2),
    "minilm:layers=1,first_epochs=2": ("first stage", 2),
    "theseus:layers=1,first_epochs=2": ("first stage", 2),
    "distil_text:layers=1,text_epochs=2": ("on text", 2),
    "small_vocabulary:pieces=50,layers=1,dual_epochs=2": ("dual teacher", 2),
}


@pytest.mark.parametrize("text", STAGES)
def test_stages_are_shown_and_counted(text: str, tmp_path: Path) -> None:
    """Every epoch of every stage; and what was done is said when it has been done."""
    told: list[Any] = []

    class Shown:
        def __init__(self, name: str, epochs: int) -> None:
            self.name, self.epochs = name, epochs

        def step(self, step: Step) -> None:
            if step.epoch is not None:
                told.append((self.name, step.epoch.number, self.epochs, bool(step.epoch.scores)))

        def stop(self) -> None:
            told.append(f"{self.name} ends")

    name, (stage, epochs) = text.partition(":")[0], STAGES[text]
    watch = CompressWatch(training=Shown, tell=told.append)
    given = work(base=masked_lm(tmp_path / "base"), number=name, watch=watch)
    applied(text, given)
    scored = stage == "dual teacher"  # it learns the task
    lines: list[Any] = [line for line in told if isinstance(line, tuple)]
    assert lines[:2] == [(f"{name} {stage}", i + 1, epochs, scored) for i in range(2)]
    assert [line[1:] for line in lines[2:]] == [(1, 1, True)]
    assert (given.epochs, given.trainings) == (3, 2)
    [said] = [note for note in given.notes if "2 epochs" in note]
    assert told.index(said) > told.index(f"{name} {stage} ends")


def test_long_work_between_trainings_is_shown(tmp_path: Path) -> None:
    told = []

    class Shown:
        def __init__(self, title: str, total: int) -> None:
            self.title, self.total, self.done = title, total, 0

        def advance(self, steps: int) -> None:
            self.done += steps

        def stop(self) -> None:
            told.append((self.title, self.done, self.total))

    settings = replace(ONCE, epochs=2)  # answers are kept where they are used twice
    asked = job("minilm:layers=1,first_epochs=2,hard=0", settings=settings)
    made = compress_to(tmp_path / "x", asked, watch=CompressWatch(counting=Shown))
    card = (made.folder / "README.md").read_text()
    assert "trained for 4 epochs in 2 trainings, the last of them on" in card
    size = len(asked.learning())
    assert told == [
        ("the teacher's answers", size, size),
        ("the teacher's answers", size, size),
        ("measuring answers", 2 * len(HELD_OUT), 2 * len(HELD_OUT)),
        ("measuring speeds", 2, 2),
    ]


def test_one_training_with_layer_drop_gives_every_depth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in docs/how-to/compress.md: one command trains, the others only cut what it made."""
    base = masked_lm(tmp_path / "base", layers=4)
    made = bt.compress(
        base, TRAIN, HELD_OUT, method="layer_drop:layers=4", to=tmp_path / "any", epochs=1
    )
    whole = bt.load(str(made.folder), head="classification", device="cpu")
    assert whole.shape.layers == 4

    def untrained(*given: Any, **named: Any) -> None:
        raise AssertionError("nothing is trained any more")

    monkeypatch.setattr("bertology.train.compress.work.finetune", untrained)
    for depth, kept in ((3, (0, 1, 2)), (2, (0, 2)), (1, (0,))):
        method = f"layer_choice:layers={depth},epochs=0"
        cut = bt.compress(
            str(made.folder), TRAIN, HELD_OUT, method=method, to=tmp_path / f"{depth}"
        )
        small = bt.load(str(cut.folder), head="classification", device="cpu")
        assert small.shape.layers == depth
        # The weights are those of the one training, and the answers those without the others.
        gone = [i for i in range(4) if i not in kept]
        expected = whole.run(TEXTS, do=SkipLayer(gone)).logits
        torch.testing.assert_close(logits(small), expected)


def test_ranges_of_a_stopped_training_are_those_of_one_that_was_not(tmp_path: Path) -> None:
    def trained(place: str, watch: CompressWatch | None = None) -> dict[str, torch.Tensor]:
        given = work(folder=tmp_path / place, identity="x", watch=watch or CompressWatch())
        found: dict[str, torch.Tensor] = applied("int8_aware:epochs=2", given).model.state_dict()
        return found

    expected = trained("whole")
    assert any(name.endswith("input_range") for name in expected)
    with pytest.raises(KilledError):
        trained("again", stop_at(12))
    found = trained("again")
    assert all(torch.equal(w, found[n]) for n, w in expected.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int8", "fixed"),
        ("int8:ranges=dynamic", None),
        ("int8:inputs=float", None),
        ("int8_aware", "fixed"),
        ("mixed_precision:low=3,high=6", "fixed"),
        ("mixed_precision:low=6,high=6,epochs=0", "fixed"),
        ("mixed_precision:low=6,high=6,epochs=0,inputs=float", None),
    ],
)
def test_inputs_are_rounded_in_ranges_that_are_stored(text: str, said: str | None) -> None:
    model = applied(text).model
    [form] = getattr(model.config, KEY)
    assert form.get("ranges") == said
    assert form["activations"] == (None if "float" in text else 8)
    if said:
        ranges = [b for n, b in model.named_buffers() if n.endswith("input_range")]
        assert len(ranges) == sum(isinstance(m, QuantisedLinear) for m in model.modules())
        assert all(least < most for least, most in ranges)


def test_layers_that_bend_the_loss_have_more_bits() -> None:
    """In the planted model, layer 1 does nothing to the answer."""
    given = work(prune_killed.encoder())
    found = sensitivities(given)
    fine = max(found, key=lambda layer: found[layer])
    model = applied("mixed_precision:low=2,high=5,groups=4,epochs=0", given).model
    bits = {name: one["bits"] for name, one in getattr(model.config, KEY)[-1]["maps"].items()}
    for layer in range(2):
        own = {b for name, b in bits.items() if f"layer.{layer}." in name}
        assert own == {5 if layer == fine else 2}
    assert bits["embeddings.word_embeddings"] == 8


def test_eigenvalues_are_counted_and_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, real, asked, counted = sensitivities(work()), Hessian.spectrum, [0], list[int]()

    def dies(self: Any, **given: Any) -> Any:
        asked[0] += 1
        if asked[0] == 2:
            raise KilledError
        return real(self, **given)

    class Line:
        def __init__(self, title: str, total: int) -> None:
            counted[:] = [total, 0]

        def advance(self, steps: int) -> None:
            counted[1] += steps

        def stop(self) -> None:
            """Nothing was shown."""

    def again(identity: str = "x") -> dict[int, float]:
        watch = CompressWatch(counting=Line)
        return sensitivities(work(folder=tmp_path / "w", identity=identity, watch=watch))

    monkeypatch.setattr(Hessian, "spectrum", dies)
    with pytest.raises(KilledError):
        again()
    for _ in range(2):
        assert again() == expected
        assert counted == [2, 2]  # of two layers on one part of the few examples
    assert asked == [3], "one before the stop, one after it, and none in the end"
    assert again("y") == expected
    (tmp_path / "w" / "eigenvalues.json").write_text("[1")
    assert again("y") == expected
    assert asked == [7], "of another job, or damaged"


def test_of_a_bilstm_its_table_is_stored_in_eight_bits(tmp_path: Path) -> None:
    small = work(applied("bilstm:hidden=8,copies=0"))
    before = stored_bytes(small.encoder.model)
    made = applied("int8", small)
    assert small.notes == [
        "the table of vectors is stored in 8 bits, all other weights are as they were; no inputs "
        "are rounded"
    ]
    assert stored_bytes(made.model) < before
    save_checkpoint(tmp_path / "x", made.model, made.tokenizer, record={})
    again = bt.load(str(tmp_path / "x"), head="classification", device="cpu")
    torch.testing.assert_close(logits(again), logits(made))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_exits_are_trained_in_the_precision_that_is_asked_for(precision: str) -> None:
    model, seen = applied("early_exit:exits=1").model, set[torch.dtype]()
    query = model.bert.encoder.layer[0].attention.self.query
    query.register_forward_hook(lambda module, given, out: seen.add(out.dtype))
    lesson = Lesson(model, planted.tokenizer(), TRAIN, 0, 1e-3, 8, None, (), precision=precision)
    inputs = {"input_ids": torch.ones(2, 5, dtype=torch.long)}
    Exits().loss(lesson, lambda i, t: torch.zeros(()), inputs, torch.zeros(2).long())
    assert seen == {getattr(torch, precision)}


def test_texts_leave_as_early_as_answers_allow() -> None:
    """Ten texts: the exit is right of those it is sure of, and wrong of the three others."""
    sure = np.array([0.99] * 7 + [0.45, 0.35, 0.3])
    end = np.full(10, 0.9)
    answers = np.stack([np.stack([a, 1 - a], axis=1) for a in (sure, end)])
    entropies = -(answers * np.log(answers)).sum(-1)[0]
    for other, few in ((0.0, 0.3), (0.1, 0.35), (0.2, 0.45)):
        below = highest_limit(answers, other)
        wrong = (entropies < below) & (sure < 0.5)
        assert wrong.sum() == round(10 * other)
        # the next text that is wrong would leave within a step of the search
        assert entropies[sure == few][0] - below < np.log(2) / 200 + 1e-9
    assert highest_limit(answers, 0.3) == np.log(2)  # all may leave, but those that know nothing


def test_exits_change_no_more_training_answers_than_they_may() -> None:
    for other in (0.0, 0.2):
        given = work()
        made = applied(f"early_exit:exits=1,changed={other}", given)
        some = given.choosing
        before, after = (said_by(one, some) for one in (given.teacher, made))
        assert (before != after).mean() <= other + 1e-9
        assert "training examples" in given.notes[-1]


def said_by(model: Any, corpus: Corpus) -> Any:
    return answer(model, encode_for(model, corpus), task_of(corpus)).predictions


def test_tokens_fall_in_a_line() -> None:
    assert numbers_left(20, 0.25, 3) == [15, 10, 5]
    assert numbers_left(20, 1, 3) == [20, 20, 20]
    assert numbers_left(4, 0.01, 2) == [2, 1]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["int8,soft_labels:layers=1"], "put it last"),
        (["low_rank,layer_choice"], "has other parts by then"),
        (["low_rank,soft_labels:layers=1"], "has other parts by then"),
        (["bilstm,low_rank"], "the model is none by then"),
        (["layer_choice,bilstm"], "begins with the original"),
        (["magnitude,int8_aware"], "fill the zeros"),
        (["bilstm,int8_aware"], "no maps to be trained in few bits"),
        (["bilstm,mixed_precision"], "int8 stores its table"),
        (["heads_and_mlps,minilm"], "one by one; say in how many parts"),
        (["heads_and_mlps:keep=0.9,tiny"], "one by one; say in how many parts"),
        (["magnitude,soft_labels"], "fill the zeros"),
        (["early_exit,token_elimination"], "put them after it"),
        (["early_exit,soft_labels"], "put them after it"),
        (["early_exit,int8_aware"], "put them after it"),
        (["token_elimination,minilm"], "where some are gone"),
        (["factorised,patient"], "layers that are one"),
        (["heads_and_mlps,soft_labels:layers=1"], "layers that are alike"),
        (["theseus"], "say how many layers"),
        (["low_rank:rank=3,share=0.5"], "be left out where share is given"),
        (["early_exit:entropy=0.1,changed=0.1"], "be left out where entropy is given"),
        (["soft_labels:start=random"], "no shape of its own"),
        (["mixed_precision:low=5,high=3"], "be at most high"),
        (["int8:inputs=float,ranges=dynamic"], "inputs are not rounded"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        read_methods(texts)


def test_what_does_not_fit_the_model_or_the_task() -> None:
    with pytest.raises(ParameterError, match="layers"):
        applied("soft_labels:layers=3")
    with pytest.raises(CapabilityError, match="one width"):
        applied("patient:hidden=8,heads=2")
    read = read_methods(["magnitude,int8"])
    assert [m.name for m in read] == ["magnitude", "int8"], "zeros stay zeros in 8 bits"
    # Parts of any number of heads can be compared, and MLPs are not.
    read_methods(["heads_and_mlps,minilm:parts=4"])
    read_methods(["heads_and_mlps:mlps=0.5,tiny"])


@pytest.mark.parametrize(
    ("text", "most", "copies"),
    [("bilstm:hidden=4", 400, 2), ("bilstm:hidden=4", 100, 0), ("bilstm:hidden=4,hard=0.5", 400, 0),
     ("bilstm:hidden=4,copies=3", 100, 3)],
)  # fmt: skip
def test_a_bilstm_has_as_many_copies_as_make_no_more_texts_than_it_may(
    text: str, most: int, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertology.train.compress.bilstm._MOST", most)
    asked = list[int]()

    def noted(given: Work, number: int) -> Corpus:
        asked.append(number)
        return given.train.take(20)

    monkeypatch.setattr("bertology.train.compress.bilstm.with_copies", noted)
    applied(text)
    assert asked == [copies]
