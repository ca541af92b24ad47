"""`bertology report`: a page from a store or from nothing, files for papers, clear refusals."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from typer.testing import CliRunner

import planted
import tiny
from bertology.cli.main import app
from bertology.model.compressed import bilstm
from bertology.results.store import Store
from bertology.run import measuring
from bertology.studies import STUDIES
from made_compressions import clean
from toy_atlas import TUNED_A, Toy, make


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def call(*arguments: Any) -> tuple[int, str]:
    words = ["report", *(str(a) for a in arguments)]
    done = CliRunner().invoke(app, words, prog_name="bertology")
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def test_a_page_from_a_store(toy_store: Store, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.html"
    code, said = call("toy", "--store", toy_store.url, "--to", page, "--task", "task-a")
    assert code == 0, said
    assert f"Page:  {page}" in said
    text = page.read_text(encoding="utf-8")
    assert "fine-tuned on task-a" in text
    assert "fine-tuned on task-b" not in text
    assert str(tmp_path) not in text


def test_before_and_after_fine_tuning_and_two_models(toy_store: Store, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    given = ("toy", "--store", toy_store.url, "--to", page, "--compare")
    assert call(*given, "task-a")[0] == 0
    assert "toy and toy fine-tuned on task-a" in page.read_text(encoding="utf-8")
    assert call(*given, TUNED_A)[0] == 0
    assert "toy and toy-tuned" in page.read_text(encoding="utf-8")
    origin = {"name": "toy", "fingerprint": "aaaa11112222", "task": "task-a"}
    again = {"name": "/far/away/a-2/toy-tuned", "fingerprint": "abab", "tuned_from": origin}
    toy_store.save(make(again, "task-a"))
    assert call(*given, "task-a")[0] == 0  # two models learnt it
    assert "toy and toy fine-tuned on task-a" in page.read_text(encoding="utf-8")
    code, said = call(*given, "mrpc")  # a task, and no model's name
    assert code == 2
    assert "bertology finetune toy mrpc" in said
    assert "--model mrpc" not in said
    code, said = call(*given, "nobody")
    assert code == 2
    assert "has no results of 'nobody'" in said


def test_files_for_papers(
    toy_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Toy.figures
    monkeypatch.setattr(Toy, "figures", lambda self: {"heads": whole(self)["heads"]})
    page, folder = tmp_path / "page.html", tmp_path / "files"
    code, said = call("other", "--store", toy_store.url, "--to", page, "--export", folder)
    assert code == 0, said
    endings = {p.suffix for p in folder.rglob("*.*")}
    assert endings == {".svg", ".png", ".pdf", ".csv", ".tex", ".txt"}
    assert f"in {folder}" in said


def test_what_cannot_be_done_is_said_with_what_can(toy_store: Store, tmp_path: Path) -> None:
    code, said = call("nobody", "--store", toy_store.url)
    assert code == 2
    for text in ("other, toy", "bertology report nobody --measure", "bertology verify nobody"):
        assert text in said
    code, said = call("toy", "--store", toy_store.url, "--task", "task-z")
    assert code == 2
    assert "Did you mean 'task-" in said
    assert "bertology finetune" not in said
    code, said = call("toy", "--store", toy_store.url, "--task", "mrpc")
    assert code == 2
    assert "bertology finetune toy mrpc" in said
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, said = call("toy", "--store", toy_store.url, "--to", blocked / "page.html")
    assert code == 2
    assert "--to" in said


def test_a_page_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.save_reader(tmp_path / "tiny-reader")
    monkeypatch.setattr(measuring, "EXAMPLES", 4)
    for name in STUDIES:
        monkeypatch.setattr(STUDIES.get(name), "standard", name == "attention-maps")
    monkeypatch.setattr("bertology.report.atlas.chapters._drawn", lambda result, name: b"<svg/>")
    page, store = tmp_path / "page.html", tmp_path / "results"
    given = (model, "--measure", "--store", store, "--to", page)
    code, said = call(*given)
    assert code == 0, said
    assert "1/1  attention-maps over grammar (4 examples)" in said
    text = page.read_text(encoding="utf-8")
    assert "<h1>tiny-reader</h1>" in text
    assert "Attention to the previous token" in text
    assert str(tmp_path) not in text
    made = sorted(store.rglob("result.json"))
    when = [p.stat().st_mtime_ns for p in made]
    assert call(*given)[0] == 0
    assert [p.stat().st_mtime_ns for p in made] == when  # nothing is run twice
    # On data of one's own.
    own = tmp_path / "films-test.csv"
    own.write_text("review;stars\n" + "".join(f"a {w} b;{i % 2}\n" for i, w in enumerate("cdefgh")))
    code, said = call(*given, "--task", own, "--columns", "text=review,label=stars", "--limit", 5)
    assert code == 0, said
    assert "1/1  attention-maps over films (5 examples)" in said
    assert "films" in page.read_text(encoding="utf-8")
    code, said = call(*given, "--corpus", own, "--columns", "text=review")
    assert code == 0, said
    assert "attention-maps over films (4 examples)" in said


def test_options_of_measuring_without_measuring(toy_store: Store, tmp_path: Path) -> None:
    for option, value in (("--corpus", "a.csv"), ("--columns", "text=a"), ("--limit", "3")):
        code, said = call("toy", "--store", toy_store.url, option, value)
        assert code == 2
        assert f"'{option}' option of report must be given together with --measure" in said
    code, said = call("toy", "--measure", "--task", "a.csv", "--corpus", "b.csv")
    assert code == 2
    assert "be left out when --task is given" in said


def planted_folder(folder: Path, *, flipped: bool = False) -> Path:
    """The planted classifier; flipped: one weight has another sign, and all answers are `bad`."""
    found = clean()
    if flipped:
        with torch.no_grad():
            found.model.classifier.weight[0] *= -1
    found.model.save_pretrained(folder)
    found.tokenizer.save_pretrained(folder)
    return folder


def test_two_models_are_measured_and_set_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in STUDIES:
        kind = STUDIES.get(name)
        monkeypatch.setattr(kind, "standard", name == "attention-maps")
        if name not in ("answers", "agreement"):
            monkeypatch.setattr(kind, "compared_over", ())
    monkeypatch.setattr("bertology.report.atlas.chapters._drawn", lambda result, name: b"<svg/>")
    data = planted.written(tmp_path / "data", validation=40)
    original = planted_folder(tmp_path / "original")
    small, page = planted_folder(tmp_path / "small", flipped=True), tmp_path / "page.html"
    vectors = torch.randn(5 + len(planted.WORDS), 8)
    lstm = tmp_path / "lstm"
    shutil.copytree(original, lstm)
    found = bilstm.make(vectors, labels=2)
    found.config.id2label = dict(enumerate(planted.TASK.labels))
    found.save_pretrained(lstm)
    given = ("--measure", "--store", tmp_path / "results", "--to", page, "--task", data)
    code, said = call(small, "--compare", original, *given)
    assert code == 0, said
    assert "Answers over data" in said
    assert "100.0 points" in said
    good = sum(e.get("label") == 1 for e in planted.corpus(40, seed=2))
    assert f"{good} of 40 examples are answered differently: {good} are right for original" in said
    assert "Agreement over grammar-agreement: 'small' was saved" in said
    assert "'data', does not" in said  # pairs as in HANS are no question for these models
    text = page.read_text(encoding="utf-8")
    assert f"Only original is right: {good}" in text
    assert "What cannot be compared" in text
    assert str(tmp_path) not in text
    code, said = call(lstm, "--compare", original, *given)
    assert code == 0, said
    assert "is a BiLSTM: it has no layers of attention to look into" in said
    assert "Answers over data" in said
    code, said = call(small, "--compare", tmp_path / "nowhere", *given)
    assert code == 2
    assert "nowhere" in said


def inference_folder(folder: Path, *, layers: int) -> Path:
    """A tiny classifier of what follows from a text, with answers of its own."""
    from bertology.data.loading import load_corpus
    from bertology.model.encoder import Encoder

    tokens = Encoder.load(str(tiny.save_reader(folder, layers=layers)), device="cpu").tokenizer
    task = load_corpus("grammar-entailment", limit=2).task
    assert task is not None
    torch.manual_seed(layers)
    config = hf.BertConfig(
        vocab_size=len(tokens), hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=96, id2label=dict(enumerate(task.labels)),
        initializer_range=0.3,
    )  # fmt: skip
    hf.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_all_that_a_compressed_model_loses_is_really_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is switched off that two classifiers can be asked: only probes are few and short."""
    probes = STUDIES.get("sentence-probes")
    monkeypatch.setattr(probes, "offers", {n: probes.offers[n] for n in ("bigram-shift",)})
    monkeypatch.setattr(probes, "copies", 2)
    monkeypatch.setattr("bertology.train.probes.battery._STEPS", (2, 4))
    monkeypatch.setattr("bertology.train.probes.battery._LOOKS", (1, 1))
    monkeypatch.setattr("bertology.studies.designs.probes._FEWEST", 3)
    for name in STUDIES:  # those that set nothing side by side are not what is looked at here
        monkeypatch.setattr(STUDIES.get(name), "standard", name == "map-types")
    monkeypatch.setattr("bertology.report.atlas.chapters._drawn", lambda result, name: b"<svg/>")
    original, small = (
        inference_folder(tmp_path / name, layers=layers)
        for name, layers in (("original", 2), ("small", 1))
    )
    page = tmp_path / "page.html"
    code, said = call(
        small, "--compare", original, "--measure", "--task", "grammar-entailment", "--limit", 100,
        "--store", tmp_path / "results", "--to", page,
    )  # fmt: skip
    assert code == 0, said
    rows = {" ".join(line.split()) for line in said.splitlines()}
    for words in (
        "right answers, all examples",
        "right answers, subsequence, non-entailment",
        "maps named heterogeneous",
        "probe of the best layer: two neighbouring words exchanged",
        "outlier dimensions of the weights",
    ):
        [row] = [row for row in rows if row.startswith(words)][:1] or [""]
        assert row.count("[") == 3 or row.endswith("exact"), words  # two numbers, a difference
    assert "grammar-heuristics: " in said
    # The only two things that these models cannot be asked.
    refused = [line for line in rows if line.startswith("Note: not compared")]
    assert len(refused) == 2, refused
    assert any("Agreement" in line and "predicts no masked words" in line for line in refused)
    assert any("Single heads and layers" in line for line in refused)
    assert str(tmp_path) not in page.read_text(encoding="utf-8")
