"""A fine-tuning is a job: it starts as it says, resumes to the bit, and is not done twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from bertology.errors import (
    CapabilityError,
    DataError,
    InterruptedRunError,
    ParameterError,
    StoreError,
    UnknownNameError,
)
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.train.finetune import FinetuneSettings
from bertology.train.history import Step
from bertology.train.starts import STARTS, begin, default_rate, find_start
from bertology.train.tuning import TuningJob, check_apart, make_tuned, score_heads, tune
from made_tunings import (
    FAST,
    LENGTH,
    WORDS,
    YES_NO,
    KilledError,
    corpus,
    encoder,
    job,
    killed_at,
    same,
    weights,
)

# Starts ------------------------------------------------------------------------------------------


def test_each_start_is_what_it_says() -> None:
    given = encoder()
    before = given.fingerprint
    made = {name: begin(given, YES_NO, start, seed=3) for name, start in STARTS.items()}
    body = given.base.state_dict()
    for name in ("pretrained", "frozen", "frozen-features"):
        assert same(dict(made[name].base_model.state_dict()), dict(body))
        assert torch.equal(made[name].classifier.weight, made["frozen"].classifier.weight)
    random = made["random"]
    drawn = torch.cat([p.detach().flatten() for n, p in random.named_parameters() if p.dim() > 1])
    assert drawn.std() == pytest.approx(random.config.initializer_range, rel=0.02)
    assert abs(float(drawn.mean())) < 1e-3
    assert all((p == 0).all() for n, p in random.named_parameters() if n.endswith("bias"))
    learning = {n for n, p in made["frozen-features"].named_parameters() if p.requires_grad}
    assert learning == {"classifier.weight", "classifier.bias"}
    other = begin(given, YES_NO, STARTS["frozen"], seed=4)
    assert not torch.equal(other.classifier.weight, made["frozen"].classifier.weight)
    with torch.no_grad():
        made["pretrained"].bert.embeddings.word_embeddings.weight.add_(1.0)
    assert given.fingerprint == before


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "albert", "modernbert", "xlnet", "bart"])
def test_other_families_can_begin_too(kind: str) -> None:
    model = begin(encoder(kind), LENGTH, STARTS["pretrained"], seed=0)
    assert model.config.num_labels == 1
    assert same(dict(model.base_model.state_dict()), _body(encoder(kind), model))


def _body(given: Encoder, model: Any) -> dict[str, Any]:
    """Without a pooler, which some classifiers do not have."""
    there = model.base_model.state_dict()
    return {n: w for n, w in given.base.state_dict().items() if n in there}


@pytest.mark.parametrize("head", ["base", "mlm"])
@pytest.mark.parametrize("kind", [k for k in tiny.ROWS if k not in ("gpt2", "t5", "xlnet")])
def test_heads_scored_together_score_as_each_alone(kind: str, head: str) -> None:
    """The encoder reads the texts once for all; what comes after it differs between families."""
    given, data = encoder(kind, head), corpus(40, 70, LENGTH)
    together, _ = score_heads(given, data, seeds=(1, 2, 3), max_length=None)
    for seed, found in zip((1, 2, 3), together, strict=True):
        settings = replace(FAST, seed=seed)
        alone = TuningJob(given, corpus(0, 40, LENGTH), data, STARTS["frozen"], settings)
        assert found == pytest.approx(tune(alone)[1].scores, abs=1e-6)
    assert together[0] != together[1]


def test_a_pooler_that_was_never_pre_trained_belongs_to_the_head() -> None:
    model = begin(encoder(head="mlm"), YES_NO, STARTS["frozen-features"], seed=0)
    learning = {n for n, p in model.named_parameters() if p.requires_grad}
    assert "bert.pooler.dense.weight" in learning
    assert "bert.embeddings.word_embeddings.weight" not in learning


def test_weights_that_learn_are_float32_whatever_the_encoder_is() -> None:
    given = encoder()
    given.model.to(torch.bfloat16)
    given.config.dtype = torch.bfloat16
    for start in ("pretrained", "random"):
        model = begin(given, YES_NO, STARTS[start], seed=0)
        assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_pruned_models_stay_pruned() -> None:
    smaller = Encoder(prune_heads(encoder(), [(1, 2)]), tiny.tokenizer(list(WORDS)), name="pruned")
    model = begin(smaller, YES_NO, STARTS["pretrained"], seed=0)
    query = model.bert.encoder.layer[1].attention.self.query
    assert query.weight.shape == (18, 24)


def test_what_cannot_begin_is_refused() -> None:
    with pytest.raises(CapabilityError, match=r"cannot be fine-tuned here.*decoder"):
        begin(encoder("t5"), YES_NO, STARTS["pretrained"], seed=0)
    with pytest.raises(UnknownNameError, match="frozen-features"):
        find_start("frozen-feature")


def test_small_models_and_lone_heads_learn_faster() -> None:
    assert default_rate(STARTS["pretrained"], 768) == 2e-5
    assert default_rate(STARTS["pretrained"], 384) == 1e-4
    assert default_rate(STARTS["random"], 192) == 2e-4
    assert default_rate(STARTS["frozen-features"], 768) == 1e-3


# Learning ----------------------------------------------------------------------------------------


def test_a_frozen_body_stays_and_has_no_dropout() -> None:
    given = encoder()
    given.model.config.hidden_dropout_prob = 0.5
    settings = replace(FAST, epochs=2, learning_rate=1e-2)
    model, history = tune(job("frozen-features", settings, encoder=given))
    assert same(dict(model.base_model.state_dict()), dict(given.base.state_dict()))
    again, _ = tune(job("frozen-features", replace(settings, seed=0), encoder=given))
    assert torch.equal(model.classifier.weight, again.classifier.weight)
    assert history.epochs[-1].loss < history.epochs[0].loss
    assert all(p.requires_grad for p in model.parameters())


def test_the_frozen_start_learns_nothing() -> None:
    model, history = tune(job("frozen"))
    assert [e.number for e in history.epochs] == [0]
    assert same(dict(model.state_dict()), dict(begin_again().state_dict()))
    assert model.config.id2label == {0: "no", 1: "yes"}


def begin_again() -> Any:
    return begin(encoder(), YES_NO, STARTS["frozen"], seed=0)


def test_early_stopping_keeps_the_best_epoch() -> None:
    scored: list[float] = []

    def hear(step: Step) -> None:
        if step.epoch is not None:
            scored.append(step.epoch.scores["accuracy"])

    settings = replace(FAST, epochs=30, early_stopping=2, learning_rate=3e-3)
    given = job(settings=settings)
    model, history = tune(given, progress=hear)
    best = scored.index(max(scored)) + 1
    assert (history.best, history.scores["accuracy"]) == (best, max(scored))
    assert len(scored) == min(30, best + 2)
    short, _ = tune(replace(given, settings=settings), progress=lambda step: None)
    assert same(dict(model.state_dict()), dict(short.state_dict()))
    from bertology.train.encoded import encode
    from bertology.train.evaluate import predict, scores

    unseen = encode(given.validation, given.encoder.tokenizer, None)
    now = scores(predict(model, unseen, YES_NO), unseen.targets, YES_NO)
    assert now == history.scores


def test_mixed_precision_is_for_gpus() -> None:
    with pytest.raises(ParameterError, match="be float32 but on a GPU"):
        tune(job(settings=replace(FAST, precision="bfloat16")))
    with pytest.raises(ParameterError, match="float32, bfloat16"):
        FinetuneSettings(precision="float16")
    with pytest.raises(ParameterError, match="early_stopping"):
        FinetuneSettings(early_stopping=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_mixed_precision_learns_and_keeps_float32_weights() -> None:
    there = encoder()
    there.model.cuda()
    model, low = tune(job(settings=replace(FAST, precision="bfloat16"), encoder=there))
    _, full = tune(job(encoder=there))
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert low.epochs[0].loss == pytest.approx(full.epochs[0].loss, rel=0.05)


# Jobs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "patience"), [("pretrained", None), ("random", 2), ("frozen-features", None)]
)
def test_a_killed_run_goes_on_to_the_same_bits(
    tmp_path: Path, start: str, patience: int | None
) -> None:
    settings = replace(FAST, early_stopping=patience)
    whole = make_tuned(tmp_path / "whole", job(start, settings))
    for step in (8, 14):  # in the second epoch, and in the third
        with pytest.raises(KilledError):
            make_tuned(tmp_path / "cut", job(start, settings), progress=killed_at(step))
        assert not (tmp_path / "cut").exists()
        (tmp_path / f".cut-unfinished.{step:08d}").mkdir()  # what a kill leaves while writing
    told: list[str] = []
    heard: list[Step] = []
    cut = make_tuned(
        tmp_path / "cut", job(start, settings), progress=heard.append, tell=told.append
    )
    assert told == [f"{tmp_path / 'cut'}: continuing after epoch 2 of 3."]
    assert heard[0].done == 11
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))
    for record in (whole, cut):
        assert [e["number"] for e in record["history"]] == [1, 2, 3]
    assert [e["loss"] for e in cut["history"]] == [e["loss"] for e in whole["history"]]
    assert cut["scores"] == whole["scores"]
    left = {p.name for p in tmp_path.iterdir()} - {"whole", "cut"}
    assert not {n for n in left if not n.startswith(".cut-unfinished.")}


def test_killed_after_the_last_epoch_only_saving_is_left(tmp_path: Path) -> None:
    whole = make_tuned(tmp_path / "whole", job())

    def fail(*given: Any, **more: Any) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertology.train.tuning.save_checkpoint", fail)
        with pytest.raises(KilledError):
            make_tuned(tmp_path / "cut", job())
    heard: list[Step] = []
    cut = make_tuned(tmp_path / "cut", job(), progress=heard.append)
    assert not heard
    assert cut["scores"] == whole["scores"]
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_ctrl_c_keeps_finished_epochs(tmp_path: Path) -> None:
    def stop(step: Step) -> None:
        if step.done == 7:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match="step 7 of 15; finished epochs are kept"):
        make_tuned(tmp_path / "model", job(), progress=stop)
    assert (tmp_path / "model-unfinished" / "state.json").is_file()


def test_a_finished_run_is_not_done_again_and_tells_its_story(tmp_path: Path) -> None:
    told: list[str] = []
    record = make_tuned(tmp_path / "model", job())
    again = make_tuned(tmp_path / "model", job(), progress=killed_at(1), tell=told.append)
    assert again == record
    assert "--force" in told[0]
    assert record["base"] == {"name": "tiny-bert", "fingerprint": job().encoder.fingerprint}
    assert record["train"]["fingerprint"] == corpus(0, 40).fingerprint
    assert set(record["baseline"]) == {"accuracy", "f1"}
    assert {"torch", "transformers"} <= set(record["versions"])
    card = (tmp_path / "model" / "README.md").read_text()
    assert f"| epoch 3 | {record['scores']['accuracy']:.4f} |" in card
    assert "tiny-bert" in card
    with pytest.raises(KilledError):
        make_tuned(tmp_path / "model", job(), force=True, progress=killed_at(1))
    assert make_tuned(tmp_path / "model", job()) == record  # the old one stays until then
    with pytest.raises(KilledError):
        make_tuned(tmp_path / "model", job("random"), force=True, progress=killed_at(7))
    assert make_tuned(tmp_path / "model", job()) == record
    told.clear()
    other = make_tuned(tmp_path / "model", job("random"), tell=told.append)
    assert "continuing after epoch 1" in told[0]
    assert other["start"] == "random"


def test_a_frozen_run_is_kept_as_valid_json(tmp_path: Path) -> None:
    make_tuned(tmp_path / "model", job("frozen"))
    text = (tmp_path / "model" / "bertology.json").read_text()
    record = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert record["history"] == [{"number": 0, "scores": record["scores"]}]
    assert "not fine-tuned" in (tmp_path / "model" / "README.md").read_text()


def test_another_recipe_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    make_tuned(tmp_path / "done", job())
    with pytest.raises(KilledError):
        make_tuned(tmp_path / "begun", job(), progress=killed_at(7))
    others = [
        job(settings=replace(FAST, learning_rate=1e-3)),
        job("random"),
        job(train=corpus(0, 39)),
        job(validation=corpus(41, 70)),
        job(encoder=encoder(seed=1)),
    ]
    for other in others:
        for name, words in (("done", "a model of other"), ("begun", "an unfinished run")):
            with pytest.raises(StoreError, match=words + r"[\s\S]*--force"):
                make_tuned(tmp_path / name, other)
    record = make_tuned(tmp_path / "begun", others[0], force=True)
    assert record["settings"]["learning_rate"] == 1e-3
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").touch()
    with pytest.raises(StoreError, match="not a model that bertology made"):
        make_tuned(tmp_path / "thesis", job())


def test_a_model_is_not_judged_by_what_it_learnt_from() -> None:
    with pytest.raises(DataError, match="are the same examples"):
        check_apart(corpus(0, 9), corpus(0, 9))
    check_apart(corpus(0, 9), corpus(1, 9))
