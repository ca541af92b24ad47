"""Number words: a model that knows a table, one that knows nothing, and a plain loop."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr

import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.clozes import NUMBER_WORDS
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.cloze.number_words import CALIBRATED, MAJORITY, PLAIN, NumberWords
from result_conformance import ResultConformance, claims_of

_THINGS = [f"thing{n}" for n in range(40)]
_FIELDS = frozenset({Field.TEXT, Field.ANSWER, Field.CANDIDATES, Field.GROUP})
KNOWN = "numersense.number-words-are-known"


def corpus(size: int = 80, seed: int = 0) -> Corpus:
    """Things with so many parts; "two" is frequent."""
    rng, found = np.random.default_rng(seed), []
    shares = np.array([1, 1, 2, 6, 3, 2, 1, 1, 1, 1, 1, 1]) / 21
    for n in range(size):
        word = str(rng.choice(NUMBER_WORDS, p=shares))
        text = f"a {_THINGS[n % 40]} has [MASK] parts ."
        about = {"answer": [word], "candidates": NUMBER_WORDS, "group": word}
        found.append(Example(str(n), text, annotations=about))
    return Corpus("things", found, _FIELDS)


def encoder(seed: int = 0) -> Encoder:
    """A random model over these words."""
    torch.manual_seed(seed)
    words = [*_THINGS, *NUMBER_WORDS, "a", "has", "parts", "."]
    config = hf.BertConfig(
        vocab_size=5 + len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32,
        initializer_range=(0.02, 0.1, 0.5)[seed % 3],
    )  # fmt: skip
    made = hf.BertForMaskedLM(config).eval()
    return Encoder(made, tiny.tokenizer(words, max_length=32), name="random", head="mlm")


def concluded(scores: np.ndarray, answers: list[str]) -> Result:
    """Of log-probabilities (N, words) that are given."""
    part = xr.Dataset(
        {
            "score": (("example", "candidate", "layer"), scores[..., None]),
            "answer": ("example", answers),
        },
        coords={"candidate": list(NUMBER_WORDS)},
    )
    about = {"name": "m", "fingerprint": "f"}
    study = NumberWords(resamples=200)
    return study.conclude(
        {f"examples-000000-{len(scores):06d}": part},
        Provenance("number-words", 1, study.parameters, about, about),
    )


def chance(seed: int) -> Result:
    """A random model, for nulls."""
    return planted_links.ask(NumberWords(resamples=200), encoder(seed), corpus(200, seed))


class TestResult(ResultConformance):
    measures: ClassVar[frozenset[str]] = frozenset(
        {"number-words-first", "number-words-calibrated"}
    )

    @staticmethod
    def make() -> Result:
        return chance(1)

    def test_a_random_model_knows_nothing(self, result: Result) -> None:
        assert claims_of(result)[KNOWN] != "holds"

    def test_scores_are_those_of_a_plain_loop(self, result: Result) -> None:
        reader, texts = encoder(1), corpus(200, 1)
        ids = reader.tokenizer.convert_tokens_to_ids(list(NUMBER_WORDS))
        right = 0
        for example in texts:
            given = reader.tokenizer(example.text, return_tensors="pt")
            at = int((given["input_ids"][0] == reader.tokenizer.mask_token_id).nonzero()[0, 0])
            with torch.no_grad():
                logits = reader.model(**given).logits[0, at, ids]
            right += NUMBER_WORDS[int(logits.argmax())] == example.get("answer")[0]
        assert result.evidence()["accuracy_at_1"].value == pytest.approx(right / len(texts))


def test_a_table_is_known_and_liking_a_word_is_not() -> None:
    texts = corpus(160)
    answers = [str(e.get("answer")[0]) for e in texts]
    right = np.array([NUMBER_WORDS.index(word) for word in answers])
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(160, 12))
    scores[np.arange(160), right] += 8
    known = concluded(scores, answers)
    table = known.tables["accuracy"].set_index(["answer", "score", "k"])["share"]
    assert table["all", PLAIN, 1] == table["two", PLAIN, 3] == 1
    assert claims_of(known)[KNOWN] == "holds"
    liked = rng.normal(size=(160, 12))
    liked[:, NUMBER_WORDS.index("two")] += 20
    alike = concluded(liked, answers)
    rows = alike.tables["accuracy"].set_index(["answer", "score", "k"])["share"]
    assert rows["all", PLAIN, 1] == pytest.approx(np.mean(np.array(answers) == "two"))
    assert rows["all", PLAIN, 1] == rows["all", MAJORITY, 1]
    assert rows["two", CALIBRATED, 1] < 0.5, "it is liked everywhere, and gains nothing"
    assert claims_of(alike)[KNOWN] != "holds"


def test_equal_scores_share() -> None:
    found = concluded(np.zeros((20, 12)), ["two"] * 20).tables["accuracy"]
    rows = found.set_index(["answer", "score", "k"])["share"]
    assert rows["all", PLAIN, 1] == pytest.approx(1 / 12)
    assert rows["all", PLAIN, 3] == pytest.approx(3 / 12)


def test_bad_requests_are_refused_in_words() -> None:
    texts = corpus(4)
    about = {**texts[1].annotations, "candidates": ("one", "two")}
    other = replace(texts, examples=[texts[0], replace(texts[1], annotations=about)])
    with pytest.raises(DataError, match="has other candidates than the first"):
        NumberWords().check(encoder(), other)
    about = {**texts[1].annotations, "answer": ["dozens"]}
    wrong = replace(texts, examples=[texts[0], replace(texts[1], annotations=about)])
    with pytest.raises(DataError, match="not among its candidates"):
        NumberWords().check(encoder(), wrong)
