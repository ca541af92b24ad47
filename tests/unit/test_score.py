"""Scores of models on tasks: honest intervals, constant answers beside them, order of labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bertology as bt
import planted
from bertology.cli.main import app
from bertology.cli.option_groups import data_words
from bertology.errors import CapabilityError
from bertology.metrics import find_metric
from bertology.model.encoder import Encoder
from bertology.stats.paired import score_interval
from bertology.train import speed
from bertology.train.score import score_model


@pytest.fixture
def encoder() -> Encoder:
    model = planted.model()
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    return Encoder(model, planted.tokenizer(), head="classification", name="planted")


def saved(folder: Path, encoder: Encoder) -> Path:
    encoder.model.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """The planted task as a file of one's own."""
    corpus = planted.corpus(120)
    assert corpus.task is not None
    rows = [{"said": e.text, "gold": corpus.task.labels[int(e.label or 0)]} for e in corpus]
    path = tmp_path / "reviews.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews"])
def test_a_flawless_score_is_not_certain(name: str) -> None:
    labels = np.arange(20) % 2
    metric = find_metric(name)
    found = score_interval(metric, metric.statistics(labels, labels))
    assert found.value == found.high == 1.0
    assert found.low < 0.85  # 3 of 20 wrong would not surprise


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews"])
def test_intervals_cover_the_true_score(name: str) -> None:
    """200 samples of a model that is right in 85 of 100 cases of either class."""
    rng, metric, inside = np.random.default_rng(0), find_metric(name), 0
    true = {"accuracy": 0.85, "f1": 0.85, "matthews": 0.7}[name]
    for seed in range(200):
        labels = rng.integers(0, 2, 300)
        said = np.where(rng.random(300) < 0.85, labels, 1 - labels)
        found = score_interval(metric, metric.statistics(said, labels), resamples=300, seed=seed)
        inside += found.low <= true <= found.high
    assert inside >= 182  # 95 of 100, less three standard errors


def test_a_score_says_what_a_constant_answer_would_get(encoder: Encoder) -> None:
    corpus = planted.corpus(200)
    found = score_model(encoder, corpus)
    assert found.against_constant == 1
    main = found.scores["accuracy"]
    assert main.low < main.value <= main.high
    share = np.bincount(np.asarray(corpus.labels, int)).max() / len(corpus)
    assert found.constant["accuracy"] == pytest.approx(share)
    assert "surely better than a constant answer" in found.sentence
    assert found.speed.tokens_per_second > found.speed.examples_per_second > 0


def test_labels_in_another_order_give_the_same_score(encoder: Encoder) -> None:
    """The outputs are told apart by the names in the config, not by their numbers."""
    import torch

    corpus = planted.corpus(100)
    assert corpus.task is not None
    labels = corpus.task.labels
    before = score_model(encoder, corpus)
    turned = planted.model()
    turned.config.id2label = dict(enumerate(labels[::-1]))
    with torch.no_grad():
        for parameter in (turned.classifier.weight, turned.classifier.bias):
            parameter.copy_(parameter.flip(0))
    other = Encoder(turned, planted.tokenizer(), head="classification")
    assert score_model(other, corpus).scores == before.scores


def test_in_python_a_pruned_folder_and_options_of_reading(
    encoder: Encoder, tmp_path: Path, reviews: Path
) -> None:
    folder = tmp_path / "pruned"
    bt.prune_heads(encoder, [(0, 1)]).save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    found = bt.score(str(folder), str(reviews), text="said", label="gold", limit=50)
    assert found.examples == 50
    assert found.parameters < sum(p.numel() for p in encoder.model.parameters())
    assert list(found.table().columns) == ["metric", "score", "low", "high", "constant"]
    assert "Speed: " in str(found)


def test_the_command_prints_scores_speed_and_a_file(
    encoder: Encoder, tmp_path: Path, reviews: Path
) -> None:
    folder, to = saved(tmp_path / "model", encoder), tmp_path / "score.json"
    words = ["score", str(folder), "--task", str(reviews), "--columns", "text=said,label=gold"]
    done = CliRunner().invoke(app, [*words, "--device", "cpu", "--json", str(to)])
    assert done.exit_code == 0, done.output
    for said in ("surely better than a constant answer", "95 % interval", "tokens a second"):
        assert said in done.output
    record = json.loads(to.read_text())
    assert record["examples"] == 120
    assert record["scores"]["accuracy"]["low"] < record["scores"]["accuracy"]["score"]
    assert record["against_constant"] == 1


def test_the_command_warns_of_a_model_that_knows_nothing(
    encoder: Encoder, tmp_path: Path, reviews: Path
) -> None:
    import torch

    with torch.no_grad():
        encoder.model.classifier.weight.zero_()
    folder = saved(tmp_path / "model", encoder)
    words = ["score", str(folder), "--task", str(reviews), "--columns", "text=said,label=gold"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "not surely better than always giving the same answer" in done.output.replace("\n", " ")


def test_labels_with_other_names_are_said_and_turned_ones_warned_of(
    encoder: Encoder, tmp_path: Path, reviews: Path
) -> None:
    encoder.config.id2label = {0: "negative", 1: "positive"}
    folder = saved(tmp_path / "model", encoder)
    words = ["score", str(folder), "--task", str(reviews), "--columns", "text=said,label=gold"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "Which label is which?" in refused.output
    right = CliRunner().invoke(app, [*words, "--labels", "good=positive,bad=negative"])
    assert right.exit_code == 0, right.output
    assert "good = positive" in right.output
    turned = CliRunner().invoke(app, [*words, "--labels", "good=negative,bad=positive"])
    assert "surely worse than always giving the same answer" in turned.output.replace("\n", " ")


def test_a_model_with_other_outputs_is_refused(encoder: Encoder, tmp_path: Path) -> None:
    from dataclasses import replace

    corpus = planted.corpus(20)
    assert corpus.task is not None
    three = replace(corpus, task=replace(corpus.task, labels=("a", "b", "c")))
    with pytest.raises(CapabilityError, match=r"has 2 outputs; .* needs 3"):
        score_model(encoder, three)
    done = CliRunner().invoke(app, ["score", "x", "--task", "y", "--json", str(tmp_path)])
    assert done.exit_code == 2
    assert "cannot be written" in done.output


def test_one_batch_is_timed_often(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With three times of one batch, a busy moment would decide which model is faster."""
    monkeypatch.setattr(speed, "_TIMES", 7)  # tests are content with one
    times = iter([9.0, *[0.1] * 4, *[9.0] * 3])  # the first one warms up
    monkeypatch.setattr(speed, "_seconds", lambda *_: next(times))
    found = score_model(encoder, planted.corpus(20)).speed
    assert found.examples_per_second == pytest.approx(200)
    assert not list(times)


def test_a_proposed_command_on_the_grammar_reads_its_data() -> None:
    corpus = bt.load_corpus("grammar-entailment", limit=1)
    assert data_words(corpus.origin) == "--task grammar-entailment --limit 1"
