"""Token to token: the planted link is found, exactly it; a random model bears out no claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf

import bertology as bt
import planted_links as planted
import tiny
from bertology.annotated.linked_batches import offset_hits, offsets_of
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.results.claims import Outcome
from bertology.results.result import Result
from bertology.studies.attention.token_to_token import TokenToToken, TokenToTokenResult
from bertology.studies.designs.followed_links import followed_evidence
from result_conformance import ResultConformance


def look(encoder: Encoder, corpus: Corpus, **how: Any) -> TokenToTokenResult:
    found = planted.ask(
        TokenToToken(**{"resamples": 200, "relations": ("verb-subject",), **how}), encoder, corpus
    )
    assert isinstance(found, TokenToTokenResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"obj-excess", "verb-subject-share", "from-cls-to-sep"})

    @staticmethod
    def make() -> Result:
        linking = Encoder(planted.model(planted.LINK), planted.tokenizer(), name="links")
        study = TokenToToken(relations=("verb-subject", "obj"), resamples=100)
        found: Result = planted.ask(study, linking, planted.corpus(30))
        return found

    def test_the_planted_head_alone_is_sure(self, result: Result) -> None:
        links = result.measure("verb-subject-excess")
        assert links.sure is not None
        assert list(map(tuple, np.argwhere(links.sure))) == [planted.LINK]


@pytest.fixture
def encoder() -> Encoder:
    model = planted.model(planted.LINK, planted.SEPARATOR)
    return Encoder(model, planted.tokenizer(), name="planted")


def test_exactly_the_planted_link_is_found(encoder: Encoder) -> None:
    result = look(encoder, planted.corpus())
    table = result.table("links").set_index(["layer", "head"])
    assert table.loc[planted.LINK, "share"] == 1
    assert table.loc[planted.LINK, "share_with_special"] == 1
    better = table[(table["excess_p"] < 0.05) & (table["excess"] > 0)]
    assert list(better.index) == [planted.LINK]
    found = result.evidence()["verb_subject_excess"]
    assert found.low > 0.2
    assert found.low <= found.value <= found.high
    assert table.loc[planted.SEPARATOR, "share_with_special"] == 0


def test_offsets_are_chosen_on_the_other_half(encoder: Encoder) -> None:
    result = look(encoder, planted.corpus(200))
    near = result.table("offsets").set_index("offset")["share"]
    assert near.sum() == pytest.approx(1)  # the subject is always 1 to 5 words before its verb
    assert (near[near.index > 0] == 0).all()
    best = result.table("links").set_index(["layer", "head"]).loc[planted.LINK]
    assert best["share"] - best["excess"] <= near.max() + 1e-9


def test_a_head_that_is_an_offset_is_no_better_than_it() -> None:
    """Subjects right before their verbs: the link head then does what an offset does."""
    corpus = planted.corpus(200)
    close = [e for e in corpus if e.get("relations")[2] == "root"]
    assert len(close) > 20
    chosen = Corpus("close", close, corpus.fields)
    encoder = Encoder(planted.model(planted.LINK), planted.tokenizer())
    result = look(encoder, chosen)
    found = result.evidence()["verb_subject_candidate_excess"]
    assert found.value == 0
    assert found.low < 0 < found.high


def test_a_plain_loop_gives_the_same_hits() -> None:
    encoder = Encoder(planted.random_model(spread=0.6), planted.tokenizer())
    corpus = planted.corpus(12)
    table = look(encoder, corpus).table("links")
    hits = np.zeros((12, planted.LAYERS, planted.HEADS))
    for i, example in enumerate(corpus):
        maps = encoder.run(example.text, record="layer.*.head.*.pattern")
        verb = example.get("relations").index("root")
        rows = maps["layer.*.head.*.pattern"][:, 0, :, 1 + verb, 1:-1].clone()  # every word a piece
        rows[..., verb] = -1
        hits[i] = rows.argmax(-1) == example.get("relations").index("nsubj")
    assert np.allclose(table["share"], hits.mean(0).ravel(), atol=1e-6)


def test_what_cls_attends_to(encoder: Encoder) -> None:
    model = planted.model(planted.LINK, planted.SEPARATOR)
    found = look(encoder, planted.corpus(30)).table("first")
    last = found[found["layer"] == planted.SEPARATOR[0]].set_index(["class", "head"])["weight"]
    assert last[("sep", planted.SEPARATOR[1])] > 0.9
    with torch.no_grad():  # all heads of the last layer at [SEP]: then it leads on average
        for head in range(planted.HEADS):
            planted._look(model, (planted.LAYERS - 1, head), towards=planted._END)
    evidence = look(Encoder(model, planted.tokenizer()), planted.corpus(30)).evidence()
    assert evidence["sep_lead_from_cls"].low > 0.5
    assert evidence["sep_lead_from_cls_but_for_itself"].low > 0.5


@pytest.mark.parametrize("gone", [(0, 0), (1, 1)])
def test_pruned_heads_give_nothing_and_not_zero(encoder: Encoder, gone: tuple[int, int]) -> None:
    whole = look(encoder, planted.corpus(40)).table("first")
    pruned = Encoder(prune_heads(encoder.model, [gone]), encoder.tokenizer, name="pruned")
    table = look(pruned, planted.corpus(40)).table("first")
    lost = (table["layer"] == gone[0]) & (table["head"] == gone[1])
    assert table.loc[lost, "weight"].isna().all()
    assert table.loc[~lost, "weight"].notna().all()
    assert table["n"].tolist() == whole["n"].tolist()


@pytest.mark.parametrize(("spread", "seed"), [(0.02, 0), (0.1, 1), (0.4, 2), (0.4, 3)])
def test_a_random_model_bears_out_no_claim(spread: float, seed: int) -> None:
    corpus = bt.load_corpus("grammar", limit=80)
    words = sorted({w.lower() for e in corpus for w in e.get("words")} | set("'t"))
    config = planted.model().config
    config.vocab_size, config.initializer_range = 5 + len(words), spread
    torch.manual_seed(seed)
    model = hf.BertModel(config, add_pooling_layer=False).eval()
    relations = ("verb-subject", "noun-pronoun")
    result = look(Encoder(model, tiny.tokenizer(words)), corpus, relations=relations)
    assert not [v for v in result.verdicts() if v.outcome is Outcome.HOLDS]
    found = result.evidence()
    assert found["verb_subject_excess"].low <= 0
    assert found["noun_pronoun_excess"].low <= 0
    assert found["sep_lead_from_cls"].low <= 0
    assert not any("candidate" in name for name in found)


def test_a_head_that_always_looks_at_the_target_follows_no_link() -> None:
    model = planted.model()
    with torch.no_grad():
        planted._look(model, planted.LINK, towards=planted._SUBJECT)
    result = look(Encoder(model, planted.tokenizer()), planted.corpus())
    row = result.table("links").set_index(["layer", "head"]).loc[planted.LINK]
    assert row["share"] == 1
    assert row["excess_low"] > 0
    assert row["selectivity"] == 0
    assert result.evidence()["verb_subject_excess"].low <= 0


def test_without_annotated_links_only_cls_is_looked_at(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertology.annotated.tagger import Tags

    class Blank:
        name = "blank"

        def tag(self, sentences: list[list[str]]) -> list[Tags]:
            return [Tags(("X",) * len(s), ("",) * len(s)) for s in sentences]

    monkeypatch.setattr("bertology.annotated.tagger.find_tagger", lambda name: Blank())
    pairs = planted.corpus(10, pairs=True)
    result = look(encoder, pairs, relations=())
    assert list(result.tables) == ["first"]
    assert set(result.evidence()) >= {"sep_weight_from_cls", "sep_lead_from_cls"}
    with pytest.raises(CapabilityError, match="verb-subject"):
        look(encoder, pairs)


def test_punctuation_is_judged_against_sep_where_the_paper_does(encoder: Encoder) -> None:
    named = replace(planted.corpus(), name="rte")
    name = "punctuation_over_sep_from_cls"
    found = look(encoder, named)
    assert found.evidence()[name].high < 0  # a planted head of the last layer looks at [SEP]
    outcomes = {v.claim.rule.quantity: v.outcome for v in found.verdicts()}
    assert outcomes[name] is Outcome.FAILS
    elsewhere = {v.claim.rule.quantity: v for v in look(encoder, planted.corpus()).verdicts()}
    assert elsewhere[name].outcome is Outcome.NOT_APPLICABLE
    even = Encoder(planted.random_model(), planted.tokenizer(), name="random")
    random = {v.claim.rule.quantity: v.outcome for v in look(even, named).verdicts()}
    assert random[name] is not Outcome.HOLDS


def test_a_claim_of_three_tasks_is_not_judged_on_others_and_says_so(encoder: Encoder) -> None:
    said = {v.claim.id: v.measured for v in look(encoder, planted.corpus()).verdicts()}
    why = said["dark-secrets.cls-attends-to-punctuation-in-the-last-layer"]
    assert why == "the paper says it of STS-B, RTE and QNLI only"
    there = {v.claim.id: v for v in look(encoder, replace(planted.corpus(), name="rte")).verdicts()}
    excepted = there["dark-secrets.cls-attends-to-sep-in-the-last-layer"]
    assert excepted.outcome is Outcome.NOT_APPLICABLE
    assert excepted.measured == "the paper says it of all tasks but STS-B, RTE and QNLI"


def test_a_tagger_may_say_what_nouns_and_pronouns_are(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertology.annotated.tagger import Tags

    class Playful:  # calls verbs nouns and subjects pronouns: what the planted head links
        name = "playful"

        def tag(self, sentences: list[list[str]]) -> list[Tags]:
            kinds = dict.fromkeys(planted.VERBS, "NOUN") | dict.fromkeys(planted.SUBJECTS, "PRON")
            return [Tags(tuple(kinds.get(w, "X") for w in s), ("",) * len(s)) for s in sentences]

    monkeypatch.setattr("bertology.annotated.tagger.find_tagger", lambda name: Playful())
    annotated = planted.corpus()
    examples = [replace(e, annotations={}) for e in annotated]
    plain = replace(annotated, examples=examples, fields=frozenset({Field.TEXT}))
    study = TokenToToken(relations=("noun-pronoun",))
    study.check(encoder, plain)
    with pytest.raises(CapabilityError, match="annotation of words"):
        replace(study, tagger="gold").check(encoder, plain)
    with pytest.raises(CapabilityError, match="verb-subject"):
        replace(study, relations=("verb-subject",)).check(encoder, plain)
    result = look(encoder, plain, relations=("noun-pronoun",))
    table = result.table("links").set_index(["layer", "head"])
    assert table.loc[planted.LINK, "share"] == 1
    assert list(table[(table["excess_p"] < 0.05) & (table["excess"] > 0)].index) == [planted.LINK]
    assert result.headline().endswith("playful; which belong together is guessed.")
    assert list(look(encoder, plain, relations=()).tables) == ["first"]  # only where annotated


def test_offsets_count_from_the_ends_of_a_phrase() -> None:
    links = [((3, 4), (2,)), ((3, 4), (5, 6))]
    assert offset_hits(links, [-1, 1, 2, -2]) == [0.5, 0.5, 0.5, 0.0]
    assert np.isnan(offset_hits([], [1])).all()


def test_no_head_is_better_only_if_no_bound_is() -> None:
    """The head that did best here is not surely the best: a less certain one may be."""
    columns = {"": [0.02, 0.01], "_low": [0.01, -0.2], "_high": [0.03, 0.3]}
    rows = pd.DataFrame(
        {f"{k}{b}": v for b, v in columns.items() for k in ("excess", "selectivity")}
    )
    rows = rows.assign(relation="verb-subject", share=0.5, share_low=0.49, n=40)
    rows["alone_high"] = [0.025, 0.2]  # each must be below: no correction for looking at two
    found = followed_evidence(rows, 0.95)["verb_subject_candidate_excess"]
    assert found is not None
    assert (found.value, found.low, found.high) == (0.02, 0.01, 0.2)


def test_a_relation_without_links_is_said_to_have_none(encoder: Encoder) -> None:
    result = look(encoder, planted.corpus(8), relations=("verb-subject", "iobj"))
    assert "iobj: no links" in result.headline()
    assert "nan" not in result.headline()
    assert "iobj" in result.figures()  # and no warning of an empty mean


def test_all_offsets_that_occur_are_tried() -> None:
    """Links of more than ten words were compared with nothing."""
    examples = []
    for i in range(20):
        words = ["sees", *["often"] * (14 + i % 2), "dog"]
        annotations = {
            "words": words,
            "heads": [-1, *[0] * (len(words) - 1)],
            "relations": ["root", *["advmod"] * (len(words) - 2), "obj"],
            "pos": ["VERB", *["ADV"] * (len(words) - 2), "NOUN"],
        }
        examples.append(Example(str(i), " ".join(words), annotations=annotations))
    fields = frozenset({Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.RELATIONS})
    model = Encoder(planted.model(), planted.tokenizer())
    study = TokenToToken(relations=("obj",), resamples=100)
    result = planted.ask(study, model, Corpus("far", examples, fields))
    near = result.table("offsets").set_index("offset")["share"]
    assert near.to_dict() == {15: 0.5, 16: 0.5}
    assert offsets_of([((2, 3), (1, 6, 7))]) == {-1, 3, 4}
