"""Paraphrased reading: who matches words drops where that breaks, and who reads does not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import tiny
from bertology.data.corpus import Corpus
from bertology.data.grammar.reading import KINDS
from bertology.data.loading import load_corpus
from bertology.errors import BertologyError, CapabilityError, DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.stats.grouped import Answers, grouped_contrast, grouped_mean
from bertology.studies.study import Context
from bertology.studies.training.paraphrased_reading import (
    NOT_LEARNT,
    NOT_PAIRED,
    TOO_FEW,
    ParaphrasedReading,
)
from bertology.studies.training.paraphrased_reading.data import Wanted, by_rules, read_data, seen_by
from bertology.train.encoded import EncodedChoices, encode, rows_of, task_of
from bertology.train.evaluate import predict
from made_reading import made_up
from result_conformance import ResultConformance, claims_of

DROP, BLIND, WHERE = (
    f"nuggets-generalisation.{name}"
    for name in (
        "paraphrase-hurts-reading",
        "reading-by-shallow-heuristics",
        "reading-drops-where-overlap-breaks",
    )
)
ALONE = Wanted("", "train", 30, "", "challenge", 0)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up(texts=20)


# What is concluded -------------------------------------------------------------------------------


def test_who_answers_by_overlap_drops_exactly_where_rewording_breaks_it() -> None:
    result = made_up({"follows": 1.0, "overlap": 0.6}, texts=60)
    found = result.evidence()
    assert found["overlap_drop"].value == 1.0
    table = result.table("overlap").set_index("overlap_finds_it")["drop"]
    assert (table["no longer"], table["still"]) == (1.0, 0.0)
    methods = result.table("methods").set_index("method")["drop"]
    assert methods["model"] == methods["word-overlap"] == pytest.approx(0.3, abs=0.06)
    assert claims_of(result)[DROP] == claims_of(result)[WHERE] == "holds"
    assert "surely loses" in result.answer


def test_who_reads_does_not_drop() -> None:
    result = made_up({"before": 1.0, "after": 1.0, "blind": 0.25}, hard=0.0, luck=0.0, texts=100)
    assert result.evidence()["paraphrase_drop"].value == pytest.approx(0, abs=0.005)
    assert "holds" not in claims_of(result).values()
    assert claims_of(result)[DROP] == "negligible"


def test_what_was_published_is_found_and_a_challenge_set_says_not_where() -> None:
    result = made_up(paired=False, texts=100, seeds=5)
    assert result.evidence()["paraphrase_drop"].value == pytest.approx(0.17, abs=0.05)
    outcomes = claims_of(result)
    assert outcomes[DROP] == outcomes[BLIND] == "holds"
    assert outcomes[WHERE] == "not-applicable"
    assert result.reasons() == {"overlap_drop": NOT_PAIRED}
    assert "overlap" not in result.tables
    kinds = result.table("types").set_index("type")
    assert list(kinds.index) == ["Causality", "Factual", "Temporal_order", "all questions"]
    assert kinds.loc["Factual", "questions"] == 400


def test_kinds_of_text_that_were_not_learnt_are_told() -> None:
    kinds = {"genres_learnt": "news 9", "genres_asked": "fiction 9", "genres_not_learnt": "fiction"}
    result = made_up(paired=False, texts=20, kinds=kinds)
    assert "learnt: news 9; asked: fiction 9; nothing was learnt about fiction" in result.headline()
    assert all("Nothing was learnt about fiction" in d.caption for d in result.drawings())
    assert "nothing was learnt about" not in made_up(texts=20).headline()


def test_what_was_not_learnt_is_not_judged() -> None:
    guessed = dict.fromkeys(("before", "after", "blind", "unasked"), 0.25)
    result = made_up(guessed, hard=0.0, luck=0.0)
    assert set(result.reasons().values()) == {NOT_LEARNT}
    assert "Nothing is sure" in result.answer
    assert "holds" not in claims_of(result).values()
    few = made_up({"overlap": 0.05, "broken": 0.0, "before": 0.9}, texts=20, hard=0.0)
    assert few.reasons() == {"overlap_drop": TOO_FEW}
    one = made_up(seeds=1)
    assert set(claims_of(one).values()) == {"inconclusive"}


def test_groups_are_counted_and_not_questions() -> None:
    """Copies of each question add nothing; the value is that of a plain count."""
    rng = np.random.default_rng(2)
    right, other = (rng.random((3, 30)) < p for p in (0.7, 0.4))
    one, two = (Answers(r * 1.0, np.arange(30)) for r in (right, other))
    many, more = (
        Answers(np.repeat(a.right, 8, axis=1), np.repeat(a.groups, 8)) for a in (one, two)
    )
    plain = grouped_contrast([(1, one), (-1, two)])
    assert plain.value == pytest.approx(right.mean() - other.mean())
    copied = grouped_contrast([(1, many), (-1, more)])
    assert (copied.value, copied.low, copied.high, copied.n) == pytest.approx(
        (plain.value, plain.low, plain.high, 30)
    )
    # Independent questions about the same texts tell more, and what always is the same tells least.
    free = Answers((rng.random((3, 240)) < 0.7) * 1.0, np.repeat(np.arange(30), 8))
    alike = Answers(np.repeat(free.right[:, ::8], 8, axis=1), free.groups)
    narrow, wide = (grouped_mean(a) for a in (free, alike))
    assert narrow.high - narrow.low < 0.7 * (wide.high - wide.low)
    none = grouped_mean(Answers(np.ones((3, 240)), free.groups))
    assert none.low == pytest.approx(0.025 ** (1 / 30), abs=0.02)
    same = grouped_contrast([(1, one), (-1, one)])
    apart = grouped_contrast([(1, one), (-1, replace(one, groups=one.groups + 30))])
    assert same.high - same.low < apart.high - apart.low
    assert np.isnan(grouped_mean(Answers(np.ones((2, 3)), np.zeros(3, int))).low)
    with pytest.raises(DataError, match="every set"):
        grouped_mean(one.only(np.zeros(30, bool)))


# Data --------------------------------------------------------------------------------------------


def test_stories_are_told_twice_and_words_alone_tell_nothing() -> None:
    corpus = load_corpus("grammar-reading", limit=150)
    data = read_data(corpus, ALONE)
    assert data.paired
    assert {e.get("group") for e in corpus} == set(KINDS)
    for example, other in zip(data.original, data.paraphrased, strict=True):
        right = example.get("candidates")[int(example.get("label"))]
        asked = str(example.text_b).lower()
        (told,) = (s for s in example.text.lower().split(". ") if right in s)
        if example.get("group") != "who":
            assert asked.split("did ")[1].split(" ")[1] in told  # who did it
        assert other.text != example.text
        assert other.text_b == example.text_b
    before, after = (
        by_rules(data.train, one).mean(axis=1) for one in (data.original, data.paraphrased)
    )
    assert before[2] > 0.7
    assert after[2] < before[2] - 0.05
    assert before[:2] == pytest.approx([1 / 3] * 2, abs=0.1)


def questions(folder: Path, name: str, count: int, **more: Any) -> Path:
    """Two questions about each text; the right answer is always the cat, at either place."""
    rows = []
    for i in range(count):
        text, label = f"sun {name} {i // 2} moon", i % 3 % 2
        row = {"context": text, "question": f"up {i}", "type": "x", "label": label}
        row |= {"answers": ["dog", "cat"] if label else ["cat", "dog"]}
        rows.append(row | {"paraphrase": f"{text} red"} | more)
    path = folder / f"{name}.jsonl"
    path.write_text(
        "\n".join(json.dumps({k: v for k, v in r.items() if v is not None}) for r in rows)
    )
    return path


def read(path: Path, **more: Any) -> Corpus:
    return load_corpus(str(path), reader="multiple-choice", **more)


def test_lines_are_read_under_usual_and_other_names(tmp_path: Path) -> None:
    corpus = read(questions(tmp_path, "mine", 8))
    assert corpus.task is not None
    assert (corpus.task.kind, corpus.task.labels) == ("multiple-choice", ("A", "B"))
    assert {f.value for f in corpus.fields} >= {"paraphrase", "group", "item", "candidates"}
    assert rows_of(corpus[2])[1] == ("sun mine 1 moon", "up 2 dog")
    other = tmp_path / "other.jsonl"
    lines = [
        {"asked": "who?", "story": "a b", "options": ["x", "y", "z"], "right": right}
        for right in ("2", "c", "z", 2)
    ]
    other.write_text("\n".join(map(json.dumps, lines)))
    named = {"text": "story", "text_b": "asked", "candidates": "options", "label": "right"}
    assert read(other, **named).labels == [2, 2, 2, 2]
    assert [e.get("item") for e in read(other, **named)] == ["a b"] * 4


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"label": 7}, "which of the 2 answers is right"),
        ({"label": None}, "which of the 2 answers is right"),
        ({"answers": ["one"]}, "two answers or more"),
        ({"answers": ["one", ""]}, "an answer is empty"),
        ({"context": None, "question": None}, "neither a text nor a question"),
        ({"context": ["x"]}, "is not text"),
        ({"id": "twice"}, "not unique"),
    ],
)
def test_bad_lines_are_refused_with_their_number(
    tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=f"bad.jsonl, line .*{said}"):
        read(questions(tmp_path, "bad", 2, **row))


def test_quail_is_read_and_its_challenge_set_is_asked_about_the_same_kind(tmp_path: Path) -> None:
    folder = tmp_path / "quail/quail_v1.3/xml/randomized"
    folder.mkdir(parents=True)
    for split, kinds in (
        ("dev", "fiction news news news fiction"),
        ("challenge", "fiction fiction"),
    ):
        texts = "".join(
            f'<text domain="{kind}" id="{split}{i}"><text_body> A tale {split}{i}. </text_body>'
            f'<questions><q id="0" type="Factual"> Who?{"".join(_ANSWERS)}</q></questions></text>'
            for i, kind in enumerate(kinds.split())
        )
        (folder / f"quail_1.3_{split}_randomized.xml").write_text(f"<data>{texts}</data>")
    corpus = load_corpus("quail", root=tmp_path)
    assert (corpus[0].text, corpus[0].text_b) == ("A tale dev0.", "Who?")
    assert corpus[0].get("candidates") == ["one", "two", "three", "four"]
    assert corpus.labels == [1] * 5
    data = read_data(corpus, replace(ALONE, held_out=2))
    assert not data.paired
    assert [e.get("item") for e in data.original] == ["dev0", "dev4"]
    assert [e.get("item") for e in data.train] == ["dev1", "dev2", "dev3"]
    assert len(data.paraphrased) == 2
    assert data.genres == {
        "genres_learnt": "news 3",
        "genres_asked": "fiction 2",
        "genres_reworded": "fiction 2",
        "genres_not_learnt": "fiction",
    }
    some = read_data(corpus, replace(ALONE, held_out=1)).genres
    assert some["genres_learnt"] == "fiction 1, news 3"
    assert "genres_not_learnt" not in some
    with pytest.raises(ParameterError, match=r"must be 2 at most: 'quail' has 2 texts of the"):
        read_data(corpus, replace(ALONE, held_out=3))
    with pytest.raises(DataError, match="nothing to learn from"):
        read_data(corpus, ALONE)
    spoilt = folder / "quail_1.3_dev_randomized.xml"
    spoilt.write_text(spoilt.read_text().replace('correct="True"', 'correct="False"', 1))
    with pytest.raises(DataError, match="one is marked as correct"):
        load_corpus("quail", root=tmp_path)


_ANSWERS = [
    f'<a id="{k}" correct="{k == 1}"> {word} </a>'
    for k, word in enumerate(("one", "two", "three", "four"))
]


def test_what_is_asked_is_not_learnt(tmp_path: Path) -> None:
    corpus = read(questions(tmp_path, "mine", 20))
    with pytest.raises(DataError, match="are learnt from and asked about"):
        read_data(corpus, replace(ALONE, train=str(tmp_path / "mine.jsonl")))
    data = read_data(corpus, replace(ALONE, held_out=3))
    assert len(data.original) == 6
    assert not {e.text for e in data.train} & {e.text for e in data.original}
    with pytest.raises(ParameterError, match="must be 9 at most: 'mine' has 10 texts to ask about"):
        read_data(corpus, replace(ALONE, held_out=10))
    assert read_data(corpus, replace(ALONE, held_out=9)).genres == {}  # kinds are not told
    alone = read(questions(tmp_path, "bare", 8, paraphrase=None))
    with pytest.raises(DataError, match="neither paraphrases of its texts nor a challenge set"):
        read_data(alone, ALONE)
    blind, unasked = (
        seen_by(how, data.original)[0] for how in ("without-text", "without-question")
    )
    assert rows_of(blind)[0][0].startswith("up ")
    assert rows_of(unasked)[0] == (data.original[0].text, data.original[0].get("candidates")[0])


# Training ----------------------------------------------------------------------------------------


def encoder() -> Encoder:
    words = ["sun", "moon", "cat", "dog", "up", "red", "mine"]
    tokenizer = tiny.tokenizer(words)
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=32, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return Encoder(hf.BertModel(config).eval(), tokenizer, name="tiny")


def test_choices_are_encoded_together_and_answered_alike_in_any_batch(tmp_path: Path) -> None:
    corpus, made = read(questions(tmp_path, "mine", 8)), encoder()
    encoded = encode(corpus, made.tokenizer, 16)
    assert isinstance(encoded, EncodedChoices)
    inputs, targets = encoded.batch([3, 0], torch.device("cpu"))
    assert inputs["input_ids"].shape[:2] == (2, 2)
    assert targets.tolist() == [corpus.labels[3], corpus.labels[0]]
    torch.manual_seed(1)
    model: Any = hf.BertForMultipleChoice(made.model.config).eval()
    said = predict(model, encoded, corpus.task)  # type: ignore[arg-type]
    for i, example in enumerate(corpus):
        rows = rows_of(example)
        one = made.tokenizer(
            [r[0] for r in rows], [r[1] for r in rows], padding=True, return_tensors="pt"
        )
        with torch.no_grad():
            logits = model(**{k: v[None] for k, v in one.items()}).logits
        assert said[i] == logits.argmax()
    with pytest.raises(CapabilityError, match="multiple-choice task"):
        task_of(corpus)
    uneven = replace(
        corpus[1], annotations={**corpus[1].annotations, "candidates": ["a", "b", "c"]}
    )
    with pytest.raises(DataError, match="different numbers of answers"):
        encode(replace(corpus, examples=[corpus[0], uneven]), made.tokenizer, 16)


def test_a_tiny_model_learns_a_file_and_goes_on_from_what_is_kept(tmp_path: Path) -> None:
    path = questions(tmp_path, "mine", 60)
    how = {"held_out": 8, "seeds": 2, "epochs": 3, "learning_rate": 3e-3, "batch_size": 4}
    store = tmp_path / "store"
    result = bt.run("paraphrased-reading", encoder(), task=read(path), store=str(store), **how)
    methods = result.table("methods").set_index("method")["original"]
    assert methods[["model", "without-text", "without-question"]].min() > 0.9
    assert methods["most-frequent-place"] < 0.8
    assert result.facts["paired"]
    assert set(claims_of(result)) == {DROP, BLIND, WHERE}
    kept = sorted(p.name for p in (store / "trained").rglob("model.safetensors"))
    assert len(kept) == 6
    study, corpus = ParaphrasedReading(**how), read(path)  # type: ignore[arg-type]
    (trained,) = (p for p in store.rglob("trained") if p.is_dir())
    told: list[int] = []
    again = study.measure(
        encoder(), corpus, "model-seed-1", Context(trained=trained, advance=told.append)
    )
    assert sum(told) == 100
    assert float(again["original"].mean()) > 0.8


def test_other_tasks_and_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="2 texts at least"):
        ParaphrasedReading(held_out=1)
    with pytest.raises(BertologyError, match="lacks"):
        bt.run("paraphrased-reading", encoder(), task="grammar-entailment", store=None)
    three = questions(tmp_path, "three", 8, answers=["cat", "dog", "red"])
    corpus = read(questions(tmp_path, "mine", 8))
    with pytest.raises(ParameterError, match="as many answers"):
        ParaphrasedReading(train=str(three)).check(encoder(), corpus)
    with pytest.raises(CapabilityError, match="multiple-choice task"):
        bt.run("task-baselines", encoder(), task=corpus, store=None)
