"""Sentence position: planted shifts are measured exactly, and without a shift nothing is said."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import tiny
from bertology.annotated import moved_sentences as moved
from bertology.annotated.moved_sentences import MovedWords, ParityWords
from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.contrasts import ratio_of_means
from bertology.stats.shifts import parity_ratios
from bertology.studies.designs.position_scores import moved_scores, parity_scores
from bertology.studies.geometry.sentence_position import (
    SentencePosition,
    measured_parities,
    measured_words,
)
from result_conformance import ResultConformance, claims_of

WORDS = ["sun", "moon", "rain", "snow", "wind", "tree", "bird", "fish", "stone", "river"]
PARITY = "primer-embeddings.words-of-odd-and-even-sentences-differ"
SEGMENTS = "primer-embeddings.segments-matter-more-than-places"


def corpus(size: int = 60, seed: int = 0) -> Corpus:
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(3, 7))) for _ in range(size)]
    return Corpus.of_texts([f"{text} {i % 7}" for i, text in enumerate(texts)], name="made")


def model(*, places: float = 0.0, segments: float = 0.0, seed: int = 0) -> hf.BertForMaskedLM:
    """A random model whose vectors of places and segments are as large as is said."""
    torch.manual_seed(seed)
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, initializer_range=0.3,
    )  # fmt: skip
    made = hf.BertForMaskedLM(config).eval()
    with torch.no_grad():
        made.bert.embeddings.position_embeddings.weight.mul_(places)
        made.bert.embeddings.token_type_embeddings.weight.mul_(segments)
    return made


def encoder(made: Any) -> Encoder:
    return Encoder(made, tiny.tokenizer(WORDS, max_length=32), head="mlm", name="made")


def run(made: Any, **how: Any) -> Result:
    asked = {"corpus": corpus(), "examples": 20, "resamples": 200, "kinds": 6, **how}
    return bt.run(
        "sentence-position", encoder(made), store="memory://positions", progress=False, **asked
    )


@cache
def shifted() -> Result:
    return run(model(places=0.3, segments=1.0))


class TestResult(ResultConformance):
    measures = frozenset({"position-shift", "place-shift", "segment-shift", "neighbour-shift"})

    @staticmethod
    def make() -> Result:
        return shifted()


def test_states_are_those_of_the_model() -> None:
    """An independent pass: the tokenizer and the model as anybody would call them."""
    made = encoder(model(places=1.0, segments=1.0))
    pool = moved.drawn_sentences(made, corpus(), 9, seed=0)
    words = moved.moved_words(made, pool[:2], pool, words=2, seed=0)
    assert words.states.shape == (2, 2, 2, 3, 4, 16)
    rng = np.random.default_rng([0, 2])
    chosen = [sorted(rng.permutation(s.words)[:2].tolist()) for s in pool[:2]]
    beside = moved._beside(pool[:2], pool, rng)
    for place, segment, k, i in np.ndindex(2, 2, 2, 2):
        own, other = made.tokenizer(pool[i].text), made.tokenizer(beside[i][k].text)
        one, two = own["input_ids"][1:], other["input_ids"][1:]
        ids = [2, *one, *two] if place == 0 else [2, *two, *one]
        types = [segment] * len(one), [1 - segment] * len(two)
        types = [0, *types[place], *types[1 - place]]
        with torch.no_grad():
            states = made.model.bert(
                torch.tensor([ids]), token_type_ids=torch.tensor([types]), output_hidden_states=True
            ).hidden_states
        at = [1 + w + (len(two) if place else 0) for w in chosen[i]]
        expected = torch.stack([s[0, at] for s in states]).numpy()
        found = words.states[place, segment, k][:, words.sentence == i]
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_neighbours_are_as_long_as_each_other_and_no_two_are_shared() -> None:
    rng = np.random.default_rng(0)
    pool = [moved.Sentence(str(i), (), (), int(n)) for i, n in enumerate(rng.integers(4, 30, 90))]
    for many in (30, 60, 90):
        beside = moved._beside(pool[:many], pool, np.random.default_rng(many))
        assert all(s not in two for s, two in zip(pool, beside, strict=False))
        assert len({frozenset(x.text for x in two) for two in beside}) == many
        assert np.mean([abs(a.pieces - b.pieces) for a, b in beside]) < 1
    used = [s.text for two in moved._beside(pool[:30], pool, rng) for s in two]
    assert len(set(used)) == 60
    assert not set(used) & {s.text for s in pool[:30]}
    assert len(moved._beside(pool[:8], pool[:8], rng)) == 8
    assert (moved.pool_size(8), moved.pool_size(300)) == (408, 900)


def test_neighbours_that_are_shared_do_not_make_a_shift_sure() -> None:
    """Neighbours alone move words, all in their own way, in a corpus that is hardly enough."""
    held = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        pool = [
            moved.Sentence(str(i), (), (), int(n)) for i, n in enumerate(rng.integers(4, 9, 20))
        ]
        moves = rng.normal(size=(20, 4))
        beside = moved._beside(pool, pool, rng)
        products = np.array([moves[int(a.text)] @ moves[int(b.text)] for a, b in beside])
        found = ratio_of_means(products, np.ones(20))
        assert found is not None
        held += found.low > 0
    assert held <= 18  # of 300, at most 2.5 % of which are expected; with couples used twice 28


def test_places_are_not_taken_for_what_a_neighbour_does() -> None:
    """At the input nothing but the places and segments of its tokens can move a word."""
    texts = [f"{a} {b} {c}" for a in WORDS for b in WORDS[:3] for c in WORDS[:2]]
    found = run(model(places=1.0, segments=1.0), corpus=Corpus.of_texts(texts), pairs=0)
    at = found.table("layers").set_index("layer").loc[-1]
    assert at["neighbour"] == pytest.approx(0, abs=1e-9)
    assert at["place"] > 0.1
    assert (found.table("layers")["neighbour_low"] >= 0).all()


def test_a_planted_shift_is_measured_exactly() -> None:
    rng = np.random.default_rng(0)
    words = rng.normal(size=(3, 40, 8))
    place, segment = rng.normal(size=(2, 3, 1, 8))
    place -= (
        (place * segment).sum(-1, keepdims=True)
        / np.square(segment).sum(-1, keepdims=True)
        * (segment)
    )  # at a right angle
    states = np.stack([
        [[words + p * place + s * segment] * 2 for s in (0, 1)] for p in (0, 1)
    ])  # fmt: skip
    sentence = np.repeat(np.arange(10), 4)
    found = moved_scores(MovedWords(states, sentence, tuple("abcd" * 10)))
    squares = {"place": np.square(place).sum((1, 2)), "segment": np.square(segment).sum((1, 2))}
    spread = np.square(words - words.mean(1, keepdims=True)).sum(-1).mean(1)
    np.testing.assert_allclose(found["spread"].mean(1), spread)
    for name, square in squares.items():
        np.testing.assert_allclose(found[name], np.tile(square[:, None], 10))
    both = squares["place"] + squares["segment"]
    for name in ("position", "common"):
        np.testing.assert_allclose(found[name], np.tile(both[:, None], 10))
    np.testing.assert_allclose(found["distance"], np.sqrt(np.tile(both[:, None], 10)))
    np.testing.assert_allclose(found["neighbour"], 0, atol=1e-20)
    np.testing.assert_allclose(found["mean_shift"][0], (place + segment)[:, 0])
    assert found["told"].mean() > 0.9


def test_the_shift_is_what_distances_grow_by_beyond_another_neighbour() -> None:
    states = np.random.default_rng(1).normal(size=(2, 1, 2, 2, 12, 5))
    found = moved_scores(MovedWords(states, np.arange(12), tuple("abcdefghijkl")))
    first, second = states[0, 0], states[1, 0]

    def squared(a: Any, b: Any) -> Any:
        return np.square(a - b).sum(-1)

    both = squared(second[0], first[1]) + squared(second[1], first[0])
    neighbour = squared(first[0], first[1]) + squared(second[0], second[1])
    np.testing.assert_allclose(found["position"], (both - neighbour) / 2)
    np.testing.assert_allclose(found["neighbour"], neighbour / 2)
    assert "segment" not in found


def test_what_places_and_segments_do_is_told_apart() -> None:
    only = {
        "place": run(model(places=0.5)).table("layers"),
        "segment": run(model(segments=1.0)).table("layers"),
    }
    for name, table in only.items():
        other = "segment" if name == "place" else "place"
        assert (table[name] > 0.001).all()
        np.testing.assert_allclose(table[other], 0, atol=1e-9)
        np.testing.assert_allclose(table["position"], table[name], atol=1e-9)
    assert (only["segment"]["told"] > 0.7).all()
    assert (only["segment"]["common"] > 0.3).all()
    assert (only["segment"]["with_input"][:1] > 0.9).all()


def test_without_places_and_segments_nothing_moves() -> None:
    found = run(model())
    table, evidence = found.table("layers"), found.evidence()
    np.testing.assert_allclose(table["position"], 0, atol=1e-10)
    assert (table["neighbour"][1:] > 1e-4).all()
    assert abs(evidence["parity_excess"].value) < 0.15
    assert evidence["parity_excess"].low <= 0 <= evidence["parity_excess"].high
    assert "holds" not in claims_of(found).values()


def concluded(
    states: Any, *, known: float = 1.0, seed: int = 0, parities: ParityWords | None = None
) -> Result:
    """What is concluded of made states (place, segment, neighbour, depth, word, width)."""
    study = SentencePosition(resamples=200, pairs=0)
    count = states.shape[4] // 2
    words = MovedWords(states, np.repeat(np.arange(count), 2), tuple("ab" * count))
    rng = np.random.default_rng(seed)
    part = measured_words(words, known + rng.normal(0, 0.1, count))
    if parities is not None:
        own = measured_parities(parities, draws=199, seed=seed)
        part = part.merge(own, combine_attrs="override")
    named = {"name": "made", "fingerprint": "made"}
    return study.conclude({"all": part}, Provenance("sentence-position", 1, {}, named, named))


def judged(states: Any, **how: Any) -> dict[str, Any]:
    return claims_of(concluded(states, **how))


def test_claims_are_judged_of_models_that_have_learnt() -> None:
    rng = np.random.default_rng(3)
    states = rng.normal(size=(1, 1, 1, 3, 80, 6)) + 0.1 * rng.normal(size=(2, 2, 2, 3, 80, 6))
    assert judged(states)[SEGMENTS] != "holds"
    states[1] += 0.2
    assert judged(states)[SEGMENTS] == "fails"
    states[:, 1] += 0.6
    assert judged(states)[SEGMENTS] == "holds"
    assert judged(states, parities=parity_words(1.0, 0, depths=3))[PARITY] == "holds"
    assert judged(states, parities=parity_words(0.0, 0, depths=3))[PARITY] != "holds"
    unlearnt = judged(states, known=-0.5, parities=parity_words(1.0, 0, depths=3))
    assert set(unlearnt.values()) == {"not-applicable"}


def test_a_random_model_is_not_judged() -> None:
    found = shifted()
    assert found.evidence()["position_shift"].low > 0.05
    assert set(claims_of(found).values()) == {"not-applicable"}
    assert "learnt nothing" in found.reasons()["trained_segment_over_place"]


def parity_words(shift: float, seed: int, kinds: int = 8, depths: int = 1) -> ParityWords:
    """Words of pairs with something in common, and a shift of second sentences."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(np.arange(kinds), 12)
    second = np.tile(np.arange(12) % 2 == 1, kinds)
    pair = np.concatenate([rng.permutation(60)[:12] for _ in range(kinds)])
    x = 3 * rng.normal(size=(kinds, 10))[kind] + rng.normal(size=(60, 10))[pair]
    x = x + rng.normal(size=(len(kind), 10)) + shift * second[:, None]
    names = tuple(f"w{i}" for i in range(kinds))
    states = np.repeat(x[None].astype(np.float32), depths, axis=0)
    return ParityWords(states, names, kind, second, pair)


def test_words_of_odd_and_even_sentences_are_compared() -> None:
    words = parity_words(1.0, 0)
    found = parity_scores(words, draws=199, seed=0)
    assert found["parity_p"][0] == pytest.approx(1 / 200)
    # 10 dimensions × 1² of shift, against twice a variance of 2 in each.
    some = [parity_scores(parity_words(1.0, s), draws=1, seed=s)["parity"][0] for s in range(20)]
    assert np.mean(some) == pytest.approx(10 / 40, abs=0.05)
    assert np.nanmean(found["same_silhouette"]) > np.nanmean(found["other_silhouette"])
    x, kind = words.states[0].astype(np.float64), words.kind
    excess, within = 0.0, 0.0
    for k in range(8):  # the quadratic formula
        a, b = (x[(kind == k) & (words.second == s)] for s in (False, True))
        inside = [
            np.mean([np.square(p - q).sum() for i, p in enumerate(g) for q in g[:i]])
            for g in (a, b)
        ]
        excess += np.mean([[np.square(p - q).sum() for q in b] for p in a]) - np.mean(inside)
        within += float(np.mean(inside))
    assert found["parity"][0] == pytest.approx(excess / within, rel=1e-6)


def test_without_a_shift_parities_are_rarely_sure() -> None:
    p = [parity_scores(parity_words(0.0, s), draws=99, seed=s)["parity_p"][0] for s in range(12)]
    assert sum(x < 0.05 for x in p) <= 2


def test_a_kind_with_one_word_in_a_group_does_not_count() -> None:
    distances = np.ones((3, 3)) - np.eye(3)
    one = np.array([[1.0, 0, 0]])
    assert np.isnan(parity_ratios([distances], [one], [1 - one])[0])


def test_texts_that_a_corpus_repeats_are_one_text() -> None:
    texts = [str(t) for t in corpus(40).texts]
    made = encoder(model())
    once = moved.adjacent_pairs(made, Corpus.of_texts(texts), 500, seed=0)
    often = moved.adjacent_pairs(made, Corpus.of_texts(texts * 20), 500, seed=0)
    read = [s.text for pair in often for s in pair]
    assert len(once) >= 14
    assert len(read) == len(set(read)) <= 40
    with pytest.raises(DataError, match="that are not the same"):
        run(model(), corpus=Corpus.of_texts(texts[:3] * 20))


def test_bounds_of_odd_and_even_sentences_hold_for_all_layers() -> None:
    found = concluded(
        np.random.default_rng(0).normal(size=(2, 2, 2, 3, 40, 10)),
        parities=parity_words(1.0, 0, depths=3),
    )
    row, alone = found.table("parities").iloc[-1], found.evidence()["parity_excess"]
    assert row["parity"] == pytest.approx(alone.value)
    assert row["parity_low"] < alone.low < alone.high < row["parity_high"]
    words = found.table("kinds")  # what is told of all words is what is told of each
    within = (words["within_first"] + words["within_second"]) / 2
    assert alone.value == pytest.approx(words["excess"].sum() / within.sum())


def test_a_tokenizer_may_number_segments_that_a_model_does_not_have() -> None:
    torch.manual_seed(0)
    config = hf.RobertaConfig(
        vocab_size=5 + len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=36, type_vocab_size=1, pad_token_id=0,
    )  # fmt: skip
    found = run(hf.RobertaForMaskedLM(config).eval(), pairs=0)
    assert "segment" not in found.table("layers")
    assert "in two readings" in found.headline()
    assert "in four readings" in shifted().headline()


def test_families_without_segments_leave_that_factor_out() -> None:
    config = hf.DistilBertConfig(
        vocab_size=5 + len(WORDS), dim=16, n_layers=2, n_heads=2, hidden_dim=16,
        max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(0)
    found = run(hf.DistilBertForMaskedLM(config).eval(), pairs=0)
    assert "segment" not in found.table("layers")
    assert "segments" in found.reasons()["segment_shift"]
    assert "position_shift" in found.evidence()
    assert {d.name for d in found.drawings()} == {"shifts", "directions", "told"}


def test_texts_that_were_drawn_do_not_follow_each_other() -> None:
    found = run(model(segments=1.0), corpus=corpus(80).take(60))
    assert "parities" not in found.tables
    assert "drawn at random" in found.reasons()["parity_excess"]


def test_what_cannot_be_moved_is_refused() -> None:
    made = model()
    with pytest.raises(DataError, match="8 or more"):
        run(made, corpus=corpus(5))
    long = Corpus.of_texts([" ".join(WORDS * 2)] * 9 + ["sun"] * 9)
    with pytest.raises(DataError, match="fit twice"):
        run(made, corpus=long)
    causal = hf.GPT2LMHeadModel(
        hf.GPT2Config(vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=32)
    )
    with pytest.raises(CapabilityError, match="only what comes before"):
        bt.run(
            "sentence-position", Encoder(causal, tiny.tokenizer(WORDS), head="causal", name="g"),
            corpus=corpus(), store="memory://g", progress=False,
        )  # fmt: skip
