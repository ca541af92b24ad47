"""A planted tokenizer knows one language, spells another, and does not know a third."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.loading import load_corpus
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.languages.tokenization import Tokenization, languages_not_known
from result_conformance import ResultConformance

MODEL = Path(__file__).parents[4] / "shared" / "models" / "multilingual-12x384"
ENGLISH = ["one", "two", "three"]
LETTERS = "abc"


def encoder() -> Encoder:
    """English words are pieces, German ones are spelt, of Japanese nothing is known."""
    pieces = [*ENGLISH, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    return Encoder(tiny.model("bert"), tiny.tokenizer(pieces, max_length=12), name="planted")


def corpus(items: int = 30, *, with_items: bool = True) -> Corpus:
    """Six words of each language; Japanese is one word without spaces."""
    rng, found = random.Random(0), []
    for item in range(items):
        texts = {
            "en": " ".join(rng.choices(ENGLISH, k=6)),
            "de": " ".join("".join(rng.choices(LETTERS, k=3)) for _ in range(6)),
            "ja": "日本語です。",
            "xx": " ".join(rng.choices(ENGLISH, k=3)),
        }
        for code, text in texts.items():
            own = {Field.LANGUAGE: code} | ({Field.ITEM: str(item)} if with_items else {})
            found.append(Example(f"{code}/{item}", text, annotations=own))
    fields = {Field.TEXT, Field.LANGUAGE} | ({Field.ITEM} if with_items else set())
    return Corpus("planted", found, frozenset(fields))


def ask(given: Corpus, **parameters: object) -> Result:
    result: Result = planted_links.ask(Tokenization(**parameters), encoder(), given)  # type: ignore[arg-type]
    return result


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return ask(corpus())

    def test_each_language_is_what_was_planted(self, result: Result) -> None:
        rows = result.table("languages").set_index("language")
        assert rows.loc["en", ["unknown", "fertility", "whole"]].tolist() == [0.0, 1.0, 1.0]
        assert rows.loc["de", ["unknown", "fertility", "whole"]].tolist() == [0.0, 3.0, 0.0]
        assert rows.loc["de", "letters"] == 1.0
        assert rows.loc["ja", "unknown"] == 1.0
        assert rows.loc["ja", "words"] == "characters"
        assert np.isnan(rows.loc["ja", "whole"])
        # 18 pieces with [CLS] and [SEP] are more than the 12 of the longest input; 6 are not.
        assert rows["cut"].to_dict() == {"en": 0.0, "de": 1.0, "ja": 0.0, "xx": 0.0}
        assert rows["parity"].to_dict() == pytest.approx(
            {"en": 1.0, "de": 3.0, "ja": 5 / 6, "xx": 0.5}
        )
        assert rows.loc["de", "per_byte"] == pytest.approx(18 / 23)

    def test_the_unknown_language_comes_first_and_is_named(self, result: Result) -> None:
        assert result.not_known == ["ja"]  # type: ignore[attr-defined]
        assert result.shown("languages")["name"].tolist()[0] == "Japanese"
        assert (
            "not known to this tokenizer (share of unknown pieces): Japanese 100 %" in result.answer
        )
        assert "German takes 3.00" in result.answer
        assert "; spelt letter by letter: German. German" in result.answer
        assert result.spelt == ["de"]  # type: ignore[attr-defined]

    def test_shared_pieces(self, result: Result) -> None:
        shared = result.table("shared").set_index(["language", "other"])
        assert shared.loc[("en", "xx"), ["both", "jaccard", "covered"]].tolist() == [3, 1.0, 1.0]
        assert shared.loc[("en", "de"), "both"] == 0
        assert shared.loc[("ja", "de"), "both"] == 0


def test_without_languages_there_is_one_row() -> None:
    result = ask(Corpus.of_texts(["one two", "two three three"]))
    (row,) = result.table("languages").to_dict("records")
    assert (row["name"], row["fertility"], row["unknown"]) == ("all texts", 1.0, 0.0)
    assert "shared" not in result.tables
    assert "1.00 [1.00, 1.00] pieces per word" in result.answer
    for drawing in result.drawings():
        drawing.draw()


def test_without_items_parity_is_not_judged() -> None:
    result = ask(corpus(with_items=False))
    assert "parity" not in result.table("languages")
    assert "share no items" in result.reasons()["largest_parity"]
    assert "pieces per byte" in result.answer


def test_another_reference_and_no_reference() -> None:
    rows = ask(corpus(), reference="de").table("languages").set_index("language")
    assert rows.loc["en", "parity"] == pytest.approx(1 / 3)
    assert "parity" not in ask(corpus(), reference="fr").table("languages")


def test_a_language_is_unknown_only_where_it_is_sure() -> None:
    """One text in four with an unknown word: 1 of 24 pieces, which is less than 5 %."""
    few = [
        Example(str(i), "one two three one two zzz" if i % 4 == 0 else "one two three one two one")
        for i in range(200)
    ]
    given = Corpus("few", few, frozenset({Field.TEXT}))
    assert languages_not_known(encoder(), given) == []
    assert languages_not_known(encoder(), given, beyond=0.01) == ["all texts"]
    assert languages_not_known(encoder(), corpus()) == ["ja"]


def test_pairs_are_counted_whole() -> None:
    result = ask(Corpus.of_texts([("one two", "three"), ("two", "one two three")]))
    (row,) = result.table("languages").to_dict("records")
    assert row["fertility"] == 1.0
    assert result.table("languages")["texts"].tolist() == [2]


def test_a_single_text_is_refused() -> None:
    with pytest.raises(DataError, match="two examples"):
        ask(Corpus.of_texts(["one"]))


def test_bounds_hold_as_often_as_promised() -> None:
    """Texts are drawn from a population whose share of unknown pieces is known: 4 %."""
    missed, rng = 0, np.random.default_rng(0)
    for _ in range(40):
        rows = rng.random((60, 10)) < 0.04
        texts = [" ".join("zzz" if bad else "one" for bad in row) for row in rows]
        found = ask(Corpus.of_texts(texts)).evidence()["largest_unknown_share"]
        missed += not found.low <= 0.04 <= found.high
    assert missed <= 6  # 2 are expected at most; more than 6 come once in 200 such tests


@pytest.mark.skipif(not MODEL.is_dir(), reason=f"the shared model is not there: {MODEL.name}")
def test_the_model_of_14_languages_does_not_know_hindi() -> None:
    try:
        given = load_corpus("pud", languages="en,de,hi", limit=60)
    except DataError:
        pytest.skip("PUD is not on this machine (BERTOLOGY_DATA)")
    own = Encoder.load(str(MODEL), device="cpu")
    result: Result = planted_links.ask(Tokenization(), own, given)
    rows = result.table("languages").set_index("language")
    assert rows.loc["hi", "letters_low"] > 0.5
    assert rows.loc["hi", "whole_high"] < rows.loc["de", "whole_low"]
    assert rows.loc["de", "unknown_high"] < 0.2
