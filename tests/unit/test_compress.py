"""Compression: what theory says is equal is equal, methods combine, and a killed run goes on."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertology as bt
import planted
import prune_killed
from bertology.data.corpus import Corpus, Task
from bertology.errors import (
    BertologyError,
    CapabilityError,
    ModelError,
    ParameterError,
    StoreError,
    UnknownNameError,
)
from bertology.model.encoder import Encoder
from bertology.model.interventions import SkipLayer
from bertology.model.weight_masks import prunable_in_layers
from bertology.train.compress import METHODS, read_methods
from bertology.train.compress.compressed import Compressed
from bertology.train.compress.compressing import CompressJob, compress_to
from bertology.train.compress.settings import CompressSettings
from bertology.train.compress.work import CompressWatch
from bertology.train.movement import GradualMagnitude
from made_compressions import (
    HELD_OUT,
    ONCE,
    TEXTS,
    TRAIN,
    applied,
    clean,
    job,
    logits,
    stop_at,
    work,
)  # fmt: skip
from made_tunings import KilledError

# Equal where theory says so ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["layer_choice:layers=2,epochs=0", "heads_and_mlps:heads=1,mlps=1,epochs=0"],
)  # fmt: skip
def test_what_takes_nothing_away_changes_nothing(text: str) -> None:
    assert torch.equal(logits(applied(text)), logits(work().teacher))


def test_no_sparsity_is_a_plain_training() -> None:
    plain = work()
    plain.train_on(plain.encoder)
    expected = plain.encoder.model.state_dict()
    texts = (
        "magnitude:weights=1",
        "rewound:weights=1,rounds=1,to=rate",
        "layer_drop:layers=2,share=0",
    )
    for text in texts:
        found = applied(text).model.state_dict()
        assert all(torch.equal(found[n], w) for n, w in expected.items()), text


def test_half_is_within_its_step(tmp_path: Path) -> None:
    found = compress_to(tmp_path / "x", job("half"))
    again = bt.load(str(found.folder), head="classification", device="cpu")
    given = prune_killed.encoder().model.state_dict()
    for name, weight in again.model.state_dict().items():
        assert ((weight - given[name]).abs() <= given[name].abs() * 2**-11 + 2**-24).all(), name
    assert found.measured["plain"]
    assert "packed_bytes" not in found.measured, "there are no zeros to be packed"
    assert found.times_smaller == pytest.approx(2, rel=0.3), "beside names and shapes"
    assert abs(found.loss.value) < 5


# What goes is known ------------------------------------------------------------------------------


def test_layers_stay_as_they_are_named() -> None:
    given = work()
    for text, kept in (("which=top", 1), ("which=bottom", 0), ("which=even", 0), ("which=2", 1)):
        found = applied(f"layer_choice:{text},epochs=0")
        expected = given.teacher.run(TEXTS, do=SkipLayer([1 - kept])).logits
        torch.testing.assert_close(logits(found), expected)
    noted = work(clean())  # where layer 1 does nothing
    applied("layer_choice:layers=1,which=measured,epochs=0", noted)
    assert noted.notes == ["of 2 layers, 1 stay (counted from 1)"]


def test_the_head_that_carries_the_answer_stays() -> None:
    for text in ("heads=0.125,mlps=0", "keep=0.9"):
        found = applied(f"heads_and_mlps:{text},epochs=0", work(clean()))
        stack = found.family.main_stack
        assert planted.CARRIER[1] in found.numbering.kept(stack, planted.CARRIER[0])
        assert sum(len(found.numbering.kept(stack, i)) for i in range(2)) <= 4


def test_gradual_magnitude_leaves_the_largest_weights() -> None:
    """At a rate that moves nothing, the mask is known: the largest of each matrix."""
    given = work()
    given.settings = replace(ONCE, rate=1e-12)
    before = {n: w.detach().clone() for n, w in prunable_in_layers(given.encoder).items()}
    found = applied("magnitude:weights=0.25", given)
    for name, weight in prunable_in_layers(found).items():
        size = before[name].numel()
        border = before[name].abs().reshape(-1).kthvalue(size - round(size / 4) + 1).values
        assert torch.equal(weight != 0, (before[name].abs() >= border) & (before[name] != 0)), name
    assert given.notes == ["75 % of the weights in the layers' matrices are zero"]


def test_a_weight_that_is_gone_comes_back_where_others_shrink() -> None:
    weight = torch.nn.Parameter(torch.tensor([[3.0, 2.0, 1.0]]))
    going = GradualMagnitude({"w": weight}, share=1 / 3)
    going.thin(1.0)
    assert weight.tolist() == [[3.0, 0.0, 0.0]]
    weight.grad = torch.ones_like(weight)
    going.learn(1.0)
    assert weight.grad.tolist() == [[1.0, 0.0, 0.0]], "only what was used learns"
    assert weight.tolist() == [[3.0, 2.0, 1.0]]
    with torch.no_grad():
        weight[0, 0] = 0.5
    assert going.chosen.keeps("w").tolist() == [[False, True, False]]


def test_zeros_stay_zeros_while_the_others_are_trained_again() -> None:
    body = Encoder(prune_killed.encoder().base, planted.tokenizer(), name="planted")
    given = work(base=body)
    found = applied("rewound:weights=0.5,rounds=2,epochs=1", given)
    matrices = [w for n, w in found.model.named_parameters() if w.dim() > 1 and "embed" not in n]
    zeros = sum(int((w == 0).sum()) for w in matrices)
    assert zeros / sum(w.numel() for w in matrices) == pytest.approx(0.5, abs=0.01)
    assert given.epochs == 2
    assert found.config.id2label == given.teacher.config.id2label
    with pytest.raises(CapabilityError, match="rewound:to=rate"):
        applied("rewound")


def test_movement_leaves_as_many_as_asked() -> None:
    found = applied("movement:weights=0.25")
    for name, weight in prunable_in_layers(found).items():
        assert int((weight != 0).sum()) <= round(0.25 * weight.numel()), name


def test_layers_are_left_out_in_training_only() -> None:
    given = work()
    whole = logits(given.encoder)
    found = applied("layer_drop:layers=2,share=0.9", given)
    assert not any(layer._forward_hooks for layer in found.model.bert.encoder.layer)
    assert not torch.equal(logits(found), whole)
    assert applied("layer_drop:layers=1,share=0.5").shape.layers == 1


# In sequence, stopped, and found again -----------------------------------------------------------


LONG = replace(ONCE, epochs=2)
SEQUENCE = ("layer_choice:layers=1", "magnitude:weights=0.5", "half")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Compressed:
    place = tmp_path_factory.mktemp("whole") / "x"
    watch = CompressWatch(command="bertology compress …")
    return compress_to(place, job(*SEQUENCE, settings=LONG), watch=watch)


def test_killed_and_continued_is_the_same_model(made: Compressed, tmp_path: Path) -> None:
    """Of two trainings of 16 steps each, the first is killed once, the second twice."""
    place, said = tmp_path / "x", list[str]()
    asked = job(*SEQUENCE, settings=LONG)
    for name, step in (("layer_choice", 10), ("magnitude", 5), ("magnitude", 13)):
        with pytest.raises(KilledError):
            compress_to(place, asked, watch=stop_at(step, name))
        assert not place.exists()
    found = compress_to(place, asked, watch=CompressWatch(tell=said.append))
    assert any("done before the stop" in line for line in said), said
    assert any("continuing the training after epoch 1 of 2" in line for line in said), said
    for name in ("model.safetensors", "config.json", "flips.json"):
        assert (place / name).read_bytes() == (made.folder / name).read_bytes()
    assert found.after == made.after
    assert [p.name for p in tmp_path.iterdir()] == ["x"], "nothing is left beside it"


def test_the_model_opens_and_its_card_tells_what_was_done(made: Compressed) -> None:
    again = bt.load(str(made.folder), head="classification", device="cpu")
    assert again.shape.layers == 1
    record = json.loads((made.folder / "bertology.json").read_text())
    told = record["compression"]
    assert [step["method"].partition(":")[0] for step in told["steps"]] == [
        "layer_choice", "magnitude", "half",
    ]  # fmt: skip
    assert told["bytes_on_disk"][1] == (made.folder / "model.safetensors").stat().st_size
    assert told["parameters"][1] == sum(w.numel() for w in again.model.parameters())
    assert told["bytes_in_memory"][0] > told["bytes_in_memory"][1] > 0
    assert set(told["texts_per_second"]["cpu"]) == {"1", "32"}
    card = (made.folder / "README.md").read_text()
    for words in ("of 2 layers, 1 stay", "are zero", "trained for 2 epochs on 120 training",
                  "95 % interval", "in batches of 32, cpu", "bertology compress …",
                  "packed with"):  # fmt: skip
        assert words in card, words
    assert made.before.value == pytest.approx(bt.score(prune_killed.encoder(), HELD_OUT)
                                              .scores["accuracy"].value)  # fmt: skip


def test_what_is_packed_is_what_lies_on_the_disk(made: Compressed, tmp_path: Path) -> None:
    """Also where the numbers are no parameters, or fewer bits than in memory."""
    coded = compress_to(tmp_path / "x", job("magnitude:weights=0.3", "int8"))
    for one in (made, coded):
        [file] = one.folder.glob("*.safetensors")
        raw = file.read_bytes()
        before, after = one.measured["packed_bytes"]
        assert after == len(zlib.compress(raw, 1))
        assert len(raw) / 4 < after < one.measured["bytes_on_disk"][1] == len(raw)
        assert after < before < one.measured["bytes_on_disk"][0]


def test_every_answer_that_changed_is_told(made: Compressed) -> None:
    flips = json.loads((made.folder / "flips.json").read_text())
    small = bt.load(str(made.folder), head="classification", device="cpu")
    said = [small.run([e.text]).logits.argmax().item() for e in HELD_OUT]
    original = prune_killed.encoder()
    before = [original.run([e.text]).logits.argmax().item() for e in HELD_OUT]
    changed = {e.id for e, a, b in zip(HELD_OUT, before, said, strict=True) if a != b}
    assert {f["id"] for f in flips} == changed
    counts = made.measured["flips"]
    lost = [f for f in flips if f["before"] == f["right"]]
    assert (counts["changed"], counts["lost"]) == (len(changed), len(lost))
    assert flips[: len(lost)] == lost, "those that are lost come first"


def test_another_model_is_not_overwritten(made: Compressed, tmp_path: Path) -> None:
    said: list[str] = []
    again = compress_to(
        made.folder, job(*SEQUENCE, settings=LONG), watch=CompressWatch(tell=said.append)
    )
    assert again.record == made.record
    assert "was made on" in said[0]
    with pytest.raises(StoreError, match=r"other methods.*\(layer_choice.*half"):
        compress_to(made.folder, job("half"))
    place = tmp_path / "x"
    with pytest.raises(KilledError):
        compress_to(place, job("magnitude", settings=LONG), watch=stop_at(2))
    assert [p.name for p in tmp_path.iterdir()] == [], "nothing was finished that could go on"
    with pytest.raises(KilledError):
        compress_to(place, job("magnitude", settings=LONG), watch=stop_at(10))
    with pytest.raises(StoreError, match="unfinished run with other methods"):
        compress_to(place, job("half"))
    compress_to(place, job("half"), force=True)
    forced = compress_to(place, job("half:numbers=bfloat16"), force=True)
    assert forced.methods == ("half:numbers=bfloat16",)


def test_a_pretrained_model_is_fine_tuned_first_and_kept(tmp_path: Path) -> None:
    body = Encoder(prune_killed.encoder().base, planted.tokenizer(), name="planted")
    asked: dict[str, Any] = {"method": "half", "to": tmp_path / "x", "epochs": 1, "rate": 1e-3}
    found = bt.compress(body, TRAIN, HELD_OUT, **asked)
    original = bt.load(str(tmp_path / "x-original"), head="classification", device="cpu")
    assert found.record["compressed_from"]["fingerprint"] == original.fingerprint
    assert found.record["base"]["fingerprint"] == body.fingerprint
    assert bt.compress(body, TRAIN, HELD_OUT, **asked).record == found.record


def test_a_task_of_numbers(tmp_path: Path) -> None:
    task = Task("planted-numbers", "regression", (), ("pearson", "spearman"))
    rng = np.random.default_rng(0)

    def numbers(corpus: Corpus) -> Corpus:
        examples = [replace(e, label=float(e.get("label")) + float(rng.normal(0, 0.2)))
                    for e in corpus]  # fmt: skip
        return replace(corpus, examples=examples, task=task)

    given = prune_killed.encoder()
    given.model.config.problem_type, given.model.config.num_labels = "regression", 1
    given.model.num_labels = 1
    given.model.classifier = torch.nn.Linear(16, 1)
    found = compress_to(
        tmp_path / "x",
        CompressJob(given, numbers(TRAIN), numbers(HELD_OUT),
                    read_methods(["heads_and_mlps:heads=0.5", "half"]), ONCE),
    )  # fmt: skip
    assert found.metric == "pearson"
    assert "in the mean" in (found.folder / "README.md").read_text()
    assert len(json.loads((found.folder / "flips.json").read_text())) == 10


def test_words_fit_a_model_that_is_no_smaller(made: Compressed) -> None:
    def told(**changed: Any) -> str:
        record: Any = {**made.record, "compression": {**made.measured, **changed}}
        return Compressed(made.folder, record).sentence

    same = {"bytes_on_disk": [1_000_000, 1_010_000], "parameters": [7, 7]}
    assert "is no smaller on the disk (1.0 MB, before 1.0 MB), has 7 parameters (as" in told(**same)
    barely = {**made.measured["loss_in_points"], "low": 1e-10, "high": 18.0}
    assert "95 % interval above 0 to 18.0; surely a loss" in told(
        loss_in_points=barely, flips={"changed": 1}
    )
    assert "no answer changed" in told(flips={"changed": 0})


# Words and refusals ------------------------------------------------------------------------------


def test_methods_are_read_as_they_are_written() -> None:
    read = read_methods(["layer-choice:layers=6,which=top,half", "half"][:1])
    assert [m.name for m in read] == ["layer_choice", "half"]
    assert read[0].text == "layer_choice:layers=6,which=top"
    assert read_methods(["magnitude"])[0].text == "magnitude:weights=0.5"
    assert read_methods(["half,numbers=bfloat16"])[0].text == "half:numbers=bfloat16"
    for name in METHODS:
        kind = METHODS.get(name)
        assert kind.summary
        assert name in (Path(__file__).parents[2] / "docs/how-to/compress.md").read_text()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["half,layer_choice"], "not have 'layer_choice' after 'half'.*put it last"),
        (["half,half"], "not have 'half' after 'half'"),
        (["magnitude,layer_choice"], "would fill the zeros"),
        (["movement,magnitude"], "would fill the zeros"),
        (["layer_choice,rewound"], "it begins with the original"),
        (["layer_choice:laiers=3"], "have options of .layer_choice.: layers, which=even, epochs"),
        (["layer_choice:layers=x"], "be a whole number"),
        (["layer_choice:layers=0"], "be at least 1"),
        (["half:numbers=int8"], "be one of 'float16', 'bfloat16'"),
        (["magnitude:weights=2"], "be at most 1"),
        (["heads_and_mlps:keep=0.9,heads=0.5"], "be left out where keep is given"),
        (["heads_and_mlps:keep=1.5"], "above 0 and below 1"),
        ([], "name at least one of"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        read_methods(texts)


def test_unknown_methods_and_models_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="layer_choice"):
        read_methods(["layer_choices"])
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: applied("layer_choice:layers=3"), "be at most 2"),
        (lambda: applied("layer_choice:which=3"), "layers from 1 to 2"),
        (lambda: applied("layer_choice:which=1,layers=2"), "names 1 layers"),
        (lambda: job("half", train=TRAIN[:5]).learning(), "compression needs 10"),
        (lambda: CompressSettings(epochs=0), "be at least 1"),
        (lambda: CompressSettings(rate=0.0), "above 0"),
        (lambda: CompressSettings(precision="int4"), "be one of 'float32'"),
    ]
    for call, said in refused:
        with pytest.raises(BertologyError, match=said):
            call()
    headless = Encoder(prune_killed.encoder().base, planted.tokenizer(), name="headless")
    with pytest.raises(CapabilityError, match="without a head"):
        job("half", original=headless)
    numbers = Task("planted-numbers", "regression", (), ("pearson",))
    other = replace(TRAIN, task=numbers), replace(HELD_OUT, task=numbers)
    given: dict[str, Any] = {"method": "half", "to": tmp_path / "x"}
    with pytest.raises(ModelError, match=r"needs 1\.\nWhere .* \(--finetune\) does it anew"):
        bt.compress(prune_killed.encoder(), *other, **given)
    labels = Task("mood", "classification", ("glad", "sad"), ("accuracy",))
    other = replace(TRAIN, task=labels), replace(HELD_OUT, task=labels)
    with pytest.raises(CapabilityError, match=r"--finetune.* --labels"):
        bt.compress(prune_killed.encoder(), *other, **given)
