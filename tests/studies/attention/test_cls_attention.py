"""CLS attention: a planted head that looks at [SEP] is found; a random model bears out no claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import planted_links as planted
import tiny
from bertology.data.corpus import Corpus
from bertology.data.words.classes import Specials, TokenClass
from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.studies.attention.cls_attention import ClsAttention, ClsAttentionResult
from result_conformance import ResultConformance, told


def look(encoder: Encoder, corpus: Corpus, **how: Any) -> ClsAttentionResult:
    found = planted.ask(ClsAttention(**{"resamples": 200, **how}), encoder, corpus)
    assert isinstance(found, ClsAttentionResult)
    return found


@pytest.fixture
def encoder() -> Encoder:
    model = planted.model(planted.LINK, planted.SEPARATOR)
    return Encoder(model, planted.tokenizer(), name="planted")


class TestResult(ResultConformance):
    measures = frozenset({"from-cls-to-sep", "layer-from-cls-to-noun"})

    @staticmethod
    def make() -> Result:
        reader = Encoder(planted.model(planted.SEPARATOR), planted.tokenizer(), name="separator")
        return look(reader, planted.corpus(30))

    def test_the_planted_head_looks_at_sep(self, result: Result) -> None:
        weights = result.measure("from-cls-to-sep").values
        assert weights[planted.SEPARATOR] > 0.9
        others = np.delete(
            weights.ravel(), planted.SEPARATOR[0] * planted.HEADS + planted.SEPARATOR[1]
        )
        assert others.max() < 0.2


def test_weights_are_those_of_plain_maps() -> None:
    encoder = Encoder(planted.random_model(spread=0.6), planted.tokenizer())
    corpus = planted.corpus(12)
    table = look(encoder, corpus).table("classes")
    seps = np.zeros((12, planted.LAYERS, planted.HEADS))
    for i, example in enumerate(corpus):
        maps = encoder.run(example.text, record="layer.*.head.*.pattern")
        seps[i] = maps["layer.*.head.*.pattern"][:, 0, :, 0, -1]
    rows = table[table["class"] == TokenClass.SEP]
    assert np.allclose(rows["weight"], seps.mean(0).ravel(), atol=1e-6)
    assert np.allclose(rows["total"], seps.mean(0).ravel(), atol=1e-6)


def test_what_leads_in_the_last_layer(encoder: Encoder) -> None:
    model = planted.model(planted.LINK, planted.SEPARATOR)
    with torch.no_grad():  # all heads of the last layer at [SEP]: then it leads on average
        for head in range(planted.HEADS):
            planted._look(model, (planted.LAYERS - 1, head), towards=planted._END)
    result = look(Encoder(model, planted.tokenizer()), planted.corpus(30))
    evidence = result.evidence()
    assert evidence["sep_lead_from_cls"].low > 0.5
    assert evidence["sep_lead_from_cls_but_for_itself"].low > 0.5
    assert "surely more than to a token of any other class" in result.answer


@pytest.mark.parametrize("gone", [(0, 0), (1, 1)])
def test_pruned_heads_give_nothing_and_not_zero(encoder: Encoder, gone: tuple[int, int]) -> None:
    whole = look(encoder, planted.corpus(40)).table("classes")
    pruned = Encoder(prune_heads(encoder.model, [gone]), encoder.tokenizer, name="pruned")
    table = look(pruned, planted.corpus(40)).table("classes")
    lost = (table["layer"] == gone[0]) & (table["head"] == gone[1])
    assert table.loc[lost, "weight"].isna().all()
    assert table.loc[~lost, "weight"].notna().all()
    assert table["n"].tolist() == whole["n"].tolist()


@pytest.mark.parametrize(("spread", "seed"), [(0.02, 0), (0.4, 2)])
def test_a_random_model_bears_out_no_claim(spread: float, seed: int) -> None:
    corpus = bt.load_corpus("grammar", limit=80)
    words = sorted({w.lower() for e in corpus for w in e.get("words")} | set("'t"))
    config = planted.model().config
    config.vocab_size, config.initializer_range = 5 + len(words), spread
    torch.manual_seed(seed)
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    result = look(Encoder(model, tiny.tokenizer(words)), corpus)
    assert not [v for v in result.verdicts() if v.outcome.is_there]
    assert result.evidence()["sep_lead_from_cls"].low <= 0


def test_pairs_are_tagged_and_looked_at(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    from bertology.annotated.tagger import Tags

    class Blank:
        name = "blank"

        def tag(self, sentences: list[list[str]]) -> list[Tags]:
            return [Tags(("X",) * len(s), ("",) * len(s)) for s in sentences]

    monkeypatch.setattr("bertology.annotated.tagger.find_tagger", lambda name: Blank())
    result = look(encoder, planted.corpus(10, pairs=True))
    assert set(result.evidence()) >= {"sep_weight_from_cls", "sep_lead_from_cls"}
    assert result.facts["tagger"] == "blank"


def test_punctuation_is_judged_against_sep_where_the_paper_does(encoder: Encoder) -> None:
    named = replace(planted.corpus(), name="rte")
    name = "punctuation_over_sep_from_cls"
    found = look(encoder, named)
    assert found.evidence()[name].high < 0  # a planted head of the last layer looks at [SEP]
    outcomes = {v.claim.rule.quantity: told(v) for v in found.verdicts()}
    assert outcomes[name] is Outcome.FAILS
    elsewhere = {v.claim.rule.quantity: v for v in look(encoder, planted.corpus()).verdicts()}
    assert elsewhere[name].outcome is Outcome.NOT_APPLICABLE
    even = Encoder(planted.random_model(), planted.tokenizer(), name="random")
    random = {v.claim.rule.quantity: told(v) for v in look(even, named).verdicts()}
    assert not random[name].is_there


def test_a_claim_of_three_tasks_is_not_judged_on_others_and_says_so(encoder: Encoder) -> None:
    said = {v.claim.id: v.measured for v in look(encoder, planted.corpus()).verdicts()}
    why = said["dark-secrets.cls-attends-to-punctuation-in-the-last-layer"]
    assert why == "the paper says it of STS-B, RTE and QNLI only"
    there = {v.claim.id: v for v in look(encoder, replace(planted.corpus(), name="rte")).verdicts()}
    excepted = there["dark-secrets.cls-attends-to-sep-in-the-last-layer"]
    assert excepted.outcome is Outcome.NOT_APPLICABLE
    assert excepted.measured == "the paper says it of all tasks but STS-B, RTE and QNLI"


def test_models_without_a_first_token_are_refused(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = Specials(frozenset(), frozenset({3}))
    monkeypatch.setattr(Specials, "of", classmethod(lambda cls, tokenizer: without))
    with pytest.raises(CapabilityError, match=r"no \[CLS\]"):
        look(encoder, planted.corpus(4))
