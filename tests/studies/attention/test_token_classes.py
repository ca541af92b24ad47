"""Token classes: planted heads are found, exactly they; a random model bears out no claim."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import processors

import planted_links as planted
from bertology.annotated.tagger import Tags
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.attention.token_classes import TokenClasses, TokenClassesResult, largest_head
from bertology.studies.study import Context
from result_conformance import ResultConformance


def look(encoder: Encoder, corpus: Corpus, **how: Any) -> TokenClassesResult:
    found = planted.ask(TokenClasses(**{"resamples": 200, **how}), encoder, corpus)
    assert isinstance(found, TokenClassesResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"weight-sep", "excess-noun", "change-cls", "layer-share-words"})
    begins_with_named = False  # it is of one class of words; the table ranks weights of all classes

    @staticmethod
    def make() -> Result:
        nouns, other = (
            Encoder(planted.model(*heads), planted.tokenizer(), name="links")
            for heads in ((planted.NOUNS,), ())
        )
        study = TokenClasses(other="before", resamples=100)
        found: Result = planted.ask(study, nouns, planted.corpus(20), other=other)
        return found

    def test_the_planted_head_attends_to_nouns(self, result: Result) -> None:
        nouns = result.measure("weight-noun").values
        assert np.unravel_index(nouns.argmax(), nouns.shape) == planted.NOUNS


class ByList:
    """A tagger that knows the planted words."""

    name = "the list of planted words"

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        return [self._tags(words) for words in sentences]

    def _tags(self, words: Sequence[str]) -> Tags:
        kinds = {**dict.fromkeys(planted.SUBJECTS + planted.OBJECTS, "NOUN"),
                 **dict.fromkeys(planted.VERBS, "VERB"), ".": "PUNCT"}  # fmt: skip
        roles = {**dict.fromkeys(planted.SUBJECTS, "subject"),
                 **dict.fromkeys(planted.OBJECTS, "object")}  # fmt: skip
        return Tags(tuple(kinds.get(w, "X") for w in words), tuple(roles.get(w, "") for w in words))


@pytest.fixture
def encoder() -> Encoder:
    model = planted.model(planted.NOUNS, planted.SEPARATOR)
    return Encoder(model, planted.tokenizer(), name="planted")


def test_exactly_the_planted_heads_stand_out(encoder: Encoder) -> None:
    result = look(encoder, planted.corpus())
    table = result.table().set_index(["class", "layer", "head"])
    assert table.loc[("sep", *planted.SEPARATOR), "weight"] > 0.95
    assert (table.loc["sep"]["weight"] > 0.5).sum() == 1
    nouns = table.loc["noun"]
    assert nouns.loc[planted.NOUNS, "weight"] == pytest.approx(0.5, abs=0.02)
    sure = nouns[(nouns["excess_p"] < 0.05) & (nouns["excess"] > 1e-3)]
    assert list(sure.index) == [planted.NOUNS]
    assert nouns.loc[planted.NOUNS, "excess_low"] > 0
    others = table[table["excess"].notna()].drop(index=planted.NOUNS[0], level="layer")
    assert np.allclose(others["excess"], 0, atol=1e-4)  # even attention prefers nothing


def test_examples_without_a_class_are_disregarded(encoder: Encoder) -> None:
    result = look(encoder, planted.corpus(30))
    assert "negation" not in set(result.table()["class"])
    assert "pronoun_excess" not in result.evidence()
    assert result.evidence()["noun_excess"].n == 30


def test_a_corpus_may_have_no_class_at_all(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertology.annotated.tagger.find_tagger", lambda name: ByList())
    examples = [Example(str(i), "the the") for i in range(4)]
    corpus = Corpus("bare", examples, frozenset({Field.TEXT}))
    table = look(encoder, corpus).table()
    assert not {"noun", "verb", "punctuation"} & set(table["class"])
    assert table["excess"].isna().all()


def test_pairs_are_tagged_where_there_is_no_annotation(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertology.annotated.tagger.find_tagger", lambda name: ByList())
    result = look(encoder, planted.corpus(40, pairs=True))
    table = result.table().set_index(["class", "layer", "head"])
    assert result.arrays.attrs["tagger"] == ByList.name
    # Four nouns and two [SEP] share what one would get.
    assert table.loc[("noun", *planted.NOUNS), "weight"] == pytest.approx(0.25, abs=0.02)
    assert table.loc[("sep", *planted.SEPARATOR), "weight"] == pytest.approx(0.5, abs=0.02)
    with pytest.raises(CapabilityError, match="no annotation of words"):
        look(encoder, planted.corpus(5, pairs=True), tagger="gold")


def test_parts_and_batches_change_no_number(encoder: Encoder) -> None:
    corpus = planted.corpus(140)
    whole = look(encoder, corpus).table().set_index(["class", "layer", "head"])
    chosen = whole.loc[("noun", *planted.NOUNS)]
    assert chosen["n"] == 140
    first = look(encoder, corpus[:128]).table()
    rest = look(encoder, corpus[128:]).table()
    of = [
        t.set_index(["class", "layer", "head"]).loc[("noun", *planted.NOUNS)] for t in (first, rest)
    ]
    mean = (128 * of[0]["weight"] + 12 * of[1]["weight"]) / 140
    assert chosen["weight"] == pytest.approx(mean, abs=1e-6)


def test_the_change_from_another_model(encoder: Encoder) -> None:
    start = planted.model(planted.SEPARATOR)
    before = Encoder(start, planted.tokenizer(), name="before")
    with torch.no_grad():  # half of it does nearly the same, and noise of that size much less
        for weights, old in zip(encoder.model.parameters(), start.parameters(), strict=True):
            weights.add_(old).div_(2)
    result = planted.ask(TokenClasses(other="before"), encoder, planted.corpus(40), other=before)
    found = result.evidence()["noun_change"]
    ((_, beyond),) = found.controls
    assert found.low > 0.05
    assert beyond.low > 0.05  # what noise on the same weights does not do
    assert (beyond.n, beyond.unit) == (20, "noisy copies")
    table = result.table()
    moved = table[(table["change_p"] < 0.05) & (table["change"].abs() > 1e-4)]
    assert set(zip(moved["layer"], moved["head"], strict=True)) == {planted.NOUNS}
    assert "change" in result.figures()


def test_the_strongest_columns_of_vertical_maps_are_told(encoder: Encoder) -> None:
    """A head on [SEP] and one on nouns: one of two heads is not predominantly special."""
    result = look(encoder, planted.corpus())
    found = result.evidence()["stripes_on_special"]
    assert (found.value, found.n, found.unit) == (0.5, 2, "heads")
    stripes = result.table("stripes").set_index("part")["maps"]
    assert stripes["sep"] == 80
    assert stripes["words"] > 70
    assert stripes["cls"] == stripes["punctuation"] == 0
    even = look(Encoder(planted.model(), planted.tokenizer()), planted.corpus(20))
    assert "stripes_on_special" not in even.evidence()
    assert "no head" in even.reasons()["stripes_on_special"]


def test_noise_in_place_of_training_raises_no_class() -> None:
    """Weight noise bore out that some head attends to nouns and objects more than before."""
    before = planted.model(planted.NOUNS, planted.SEPARATOR)
    start, held, alone = Encoder(before, planted.tokenizer(), name="before"), 0, 0
    for seed in range(3):
        moved, generator = copy.deepcopy(before), torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weights in moved.parameters():
                noise = torch.randn(weights.shape, generator=generator)
                weights.add_(noise * weights.square().mean().sqrt() * 0.1)
        study = TokenClasses(other="before", resamples=100)
        result = planted.ask(
            study, Encoder(moved, planted.tokenizer()), planted.corpus(60), other=start
        )
        rows = result.table()
        alone += bool((rows[rows["class"] == "noun"]["change_low"] > 0.001).any())
        claims = [v for v in result.verdicts() if "fine-tuning-raises" in v.claim.id]
        held += any(v.outcome.is_there for v in claims)
    assert alone >= 2  # without the control it would have been borne out
    assert held <= 1


def test_copies_that_read_no_text_with_a_class_do_not_count(encoder: Encoder) -> None:
    """Each of 20 copies reads two of eight texts."""
    before = Encoder(planted.model(planted.SEPARATOR), planted.tokenizer(), name="before")
    study, corpus = TokenClasses(other="before", resamples=100), planted.corpus(8)
    context = Context(others={"other": before})
    parts = {
        p: study.measure(encoder, corpus, p, context) for p in study.parts(encoder.shape, corpus)
    }
    [part] = parts.values()
    texts = part["read"].sel({"class": "noun"}).to_numpy()
    assert texts.max() == 2
    part["read"][:5] = 0
    found = study.conclude(
        parts, Provenance("token-classes", 1, {}, {"name": "m", "fingerprint": "f"})
    )
    assert 2 <= found.evidence()["noun_change"].n <= 15


def test_without_noise_changes_are_shown_and_not_judged(encoder: Encoder) -> None:
    before = Encoder(planted.model(planted.SEPARATOR), planted.tokenizer(), name="before")
    study = TokenClasses(other="before", noise=0, resamples=100)
    result = planted.ask(study, encoder, planted.corpus(20), other=before)
    assert "change" in result.table()
    assert "noun_change" not in result.evidence()
    assert "noise 0" in result.reasons()["noun_change"]


@pytest.mark.parametrize(("spread", "seed"), [(0.02, 0), (0.1, 1), (0.4, 2), (0.4, 3)])
def test_a_random_model_bears_out_no_claim(spread: float, seed: int) -> None:
    model = planted.random_model(spread=spread, seed=seed)
    result = look(Encoder(model, planted.tokenizer()), planted.corpus())
    assert not [v for v in result.verdicts() if v.outcome.is_there]
    found = result.evidence()
    assert found["special_to_linguistic"].low < 2
    assert found["strongest_linguistic_to_special"].high > 0.25
    assert not found["cls_early_minus_late"].low > 0.01
    assert not found["sep_late_minus_early"].low > 0.01


def test_nobody_is_no_tagger(encoder: Encoder) -> None:
    with pytest.raises(ParameterError, match="tagger"):
        look(encoder, planted.corpus(5), tagger="nobody")


def test_a_tokenizer_without_special_tokens_leaves_them_out() -> None:
    """As GPT-2's; and one example has no linguistic class at all."""
    tokenizer = planted.tokenizer()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A")
    bare = Example(
        "bare", "often now.",
        annotations={"words": ["often", "now", "."], "pos": ["ADV", "ADV", "PUNCT"],
                     "relations": ["advmod", "root", "punct"], "heads": [1, -1, 1]},
    )  # fmt: skip
    corpus = planted.corpus(20)
    mixed = Corpus("mixed", [bare, *corpus], corpus.fields)
    result = look(Encoder(planted.model(planted.NOUNS), tokenizer), mixed)
    assert not {"cls", "sep"} & set(result.table()["class"])
    assert result.evidence()["noun_excess"].n == 20
    assert not {"special_to_linguistic", "cls_early_minus_late"} & set(result.evidence())
    assert "special" not in result.figures()


def test_the_largest_change_is_covered_by_the_bounds_of_all_heads() -> None:
    rows = {"change": [0.02, 0.01], "change_low": [0.01, -0.2], "change_high": [0.03, 0.3]}
    found = largest_head(pd.DataFrame({**rows, "n": 9}), "change", 0.95)
    assert found is not None
    assert (found.value, found.low, found.high) == (0.02, 0.01, 0.3)


def test_a_layer_without_heads_has_no_trend(encoder: Encoder) -> None:
    heads = [(1, head) for head in range(encoder.shape.heads)]
    pruned = Encoder(prune_heads(encoder.model, heads), encoder.tokenizer, name="pruned")
    assert "sep_late_minus_early" in look(encoder, planted.corpus(40)).evidence()
    assert "sep_late_minus_early" not in look(pruned, planted.corpus(40)).evidence()
