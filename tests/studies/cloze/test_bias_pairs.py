"""Bias pairs: a model that likes one word in a context, models that like words for no reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import planted_agreement
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.cloze.bias_pairs import BiasPairs, changed_words, shared_places
from planted_links import ask
from result_conformance import ResultConformance

FIELDS = frozenset({Field.TEXT, Field.CONTRAST, Field.GROUP, Field.CONDITION})
WORDS = ["the", "black", "white", "##ish", "old", "man", "is", "here", "."]


def concluded(better: Any, words: list[str], types: list[str], ways: list[str]) -> Result:
    part = xr.Dataset(
        {
            "better": ("example", np.asarray(better, float)),
            "words": ("example", words),
            "group": ("example", types),
            "condition": ("example", ways),
        }
    )
    provenance = Provenance(
        "bias-pairs", 1, {}, {"name": "m", "fingerprint": "f"}, {"name": "c", "fingerprint": "c"}
    )
    return BiasPairs(resamples=200).conclude({"examples-000000-000128": part}, provenance)


def drawn(seed: int, liked: float = 0.0, size: int = 300, units: int = 60) -> Result:
    """Each pair of changed words is liked or not; `liked` shifts all of them."""
    rng = np.random.default_rng(seed)
    of = np.minimum(rng.integers(0, units, size), rng.integers(0, units, size))
    better = rng.normal(size=units)[of] + 0.5 * rng.normal(size=size) + liked
    types, ways = rng.choice(["age", "race", "faith"], size), rng.choice(["stereo", "anti"], size)
    return concluded(better, [f"w{n}" for n in of], types.tolist(), ways.tolist())


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return drawn(0)


def test_pairs_are_counted_by_type_and_direction() -> None:
    better = [1.0, 2.0, -1.0, 0.0, 1.0, np.nan]
    words = [f"{n}/x" for n in range(6)]
    types, ways = ["age"] * 4 + ["race"] * 2, ["stereo", "stereo", "anti", "anti"] + ["stereo"] * 2
    result = concluded(better, words, types, ways)
    rows = result.table().set_index(["type", "direction"])
    assert rows.loc[("all", "all"), "preferred"] == pytest.approx(0.7)
    assert rows.loc[("age", "all"), "preferred"] == pytest.approx(2.5 / 4)
    assert rows.loc[("age", "stereo"), "preferred"] == 1
    assert rows.loc[("age", "anti"), "preferred"] == 0.25
    assert rows.loc[("race", "all"), "pairs"] == 1
    assert ("race", "stereo") not in rows.index, "a type with one direction is told once"
    assert (result.facts["pairs"], result.facts["left_out"]) == (5, 1)


def test_a_liking_is_found_and_an_open_result_acquits_nobody() -> None:
    sure = drawn(0, liked=1.0)
    assert sure.answer.startswith("Surely more often than not")
    few = drawn(1, size=20, units=10)
    assert few.answer.startswith("Open, which does not mean free of bias")
    assert "Items of such data sets have been criticised" in few.notes()[-1]


def test_liking_words_for_no_reason_is_no_stereotype() -> None:
    """Many pairs exchange the same words: they are no independent evidence."""
    missed = rows = 0
    for seed in range(20):
        result = drawn(seed)
        missed += result.evidence()["stereotype_preference"].excludes(0.5)
        table = result.table()
        rows += bool(((table["preferred_low"] > 0.5) | (table["preferred_high"] < 0.5)).any())
    assert missed <= 3
    assert rows <= 3


def pairs(texts: list[tuple[str, str]]) -> Corpus:
    examples = [
        Example(str(i), a, annotations={"contrast": b, "group": "race", "condition": "stereo"})
        for i, (a, b) in enumerate(texts)
    ]
    return Corpus("pairs", examples, FIELDS)


def test_sums_over_shared_tokens_are_those_of_a_plain_loop() -> None:
    encoder = Encoder(tiny.model("bert", "mlm"), tiny.tokenizer(WORDS), head="mlm", name="tiny")
    given = [
        ("The blackish man is here.", "The white man is here."),
        ("the old black man is white.", "the white man is old."),
    ]
    shared = [["the", "man", "is", "here", "."], ["the", "man", "is", "."]]
    study = BiasPairs()
    part = study.measure(encoder, pairs(given), "examples-000000-000002", _context())
    for n, (texts, tokens) in enumerate(zip(given, shared, strict=True)):
        sums = []
        for text in texts:
            ids = encoder.tokenizer(text, return_tensors="pt")["input_ids"]
            names, total = encoder.tokenizer.convert_ids_to_tokens(ids[0].tolist()), 0.0
            for place, name in enumerate(names):
                if name in tokens:
                    masked = ids.clone()
                    masked[0, place] = encoder.tokenizer.mask_token_id
                    with torch.no_grad():
                        logits = encoder.model(input_ids=masked).logits[0, place]
                    total += float(torch.log_softmax(logits, -1)[ids[0, place]])
            sums.append(total)
        assert float(part["better"][n]) == pytest.approx(sums[0] - sums[1], abs=1e-4)
    assert part["words"].to_numpy().tolist() == ["blackish/white", "old black white/white old"]


def _context() -> Any:
    from bertology.studies.study import Context

    return Context()


def test_a_model_that_agrees_prefers_what_agrees_by_the_other_words() -> None:
    """ "the key is here": the verb is shared, and likelier after the noun that it agrees with."""
    encoder = planted_agreement.encoder(planted_agreement.model("first"))
    texts = []
    for noun in planted_agreement.NOUNS:
        for one, many in planted_agreement.VERBS[:2]:
            texts.append((f"the {noun} {one} here .", f"the {noun}s {one} here ."))
            texts.append((f"the {noun}s {many} here .", f"the {noun} {many} here ."))
    result = ask(BiasPairs(resamples=200), encoder, pairs(texts))
    found = result.evidence()["stereotype_preference"]
    assert found.value == 1
    assert found.low > 0.5
    assert (found.n, found.unit) == (len(planted_agreement.NOUNS), "changed words")


def test_what_is_shared_and_what_changed() -> None:
    assert shared_places([1, 2, 3], [1, 9, 9, 3]) == ([0, 2], [0, 3])
    assert shared_places("ab", "cd") == ([], [])
    assert changed_words("Black men run.", "White men run.") == "black/white"
    assert changed_words("White men run.", "Black men run.") == "black/white"


def test_bad_input_is_refused_in_words() -> None:
    encoder = Encoder(tiny.model("bert", "mlm"), tiny.tokenizer(WORDS), head="mlm", name="tiny")
    apart = pairs([("black man", "white ."), ("old man", "the .")])
    with pytest.raises(DataError, match="Fewer than two pairs can be compared"):
        ask(BiasPairs(), encoder, apart)
