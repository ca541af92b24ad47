"""Word alignment: planted partners and offsets are found; noise and shuffled links are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.mentions import spaced
from bertology.data.readers.parallel import read_word_alignments
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.languages import word_alignment as module
from bertology.studies.languages.word_alignment import WordAlignment
from bertology.studies.languages.word_alignment.aligners import (
    METHODS,
    argmax,
    assignment,
    by_place,
    counts_of,
    error_rate,
    itermax,
)
from result_conformance import ResultConformance, claims_of

WIDTH, TOLD, KINDS = 24, 1, 30
ALIGNED = "primer-multilingual.words-are-aligned"
OFFSET = "primer-multilingual.offsets-translate-words"
OPEN = "primer-multilingual.open-classes-are-aligned-worse"
ENGLISH = ["dog", "sees", "often", "red", "the", "of", "and", "to", "house", "eats"]
WORDS = {
    "en": [*ENGLISH, *(f"e{i}" for i in range(KINDS - 10))],
    "de": [f"d{i}" for i in range(KINDS)],
}


def corpus(size: int = 60, *, seed: int = 0, dealt: bool = False) -> Corpus:
    """Sentences of the same words in another order; `dealt`: links to any word."""
    rng = np.random.default_rng(seed)
    examples = []
    for at in range(size):
        kinds = rng.choice(KINDS, 7, replace=False)
        order = rng.permutation(7)
        sides = [WORDS["de"][k] for k in kinds], [WORDS["en"][kinds[k]] for k in order]
        (one, first), (two, second) = map(spaced, sides)
        to = rng.permutation(7) if dealt else np.argsort(order)
        beyond = len(one) + 1
        about = {
            "words": [*sides[0], *sides[1]],
            "offsets": [*first, *((a + beyond, b + beyond) for a, b in second)],
            "alignment": [[i, int(to[i]), "sure" if i % 3 else "possible"] for i in range(7)],
            "language": "de",
            "language_b": "en",
        }
        examples.append(Example(str(at), one, two, annotations=about))
    names = "text text_b words offsets alignment language language_b"
    return Corpus("made", examples, frozenset(map(Field, names.split())))


def encoder(*, seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    words = [*WORDS["de"], *WORDS["en"]]
    config = hf.BertConfig(
        vocab_size=5 + len(words), hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, initializer_range=0.3,
    )  # fmt: skip
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    return Encoder(model, tiny.tokenizer(words), name="tiny")


def ask(monkeypatch: pytest.MonkeyPatch, *, planted: bool = True, seed: int = 0, **how: Any) -> Any:
    """One layer knows what a word means; what is of the language is as large."""
    rng = np.random.default_rng(seed)
    meaning, of_language = rng.normal(size=(KINDS, WIDTH)), 1.5 * rng.normal(size=(2, WIDTH))
    known = {w: (k, at) for at, own in enumerate(WORDS.values()) for k, w in enumerate(own)}

    def made(reader: Encoder, some: Corpus, texts: Any, context: Any) -> Any:
        found = []
        for one in texts:
            words = one.get("words")
            states = rng.normal(size=(4, len(words), WIDTH))
            if planted and "shuffled" not in reader.name:
                for at, word in enumerate(words):
                    kind, side = known[word]
                    states[1:, at] = 0.5 * states[1:, at] + of_language[side]
                    states[1 + TOLD, at] += meaning[kind]
            found.append((states.astype(np.float32), [[hash(word)] for word in words]))
        return found

    monkeypatch.setattr(module, "_word_states", made)
    study = WordAlignment(resamples=200, copy_sentences=40)
    return planted_links.ask(study, encoder(), corpus(seed=seed, **how))


class TestResult(ResultConformance):
    measures = frozenset({"aligned-argmax", "translated-shifted"})

    @staticmethod
    def make() -> Result:
        with pytest.MonkeyPatch.context() as patch:
            return ask(patch)

    def test_what_was_planted_is_found(self, result: Result) -> None:
        rows = result.table("summary").set_index("name")
        assert (rows.loc[list(METHODS), "layer"] == TOLD).all()
        assert (rows.loc[["argmax", "assignment"], "share"] > [0.8, 0.95]).all()
        assert rows.loc["places", "share"] < 0.5
        assert rows.loc["shifted", "share"] > rows.loc["nearest", "share"] + 0.2
        assert set(result.table("classes")["class"]) == {"open", "closed"}

    def test_its_claims_hold(self, result: Result) -> None:
        said = claims_of(result)
        assert (said[ALIGNED], said[OFFSET]) == ("holds", "holds")
        assert said[OPEN] != "holds"  # nothing of the kind was planted


@pytest.mark.parametrize(
    "how", [{"planted": False}, {"dealt": True}, {"planted": False, "seed": 5}]
)
def test_noise_and_dealt_links_tell_nothing(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    said = claims_of(ask(monkeypatch, **how))
    if "dealt" in how:  # a word's own translation is in its sentence: the offset does lead there
        said.pop(OFFSET)
    assert "holds" not in said.values(), said


def test_a_random_model_bears_out_nothing() -> None:
    study = WordAlignment(resamples=200, copy_sentences=20)
    result = planted_links.ask(study, encoder(seed=4), corpus(40))
    assert "holds" not in claims_of(result).values()


def test_error_rates_are_those_of_plain_transformers() -> None:
    """Of argmax and of translation, one sentence after the other."""
    reader, texts = encoder(), corpus(40, seed=2)
    result = planted_links.ask(WordAlignment(resamples=200, copy_sentences=20), reader, texts)
    rows = result.table("layers").set_index("layer")
    sums = np.zeros((4, 4))
    states: dict[tuple[int, int], list[tuple[str, np.ndarray]]] = {}
    linked: dict[int, set[tuple[str, str]]] = {0: set(), 1: set()}
    for at, one in enumerate(texts):
        sides = []
        for side, text in enumerate(one.texts):
            with torch.no_grad():
                given = reader.tokenizer(text, return_tensors="pt")
                hidden = reader.model(**given, output_hidden_states=True).hidden_states
            sides.append(torch.stack(hidden)[:, 0, 1:-1].double().numpy())
            words = list(zip(text.split(), np.moveaxis(sides[-1], 1, 0), strict=True))
            states.setdefault((at % 2, side), []).extend(words)
        sure = {(a, b) for a, b, kind in one.get("alignment") if kind == "sure"}
        every = {(a, b) for a, b, _ in one.get("alignment")}
        linked[at % 2] |= {(one.texts[0].split()[a], one.texts[1].split()[b]) for a, b in sure}
        for layer in range(4):
            a, b = (x[layer] / np.linalg.norm(x[layer], axis=1, keepdims=True) for x in sides)
            alike = a @ b.T
            links = {
                (i, int(alike[i].argmax()))
                for i in range(len(alike))
                if alike[:, alike[i].argmax()].argmax() == i
            }
            sums[layer] += len(links), len(links & sure), len(links & every), len(sure)
    for layer in range(4):
        made, sure_made, all_made, all_sure = sums[layer]
        rate = 1 - (sure_made + all_made) / (made + all_sure)
        assert 1 - rows.loc[layer - 1, "argmax"] == pytest.approx(rate, abs=1e-6)
        assert rows.loc[layer - 1, "precision"] == pytest.approx(all_made / made, abs=1e-6)
        assert rows.loc[layer - 1, "recall"] == pytest.approx(sure_made / all_sure, abs=1e-6)
        hits = list[bool]()
        for half in (0, 1):
            for own in (0, 1):
                means = [_means(states[half, side], layer) for side in (own, 1 - own)]
                centre = [
                    np.mean([x[layer] for _, x in states[1 - half, side]], axis=0)
                    for side in (own, 1 - own)
                ]
                pairs = {(b, a) if own else (a, b) for a, b in linked[half]}
                for word in sorted({a for a, _ in pairs}):
                    moved = means[0][word] + centre[1] - centre[0]
                    best = min(
                        means[1], key=lambda w, m=moved, y=means[1]: np.linalg.norm(m - y[w])
                    )
                    hits.append((word, best) in pairs)
        assert rows.loc[layer - 1, "shifted"] == pytest.approx(np.mean(hits), abs=1e-6)


def _means(words: list[tuple[str, np.ndarray]], layer: int) -> dict[str, np.ndarray]:
    found: dict[str, list[np.ndarray]] = {}
    for word, x in words:
        found.setdefault(word, []).append(x[layer])
    return {word: np.mean(of, axis=0) for word, of in found.items()}


def test_methods_on_a_small_table() -> None:
    alike = np.array([[0.9, 0.1, 0.0], [0.8, 0.7, 0.1], [0.2, 0.6, 0.5]])
    assert np.argwhere(argmax(alike)).tolist() == [[0, 0]] or argmax(alike)[0, 0]
    assert itermax(alike).sum() >= argmax(alike).sum()
    assert np.array_equal(assignment(alike), np.eye(3, dtype=bool))
    assert np.array_equal(argmax(by_place(4, 4)), np.eye(4, dtype=bool))
    sure = np.eye(3, dtype=bool)
    possible = sure | np.eye(3, k=1, dtype=bool)
    links = sure.copy()
    links[2] = [True, False, False]
    counts = counts_of(links, sure, possible)
    assert counts.tolist() == [3, 2, 2, 3]
    assert error_rate(counts) == pytest.approx(1 - 4 / 6)


def test_published_alignments_are_read_and_asked(tmp_path: Path) -> None:
    size = 24
    (tmp_path / "deen.src-tgt").write_text("d1 d2 d3 ||| e1 e2 e3\n" * size, encoding="utf-8")
    (tmp_path / "deen.gold").write_text("1-1 2-2 3p3\n" * size, encoding="utf-8")
    texts = read_word_alignments(tmp_path / "deen.src-tgt")
    result = planted_links.ask(WordAlignment(resamples=200, copy_sentences=20), encoder(), texts)
    rows = result.table("summary").set_index("name")
    assert rows.loc["places", "share"] == pytest.approx(1.0)
    assert result.table("pairs")["pair"].tolist() == ["de-en"]


def test_bad_requests_are_refused_in_words() -> None:
    texts = corpus(30)
    bare = replace(
        texts,
        examples=[replace(e, annotations={**e.annotations, "alignment": []}) for e in texts],
    )
    with pytest.raises(DataError, match="no link between words"):
        WordAlignment().check(encoder(), bare)
