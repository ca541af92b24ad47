"""Reasoning chains: solvers whose reach is known, models that know nothing, and a plain loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import transformers as hf

import planted_links
import tiny
from bertology.data import load_corpus
from bertology.data.corpus import Corpus
from bertology.data.grammar.fragments import COMPARISONS
from bertology.data.grammar.lexicon import LEXICON
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.questions import Question
from bertology.results.result import Result
from bertology.studies.cloze.reasoning_chains import (
    ALL,
    MIXED,
    NONE,
    SHORT,
    ChainScores,
    ReasoningChains,
    texts_of,
)
from bertology.studies.study import Context
from result_conformance import ResultConformance, claims_of

LESS = {less: more for more, less in COMPARISONS}
CLAIMS = ("primer-world.one-step-is-found", "primer-world.blanks-are-lost-with-steps")


@cache
def _tokens() -> Any:
    texts = " ".join(load_corpus("grammar-chains", limit=1000).texts).lower()
    return tiny.tokenizer(sorted(set(re.findall(r"[a-z]+|[.]", texts))), max_length=128)


def tiny_encoder(seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    config = hf.BertConfig(
        vocab_size=len(_tokens()), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=128, initializer_range=0.2,
    )  # fmt: skip
    return Encoder(hf.BertForMaskedLM(config).eval(), _tokens(), head="mlm", name="tiny")


def ask(encoder: Encoder, corpus: Corpus, **options: Any) -> Result:
    return planted_links.ask(ReasoningChains(resamples=200, **options), encoder, corpus)


@pytest.fixture(scope="module")
def chains() -> Corpus:
    return load_corpus("grammar-chains", limit=400)


class TestResult(ResultConformance):
    measures: ClassVar[set[str]] = {"chains-fewest", "chains-more"}

    @staticmethod
    def make() -> Result:
        return ask(tiny_encoder(), load_corpus("grammar-chains", limit=60))


# Planted ---------------------------------------------------------------------------------------


@dataclass
class Solver:
    """Answers what follows from so many statements; else it guesses by the length of the text."""

    reach: int
    length: int = 10_000  # characters, beyond which it does not read

    def answers(self, questions: Iterable[Question]) -> Iterator[Any]:
        for question in questions:
            found = self._solved(question.text) if len(question.text) <= self.length else None
            scores = [1.0 + (word == found) for word in question.candidates]
            yield type("Answer", (), {"scores": np.array([scores])})

    def _solved(self, text: str) -> str | None:
        said = re.findall(r"(\w+) is (\w+) than (\w+)\.", text)
        above = {(b, a) if word in LESS else (a, b) for a, word, b in said}
        if asked := re.search(r"So (\w+) is \[MASK\] than (\w+)\.", text):
            one, other = asked.groups()
            words = next((p for p in COMPARISONS if p[0] in text or p[1] in text), ("", ""))
            if other in self._reached(above, one):
                return words[0]
            return words[1] if one in self._reached(above, other) else None
        inside = set(re.findall(r"[Tt]he (\w+) is in the (\w+)\.", text))
        thing = re.findall(r"So the (\w+) is in the \[MASK\]\.", text)[0]
        rooms = {noun.lemma for noun in LEXICON.nouns.values() if noun.sort == "home"}
        return next(iter(self._reached(inside, thing) & rooms), None)

    def _reached(self, links: set[tuple[str, str]], start: str) -> set[str]:
        front, seen = {start}, set()
        for _ in range(self.reach):
            front = {b for a, b in links if a in front}
            seen |= front
        return seen


def solve(solver: Solver, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.setattr(ReasoningChains, "engine", lambda *_, **__: solver)
    return ask(tiny_encoder(), corpus, lens="none")


def accuracy(result: Result, version: str = ALL, group: str = "all") -> list[float]:
    rows = result.tables["steps"].query("group == @group and version == @version")
    return [float(x) for x in rows["accuracy"]]


@pytest.mark.parametrize("reach", [1, 3])
def test_a_solver_is_right_as_far_as_it_reaches(
    reach: int, chains: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solve(Solver(reach), chains, monkeypatch)
    wanted = [1.0] * reach + [0.5] * (5 - reach)
    for group in ("all", "comparison", "containment"):
        assert accuracy(result, group=group) == accuracy(result, SHORT, group) == wanted
        assert accuracy(result, MIXED, group) == pytest.approx([0.5] * 5, abs=0.1)
        assert accuracy(result, NONE, group) == [0.5] * 5
    slope = np.polyfit(range(1, 6), wanted, 1)[0]
    assert result.evidence()["step_drop"].value == pytest.approx(-slope)
    assert [claims_of(result)[claim] for claim in CLAIMS] == ["holds", "holds"]


def test_whoever_reaches_all_steps_drops_nothing(
    chains: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solve(Solver(5), chains, monkeypatch)
    assert accuracy(result) == [1.0] * 5
    assert [claims_of(result)[claim] for claim in CLAIMS] == ["holds", "fails"]


def test_who_reads_short_texts_only_does_not_drop_with_steps(
    chains: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer texts would look like steps; texts of all steps are equally long here."""
    result = solve(Solver(5, length=150), chains, monkeypatch)
    short = accuracy(result, SHORT)
    assert short[0] == 1
    assert short[-1] < 0.6
    drops = result.tables["drops"].query("group == 'all'").set_index("version")
    assert drops.loc[SHORT, "drop_low"] > 0.05
    assert claims_of(result)["primer-world.blanks-are-lost-with-steps"] == "not-applicable"
    assert "nothing to drop from" in result.reasons()["step_drop"]


# Nothing known ---------------------------------------------------------------------------------


def test_random_models_find_nothing() -> None:
    corpus = load_corpus("grammar-chains", limit=100)
    said = [claims_of(ask(tiny_encoder(seed), corpus, lens="none")) for seed in range(4)]
    for claim in CLAIMS:
        assert sum(one[claim] == "holds" for one in said) <= 1


# A plain loop ----------------------------------------------------------------------------------


def test_scores_are_those_of_a_plain_loop() -> None:
    encoder, corpus = tiny_encoder(), load_corpus("grammar-chains", limit=40)
    study = ReasoningChains(lens="none")
    (part,) = study.parts(encoder.shape, corpus)
    found = study.measure(encoder, corpus, part, Context())
    for at, example in enumerate(corpus):
        right = example.get("answer")[0]
        wrong = next(word for word in example.get("candidates") if word != right)
        texts = texts_of(example, study.seed)
        margins = {}
        for version, text in texts.items():
            ids = encoder.tokenizer(text, return_tensors="pt")["input_ids"]
            place = int((ids[0] == encoder.tokenizer.mask_token_id).nonzero()[0, 0])
            with torch.no_grad():
                said = encoder.model(input_ids=ids).logits[0, place].log_softmax(-1)
            good, bad = encoder.tokenizer.convert_tokens_to_ids([right, wrong])
            margins[version] = float(said[good] - said[bad])
        for number, version in enumerate((ALL, SHORT, MIXED, NONE)):
            seen = {name: found[name].values[number, at, 0] for name in ("plain", "raised")}
            assert seen["plain"] == pytest.approx(margins[version], abs=1e-4)
            if version != NONE:
                assert seen["raised"] == pytest.approx(margins[version] - margins[NONE], abs=1e-4)


def test_the_drop_is_the_slope_of_least_squares_and_its_interval_is_over_items() -> None:
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        items = np.repeat(np.arange(60), 5)
        steps = np.tile(np.arange(1, 6), 60)
        own = np.repeat(rng.normal(size=(60, 1)) * 0.05, 5, axis=1).ravel()  # slopes of items
        y = 0.8 - (0.05 + own) * steps + rng.normal(size=300) * 0.1
        nothing = np.zeros((4, 300, 1))
        of = ChainScores(
            nothing, nothing, np.full(300, 0.5), steps, np.full(300, ""), items.astype(str)
        )
        rows = of.drops(y, np.ones(300, bool))
        assert rows.mean() == pytest.approx(-np.polyfit(steps, y, 1)[0])
        found = ReasoningChains(resamples=100).means(rows[None]).estimate(0)
        assert found is not None
        missed += not found.low < 0.05 < found.high
    assert missed / 200 < 0.09


# What cannot be asked --------------------------------------------------------------------------


def test_items_are_drawn_whole(chains: Corpus) -> None:
    drawn = ReasoningChains(examples=50).shown(chains)
    counts = {name: 0 for e in drawn if (name := e.get("item"))}
    for example in drawn:
        counts[example.get("item")] += 1
    assert list(counts.values()) == [10] * 5


def test_without_steps_there_is_accuracy_only(chains: Corpus) -> None:
    plain = [
        replace(
            e,
            text=e.text.replace(". ", ", "),
            annotations={n: e.get(n) for n in ("answer", "candidates")},
        )
        for e in chains.examples[:40]
    ]
    result = ask(tiny_encoder(), replace(chains, examples=plain))
    assert result.tables["steps"]["version"].tolist() == [ALL]
    assert "does not tell how many steps" in result.reasons()["step_drop"]
    assert claims_of(result) == dict.fromkeys(CLAIMS, "not-applicable")
    assert "chance: 50 %" in result.answer


def test_bad_candidates_are_refused(chains: Corpus) -> None:
    first = chains.examples[0]
    for given in ((), ("taller",), ("big", "small")):
        about = {**first.annotations, "candidates": given}
        wrong = replace(chains, examples=[replace(first, annotations=about)] * 2)
        with pytest.raises(DataError, match="must hold a right answer and a wrong one"):
            ask(tiny_encoder(), wrong)
    unasked = replace(chains, examples=[replace(first, text="So what?")] * 2)
    with pytest.raises(DataError, match="There is no blank in"):
        ask(tiny_encoder(), unasked)
