"""Answers: right ones are counted by kind, and a changed model flips the known examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf

import planted
import tiny
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.report.atlas.compare import Side
from bertology.report.atlas.naming import entries_of
from bertology.report.atlas.side_by_side import (
    beside_tables,
    export_beside,
    numbers_piece,
    side_by_side,
)
from bertology.results.flips import flips
from bertology.results.result import Result
from bertology.run.requirements import check_needs
from bertology.studies.compression.answers import ALL, Answers
from made_compressions import clean
from planted_links import ask
from result_conformance import ResultConformance

CORPUS = planted.corpus(80, seed=3)
GOOD = [e.id for e in CORPUS if e.get("label") == 1]


def grouped() -> Corpus:
    """Long and short texts are groups."""
    examples = [
        replace(e, annotations={"group": "long" if len(e.text.split()) > 8 else "short"})
        for e in CORPUS
    ]
    return replace(CORPUS, examples=examples, fields=CORPUS.fields | {Field.GROUP})


def always_bad() -> Encoder:
    """One weight of the clean model has its sign flipped: both labels get the same logit."""
    found = clean()
    with torch.no_grad():
        found.model.classifier.weight[0] *= -1
    return found


def compared(first: Result | list[Result], second: Result | list[Result], task: str = "") -> Any:
    both = [("small", first), ("large", second)]
    sides = [
        Side(n, entries_of([(task, found if isinstance(found, list) else [found])]), by_task=True)
        for n, found in both
    ]
    return side_by_side(*sides)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        found: Result = ask(Answers(), always_bad(), grouped())
        return found

    def test_what_is_compared_is_read_back(self, result: Result) -> None:
        titles = [one.title for one in result.compared()]
        assert titles[:3] == [f"right answers, {n}" for n in (ALL, "bad", "good")]
        assert "right answers, long, good" in titles
        for one in result.compared():
            assert one.rows is not None
            assert np.nanmean(one.rows) == pytest.approx(one.estimate.value)


def test_right_answers_are_counted_for_each_kind() -> None:
    result = ask(Answers(), always_bad(), grouped())
    scores = result.table("scores").set_index("of")
    share = 1 - len(GOOD) / len(CORPUS)
    assert scores.loc[ALL, "score"] == pytest.approx(share)
    assert scores.loc["bad", "score"] == 1
    assert scores.loc["long, good", "score"] == 0
    assert scores.loc["good", "n"] == len(GOOD)
    assert (scores["score_low"] <= scores["score"] + 1e-9).all()
    assert (scores["score_low"] < scores["score_high"]).all()  # also where all are alike
    assert "fewest of good: 0 %" in result.answer


def test_a_copy_has_no_differences_and_no_flips() -> None:
    one, other = (ask(Answers(), clean(), CORPUS) for _ in range(2))
    found = compared(one, other)
    assert all(row.apart.paired for row in found.rows)
    assert all(row.apart.estimate.value == 0 and not row.apart.sure for row in found.rows)
    assert found.flips["planted"].table.empty
    assert found.flips["planted"].sentence("a", "b") == "All 80 examples are answered alike."
    assert not found.lacking


def test_a_flipped_weight_flips_the_known_examples(tmp_path: Path) -> None:
    found = compared(ask(Answers(), always_bad(), CORPUS), ask(Answers(), clean(), CORPUS))
    table = found.flips["planted"].table
    assert sorted(table["id"]) == sorted(GOOD)
    assert set(table["kind"]) == {"only_second"}
    assert (table["second_sure"] > 0.9).all()
    gain = {row.first.title: row.apart for row in found.rows}
    assert gain["right answers, good"].estimate.value == 1
    assert gain["right answers, good"].sure
    assert gain["right answers, bad"].estimate.value == 0
    told = found.flips["planted"].sentence(*found.names)
    assert f"{len(GOOD)} are right for large only, 0 for small only" in told
    [(title, columns, rows)] = beside_tables(found)
    assert title == "Answers over planted"
    assert columns[3] == "large − small"
    assert rows[2][3].startswith("100.0 points")
    assert rows[2][3].endswith("*")
    page = str(numbers_piece(found))
    assert f"Only large is right: {len(GOOD)}" in page
    assert CORPUS[int(GOOD[0])].text in page
    numbers, flipped = (pd.read_csv(path) for path in export_beside(found, tmp_path))
    assert numbers["difference"].tolist()[1:] == [0.0, 1.0]
    assert len(flipped) == len(GOOD)


def test_two_sizes_of_one_corpus_have_flips_of_their_own(tmp_path: Path) -> None:
    half = replace(CORPUS, examples=list(CORPUS)[:40])
    other = replace(CORPUS, examples=list(CORPUS)[40:])
    sides = [[ask(Answers(), model, data) for data in (CORPUS, half, other)]
             for model in (always_bad(), clean())]  # fmt: skip
    for result in (result for side in sides for result in side):  # as sessions write it
        result.provenance.corpus["size"] = result.facts["examples"]
    found = compared(*[side[:2] for side in sides])
    sizes = {"planted (80 examples)": 80, "planted (40 examples)": 40}
    assert {name: one.examples for name, one in found.flips.items()} == sizes
    assert len(found.flips["planted (80 examples)"].table) == len(GOOD)
    assert {row.data for row in found.rows} == set(sizes)
    titles = [title for title, _, _ in beside_tables(found)]
    assert sorted(titles) == [f"Answers over {name}" for name in sorted(sizes)]
    files = {path.name: path for path in export_beside(found, tmp_path)}
    assert len(pd.read_csv(files["flips-planted-80-examples.csv"])) == len(GOOD)
    page = str(numbers_piece(found))
    assert all(f"Examples that flip: {name}" in page for name in sizes)
    three = compared(*sides)  # two of them are as large: their fingerprints tell
    assert len(three.flips) == 3
    assert sum(one.examples == 40 for one in three.flips.values()) == 2
    assert list(compared(sides[0][0], sides[1][0], task="mrpc").flips) == ["planted"]


def test_the_surest_flips_come_first_and_what_is_lost_before_what_is_won() -> None:
    one = ask(Answers(), clean(), CORPUS[:4])
    said = {"answer": ["bad", "good", "bad", "bad"], "sure": [0.6, 0.7, 0.9, 0.8]}
    right = {"right": ["good", "good", "good", "bad"]}
    first, second = (replace_table(one, **right, **said) for _ in range(2))
    second.tables["answers"]["answer"] = ["good", "bad", "good", "good"]
    found = flips(first, second)
    assert found is not None
    assert list(found.table["first_sure"]) == [0.9, 0.6, 0.8, 0.7]
    assert list(found.table["kind"]) == ["only_second", "only_second", "only_first", "only_first"]
    first.tables["answers"]["id"] = list("wxyz")
    assert flips(first, second) is None  # of other examples


def replace_table(result: Result, **columns: Any) -> Result:
    answers = result.tables["answers"].assign(**columns)
    return type(result)(result.provenance, {**result.tables, "answers": answers}, result.arrays)


def of_inference() -> tuple[Encoder, Corpus]:
    """A model with three labels, and pairs with two; "good" is neutral for it, "bad" entailed."""
    model = planted.model()
    old = model.classifier.weight.detach().clone()
    model.classifier = torch.nn.Linear(16, 3)
    with torch.no_grad():
        model.classifier.weight.copy_(torch.stack([old[1], old[0], old[0] * 0.5]))
        model.classifier.bias.zero_()
    model.config.num_labels = 3
    model.config.id2label = {0: "neutral", 1: "entailment", 2: "contradiction"}
    task = Task("pairs", "classification", ("non-entailment", "entailment"), pair=True)
    examples = [replace(e, text_b="the up", label=1 - int(e.get("label"))) for e in CORPUS]
    fields = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL})
    made = Encoder(model, planted.tokenizer(), head="classification", name="three")
    return made, Corpus("pairs", examples, fields, task)


def test_what_is_neutral_is_not_entailed() -> None:
    encoder, corpus = of_inference()
    check_needs("answers", Answers(), encoder, corpus)
    result = ask(Answers(), encoder, corpus)
    assert result.table("scores")["score"].tolist() == [1, 1, 1]
    assert set(result.tables["answers"]["answer"]) == {"entailment", "non-entailment"}
    encoder.model.config.id2label = {0: "a", 1: "b", 2: "c"}
    with pytest.raises(CapabilityError, match="Which label is which"):
        check_needs("answers", Answers(), encoder, corpus)


def test_numbers_are_compared_by_how_far_they_are() -> None:
    task = Task("length", "regression", metrics=("spearman",))
    examples = [Example(str(i), "up " * (i + 1), label=float(i)) for i in range(12)]
    corpus = Corpus("length", examples, frozenset({Field.TEXT, Field.LABEL}), task)
    model = planted.model()
    model.classifier = torch.nn.Linear(16, 1)
    model.config.num_labels = 1
    results = []
    for answer in (0.0, 2.0):
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.fill_(answer)
        encoder = Encoder(model, planted.tokenizer(), head="classification", name="numbers")
        results.append(ask(Answers(), encoder, corpus))
    assert results[0].table("scores")["score"].tolist() == [5.5]
    found = compared(*results)
    assert found.rows[0].apart.estimate.value == pytest.approx(-18 / 12)
    assert found.flips["length"].table["moved"].tolist() == [2.0] * 10
    assert "from the right ones on average" in results[0].answer


def test_other_tasks_are_refused() -> None:
    encoder = clean()
    with pytest.raises(DataError, match="two examples"):
        Answers().check(encoder, CORPUS[:1])
    choice = replace(CORPUS, task=Task("choose", "multiple-choice", ("a", "b")))
    with pytest.raises(CapabilityError, match="multiple-choice"):
        Answers().check(encoder, choice)
    three = Encoder(
        hf.BertForSequenceClassification(tiny.model("bert").config), planted.tokenizer(),
        head="classification", name="tiny",
    )  # fmt: skip
    three.model.config.num_labels = 4
    with pytest.raises(CapabilityError, match="has 2 labels"):
        check_needs("answers", Answers(), three, CORPUS)
