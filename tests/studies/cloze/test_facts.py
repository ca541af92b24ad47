"""Facts: a model with a known table of them, one that knows nothing, and a plain loop."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from nulls.facts import in_versions, in_wordings, random_facts, random_masked_lm

import made_facts
import planted_facts
import planted_links
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.loading import load_corpus
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.cloze.facts import Facts
from result_conformance import ResultConformance, claims_of

FROM = {"dante": "florence", "goethe": "weimar", "hugo": "paris", "woolf": "london"}
WORDINGS = ("[X] comes from [Y] .", "from [Y] comes [X] .", "[X] in the [Y] .")
FIELDS = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ENTITY})


def fact(i: int, subject: str, answer: str, **more: object) -> Example:
    about = {"answer": [answer], "group": "P1", "entity": subject, "cardinality": "N-1", **more}
    return Example(str(i), f"{subject} comes from [MASK] .", annotations=about)


def planted(wrong: int = 0, *, copies: int = 6, wordings: bool = False) -> Corpus:
    """What the planted model knows, `copies` times; the first `wrong` subjects' are exchanged."""
    answers = list(FROM.values())
    answers[:wrong] = answers[wrong - 1 : wrong] + answers[: wrong - 1] if wrong else []
    more = {"wordings": WORDINGS} if wordings else {}
    facts = [
        fact(i, subject, answer, **more)
        for i, (subject, answer) in enumerate(list(zip(FROM, answers, strict=True)) * copies)
    ]
    return Corpus("facts", facts, FIELDS | ({Field.WORDINGS} if wordings else set()))


def knowing() -> Encoder:
    return planted_facts.encoder(planted_facts.model())


def ask(corpus: Corpus, encoder: Encoder | None = None, **parameters: int) -> Result:
    return planted_links.ask(Facts(**parameters), encoder or knowing(), corpus)


def versions() -> Corpus:
    """Nobody told the model what `no` means, and a second subject takes its mind off the first."""
    examples = []
    for i, (subject, answer) in enumerate(list(FROM.items()) * 6):
        prime = "paris" if answer != "paris" else "london"
        for condition, text in (
            ("plain", f"{subject} comes from [MASK] ."),
            ("negated", f"{subject} comes no from [MASK] ."),
            ("misprimed", f"{prime} . {subject} comes from [MASK] ."),
        ):
            about = {"answer": [answer], "group": "P1", "item": str(i), "condition": condition}
            about |= {"prime": prime} if condition == "misprimed" else {}
            examples.append(Example(f"{i}-{condition}", text, annotations=about))
    fields = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP, Field.ITEM, Field.CONDITION})
    return Corpus("versions", examples, fields)


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return ask(planted(wordings=True))


class TestVersions(ResultConformance):
    @staticmethod
    def make() -> Result:
        return ask(versions())


@pytest.mark.parametrize(("wrong", "expected"), [(0, 1.0), (2, 0.5), (4, 0.0)])
def test_a_known_table_is_told_exactly(wrong: int, expected: float) -> None:
    result = ask(planted(wrong))
    scores = result.tables["scores"].set_index("way")
    assert scores.loc["model", "p_at_1"] == expected
    assert scores.loc["model, relation's objects", "p_at_1"] == expected
    assert scores.loc["model", "macro"] == expected
    (row,) = result.tables["relations"].to_dict("records")
    assert (row["relation"], row["cardinality"], row["n"]) == ("P1", "N-1", 24)
    assert result.tables["cardinalities"]["cardinality"].tolist() == ["N-1"]
    if not wrong:
        assert claims_of(result)["primer-world.facts-beyond-frequency"] == "holds"


def test_a_fact_does_not_vote_for_its_own_answer() -> None:
    facts = [fact(i, "dante", "florence") for i in range(2)]
    facts[1] = Example("1", "hugo comes from [MASK] .", annotations=facts[1].annotations)
    facts += [fact(2, "goethe", "weimar"), fact(3, "woolf", "london")]
    result = ask(Corpus("facts", facts, FIELDS))
    # Halves are (florence, weimar) and (florence, london): each votes for florence in the other.
    assert result.tables["relations"]["frequent"].tolist() == [0.5]
    unique = ask(planted(copies=1))
    assert unique.tables["relations"]["frequent"].tolist() == [0.0]


def test_other_right_answers_are_left_out_of_the_ranking() -> None:
    facts = [fact(0, "dante", "florence"), fact(1, "dante", "paris"), fact(2, "hugo", "paris")]
    result = ask(Corpus("facts", facts, FIELDS))
    # Paris for dante is not first in the vocabulary, but first among what is not right otherwise.
    assert result.tables["scores"]["p_at_1"].iloc[1] == 1.0


def test_answers_of_several_pieces_are_left_out_and_counted() -> None:
    result = ask(Corpus("facts", [*planted(), fact(99, "dante", "no nobody")], FIELDS))
    assert result.facts["left_out"] == 1
    assert result.tables["relations"]["left_out"].tolist() == [1]
    with pytest.raises(DataError, match="can be asked: 0 of those drawn"):
        ask(Corpus("facts", [fact(i, "dante", "nobody") for i in range(3)], FIELDS))


def test_wordings_that_the_model_does_not_know_make_it_inconsistent() -> None:
    result = ask(planted(wordings=True))
    found = result.tables["wordings"].set_index("way")["p_at_1"]
    assert found["first wording"] == 1
    # The first two give the right object, the third the same one to every subject.
    assert found["right in some wording"] == 1
    expected = 1 - found["same answer in two wordings"]
    assert result.evidence()["inconsistency"].value == pytest.approx(expected)
    assert claims_of(result)["primer-world.wordings-get-different-answers"] == "holds"


def test_what_negation_and_a_misleading_word_change() -> None:
    result = ask(versions())
    found = result.tables["versions"].set_index("what")["share"]
    assert found["known facts: a not leaves the answer"] == 1  # it does not know what `no` means
    assert found["lost by a misleading word"] == 0  # nor does it look at objects
    assert found["the misleading word is the answer"] == 0
    claims = claims_of(result)
    assert claims["primer-world.negation-leaves-the-answer"] == "holds"
    assert claims["primer-world.misprimed-by-a-word"] != "holds"


def test_versions_of_a_fact_are_drawn_together() -> None:
    drawn = Facts(examples=5).shown(versions())
    items = [e.get("item") for e in drawn]
    assert len(set(items)) == 5
    assert len(items) == 15


@pytest.mark.parametrize("seed", range(3))
def test_nothing_holds_for_random_models(seed: int) -> None:
    assert "holds" not in in_wordings(seed).values()
    assert "holds" not in in_versions(seed).values()


def test_one_answer_for_every_subject_is_no_knowledge() -> None:
    """Where all objects differ, no other fact votes for the right one, but one answer is right."""
    for seed in (0, 1, 2):
        found = made_facts.one_answer(seed)
        assert found.evidence()["gain_over_frequency"].value > 0
        (beyond,) = (one for _, one in found.evidence()["gain_over_guessing"].controls)
        assert beyond.value == pytest.approx(0, abs=1e-9)
        assert claims_of(found)["primer-world.facts-beyond-frequency"] not in ("holds", "fails")


def test_facts_of_a_relation_belong_together() -> None:
    """Else a few templates that happen to work would make a claim sure."""
    sure = narrow = 0
    for seed in range(20):
        found = made_facts.templates_differ(seed)
        gain = found.evidence()["gain_over_frequency"]
        assert (gain.unit, gain.n) == ("relations", 20)
        sure += not gain.low <= 0 <= gain.high
        flat = Facts().share(np.repeat([1.0, 0.0, -1.0], [300, 250 + round(250 * gain.value), 250]))
        narrow += flat.high - flat.low < gain.high - gain.low
    assert sure <= 2
    assert narrow == 20


def test_scores_equal_a_plain_loop() -> None:
    corpus, encoder = random_facts(1, versions=False), random_masked_lm(1)
    tokenizer, ranks = encoder.tokenizer, []
    for example in corpus:
        inputs = tokenizer(example.text, return_tensors="pt")
        (at,) = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero().ravel()
        with torch.no_grad():
            logits = encoder.model(**inputs).logits[0, at]
        gold = logits[tokenizer.convert_tokens_to_ids(example.get("answer")[0])].clone()
        for other in corpus:  # what is right by another fact does not count
            if (other.text, other.get("group")) == (example.text, example.get("group")):
                logits[tokenizer.convert_tokens_to_ids(other.get("answer")[0])] = gold - 1
        ranks.append(1 + int((logits > gold).sum()))
    row = ask(corpus, encoder).tables["scores"].iloc[0]
    assert row["p_at_1"] == np.mean(np.array(ranks) <= 1)
    assert row["p_at_10"] == np.mean(np.array(ranks) <= 10)
    assert row["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)))


def test_distinct_masked_texts_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertology.model.masked_lm import clozes

    seen, run = [0], clozes.run_predicting

    def counted(encoder: Encoder, batch: object, *rest: object, **more: object) -> object:
        seen[0] += len(batch)  # type: ignore[arg-type]
        return run(encoder, batch, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(clozes, "run_predicting", counted)
    ask(planted(copies=20, wordings=True))
    assert seen[0] <= 1.2 * 4 * len(WORDINGS)


def test_a_file_of_facts_of_ones_own(tmp_path: Path) -> None:
    rows = [{"entity": s, "answer": a, "relation": "home"} for s, a in FROM.items()]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "said.txt").write_text("[X] comes from [Y] .", encoding="utf-8")
    corpus = load_corpus(tmp_path / "mine.jsonl", reader="lama", templates="said.txt")
    assert ask(corpus).tables["relations"]["relation"].tolist() == ["home"]
