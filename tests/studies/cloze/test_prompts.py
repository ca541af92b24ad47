"""Prompts: a best wording that is known, wordings that are all the same, and a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from nulls.facts import random_facts, random_masked_lm
from nulls.prompts import of_random_models

import planted_facts
import planted_links
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.cloze.prompts import Prompts
from result_conformance import ResultConformance, claims_of

FROM = {"dante": "florence", "goethe": "weimar", "hugo": "paris", "woolf": "london"}
GOOD = "[X] comes from [Y] ."
BAD = ("[X] in the [Y] .", "the [Y] in [X] .", "no [X] [Y] .")  # of which the model knows nothing
FIELDS = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ENTITY, Field.WORDINGS})


def planted(*wordings: str, kinds: tuple[str, ...] = (), copies: int = 8) -> Corpus:
    facts = []
    for i, (name, answer) in enumerate(list(FROM.items()) * copies):
        about = {
            "answer": [answer], "group": f"P{i // 16}", "entity": f"{name} {i // 4}",
            "wordings": wordings,
        }  # fmt: skip
        about |= {"wording_kinds": kinds} if kinds else {}
        text = wordings[0].replace("[X]", str(about["entity"])).replace("[Y]", "[MASK]")
        facts.append(Example(str(i), text, annotations=about))
    return Corpus("facts", facts, FIELDS)


def ask(corpus: Corpus, encoder: Encoder | None = None, **parameters: int) -> Result:
    study = Prompts(**{"resamples": 100, "together": 2, **parameters})
    knowing = encoder or planted_facts.encoder(planted_facts.model())
    return planted_links.ask(study, knowing, corpus)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return ask(planted(BAD[0], GOOD, *BAD[1:], kinds=("manual", "mined", "mined", "manual")))


def test_the_best_wording_is_found_on_the_other_half() -> None:
    result = ask(planted(BAD[0], GOOD, *BAD[1:]))
    ways = result.tables["ways"].set_index("way")
    assert ways.loc["first wording", "p_at_1"] < 0.5
    assert ways.loc["best wording", "p_at_1"] == 1
    assert ways.loc["upper bound: any wording", "p_at_1"] == 1
    assert np.isnan(ways.loc["upper bound: any wording", "beyond"])
    templates = result.tables["templates"].set_index(["relation", "template"])
    assert templates["chosen"].xs(GOOD, level=1).tolist() == [2, 2]  # by both halves of both
    assert templates["chosen"].sum() == 4
    assert claims_of(result)["primer-world.good-wordings-tell-more"] == "holds"


def test_kinds_are_chosen_from_apart() -> None:
    kinds = ("manual", "mined", "manual mined", "manual")
    ways = ask(planted(BAD[0], GOOD, *BAD[1:], kinds=kinds)).tables["ways"].set_index("way")
    assert ways.loc["mined: best wording", "p_at_1"] == 1
    assert ways.loc["manual: best wording", "p_at_1"] < 0.5
    assert ways.loc["manual: upper bound: any wording", "p_at_1"] < 1


def test_relations_without_an_answer_of_one_piece_and_of_one_fact_stand_aside() -> None:
    def fact(name: str, group: str, answer: str) -> Example:
        about = {"answer": [answer], "group": group, "entity": name, "wordings": (GOOD, BAD[0])}
        return Example(group, f"{name} comes from [MASK] .", annotations=about)

    more = [fact("hugo", "P8", "nobody"), fact("hugo", "P9", "paris")]
    result = ask(Corpus("facts", [*planted(GOOD, BAD[0]), *more], FIELDS))
    assert result.tables["relations"]["relation"].tolist() == ["P0", "P1", "P9"]
    assert result.facts["left_out"] == 1
    assert result.tables["ways"]["n"].unique().tolist() == [33]


def test_a_choice_among_the_same_gains_nothing() -> None:
    result = ask(planted(GOOD, "from [Y] comes [X] ."))
    assert result.evidence()["choice_gain"].value == 0
    assert claims_of(result)["primer-world.good-wordings-tell-more"] != "holds"


def test_a_wording_that_says_the_most_frequent_answer_gains_nothing_beyond_chance() -> None:
    """It wins the choice, and is right more often; but not about the subject."""
    from bertology.studies.cloze.facts.asked import FactBook
    from bertology.studies.cloze.prompts import Asked

    encoder = planted_facts.encoder(planted_facts.model(lean="paris"))
    corpus = Corpus("facts", [*planted(BAD[0]), *[_of_paris(i) for i in range(8)]], FIELDS)
    result = ask(Corpus("facts", [_worded(e, (BAD[1], BAD[0])) for e in corpus], FIELDS), encoder)
    assert result.evidence()["choice_gain"].value == pytest.approx(0, abs=1e-9)
    facts = [_worded(e, (BAD[0], BAD[1])) for e in corpus if e.get("group") == "P0"]
    asked = Asked.of(FactBook(encoder, Corpus("facts", facts, FIELDS)), facts, 2, 512)
    rank, excess = asked.alone(0)
    assert (rank <= 1).mean() > 0.2
    assert excess.mean() == pytest.approx(0, abs=1e-9)


def _of_paris(i: int) -> Example:
    about = {"answer": ["paris"], "group": "P0", "entity": f"no {i}", "wordings": BAD[:1]}
    return Example(f"p{i}", f"no {i} in the [MASK] .", annotations=about)


def _worded(example: Example, wordings: tuple[str, ...]) -> Example:
    about = {**example.annotations, "wordings": wordings}
    text = wordings[0].replace("[X]", example.get("entity")).replace("[Y]", "[MASK]")
    return Example(example.id, text, annotations=about)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_holds_for_random_models(seed: int) -> None:
    assert "holds" not in of_random_models(seed).values()


def test_choices_equal_a_plain_loop() -> None:
    corpus, encoder = random_facts(3, versions=False)[:80], random_masked_lm(3)
    facts = [e for e in corpus if e.get("group") == "r1"]
    tokenizer, objects = encoder.tokenizer, sorted({e.get("answer")[0] for e in facts})
    ids = tokenizer.convert_tokens_to_ids(objects)
    wordings = facts[0].get("wordings")

    def likely(text: str) -> np.ndarray:
        inputs = tokenizer(text, return_tensors="pt")
        (at,) = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero().ravel()
        with torch.no_grad():
            return encoder.model(**inputs).logits[0, at].log_softmax(-1)[ids].double().numpy()

    said = np.array(
        [
            [likely(t.replace("[X]", e.get("entity")).replace("[Y]", "[MASK]")) for t in wordings]
            for e in facts
        ]
    )
    gold = np.array([objects.index(e.get("answer")[0]) for e in facts])
    turns = {name: i % 2 for i, name in enumerate(dict.fromkeys(e.get("entity") for e in facts))}
    half = np.array([turns[e.get("entity")] for e in facts])
    own = np.take_along_axis(said, gold[:, None, None], 2)
    ranks = 1 + (said > own).sum(2)
    right = np.empty(len(facts))
    for side in (0, 1):
        dev = ranks[half != side]
        order = np.argsort(-(dev == 1).mean(0) - 1e-3 * (1 / dev).mean(0), kind="stable")
        together = said[:, order[:2]].mean(1)
        right[half == side] = (together.argmax(1) == gold)[half == side]
    rows = ask(corpus, encoder).tables["relations"].set_index("relation")
    assert rows.loc["r1", "first"] == pytest.approx((ranks[:, 0] == 1).mean())
    assert rows.loc["r1", "together"] == pytest.approx(right.mean())
    assert rows.loc["r1", "any"] == pytest.approx((ranks.min(1) == 1).mean())


def test_what_cannot_be_chosen_is_refused() -> None:
    with pytest.raises(DataError, match="has two wordings to choose from"):
        ask(planted(GOOD))
    bare = Corpus("facts", list(planted(GOOD)), FIELDS - {Field.WORDINGS})
    with pytest.raises((CapabilityError, DataError)):
        bare.require(Field.WORDINGS)
