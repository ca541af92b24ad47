"""Fragments: lessons do what is foreseen, what is planted is found, and noise bears nothing out."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr
from torch import Tensor, nn

import bertology as bt
import tiny
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.loading import load_corpus
from bertology.data.tasks import THREE_WAY, TWO_WAY, inference_corpus
from bertology.errors import (
    BertologyError,
    CapabilityError,
    DataError,
    ParameterError,
    UnknownNameError,
)
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.balanced import balanced_accuracy
from bertology.studies.study import Context
from bertology.studies.training.fragments import (
    NO_STEPS,
    NOT_LEARNT,
    NOT_TAUGHT,
    Fragments,
    FragmentsResult,
)
from bertology.studies.training.fragments.data import Source, read_data
from bertology.studies.training.fragments.scores import (
    HYPOTHESIS,
    INOCULATED,
    OLD,
    TAUGHT,
    part_name,
)
from bertology.train.encoded import encode
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.lessons import Exam, Lesson, teach
from result_conformance import ResultConformance, claims_of

Numbers = np.ndarray[Any, np.dtype[np.float64]]
AS_PUBLISHED = {
    "old": 0.85, "zero": 0.5, TAUGHT: 0.9, INOCULATED: 0.9, HYPOTHESIS: 0.5,
    "after-taught": 0.7, "after-inoculated": 0.845, "step": -0.04,
}  # fmt: skip
FRAGMENTS = ("boolean", "comparative", "negation")


def made_up(
    skills: dict[str, float] | None = None,
    *,
    seeds: int = 3,
    draw: int = 0,
    each: int = 150,
    old_size: int = 400,
    classes: int = 2,
    luck: float = 0.01,
    amounts: tuple[int, ...] = (0, 30, 100),
    steps: bool = True,
) -> Result:
    """Answers that are right with these probabilities; pairs are easy or hard for all models alike.

    `step` is added to the skill of a taught model for each step beyond the mean. After 30 examples
    half of the way from `zero` is gone. A wrong answer is any of the others.
    """
    skill = AS_PUBLISHED | (skills or {})
    rng = np.random.default_rng(draw)
    study = Fragments(seeds=seeds, amounts=amounts)
    size = each * len(FRAGMENTS)
    # Two labels are three of which two count as one, as in the bundled corpora.
    labels = np.minimum(np.arange(size) % 3, classes - 1).astype(float)
    group = np.arange(size) // each
    taken = rng.integers(1, 5, size) * 1.0
    old_labels = np.arange(old_size) % classes * 1.0
    hard, old_hard = rng.random(size), rng.random(old_size)

    def said(right: Numbers, truth: Numbers) -> Numbers:
        wrong = (truth + rng.integers(1, classes, len(truth))) % classes
        return np.where(right, truth, wrong)

    def answers(p: float, hardness: Numbers, truth: Numbers, more: Numbers | float = 0) -> Numbers:
        by_luck = rng.normal(0, luck)
        level = _mixed(np.clip(p + more + by_luck, 0.001, 0.999))
        return said((hardness + rng.random(len(truth))) / 2 < level, truth)

    parts: dict[str, xr.Dataset] = {}
    for seed in range(seeds):
        parts[f"{OLD}-seed-{seed}"] = xr.Dataset(
            {
                "said": ("example", answers(skill["zero"], hard, labels)),
                "old_said": ("old_example", answers(skill["old"], old_hard, old_labels)),
                "labels": ("example", labels),
                "old_labels": ("old_example", old_labels),
                "group": ("example", group),
                "steps": ("example", taken if steps else np.full(size, np.nan)),
            },
            {"fragment": list(FRAGMENTS)},
            {"classes": classes, "old_task": "made-up", "old_size": 1000, "train_fingerprint": "x"},
        )
        for at in range(len(FRAGMENTS)):
            here = group == at
            for k in amounts:
                if not k:
                    continue
                share = 1.0 if k == max(amounts) else 0.5
                rows = []
                for method in (TAUGHT, INOCULATED, HYPOTHESIS):
                    p = skill["zero"] + share * (skill[method] - skill["zero"])
                    more = 0.0 if method == HYPOTHESIS else skill["step"] * (taken[here] - 2.5)
                    rows.append(answers(p, hard[here], labels[here], more))
                kept = [
                    answers(
                        skill["old"] + share * (skill[f"after-{m}"] - skill["old"]),
                        old_hard,
                        old_labels,
                    )
                    for m in (TAUGHT, INOCULATED)
                ]
                parts[part_name(at, k, seed)] = xr.Dataset(
                    {
                        "said": (("method", "example"), rows),
                        "old_said": (("method", "old_example"), [*kept, np.full(old_size, np.nan)]),
                        "mixture": ("candidate", [0, 1]),
                        "epoch": ("candidate", [1, 1]),
                        "deciding_new": ("candidate", [0.5, 0.6]),
                        "deciding_old": ("candidate", [0.8, 0.8]),
                        "chosen": 1,
                    },
                    {"method": [TAUGHT, INOCULATED, HYPOTHESIS]},
                )
    about = {"name": "m", "fingerprint": "f"}
    corpus = {"name": "made-up", "fingerprint": "c"}
    return study.conclude(parts, Provenance("fragments", 1, {}, about, corpus))


def _mixed(share: Numbers) -> Numbers:
    """Where the mean of two uniform numbers lies below with this probability."""
    return np.where(share <= 0.5, np.sqrt(share / 2), 1 - np.sqrt((1 - share) / 2))


class WordSum(nn.Module):
    """Adds up a weight for each word: what a lesson does to each weight can be foreseen."""

    base_model_prefix = "words"

    def __init__(self, vocabulary: int, classes: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, classes)
        nn.init.zeros_(self.words.weight)
        self.config = SimpleNamespace(
            num_labels=classes, model_type="bert", max_position_embeddings=64, name_or_path="words",
            id2label={}, label2id={}, problem_type="", hidden_size=1000, num_hidden_layers=1,
            num_attention_heads=1,
        )  # fmt: skip

    @property
    def base_model(self) -> nn.Module:
        return self.words

    @property
    def device(self) -> torch.device:
        return self.words.weight.device

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **more: Tensor) -> SimpleNamespace:
        each = self.words(input_ids) * attention_mask[..., None]
        return SimpleNamespace(logits=each.sum(1))


WORDS = ["cat", "dog", "up", "down", "sun", "moon", "red", "blue"]
INFERENCE = Task("inference", "classification", TWO_WAY, ("accuracy",), pair=True)
PAIRS = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL})


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up()


# What is concluded -------------------------------------------------------------------------------


def test_what_is_planted_is_found() -> None:
    result = made_up({"after-inoculated": 0.85}, seeds=5, old_size=2000, luck=0.003)
    found = result.evidence()
    assert found["zero_shot_loss"].value == pytest.approx(0.35, abs=0.06)
    assert found["taught_gain"].value == pytest.approx(0.4, abs=0.06)
    assert found["old_task_loss"].value == pytest.approx(0, abs=0.01)
    assert found["inoculation_saves"].value == pytest.approx(0.145, abs=0.04)
    assert found["score_per_step"].value == pytest.approx(-0.04, abs=0.02)
    assert claims_of(result) == {
        "primer-semantics.inference-fails-on-fragments": "holds",
        "primer-semantics.fragments-can-be-taught": "holds",
        "primer-semantics.teaching-fragments-keeps-the-old-task": "holds",
        "primer-semantics.inoculation-keeps-more": "holds",
        "primer-world.accuracy-drops-with-steps": "holds",
    }
    assert "teaching 100 examples surely gains" in result.answer
    curve = result.table("curve").set_index(["amount", "method"])["score"]
    assert curve[0, ""] < curve[30, INOCULATED] < curve[100, INOCULATED]
    assert len(result.table("choices")) == 3 * 2 * 5


def test_scores_are_those_of_a_plain_count() -> None:
    """One fragment, all by hand: means over labels of shares, then over seeds."""
    result = made_up(each=60, seeds=2)
    table = result.table("fragments").set_index("fragment")
    assert table.loc["all, mean", "zero_shot"] == pytest.approx(
        table.loc[["boolean", "comparative", "negation"], "zero_shot"].mean()
    )
    assert table.loc["all, mean", "old_loss"] == pytest.approx(
        table.loc[["boolean", "comparative", "negation"], "old_loss"].mean()
    )
    said, labels = [0, 0, 0, 1], [0, 1, 1, 1]
    assert balanced_accuracy(said, labels) == pytest.approx((1 + 1 / 3) / 2)
    assert balanced_accuracy([0] * 4, labels) == 0.5


def test_the_slope_is_that_of_least_squares_within_fragment_and_label() -> None:
    from bertology.studies.training.fragments.scores import FragmentRuns

    rng = np.random.default_rng(3)
    n = 240
    group, labels, steps = (rng.integers(0, m, n) for m in (2, 2, 4))
    right = (rng.random((2, n)) < 0.5 + 0.1 * labels + 0.05 * steps) * 1.0
    runs = FragmentRuns(
        ("a", "b"), group, labels * 1.0, steps * 1.0, np.zeros(9), 2, right, np.ones((2, 9)),
        {}, {}, 0.95,
    )  # fmt: skip
    design = np.column_stack(
        [steps, *((group == g) & (labels == y) for g in (0, 1) for y in (0, 1))]
    ).astype(float)
    expected = np.linalg.lstsq(design, right.mean(0), rcond=None)[0][0]
    found = runs.per_step(right, [0, 1])
    assert found is not None
    assert found.value == pytest.approx(expected)
    assert found.low < expected < found.high


def test_what_was_not_learnt_is_not_judged() -> None:
    nothing = made_up({"old": 0.5, "zero": 0.5, TAUGHT: 0.5, INOCULATED: 0.5, "step": 0.0})
    assert set(claims_of(nothing).values()) == {"not-applicable"}
    assert set(nothing.reasons().values()) == {NOT_LEARNT}
    assert "Nothing is sure" in nothing.answer
    untaught = made_up({TAUGHT: 0.5, INOCULATED: 0.5, "step": 0.0})
    reasons = untaught.reasons()
    assert reasons["old_task_loss"] == reasons["score_per_step"] == NOT_TAUGHT
    assert claims_of(untaught)["primer-semantics.fragments-can-be-taught"] != "holds"
    assert made_up(steps=False).reasons() == {"score_per_step": NO_STEPS}


def test_words_of_the_hypothesis_are_no_reasoning() -> None:
    result = made_up({"hypothesis": 0.9})
    assert claims_of(result)["primer-semantics.fragments-can-be-taught"] != "holds"


def test_one_seed_decides_nothing() -> None:
    result = made_up(seeds=1)
    assert set(claims_of(result).values()) == {"inconclusive"}
    assert math.isnan(result.evidence()["taught_gain"].low)


def test_three_labels_have_another_chance() -> None:
    result = made_up({"zero": 1 / 3, "hypothesis": 1 / 3}, classes=3)
    assert "chance is 33 %" in result.headline()
    assert result.evidence()["zero_shot_score"].value == pytest.approx(1 / 3, abs=0.05)


def test_zero_shot_alone_is_an_answer() -> None:
    result = made_up(amounts=(0,))
    assert [d.name for d in result.drawings()] == ["fragments", "steps"]
    assert claims_of(result)["primer-semantics.inference-fails-on-fragments"] == "holds"
    assert "none taught" in result.headline()


# Lessons -----------------------------------------------------------------------------------------


def pairs(rule: str, size: int, seed: int) -> Corpus:
    """Old: a cat entails, up does not. New: the other way round, and a dog or down goes with it.

    So weights of dog and down can tell the new task and leave cat and up to the old one; but who
    sees new examples only has no reason to leave them.
    """
    rng, examples = random.Random(seed), []
    for i in range(size):
        label = rng.randrange(2)
        told = (
            ["cat", "up"][label : label + 1]
            if rule == "old"
            else [["up", "down"], ["cat", "dog"]][label]
        )
        words = [*told, *rng.choices(WORDS[4:], k=2)]
        rng.shuffle(words)
        examples.append(Example(f"{rule}-{i}", " ".join(words), rng.choice(WORDS[4:]), label))
    return Corpus(rule, examples, PAIRS, INFERENCE)


def test_new_examples_alone_undo_the_old_task_and_inoculation_keeps_it() -> None:
    tokenizer = tiny.tokenizer(WORDS)
    model: Any = WordSum(len(tokenizer), 2)
    old = pairs("old", 200, 1)
    settings = FinetuneSettings(epochs=5, learning_rate=0.1, warmup=0.0, weight_decay=0.0)
    finetune(model, tokenizer, old, old, settings=settings)
    before = {n: w.clone() for n, w in model.state_dict().items()}
    new, dev = pairs("new", 100, 2), (pairs("new", 60, 3), pairs("old", 60, 4))
    scored = (pairs("new", 80, 5), pairs("old", 80, 6))
    encoded = [encode(c, tokenizer, 32) for c in (*dev, *scored)]
    exam = Exam(INFERENCE, *encoded)
    lesson = Lesson(model, tokenizer, new, old, replace(settings, epochs=20), updates=10)
    found = teach(lesson, exam, mixtures=(1,))
    labels = [c.labels for c in scored]
    plain = [
        balanced_accuracy(a, b)
        for a, b in zip((found.plain.new, found.plain.old), labels, strict=True)
    ]
    kept = [
        balanced_accuracy(a, b)
        for a, b in zip((found.chosen.new, found.chosen.old), labels, strict=True)
    ]
    assert plain[0] == pytest.approx(1.0)
    assert plain[1] < 0.6
    assert min(kept) > 0.95
    best = found.candidates[found.best]
    assert best.score == max(c.score for c in found.candidates)
    assert all(torch.equal(before[n], w) for n, w in model.state_dict().items())
    again = teach(lesson, exam, mixtures=(1,))
    np.testing.assert_array_equal(found.chosen.new, again.chosen.new)
    assert found.candidates == again.candidates


def test_few_examples_are_seen_more_often() -> None:
    tokenizer = tiny.tokenizer(WORDS)
    model: Any = WordSum(len(tokenizer), 2)
    few = encode(pairs("new", 20, 3), tokenizer, 32)
    lesson = Lesson(
        model, tokenizer, pairs("new", 10, 2), pairs("old", 10, 1), FinetuneSettings(epochs=2), 30
    )
    found = teach(lesson, Exam(INFERENCE, few, few, few, few), mixtures=())
    assert [c.epoch for c in found.candidates] == [6, 12, 18, 24, 30]


# Data --------------------------------------------------------------------------------------------


def test_two_and_three_labels_become_one_task() -> None:
    corpus = load_corpus("grammar-fragments", limit=42)
    two = inference_corpus(corpus, three_way=False)
    assert two.task is not None
    assert two.task.labels == TWO_WAY
    assert [e.label for e in two] == [min(int(e.get("label")), 1) for e in corpus]
    assert inference_corpus(corpus, three_way=True).labels == corpus.labels
    swapped = Corpus(
        "wnli",
        [Example("0", "a", "b", 1)],
        PAIRS,
        Task("wnli", "classification", TWO_WAY[::-1], pair=True),
    )
    assert inference_corpus(swapped, three_way=False).labels == [0]
    with pytest.raises(CapabilityError, match="three are needed"):
        inference_corpus(swapped, three_way=True)
    with pytest.raises(CapabilityError, match="no task of inference: its labels are cold, warm"):
        inference_corpus(
            replace(swapped, task=Task("x", "classification", ("cold", "warm"), pair=True)),
            three_way=False,
        )
    assert set(THREE_WAY) > {"neutral"}


def test_nothing_that_is_scored_is_learnt_or_decides() -> None:
    corpus = load_corpus("grammar-fragments", limit=210)
    old = Source("grammar-entailment", "train", "validation", 200, 50)
    data = read_data(corpus, old, fragments=("negation",), most=40, deciding=20)
    assert len(data.old_train) == 180
    scored = {e.texts for e in data.scored} | {e.texts for e in data.old_scored}
    for learnt in (
        data.old_train,
        data.old_deciding,
        *data.pools.values(),
        *data.deciding.values(),
    ):
        assert not scored & {e.texts for e in learnt}
    assert not {e.texts for e in data.pools["negation"]} & {
        e.texts for e in data.deciding["negation"]
    }
    few, many = (data.lesson("negation", k, 1) for k in (10, 30))
    assert few.examples == many.examples[:10]
    assert data.lesson("negation", 10, 2).examples != few.examples


def test_what_cannot_be_is_refused() -> None:
    for wrong in ({"amounts": ()}, {"amounts": (-1,)}, {"amounts": (3, 3)}, {"mixtures": (0,)}):
        with pytest.raises(ParameterError, match="be numbers"):
            Fragments(**wrong)  # type: ignore[arg-type]
    corpus = load_corpus("grammar-fragments", limit=210)
    with pytest.raises(UnknownNameError, match="negation"):
        Fragments(fragments=("negatoin",), amounts=(0,)).data(corpus)
    with pytest.raises(CapabilityError, match="no task of inference"):
        Fragments(nli="grammar-paraphrase", nli_examples=150, amounts=(0,)).data(corpus)
    with pytest.raises(DataError, match="No fragment of 'grammar-fragments' has 10 examples"):
        Fragments(amounts=(0,)).data(load_corpus("grammar-fragments", limit=40))
    small = Source("grammar-entailment", "train", "validation", 50, 50)
    with pytest.raises(DataError, match=r"50 examples to learn from.*102 are needed"):
        read_data(corpus, small)
    with pytest.raises(DataError, match="no split 'lessons' to teach its fragments from"):
        Fragments(train_split="lessons", amounts=(0, 20), nli_examples=150).data(corpus)


# The study ---------------------------------------------------------------------------------------


@cache
def encoder() -> Encoder:
    return Encoder(tiny.model("bert"), tiny.tokenizer(WORDS), name="tiny")


def written(folder: Path) -> tuple[Corpus, str]:
    """An old task, and two fragments with their steps, as files."""
    rng = random.Random(7)
    for name in ("old", "fragments"):
        (folder / name).mkdir()
        for split, size in (("train", 140), ("validation", 60)):
            rows = []
            for i in range(size):
                label = rng.choice(TWO_WAY)
                word = "cat" if label == TWO_WAY[0] else "dog"
                text = " ".join([word, *rng.choices(WORDS[2:], k=3)])
                row = {"text": text, "text_b": f"{rng.choice(WORDS[2:])} {i % 7}", "label": label}
                more = {"group": ("one", "two")[i % 2], "steps": 1 + i % 3}
                rows.append(json.dumps(row | (more if name == "fragments" else {})))
            (folder / name / f"{split}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return load_corpus(str(folder / "fragments")), str(folder / "old")


SMALL = {
    "seeds": 2, "amounts": (0, 16), "epochs": 1, "lesson_epochs": 1, "updates": 2, "deciding": 20,
}  # fmt: skip


def test_the_whole_study_runs_resumes_and_scores_as_transformers_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertology.train import lessons

    corpus, old = written(tmp_path)
    how = {**SMALL, "nli": old}
    store = tmp_path / "store"
    whole = bt.run("fragments", encoder(), task=corpus, store=str(store), **how)
    assert isinstance(whole, FragmentsResult)
    assert "2 fragments (2 with all labels), 60 pairs" in whole.headline()
    # A run that stops in its third lesson goes on from there, and ends with the same numbers.
    done, real = [0], lessons.teach

    def stopping(*given: Any, **more: Any) -> Any:
        done[0] += 1
        if done[0] == 3:
            raise KeyboardInterrupt
        return real(*given, **more)

    monkeypatch.setattr(lessons, "teach", stopping)
    other = str(tmp_path / "other")
    with pytest.raises((KeyboardInterrupt, BertologyError)):
        bt.run("fragments", encoder(), task=corpus, store=other, **how)
    again = bt.run("fragments", encoder(), task=corpus, store=other, **how)
    assert done[0] == 5  # two before the stop, the one that was stopped, and two after it
    assert all(again.table(name).equals(whole.table(name)) for name in whole.tables)
    assert again.evidence() == whole.evidence()
    # The plain loop: the stored model of each seed, one pair at a time.
    told = []
    for folder in sorted((store / "trained" / "models").iterdir()):
        model = hf.AutoModelForSequenceClassification.from_pretrained(folder).eval()
        for example in corpus:
            rows = encoder().tokenizer(example.text, example.text_b, return_tensors="pt")
            with torch.no_grad():
                told.append(int(model(**rows).logits.argmax(-1)) == example.label)
    groups = np.array([e.get("group") for e in corpus] * 2)
    labels = np.array(corpus.labels * 2)
    table = whole.table("fragments").set_index("fragment")
    for name in ("one", "two"):
        shares = [np.mean(np.array(told)[(groups == name) & (labels == y)]) for y in (0, 1)]
        assert table.loc[name, "zero_shot"] == pytest.approx(np.mean(shares))
        assert table.loc[name, "accuracy"] == pytest.approx(np.mean(np.array(told)[groups == name]))


def test_lessons_and_old_models_are_functions_of_their_part(tmp_path: Path) -> None:
    corpus, old = written(tmp_path)
    study = Fragments(nli=old, **SMALL)  # type: ignore[arg-type]
    parts = study.parts(encoder().shape, corpus)
    assert parts[:3] == ["old-seed-0", "fragment-0-amount-16-seed-0", "fragment-1-amount-16-seed-0"]
    told: list[int] = []
    one = study.measure(encoder(), corpus, parts[1], Context(advance=told.append))
    fresh = Encoder(encoder().model, encoder().tokenizer, name="tiny")
    other = study.measure(fresh, corpus, parts[1], Context(trained=tmp_path / "trained"))
    assert one.identical(other)
    assert sum(told) == 100


def test_shuffled_labels_bear_nothing_out(tmp_path: Path) -> None:
    corpus, old = written(tmp_path)
    for file in tmp_path.rglob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        rng = random.Random(5)
        for row in rows:
            row["label"] = rng.choice(TWO_WAY)
        file.write_text("\n".join(map(json.dumps, rows)))
    corpus = load_corpus(str(tmp_path / "fragments"))
    result = bt.run("fragments", encoder(), task=corpus, store=None, nli=old, **SMALL)
    assert "holds" not in claims_of(result).values()
