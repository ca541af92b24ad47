"""Vector repairs: what spoils cosines is found and undone, by the repair for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import planted_links as planted
from bertology.annotated import pair_vectors as module
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, DataError, ParameterError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.stats.vector_repairs import REPAIRS
from bertology.studies.geometry.vector_repairs import (
    VectorRepairs,
    VectorRepairsResult,
    _cosines,
)
from bertology.studies.study import Context
from result_conformance import ResultConformance, claims_of

BEST = "primer-embeddings.repairs-raise-agreement"
STANDARD = "primer-embeddings.standardising-raises-agreement"
WIDTH, SPOILT = 16, 2


def pairs(size: int = 120, *, words: bool = False, seed: int = 0) -> Corpus:
    """Sentences of a few words; or single words that are in several pairs each."""
    rng = np.random.default_rng(seed)
    texts = [
        " ".join(rng.choice(planted.WORDS[:-1], size=rng.integers(3, 7)))
        for i in range(size if words else 2 * size)
    ]
    made = []
    for i in range(size):
        first, second = rng.choice(size, 2, replace=False) if words else (2 * i, 2 * i + 1)
        made.append(Example(str(i), texts[first], texts[second], float(rng.integers(0, 6))))
    fields = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL})
    return Corpus("pairs", made, fields)


def encoder(seed: int = 0) -> Encoder:
    return Encoder(planted.random_model(seed=seed), planted.tokenizer(), name="planted")


def ask(given: Encoder, texts: Corpus, **how: Any) -> VectorRepairsResult:
    found = planted.ask(VectorRepairs(**{"resamples": 200, **how}), given, texts)
    assert isinstance(found, VectorRepairsResult)
    return found


def measured(study: VectorRepairs, given: Encoder, texts: Corpus) -> dict[str, Any]:
    return {"model": study.measure(given, texts, "model", Context())}


def simulated(
    monkeypatch: pytest.MonkeyPatch,
    spoil: str,
    *,
    layers: tuple[int, ...] = (SPOILT,),
    seed: int = 0,
    told: bool = True,
    size: int = 150,
) -> VectorRepairsResult:
    """Cosines of hidden vectors are the judgements, with noise; one layer has them spoilt.

    Weights in random order tell nothing. Without `told` the judgements are of nothing.
    """
    rng = np.random.default_rng(seed)
    texts = pairs(size, seed=seed)
    hidden: dict[str, np.ndarray] = {}
    for one in texts:
        shared = rng.normal(size=WIDTH)
        for text in one.texts:
            hidden[text] = shared * rng.uniform(0, 2) + rng.normal(size=WIDTH)
    scores = []
    for one in texts:
        a, b = (hidden[text] for text in one.texts)
        scores.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b) + rng.normal() / 10)
    if not told:
        rng.shuffle(scores)
    made = [Example(e.id, e.text, e.text_b, float(s)) for e, s in zip(texts, scores, strict=True)]
    common = rng.normal(size=WIDTH)

    def vectors(reader: Encoder, compared: Any, **_: Any) -> tuple[np.ndarray, np.ndarray]:
        rows = np.stack([hidden[one.text] for one in compared])
        noise = np.random.default_rng(len(reader.name)).normal(size=rows.shape)
        own = rows if "shuffled" not in reader.name else noise + rng.normal(size=rows.shape)
        found = np.stack([own] * (planted.LAYERS + 1))
        for at in layers:
            if spoil == "common":
                found[at + 1] = own * 0.05 + common
            if spoil == "dimension":
                found[at + 1, :, 3] = 40 + 10 * noise[:, 0]
            if spoil == "direction":
                found[at + 1] = own + 30 * noise[:, :1] * common / np.linalg.norm(common)
        return found.astype(np.float32), np.ones(len(rows), bool)

    monkeypatch.setattr(module, "compared_vectors", vectors)
    return ask(encoder(), Corpus(texts.name, made, texts.fields))


class TestResult(ResultConformance):
    measures = frozenset({"agreement-none", "agreement-whitened", "gain-whitened"})

    @staticmethod
    def make() -> Result:
        return ask(encoder(), pairs(60))

    def test_a_random_model_bears_nothing_out(self, result: Result) -> None:
        verdicts = claims_of(result)
        assert verdicts[BEST] != "holds"
        assert verdicts[STANDARD] != "holds"


def test_texts_in_several_pairs_are_counted_once() -> None:
    result = ask(encoder(), pairs(60, words=True), repairs=("centred",), vector="first")
    assert result.arrays.attrs["texts"] <= 60
    assert result.arrays.attrs["shared"]
    assert list(result.table("repairs")["repair"]) == ["none", "centred"]


@pytest.mark.parametrize(
    ("spoil", "repair"),
    [("common", "centred"), ("dimension", "dominating-removed"), ("direction", "top-removed")],
)
def test_what_spoils_one_layer_is_undone_there_by_its_repair(
    monkeypatch: pytest.MonkeyPatch, spoil: str, repair: str
) -> None:
    result = simulated(monkeypatch, spoil)
    layers = result.table("layers").set_index(["repair", "layer"])
    told = layers["agreement"].unstack()
    clean = told.loc["none"].drop(SPOILT).min()
    assert told.loc["none", SPOILT] < clean - 0.3
    assert told.loc[repair, SPOILT] > clean - 0.05
    sure = layers["over_none_low"].unstack() > 0
    assert sure.loc[repair, SPOILT]
    assert not sure.drop(columns=SPOILT).any(axis=None)
    # The best layer needs no repair, so that nothing is gained by one in all.
    assert claims_of(result)[BEST] != "holds"


def test_all_layers_spoilt_the_claims_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    result = simulated(monkeypatch, "common", layers=tuple(range(planted.LAYERS)))
    assert claims_of(result)[BEST] == "holds"
    assert claims_of(result)[STANDARD] == "holds"
    told = result.table("comparisons").set_index("against")
    gain = result.evidence()["best_gain"]
    # The answer, the table and the claim speak of the same two comparisons.
    assert told.loc["the best layer as it is", "gain"] == gain.value
    assert told.loc["the best layer as it is", "gain_low"] == gain.low > 0
    ((control, beyond),) = gain.controls
    assert told.loc[control, "gain_low"] == beyond.low > 0
    for _, row in told.iterrows():
        assert row["best"] - row["agreement"] == pytest.approx(row["gain"])
        assert f"{100 * row['gain']:.1f} points" in result.answer
    assert "over the best layer as it is" in result.answer
    assert "over shuffled weights at their best" in result.answer
    assert "The first gain, which the claim rests on, is surely above zero, and" in result.answer


def test_judgements_of_nothing_bear_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(2):
        result = simulated(monkeypatch, "direction", told=False, seed=seed, size=80)
        assert "holds" not in claims_of(result).values()


def test_cosines_are_those_of_transformers() -> None:
    made, texts = encoder(), pairs(30)
    found = measured(VectorRepairs(), made, texts)["model"]
    for at, one in enumerate(texts):
        both = []
        for text in one.texts:
            given = made.tokenizer(text, return_tensors="pt")
            states = made.model(**given, output_hidden_states=True).hidden_states
            both.append([of[0, 1:-1].mean(0).detach().numpy() for of in states])
        for layer, (a, b) in enumerate(zip(*both, strict=True)):
            cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
            assert found["cosine"].to_numpy()[0, layer, at] == pytest.approx(cosine, abs=1e-4)
    told = spearmanr(found["cosine"].to_numpy()[0, 2], [one.label for one in texts])[0]
    result = ask(made, texts)
    assert result.table("layers")["agreement"][2] == pytest.approx(told, abs=1e-9)


def test_targets_are_read_in_their_texts() -> None:
    fields = frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL, Field.TARGETS})
    example = Example("0", "the dog sees", "a ball often", 1.0, {"targets": [[1, 2], [1, 3]]})
    texts = Corpus("targets", [example], fields)
    given = module.scored_pairs(texts)
    assert [one.spelt for one in given.compared] == ["dog", "ball often"]
    made = encoder()
    vectors, there = module.compared_vectors(made, given.compared)
    states = made.model(**made.tokenizer("a ball often", return_tensors="pt"),
                        output_hidden_states=True).hidden_states  # fmt: skip
    assert vectors[3, 1] == pytest.approx(states[3][0, 2:4].mean(0).detach().numpy(), abs=1e-5)
    assert there.all()


def test_words_are_averaged_over_contexts(tmp_path: Path) -> None:
    contexts = tmp_path / "contexts.txt"
    contexts.write_text("\n".join(["the dog sees a ball", "a cat likes the bone now"] * 3))
    words = [w for w in planted.WORDS if w.isalpha() and w != "gladly"]
    made = [
        Example(f"{a}-{b}", words[a], words[b], float(a * b % 7))
        for a in range(len(words))
        for b in range(a)
    ]
    texts = Corpus("words", made, frozenset({Field.TEXT, Field.TEXT_B, Field.LABEL}))
    study = VectorRepairs(contexts=str(contexts), learn_from="grammar", other_examples=30)
    found = measured(study, encoder(), texts)["model"]
    assert found.attrs["missing"] == sum("often" in one.texts for one in texts)
    assert 20 <= found.attrs["learnt_on"] <= 30  # some texts are of unknown words alone
    assert study.ingredients(texts).keys() == {"contexts", "learn_from"}
    with pytest.raises(CapabilityError, match="not single words"):
        study.check(encoder(), pairs(30))


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="whitened"):
        VectorRepairs(repairs=("whiten",)).check(encoder(), pairs(30))
    with pytest.raises(ParameterError, match="hold a repair"):
        VectorRepairs(repairs=("none",)).check(encoder(), pairs(30))
    with pytest.raises(DataError, match="20 examples"):
        VectorRepairs().check(encoder(), pairs(10))
    few = pairs(30, words=True)
    twice = [Example(str(i), few[i % 3].text, few[i % 2].text_b, 1.0 * i) for i in range(40)]
    with pytest.raises(DataError, match="--learn-from"):
        measured(VectorRepairs(), encoder(), Corpus("few", twice, few.fields))
    assert set(VectorRepairs().chosen()) == set(REPAIRS)


def test_one_score_value_has_no_order() -> None:
    texts = pairs(40)
    for others in (0, 4):
        made = [Example(e.id, e.text, e.text_b, float(i < others)) for i, e in enumerate(texts)]
        with pytest.raises(DataError, match=f"all but {others} have the score 0"):
            VectorRepairs().check(encoder(), Corpus("one score", made, texts.fields))
    made = [Example(e.id, e.text, e.text_b, "good") for e in texts]
    with pytest.raises(DataError, match="no number as their label"):
        VectorRepairs().check(encoder(), Corpus("words", made, texts.fields))
    with pytest.raises(DataError, match="20 examples"):
        VectorRepairs().check(encoder(), pairs(12))


def test_copies_of_a_text_are_one_and_never_learnt_from() -> None:
    texts = pairs(30)
    shouted = [
        Example(f"{e.id}-{i}", e.text.upper() if i else e.text, f" {e.text_b}", float(e.label or 0))
        for i in range(2)
        for e in texts
    ]
    given = module.scored_pairs(Corpus("twice", shouted, texts.fields))
    assert len(given.compared) == 90
    assert given.units.max() + 1 == 60
    assert given.links.units == 30
    learnt = VectorRepairs()._learnt_on(given.units, given.pairs, np.ones(90, bool), None)
    assert sorted(np.concatenate([fold for fold, _ in learnt])) == list(range(60))
    for fold, rows in learnt:
        assert not {*given.units[given.pairs[fold]].ravel()} & {*given.units[rows]}


def test_what_is_unknown_has_no_vector() -> None:
    compared = [module.Compared(text) for text in ("zzz qqq", "the zzz", "the dog")]
    vectors, there = module.compared_vectors(encoder(), compared)
    assert there.tolist() == [False, True, True]
    assert np.abs(vectors[:, 0]).max() == 0
    first = module.compared_vectors(encoder(), compared, first=True)[1]
    assert first.tolist() == [False, True, True]


def test_equal_cosines_are_ties_and_a_narrow_cone_is_none() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, WIDTH))
    assert len(np.unique(_cosines(rows, rows * rng.uniform(1, 9, size=(50, 1))))) == 1
    narrow = 2000 + rows  # cosines of nearly 1 that single precision does not tell apart
    found = _cosines(narrow, narrow[::-1])[:25]
    assert len(np.unique(found.astype(np.float32))) < 25 == len(np.unique(found))
