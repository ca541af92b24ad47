"""Multilingual agreement: a model that knows the rule in one language only, and ones without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import transformers as hf

import planted_agreement as planted
import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.languages import name_of
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.grouped import mean_in_two_ways
from bertology.studies.languages.multilingual_agreement import MultilingualAgreement
from bertology.studies.languages.multilingual_agreement.templates import sentence_of
from bertology.studies.study import Context
from result_conformance import ResultConformance, claims_of

EVERY = "primer-multilingual.verbs-agree-in-every-language"
ENGLISH = "primer-multilingual.english-agrees-best"
COST = "primer-multilingual.attractors-cost"
_MARK = "x"  # words of the second language, which the planted model was told nothing of


def corpus(size: int = 160, *, seed: int = 0) -> Corpus:
    """The planted sentences in "en", and the same in "de" with words of their own."""
    made = planted.corpus(size, seed=seed, most=2)
    some = [e for e in made if e.get("attractors") < 2]
    examples = []
    for code, mark in (("en", ""), ("de", _MARK)):
        for one in some:
            about = dict(one.annotations)
            about["words"] = [mark + word for word in about["words"]]
            about["contrast"] = " ".join(mark + word for word in about["contrast"].split())
            examples.append(
                Example(
                    f"{code}/{one.id}",
                    " ".join(about["words"]),
                    annotations=about | {"language": code, "group": f"{about['attractors']} nouns"},
                )
            )
    return Corpus("two languages", examples, made.fields | {Field.LANGUAGE, Field.GROUP})


def encoder(rule: str = "first", *, both: bool = False) -> Encoder:
    """Words of "de" have states of their own; with `both`, those of their counterparts."""
    made = planted.model(rule)
    words = [*planted.WORDS, *(_MARK + word for word in planted.WORDS)]
    old = made.get_input_embeddings().weight.detach().clone()
    made.resize_token_embeddings(5 + len(words), mean_resizing=False)
    torch.manual_seed(0)
    with torch.no_grad():
        new = made.get_input_embeddings().weight
        n = len(planted.WORDS)
        new[5 + n :] = old[5:] if both else 0.3 * torch.randn(n, planted.WIDTH)
    made.tie_weights()
    return Encoder(made.eval(), tiny.tokenizer(words, max_length=24), name="planted", head="mlm")


def random_encoder(seed: int) -> Encoder:
    words = [*planted.WORDS, *(_MARK + word for word in planted.WORDS)]
    config = hf.BertConfig(
        vocab_size=5 + len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=8, max_position_embeddings=24,
        initializer_range=(0.1, 0.3, 0.6)[seed % 3],
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(config).eval()
    return Encoder(made, tiny.tokenizer(words, max_length=24), name="random", head="mlm")


def ask(reader: Encoder, texts: Corpus, **how: Any) -> Result:
    study = MultilingualAgreement(**{"resamples": 100, **how})
    found: Result = planted_links.ask(study, reader, texts)
    return found


class TestResult(ResultConformance):
    measures: ClassVar[set[str]] = {"agreement-de", "agreement-en"}

    @staticmethod
    def make() -> Result:
        return ask(encoder(both=True), corpus())


def test_agreement_is_told_in_the_language_that_is_planted_alone() -> None:
    result = ask(encoder(), corpus(), lens="none")
    rows = result.tables["languages"].set_index("language")
    assert rows.loc["en", "accuracy"] == pytest.approx(1)
    assert rows.loc["en", "accuracy_low"] > 0.6
    assert rows.loc["de", "accuracy_low"] < 0.5
    assert claims_of(result)[EVERY] != "holds"
    assert "1 of 2 languages" in result.answer
    assert claims_of(result)[ENGLISH] == "holds"


def test_agreement_is_told_in_both_where_both_are_planted() -> None:
    result = ask(encoder(both=True), corpus())
    assert claims_of(result)[EVERY] == "holds"
    layers = result.tables["layers"]
    assert (layers.loc[1, ["de", "en"]] > 0.99).all()
    assert (layers.loc[0, ["de", "en"]] < 0.75).all(), "only the last layer agrees"


def test_agreement_with_the_nearest_noun_suffers_from_attractors() -> None:
    found = ask(encoder("nearest", both=True), corpus(), lens="none")
    rows = found.tables["attractors"].set_index(["language", "condition"])["accuracy"]
    assert rows["en", "no other noun"] == pytest.approx(1)
    assert rows["en", "a noun of the other number"] == pytest.approx(0)
    assert claims_of(found)[EVERY] != "holds"


def test_what_attractors_cost_is_set_against_nouns_of_the_same_number() -> None:
    """One third of the pairs with attractors is told wrong, none of the others."""
    study, texts = MultilingualAgreement(lens="none"), corpus(240)
    reader = encoder(both=True)
    (part,) = study.parts(reader.shape, texts)
    found = study.measure(reader, texts, part, Context())
    number = np.arange(len(found["better"]))
    found["others"].values[:] = 1
    found["better"].values[(found["attractors"].values > 0) & (number % 3 == 0)] = -1.0
    made = {"name": "m", "fingerprint": "f"}
    result = study.conclude({part: found}, Provenance("multilingual-agreement", 1, {}, made, made))
    assert result.evidence()["attractor_cost"].value == pytest.approx(1 / 3, abs=0.1)
    assert claims_of(result)[COST] == "holds"


@pytest.mark.parametrize("seed", range(3))
def test_models_that_know_nothing_bear_out_no_claim(seed: int) -> None:
    assert "holds" not in claims_of(ask(random_encoder(seed), corpus(), lens="none")).values()


def test_what_cannot_be_compared_is_told_by_language() -> None:
    texts = corpus(60)
    examples = list(texts)
    several = next(at for at, e in enumerate(examples) if e.get("language") == "de")
    about = examples[several].annotations
    examples[several] = replace(
        examples[several], annotations={**about, "contrast": "xhere " + about["contrast"][6:]}
    )
    unknown = several + 1
    about = examples[unknown].annotations
    bad = about["contrast"].split()
    bad[about["verb"]] = "strange"
    examples[unknown] = replace(examples[unknown], annotations={**about, "contrast": " ".join(bad)})
    result = ask(encoder(both=True), replace(texts, examples=examples), lens="none")
    rows = result.tables["pairs"].set_index("language")
    assert rows.loc["de", "left out: words"] == rows.loc["de", "left out: unknown"] == 1
    assert rows.loc["de", "compared"] == rows.loc["de", "drawn"] - 2
    assert rows.loc["en", "compared"] == rows.loc["en", "drawn"]


def test_so_many_of_each_kind_are_drawn() -> None:
    shown = MultilingualAgreement(examples=50).shown(corpus(240))
    counts: dict[tuple[str, str], int] = {}
    for one in shown:
        key = one.get("language"), one.get("group")
        counts[key] = counts.get(key, 0) + 1
    assert set(counts.values()) == {25}
    assert len(counts) == 4


def test_without_enough_pairs_it_says_so() -> None:
    with pytest.raises(DataError, match="No language has 20 pairs"):
        ask(encoder(both=True), corpus(9), lens="none")


@pytest.mark.parametrize(
    ("code", "group", "text", "place", "noun", "attractors"),
    [
        ("de", "prep_anim", "der Vater vor den Wächter ist alt", 5, "vate", 1),
        ("de", "prep_anim", "die Väter in der Nähe vom Koch sind alt", 7, "vate", 1),
        ("de", "subj_rel", "der Pilot , der den Koch mag , lacht", 8, "pilo", 0),
        ("de", "subj_rel", "der Pilot , der die Köche mag , lacht", 8, "pilo", 1),
        ("de", "obj_rel_within_anim", "die Piloten , die der Koch mag , lachen", 6, "koch", 1),
        ("fr", "prep_anim", "l' auteur près des gardes parle", 5, "aute", 1),
        ("fr", "prep_anim", "les auteurs à côté du garde sont vieux", 6, "aute", 1),
        ("fr", "long_vp_coord", "l' auteur aime regarder des émissions et est vieux", 7, "aute", 0),
        ("en", "prep_anim", "the author to the side of the taxi drivers is old", 9, "auth", 1),
        ("en", "obj_rel_within_anim", "the authors that the guards like laugh", 5, "guar", 0),
    ],
)
def test_templates_are_told(
    code: str, group: str, text: str, place: int, noun: str, attractors: int
) -> None:
    about = {"words": text.split(), "language": code, "group": group}
    found = sentence_of(Example("0", text, annotations=about), place)
    assert (found.noun, found.attractors) == (noun, attractors)
    assert text.split()[place] not in found.frame.split()


def test_bounds_know_what_goes_together_in_two_ways() -> None:
    """Of nouns and frames that each shift what is right, the truth is missed as rarely as told."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(150):
        noun, frame = rng.integers(15, size=200), rng.integers(60, size=200)
        tilt = rng.normal(size=15)[noun] + rng.normal(size=60)[frame] + rng.normal(size=200)
        weights = np.where(rng.random(200) < 0.5, 1.0, 0.5)
        found = mean_in_two_ways((tilt > 0).astype(float), weights, [noun, frame])
        missed += not found.low <= 0.5 <= found.high
    assert missed <= 14
    assert np.isnan(mean_in_two_ways(np.ones(5), np.ones(5), [np.zeros(5, int)] * 2).low)


def test_languages_have_names() -> None:
    assert (name_of("de"), name_of("xx")) == ("German", "xx")
