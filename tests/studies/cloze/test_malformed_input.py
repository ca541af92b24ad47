"""Malformed input: models that read one word, any order or one order, or that know nothing."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertology as bt
import planted
import planted_agreement
import planted_facts
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.cloze.malformed_input import MalformedInput
from planted_links import ask
from result_conformance import ResultConformance, claims_of

KEPT, ORDER = (
    f"primer-semantics.{n}" for n in ("malformed-input-leaves-predictions", "word-order-is-of-use")
)
FIELDS = frozenset({Field.TEXT, Field.ANSWER, Field.WORDS, Field.POS, Field.SUBJECT, Field.OBJECT})
PLAIN = ("shuffled", "nearby", "reversed", "first-half", "few-words")


def facts(template: str, subject: int, obj: int | None, copies: int = 5) -> Corpus:
    """What is in the table of facts, `copies` times; {0} is the subject and {1} the relation."""
    found = []
    for n, ((name, relation), answer) in enumerate(copies * list(planted_facts.FACTS.items())):
        text = template.format(name, relation)
        words = text.split()
        marks = {"answer": [answer], "words": words, "pos": ["NOUN"] * len(words)}
        marks |= {"subject": subject, "object": obj, "heads": [-1] * len(words)}
        found.append(Example(str(n), text, annotations=marks))
    return Corpus("facts", found, FIELDS)


def study(**options: Any) -> MalformedInput:
    return MalformedInput(**{"resamples": 200, "draws": 2, **options})


def rows(result: Result) -> Any:
    return result.tables["forms"].set_index("form")


def bag_of_words() -> Result:
    corpus = facts("{0} in the comes {1} no [MASK] .", subject=0, obj=None)
    return ask(study(), planted_facts.encoder(planted_facts.model()), corpus)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return bag_of_words()


# Planted ---------------------------------------------------------------------------------------


def test_a_bag_of_words_keeps_its_answers_in_any_order_and_not_without_the_subject() -> None:
    result = bag_of_words()
    table = rows(result)
    for kind in ("shuffled", "bigrams", "trigrams", "nearby", "reversed"):
        assert (table.loc[kind, "same"], table.loc[kind, "kept"]) == (1, 1), kind
        assert table.loc[kind, "lost"] == 0
        assert table.loc[kind, "kl"] == pytest.approx(0, abs=1e-4)
    assert table.loc["intact", "right"] == 1
    assert table.loc["no-subject", "right"] < 0.2
    assert table.loc["no-subject", "kept_high"] < 0.5
    assert (table.loc["no-object", "n"], table.loc["no-object", "unchanged"]) == (0, 40)
    assert claims_of(result)[KEPT] == "fails", "one kind that changes answers is enough"
    assert claims_of(result)[ORDER] in ("negligible", "fails", "inconclusive")
    assert "100 % [" in result.answer
    assert result.facts["tagger"] == "the corpus"


def test_a_model_that_reads_what_no_break_takes_away_keeps_all() -> None:
    corpus = facts("{0} {1} [MASK] in the no comes .", subject=5, obj=6)
    result = ask(study(), planted_facts.encoder(planted_facts.model()), corpus)
    found = result.evidence()["least_kept"]
    assert (found.value, found.n, found.unit) == (1, 40, "texts")
    assert claims_of(result)[KEPT] == "holds"
    assert claims_of(result)[ORDER] != "holds"
    assert set(rows(result).loc[["no-subject", "no-object"], "n"]) == {40}


def test_a_model_that_reads_the_order_loses_its_right_answers() -> None:
    encoder = planted_agreement.encoder(planted_agreement.model("first"))
    result = ask(study(), encoder, planted_agreement.corpus(120, most=2))
    table = rows(result)
    assert table.loc["intact", "right"] == 1
    assert table.loc["shuffled", "lost_low"] > 0
    assert table.loc["shuffled", "p"] < 0.01
    assert table.loc["first-half", "same"] == 1, "the first noun is there"
    assert claims_of(result)[ORDER] == "holds"
    assert claims_of(result)[KEPT] == "fails"


def classified(tmp_path: Path) -> Result:
    texts = {split: planted.corpus(60, seed=seed) for seed, split in enumerate(("train", "test"))}
    for split, corpus in texts.items():
        with (tmp_path / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            given = [(e.text, planted.TASK.labels[int(e.label or 0)]) for e in corpus]
            csv.writer(file).writerows([("text", "label"), *given])
    made = planted.model()
    made.config.id2label = dict(enumerate(planted.TASK.labels))
    encoder = Encoder(made, planted.tokenizer(), head="classification", name="planted")
    return ask(study(kinds=PLAIN), encoder, bt.load_corpus(str(tmp_path), split="test"))


def test_a_classifier_that_reads_one_word_keeps_its_answers_as_a_bag_of_words_does(
    tmp_path: Path,
) -> None:
    result = classified(tmp_path)
    table = rows(result)
    assert (table.loc["shuffled", "same"], table.loc["shuffled", "right"]) == (1, 1)
    assert table.loc["shuffled", "bag"] == table.loc["intact", "bag"] == 1
    assert 0.3 < table.loc["another text", "same"] < 0.7
    lost = table.loc["few-words"]
    assert 0.3 < lost["right"] < 0.9, "the word is not always among the last three"
    assert lost["bag"] < 0.9
    assert result.headline() == "60 labels"


# Nothing known ---------------------------------------------------------------------------------


def test_a_model_that_ignores_its_input_is_not_said_to_keep_anything() -> None:
    corpus = facts("{0} in the comes {1} no [MASK] .", subject=0, obj=None)
    lean = planted_facts.encoder(planted_facts.model({}, lean="paris"))
    result = ask(study(), lean, corpus)
    assert rows(result).loc["shuffled", "same"] == 1
    assert rows(result).loc["shuffled", "unrelated"] == 1
    assert claims_of(result)[KEPT] == claims_of(result)[ORDER] == "not-applicable"
    assert "not surely likelier in its own text" in result.reasons()["least_kept"]
    assert "do not surely depend on the text" in result.answer


def test_random_models_are_not_said_to_keep_or_to_need_anything() -> None:
    corpus, said = planted_agreement.corpus(60, most=2), []
    for seed in range(5):
        encoder = planted_agreement.encoder(planted_agreement.random_model(seed))
        said.append(claims_of(ask(study(seed=seed, kinds=PLAIN), encoder, corpus)))
    for claim in (KEPT, ORDER):
        assert sum(one[claim] == "holds" for one in said) <= 1, claim


# A plain loop ----------------------------------------------------------------------------------


def test_numbers_are_those_of_a_plain_loop() -> None:
    words = ["the", "cat", "dog", "bird", "sees", "likes", "a", "."]
    encoder = Encoder(tiny.model("bert", "mlm"), tiny.tokenizer(words), head="mlm", name="tiny")
    texts = ["the cat sees a [MASK] .", "the dog likes the [MASK] .", "a [MASK] likes the dog ."]
    answers = ["bird", "cat", "bird"]
    examples = [
        Example(str(i), text, annotations={"answer": [a], "candidates": ["cat", "bird"]})
        for i, (text, a) in enumerate(zip(texts, answers, strict=True))
    ]
    fields = frozenset({Field.TEXT, Field.ANSWER, Field.CANDIDATES})
    corpus = Corpus("made", examples, fields)
    table = rows(ask(study(kinds=("reversed",)), encoder, corpus))

    def said(text: str) -> Any:
        ids = encoder.tokenizer(text, return_tensors="pt")["input_ids"]
        place = int((ids[0] == encoder.tokenizer.mask_token_id).nonzero()[0, 0])
        with torch.no_grad():
            return torch.log_softmax(encoder.model(input_ids=ids).logits[0, place], -1).numpy()

    backwards = [
        "a sees cat the [MASK] .",
        "the likes dog the [MASK] .",
        "dog [MASK] the likes a .",
    ]
    intact, broken = ([said(t) for t in some] for some in (texts, backwards))
    own, other = (encoder.tokenizer.convert_tokens_to_ids(w) for w in ("cat", "bird"))
    right = [encoder.tokenizer.convert_tokens_to_ids(a) for a in answers]
    for name, some in (("intact", intact), ("reversed", broken)):
        row = table.loc[name]
        ranks = [1 + (x > x[r]).sum() for x, r in zip(some, right, strict=True)]
        assert row["rank"] == np.median(ranks)
        chance = np.mean([np.exp(x[r]) for x, r in zip(some, right, strict=True)])
        assert row["probability"] == pytest.approx(chance, rel=1e-4)
        hits = [x[r] >= max(x[own], x[other]) for x, r in zip(some, right, strict=True)]
        assert row["right"] == pytest.approx(np.mean(hits))
    pairs = list(zip(intact, broken, strict=True))
    same = [x.argmax() == y.argmax() for x, y in pairs]
    assert table.loc["reversed", "same"] == pytest.approx(np.mean(same))
    kl = [(np.exp(x) * (x - y)).sum() for x, y in pairs]
    assert table.loc["reversed", "kl"] == pytest.approx(np.mean(kl), rel=1e-3)
    others = [x.argmax() == y.argmax() for i, x in enumerate(intact) for y in intact[:i]]
    assert table.loc["another text", "same"] == pytest.approx(np.mean(others))


def test_text_without_annotation_is_tagged_with_its_answer_in_place() -> None:
    words = ["the", "old", "king", "saw", "a", "horse", "in", "town", "."]
    encoder = Encoder(tiny.model("bert", "mlm"), tiny.tokenizer(words), head="mlm", name="tiny")
    text = "The old king saw a horse in [MASK]."
    marks = {"answer": ["town"]}
    examples = [Example(str(i), text, annotations=marks) for i in range(3)]
    corpus = Corpus("made", examples, frozenset({Field.TEXT, Field.ANSWER}))
    result = ask(study(kinds=("no-subject", "no-object")), encoder, corpus)
    assert set(rows(result).loc[["no-subject", "no-object"], "n"]) == {3}
    assert "probe on bertology-mini" in result.headline()


# What cannot be asked --------------------------------------------------------------------------


def test_bad_input_is_refused_in_words() -> None:
    encoder = planted_facts.encoder(planted_facts.model())
    with pytest.raises(ParameterError, match="be some of shuffled, bigrams"):
        study(kinds=("scrambled",))
    plain = Corpus.of_texts(["dante comes", "hugo comes"])
    with pytest.raises(CapabilityError, match="has no blanks"):
        study().check(encoder, plain)
    corpus = facts("{0} comes {1} [MASK] .", 0, None)
    unknown = [replace(e, annotations={**e.annotations, "answer": ["rome"]}) for e in corpus]
    with pytest.raises(DataError, match="Fewer than two texts of 'facts' have one blank"):
        study().check(encoder, replace(corpus, examples=unknown))
    several = [replace(e, text=f"[MASK] {e.text}") for e in corpus]
    with pytest.raises(DataError, match="Fewer than two texts"):
        study().check(encoder, replace(corpus, examples=several))
    classifier = Encoder(planted.model(), planted.tokenizer(), head="classification", name="c")
    with pytest.raises(CapabilityError, match="gives labels, and 'texts' has no classes"):
        study().check(classifier, plain)
    with pytest.raises(CapabilityError, match="no annotation of words"):
        study(tagger="gold").check(encoder, plain)
