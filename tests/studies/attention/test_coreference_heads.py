"""Coreference heads: the planted head is found, exactly it; nulls bear out no claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import bertology as bt
import planted_coreference as planted
import planted_links
from bertology.annotated.coreference import READINGS, cut_documents
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.antecedents import BASELINES, mentions_of, questions_of
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.attention.coreference_heads import CoreferenceHeads, CoreferenceHeadsResult
from result_conformance import ResultConformance, claims_of

ON_PAR = "primer-attention.a-head-resolves-coreference-like-rules"
BEYOND = "primer-attention.a-head-resolves-coreference-beyond-head-match"


def look(encoder: Encoder, corpus: Corpus, **how: Any) -> CoreferenceHeadsResult:
    found = planted_links.ask(CoreferenceHeads(**{"resamples": 200, **how}), encoder, corpus)
    assert isinstance(found, CoreferenceHeadsResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"all-gain", "all-share", "pronoun-share", "all-share-of-words"})

    @staticmethod
    def make() -> Result:
        return look(planted.encoder(planted.model()), planted.corpus(40))

    def test_exactly_the_planted_head_is_sure(self, result: Result) -> None:
        for kind in ("all", "pronoun"):
            sure = result.measure(f"{kind}-gain").sure
            assert sure is not None
            assert list(map(tuple, np.argwhere(sure))) == [planted.RESOLVER]
        assert result.answer.startswith("Head 1.2 attends most to an antecedent for 100 %")

    def test_it_resolves_every_mention_in_both_readings(self, result: Result) -> None:
        kinds = result.table("kinds")
        of_all = kinds[kinds["kind"] == "all"]
        assert list(of_all["reading"]) == list(READINGS)
        assert np.allclose(of_all["score"], 1)
        assert set(zip(of_all["layer"], of_all["head"], strict=True)) == {planted.RESOLVER}

    def test_claims_hold_where_a_head_resolves_all(self, result: Result) -> None:
        found = claims_of(result)
        assert found[ON_PAR] == "holds"
        assert found[BEYOND] == "holds"

    def test_nothing_is_lost_in_short_documents(self, result: Result) -> None:
        losses = result.table("losses")["mentions"]
        assert losses[0] == losses[1] == losses[2] > 100


@pytest.mark.parametrize(("spread", "seed"), [(0.1, 0), (0.3, 1), (0.6, 2)])
def test_no_head_of_a_random_model_is_beyond_matching_words(spread: float, seed: int) -> None:
    reader = planted.encoder(planted.random_model(spread=spread, seed=seed))
    result = look(reader, planted.corpus(40, seed=seed))
    assert not result.sure_heads().any()
    assert not {ON_PAR, BEYOND} & {k for k, v in claims_of(result).items() if v == "holds"}


def test_mentions_dealt_at_random_are_resolved_by_nothing() -> None:
    result = look(planted.encoder(planted.model()), planted.corpus(40, shuffled=True, seed=1))
    assert not result.sure_heads().any()
    assert not {ON_PAR, BEYOND} & {k for k, v in claims_of(result).items() if v == "holds"}
    assert result.answer.startswith("Nothing is sure")


def test_plain_attention_gives_the_same_shares() -> None:
    """200 texts of the grammar through transformers alone, word by word."""
    encoder = bt.load(device="cpu")
    corpus = bt.load_corpus("grammar", limit=200)
    table = look(encoder, corpus, resamples=100).table("heads")
    table = table[table["kind"] == "all"]
    model, tokenizer = encoder.model, encoder.tokenizer
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    shape = (encoder.shape.layers, encoder.shape.heads)
    hits, asked = np.zeros((2, *shape)), 0
    for example in corpus:
        questions = questions_of(mentions_of(example))
        if not questions:
            continue
        words, at = example.get("words"), 0
        given = tokenizer(example.text, return_offsets_mapping=True, return_tensors="pt")
        offsets = given.pop("offset_mapping")[0].tolist()
        pieces = []
        for word in words:
            start = example.text.index(word, at)
            at = start + len(word)
            pieces.append([i for i, (a, b) in enumerate(offsets) if start <= a < b <= at])
        with torch.no_grad():
            maps = torch.stack(model(**given, output_attentions=True).attentions)[:, 0].float()
        for q in questions:
            row = maps[:, :, pieces[q.mention.head]].mean(2)  # (L, H, T)
            heads = sorted({c.head for c in q.candidates})
            for reading, among in enumerate((heads, range(q.mention.first))):
                weights = torch.stack([row[..., pieces[w]].sum(-1) for w in among], -1)
                picked = np.array(list(among))[weights.argmax(-1).numpy()]
                hits[reading] += np.isin(picked, list(q.targets))
            asked += 1
    model.set_attn_implementation(before)
    assert asked > 5
    assert np.allclose(table["share"], hits[0].ravel() / asked)
    assert np.allclose(table["share_of_words"], hits[1].ravel() / asked)


def _by_hand(text: str, tags: str, clusters: list[list[tuple[int, int]]]) -> Example:
    about = {"words": text.split(), "pos": tags.split(), "coreference": clusters}
    return Example("x", text, annotations=about)


def test_baselines_choose_as_they_say() -> None:
    from bertology.data.words.antecedents import baseline_hits

    # Ann (0) met Bob (2) ; the boats (5) sank ; he (7) and Ann (9)
    example = _by_hand(
        "Ann met Bob ; the boats sank ; he called Ann",
        "PROPN VERB PROPN PUNCT DET NOUN VERB PUNCT PRON VERB PROPN",
        [[(0, 1), (10, 11)], [(2, 3), (8, 9)], [(4, 6)]],
    )
    he, ann = questions_of(mentions_of(example))
    assert [c.head for c in he.candidates] == [0, 2, 5]
    assert he.targets == {2}
    first, second = baseline_hits(example, [he, ann])
    assert tuple(first) == BASELINES
    assert first == {
        "random": pytest.approx(1 / 3), "first": 0, "nearest": 0, "string match or nearest": 0,
        "head match": 0, "head match or nearest": 0, "sieve": 1,
    }  # fmt: skip
    assert second == {
        "random": pytest.approx(1 / 4), "first": 1, "nearest": 0, "string match or nearest": 1,
        "head match": 1, "head match or nearest": 1, "sieve": 1,
    }  # fmt: skip


def test_parts_of_a_mention_are_no_candidates() -> None:
    example = _by_hand("Bob saw his wife", "PROPN VERB PRON NOUN", [[(0, 1), (2, 3)], [(2, 4)]])
    assert questions_of(mentions_of(example)) == [], "his has one candidate; his wife none"


def test_documents_are_cut_at_sentences_and_losses_counted() -> None:
    encoder, corpus = planted.encoder(planted.model()), planted.corpus(8, sentences=12)
    whole, cut = (look(encoder, corpus, window=w).table("losses")["mentions"] for w in (128, 32))
    assert whole[0] == cut[0]
    assert whole[1] > cut[1] > 0
    windows = cut_documents(encoder, corpus, 32, "auto")
    assert len(windows.corpus) > len(corpus)
    joined = [w for e, d in zip(windows.corpus, windows.documents, strict=True) if d == 0
              for w in e.get("words")]  # fmt: skip
    assert joined == corpus[0].get("words")
    for window in windows.corpus:
        words = window.get("words")
        assert len(words) <= 30
        assert window.text.split() == words
        assert words[-1] == "."
        for cluster in window.get("coreference"):
            assert all(0 <= a < b <= len(words) for a, b in cluster)


def test_where_nothing_can_be_asked_it_says_so() -> None:
    encoder, corpus = planted.encoder(planted.model()), planted.corpus(4)
    alone = [replace(e, annotations={**e.annotations, "coreference": [[(0, 1)]]}) for e in corpus]
    with pytest.raises(DataError, match="Fewer than two texts have a mention with an antecedent"):
        look(encoder, replace(corpus, examples=alone))
    pairs = replace(corpus, fields=corpus.fields | {Field.TEXT_B})
    with pytest.raises(CapabilityError, match="pairs of texts"):
        look(encoder, pairs)


def test_a_corpus_without_tags_is_tagged() -> None:
    corpus = bt.load_corpus("grammar", limit=60)
    bare = [
        replace(e, annotations={k: e.annotations[k] for k in ("words", "coreference")})
        for e in corpus
    ]
    fields = frozenset({Field.TEXT, Field.WORDS, Field.COREFERENCE})
    result = look(bt.load(device="cpu"), replace(corpus, examples=bare, fields=fields))
    assert "probe" in result.facts["tagger"]


def _twins(size: int) -> Corpus:
    """Pairs of texts that differ in what the pronoun stands for, and in nothing that shows."""
    texts = []
    for i in range(size):
        for right in (0, 2):
            clusters = [[(right, right + 1), (4, 5)], [(2 - right, 3 - right)]]
            example = _by_hand("ann met bea . she", "PROPN VERB PROPN PUNCT PRON", clusters)
            texts.append(replace(example, id=f"{i}-{right}"))
    fields = frozenset({Field.TEXT, Field.WORDS, Field.POS, Field.COREFERENCE})
    return Corpus("twins", texts, fields)


def test_twins_do_not_make_the_best_of_one_half_the_worst_of_the_other() -> None:
    """In halves of even and odd numbers, what is right in one is wrong in the other."""
    result = look(planted.encoder(planted.model()), _twins(40))
    row = result.table("kinds").iloc[0]
    assert row["score"] == pytest.approx(0.5)
    assert row["over_simple"] == pytest.approx(0)
    assert not {ON_PAR, BEYOND} & {k for k, v in claims_of(result).items() if v == "holds"}
