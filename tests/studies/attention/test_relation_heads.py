"""Relation heads: the planted head is found, one that looks at a fixed distance is not.

In the planted model head 1.2 attends from each verb (v3) to the noun of its number (n3), and head
0.1 from each token to the one two places before it. All other heads attend evenly.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.results.known_claims import judge
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.results.store import Store
from bertology.stats import Estimate
from bertology.studies.attention.relation_heads import RelationHeads, RelationHeadsResult
from bertology.studies.study import Context
from result_conformance import ResultConformance, told

KNOWING, TWO_BACK = (1, 2), (0, 1)
PAIRS, PLACES, SIZE = 12, 16, 16
WORDS = [*(f"v{i}" for i in range(PAIRS)), *(f"n{i}" for i in range(PAIRS)), "the", "a", "so"]
FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.HEADS, Field.RELATIONS})


def planted_encoder() -> Encoder:
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=4 * SIZE, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=8, max_position_embeddings=PLACES,
    )  # fmt: skip
    model = hf.BertModel(config).eval()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "LayerNorm" not in name:
                weights.zero_()
        for word in range(2 * PAIRS):  # dimension 0 … 23: which verb or noun
            model.embeddings.word_embeddings.weight[5 + word, word] = 1.0
        for place in range(PLACES):  # dimension 32 … 47: which place
            model.embeddings.position_embeddings.weight[place, 32 + place] = 1.0
        knowing, back = (model.encoder.layer[i].attention.self for i, _ in (KNOWING, TWO_BACK))
        for i in range(PAIRS):
            knowing.query.weight[KNOWING[1] * SIZE + i, i] = 1.5
            knowing.key.weight[KNOWING[1] * SIZE + i, PAIRS + i] = 1.5
        for i in range(2, PLACES):
            back.query.weight[TWO_BACK[1] * SIZE + i, 32 + i] = 1.5
            back.key.weight[TWO_BACK[1] * SIZE + i, 32 + i - 2] = 1.5
    return Encoder(model, tiny.tokenizer(WORDS, max_length=PLACES), name="planted")


def planted_corpus(size: int = 160, *, two_back: bool = False) -> Corpus:
    """Two verbs and their nouns among fillers; `two_back` puts each noun two before its verb."""
    rng = random.Random(0)
    examples = []
    for number in range(size):
        length = rng.choice([8, 9])
        words = [rng.choice(["the", "a", "so"]) for _ in range(length)]
        heads, relations = [-1] * length, ["dep"] * length
        if two_back:
            nouns = rng.sample([0, 1, 4, 5], 2)
            places = [(noun + 2, noun) for noun in nouns]
        else:
            drawn = rng.sample(range(length), 4)
            places = [(drawn[0], drawn[1]), (drawn[2], drawn[3])]
        for which, (verb, noun) in zip(rng.sample(range(PAIRS), 2), places, strict=True):
            words[verb], words[noun] = f"v{which}", f"n{which}"
            heads[noun], relations[noun] = verb, "obj"
        annotations = {"words": words, "heads": heads, "relations": relations}
        examples.append(Example(str(number), " ".join(words), annotations=annotations))
    return Corpus("planted", examples, FIELDS)


def look(encoder: Encoder, corpus: Corpus, store: Path, **how: Any) -> RelationHeadsResult:
    how = {"relation": "obj", **how}
    found = bt.run(
        "relation-heads", encoder, corpus=corpus, store=str(store), progress=False, **how
    )
    assert isinstance(found, RelationHeadsResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"nsubj-excess", "nsubj-weight", "nsubj-named", "nsubj-excess-place"})

    @staticmethod
    def make() -> Result:
        encoder = Encoder(
            planted_links.model(planted_links.LINK), planted_links.tokenizer(), name="links"
        )
        study = RelationHeads(relation="nsubj", min_distance=1, max_tokens=0)
        corpus = with_adverbs_first(planted_links.corpus(60))
        found: Result = planted_links.ask(study, encoder, corpus)
        return found


def with_adverbs_first(corpus: Corpus) -> Corpus:
    """Adverbs before some sentences: links that begin at one place leave nothing to compare."""
    examples = []
    for i, example in enumerate(corpus):
        given, more = example.annotations, i % 4
        annotations = {
            "words": ["now"] * more + given["words"],
            "heads": [-1] * more + [h + more if h >= 0 else -1 for h in given["heads"]],
            "relations": ["dep"] * more + given["relations"],
        }
        examples.append(Example(example.id, "now " * more + example.text, annotations=annotations))
    fields = {Field.TEXT, Field.WORDS, Field.HEADS, Field.RELATIONS}
    return Corpus("shifted", examples, frozenset(fields))


def sure(result: RelationHeadsResult) -> set[tuple[int, int]]:
    heads = result.tables["heads"]
    return set(heads.loc[heads["sure"], ["layer", "head"]].itertuples(index=False, name=None))


def test_exactly_the_planted_head_is_found(tmp_path: Path) -> None:
    result = look(planted_encoder(), planted_corpus(), tmp_path, direction="forward")
    assert sure(result) == {KNOWING}
    best = result.tables["heads"].set_index(["layer", "head"]).loc[KNOWING]
    assert best["weight"] > 0.9
    assert best["above_percentile"]
    evidence = result.evidence()
    assert evidence["obj_best_excess"].low > 0.3
    assert evidence["obj_best_excess"].unit == "words"
    assert evidence["obj_best_excess"].n < result.facts["compared"]  # not sentences
    distances = result.tables["distances"].set_index("min_distance")
    assert distances.index[0] == 2
    assert distances["sentences"].is_monotonic_decreasing
    assert set(zip(distances["layer"], distances["head"], strict=True)) == {KNOWING}
    assert evidence["obj_share_of_heads"].value == 1 / 8
    assert evidence["obj_heads_above_percentile"].value == 1


def test_a_fixed_distance_is_no_relation(tmp_path: Path) -> None:
    corpus = planted_corpus(two_back=True)
    result = look(planted_encoder(), corpus, tmp_path, direction="forward")
    heads = result.tables["heads"].set_index(["layer", "head"])
    # By its weight alone it could not be told from the head that knows.
    assert heads.loc[TWO_BACK, "weight"] > 0.9
    assert abs(heads.loc[TWO_BACK, "excess_distance"]) < 0.01
    assert heads.loc[TWO_BACK, "nearest"] in ("distance", "place")
    assert sure(result) == {KNOWING}


def test_the_direction_of_attention(tmp_path: Path) -> None:
    encoder, corpus = planted_encoder(), planted_corpus()
    backward = look(encoder, corpus, tmp_path, direction="backward")
    assert sure(backward) == set()  # nouns do not look at their verbs
    assert "obj_share_of_heads" not in backward.evidence()
    assert sure(look(encoder, corpus, tmp_path, direction="both")) == {KNOWING}


@pytest.mark.parametrize("excess", [0.005, 0.05])
def test_one_margin_decides_whether_heads_follow_and_how_many(excess: float) -> None:
    """A head whose sure excess counts as none bore out "certain heads" and "few heads" both."""
    rng = np.random.default_rng(0)
    study = RelationHeads()
    weights = 0.2 + rng.normal(size=(60, 5, 3, 4)) * 1e-4  # sentences, pairs, layers, heads
    weights[:, 0, 1, 2] += excess
    words = np.array([[f"a{i}", f"b{i}"] for i in range(60)])
    heads = study._heads(weights, weights, words)
    evidence = study._excess.evidence(heads, study.relation)
    best, verdicts = (
        evidence["frame_best_excess"],
        {v.claim.id: told(v) for v in judge("relation-heads", _known(evidence))},
    )
    assert best is not None
    assert best.low == pytest.approx(excess, abs=1e-3)
    certain, few = (verdicts[f"dark-secrets.{n}"] for n in (
        "a-head-attends-along-frames", "few-heads-attend-along-frames"))  # fmt: skip
    if excess > study.margin:
        assert (certain, few) == (Outcome.HOLDS, Outcome.HOLDS)
    else:
        assert certain not in (Outcome.HOLDS, Outcome.INCONCLUSIVE)
        assert few is Outcome.NOT_APPLICABLE


def _known(evidence: dict[str, Estimate | None]) -> dict[str, Estimate]:
    return {name: found for name, found in evidence.items() if found is not None}


def test_sixty_words_are_enough_for_an_excess_of_a_tenth() -> None:
    """Correction for heads and comparisons, and for unseen losses of 1, found nothing there."""
    rng = np.random.default_rng(0)
    study, found = RelationHeads(), 0
    words = np.array([[f"a{i}", f"b{i}"] for i in range(60)])
    for _ in range(10):
        weights = rng.exponential(size=(60, 5, 12, 12)) * 0.05
        weights[:, 0, 3, 3] += 0.1
        heads = study._heads(weights, weights, words)
        sure = heads[heads["sure"]]
        found += list(zip(sure["layer"], sure["head"], strict=True)) == [(3, 3)]
    assert found >= 9


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_found_in_random_models(seed: int, tmp_path: Path) -> None:
    corpus = bt.load_corpus("grammar", limit=150, seed=seed)
    words = sorted({str(w).lower() for e in corpus for w in e.get("words")})
    config = hf.BertConfig(
        vocab_size=5 + len(words), hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=16, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = hf.BertModel(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.mul_(0.25 / weights.std())  # attention far from even
    encoder = Encoder(model, tiny.tokenizer(words), name="random")
    result = look(encoder, corpus, tmp_path, relation="nsubj")
    evidence = result.evidence()
    assert sure(result) == set()
    assert evidence["nsubj_best_excess"].low <= 0
    assert evidence["nsubj_least_excess_above_percentile"].low <= 0
    assert "nsubj_share_of_heads" not in evidence


@pytest.mark.parametrize(("family", "side"), [("roberta", "right"), ("t5", "left")])
def test_the_weight_is_the_largest_of_the_linked_pairs(
    family: str, side: str, tmp_path: Path
) -> None:
    encoder = Encoder(tiny.model(family, seed=1), tiny.tokenizer(WORDS, max_length=PLACES))
    encoder.tokenizer.padding_side = side
    corpus = planted_corpus(20)
    result = look(encoder, corpus, tmp_path, direction="forward", min_distance=1)
    site, expected = "layer.*.head.*.pattern", []
    for example in corpus:
        maps = encoder.run(example.text, record=site)[site][:, 0].numpy()
        linked = [(h, i) for i, h in enumerate(example.get("heads")) if h >= 0]
        expected.append(np.max([maps[..., 1 + a, 1 + b] for a, b in linked], axis=0))
    weights = np.mean(expected, axis=0).ravel()
    assert np.allclose(result.tables["heads"]["weight"], weights, atol=1e-5)


def test_batches_change_no_number_and_limits_are_counted(tmp_path: Path) -> None:
    encoder, corpus = planted_encoder(), planted_corpus(60)
    study = RelationHeads(relation="obj")
    parts = [
        study.measure(
            encoder, corpus, study.parts(encoder.shape, corpus)[0], Context(batch_tokens=n)
        )["weight"]
        for n in (4096, 40)
    ]
    assert np.allclose(*parts, atol=1e-6, equal_nan=True)
    one = look(encoder, corpus, tmp_path)
    left = one.tables["sentences"].set_index("limit")["sentences"]
    assert left["all sentences"] == 60
    assert left["at most 12 tokens"] == 60
    apart = int(left["linked words at least 2 tokens apart"])
    assert apart == one.arrays.attrs["sentences"] < 60
    assert left.iloc[-1] == one.arrays.attrs["compared"] <= apart
    assert "all comparisons are possible" in left.index


def test_blocks_without_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RelationHeads, "block", 30)
    bare = {"words": ["so", "so"], "heads": [-1, 0], "relations": ["root", "dep"]}
    none = [Example(f"none-{i}", "so so", annotations=bare) for i in range(30)]
    linked = planted_corpus(90)
    corpus = Corpus("planted", [*none, *linked, *none], FIELDS)
    result = look(planted_encoder(), corpus, tmp_path, direction="forward")
    assert sure(result) == {KNOWING}
    again = Store(str(tmp_path)).load(result.identity)
    assert again.equals(result)
    assert list(again.figures()) == ["weights", "excess", "example"]
    for name in again.figures():
        assert again.plot(name).axes
    assert "surely more than 0.01 above every comparison: 1.2" in again.headline()


def test_pairs_of_texts(tmp_path: Path) -> None:
    pairs = [
        Example(e.id, e.text, text_b="so the a", annotations=e.annotations)
        for e in planted_corpus(120)
    ]
    corpus = Corpus("pairs", pairs, FIELDS | {Field.TEXT_B})
    result = look(planted_encoder(), corpus, tmp_path, direction="forward")
    assert sure(result) == {KNOWING}


def test_refusals(tmp_path: Path) -> None:
    encoder, corpus = planted_encoder(), planted_corpus(20)
    with pytest.raises(UnknownNameError, match="Did you mean 'obj'"):
        look(encoder, corpus, tmp_path, relation="objj")
    with pytest.raises(CapabilityError, match="'coreference' needs coreference"):
        look(encoder, corpus, tmp_path, relation="coreference")
    with pytest.raises(DataError, match=r"(?s)0 sentences.*at most 3 tokens: 0"):
        look(encoder, corpus, tmp_path, max_tokens=3)
