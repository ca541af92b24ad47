"""Numeracy: numbers that are known to be in the states, or are not; and an independent fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import bertology as bt
import made_numbers as made
import planted_links
from bertology.annotated.numbers import NEAR, ROLES, TRAIN, Numbers, written
from bertology.data.corpus import Corpus
from bertology.errors import DataError, ParameterError
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.probing.numeracy import Numeracy
from bertology.studies.probing.numeracy.scores import apart, mean_of
from bertology.train.probes.ridge import PENALTIES, fit_ridge
from result_conformance import ResultConformance, claims_of

DECODED, FARTHER, DECIMALS, DIGITS = (
    f"primer-semantics.{name}"
    for name in (
        "numbers-are-decoded",
        "larger-numbers-are-not-decoded",
        "decimals-are-decoded-worse",
        "digits-apart-are-decoded-better",
    )
)


def shares(result: Result, column: str, writing: str = "pieces") -> dict[str, float]:
    rows = result.table("groups")
    own = rows[rows["writing"] == writing]
    return dict(zip(own["group"], own[column], strict=True))


class TestResult(ResultConformance):
    measures: ClassVar[frozenset[str]] = frozenset({"pieces-integers-to-999-near"})

    @staticmethod
    def make() -> Result:
        with pytest.MonkeyPatch.context() as patch:
            return made.ask(patch, made.table, made.corpus(), finetune=True, epochs=1, seeds=2)

    def test_only_the_layer_that_was_planted_tells_it(self, result: Result) -> None:
        rows = result.table("layers").query("group == 'integers to 999'")
        by_layer = rows.set_index("layer")["near"]
        assert by_layer.idxmax() == made.TOLD
        assert by_layer.drop(made.TOLD).max() < 0.4
        assert set(shares(result, "layer").values()) == {made.TOLD}

    def test_models_that_learnt_for_one_epoch_are_told_apart(self, result: Result) -> None:
        tuned = result.table("tuned")
        assert len(tuned) == len(result.table("groups"))
        assert (tuned["near"] < 0.6).all()
        assert "tuned_extrapolation_loss" not in result.evidence()


def test_a_table_tells_the_range_and_nothing_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    result = made.ask(monkeypatch, made.table, made.corpus())
    assert min(shares(result, "near").values()) > 0.9
    assert max(shares(result, "far").values()) < 0.3
    said = claims_of(result)
    assert said[DECODED] == said[FARTHER] == "holds"
    assert said[DECIMALS] in ("negligible", "inconclusive")
    assert "larger numbers lose" in result.answer


@pytest.mark.parametrize("kind", ["values", "sums", "lists"])
def test_a_linear_code_is_decoded_exactly_and_beyond_the_range(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    result = made.ask(monkeypatch, made.linear, made.corpus(kind), noise=1e-8)
    assert min(shares(result, "near").values()) > 0.95
    assert min(shares(result, "far").values()) > 0.95
    if kind != "lists":
        assert min(shares(result, "r2").values()) > 0.99
    said = claims_of(result)
    assert said[DECODED] == "holds"
    assert said[FARTHER] in ("negligible", "inconclusive")
    assert said[DECIMALS] in ("negligible", "inconclusive")
    assert said[DIGITS] == "not-applicable"


def test_what_only_integers_have_decimals_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    result = made.ask(monkeypatch, made.linear, made.corpus(), only="integers to 999")
    assert claims_of(result)[DECIMALS] == "holds"
    assert shares(result, "gain_low")["decimals to 99.9"] < 0


def test_decimals_that_a_baseline_decodes_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    result = made.ask(monkeypatch, made.linear, made.corpus(), shared="decimals to 99.9")
    said = claims_of(result)
    assert said[DECODED] == "holds"
    assert said[DECIMALS] == "not-applicable", "shuffled weights decode them as well"


def test_what_only_digits_have_pieces_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    result = made.ask(
        monkeypatch, made.linear, made.corpus(), only="digits", writings=("pieces", "digits")
    )
    said = claims_of(result)
    assert said[DIGITS] == "holds"
    assert said[FARTHER] == said[DECIMALS] == "not-applicable", "pieces are not decoded"


def test_noise_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    result = made.ask(monkeypatch, made.nothing, made.corpus())
    assert "holds" not in claims_of(result).values()
    assert result.answer.startswith("Nothing is sure")


def test_numbers_of_others_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_another(value: float, top: float) -> np.ndarray:
        return made.linear(np.random.default_rng([7, round(10 * value)]).uniform(0, top), top)

    result = made.ask(monkeypatch, of_another, made.corpus())
    assert "holds" not in claims_of(result).values()


# Independent -----------------------------------------------------------------------------------


def test_ridge_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 60, 8)) * rng.uniform(0.1, 5, 8) + 2
    y = x[1, :, 0] + 3 * x[1, :, 3] + rng.normal(size=60)
    rows, wanted = torch.from_numpy(x), torch.from_numpy(y)
    fit = fit_ridge(rows[:, :40], wanted[:40], rows[:, 40:], wanted[40:])
    for layer in range(3):
        scaler = StandardScaler().fit(x[layer, :40])
        errors = {}
        for penalty in PENALTIES:
            alone = Ridge(alpha=40 * penalty).fit(scaler.transform(x[layer, :40]), y[:40])
            said = alone.predict(scaler.transform(x[layer, 40:]))
            errors[penalty] = np.square(said - y[40:]).mean(), said
        best = min(errors, key=lambda penalty: errors[penalty][0])
        assert float(fit.penalty[layer]) == pytest.approx(best)
        assert fit(rows)[layer, 40:].numpy() == pytest.approx(errors[best][1])


def test_values_of_a_model_are_those_of_plain_transformers_and_scikit_learn() -> None:
    encoder, corpus = made.reader(), made.corpus()
    study = Numeracy(writings=("digits",), seeds=2, examples=60, train_examples=240)
    part = study.measure(encoder, corpus, "digits-model", planted_links.Context())
    numbers = study.numbers(corpus)
    group = "integers to 999"
    own = np.flatnonzero(numbers.group == group)
    states = []
    for example in [numbers.texts("digits")[int(at)] for at in own]:
        with torch.no_grad():
            given = encoder.tokenizer(example.text, return_tensors="pt")
            hidden = encoder.model(**given, output_hidden_states=True).hidden_states[2]
        states.append(hidden[0, 1:-1].mean(dim=0).numpy())
    x, y, role = np.stack(states), numbers.target[own], numbers.role[own]
    learnt = np.flatnonzero(role == TRAIN)
    drawn = np.sort(np.random.default_rng([0, 0]).permutation(learnt)[: round(0.8 * len(learnt))])
    scaler = StandardScaler().fit(x[drawn])
    best: tuple[float, Any] = (np.inf, None)
    for penalty in PENALTIES:
        alone = Ridge(alpha=len(drawn) * penalty).fit(scaler.transform(x[drawn]), y[drawn])
        error = float(
            np.square(alone.predict(scaler.transform(x[role == "dev"])) - y[role == "dev"]).mean()
        )
        best = min(best, (error, alone), key=lambda one: one[0])
    near = part[NEAR].to_numpy()[0, 2, part["near_group"].to_numpy() == group]
    # States are kept in half precision.
    assert near == pytest.approx(best[1].predict(scaler.transform(x[role == NEAR])), abs=25)
    assert np.corrcoef(near, best[1].predict(scaler.transform(x[role == NEAR])))[0, 1] > 0.99


# Numbers and their writings --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "digits", "scientific"),
    [
        ("123", "1 2 3", "1.23e2"), ("0", "0", "0e0"), ("-40", "- 4 0", "-4e1"),
        ("0.5", "0 . 5", "5e-1"), ("99.0", "9 9 . 0", "9.9e1"), ("10000", "1 0 0 0 0", "1e4"),
    ],
)  # fmt: skip
def test_a_number_is_written_in_three_ways(number: str, digits: str, scientific: str) -> None:
    assert written(number, "pieces") == number
    assert written(number, "digits") == digits
    assert written(number, "scientific") == scientific
    assert float(scientific) == float(number)


@pytest.mark.parametrize("kind", ["values", "lists", "sums"])
def test_no_number_is_both_learnt_and_asked(kind: str) -> None:
    study = Numeracy(examples=300, train_examples=1000)
    numbers = study.numbers(made.corpus(kind))
    for group in numbers.groups:
        own = numbers.group == group
        of = {role: set(numbers.words[own & (numbers.role == role)].ravel()) for role in ROLES}
        assert not of[TRAIN] & (of["dev"] | of["near"] | of["far"])
        assert not of["near"] & of["dev"]
    texts = numbers.texts("digits")
    for example, figures in zip(texts, numbers.in_figures, strict=True):
        words = [example.text[a:b] for a, b in example.get("offsets")]
        assert words == example.get("words")
        assert not figures or all(len(part) == 1 for word in words for part in word.split())


def test_intervals_of_differences_and_means() -> None:
    one, other = Estimate(0.8, 0.7, 0.85, 40), Estimate(0.5, 0.42, 0.6, 30)
    found = apart(one, other)
    assert (found.value, found.n) == (pytest.approx(0.3), 30)
    assert found.low == pytest.approx(0.3 - np.hypot(0.1, 0.1))
    assert found.high == pytest.approx(0.3 + np.hypot(0.05, 0.08))
    both = mean_of([one, other])
    assert both is not None
    assert (both.value, both.n) == (pytest.approx(0.65), 70)
    assert both.low == pytest.approx(0.65 - np.hypot(0.1, 0.08) / 2)
    assert mean_of([]) is None


# Bad input -------------------------------------------------------------------------------------


def refused(corpus: Corpus, match: str, **options: Any) -> None:
    with pytest.raises(DataError, match=match):
        Numeracy(**{"train_examples": 300, "examples": 120, **options}).check(made.reader(), corpus)


def test_bad_requests_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="pieces, digits, scientific"):
        Numeracy(writings=("roman",))
    refused(made.corpus(), "is learnt from and asked about", train_split="validation")
    refused(bt.load_corpus("grammar-number-values", limit=12), "No group of")
    texts = made.corpus()[:20]
    refused(replace(texts, origin=made.corpus().origin, task=None), "no task that asks for a value")
    odd = replace(texts[0], annotations={**texts[0].annotations, "words": ["1", "2"]})
    mixed = replace(texts, examples=[odd, *texts.examples], origin=made.corpus().origin)
    refused(mixed, "have 1 to 2 numbers")
    places = replace(made.corpus("lists")[:20], origin=made.corpus().origin)
    with pytest.raises(DataError, match="have 1 to 5 numbers"):
        Numbers.of(Numeracy(train_examples=100).splits(places))
    five = made.corpus("lists")
    task = replace(five.task or bt.load_corpus("grammar-npi").task, labels=("yes", "no"))
    refused(replace(five, task=task), "are not places in a list")
    wrong = replace(
        texts, examples=[replace(e, label=float("nan")) for e in texts], origin=made.corpus().origin
    )
    refused(wrong, "is not a number")


def test_a_model_that_reads_too_little_is_refused() -> None:
    encoder = made.reader()
    encoder.tokenizer.model_max_length = 4
    study = Numeracy(writings=("digits",), examples=60, train_examples=240)
    with pytest.raises(DataError, match="no piece that the model reads"):
        study.measure(encoder, made.corpus("sums"), "digits-model", planted_links.Context())
