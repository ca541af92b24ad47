"""Taggers: the bundled probe, those of other libraries, and corpora that are annotated and kept."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import planted_links as planted
from bertology.annotated.tagged_batches import tagging_ingredients
from bertology.annotated.tagger import (
    BUNDLED,
    RECORD,
    ProbeTagger,
    SpacyTagger,
    StanzaTagger,
    Tags,
    annotate,
    find_tagger,
    keep,
    word_states,
)  # fmt: skip
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.loading import load_corpus
from bertology.errors import DataError, MissingExtraError, ModelError, UnknownNameError
from bertology.model.encoder import Encoder


class Capitals:
    """Calls what has a capital a proper noun and the first word the subject."""

    name = "capitals"

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        return [
            Tags(
                tuple("PROPN" if w[0].isupper() else "X" for w in words),
                tuple("subject" if i == 0 else "" for i, _ in enumerate(words)),
            )
            for words in sentences
        ]


PAIR = Corpus(
    "pairs",
    [
        Example("0", "Ann didn't go.", "So Bob didn 't", label=1),
        Example("1", "No", "Yes.", label=0),
    ],
    frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL}),
)


def test_both_texts_of_a_pair_are_annotated_as_sentences_of_their_own() -> None:
    made = annotate(PAIR, Capitals())
    first = made[0]
    assert first.get("words") == ["Ann", "did", "n't", "go", ".", "So", "Bob", "did", "n't"]
    assert first.get("tags") == ["subject", "", "", "", "", "subject", "", "", ""]
    joined = f"{first.text} {first.text_b}"
    spelt = [joined[a:b].replace(" ", "") for a, b in first.get("offsets")]
    assert spelt == first.get("words")
    assert made.fields >= {Field.WORDS, Field.OFFSETS, Field.POS, Field.TAGS, Field.LABEL}
    assert made.origin == {}


def test_an_annotated_corpus_is_kept_and_loaded_by_workers(tmp_path: Path) -> None:
    made = annotate(PAIR, Capitals())
    kept = keep(made, tmp_path / "kept" / "pairs.jsonl")
    assert kept.origin
    again = load_corpus(**kept.origin)
    assert again.fingerprint == kept.fingerprint
    for one, other in zip(made, again, strict=True):
        assert (one.text, one.text_b, one.label) == (other.text, other.text_b, other.label)
        assert dict(one.annotations) == dict(other.annotations)
    spaced = Corpus("s", [Example("0", " a")], frozenset({Field.TEXT}))
    with pytest.raises(DataError, match="white space"):
        keep(annotate(spaced, Capitals()), tmp_path / "s.jsonl")


def test_words_that_are_annotated_stay_as_they_are() -> None:
    given = Example("0", "New York", annotations={"words": ["New York"], "frame": "Place"})
    made = annotate(Corpus("c", [given], frozenset({Field.TEXT, Field.WORDS})), Capitals())
    assert made[0].get("words") == ["New York"]
    assert made[0].get("pos") == ["PROPN"]
    assert Field.OFFSETS not in made.fields


def test_a_tagger_that_loses_words_is_refused() -> None:
    class Lossy(Capitals):
        def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
            return [Tags(("X",), ("",)) for _ in sentences]

    with pytest.raises(DataError, match="another number of words"):
        annotate(PAIR, Lossy())


def test_states_are_those_of_the_first_piece() -> None:
    encoder = Encoder(planted.random_model(spread=0.4), planted.tokenizer())
    sentences = [["the", "dog", "sees", "unknown", "."], ["a", "cat"]]
    found = word_states(encoder, sentences, 1)
    assert [len(x) for x in found] == [5, 2]
    alone = encoder.run("a cat", record="layer.1.residual")["layer.1.residual"][0, 1:3]
    assert (found[1] - alone).abs().max() < 1e-5


@pytest.fixture
def fitting(tmp_path: Path) -> tuple[Path, Encoder]:
    """A probe whose weights are made up, for a tiny model."""
    import torch
    from safetensors.torch import save_file

    encoder = Encoder(planted.random_model(spread=0.4), planted.tokenizer(), name="tiny")
    record = {"model": "tiny", "fingerprint": encoder.fingerprint, "layer": 1,
              "tags": ["NOUN", "VERB"], "roles": ["", "subject", "object"]}  # fmt: skip
    (tmp_path / RECORD).write_text(json.dumps(record))
    generator = torch.Generator().manual_seed(0)
    weights = {f"{p}.{k}": torch.randn(s, generator=generator)
               for p, n in (("pos", 2), ("role", 3))
               for k, s in (("weight", (n, 16)), ("bias", (n,)))}  # fmt: skip
    save_file(weights, tmp_path / "tagger.safetensors")
    return tmp_path, encoder


def test_a_probe_tags_every_word(fitting: tuple[Path, Encoder]) -> None:
    tags = ProbeTagger(*fitting).tag([["the", "dog", "."], ["sees"]])
    assert [len(t.pos) for t in tags] == [3, 1]
    assert {role for t in tags for role in t.roles} <= {"", "subject", "object"}


def test_a_probe_refuses_a_model_it_was_not_trained_for(fitting: tuple[Path, Encoder]) -> None:
    folder, _ = fitting
    other = Encoder(planted.random_model(spread=0.4, seed=1), planted.tokenizer(), name="tiny")
    with pytest.raises(ModelError, match="trained on other weights") as caught:
        ProbeTagger(folder, other)
    assert "train_tagger.py" in str(caught.value)
    (folder / RECORD).unlink()
    with pytest.raises(ModelError, match="no tagger"):
        ProbeTagger(folder, other)


def test_the_bundled_record_says_what_it_is_and_how_good() -> None:
    record = json.loads((BUNDLED / RECORD).read_text(encoding="utf-8"))
    assert "CC BY-SA 4.0" in record["licence"]
    assert len(record["tags"]) == 17
    assert set(record["scores"]) == {"ud-ewt validation", "ud-ewt test", "ud-pud test"}
    for scores in record["scores"].values():
        one, plain = scores["pos_accuracy"], scores["pos_accuracy_of_most_frequent_tag"]
        assert one["low"] <= one["value"] <= one["high"]
        assert one["low"] > plain["high"]


def test_the_bundled_tagger_fits_the_bundled_model() -> None:
    tags = find_tagger("bundled").tag([["The", "dogs", "saw", "a", "bird", "."]])[0]
    assert tags.pos == ("DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT")
    assert tags.roles[1] == "subject"


def test_spacy_and_stanza_are_used_where_they_are_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokens = [
        SimpleNamespace(pos_="PRON", dep_="nsubjpass"),
        SimpleNamespace(pos_="X", dep_="dobj"),
    ]
    given: list[Any] = []

    class Pipeline:
        vocab = "vocabulary"

        def __call__(self, doc: Any) -> Any:
            given.append(doc)
            return tokens

    spacy, parts = ModuleType("spacy"), ModuleType("spacy.tokens")
    spacy.load, spacy.__version__ = lambda name: Pipeline(), "0"  # type: ignore[attr-defined]
    parts.Doc = lambda vocab, words: (vocab, words)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    monkeypatch.setitem(sys.modules, "spacy.tokens", parts)
    assert SpacyTagger().tag([["it", "is"]]) == [Tags(("PRON", "X"), ("subject", "object"))]
    assert given == [("vocabulary", ["it", "is"])]

    words = [
        SimpleNamespace(upos="PRON", deprel="nsubj:pass"),
        SimpleNamespace(upos="X", deprel="obl"),
    ]
    stanza = ModuleType("stanza")
    stanza.__version__ = "0"  # type: ignore[attr-defined]
    stanza.Pipeline = lambda language, **how: (  # type: ignore[attr-defined]
        lambda sentences: SimpleNamespace(sentences=[SimpleNamespace(words=words)])
    )
    monkeypatch.setitem(sys.modules, "stanza", stanza)
    tagger = StanzaTagger()
    assert tagger.tag([["it", "is"]]) == [Tags(("PRON", "X"), ("subject", ""))]
    assert tagger.name == "stanza 0, en"


def test_the_version_of_a_library_enters_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertology.annotated.tagged_batches.version", lambda name: f"{name} 1")
    found = tagging_ingredients("spacy")
    assert found == {"spacy": "spacy 1", "en_core_web_sm": "en_core_web_sm 1"}
    assert tagging_ingredients("stanza") == {"stanza": "stanza 1"}
    assert tagging_ingredients("gold") == {}
    assert list(tagging_ingredients("auto")) == ["bundled_tagger"]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match="spacy"):
        SpacyTagger()
    with pytest.raises(UnknownNameError, match="tagger"):
        find_tagger("bundle")


def test_the_bundle_can_be_copied(tmp_path: Path) -> None:
    copied = shutil.copytree(BUNDLED, tmp_path / "tagger")
    assert ProbeTagger(copied).name == find_tagger("bundled").name
