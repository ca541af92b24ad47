"""Papers as data: a second one costs a YAML file, and its mistakes are told with their line."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bertology import registry
from bertology.errors import DataError
from bertology.model.shape import Shape
from bertology.registry import Registry
from bertology.reproduce import PAPERS
from bertology.reproduce.paper import Paper, ResultsByData, TextTable
from bertology.reproduce.paper_files import parse_paper, read_paper
from bertology.reproduce.plan import Combine, FineTune, ReproductionOptions, RunStudy, StepPlan
from bertology.reproduce.planner import plan_paper

SHAPE = Shape(layers=2, heads=2, hidden=16, head_size=8, mlp=32)
HERE = __name__  # whose functions the papers here name

SMALL = """\
name: some-paper
title: A paper
citation: A 2020.
address: https://example.org
about: A study of one corpus, without tasks.
plan:
  settings:
    texts: {full: 500, option: examples}
  corpora:
    words: [{corpus: grammar, limit: $texts}]
  steps:
    - {study: relation-heads, over: words, parameters: {relation: subject}}
    - {combine: head-profile, of: [relation-heads], over: all results}
sections:
  - number: "3"
    title: Heads
    did: They looked.
    found: They found.
    exhibits:
      - study: relation-heads
        caption: Ours.
        published: Theirs.
        published_table: {columns: [relation, head], rows: [[subject, "8-10"]]}
        our_table: a_table
        figures: [weights]
    differs:
      - We used {braces} and the grammar.
      - {when: {corpus: words, named: grammar}, text: Its sentences are short.}
      - {when: {corpus: words, named: ud-ewt}, text: Its sentences are long.}
"""

WITH_TASKS = """\
  tasks: [grammar-paraphrase]
  small_for: grammar*
  settings:
    texts: {full: 500, small: 50, option: examples}
    epochs: {full: 3, option: epochs}
  corpora:
    words: [{corpus: ud-ewt}, {corpus: grammar, limit: 600, per_example: 2}]
  steps:
    - for_each_task:
        use: {limit: $texts}
        steps:
          - {finetune: {epochs: $epochs}, use: {limit: 9, train_limit: $texts}}
          - {study: head-ablation, fine_tuned: true}
    - {study: relation-heads, over: words, parameters: {relation: subject}}
    - {combine: head-profile, of: [head-ablation, relation-heads], min_tasks: 1}
"""


def a_table(results: ResultsByData) -> TextTable:
    return TextTable(("data",), tuple((title,) for title in results))


def paper(text: str = SMALL) -> Paper:
    return parse_paper(text, label="paper.yaml", functions=HERE)


def plan(text: str = SMALL, **options: int) -> StepPlan:
    return plan_paper(paper(text), ReproductionOptions("some-model", **options), SHAPE)  # type: ignore[arg-type]


def with_tasks() -> str:
    first, last = SMALL.index("  settings:"), SMALL.index("sections:")
    return SMALL[:first] + WITH_TASKS + SMALL[last:]


def test_the_example_of_the_documentation_is_a_paper() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "reproduce.md"
    (snippet,) = re.findall(r"^```yaml\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)
    assert [step.key for step in plan(snippet).steps] == ["relation-heads@grammar"]


@pytest.mark.parametrize("name", PAPERS.names())
def test_every_paper_that_comes_along_is_whole(name: str) -> None:
    found = PAPERS.get(name)
    assert found.name == name
    assert found.address.startswith("https://")
    assert len({s.number for s in found.sections}) == len(found.sections)


def test_a_paper_without_tasks_is_one_file() -> None:
    assert paper().sections[0].exhibits[0].our_table is a_table
    made = plan()
    study, combined = made.steps
    assert isinstance(study, RunStudy)
    assert (study.key, study.data.limit) == ("relation-heads@grammar", 500)
    assert isinstance(combined, Combine)
    assert (combined.key, combined.results) == (
        "head-profile@all results",
        ("relation-heads@grammar",),
    )
    assert made.tasks == ()
    assert made.notes == {"3": ("We used {braces} and the grammar.", "Its sentences are short.")}
    assert plan(examples=40).steps[0].data.limit == 40


def test_settings_depend_on_the_corpus_and_the_options() -> None:
    tuning, ablation, relations, combined = plan(with_tasks()).steps
    assert isinstance(tuning, FineTune)
    assert (tuning.epochs, tuning.data.limit, tuning.data.train_limit) == (3, 9, 50)
    assert isinstance(ablation, RunStudy)
    assert (ablation.fine_tuned_by, ablation.data.limit) == (tuning.key, 50)
    assert relations.data.limit == 600
    assert isinstance(combined, Combine)
    assert combined.results == (ablation.key, relations.key)
    few = plan(with_tasks(), examples=8, epochs=1).steps
    assert [step.data.limit for step in few[:3]] == [9, 8, 16]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("limit: $texts", "limit: $text", "Unknown setting '$text'"),
        ("option: examples", "option: exampels", "Unknown option 'exampels'"),
        ("full: 500", "fit: nobody, full: 500", "Unknown way to fit a setting 'nobody'"),
        ("over: words, p", "over: word, p", "Unknown corpus of the plan 'word'"),
        ("{corpus: grammar, ", "{corpora: grammar, ", "'plan.corpora.words[0].corpora'"),
        ("[{corpus: grammar, limit: $texts}]", "[]", "must name one corpus at least"),
        ("- {study: rel", "- {finetune: {}, study: rel", "line 12: a step must have exactly one"),
        ("- {combine: head-profile, of: [relation-heads], over: all results}",
         "- {finetune: {}}", "must be in for_each_task"),
        ("our_table: a_table", "our_table: a_tabel", "line 24: Unknown function of"),
        ("corpus: words, named: u", "corpus: word, named: u", "line 29: Unknown corpus of the"),
        ("when: {corpus: words, named: ud", "if: {corpus: words, named: ud", "differs[2].if'"),
        ("published: Theirs.", "published: Theirs.\n        more: [x]", "exhibits[0].more'"),
        ("title: A paper\n", "", "line 1: the field 'title' is missing"),
        ('number: "3"', "number: 3", "line 15: 'sections[0].number' must be text"),
    ],
)  # fmt: skip
def test_mistakes_are_told(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(DataError) as caught:
        paper(SMALL.replace(old, new))
    assert str(caught.value).startswith("paper.yaml, line ")
    assert message in str(caught.value)


PART = """\
number: "4"
title: Words
did: They looked again.
found: They found more.
claims: [some-claims]
plan:
  settings:
    few: {full: 50}
  corpora:
    others: [{corpus: grammar-senses, limit: $few}]
  steps:
    - {study: word-senses, over: others}
exhibits:
  - {study: word-senses, caption: Ours., published: Theirs.}
"""
MORE = """\
number: "4"
plan: {steps: [{study: anisotropy, over: words}]}
exhibits:
  - {study: anisotropy, caption: Ours., published: Theirs.}
differs: [Their text.]
unjudged: [{statement: It is so., section: "4", why: It is an opinion.}]
"""


def with_parts(*parts: str) -> Paper:
    named = {f"part{i}.yaml": part for i, part in enumerate(parts, 1)}
    return parse_paper(SMALL, label="paper.yaml", functions=HERE, parts=named)


def test_sections_may_stand_in_files_of_their_own() -> None:
    found = with_parts(PART, MORE)
    assert [s.title for s in found.sections] == ["Heads", "Words"]
    words = found.sections[1]
    assert [e.study for e in words.exhibits] == ["word-senses", "anisotropy"]
    assert [note.text for note in words.differs] == ["Their text."]
    assert found.claims == ("some-claims",)
    assert [u.why for u in found.unjudged] == ["It is an opinion."]
    keys = [s.key for s in plan_paper(found, ReproductionOptions("some-model"), SHAPE).steps]
    assert keys[2:] == ["word-senses@grammar-senses", "anisotropy@grammar"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("few: {full", "texts: {full", "part1.yaml, line 8: 'texts' is also given elsewhere"),
        ("limit: $few", "limit: $fewer", "part1.yaml, line 7: Unknown setting '$fewer'"),
        ("  settings:", "  tasks: [a]\n  settings:", "part1.yaml, line 7: unknown field 'plan.tas"),
        ("title: Words\n", "", "part1.yaml, line 1: the field 'title' is missing"),
    ],
)
def test_mistakes_in_such_files_are_told(old: str, new: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        with_parts(PART.replace(old, new))
    assert message in str(caught.value)
    with pytest.raises(DataError, match=r"part2.yaml, line 2: unknown field 'title'"):
        with_parts(PART, MORE.replace("plan:", "title: Words\nplan:"))


def test_another_package_brings_a_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "brought_paper"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "paper.yaml").write_text(SMALL.replace("        our_table: a_table\n", ""))
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("some-paper", "brought_paper", "bertology.papers")
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    papers: Registry[Paper] = Registry(
        "paper", group="bertology.papers", builtin=dict, load=read_paper
    )
    assert papers.get("some-paper").title == "A paper"
    with pytest.raises(DataError, match="holds no paper"):
        read_paper("bertology.results")
