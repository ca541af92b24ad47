"""Affordances: states and blanks that tell a known part, models that know nothing, references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import transformers as hf
from sklearn.linear_model import Ridge as Reference

import made_objects as made
import planted_links
import tiny
from bertology.annotated import entity_states
from bertology.data import load_corpus
from bertology.data.corpus import Corpus, Example
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.questions import Question
from bertology.results.result import Result
from bertology.studies.cloze.affordances import Affordances
from bertology.studies.study import Context
from bertology.train.probes.ridge import cross_fitted, standardised
from result_conformance import ResultConformance, claims_of

pytestmark = pytest.mark.usefixtures("few_steps")
EACH = "primer-world.properties-and-affordances-are-guessed"
LESS = "primer-world.affordances-and-properties-are-related-less"
NOTHING = dict.fromkeys(made.RELATIONS, 0.0)


def tiny_encoder(corpus: Corpus, seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    tokens = tiny.tokenizer(made.words(corpus))
    config = hf.BertConfig(
        vocab_size=len(tokens), hidden_size=12, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, initializer_range=0.3,
    )  # fmt: skip
    return Encoder(hf.BertForMaskedLM(config).eval(), tokens, head="mlm", name="tiny")


def ask(encoder: Encoder, corpus: Corpus, **options: Any) -> Result:
    return planted_links.ask(Affordances(resamples=200, **options), encoder, corpus)


class TestResult(ResultConformance):
    measures: ClassVar[set[str]] = {
        f"{way}-{relation}" for way in ("probe", "cloze") for relation in made.RELATIONS
    }

    @staticmethod
    def make() -> Result:
        corpus = made.corpus(entities=16, groups=10)
        return ask(tiny_encoder(corpus), corpus)


def shares(result: Result, way: str) -> dict[str, float]:
    rows = result.tables["relations"].query("way == @way")
    return dict(zip(rows["relation"], rows["share"], strict=True))


# Planted ---------------------------------------------------------------------------------------


def with_states(
    told: Mapping[str, float], corpus: Corpus, monkeypatch: pytest.MonkeyPatch, seed: int = 0
) -> Result:
    """What is said of a model whose states tell this, and whose shuffled weights tell nothing."""

    def planted(encoder: Encoder, examples: Sequence[Example], **_: Any) -> Any:
        shuffled = encoder.name.endswith("shuffled")
        return made.states(examples, NOTHING if shuffled else told, seed=2 * seed + shuffled)

    monkeypatch.setattr(entity_states, "entity_states", planted)
    return ask(tiny_encoder(corpus), corpus, lens="none", seed=seed)


def test_what_is_told_of_objects_but_not_of_their_relation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"object-property": 1.0, "object-affordance": 1.0, "affordance-property": 0.0}
    result = with_states(told, made.corpus(entities=40, groups=24), monkeypatch)
    probe = shares(result, "probe")
    assert probe["object-property"] > 0.85
    assert probe["object-affordance"] > 0.85
    assert 0.25 < probe["affordance-property"] < 0.75
    for way in ("probe of the input", "probe of shuffled weights 1"):
        assert all(0.25 < share < 0.75 for share in shares(result, way).values())
    layers = result.tables["layers"].query("relation == 'object-property'")["probe"]
    assert layers.iloc[0] < 0.75 < layers.iloc[1], "only the second layer tells it"
    assert claims_of(result) == {EACH: "holds", LESS: "holds"}
    assert result.evidence()["relation_gain"].low < 0


def test_what_is_told_of_all_relations_is_no_shortfall(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = made.corpus(entities=40, groups=24)
    result = with_states(dict.fromkeys(made.RELATIONS, 1.0), corpus, monkeypatch)
    said = claims_of(result)
    assert said[EACH] == "holds"
    assert said[LESS] != "holds"
    assert result.evidence()["relation_gain"].low > 0


def test_what_attributes_have_alone_is_worth_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """F1 is far above that of one answer, but no interaction is told."""
    result = with_states(NOTHING, made.corpus(), monkeypatch)
    scores = result.tables["scores"].set_index("relation")
    assert (scores["accuracy_attribute"] > scores["accuracy_always"] + 0.05).any()
    assert claims_of(result) == {
        EACH: claims_of(result)[EACH],
        LESS: "not-applicable",
    }
    assert claims_of(result)[EACH] != "holds"
    assert "not surely known" in result.reasons()["relation_shortfall"]


@dataclass
class Knower:
    """Gives things in their places the score of a table, plus what things and attributes have."""

    table: Mapping[str, float]

    def answers(self, questions: Iterable[Question]) -> Iterator[Any]:
        for question in questions:
            text = question.text.replace("{mask}", question.candidates[0])
            yield type("Answer", (), {"scores": np.array([[self.table[text]]])})


def test_blanks_are_right_where_the_table_is_whatever_is_likely_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus, rng = made.corpus(), np.random.default_rng(0)
    alone: dict[str, float] = {}
    known, additive = {}, {}
    for example in corpus:
        names = str(example.get("entity")), str(example.get("group"))
        extra = sum(alone.setdefault(name, 100 * rng.normal()) for name in names)
        known[example.text], additive[example.text] = extra + float(example.label or 0), extra
    for table, wanted in ((known, 1.0), (additive, 0.5)):
        knower = Knower(table)
        monkeypatch.setattr(Affordances, "engine", lambda *_, knower=knower, **__: knower)
        result = ask(tiny_encoder(corpus), corpus, lens="none")
        assert shares(result, "blank") == dict.fromkeys(made.RELATIONS, wanted)


# Nothing known ---------------------------------------------------------------------------------


def test_random_models_know_nothing() -> None:
    corpus = made.corpus(entities=16, groups=8)
    said = [claims_of(ask(tiny_encoder(corpus, s), corpus, lens="none")) for s in range(3)]
    assert sum(one[EACH] == "holds" for one in said) <= 1
    assert sum(one[LESS] == "holds" for one in said) == 0


# References ------------------------------------------------------------------------------------


def test_probes_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x = standardised(torch.from_numpy(rng.normal(size=(80, 6))))
    y = torch.from_numpy(rng.normal(size=(80, 1)) + x[:, :1].numpy()).expand(80, 4)
    parts = [torch.arange(80)[torch.arange(80) % 4 == f] for f in range(4)]
    found = cross_fitted(x, y, parts, penalties=(0.1,))
    for test in parts:
        rest = np.setdiff1d(np.arange(80), test.numpy())
        mean = float(y[rest, 0].mean())
        reference = Reference(alpha=0.1 * len(rest), fit_intercept=False)
        reference.fit(x[rest].numpy(), y[rest, 0].numpy() - mean)
        wanted = reference.predict(x[test].numpy()) + mean
        assert found.scores[test.numpy()] == pytest.approx(wanted, abs=1e-9)


def test_states_and_blanks_are_those_of_a_plain_loop() -> None:
    corpus = made.corpus(entities=8, groups=3)
    encoder = tiny_encoder(corpus)
    examples = list(corpus)
    states = entity_states.entity_states(encoder, examples)
    study = Affordances(lens="none")
    part = next(p for p in study.parts(encoder.shape, corpus) if p.startswith("cloze-"))
    blanks = study.measure(encoder, corpus, part, Context())["cloze"].to_numpy()[:, 0]
    for at, example in enumerate(examples):
        ids = encoder.tokenizer(example.text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            layers = encoder.model.bert(ids, output_hidden_states=True).hidden_states
        for layer, found in enumerate(layers):  # [CLS] the THING is ATTRIBUTE . [SEP]
            mine, rest = found[0, 2], found[0, [1, 3, 4, 5]].mean(0)
            assert states[layer, at, 0] == pytest.approx(mine.numpy(), abs=5e-3)
            assert states[layer, at, 1] == pytest.approx(rest.numpy(), abs=5e-3)
        thing = ids[0, 2].item()
        ids[0, 2] = encoder.tokenizer.mask_token_id
        with torch.no_grad():
            said = encoder.model(ids).logits[0, 2].log_softmax(-1)
        assert blanks[at] == pytest.approx(float(said[thing]), abs=1e-4)


def test_things_are_drawn_whole_and_relations_evenly() -> None:
    drawn = Affordances(examples=120).shown(made.corpus())
    counts: dict[str, int] = {}
    for example in drawn:
        counts[example.get("relation")] = counts.get(example.get("relation"), 0) + 1
    assert counts == dict.fromkeys(made.RELATIONS, 36), "three things with twelve sentences each"


# What cannot be asked --------------------------------------------------------------------------


def test_bad_input_is_refused_in_words() -> None:
    corpus = made.corpus()
    encoder, first = tiny_encoder(corpus), corpus.examples[0]

    def refused(examples: Sequence[Example], match: str) -> None:
        with pytest.raises(DataError, match=match):
            ask(encoder, replace(corpus, examples=list(examples)))

    refused([replace(first, label=2), *corpus.examples[1:]], r"sentences are so \(1\) or not \(0\)")
    elsewhere = replace(first, text="nothing is said of it .")
    refused([elsewhere, *corpus.examples[1:]], "is not a word of its text")
    refused(corpus.examples[:36], "has sentences of 3 things; 8 or more are needed")


def test_one_relation_alone_is_measured_but_not_compared() -> None:
    corpus = made.corpus(entities=12, groups=6)
    some = [e for e in corpus if e.get("relation") == "object-property"]
    result = ask(tiny_encoder(corpus), replace(corpus, examples=some), lens="none")
    assert "property_gain" in result.evidence()
    assert set(claims_of(result).values()) == {"not-applicable"}


def test_the_bundled_table_is_whole() -> None:
    corpus = load_corpus("grammar-objects")
    assert {e.get("relation") for e in corpus} == set(made.RELATIONS)
    assert len({e.text for e in corpus}) == len(corpus)
    said = {e.text: e.label for e in corpus}
    assert said["An apple is edible."] == said["He ate the apple."] == 1
    assert said["An apple is heavy."] == said["He drove the apple."] == 0
    assert said["If you can eat something, then it is edible."] == 1
    assert said["If you can eat something, then it is made of metal."] == 0
