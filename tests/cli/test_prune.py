"""`bertology prune`: what does nothing is cut, what carries the answer stays, all of it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from typer.testing import CliRunner

import bertology as bt
import planted
from bertology.cli.main import app
from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, DataError, JobError
from bertology.model.encoder import Encoder
from bertology.model.interventions import SkipLayer
from bertology.train.compress.compressing import CompressJob
from bertology.train.prune import shrink
from bertology.train.prune_judge import split_training
from bertology.train.prune_settings import PruneSettings


@pytest.fixture
def encoder() -> Encoder:
    model = planted.model()
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    return Encoder(model, planted.tokenizer(), head="classification", name="planted")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The planted task as a folder of one's own."""
    folder = tmp_path / "task"
    folder.mkdir()
    for split, size, seed in (("train", 300, 1), ("validation", 200, 2)):
        rows = [{"text": e.text, "label": planted.TASK.labels[int(e.label or 0)]}
                for e in planted.corpus(size, seed=seed)]  # fmt: skip
        (folder / f"{split}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return folder


def call(*words: Any) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["prune", *(str(w) for w in words)], prog_name="bertology")
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def test_only_the_head_that_carries_the_answer_is_left(encoder: Encoder) -> None:
    data = split_training(planted.corpus(200, seed=1), seed=0)
    found = shrink(encoder, data.ranking, data.selection, PruneSettings(max_loss=0.0))
    assert found.cut.layers == (1,)
    assert found.cut.heads == tuple((0, h) for h in range(4) if (0, h) != planted.CARRIER)
    assert found.cut.mlps == (0,)
    assert found.score == found.intact == 1.0
    assert encoder.shape.layers == 2, "the given model stays as it is"


def test_no_example_has_two_uses(encoder: Encoder) -> None:
    held_out = planted.corpus(50, seed=0)
    train = planted.corpus(200, seed=0)  # its first 50 are the held-out ones
    data = split_training(CompressJob(encoder, train, held_out, ()).unseen(), seed=0)
    ranking, selection = data.ranking, data.selection
    uses = [{e.texts for e in some} for some in (ranking, selection, held_out)]
    assert not uses[0] & uses[2]
    assert not uses[1] & uses[2]
    assert not {e.texts for e in data.training} & uses[2]
    assert not {e.id for e in ranking} & {e.id for e in selection}
    with pytest.raises(DataError, match="pruning needs 40"):
        split_training(train[:39], seed=0)


def test_the_loss_is_told_on_held_out_data(encoder: Encoder, tmp_path: Path) -> None:
    train, held_out = planted.corpus(200, seed=1), planted.corpus(150, seed=2)
    found = bt.prune(encoder, train, held_out, to=tmp_path / "small")
    assert found.loss.n == 150
    assert found.loss.value == 0.0
    assert found.loss.low < 0 < found.loss.high, "no change among 150 is no proof of none"
    assert "not surely at most 1" in found.sentence
    before, after = found.measured["parameters"]
    assert after < before


def test_a_model_that_knows_nothing_is_not_pruned(encoder: Encoder, tmp_path: Path) -> None:
    with torch.no_grad():
        encoder.model.classifier.weight.zero_()
    with pytest.raises(CapabilityError, match="does not surely beat a constant answer"):
        bt.prune(
            encoder, planted.corpus(200, seed=1), planted.corpus(50, seed=2), to=tmp_path / "x"
        )
    assert not any(tmp_path.iterdir())


def test_where_every_part_matters_nothing_is_cut(encoder: Encoder) -> None:
    data: list[Corpus] = [planted.corpus(60, seed=s) for s in (1, 2)]
    smaller = shrink(encoder, data[0], data[1], PruneSettings(max_loss=0.0)).encoder
    with pytest.raises(JobError, match="Nothing can be cut at a loss of at most 1 points"):
        shrink(smaller, data[0], data[1], PruneSettings(max_loss=1.0))


def test_whole_layers_for_plain_transformers(encoder: Encoder, task: Path, tmp_path: Path) -> None:
    model, to = tmp_path / "model", tmp_path / "small"
    encoder.model.save_pretrained(model)
    encoder.tokenizer.save_pretrained(model)
    code, said = call(model, "--task", task, "--parts", "layers", "--to", to, "--device", "cpu")
    assert code == 0, said
    assert "without layer 1" in said
    assert "load it with plain transformers" in said
    plain = transformers.AutoModelForSequenceClassification.from_pretrained(to)
    assert plain.config.num_hidden_layers == 1
    texts = ["the up down good up up", "down", "good down the the up"]
    inputs = transformers.AutoTokenizer.from_pretrained(to)(
        texts, padding=True, return_tensors="pt"
    )
    expected = encoder.run(texts, do=SkipLayer([1])).logits
    with torch.no_grad():
        torch.testing.assert_close(plain(**inputs).logits, expected, atol=1e-5, rtol=1e-5)
    code, said = call(model, "--task", task, "--to", to)
    assert code == 2
    assert "is not empty" in said


def test_a_folder_with_a_card_that_says_all_of_it(
    encoder: Encoder, task: Path, tmp_path: Path
) -> None:
    model, to = tmp_path / "model", tmp_path / "small"
    encoder.model.save_pretrained(model)
    encoder.tokenizer.save_pretrained(model)
    code, said = call(model, "--task", task, "--max-loss", 0.5, "--to", to, "--device", "cpu")
    assert code == 0, said
    assert "times as fast" in said
    assert "Next:" in said
    assert "bertology score" in said
    record = json.loads((to / "bertology.json").read_text())
    assert record["method"] == "compress"
    [step] = record["compression"]["steps"]
    assert step["method"] == "prune:method=measured,max_loss=0.5,recover=0,limit=2000"
    assert step["found"]["cut"] == {"layers": [1], "heads": [[0, 0], [0, 1], [0, 3]], "mlps": [0]}
    assert record["compression"]["loss_in_points"]["n"] == record["validation"]["size"]
    card = (to / "README.md").read_text()
    for words in ("other training examples", "95 % interval", "0.0, 0.1, 0.3", "bt.load("):
        assert words in card
    assert bt.score(str(to), str(task)).scores["accuracy"].value == 1.0


def test_the_methods_of_the_help(encoder: Encoder, task: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    encoder.model.save_pretrained(model)
    encoder.tokenizer.save_pretrained(model)
    asked = {
        "importance": ("--keep", 0.9),
        "magnitude": ("--keep", 0.9, "--limit", 60),
        "movement": ("--weights", 0.9, "--epochs", 1, "--recover-limit", 64),
    }
    for method, words in asked.items():
        to = tmp_path / method
        code, said = call(model, "--task", task, "--method", method, *words, "--to", to)
        assert code == 0, said
        zeros = "zeros save no time" in " ".join(said.split())
        assert zeros == (method != "importance")
        [step] = json.loads((to / "bertology.json").read_text())["compression"]["steps"]
        record = step["found"]
        assert record["settings"]["method"] == method
        bt.load(str(to), head="classification")
        code, said = call(model, "--task", task, "--method", method, *words, "--to", to)
        assert code == 2
        assert "is not empty" in said
    assert record["training"] == 64


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--keep", "1.5"), "above 0 and below 1"),
        (("--keep", "0.9", "--max-loss", "2"), "be left out where --max-loss is given"),
        (("--method", "lottery"), "lottery"),
        (("--method", "movement", "--parts", "heads"), "which removes single weights"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: tuple[str, ...], expected: str, encoder: Encoder, task: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    encoder.model.save_pretrained(model)
    encoder.tokenizer.save_pretrained(model)
    code, said = call(model, "--task", task, "--to", tmp_path / "x", *words)
    assert code == 2
    assert expected in " ".join(said.replace("│", " ").split())
    assert not (tmp_path / "x").exists()
