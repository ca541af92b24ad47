"""Training after the cut, a search that can be stopped, and examples that chose nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import bertology as bt
import planted
import prune_killed
import tiny
from bertology.errors import InterruptedRunError, ParameterError
from bertology.model.encoder import Encoder
from bertology.train.answers import answer, encode_for
from bertology.train.compress.compressing import CompressJob
from bertology.train.compress.settings import CompressSettings
from bertology.train.compress.work import CompressWatch, Work
from bertology.train.history import Step as TrainingStep
from bertology.train.part_ranking import GivenAnswers, divergence, without
from bertology.train.prune import Cut, Progress, Step, cut_of, replay, shrink
from bertology.train.prune_judge import learned_texts, split_training
from bertology.train.prune_settings import PruneSettings

TRAIN, HELD_OUT = planted.corpus(200, seed=1), planted.corpus(80, seed=2)


def encoder(labels: tuple[str, ...] = planted.TASK.labels) -> Encoder:
    model = planted.model(spoil=2.0)
    model.config.id2label = dict(enumerate(labels))
    return Encoder(model, planted.tokenizer(), head="classification", name="planted")


def test_outputs_keep_their_meaning_whatever_the_order_of_labels(tmp_path: Path) -> None:
    """The data say bad, good; the model says good, bad: training must not turn it around."""
    given = encoder(("good", "bad"))
    with torch.no_grad():
        given.model.classifier.weight.copy_(given.model.classifier.weight.flip(0))
    encoded = encode_for(given, HELD_OUT)
    before = answer(given, encoded, planted.TASK).score
    assert 0.5 < before < 0.9, "the spoiler disturbs it"
    quick = CompressSettings(epochs=3, batch_size=16, rate=1e-2)
    learning = CompressJob(given, TRAIN, HELD_OUT, ()).learning()
    history = Work(given, given, learning, settings=quick, folder=tmp_path).train_on(given)
    assert history is not None
    assert history.epochs[-1].loss < history.epochs[0].loss
    assert answer(given, encoded, planted.TASK).score > before + 0.1
    assert given.config.id2label == {0: "good", 1: "bad"}


def test_stopped_and_continued_is_the_same_model(tmp_path: Path) -> None:
    asked = {"max_loss": 1.0, "recover": 3, "cut_loss": 10.0}
    whole = bt.prune(encoder(), TRAIN, HELD_OUT, to=tmp_path / "whole", **asked)
    assert "after 3 epochs of training" in whole.sentence

    def stop(step: TrainingStep) -> None:
        if step.epoch is None and step.done > 0.5 * step.total:
            raise KeyboardInterrupt

    place, said, watch = tmp_path / "stopped", [], prune_killed.trainings(stop)
    with pytest.raises(InterruptedRunError, match="finished epochs are kept"):
        bt.prune(encoder(), TRAIN, HELD_OUT, to=place, **asked, watch=watch)
    assert not place.exists()
    watch = CompressWatch(tell=said.append)
    again = bt.prune(encoder(), TRAIN, HELD_OUT, to=place, **asked, watch=watch)
    assert again.cut == whole.cut
    assert any("made before the stop" in line for line in said)
    assert any("continuing the training after epoch 1 of 3" in line for line in said)
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "stopped")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["stopped", "whole"], "nothing is left"


def test_a_search_goes_on_after_its_last_cut(tmp_path: Path) -> None:
    data = split_training(TRAIN, seed=0)
    settings, progress = PruneSettings(max_loss=2.0), Progress(tmp_path / "cuts.json")
    whole = shrink(encoder(), data.ranking, data.selection, settings, progress=progress)
    steps = progress.found()
    assert len(steps) > 1
    for number in range(1, len(steps)):
        progress.keep(steps[:number])
        again = shrink(encoder(), data.ranking, data.selection, settings, progress=progress)
        assert again.cut == whole.cut
        assert again.score == whole.score
        assert again.tried < whole.tried
        assert progress.found() == steps


def test_steps_are_counted_by_the_numbers_of_the_given_model() -> None:
    model = tiny.model("bert")
    steps = [
        Step("mlps", (2,), 0.9),
        Step("layers", (1,), 0.9),
        Step("heads", ((1, 3),), 0.9),  # of what was layer 2
        Step("mlps", (0,), 0.9),
    ]
    assert cut_of(steps, 3) == Cut(layers=(1,), heads=((2, 3),), mlps=(0, 2))
    smaller = replay(Encoder(model), steps)
    assert smaller.shape.layers == 2
    assert smaller.config.bertology_pruned_heads == {"1": [3]}


def test_progress_that_is_damaged_is_not_used(tmp_path: Path) -> None:
    path, steps = tmp_path / "p.json", [Step("heads", ((0, 1), (1, 2)), 0.5)]
    Progress(path).keep(steps)
    assert Progress(path).found() == steps
    for text in ("[", "{}", '[{"part": "x"}]', "3"):
        path.write_text(text)
        assert Progress(path).found() == []
    assert Progress().found() == []


def test_what_the_model_learned_from_is_used_last(tmp_path: Path) -> None:
    train = planted.corpus(500, seed=1)
    learned = frozenset(e.texts for e in train[:200])
    data = split_training(train, seed=0, learned=learned)
    assert not data.seen
    for part in (data.ranking, data.selection):
        assert not learned & {e.texts for e in part}
    assert learned & {e.texts for e in data.training}, "recovery may learn from all"
    few = split_training(train[:220], seed=0, learned=learned)
    assert few.seen, "too few are left: all are used, and it is told"
    drawn = split_training(train, seed=0, limit=100)
    assert len(drawn.ranking) + len(drawn.selection) == 100


def test_the_record_tells_what_the_model_learned_from(tmp_path: Path) -> None:
    rows = [json.dumps({"text": e.text, "label": "good"}) for e in TRAIN[:5]]
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    record = {"schema": 1, "train": {"origin": {"name_or_path": str(tmp_path / "train.jsonl")}}}
    (tmp_path / "bertology.json").write_text(json.dumps(record))
    assert learned_texts(str(tmp_path)) == {e.texts for e in TRAIN[:5]}
    (tmp_path / "train.jsonl").unlink()
    assert learned_texts(str(tmp_path)) == frozenset()
    assert learned_texts("bertology-mini") == frozenset()


def test_a_loss_that_is_not_sure_is_not_allowed() -> None:
    """Without any allowance nothing goes that changes answers both ways, whatever the balance."""
    given = encoder()
    data = split_training(TRAIN, seed=0)
    settings = PruneSettings(max_loss=0.0)
    found = shrink(given, data.ranking, data.selection, settings)
    flips = answer(found.encoder, encode_for(given, data.selection), planted.TASK).predictions
    same = answer(given, encode_for(given, data.selection), planted.TASK).predictions
    gain = found.score - found.intact
    assert gain > 0 or (flips == same).all()


def test_options_of_the_training_need_a_training(tmp_path: Path) -> None:
    for name in ("cut_loss", "recover_limit"):
        with pytest.raises(ParameterError, match="be left out without a training"):
            bt.prune(encoder(), TRAIN, HELD_OUT, to=tmp_path / "x", **{name: 2})
    with pytest.raises(ParameterError, match="below 100"):
        bt.prune(encoder(), TRAIN, HELD_OUT, to=tmp_path / "x", recover=1, cut_loss=200.0)
    found = bt.prune(
        encoder(), TRAIN, HELD_OUT, to=tmp_path / "x", recover=1, recover_limit=64, limit=None
    )
    record = json.loads((found.folder / "bertology.json").read_text())
    [step] = record["compression"]["steps"]
    asked = {"recover": 1, "cut_loss": None, "recover_limit": 64, "limit": None}
    assert asked.items() <= step["found"]["settings"].items()
    assert "trained for 1 epoch on 64" in (found.folder / "README.md").read_text()


def test_parts_are_ranked_by_how_far_answers_move() -> None:
    given = encoder()
    answers = GivenAnswers(given, TRAIN[:40].texts, tokens_per_batch=512)
    assert answers.change(given) == pytest.approx(0, abs=1e-6)
    changes = [answers.change(given, without("layers", i)) for i in range(2)]
    assert min(changes) > 0.01
    smaller = replay(given, [Step("layers", (1,), 0.0)])
    assert answers.change(smaller) == pytest.approx(changes[1], rel=1e-4)
    assert answers.change(given, without("mlps", 0)) < 1e-6, "the planted MLPs give nothing"
    numbers = divergence(torch.tensor([[1.0], [3.0]]), torch.tensor([[2.0], [3.0]]))
    assert numbers.tolist() == [1.0, 0.0], "regression: squared differences"
