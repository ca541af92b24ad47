"""Steps that are done for each language of a corpus, and what results keep of its languages."""

from __future__ import annotations

import pytest

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.languages import in_languages
from bertology.errors import DataError
from bertology.model.shape import Shape
from bertology.reproduce.paper_files import parse_paper
from bertology.reproduce.plan import Combine, ReproductionOptions, RunStudy, StepPlan
from bertology.reproduce.planner import plan_paper

PAPER = """\
name: some-paper
title: A paper
citation: A 2020.
address: https://example.org
about: Heads of several languages.
plan:
  languages: [de, ja]
  corpora:
    parallel: [{{corpus: pud, limit: 50, parameters: {{seed: 3}}}}]
  steps:
    - for_each_language:
        over: {over}
        steps:
          - {step}
    - {{combine: languages, of: [map-types], over: languages}}
sections: []
"""
STEP = "{study: map-types}"


def plan(languages: tuple[str, ...] = (), over: str = "parallel", step: str = STEP) -> StepPlan:
    text = PAPER.format(over=over, step=step)
    paper = parse_paper(text, label="paper.yaml", functions="bertology")
    shape = Shape(layers=2, heads=2, hidden=16, head_size=8, mlp=32)
    return plan_paper(paper, ReproductionOptions("m", languages=languages), shape)


def test_a_study_is_run_over_each_language() -> None:
    de, ja, joined = plan().steps
    assert isinstance(de, RunStudy)
    assert (de.key, de.data.languages, de.data.title) == ("map-types@pud:de", "de", "German")
    assert (de.data.limit, de.parameters) == (50, {"seed": 3})
    assert ja.key == "map-types@pud:ja"
    assert isinstance(joined, Combine)
    assert joined.results == (de.key, ja.key)
    assert [step.key for step in plan(("fin", "ko")).steps[:2]] == [
        "map-types@pud:fi",
        "map-types@pud:ko",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"over": "nothing"}, "corpus of the plan"),
        ({"step": "{finetune: {}}"}, "be studies that name no corpus of their own"),
        ({"step": "{study: map-types, over: parallel}"}, "be studies that name no corpus"),
    ],
)
def test_what_is_done_for_each_language_is_a_study_over_its_texts(
    given: dict[str, str], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        plan(**given)


def test_results_know_languages_and_whether_texts_are_translations() -> None:
    def corpus(code: str, items: str) -> Corpus:
        made = [
            Example(f"{code}/{i}", "text", annotations={"language": code, "item": i}) for i in items
        ]
        return Corpus("c", made, frozenset({Field.TEXT, Field.LANGUAGE, Field.ITEM}))

    de, ja = in_languages(corpus("de", "abc")), in_languages(corpus("ja", "abc"))
    assert (de["languages"], ja["languages"]) == (["de"], ["ja"])
    assert de["items"] == ja["items"]
    assert in_languages(corpus("de", "acb"))["items"] != de["items"]
    assert in_languages(Corpus.of_texts(["one"])) == {}
