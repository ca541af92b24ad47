"""Word senses: planted mixtures are measured exactly, at their layer only; chance never is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.neighbors import KNeighborsClassifier

import made_senses as made
import planted_links
from bertology.annotated import states
from bertology.annotated.sense_occurrences import (
    StaticViews,
    found_spans,
    held_out_units,
    sense_occurrences,
    span_states,
    static_views,
)
from bertology.annotated.states import word_states
from bertology.data.corpus import Corpus
from bertology.errors import DataError, ParameterError, UnknownNameError
from bertology.results.result import Result
from bertology.stats import mean_interval
from bertology.studies.geometry.word_senses import WordSenses
from bertology.studies.geometry.word_senses.data import SenseData, clustered_lemmas, static_answers
from result_conformance import ResultConformance, claims_of

TOLD = "primer-embeddings.senses-are-told-by-neighbours"
CLUSTERS = "primer-embeddings.senses-form-clusters"
BAG = "primer-embeddings.more-than-the-words-around"


class TestResult(ResultConformance):
    measures = frozenset({"accuracy", "lemma-mean", "ari", "v-measure", "silhouette"})

    @staticmethod
    def make() -> Result:
        return made.ask(made.encoder(), made.corpus(), planes=("pca", "t-sne"))

    def test_a_random_model_bears_out_no_claim(self, result: Result) -> None:
        assert "holds" not in claims_of(result).values()

    def test_the_picture_has_every_occurrence_with_its_word(self, result: Result) -> None:
        table = result.table("occurrences")
        assert list(table) == [
            "lemma", "sense", "layer", "method", "x", "y", "text", "start", "end",
        ]  # fmt: skip
        assert set(table["layer"]) == {-1, 0, 1}
        assert set(table["method"]) == {"pca", "t-sne"}
        assert table["lemma"].nunique() == 1
        lemma = str(table["lemma"].iloc[0])
        assert len(table) == 2 * 3 * 20
        for text, start, end in table[["text", "start", "end"]].to_numpy():
            assert text[start:end] == lemma.removesuffix(".n")


def test_planted_senses_are_found_at_their_layer_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = made.simulated(monkeypatch, made.corpus(), apart=6.0)
    rows = result.table("layers").set_index("layer")
    assert rows.loc[made.PLANTED, "accuracy"] == 1
    assert rows.loc[made.PLANTED, "ari"] > 0.97
    assert rows.loc[made.PLANTED, "silhouette"] > 0.5
    others = rows.drop(made.PLANTED)
    assert (others["accuracy"] < 0.6).all()
    assert (others["ari"].abs() < 0.1).all()
    scores = result.table("scores").set_index("score")
    assert set(scores["layer"]) == {made.PLANTED}
    by_senses = result.table("senses").set_index("senses")
    assert list(by_senses.index) == [2, 3]
    assert (by_senses["ari"] > 0.9).all()
    assert claims_of(result) == {TOLD: "holds", CLUSTERS: "holds", BAG: "holds"}


@pytest.mark.parametrize("seed", range(2))
def test_gaussian_states_and_dealt_senses_bear_out_nothing(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    result = made.simulated(monkeypatch, made.corpus(120, seed=seed), apart=0.0, seed=seed)
    assert "holds" not in claims_of(result).values()
    assert "surely tell senses" in result.reasons()["beyond_context"]
    texts = made.corpus(120, seed=seed)
    rng = np.random.default_rng(seed)
    kept = rng.permutation(len(texts) // len(made.LEMMAS))  # senses of each lemma, dealt anew
    senses = [example.get("senses") for example in texts]
    dealt = [
        replace(e, annotations={**e.annotations, "senses": senses[i % 12 + 12 * kept[i // 12]]})
        for i, e in enumerate(texts)
    ]
    real = made.ask(made.encoder(seed=seed), replace(texts, examples=dealt), seed=seed)
    assert "holds" not in claims_of(real).values()


def test_shares_are_those_of_scikit_learn_fold_by_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made.corpus(96)
    kept: dict[str, np.ndarray] = {}
    original = made.MadeStates.block

    def block(self: made.MadeStates, number: int) -> np.ndarray:
        kept.setdefault("states", self._values)
        return original(self, number)

    monkeypatch.setattr(made.MadeStates, "block", block)
    result = made.simulated(monkeypatch, texts, apart=1.0, per_sense=2)
    states = kept["states"][:, 2::5].astype(np.float32)  # the third of five words
    assert states.shape[1] == len(texts)
    lemmas = np.arange(96) % 12
    senses = np.array([example.get("senses")[0][3] for example in texts])
    folds = np.random.default_rng(0).permutation(96) % 5
    for layer, of in enumerate(states):
        right = 0
        for lemma in range(12):
            for fold in range(5):
                asked = (lemmas == lemma) & (folds == fold)
                known = (lemmas == lemma) & (folds != fold)
                if asked.any():
                    near = KNeighborsClassifier(1, metric="cosine")
                    near.fit(of[known], senses[known])
                    right += int((near.predict(of[asked]) == senses[asked]).sum())
        table = result.table("neighbours")
        row = table[(table["k"] == 1) & (table["layer"] == layer - 1)]
        assert row["accuracy"].item() == pytest.approx(right / 96)


def test_baselines_know_frequency_and_form() -> None:
    texts = made.corpus(120)
    reader = made.encoder()
    occurrences = sense_occurrences(texts)
    data = SenseData.of(
        texts, occurrences, np.ones(len(occurrences), bool), asked=60, folds=5, seed=0
    )
    assert data.unit == "texts"
    assert (data.known == ~data.asked).all()
    views = static_views(reader, texts, [one.span for one in occurrences])
    found = static_answers(data, views)
    senses = np.array([one.sense for one in occurrences])
    for lemma in made.LEMMAS:
        own = np.array([one.lemma == f"{lemma}.n" for one in occurrences])
        names, counts = np.unique(senses[60:][own[60:]], return_counts=True)
        frequent = names[counts == counts.max()]
        asked = own & (np.arange(120) < 60)
        chances = np.isin(senses[asked], frequent) / len(frequent)
        np.testing.assert_array_equal(found["frequent"][asked], chances)
        np.testing.assert_array_equal(found["reachable"][asked], np.isin(senses[asked], names))
    np.testing.assert_array_equal(found["static"], found["frequent"])  # each lemma has one form
    # The words around are all but the word itself.
    table = reader.model.get_input_embeddings().weight.detach().numpy()
    ids = [reader.tokenizer.convert_tokens_to_ids(w) for w in texts[0].get("words")]
    np.testing.assert_allclose(
        views.around[0], table[[ids[i] for i in (0, 1, 3, 4)]].mean(axis=0), rtol=1e-5
    )


def test_of_equally_frequent_senses_the_baseline_takes_one_by_chance() -> None:
    """Not the first of the alphabet, which would be right or wrong for all texts together."""
    texts = made.corpus(120)
    lemma = next(e.get("senses")[0][2] for e in texts)
    shares = []
    for kinds in (2, 3):
        examples = []
        for i, e in enumerate(texts):
            first, last, _, _ = e.get("senses")[0]
            sense = f"s{i % kinds}" if i >= 60 else "s0"  # taught equally often; asked: the first
            about = {**e.annotations, "senses": [[first, last, lemma, sense]]}
            examples.append(replace(e, annotations=about))
        data = data_of(replace(texts, examples=examples), asked=60)
        views = StaticViews(np.zeros(120, np.int64), np.ones((1, 4)), np.zeros((120, 4)))
        found = static_answers(data, views)
        np.testing.assert_allclose(found["frequent"][:60], 1 / kinds)
        np.testing.assert_allclose(found["static"][:60], 1 / kinds)
        shares.append(data.summed(found["frequent"], data.lemma_of, 1).item())
    assert shares == pytest.approx([30, 20])


def test_with_states_of_other_words_kept_too_the_numbers_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts, reader = made.corpus(120), made.encoder()
    context = planted_links.Context(states=tmp_path)
    study = WordSenses(k=(1, 5), pictured=1, planes=("pca",))
    few = study.measure(reader, texts, "model", context)
    kept = sum(len(e.get("senses")) for e in texts)
    assert sum(_sizes(tmp_path)) == kept

    def every(*given: Any, words: Any, **how: Any) -> Any:
        return word_states(*given, **how)

    monkeypatch.setattr(states, "word_states", every)
    all_kept = study.measure(reader, texts, "model", context)
    assert sum(_sizes(tmp_path)) == kept + 5 * len(texts)
    assert few.identical(all_kept)


def _sizes(folder: Path) -> list[int]:
    return [load_file(path)["states"].shape[1] for path in folder.glob("*/*.safetensors")]


def test_spans_are_means_of_words_and_cut_ones_are_left_out() -> None:
    texts, reader = made.corpus(12), made.encoder()
    spans = [(0, 1, 3), (3, 2, 3)]
    words = word_states(reader, texts)
    states = span_states(words, found_spans(texts, words, spans))
    read = words.block(0).astype(np.float32)
    np.testing.assert_allclose(states[:, 0], read[:, 1:3].mean(axis=1), atol=2e-3)
    np.testing.assert_array_equal(states[:, 1], words.block(0)[:, 3 * 5 + 2])
    words.there[3 * 5 + 2] = False
    assert [len(at) for at in found_spans(texts, words, spans)] == [2, 0]


def grouped(texts: Corpus, groups: list[str]) -> Corpus:
    pairs = zip(texts, groups, strict=True)
    examples = [replace(e, annotations={**e.annotations, "group": g}) for e, g in pairs]
    return replace(texts, examples=examples)


def test_documents_stay_together_but_groups_of_one_word_are_no_documents() -> None:
    texts = made.corpus(120)
    found, unit = held_out_units(
        grouped(texts, [f"d{i // 10}" for i in range(120)]), sense_occurrences(texts)
    )
    assert unit == "documents"
    assert found.tolist() == [i // 10 for i in range(120)]
    lemmas = grouped(texts, [made.LEMMAS[i % 12] for i in range(120)])
    found, unit = held_out_units(lemmas, sense_occurrences(texts))
    assert unit == "texts"
    assert len(set(found.tolist())) == 120
    louder = replace(texts[0], text=f"{texts[0].text.upper()} !")
    same = replace(texts, examples=[louder, *texts[0:5]])
    assert held_out_units(same, sense_occurrences(same))[0].tolist() == [0, 0, 1, 2, 3, 4]


def data_of(texts: Corpus, *, asked: int | None = None) -> SenseData:
    occurrences = sense_occurrences(texts)
    there = np.ones(len(occurrences), bool)
    asks = len(texts) if asked is None else asked
    return SenseData.of(texts, occurrences, there, asked=asks, folds=5, seed=0)


def test_a_text_that_is_in_two_documents_is_not_its_own_neighbour() -> None:
    texts = made.corpus(120)
    again = [replace(e, id=f"again-{e.id}", text=e.text.upper()) for e in texts[:24]]
    twice = replace(texts, examples=[*texts, *again])
    twice = grouped(twice, [f"d{i // 12}" for i in range(144)])
    data = data_of(twice)
    assert data.unit == "documents"
    assert data.repeated == 24
    assert data.places.tolist() == list(range(120))
    split = data_of(twice, asked=60)  # what is asked about stays, what would teach it goes
    assert split.places.tolist() == list(range(120))
    assert split.asked.sum() == 60
    plain = data_of(replace(texts, examples=[*texts, *again]))
    assert (plain.unit, plain.repeated) == ("texts", 0)
    assert (plain.folds[120:] == plain.folds[:24]).all()


def test_clusters_have_one_occurrence_of_a_word_from_each_text() -> None:
    texts = made.corpus(240)
    again = [replace(e, id=f"again-{e.id}") for e in texts]
    own, double = (
        clustered_lemmas(data_of(of), fewest=5, most=50, points=400, seed=0)
        for of in (texts, replace(texts, examples=[*texts, *again]))
    )
    assert len(own) >= 10
    assert [(lemma, rows.tolist()) for lemma, rows in own] == [
        (lemma, rows.tolist()) for lemma, rows in double
    ]


def test_intervals_over_lemmas_are_about_as_wide_as_students(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = made.simulated(monkeypatch, made.corpus(480), apart=0.7)
    lemmas = result.table("lemmas")
    row = result.table("layers").set_index("layer").loc[made.PLANTED]
    for name, column in (("lemma_mean", "accuracy"), ("ari", "ari")):
        student = mean_interval(lemmas[column].to_numpy())
        assert row[name] == pytest.approx(student.value)
        width = row[f"{name}_high"] - row[f"{name}_low"]
        assert width == pytest.approx(student.high - student.low, rel=0.15)
    gain = result.evidence()["cluster_gain"]
    spread = float(lemmas["ari"].std())
    assert gain.value > 0.1
    assert gain.high - gain.low < 4.4 * 1.6 * spread / np.sqrt(12)  # copies differ, too


def test_with_a_handful_of_lemmas_there_is_no_interval_over_lemmas() -> None:
    texts = made.corpus(480)
    few = [e for i, e in enumerate(texts) if i % 12 < 4]
    result = made.ask(made.encoder(), replace(texts, examples=few), pictured=0)
    assert result.table("layers")[["lemma_mean_low", "lemma_mean_high"]].isna().all(axis=None)
    assert "5 are needed" in result.reasons()["lemma_mean_gain"]
    assert "sense_gain" in result.evidence()
    assert "ari" not in result.table("layers")
    some = [e for i, e in enumerate(texts) if i % 12 < 6]  # shown, but too few for a verdict
    result = made.ask(made.encoder(), replace(texts, examples=some), pictured=0)
    assert result.table("layers")["ari_low"].notna().all()
    assert "10 are needed" in result.reasons()["cluster_gain"]
    assert [tracked.measure for tracked in result.over_training()] == ["sense_gain"]


def test_words_can_be_named_and_what_cannot_be_is_refused() -> None:
    texts, reader = made.corpus(120), made.encoder()
    table = made.ask(reader, texts, words=("word3",), drawn_layers=(0,)).table("occurrences")
    assert set(table["lemma"]) == {"word3.n"}
    assert set(table["layer"]) == {0}
    with pytest.raises(UnknownNameError, match="word1"):
        made.ask(reader, texts, words=("wort1",))
    for how, must in (
        ({"k": (0,)}, "from 1"),
        ({"planes": ("mds",)}, "t-sne"),
        ({"drawn_layers": (5,)}, "from -1 to 1"),
    ):
        with pytest.raises(ParameterError, match=must):
            WordSenses(**how).check(reader, texts)
    with pytest.raises(DataError, match="are needed"):
        made.ask(reader, made.corpus(12), pictured=0)


def test_few_lemmas_leave_clusters_open() -> None:
    result = made.ask(made.encoder(), made.corpus(60), pictured=0)
    assert "ari" not in result.table("layers")
    assert "cluster_gain" in result.reasons()
    assert "occurrences" not in result.tables
