"""Multilingual ingredients: planted effects are found, noise and random weights are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import binom

import bertology as bt
import tiny
from bertology.arrays import Floats, Ints
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError, DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.results.known_claims import load_claims
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.studies.languages.multilingual_ingredients import (
    ARMS,
    JUDGED,
    MultilingualIngredients,
    MultilingualIngredientsResult,
    scores,
)
from bertology.train.fresh import Architecture, fresh_tokenizer
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Phase, Pretraining, Stage
from bertology.train.pretrain.loop import bert_of
from bertology.train.pretrain.shards import Shards
from bertology.train.pretrain.trial_text import prepare_trial_text
from bertology.train.pretrain.two_languages import (
    Setting,
    TwoLanguages,
    _batches,
    held_out_sentences,
    judge_held_out,
    states_of,
    train_two_languages,
)
from bertology.train.protocols import Tokenizer
from result_conformance import ResultConformance, told

LENGTH = 32
LOST = {  # by each arm, of the reference's multilinguality and transfer
    "separate-positions": 0.3, "separate-special": 0.1, "shared-pieces": 0.0, "no-nsp": -0.08,
    "shallow": 0.25, "wide": 0.2, "narrow": 0.1, "inverted": 0.35, "other-text": 0.2, "tlm": -0.2,
}  # fmt: skip


def planted(
    lost: dict[str, float],
    *,
    seeds: int = 6,
    noise: float = 0.004,
    draw: int = 0,
    start: float = 0.1,
    starts: dict[str, float] | None = None,
    masked: dict[str, float] | None = None,
    told_next: float = 0.8,
) -> Result:
    """The result of measurements that are made up: 0.5, less what an arm loses, and noise."""
    rng = np.random.default_rng(draw)
    parts = {}
    for seed in range(seeds):
        luck = rng.normal(0, 0.05)  # of the seed, which pairing takes out
        for arm in ARMS:
            score, transfer = 0.5 + luck - lost.get(arm, 0.0) + rng.normal(0, noise, 2)
            begin = start + (starts or {}).get(arm, 0.0) + rng.normal(0, noise / 4)
            accuracy = (masked or {}).get(arm, 0.4) + rng.normal(0, 0.01)
            numbers: dict[str, Any] = {
                "multilinguality": score, "retrieval": score, "translation": score,
                "transfer": transfer, "tagging": 0.9, "mlm_accuracy": accuracy,
                "twin_mlm_accuracy": accuracy, "mlm_loss": 2.0, "twin_mlm_loss": 2.0,
                "sentence_accuracy": told_next + rng.normal(0, 0.01),
                "start_multilinguality": begin, "start_transfer": begin,
            }  # fmt: skip
            depth = 2 if arm == "shallow" else 4
            for name in ("retrieval", "translation", "start_retrieval", "start_translation"):
                numbers[f"{name}_by_layer"] = ("depth", score + rng.normal(0, 0.01, depth))
            parts[f"{arm}-seed-{seed}"] = xr.Dataset(numbers, attrs={"mlm_baseline": 0.1})
    about = {"name": "made-up", "fingerprint": "made-up"}
    provenance = Provenance("multilingual-ingredients", 1, {}, about, about)
    return MultilingualIngredients(seeds=seeds).conclude(parts, provenance)


def outcomes(result: Result) -> dict[str, Outcome]:
    return {v.claim.id.partition(".")[2]: told(v) for v in result.verdicts()}


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return planted(LOST, seeds=3)


# What is concluded ---------------------------------------------------------------------------


def test_planted_effects_bear_the_claims_out() -> None:
    result = planted(LOST)
    found = outcomes(result)
    assert len(found) == len(JUDGED) == 10
    assert set(found.values()) == {Outcome.HOLDS}
    assert {c.rule.quantity for c in load_claims() if c.study == "multilingual-ingredients"} == set(
        JUDGED
    )
    assert result.evidence()["positions_score"].level == pytest.approx(1 - 0.05 / 10)
    assert result.evidence()["positions_score"].value == pytest.approx(0.3, abs=0.01)
    assert result.answer.startswith("Surely: training on a text and its twin")
    assert "it loses most by inverted, 35" in result.answer


def test_the_opposite_makes_them_fail() -> None:
    found = outcomes(planted(dict.fromkeys(LOST, -0.2) | {"no-nsp": 0.2, "tlm": 0.25}))
    held = found.pop("no-shared-piece-is-needed")
    assert held is Outcome.HOLDS
    assert set(found.values()) == {Outcome.FAILS}


def test_noise_is_not_taken_for_an_effect() -> None:
    """Every claim where it just does not hold: all together may be wrong in 2.5 % of all cases."""
    draws = 8
    none = dict.fromkeys(LOST, 0.02) | {"no-nsp": -0.02, "tlm": -0.04, "shared-pieces": 0.1}
    found = [outcomes(planted(none, noise=0.03, draw=d, seeds=4)) for d in range(draws)]
    names = set(found[0]) - {"no-shared-piece-is-needed"}
    wrong = sum(any(one[name] is Outcome.HOLDS for name in names) for one in found)
    assert wrong <= binom.ppf(0.999, draws, 0.05)


def test_one_seed_decides_nothing() -> None:
    result = planted(LOST, seeds=1)
    assert Outcome.HOLDS not in outcomes(result).values()
    assert Outcome.FAILS not in outcomes(result).values()
    assert result.plot("layers").axes


def test_an_arm_that_learnt_nothing_judges_nothing() -> None:
    result = planted(LOST, masked={"shallow": 0.1})
    found = outcomes(result)
    unjudged = {name for name, outcome in found.items() if outcome is Outcome.NOT_APPLICABLE}
    assert unjudged == {"depth-matters"}
    assert "the arm shallow does not surely beat" in result.reasons()["depth_transfer"]
    assert "next-sentences-hurt" in {
        n for n, o in outcomes(planted(LOST, told_next=0.5)).items() if o is Outcome.NOT_APPLICABLE
    }


def test_without_a_multilingual_reference_nothing_is_judged() -> None:
    result = planted({**LOST, "tlm": 0.0}, start=0.5)
    found = outcomes(result)
    first = found.pop("no-shared-piece-is-needed")
    assert first in (Outcome.INCONCLUSIVE, Outcome.FAILS, Outcome.NEGLIGIBLE)
    assert set(found.values()) == {Outcome.NOT_APPLICABLE}
    assert "not surely more multilingual" in result.reasons()["positions_score"]


def test_what_random_weights_do_too_is_not_told_of_training() -> None:
    """Shared positions tell how long a sentence is, in any model."""
    found = outcomes(planted(LOST, starts={"separate-positions": -0.3, "wide": -0.1}))
    assert found.pop("shared-positions-matter") is Outcome.NOT_APPLICABLE
    assert set(found.values()) == {Outcome.HOLDS}


def test_names_are_checked_and_arms_chosen() -> None:
    with pytest.raises(ParameterError, match="some of"):
        MultilingualIngredients(arms=("all", "spam"))
    with pytest.raises(ParameterError, match="hold all"):
        MultilingualIngredients(arms=("tlm",))
    with pytest.raises(ParameterError, match="multiple of heads"):
        MultilingualIngredients(narrow=6)
    with pytest.raises(ParameterError, match="at least 4 rows"):
        MultilingualIngredients(update_tokens=64)
    chosen = MultilingualIngredients.enough_for(["tlm_transfer", "multilingual_transfer"])
    assert chosen == {"arms": ("all", "no-nsp", "tlm")}


# Scores --------------------------------------------------------------------------------------


def test_twins_are_told_apart_and_equal_states_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    one = rng.normal(size=(40, 8))
    assert scores.told_apart(one, 3 * one) == 1
    assert scores.told_apart(one, np.roll(one, 1, axis=0)) == 0
    assert scores.told_apart(np.ones((40, 8)), np.ones((40, 8))) == 0
    assert scores.told_apart(one, rng.normal(size=(40, 8))) < 0.2
    assert [scores.deep_layer(n) for n in (1, 3, 4, 12)] == [1, 2, 3, 8]


def test_tags_are_learnt_where_there_are_any() -> None:
    rng = np.random.default_rng(0)
    tags: Ints = rng.integers(0, 3, 200)
    states: Floats = np.eye(3)[tags] + rng.normal(0, 0.1, (200, 3))
    tagger = scores.Tagger(states, tags, 3)
    assert tagger.accuracy(states, tags) == 1
    assert tagger.accuracy(rng.normal(size=(200, 3)), tags) < 0.5


# Two languages -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text() -> Corpus:
    return load_corpus("grammar", split="train", limit=600)


@pytest.fixture(scope="module")
def tokenizer(text: Corpus) -> Tokenizer:
    return fresh_tokenizer(text.texts, vocab_size=256, max_length=512)


@pytest.fixture(scope="module")
def shards(text: Corpus, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return prepare_trial_text(tokenizer, text, folder=tmp_path_factory.mktemp("text"))


def languages_of(shards: Shards, **setting: Any) -> TwoLanguages:
    return TwoLanguages(shards, Setting(**setting), length=LENGTH, device="cpu")


def recipe_of(languages: TwoLanguages, *, steps: int = 3) -> Pretraining:
    size = Architecture(
        layers=2, heads=2, hidden=16, vocab_size=len(languages), max_length=2 * LENGTH, dropout=0
    )
    stages = (Stage(languages.setting.objective),)
    return Pretraining(
        size, stages, steps=steps, batch_tokens=256, phases=(Phase(LENGTH),), compile=False
    )


def asked(shards: Shards, tokenizer: Tokenizer) -> scores.Asked:
    study = MultilingualIngredients(length=LENGTH, tag_examples=60, sentences=60, words=60)
    shared = np.zeros(shards.vocab_size, bool)
    return scores.Asked(*study.drawn(shards, shared, 0), *study.tag_sets(tokenizer), shared)


def test_a_model_whose_second_language_is_a_copy_finds_all(
    shards: Shards, tokenizer: Tokenizer
) -> None:
    languages = languages_of(shards)
    model = bert_of(recipe_of(languages).model, languages)
    chance = asked(shards, tokenizer).of(model, languages)
    assert chance["translation"] < 0.2
    assert chance["multilinguality"] < 0.5
    pieces = model.bert.embeddings.word_embeddings.weight
    with torch.no_grad():
        pieces[languages.size :] = pieces[: languages.size]
    copied = asked(shards, tokenizer).of(model, languages)
    for name in ("multilinguality", "retrieval", "translation"):
        assert copied[name] == 1
    assert copied["transfer"] == copied["tagging"] > chance["transfer"]


def test_an_inverted_language_is_read_back_in_order(shards: Shards) -> None:
    languages = languages_of(shards, inverted=True)
    ids, _, real = languages.sentences([np.array([7, 8, 9]), np.array([7])], 1)
    size = languages.size
    assert ids[0].tolist()[1:4] == [9 + size, 8 + size, 7 + size]
    assert real.sum(1).tolist() == [5, 3]
    # With the embeddings alone, each piece has the state of its own place.
    model = bert_of(recipe_of(languages).model, languages)
    with torch.no_grad():
        embeddings: Any = model.bert.embeddings
        pieces = embeddings.word_embeddings.weight
        pieces[size:] = pieces[:size]
        embeddings.position_embeddings.weight.zero_()
    sentence = [np.array([7, 8, 9])]
    one, other = (states_of(model, languages, sentence, k)[0][0] for k in (0, 1))
    assert np.allclose(one, other, atol=1e-6)


def test_each_setting_changes_its_ingredient_alone(shards: Shards) -> None:
    size, marks = shards.vocab_size, set(shards.special.values())

    def batch(**setting: Any) -> tuple[Any, Any, TwoLanguages]:
        languages = languages_of(shards, **setting)
        rows, second = next(_batches(languages, recipe_of(languages)))
        return rows, second, languages

    rows, second, languages = batch()
    assert len(rows) == 8
    assert second.any(1).sum() == 4
    assert rows.real is None
    own = set(rows.ids[second].tolist())
    assert all(i >= size or i in marks for i in own)
    assert own & marks
    assert all(i < size for i in rows.ids[~second].tolist())
    assert rows.positions is not None
    assert int(rows.positions.max()) == LENGTH - 1
    apart, second, _ = batch(shared_positions=False)
    assert int(apart.positions[second].min()) == LENGTH
    assert torch.equal(apart.ids, rows.ids)
    apart, second, languages = batch(shared_special=False)
    assert int(apart.ids[second].min()) >= size
    view = languages.view(apart, second, languages.pieces, Chance(0))
    masks = {shards.special["mask"], shards.special["mask"] + size}
    assert masks <= set(view.hidden.ids.flatten().tolist())
    assert (view.hidden.ids[second] != shards.special["mask"]).all()
    shared = np.arange(size) % 2 == 0
    some, second, _ = batch(shared_pieces=shared)
    found = set(some.ids[second].tolist()) - marks
    assert all((i % 2 == 0) if i < size else ((i - size) % 2 == 1) for i in found)
    rows, second, _ = batch(translation=True, sentence=False)
    twins = second.any(1) & (~second[:, 1])
    assert twins.sum() == 4
    for ids, own, places in zip(rows.ids[twins], second[twins], rows.positions[twins], strict=True):
        half = (LENGTH - 3) // 2
        assert (ids[own][:half] - size).tolist() == ids[1 : half + 1].tolist()
        assert places[own][:half].tolist() == places[1 : half + 1].tolist()
    plain, mirrored = languages_of(shards), languages_of(shards, inverted=True)
    shard = plain.trained[1]
    a, b = (one.text(1, shard).tokens.numpy() for one in (plain, mirrored))
    start, end = shard.sentences[:2]
    assert a[start:end].tolist() == b[start:end][::-1].tolist()
    assert sorted(a) == sorted(b)
    sep = shards.special["sep"]
    assert (np.flatnonzero(a == sep) == np.flatnonzero(b == sep)).all()
    one, other = languages_of(shards, parallel=False).trained
    whole = shards.open(shards.names[0])
    assert len(one.tokens) + len(other.tokens) == len(whole.tokens)
    assert np.array_equal(np.concatenate([one.tokens, other.tokens]), whole.tokens)
    assert other.sentences[0] == other.documents[0] == 0
    assert other.sentences[-1] == len(other.tokens)


def test_training_repeats_and_learns_both_languages(shards: Shards) -> None:
    languages = languages_of(shards)
    recipe = recipe_of(languages, steps=40)
    reached: list[int] = []
    one = train_two_languages(languages, recipe, reach=reached.append)
    assert reached == list(range(1, 41))
    two = train_two_languages(languages, recipe)
    for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    start = judge_held_out(bert_of(recipe.model, languages), languages)
    judged = judge_held_out(one, languages)
    for before, after in zip(start.masked, judged.masked, strict=True):
        assert after.loss < before.loss - 0.05
    assert 0 <= judged.sentence <= 1
    assert np.isnan(judge_held_out(one, languages_of(shards, sentence=False)).sentence)


def test_held_out_sentences_are_different_and_short(shards: Shards) -> None:
    found = held_out_sentences(shards, 12)
    assert found
    assert max(map(len, found)) <= 12
    assert len({tuple(s.tolist()) for s in found}) == len(found)


# Whole runs ----------------------------------------------------------------------------------

TINY: dict[str, Any] = {
    "layers": 2, "heads": 2, "hidden": 16, "wide": 24, "narrow": 8, "updates": 2, "seeds": 2,
    "update_tokens": 256, "tag_examples": 30, "sentences": 40, "words": 40,
}  # fmt: skip


def run(text: Corpus, store: Path, **more: Any) -> MultilingualIngredientsResult:
    # It lends its device only.
    encoder = Encoder(tiny.model("bert"), tiny.tokenizer(["a"]), name="device")
    found = bt.run(
        "multilingual-ingredients", encoder, corpus=text, store=str(store), progress=False,
        **(TINY | more),
    )  # fmt: skip
    assert isinstance(found, MultilingualIngredientsResult)
    return found


def test_a_tiny_study_runs_to_its_end_and_bears_nothing_out(text: Corpus, tmp_path: Path) -> None:
    arms = ("all", "separate-positions", "shared-pieces", "shallow", "tlm")
    result = run(text, tmp_path, arms=arms)
    runs = result.table("runs")
    assert list(runs["arm"]) == list(arms) * 2
    assert np.isfinite(runs.drop(columns=["arm", "sentence_accuracy"]).to_numpy(float)).all()
    assert runs["mlm_loss"].nunique() == len(runs)
    assert Outcome.HOLDS not in outcomes(result).values()
    assert result.plot("arms").axes


def test_refuses_before_any_work(text: Corpus, tmp_path: Path) -> None:
    with pytest.raises(CapabilityError):
        run(text, tmp_path, tags_from="grammar-paraphrase")
    with pytest.raises(DataError, match="at least 20"):
        run(load_corpus("grammar", split="train", limit=100), tmp_path, arms=("all",))
