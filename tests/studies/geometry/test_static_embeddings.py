"""Static embeddings: means and components of known states, planted meanings, analogies, nulls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import planted_links as planted
from bertology.annotated import word_contexts as module
from bertology.annotated.word_contexts import ContextSums, add_contexts, count_words, spelt
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.static_vectors import write_word_vectors
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.geometry.static_embeddings import (
    StaticEmbeddings,
    StaticEmbeddingsResult,
    WordQuestions,
    _others,
    word_questions,
)
from bertology.studies.study import Context
from result_conformance import ResultConformance, claims_of

BETTER = "primer-embeddings.contexts-make-better-static-vectors"
LOWER = "primer-embeddings.lower-layers-make-better-static-vectors"
WORDS = [f"{a}{b}" for a in "bcdfghklm" for b in ("ab", "eb", "ib", "ob")]
PAIRS = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL})
WIDTH = planted.HEADS * planted.SIZE


def encoder(seed: int = 0) -> Encoder:
    return Encoder(planted.random_model(seed=seed), planted.tokenizer(), name="planted")


def ask(reader: Encoder, texts: Corpus, **how: Any) -> StaticEmbeddingsResult:
    study = StaticEmbeddings(**{"resamples": 200, "contexts_examples": 40, **how})
    found = planted.ask(study, reader, texts)
    assert isinstance(found, StaticEmbeddingsResult)
    return found


def word_pairs(words: list[str], scores: Any, count: int = 150) -> Corpus:
    rng = np.random.default_rng(0)
    made = []
    for at in range(count):
        a, b = rng.choice(len(words), 2, replace=False)
        made.append(Example(str(at), words[a], words[b], float(scores[a, b])))
    return Corpus("word pairs", made, PAIRS)


def simulated(
    monkeypatch: pytest.MonkeyPatch, *, told: tuple[int, ...], seed: int = 0, **how: Any
) -> StaticEmbeddingsResult:
    """Hidden meanings are in the sums of these layers (from 0), and in no others."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(len(WORDS), WIDTH))
    units = meaning / np.linalg.norm(meaning, axis=1, keepdims=True)
    known = dict(zip(WORDS, meaning, strict=True))

    def add(reader: Encoder, examples: Any, sums: ContextSums, **_: Any) -> int:
        draw = np.random.default_rng(len(reader.name) + len(sums.words))
        for at in range(len(sums.layers)):
            rows = draw.normal(size=(len(sums.words), WIDTH))
            if at - 1 in told and "shuffled" not in reader.name:
                rows = rows / 3 + np.array([known.get(w, np.zeros(WIDTH)) for w in sums.words])
            sums.sums[at] += torch.from_numpy(rows)
        sums.counts += 1
        return 0

    monkeypatch.setattr(module, "add_contexts", add)
    texts = word_pairs(WORDS, units @ units.T + rng.normal(size=(len(WORDS),) * 2) / 20)
    reader = encoder()
    reader.tokenizer.add_tokens(WORDS)  # what it cannot spell has no input embedding
    reader.model.resize_token_embeddings(len(reader.tokenizer))
    return ask(reader, texts, steps_of_component=0, **how)


class TestResult(ResultConformance):
    measures = frozenset({"similarity-mean", "similarity-component"})

    @staticmethod
    def make() -> Result:
        words = [word for word in planted.WORDS if word.isalpha()]
        scores = np.random.default_rng(1).normal(size=(len(words),) * 2)
        return ask(encoder(), word_pairs(words, scores, 50), contexts=str(_text()))

    def test_a_random_model_bears_nothing_out(self, result: Result) -> None:
        assert claims_of(result)[BETTER] != "holds"
        assert claims_of(result)[LOWER] != "holds"

    def test_shuffled_weights_are_distilled_in_the_same_ways(self, result: Result) -> None:
        assert result.table("layers")["shuffled"].notna().all()
        own = result.table("vectors")["vectors"].str.startswith("distilled")
        assert (result.table("vectors")["shuffled"].notna() == own).all()


def analogies() -> Corpus:
    words = [word for word in planted.WORDS if word.isalpha()]
    rng = np.random.default_rng(2)
    made = []
    for at in range(40):
        four = [str(word) for word in rng.choice(words, 4, replace=False)]
        about = {"words": four, "group": ("one", "two")[at % 2]}
        made.append(Example(str(at), " ".join(four), annotations=about))
    return Corpus("analogies", made, frozenset({Field.TEXT, Field.WORDS, Field.GROUP}))


class TestAnalogies(ResultConformance):
    measures = frozenset({"analogy-by-sum-mean", "analogy-by-product-mean"})

    @staticmethod
    def make() -> Result:
        return ask(encoder(), analogies(), contexts=str(_text()))

    def test_sections_are_told(self, result: Result) -> None:
        assert set(result.table("sections")["section"]) == {"one", "two"}


_MADE: list[Path] = []


@pytest.fixture(autouse=True, scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("contexts") / "contexts.txt"
    place.write_text("\n".join(one.text for one in planted.corpus(40)))
    _MADE.append(place)


def _text() -> Path:
    return _MADE[-1]


def test_planted_layers_are_found_and_beat_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    result = simulated(monkeypatch, told=(0, 1))
    layers = result.table("layers").set_index("layer")
    assert (layers.loc[[0, 1], "value_low"] > 0.3).all()
    assert (layers.loc[[2, 3], "value_low"] < 0).all()
    assert claims_of(result)[BETTER] == "holds"
    # Four layers have too few orders for two of them to be surely the lower ones.
    assert claims_of(result)[LOWER] == "inconclusive"
    assert "another order" in result.evidence()["lower_over_upper"].remedy
    told = result.table("comparisons").set_index("against")
    gain = result.evidence()["distilled_gain"]
    assert told.loc["input embeddings", "gain"] == gain.value
    assert told.loc["input embeddings", "gain_low"] == gain.low > 0
    ((control, beyond),) = gain.controls
    assert told.loc[control, "gain_low"] == beyond.low > 0
    assert "over input embeddings" in result.answer
    assert "over shuffled weights at their best" in result.answer
    assert (
        "which the claim rests on, is surely above zero, and there is surely one over"
        in result.answer
    )
    row = result.table("vectors").set_index("vectors").loc["distilled, mean"]
    assert row["over_input"] == pytest.approx(told.loc["input embeddings", "gain"])  # one method
    upper = simulated(monkeypatch, told=(3,))
    assert claims_of(upper)[LOWER] == "fails"


def test_noise_bears_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(2):
        verdicts = claims_of(simulated(monkeypatch, told=(), seed=seed))
        assert "holds" not in verdicts.values()
        assert verdicts[LOWER] == "not-applicable"


def test_files_of_vectors_stand_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    write_word_vectors(tmp_path / "noise.txt", WORDS[:-1], rng.normal(size=(len(WORDS) - 1, 5)))
    result = simulated(monkeypatch, told=(1,), vectors=(str(tmp_path / "noise.txt"),))
    assert "; noise.txt: " in result.answer
    rows = result.table("vectors").set_index("vectors")
    assert rows.loc["noise.txt", "value_low"] < 0 < rows.loc["distilled, mean", "value_low"]
    assert result.evidence()["over_given"].low > 0
    coverage = result.table("coverage").set_index("vectors")
    assert coverage.loc["noise.txt", "items"] < coverage.loc["distilled", "items"] == 1
    assert result.facts["examples"] == round(150 * coverage.loc["noise.txt", "items"])


def test_means_and_components_are_those_of_plain_loops() -> None:
    reader, texts = encoder(), planted.corpus(30)
    plain = [Example(str(i), one.text) for i, one in enumerate(texts)]
    counts, read = count_words(plain)
    words = sorted(counts)
    sums = ContextSums(words, range(planted.LAYERS + 1), WIDTH)
    for _ in range(25):  # of power iterations, the means first
        add_contexts(reader, plain, sums)
        sums.end_pass()
    assert read == 30
    assert sums.counts.tolist() == [counts[word] for word in words]
    seen: dict[str, list[Any]] = {word: [] for word in words}
    for one in plain:
        given = reader.tokenizer(one.text, return_tensors="pt")
        states = reader.model(**given, output_hidden_states=True).hidden_states
        for at, word in enumerate(one.text.replace(".", " .").split(), start=1):
            seen[word].append(np.stack([of[0, at].detach().numpy() for of in states]))
    means, components = sums.vectors("mean"), sums.vectors("component")
    for at, word in enumerate(words):
        own = np.stack(seen[word]).astype(np.float64)  # (occurrences, layers, width)
        assert means[:, at] == pytest.approx(own.mean(axis=0), abs=1e-5)
        for layer in (0, 2, 4):
            direction = np.linalg.svd(own[:, layer], full_matrices=False)[2][0]
            found = components[layer, at]
            assert abs(direction @ found) / np.linalg.norm(found) > 0.99999
            assert found @ own[:, layer].mean(axis=0) > 0
    again = ContextSums(words, range(planted.LAYERS + 1), WIDTH)
    again.restore(sums.arrays())
    assert (again.vectors("component") == components).all()


def test_analogies_are_those_of_the_formulas() -> None:
    rng = np.random.default_rng(4)
    words = [f"w{i}" for i in range(12)]
    vectors = rng.normal(size=(12, 6))
    vectors[3] = vectors[1] - vectors[0] + vectors[2]
    made = [
        Example(str(i), "", annotations={"words": [words[j] for j in four], "group": "g"})
        for i, four in enumerate([(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)])
    ]
    texts = Corpus("made", made, frozenset({Field.TEXT, Field.WORDS, Field.GROUP}))
    found = word_questions(texts)
    there = np.ones(12, bool)
    answers = found.answered(vectors, there)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for at, (a, b, c, d) in enumerate(found.items):
        near = units @ units[[a, b, c]].T
        added = near[:, 1] - near[:, 0] + near[:, 2]
        shifted = (near + 1) / 2
        multiplied = shifted[:, 1] * shifted[:, 2] / (shifted[:, 0] + 1e-3)
        for rule, scores in enumerate((added, multiplied)):
            scores[[a, b, c]] = -np.inf
            assert answers[rule, at] == (scores.argmax() == d)
    assert answers[0, 0] == 1
    there[3] = False  # a word without a vector is no answer
    assert found.answered(vectors, there)[0, 0] == 0


def test_what_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="neither pairs of single words"):
        StaticEmbeddings().check(encoder(), planted.corpus(30))
    texts = word_pairs(WORDS, np.random.default_rng(0).normal(size=(len(WORDS),) * 2))
    with pytest.raises(DataError, match="There is no file"):
        StaticEmbeddings(vectors=(str(tmp_path / "none.txt"),)).check(encoder(), texts)
    with pytest.raises(DataError, match="20 are needed"):
        ask(encoder(), texts, contexts=str(_text()))


def test_all_vectors_answer_among_the_same_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = [word for word in planted.WORDS if word.isalpha()]
    rows = np.random.default_rng(5).normal(size=(len(words) - 1, 5))
    write_word_vectors(tmp_path / "given.txt", words[1:], rows)  # one word is not in the file
    among, answered = [], WordQuestions.answered

    def seen(self: WordQuestions, vectors: Any, there: Any) -> Any:
        among.append({self.words[at] for at in np.flatnonzero(there)})
        return answered(self, vectors, there)

    monkeypatch.setattr(WordQuestions, "answered", seen)
    study = StaticEmbeddings(contexts=str(_text()), vectors=(str(tmp_path / "given.txt"),))
    study.measure(encoder(), analogies(), "model", Context())
    assert len(among) == 2 * (planted.LAYERS + 1) + 2
    assert all(one == among[0] for one in among)
    assert words[0] not in among[0]


def test_analogies_that_hang_together_by_a_word_are_not_independent() -> None:
    made = [
        Example(str(i), "", annotations={"words": words.split(), "group": "g"})
        for i, words in enumerate(
            ["Athens Greece Paris France", "Greece Greek Rome Roman", "a b c d", "a b e f",
             "g h i j", "k l m n", "o p q r", "s t u v", "w x y z"]
        )
    ]  # fmt: skip
    texts = Corpus("made", made, frozenset({Field.TEXT, Field.WORDS, Field.GROUP}))
    links = word_questions(texts).links
    assert links.first[0] == links.first[1]  # Greece
    assert links.first[2] == links.first[3]
    assert links.first[2] != links.second[2]
    chained = [Example(str(i), "", annotations={"words": list("abcd"), "group": "g"}
                       | {"words": [f"w{i}", f"w{i + 1}", f"w{i + 1}", f"w{i + 2}"]})
               for i in range(9)]  # fmt: skip
    apart = word_questions(Corpus("chain", chained, texts.fields)).links
    assert len(np.unique([apart.first, apart.second])) == 10


def test_a_word_that_cannot_be_spelt_has_no_input_embedding() -> None:
    made = [Example("0", "dog", "zzz", 1.0), Example("1", "ball", "cat", 2.0)]
    found = word_questions(Corpus("made", made, PAIRS))
    _, there = _others(encoder(), found, ())["input embeddings"]
    assert there.tolist() == [True, False, True, True]


def test_scores_that_are_all_the_same_are_refused() -> None:
    texts = word_pairs(WORDS, np.zeros((len(WORDS),) * 2))
    with pytest.raises(DataError, match="all but 0 have the score 0"):
        StaticEmbeddings().check(encoder(), texts)


def test_words_are_spelt_as_a_file_can_hold_them() -> None:
    assert spelt("New\u00a0 York\n", lower=True) == "new_york_"
    assert spelt("x" * 2000) == ""
