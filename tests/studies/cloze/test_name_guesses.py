"""Name guesses: names that give answers away, names that do not, and names that mislead."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from nulls.facts import random_facts, random_masked_lm
from nulls.names import of_random_models, of_shuffled_answers

import planted_facts
import planted_links
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.cloze.facts.asked import share, share_by_subject
from bertology.studies.cloze.name_guesses import NameGuesses
from result_conformance import ResultConformance, claims_of

FROM = {"dante": "florence", "goethe": "weimar", "hugo": "paris", "woolf": "london"}
FIELDS = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ENTITY})
TELLING = ("P1=from",)  # the word that the planted model has facts about
SILENT = ("P1=the",)  # a word that says nothing to it


def fact(i: int, name: str, answer: str) -> Example:
    about = {"answer": [answer], "group": "P1", "entity": name}
    return Example(str(i), f"{name} comes from [MASK] .", annotations=about)


def planted(copies: int = 10, *, misled: int = 0) -> Corpus:
    """Facts that the model knows; the last `misled` copies have the next subject's answer."""
    people, places, facts = list(FROM), list(FROM.values()), list[Example]()
    for copy in range(copies):
        wrong = copy >= copies - misled
        for i, name in enumerate(people):
            answer = places[(i + wrong) % len(places)]
            facts.append(fact(len(facts), f"{name} {copy}", answer))
    return Corpus("facts", facts, FIELDS)


def ask(corpus: Corpus, encoder: Encoder | None = None, **parameters: object) -> Result:
    study = NameGuesses(**{"resamples": 100, "top": 1, **parameters})
    knowing = encoder or planted_facts.encoder(planted_facts.model())
    return planted_links.ask(study, knowing, corpus)


def gains(result: Result) -> dict[str, float]:
    return dict(result.tables["gains"].set_index("answers")["gain"].round(3))


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return ask(planted(misled=4), nouns=TELLING)


def test_names_that_give_the_answer_take_every_fact_away() -> None:
    result = ask(planted(), nouns=TELLING)
    sets = result.tables["sets"].set_index("facts")
    assert sets["n"].to_dict() == {
        "all": 40, "left by both filters": 0, "answer in the name": 0,
        "guessed from a part of the name": 40,
    }  # fmt: skip
    found = gains(result)
    assert found["given by the name"] == found["all answers"] == found["name alone"] > 0.7
    assert found["not given by the name"] == 0
    assert result.tables["relations"][["noun", "name_alone"]].to_numpy().tolist() == [["from", 1.0]]
    assert claims_of(result)["primer-world.success-comes-from-names"] == "holds"


def test_facts_that_names_do_not_give_are_known() -> None:
    result = ask(planted(), nouns=SILENT)
    found = gains(result)
    assert found["given by the name"] == 0
    assert found["not given by the name"] == found["all answers"] > 0.7
    assert result.tables["sets"].set_index("facts").loc["left by both filters", "p_at_1"] == 1
    claims = claims_of(result)
    assert claims["primer-world.success-comes-from-names"] != "holds"
    assert claims["primer-world.names-mislead"] == "not-applicable"
    assert "names tell this model nothing" in result.reasons()["name_pull"]


def test_an_answer_in_the_name_is_found_without_people() -> None:
    named = [fact(i, f"{FROM[name]} {name} {i}", FROM[name]) for i, name in enumerate(FROM)]
    plain = [fact(9 + i, f"{name} {i}", FROM[name]) for i, name in enumerate(FROM)]
    result = ask(Corpus("facts", [*named, *plain], FIELDS))
    sets = result.tables["sets"].set_index("facts")["n"]
    assert sets["answer in the name"] == sets["left by both filters"] == 4
    found = gains(result)
    assert found["in the name"] == found["given by the name"] == found["not given by the name"]
    assert "name alone" not in found
    assert "--nouns born=city" in result.reasons()["name_pull"]


def test_names_that_mislead_pull_the_answer() -> None:
    result = ask(planted(misled=4), nouns=TELLING)
    # Of four names one gives a subject's answer, so that of other subjects nine of 39 do.
    assert result.evidence()["name_pull"].value == pytest.approx(1 - 9 / 39)
    assert result.evidence()["name_pull"].n == 16
    assert claims_of(result)["primer-world.names-mislead"] == "holds"


def test_the_control_takes_as_many_facts_of_the_same_answers() -> None:
    corpus = planted(misled=4)
    lost = ask(corpus, nouns=TELLING).tables["controls"].set_index("filter")["lost"]
    # 24 of 40 are right, and the filter takes exactly those. By chance as many of the same
    # answers would hold 24 * 24 / 40 right ones.
    assert lost["both filters"] == pytest.approx(0.6)
    assert lost["as many facts of the same relations and answers"] == pytest.approx(
        0.6 - (24 - 24 * 24 / 40) / 16
    )


def test_another_model_may_guess() -> None:
    silent = planted_facts.encoder(planted_facts.model({("dante", "writes"): "italian"}))
    study = NameGuesses(resamples=100, top=1, nouns=TELLING, guesser="other")
    model = planted_facts.encoder(planted_facts.model())
    result = planted_links.ask(study, model, planted(), guesser=silent)
    assert gains(result)["given by the name"] == 0
    assert gains(result)["not given by the name"] > 0.7


@pytest.mark.parametrize("seed", range(2))
def test_nothing_holds_where_names_and_answers_are_random(seed: int) -> None:
    assert "holds" not in of_random_models(seed).values()
    assert "holds" not in of_shuffled_answers(seed).values()


def test_filters_equal_a_plain_loop() -> None:
    corpus, encoder = random_facts(2, versions=False)[:60], random_masked_lm(2)
    tokenizer, left = encoder.tokenizer, []

    def best(text: str) -> list[str]:
        inputs = tokenizer(text, return_tensors="pt")
        (at,) = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero().ravel()
        with torch.no_grad():
            ids = encoder.model(**inputs).logits[0, at].topk(3).indices
        return [str(tokenizer.decode([i])).strip() for i in ids.tolist()]

    for example in corpus:
        answer, name = example.get("answer")[0], example.get("entity")
        guessed = example.get("group") == "r0" and any(
            answer in best(f"{part} is a common name in the following city: [MASK].")
            for part in name.split()
        )
        if not guessed and answer not in name:
            left.append(best(example.text)[0] == answer)
    row = ask(corpus, encoder, nouns=("r0=city",), top=3).tables["sets"].iloc[1]
    assert row["n"] == len(left)
    assert row["p_at_1"] == pytest.approx(np.mean(left), abs=0.02)  # other right answers left out


def test_bounds_over_subjects_are_wider_where_facts_repeat() -> None:
    values, alone = np.tile([1.0, 0.0], 40), np.arange(80).astype(str)
    assert share_by_subject(values, alone, 0.95).low == pytest.approx(share(values, 0.95).low)
    twice = share_by_subject(values, np.repeat(alone[:40], 2), 0.95)
    assert twice.n == 40
    four = share_by_subject(np.repeat([1.0, 0.0] * 10, 4), np.repeat(alone[:20], 4), 0.95)
    assert four.low < share(values, 0.95).low
    assert four.high > share(values, 0.95).high


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(ParameterError, match="such as 'born=city'"):
        NameGuesses(nouns=("city",))
    with pytest.raises(DataError, match="can be asked: 0 of those drawn"):
        ask(Corpus("facts", [fact(i, "dante", "nobody") for i in range(3)], FIELDS))
