"""Language space: planted offsets, translations and kin are found; noise is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.languages import language
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.stats.matrices import mantel
from bertology.studies.languages.language_space import LanguageSpace, passes
from bertology.studies.languages.language_space.scores import over_pairs
from bertology.studies.languages.language_space.space import (
    HOW,
    Texts,
    bags_of,
    centroids,
    found_by_words,
    found_in,
)
from result_conformance import ResultConformance, claims_of

CODES = ("ar", "cs", "de", "en", "es", "fi", "fr", "it", "ja", "ko", "ru", "zh")
ITEMS, WIDTH, TOLD = 60, 32, 2  # the layer at which translations lie together
SPACE = "primer-multilingual"
ANY_MODEL = f"{SPACE}.centring-takes-identity-away"  # true of whatever has means


def corpus(codes: tuple[str, ...] = CODES, items: int = ITEMS, *, seed: int = 0) -> Corpus:
    """Sentences of made-up words: no word is in two languages."""
    rng = np.random.default_rng(seed)
    words = rng.integers(20, size=(items, 6))
    spelt = {code: rng.permutation(20) for code in codes}  # digits are shared by chance only
    examples = [
        Example(
            f"{code}/{item}",
            " ".join(f"{code}{spelt[code][word]}" for word in rng.permutation(words[item])),
            annotations={"language": code, "item": str(item)},
        )
        for code in codes
        for item in range(items)
    ]
    return Corpus("made", examples, frozenset({Field.TEXT, Field.LANGUAGE, Field.ITEM}))


def encoder(codes: tuple[str, ...] = CODES, *, seed: int = 0) -> Encoder:
    words = [f"{code}{word}" for code in codes for word in range(20)]
    torch.manual_seed(seed)
    config = hf.BertConfig(
        vocab_size=5 + len(words), hidden_size=16, num_hidden_layers=4, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, initializer_range=0.3,
    )  # fmt: skip
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    return Encoder(model, tiny.tokenizer(words), name="tiny")


def offsets(rng: np.random.Generator, codes: tuple[str, ...] = CODES) -> np.ndarray:
    """What is of a language: near for kin ones."""
    drawn: dict[str, np.ndarray] = {}
    parts = []
    for code in codes:
        one = language(code)
        names = (one.family, one.genus, one.code)
        of = [drawn.setdefault(name, rng.normal(size=WIDTH)) for name in names]
        parts.append(2 * of[0] + 1.5 * of[1] + 0.7 * of[2])
    return np.array(parts)


def ask(
    monkeypatch: pytest.MonkeyPatch, *, planted: bool = True, seed: int = 0, items: int = ITEMS
) -> Any:
    """A model whose layer knows what a sentence means and in which language it is."""
    rng = np.random.default_rng(seed)
    texts = corpus(items=items, seed=seed)
    meaning = rng.normal(size=(items, WIDTH))
    of_language = dict(zip(CODES, offsets(rng), strict=True))
    noise = np.random.default_rng([seed, 1])

    def made(reader: Encoder, some: Corpus, **how: Any) -> Any:
        found = noise.normal(size=(5, len(some), WIDTH))
        if planted and "shuffled" not in reader.name:
            for at, one in enumerate(some):
                item = int(one.get("item"))
                found[1:, at] = 0.3 * found[1:, at] + of_language[one.get("language")]
                found[1 + TOLD, at] += meaning[item]
        pieces = [one.text.split() for one in some]
        return found.astype(np.float32), pieces

    monkeypatch.setattr(passes, "sentence_means", made)
    return planted_links.ask(LanguageSpace(resamples=200, seed=seed), encoder(), texts)


class TestResult(ResultConformance):
    measures = frozenset({"retrieval-cosine", "probe-identity", "distances-kinship"})

    @staticmethod
    def make() -> Result:
        with pytest.MonkeyPatch.context() as patch:
            return ask(patch)

    def test_what_was_planted_is_found(self, result: Result) -> None:
        rows = result.table("summary").set_index("how")
        assert rows.loc["centred", "share"] > 0.95
        assert rows.loc["shifted", "share"] > 0.95
        assert rows.loc["cosine", "share"] < 0.9  # languages lie further apart than meanings
        assert set(rows.loc[["centred", "shifted"], "layer"]) == {TOLD}
        assert rows.loc["chance", "share"] == pytest.approx(2 / ITEMS)
        assert result.table("layers").set_index("layer").loc[0, "centred"] < 0.1

    def test_offsets_are_recovered(self, result: Result) -> None:
        rng = np.random.default_rng(0)
        meaning, wanted = rng.normal(size=(ITEMS, WIDTH)), offsets(rng)
        found = result.arrays["centroids"].to_numpy()[1 + TOLD]
        assert np.abs(found - wanted - meaning.mean(axis=0)).max() < 0.3

    def test_its_claims_hold(self, result: Result) -> None:
        said = {name: outcome for name, outcome in claims_of(result).items() if SPACE in name}
        assert len(said) == 9
        assert set(said.values()) == {"holds"}, said
        assert "Kin languages" in result.answer or "kin languages" in result.answer


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_noise_tells_nothing(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    result = ask(monkeypatch, planted=False, seed=seed, items=40)
    said = claims_of(result)
    assert "holds" not in {outcome for name, outcome in said.items() if name != ANY_MODEL}, said
    assert result.answer.startswith("Nothing is sure")


def dealt(texts: Corpus, seed: int) -> Corpus:
    """Items of other sentences, in each language on its own."""
    rng = np.random.default_rng(seed)
    examples = []
    for code in dict.fromkeys(one.get("language") for one in texts):
        own = [one for one in texts if one.get("language") == code]
        items = rng.permutation([one.get("item") for one in own])
        for one, item in zip(own, items, strict=True):
            examples.append(replace(one, annotations={**one.annotations, "item": str(item)}))
    return replace(texts, examples=examples)


def test_other_items_are_no_translations() -> None:
    """A random model, and sentences whose items were dealt out anew."""
    study = LanguageSpace(resamples=200)
    some = ("ar", "de", "en", "fr", "ja", "ru")
    for texts in (corpus(some, 30), dealt(corpus(some, 30), 1)):
        said = claims_of(planted_links.ask(study, encoder(some), texts))
        said.pop(ANY_MODEL)
        assert "holds" not in said.values(), said


def test_numbers_are_those_of_plain_transformers() -> None:
    """Mean states, centroids and retrieval, one sentence after the other."""
    codes = ("de", "en", "fr")
    reader, texts = encoder(codes), corpus(codes, 24, seed=3)
    result = planted_links.ask(LanguageSpace(resamples=200), reader, texts)
    vectors = []
    with torch.no_grad():
        for one in texts:
            given = reader.tokenizer(one.text, return_tensors="pt")
            hidden = reader.model(**given, output_hidden_states=True).hidden_states
            vectors.append(torch.stack(hidden)[:, 0, 1:-1].mean(dim=1).double().numpy())
    x = np.stack(vectors, axis=1)  # (layers, texts, width)
    spoken = np.array([one.get("language") for one in texts])
    item = np.array([int(one.get("item")) for one in texts])
    means = np.stack([x[:, spoken == code].mean(axis=1) for code in codes], axis=1)
    assert np.allclose(result.arrays["centroids"], means, atol=1e-6)
    apart = np.linalg.norm(means[:, :, None] - means[:, None], axis=-1)
    assert np.allclose(result.arrays["distances"], apart, atol=1e-6)
    wanted = dict.fromkeys(HOW, 0.0)
    rows = result.table("layers").set_index("layer")
    for layer in range(5):
        hits = {how: list[bool]() for how in HOW}
        for half in (0, 1):
            centre = {
                code: x[layer][(spoken == code) & (item % 2 != half)].mean(axis=0) for code in codes
            }
            here = {
                code: {i: x[layer][(spoken == code) & (item == i)][0] for i in range(half, 24, 2)}
                for code in codes
            }
            for a in codes:
                for b in codes:
                    if a == b:
                        continue
                    for i, one in here[a].items():
                        away = {
                            "cosine": lambda j, y, v=one: -v @ y / np.linalg.norm(y),
                            "centred": lambda j, y, v=one - centre[a], c=centre[b]: (
                                -v @ (y - c) / np.linalg.norm(y - c)
                            ),
                            "nearest": lambda j, y, v=one: np.linalg.norm(v - y),
                            "shifted": lambda j, y, v=one - centre[a] + centre[b]: np.linalg.norm(
                                v - y
                            ),
                        }
                        for how, far in away.items():
                            best = min(here[b], key=lambda j, f=far: f(j, here[b][j]))
                            hits[how].append(best == i)
        wanted = {how: float(np.mean(hits[how])) for how in HOW}
        for how in HOW:
            assert rows.loc[layer - 1, how] == pytest.approx(wanted[how], abs=1e-6)
    assert 0 < wanted["cosine"] < 1


def test_two_languages_that_nobody_knows_are_enough() -> None:
    codes = ("qaa", "qab")
    study = LanguageSpace(resamples=200)
    result = planted_links.ask(study, encoder(codes), corpus(codes, 20))
    assert "kinship_correlation" not in result.evidence()
    assert "across_scripts_gain" not in result.evidence()
    assert {d.name for d in result.drawings()} == {"retrieval", "identity", "languages"}
    assert result.table("languages")["family"].tolist() == ["unknown", "unknown"]


def test_shared_pieces_find_what_shares_them() -> None:
    texts = Texts.of(["de"] * 10 + ["en"] * 10, [*range(10), *range(10)])
    alike = bags_of([[f"name{i}", "the"] for i in [*range(10), *range(10)]])
    assert found_by_words(alike, texts).tolist() == [1.0] * 20
    nothing = bags_of([[f"{i}"] for i in range(20)])
    assert found_by_words(nothing, texts).tolist() == [0.2] * 20  # one of five is guessed


def test_items_that_few_languages_have_make_pairs() -> None:
    """As in Tatoeba, where each language has items of its own beside English."""
    spoken = ["de"] * 12 + ["en"] * 12 + ["fr"] * 12 + ["en"] * 12
    items = [f"d{i}" for i in range(12)] * 2 + [f"f{i}" for i in range(12)] * 2
    texts = Texts.of(spoken, items)
    assert [(texts.codes[a], texts.codes[b]) for a, b, _ in texts.pairs] == [
        ("de", "en"), ("en", "fr"),
    ]  # fmt: skip
    x = np.random.default_rng(0).normal(size=(48, 6)).astype(np.float32)
    assert found_in(x, texts).shape == (len(HOW), 48)
    assert Counter(texts.rows[3].tolist()) == {6: 48}
    assert np.allclose(centroids(x, texts)[0], x[:12].mean(axis=0), atol=1e-6)


def test_a_language_in_all_pairs_is_taken_as_given() -> None:
    pairs = np.array([[0, other] for other in range(1, 7)])
    found = over_pairs(pairs, np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3]), 0.95)
    assert found is not None
    assert found.n == 6
    assert 0.1 < found.low < 0.2 < found.high < 0.3
    assert over_pairs(pairs[:3], np.zeros(3), 0.95) is None


def test_names_of_things_at_random_agree_seldom() -> None:
    rng = np.random.default_rng(0)
    sure = 0
    for seed in range(60):
        points = rng.normal(size=(10, 3))
        near = np.linalg.norm(points[:, None] - points[None], axis=-1)
        groups = rng.integers(3, size=10)
        apart = (groups[:, None] != groups[None]).astype(float)
        found = mantel(near, apart, level=0.95, unit="things", draws=499, seed=seed)
        sure += found is not None and found.excludes(0.0)
    assert sure <= 8
    same = mantel(near, near, level=0.95, unit="things", draws=499)
    assert same is not None
    assert same.value == pytest.approx(1)
    assert same.low > 0


def test_bad_requests_are_refused_in_words() -> None:
    reader = encoder(("de", "en"))
    alone = corpus(("de", "en"), 30)
    lonely = replace(
        alone,
        examples=[replace(e, annotations={**e.annotations, "item": e.id}) for e in alone],
    )
    with pytest.raises(DataError, match="share ten items"):
        LanguageSpace().check(reader, lonely)
    pairs = replace(alone, fields=alone.fields | {Field.TEXT_B})
    with pytest.raises(CapabilityError, match="pairs of texts"):
        LanguageSpace().check(reader, pairs)
