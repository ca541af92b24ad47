"""Heuristics: what uses overlap is found out, what does not is not accused, and noise is noise."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from sklearn.linear_model import LogisticRegression

import bertology as bt
import tiny
from bertology.data.corpus import Corpus
from bertology.data.grammar.corpora import SWITCHES
from bertology.data.loading import load_corpus
from bertology.data.tasks import THREE_WAY, TWO_WAY
from bertology.errors import BertologyError, CapabilityError, DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.siamese import PairTokens, split_pairs
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.study import Context
from bertology.studies.training import heuristics
from bertology.studies.training.finetuning_variants.runs import train_variant
from bertology.studies.training.heuristics import (
    NOT_LEARNT,
    NOT_RUN,
    NOT_TAUGHT,
    Heuristics,
    HeuristicsResult,
    _answered,
)
from bertology.studies.training.heuristics.data import (
    HeuristicData,
    Source,
    _overlap,
    collapsed,
    overlap_answers,
    read_data,
    switches_of,
)
from bertology.train.finetune import FinetuneSettings
from bertology.train.starts import STARTS
from bertology.train.tuning import TuningJob, answers_of, make_tuned, tune
from bertology.train.ways import read_ways
from bertology.train.ways.hex import Superficial, projected_out
from made_heuristics import GROUPS, WAYS, made_up
from result_conformance import ResultConformance, claims_of

USED = "nuggets-generalisation.bert-learns-shallow-heuristics"
OVERLAP = "nuggets-generalisation.lexical-overlap-misleads"
HELPS = "nuggets-generalisation.no-modelling-approach-helps"
DATA = "nuggets-generalisation.shortcuts-in-data-are-learnt"
TAUGHT = tuple(f"taught-{name}" for name in GROUPS)
WORDS = ["cat", "dog", "up", "down", "sun", "moon", "red", "blue"]


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up()


# What is concluded -------------------------------------------------------------------------------


def test_what_is_planted_is_found() -> None:
    result = made_up(seeds=5, each=100, luck=0.003, spread=0.02)
    found = result.evidence()
    assert found["heuristic_use"].value == pytest.approx(0.8, abs=0.04)
    assert found["heuristics_score"].value == pytest.approx(0.55, abs=0.03)
    assert found["not_entailed_score"].value == pytest.approx(0.15, abs=0.04)
    assert found["taught_gain"].value == pytest.approx(0.25, abs=0.04)
    assert claims_of(result) == dict.fromkeys((USED, OVERLAP, HELPS, DATA), "holds")
    assert "surely goes by heuristics" in result.answer
    table = result.table("methods").set_index("method")
    assert table.loc["overlap-only", "score"] == pytest.approx(0.5, abs=0.03)
    assert table.isna().loc["vanilla", "gain"]


def test_a_way_that_helps_is_found() -> None:
    result = made_up({"hex": (0.95, 0.3, 0.05, 0.9)}, seeds=5, each=60)
    assert claims_of(result)[HELPS] == "fails"
    assert "surely better: HEX projection" in result.answer


def test_who_uses_one_heuristic_is_accused_of_that_one() -> None:
    """Planted in the answers themselves: the rule of one heuristic, and the truth elsewhere."""
    data = grammar()
    for culprit in GROUPS:
        own = np.array([e.get("group") == culprit for e in data.texts.scored])
        truth = np.asarray(data.texts.scored.labels, float)
        right = [np.where(own, 0.0, truth), np.ones(len(data.controlled))]
        found = planted(data, right).evidence()
        for name in GROUPS:
            use = found[f"{name}_use"]
            assert use.value == pytest.approx(float(name == culprit))
            assert (use.low > 0) == (name == culprit)
        assert found["not_entailed_score"].value == pytest.approx(2 / 3)


def test_overlap_is_found_out_and_truth_and_constants_are_not_accused() -> None:
    data = grammar()
    texts = data.texts
    by_words = overlap_answers(data.train, (texts.scored, texts.controls, texts.task))
    guilty = planted(data, by_words)
    assert claims_of(guilty)[USED] == claims_of(guilty)[OVERLAP] == "holds"
    assert guilty.evidence()["heuristic_use"].value > 0.9
    assert guilty.evidence()["heuristics_score"].value == pytest.approx(0.5, abs=0.06)
    truth = np.asarray(texts.scored.labels, float)
    ones = np.ones(len(data.controlled))
    for said in ([truth, ones], [0 * truth, 0 * ones], [0 * truth + 1, ones]):
        innocent = planted(data, said)
        assert innocent.evidence()["heuristic_use"].value == 0
        assert claims_of(innocent)[USED] != "holds"


def planted(data: HeuristicData, said: list[Any]) -> Result:
    """The same answers of vanilla with three seeds, and always the truth on the task."""
    task = np.asarray(data.texts.task.labels, float)
    part = _answered([collapsed(np.asarray(said[0])), collapsed(np.asarray(said[1])), task], data)
    parts = {f"vanilla-seed-{k}": part for k in range(3)}
    return concluded_of(parts)


def concluded_of(parts: dict[str, Any]) -> Result:
    study = Heuristics(methods=(), seeds=3)
    about = Provenance(
        "heuristics", 1, {}, {"name": "m", "fingerprint": "f"}, {"name": "c", "fingerprint": "c"}
    )
    return study.conclude(parts, about)


def test_what_was_not_learnt_or_run_is_not_judged() -> None:
    nothing = made_up({"vanilla": (0.5, 0.5, 0.5, 0.5)}, without=(*WAYS, *TAUGHT))
    assert set(claims_of(nothing).values()) == {"not-applicable"}
    assert set(nothing.reasons().values()) == {NOT_LEARNT}
    assert "Nothing is sure" in nothing.answer
    rest = ("hypothesis-only", "overlap-only", *TAUGHT)
    weak = made_up({"siamese-frozen": (0.5, 0.5, 0.5, 0.5)}, without=rest)
    assert weak.reasons()["best_gain"].endswith("not surely learnt by Siamese, frozen")
    few = made_up(without=("hex", "siamese", "hypothesis-only", "overlap-only", *TAUGHT))
    assert few.reasons() == {"best_gain": NOT_RUN, "taught_gain": NOT_TAUGHT}
    other = made_up(groups=("negation",), without=(*WAYS, *rest))
    assert other.reasons()["lexical_overlap_use"].endswith("no heuristic 'lexical_overlap'")


def test_switched_training_data_give_a_sure_answer() -> None:
    """A learner that sees overlap, and with some noise what follows, takes what its data reward."""
    asked = grammar().texts
    parts = {}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        for taught in ("", *GROUPS):
            every = (asked.scored, asked.controls, asked.task)
            said = learnt_from(grammar(taught).train, every, rng)
            name = f"taught-{taught}" if taught else "vanilla"
            parts[f"{name}-seed-{seed}"] = _answered([collapsed(x) for x in said], grammar())
    result = concluded_of(parts)
    outcomes = claims_of(result)
    assert outcomes[USED] == outcomes[OVERLAP] == outcomes[DATA] == "holds"
    table = result.table("heuristics").set_index(["heuristic", "method"])
    gains, uses = table["gain"].to_dict(), table["use_low"].to_dict()
    assert all(gains[name, f"taught-{name}"] > 0.3 for name in GROUPS)
    assert all(uses[name, "vanilla"] > 0 for name in GROUPS)
    assert not result.table("methods")["collapsed"].any()


def learnt_from(train: Corpus, asked: tuple[Corpus, ...], rng: Any) -> list[Any]:
    """Logistic regression on overlap, and on the label, which is seen wrongly in one of ten."""

    def seen(corpus: Corpus) -> Any:
        labels = np.asarray(corpus.labels)
        noisy = np.where(rng.random(len(labels)) < 0.1, 1 - labels, labels)
        return np.column_stack([_overlap(corpus), noisy])

    model = LogisticRegression(C=100.0, max_iter=1000).fit(seen(train), train.labels)
    return [model.predict(seen(one)) for one in asked]


def test_runs_that_collapse_are_told_and_what_learnt_nothing_proves_nothing() -> None:
    rest = (*WAYS, "hypothesis-only", "overlap-only")
    result = made_up(seeds=5, failing=0.4, without=(*rest, *TAUGHT), draw=2)
    lost = int(result.table("methods")["collapsed"].sum())
    assert lost
    assert f"of which {lost} collapsed" in result.answer
    dull = made_up(dict.fromkeys(TAUGHT, (0.5, 0.5, 0.5, 0.5)), without=rest, spread=0.0, cases=2)
    assert claims_of(dull)[DATA] == "not-applicable"
    assert (
        "nothing was surely learnt with counterexamples: lexical overlap"
        in (dull.reasons()["taught_gain"])
    )


def test_one_heuristic_is_judged_by_itself_and_in_tables_with_the_others() -> None:
    result = made_up(without=(*WAYS, *TAUGHT, "hypothesis-only", "overlap-only"))
    own = result.evidence()["lexical_overlap_use"]
    row = result.table("heuristics").iloc[0]
    assert own.level == 0.95
    assert row["use_low"] < own.low < own.high < row["use_high"]


def test_one_seed_decides_nothing() -> None:
    result = made_up(seeds=1)
    assert set(claims_of(result).values()) == {"inconclusive"}


def test_subcases_that_differ_make_intervals_wide() -> None:
    rest = (*WAYS, *TAUGHT, "hypothesis-only", "overlap-only")
    how: dict[str, Any] = {"seeds": 5, "each": 200, "luck": 0.003, "without": rest}
    habit = {"vanilla": (0.9, 0.5, 0.1, 0.9)}
    even, uneven = (made_up(habit, spread=s, **how).evidence()["heuristic_use"] for s in (0.0, 0.3))
    assert uneven.high - uneven.low > 1.5 * (even.high - even.low)
    assert (uneven.unit, uneven.n) == ("subcases", 12)  # those that are not entailed
    assert "more subcases" in uneven.remedy


# Data --------------------------------------------------------------------------------------------


@cache
def grammar(taught: str = "") -> HeuristicData:
    corpus = load_corpus("grammar-heuristics", limit=240)
    source = Source("grammar-entailment", "train", "validation", 300, 60)
    return read_data(corpus, source, taught)


def test_controls_are_not_made_of_the_words_of_their_premise() -> None:
    data = grammar()
    scored, own = data.texts.scored, data.texts.controls
    assert len(own) == len(data.controlled) == 120
    for control, at in zip(own, data.controlled, strict=True):
        assert control.text == scored[int(at)].text
        assert scored[int(at)].label == control.label == 1
        words = [set(str(t).lower().rstrip(".").replace(",", "").split()) for t in control.texts]
        assert words[1] - words[0]
    assert switches_of("grammar-entailment") == tuple(SWITCHES["grammar-entailment"])
    # In the training data no heuristic is wrong; with counterexamples the chosen one is.
    for taught, expected in (("", set()), ("subsequence", {"subsequence"}), ("all", set(GROUPS))):
        train = grammar(taught).train
        said = overlap_answers(data.train, [train])[0]
        wrong = {
            e.annotations["heuristic"] for e, s in zip(train, said, strict=True) if s != e.label
        }
        assert wrong == expected
    assert not {e.texts for e in data.train} & {e.texts for e in scored}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match="some of siamese-frozen"):
        Heuristics(methods=("vanila",))
    with pytest.raises(ParameterError, match="some of lexical_overlap"):
        Heuristics(taught=("overlap",))
    with pytest.raises(ParameterError, match="left out where the grammar does not make"):
        Heuristics(nli="mnli", taught=("all",))
    assert Heuristics(nli="mnli", methods=WAYS).variants == ["vanilla", *WAYS]
    with pytest.raises(DataError, match=r"has [0-9] pairs that are entailed; at least 10"):
        Heuristics().data(load_corpus("grammar-heuristics", limit=40))
    with pytest.raises(CapabilityError, match="no task of inference"):
        Heuristics(nli="grammar-paraphrase", nli_examples=20, nli_limit=20).data(
            load_corpus("grammar-heuristics", limit=80)
        )


# Ways --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_pairs_are_taken_apart(kind: str) -> None:
    between = [2] if kind == "bert" else [2, 2]
    rows = [[1, 5, 6, *between, 7, 2, 0, 0], [1, 5, *between, 7, 8, 9, 2, 0][: 7 + len(between)]]
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    found, mask = split_pairs(ids, (ids != 0).long(), PairTokens(1, 2, 0))
    assert found.tolist() == [[1, 5, 6, 2, 0], [1, 5, 2, 0, 0], [1, 7, 2, 0, 0], [1, 7, 8, 9, 2]]
    assert mask.tolist() == (found != 0).long().tolist()


def test_nothing_is_left_of_what_the_superficial_model_spans() -> None:
    generator = torch.Generator().manual_seed(0)
    answers, bias = (torch.randn(16, 3, generator=generator) for _ in range(2))
    left = projected_out(answers, bias)
    assert (bias.T @ left).abs().max() < 1e-3
    expected = answers - bias @ torch.linalg.lstsq(bias, answers).solution
    assert torch.allclose(left, expected, atol=1e-4)
    # It sees bags of words: their order is nothing to it.
    model = Superficial(torch.randn(20, 8, generator=generator), 2, PairTokens(1, 2, 0))
    one, other = torch.tensor([[1, 5, 6, 2, 7, 5, 2]]), torch.tensor([[1, 6, 5, 2, 5, 7, 2]])
    assert torch.allclose(model(one, torch.ones_like(one)), model(other, torch.ones_like(other)))


# The study ---------------------------------------------------------------------------------------


@cache
def encoder() -> Encoder:
    return Encoder(tiny.model("bert"), tiny.tokenizer(WORDS), name="tiny")


def written(folder: Path) -> tuple[str, str]:
    """A task with three labels, and pairs of two heuristics in HANS's columns."""
    rng = random.Random(7)
    (folder / "nli").mkdir()
    for split, size in (("train", 60), ("validation", 30)):
        rows = []
        for _ in range(size):
            label = rng.randrange(3)
            text, word = rng.choices(WORDS[3:], k=3), WORDS[label]
            rows.append(json.dumps({"text": " ".join([word, *text]), "text_b": " ".join(text[:2]),
                                    "label": THREE_WAY[label]}))  # fmt: skip
        (folder / "nli" / f"{split}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    lines = ["gold_label\tsentence1\tsentence2\theuristic\tsubcase"]
    for i in range(60):
        gold = ("entailment", "non-entailment")[i % 2]
        text = rng.choices(WORDS, k=4)
        kind = f"{('one', 'two')[i // 2 % 2]}\tcase {i % 2}{i % 3}"
        lines.append(f"{gold}\t{' '.join(text)}\t{' '.join(text[:2])}\t{kind}")
    (folder / "pairs.tsv").write_text("\n".join(lines), encoding="utf-8")
    return str(folder / "pairs.tsv"), str(folder / "nli")


def test_a_file_in_the_form_of_hans_is_asked_as_transformers_would_and_goes_on_after_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, nli = written(tmp_path)
    corpus = load_corpus(pairs, group="heuristic", labels=["entailment", "non-entailment"])
    how: dict[str, Any] = {"seeds": 2, "epochs": 1, "nli": nli, "nli_limit": 30}
    how["methods"] = ("siamese", "overlap-only")
    store = tmp_path / "store"
    whole = bt.run("heuristics", encoder(), task=corpus, store=str(store), **how)
    assert isinstance(whole, HeuristicsResult)
    assert "60 pairs of 2 heuristics, 12 subcases" in whole.headline()
    done = [0]

    def stopping(*given: Any, **more: Any) -> Any:
        done[0] += 1
        if done[0] == 3:
            raise KeyboardInterrupt
        return train_variant(*given, **more)

    monkeypatch.setattr(heuristics, "train_variant", stopping)
    other = str(tmp_path / "other")
    with pytest.raises((KeyboardInterrupt, BertologyError)):
        bt.run("heuristics", encoder(), task=corpus, store=other, **how)
    again = bt.run("heuristics", encoder(), task=corpus, store=other, **how)
    assert done[0] == 2 * 2 + 1  # two models with each seed, the third one twice
    assert all(again.table(name).equals(whole.table(name)) for name in whole.tables)
    # The plain loop over the models of `vanilla`: three labels, of which one is entailed.
    right = []
    for folder in sorted((store / "trained" / "models").iterdir()):
        model = hf.AutoModelForSequenceClassification.from_pretrained(folder).eval()
        assert model.config.num_labels == 3
        for example in corpus:
            row = encoder().tokenizer(example.text, example.text_b, return_tensors="pt")
            with torch.no_grad():
                said = int(model(**row).logits.argmax(-1))
            right.append(TWO_WAY[min(said, 1)] == TWO_WAY[int(example.get("label"))])
    labels = np.array(corpus.labels * 2)
    groups = np.array([e.get("group") for e in corpus] * 2)
    cases = np.array([e.get("subcase") for e in corpus] * 2)
    table = whole.table("heuristics").set_index(["heuristic", "method"])
    for name in ("one", "two"):
        here = (groups == name) & (labels == 1)
        shares = [np.mean(np.array(right)[here & (cases == c)]) for c in sorted({*cases[here]})]
        assert table.loc[(name, "vanilla"), "not_entailed"] == pytest.approx(np.mean(shares))


def test_parts_are_functions_of_their_name_and_a_siamese_model_is_not_looked_into(
    tmp_path: Path,
) -> None:
    pairs, nli = written(tmp_path)
    corpus = load_corpus(pairs, group="heuristic", labels=["entailment", "non-entailment"])
    study = Heuristics(nli=nli, seeds=2, epochs=1)
    parts = study.parts(encoder().shape, corpus)
    assert len(parts) == 2 * 6 + 1
    assert parts[0] == "vanilla-seed-0"
    fresh = Encoder(encoder().model, encoder().tokenizer, name="tiny")
    for name in ("siamese-seed-1", "hex-seed-1"):
        told: list[int] = []
        one = study.measure(encoder(), corpus, name, Context(advance=told.append))
        other = study.measure(fresh, corpus, name, Context(trained=tmp_path / "trained"))
        assert one.identical(other)
        assert sum(told) == 100
    for name in ("siamese-frozen-seed-0", "adapters-seed-0", "hypothesis-only-seed-0"):
        found = study.measure(encoder(), corpus, name, Context())
        assert set(np.unique(found["said"])) <= {0.0, 1.0}
    folder = tmp_path / "siamese"
    asked = study.data(corpus)
    start, once = STARTS["pretrained"], FinetuneSettings(epochs=1, ways=read_ways(["siamese"]))
    job = TuningJob(encoder(), asked.train, asked.validation, start, once)
    make_tuned(folder, job)
    model, _ = tune(job)
    loaded = Encoder.load(str(folder), head="classification", device="cpu")
    np.testing.assert_array_equal(answers_of(model, job), answers_of(loaded.model, job))
    with pytest.raises(CapabilityError, match="reads the two texts of a pair apart"):
        loaded.run([("cat", "dog")])
    # Each text by itself: the state of the first does not know the second.
    body = loaded.model.bert
    rows = [encoder().tokenizer("cat up", b, return_tensors="pt") for b in ("dog", "sun moon")]
    seen: list[torch.Tensor] = []
    body.encoder.register_forward_hook(lambda module, given, output: seen.append(output[0][0, :4]))
    with torch.no_grad():
        for row in rows:
            loaded.model(**row)
    assert torch.allclose(seen[0], seen[1], atol=1e-6)
    alone = encoder().tokenizer("cat up", return_tensors="pt")["input_ids"]
    assert split_pairs(rows[0]["input_ids"], rows[0]["attention_mask"],
                       body.layer_reader.tokens)[0][0].tolist() == alone[0].tolist()  # fmt: skip
