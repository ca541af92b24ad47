"""Syntax heads: the planted relations are found, exactly these; random models follow none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf

import bertology as bt
import planted_links
import planted_syntax as planted
import syntax_reference as reference
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.results.result import Result
from bertology.studies import STUDIES
from bertology.studies.attention.syntax_heads import SyntaxHeads, SyntaxHeadsResult
from bertology.studies.attention.syntax_heads.followed_links import followed_evidence
from result_conformance import ResultConformance, claims_of


def look(encoder: Encoder, corpus: Corpus, **how: Any) -> SyntaxHeadsResult:
    found = planted_links.ask(SyntaxHeads(**{"resamples": 200, **how}), encoder, corpus)
    assert isinstance(found, SyntaxHeadsResult)
    return found


def sure_links(result: SyntaxHeadsResult) -> set[tuple[str, str, int, int]]:
    rows = result.judged(result.table("links"), "excess").query("sure")
    return set(zip(rows["relation"], rows["direction"], rows["layer"], rows["head"], strict=True))


class TestResult(ResultConformance):
    measures = frozenset({"best-relation", "best-relation-gain", "obj-to-dependent-excess"})

    @staticmethod
    def make() -> Result:
        return look(planted.encoder(planted.model()), planted.corpus(80))

    def test_exactly_the_planted_heads_follow_a_relation(self, result: Result) -> None:
        assert isinstance(result, SyntaxHeadsResult)
        followed = {(r, d, *at) for (r, d), at in planted.PLANTED.items()}
        assert sure_links(result) == followed
        heads = result.table("heads")[result.sure_heads()]
        found = heads[["relation", "direction", "layer", "head"]].itertuples(index=False)
        assert {tuple(row) for row in found} == followed

    def test_each_relation_names_its_head(self, result: Result) -> None:
        assert isinstance(result, SyntaxHeadsResult)
        rows = result.relations().set_index("relation")
        assert set(rows.index[rows["sure"]]) == {"det", "obj", "nsubj"}
        for (relation, direction), (layer, head) in planted.PLANTED.items():
            row = rows.loc[relation]
            assert (row["direction"], row["layer"], row["head"]) == (direction, layer, head)
            assert row["share"] == row["share_with_special"] == 1
            assert row["gain_low"] > 0
        assert rows.loc["obj", "published"] == 0.868
        assert rows.loc["obj", "published_head"] == "8-10"
        assert "for 3 of 7 relations" in result.answer

    def test_claims_on_planted_relations_hold(self, result: Result) -> None:
        found = claims_of(result)
        assert found["nuggets-attention.a-head-finds-objects"] == "holds"
        assert found["nuggets-attention.a-head-finds-determiners"] == "holds"
        assert found["primer-attention.heads-attend-to-objects"] == "holds"
        assert found["nuggets-attention.a-head-finds-particles"] == "not-applicable"


def encoder_of_links() -> Encoder:
    made = planted_links.model(planted_links.LINK, planted_links.SEPARATOR)
    return Encoder(made, planted_links.tokenizer(), name="planted")


def test_named_relations_are_followed_as_before() -> None:
    """What `token-to-token` found, with the direction beside it."""
    result = look(encoder_of_links(), planted_links.corpus(), relations=("verb-subject", "iobj"))
    table = result.table("links").set_index(["relation", "direction", "layer", "head"]).sort_index()
    best = table.loc[("verb-subject", "forward", *planted_links.LINK)]
    assert best["share"] == best["share_with_special"] == 1
    separator = table.loc[("verb-subject", "forward", *planted_links.SEPARATOR)]
    assert separator["share_with_special"] == 0
    assert sure_links(result) == {("verb-subject", "forward", *planted_links.LINK)}
    found = result.evidence()["verb_subject_excess"]
    assert found.low > 0.2
    assert found.low <= found.value <= found.high
    assert "No links: iobj." in result.headline()
    assert "points from the verb to its subject in 100 %" in result.answer
    assert {"verb-subject", "iobj"} <= set(result.figures())
    assert {"verb-subject-excess", "verb-subject-backward-share"} <= {
        m.name for m in result.measures()
    }


def test_a_head_that_is_an_offset_is_no_better_than_it() -> None:
    """Subjects right before their verbs: the link head then does what an offset does."""
    corpus = planted_links.corpus(200)
    close = [e for e in corpus if e.get("relations")[2] == "root"]
    assert len(close) > 20
    chosen = Corpus("close", close, corpus.fields)
    result = look(encoder_of_links(), chosen, relations=("verb-subject",))
    found = result.evidence()["verb_subject_candidate_excess"]
    assert found.value == 0
    assert found.low < 0 < found.high


def test_the_offset_is_not_made_worse_by_halves_that_disagree() -> None:
    """Cross-fitted, a head that is an offset gained 15 points over offsets that are nearly tied."""
    examples = []
    for i in range(80):  # subjects one word before their verbs, or two, by turns of half a file
        far = i % 2 == (i >= 44)
        words = ["dog", *["now"] * far, "sees"]
        count = len(words)
        annotations = {
            "words": words, "pos": ["NOUN", *["ADV"] * far, "VERB"],
            "heads": [*[count - 1] * (count - 1), -1],
            "relations": ["nsubj", *["advmod"] * far, "root"],
        }  # fmt: skip
        examples.append(Example(str(i), " ".join(words), annotations=annotations))
    fields = frozenset({Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.RELATIONS})
    result = look(encoder_of_links(), Corpus("tied", examples, fields))
    shares = result.table("offsets").query("relation == 'nsubj'")["share"]
    assert result.table("relations").set_index("relation").loc["nsubj", "baseline"] == shares.max()


def test_a_head_that_always_looks_at_the_target_follows_no_link() -> None:
    made = planted_links.model()
    with torch.no_grad():
        planted_links._look(made, planted_links.LINK, towards=planted_links._SUBJECT)
    encoder = Encoder(made, planted_links.tokenizer())
    result = look(encoder, planted_links.corpus(), relations=("verb-subject",))
    table = result.table("links").set_index(["direction", "layer", "head"]).sort_index()
    row = table.loc[("forward", *planted_links.LINK)]
    assert row["share"] == 1
    assert row["excess_low"] > 0
    assert row["selectivity"] == 0
    assert result.evidence()["verb_subject_excess"].low <= 0
    gain = result.evidence()["verb_subject_gain"]
    assert gain.low > 0
    assert list(gain.missed) == ["the same words found from other words"]


@pytest.mark.parametrize(("spread", "seed"), [(0.1, 0), (0.3, 1), (0.6, 2)])
def test_no_head_of_a_random_model_follows_a_relation(spread: float, seed: int) -> None:
    reader = planted.encoder(planted.random_model(spread=spread, seed=seed))
    result = look(reader, planted.corpus(60, seed=seed))
    assert not sure_links(result)
    assert not result.relations()["sure"].any()
    assert not result.sure_heads().any()
    assert "holds" not in claims_of(result).values(), "negative claims included"
    assert "no head of this model" in result.reasons()["all_share"]
    assert result.answer.startswith("No head surely does")


@pytest.mark.parametrize("seed", [0, 1])
def test_no_head_follows_trees_that_are_shuffled(seed: int) -> None:
    corpus = planted.shuffled(planted.corpus(60, seed=seed), seed)
    result = look(planted.encoder(planted.model()), corpus)
    assert not sure_links(result)
    assert not result.relations()["sure"].any()
    assert not result.sure_heads().any()


def test_plain_transformers_give_the_same_hits() -> None:
    """80 sentences of the grammar, whose words have several pieces, one by one."""
    tokenizer = bt.load(device="cpu").tokenizer
    config = hf.BertConfig(
        vocab_size=len(tokenizer), hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=24, max_position_embeddings=64, initializer_range=0.4,
    )  # fmt: skip
    torch.manual_seed(1)
    encoder = Encoder(hf.BertModel(config, add_pooling_layer=False).eval(), tokenizer, name="any")
    corpus = bt.load_corpus("grammar", limit=80)
    reference.check(look(encoder, corpus), encoder, corpus)


def test_phrases_count_as_one_end() -> None:
    """A link to two words is found by either; offsets count from the ends of a phrase."""
    words = "the dog sees the ball".split()
    links = [[2, [0, 1], "who"], [[3, 4], 2, "back"], [2, [3, 4], "what"]]
    examples = [
        Example(str(i), " ".join(words), annotations={"words": words, "links": links})
        for i in range(6)
    ]
    corpus = Corpus("own", examples, frozenset({Field.TEXT, Field.WORDS, Field.LINKS}))
    result = look(encoder_of_links(), corpus, relations=("links:who", "links:back", "links:what"))
    table = result.table("links").set_index(["relation", "direction", "layer", "head"]).sort_index()
    assert table.loc[("links:who", "forward", *planted_links.LINK), "share"] == 1
    assert table.loc[("links:what", "forward", *planted_links.LINK), "share"] == 0
    near = (
        result.table("offsets").set_index(["relation", "direction", "offset"])["share"].sort_index()
    )
    assert near["links:who", "forward"].to_dict() == {-2: 1.0, -1: 1.0}
    assert near["links:back", "forward"].to_dict() == {-1: 1.0}
    assert near["links:what", "forward"].to_dict() == {1: 1.0, 2: 1.0}
    assert set(look(encoder_of_links(), corpus).table("relations")["relation"]) == {"links"}


def test_subtypes_are_told_apart() -> None:
    """`aux` is all of them; `aux:pass` and `aux:plain` are parts of it."""
    labels = ["aux", "aux:pass", "aux:pass"] * 12
    examples = [
        Example(str(i), "dog often sees", annotations={
            "words": ["dog", "often", "sees"], "pos": ["AUX", "ADV", "VERB"],
            "heads": [2, 2, -1], "relations": [label, "advmod", "root"],
        })
        for i, label in enumerate(labels)
    ]  # fmt: skip
    fields = frozenset({Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.RELATIONS})
    corpus = Corpus("subtypes", examples, fields)
    result = look(encoder_of_links(), corpus)
    rows = result.table("relations").set_index("relation")
    assert rows["links"].to_dict() == {
        "all": 72, "advmod": 36, "aux": 36, "aux:plain": 12, "aux:pass": 24,
    }  # fmt: skip
    assert rows["published_name"].to_dict() == {
        "all": "All", "advmod": "advmod", "aux": "", "aux:plain": "aux", "aux:pass": "auxpass",
    }  # fmt: skip
    asked = look(encoder_of_links(), corpus, relations=("aux", "aux:plain", "aux:pass"))
    assert asked.table("relations")["links"].tolist() == [36, 12, 24]


def test_prepositions_hang_from_what_their_noun_hangs_from() -> None:
    words = "dog sees ball on bone".split()
    known = {
        "words": words, "pos": ["NOUN", "VERB", "NOUN", "ADP", "NOUN"],
        "heads": [1, -1, 1, 4, 1], "relations": ["nsubj", "root", "obj", "case", "obl"],
    }  # fmt: skip
    examples = [Example(str(i), " ".join(words), annotations=known) for i in range(12)]
    fields = frozenset({Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.RELATIONS})
    made = Encoder(planted_links.model(), tokenizer_with("on"), name="even")
    result = look(made, Corpus("prepositions", examples, fields))
    offsets = result.table("relations").set_index("relation")["offset"]
    assert offsets["prep"] == -2  # from "on" to "sees"
    assert offsets["case"] == 1
    assert result.table("relations").set_index("relation").loc["all", "links"] == 48


def tokenizer_with(word: str) -> Any:
    import tiny

    return tiny.tokenizer([*planted_links.WORDS[:-1], word])


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
    result = look(encoder_of_links(), Corpus("far", examples, fields), relations=("obj",))
    near = result.table("offsets").query("direction == 'to-dependent'")
    assert near.set_index("offset")["share"].to_dict() == {15: 0.5, 16: 0.5}


def test_a_tagger_may_say_what_nouns_and_pronouns_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertology.annotated.tagger import Tags

    class Playful:  # calls verbs nouns and subjects pronouns: what the planted head links
        name = "playful"

        def tag(self, sentences: list[list[str]]) -> list[Tags]:
            nouns, pronouns = planted_links.VERBS, planted_links.SUBJECTS
            kinds = dict.fromkeys(nouns, "NOUN") | dict.fromkeys(pronouns, "PRON")
            return [Tags(tuple(kinds.get(w, "X") for w in s), ("",) * len(s)) for s in sentences]

    monkeypatch.setattr("bertology.annotated.tagger.find_tagger", lambda name: Playful())
    annotated, encoder = planted_links.corpus(), encoder_of_links()
    examples = [replace(e, annotations={}) for e in annotated]
    plain = replace(annotated, examples=examples, fields=frozenset({Field.TEXT}))
    study = SyntaxHeads(relations=("noun-pronoun",))
    study.check(encoder, plain)
    with pytest.raises(CapabilityError, match="annotation of words"):
        replace(study, tagger="gold").check(encoder, plain)
    with pytest.raises(CapabilityError, match="verb-subject"):
        replace(study, relations=("verb-subject",)).check(encoder, plain)
    with pytest.raises(CapabilityError, match="cls-attention") as refused:
        replace(study, relations=()).check(encoder, plain)
    assert "no links between words" in str(refused.value)
    result = look(encoder, plain, relations=("noun-pronoun",))
    assert sure_links(result) == {("noun-pronoun", "forward", *planted_links.LINK)}
    assert result.headline().endswith("playful; which belong together is guessed.")


def test_no_head_is_better_only_if_no_bound_is() -> None:
    """The head that did best here is not surely the best: a less certain one may be."""
    columns = {"": [0.02, 0.01], "_low": [0.01, -0.2], "_high": [0.03, 0.3]}
    rows = pd.DataFrame(
        {f"{k}{b}": v for b, v in columns.items() for k in ("excess", "selectivity")}
    )
    rows = rows.assign(relation="verb-subject", direction="forward", share=0.5, share_low=0.49)
    rows = rows.assign(n=40, alone_high=[0.025, 0.2])  # each must be below: no correction for two
    found = followed_evidence(rows, 0.95)["verb_subject_candidate_excess"]
    assert found is not None
    assert (found.value, found.low, found.high) == (0.02, 0.01, 0.2)


def test_pruned_heads_give_nothing_and_not_zero() -> None:
    encoder, gone = planted.encoder(planted.model()), (0, 0)
    pruned = planted.encoder(prune_heads(encoder.model, [gone]), name="pruned")
    result = look(pruned, planted.corpus(60))
    table = result.table("links").set_index(["layer", "head"])
    assert table.loc[[gone], "share"].isna().all()
    assert table.drop(index=gone)["share"].notna().all()
    followed = {(r, d, *at) for (r, d), at in planted.PLANTED.items()}
    assert sure_links(result) == followed


def test_too_few_links_are_refused() -> None:
    with pytest.raises(DataError, match="Fewer than two sentences"):
        look(encoder_of_links(), planted_links.corpus(8), relations=("iobj",))


def test_the_name_of_before_leads_to_the_new_one() -> None:
    with pytest.raises(UnknownNameError, match=r"(?s)token-to-token.*syntax-heads.*cls-attention"):
        STUDIES.get("token-to-token")


def test_examples_without_links_do_not_move_others() -> None:
    """With fewer words in links than texts before them, counts went to other texts."""
    linked, bare = planted_links.corpus(6), planted_links.corpus(200)
    without = [
        replace(e, annotations={**e.annotations, "heads": [-1] * len(e.get("words"))}) for e in bare
    ]
    far = replace(linked, examples=[*without, *linked.examples])
    one, two = (
        look(encoder_of_links(), c, relations=("verb-subject", "det")).table("links")
        for c in (linked, far)
    )
    assert np.allclose(one["share"], two["share"], equal_nan=True)
    assert one["n"].tolist() == two["n"].tolist()


def test_counts_do_not_depend_on_how_examples_are_cut() -> None:
    encoder, corpus = planted.encoder(planted.random_model()), planted.corpus(40)
    study = SyntaxHeads(resamples=100)
    whole = planted_links.ask(study, encoder, corpus).table("links")

    class Small(SyntaxHeads):
        block = 7

    some = planted_links.ask(Small(resamples=100), encoder, corpus).table("links")
    assert np.allclose(whole["share"], some["share"])
    assert np.allclose(whole["selectivity"], some["selectivity"], atol=1e-6)
