"""Plans of reproductions: what is run, in which order, on what is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import (
    BertologyError,
    CapabilityError,
    DataError,
    ParameterError,
    UnknownNameError,
)
from bertology.model.shape import Shape
from bertology.reproduce import PAPERS, planner
from bertology.reproduce.paper_plan import Setting
from bertology.reproduce.plan import (
    Combine,
    Data,
    FineTune,
    ReproductionOptions,
    RunStudy,
    StepPlan,
)
from bertology.reproduce.planner import is_made, plan_paper
from bertology.results.known_claims import load_claims
from bertology.studies import JOINS, STUDIES

SHAPE = Shape(layers=12, heads=12, hidden=192, head_size=16, mlp=768)


def plan(shape: Shape = SHAPE, *, paper: str = "dark-secrets", **options: Any) -> StepPlan:
    return plan_paper(PAPERS.get(paper), ReproductionOptions("some-model", **options), shape)


def test_without_options_all_is_made_on_the_spot() -> None:
    made = plan()
    assert [d.name for d in made.tasks] == ["grammar-entailment", "grammar-acceptability"]
    assert not made.missing
    used = {s.data.name for s in made.steps if not isinstance(s, Combine)}
    assert all(name.startswith("grammar") for name in used)
    assert any("FrameNet was not used" in text for text in made.notes["4.2"])


def test_the_steps_of_a_task_are_those_of_the_paper() -> None:
    """In order, with what they need; numbers that were published must not move."""
    steps = plan(tasks=("grammar-paraphrase",)).steps
    task = [step for step in steps if step.data.name == "grammar-paraphrase"]
    assert [step.key.partition("@")[0] for step in task] == [
        "finetune", "fine-tuning-starts", "map-types", "attention-change", "token-classes",
        "cls-attention", "head-ablation", "head-sets", "head-profile",
    ]  # fmt: skip
    assert [step.needs for step in task] == [
        *((), ()),
        *[("finetune@grammar-paraphrase",)] * 6,
        ("head-ablation@grammar-paraphrase",),
    ]
    starts, last = task[1], task[-1]
    assert isinstance(starts, RunStudy)
    assert starts.parameters == {
        "seeds": 3, "examples": 1000, "epochs": 1, "batch_size": 16, "learning_rate": 1.5e-4,
        "train_split": "train",
    }  # fmt: skip
    assert (starts.data.limit, starts.data.train_limit) == (200, None)
    assert (last.data.limit, last.data.train_limit) == (200, 3000)
    assert isinstance(last, Combine)
    assert last.results == (
        "head-ablation@grammar-paraphrase", "relation-heads@grammar",
        "map-types@grammar-paraphrase", "attention-change@grammar-paraphrase",
    )  # fmt: skip
    relations, links = steps[:2]
    assert isinstance(relations, RunStudy)
    assert relations.parameters == {"relation": "frame", "every": False}
    assert (relations.data.limit, links.data.limit) == (1100, 600)


def test_two_tasks_are_compared_whichever_results_are_missing() -> None:
    last = plan().steps[-1]
    assert isinstance(last, Combine)
    assert last.key == "task-comparison@all tasks"
    assert last.needs == ()
    assert set(last.results) <= {step.key for step in plan().steps}
    alone = plan(tasks=("grammar-paraphrase",)).steps
    assert all(getattr(step, "study", "") != "task-comparison" for step in alone)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("paper", PAPERS.names())
def test_every_study_takes_what_it_is_given(paper: str, quick: bool) -> None:
    for step in plan(paper=paper, quick=quick).steps:
        if isinstance(step, RunStudy):
            kind = STUDIES.get(step.study)
            given = dict(step.parameters) | (
                {step.base_model_as: "m"} if step.base_model_as else {}
            )
            kind(**given)
            # A study that needs a trained head is run on a model that has one.
            assert step.fine_tuned_by is not None or kind.needs.head in ("base", "mlm", "saved")


@pytest.mark.parametrize("name", PAPERS.names())
def test_every_claim_and_section_has_its_step(name: str) -> None:
    paper, made = PAPERS.get(name), plan(paper=name)
    asked = {e.study for s in paper.sections for e in s.exhibits}
    assert asked == {s.study for s in made.steps if not isinstance(s, FineTune)}
    own = [claim for claim in load_claims() if paper.makes(claim)]
    assert own
    for claim in own:
        if claim.study in JOINS and "reproduce" not in JOINS.get(claim.study).made_by:
            continue  # it takes results of several models, and a page is about one
        assert claim.study in asked, claim.id
        assert paper.sections_of(claim), claim.id


@pytest.mark.parametrize("name", ["nuggets", "primer"])
def test_surveys_run_on_what_comes_along_and_on_treebanks_where_there_are(name: str) -> None:
    """All is made on the spot; where a folder is given, a treebank and FrameNet are looked for."""
    made = plan(paper=name)
    assert not made.missing
    read = {s.data.name for s in made.steps if not isinstance(s, Combine)}
    last = {choices[-1].corpus for choices in PAPERS.get(name).plan.corpora.values()}
    assert read == last | {"grammar-entailment"}
    parallel = {"pud", "word-alignment", "clams-languages"} if name == "primer" else set()
    assert {corpus for corpus in read if not is_made(corpus)} == parallel  # no grammar makes these
    few = plan(paper=name, examples=20)
    assert max(s.data.limit or 0 for s in few.steps if isinstance(s, RunStudy)) <= 200
    looked = plan(paper=name, root="no such folder")
    assert {m.name for m in looked.missing} >= {"ud-ewt", "framenet"} | (
        {"clams", "lama-trex"} if name == "primer" else {"hans", "quail"}
    )


def test_corpora_that_fall_back_on_the_same_one_are_one_step() -> None:
    for steps in (plan(paper="primer").steps, plan(paper="primer", root="no such folder").steps):
        keys = [step.key for step in steps]
        assert len(keys) == len(set(keys))
        assert keys.count("edge-probes@grammar") == 1
        assert all(
            keys.count(f"{study}@grammar-facts") == 1
            for study in ("facts", "name-guesses", "prompts")
        )
    paper, claims = PAPERS.get("primer"), {c.id: c for c in load_claims()}
    found = paper.sections_of(claims["primer-semantics.proto-roles-are-told"])
    assert [section.number for section in found] == ["4.2"]


def test_claims_of_others_in_a_survey_stand_where_their_study_does() -> None:
    paper = PAPERS.get("primer")
    claims = {c.id: c for c in load_claims()}
    for name, section in (("sep-is-a-no-op", "5.1"), ("no-head-parses-better-than-a-chain", "5.1"),
                          ("impact-trees-beat-the-right-chain", "4.1")):  # fmt: skip
        found = paper.sections_of(claims[f"primer-attention.{name}"])
        assert [s.number for s in found] == [section]
    assert paper.makes(claims["primer-semantics.entity-types-are-told"])
    names = paper.sections_of(claims["primer-world.success-comes-from-names"])
    assert [s.number for s in names] == ["4.3"]
    assert not paper.makes(claims["primer-training.width-improves-tasks"])


def test_options_reach_the_steps() -> None:
    steps = plan(examples=30, train_examples=40, epochs=2, seeds=5).steps
    starts = next(s for s in steps if s.key == "fine-tuning-starts@grammar-entailment")
    assert isinstance(starts, RunStudy)
    assert (starts.parameters["seeds"], starts.parameters["examples"]) == (5, 40)
    taught = next(s for s in steps if isinstance(s, FineTune))
    assert (taught.epochs, taught.data.limit, taught.data.train_limit) == (2, 30, 40)
    assert all((s.data.limit or 0) <= 30 for s in steps if s.data.name != "grammar")


@pytest.mark.parametrize("paper", PAPERS.names())
def test_a_quick_plan_has_all_steps_and_less_data(paper: str) -> None:
    whole, quick = plan(paper=paper).steps, plan(paper=paper, quick=True).steps
    assert [s.key for s in quick] == [s.key for s in whole]
    for many, few in zip(whole, quick, strict=True):
        assert (few.data.limit or 0) <= (many.data.limit or 10**9)
        if isinstance(many, FineTune) and isinstance(few, FineTune):
            assert (few.data.train_limit or 0) < (many.data.train_limit or 0)
    asked = plan(paper=paper, quick=True, examples=120, train_examples=130).steps
    for taught in asked:
        if isinstance(taught, FineTune):  # the reader's own numbers
            assert (taught.data.limit, taught.data.train_limit) == (120, 130)


def test_quick_reads_a_quarter_of_the_small_plan_also_of_large_data() -> None:
    asked = ReproductionOptions("some-model", quick=True)
    for setting, value in (
        (Setting(1000, 300, option="examples"), 75),
        (Setting(None, 3000, option="train_examples"), 750),
        (Setting(1000, option="examples"), 250),
        (Setting(3, 1, option="epochs"), 1),
        (Setting(1000, 300, quick=120, option="examples"), 120),
        (Setting(None, 600, option="train_examples", fit="enough_to_prune"), 200),
    ):
        assert setting.value(False, asked, SHAPE) == value


def test_small_models_have_small_sets_and_wide_ones_their_own_rate() -> None:
    for shape, sizes, rate in (
        (Shape(2, 2, 16, 8, 32), (1, 2), 1.5e-4),
        (Shape(12, 12, 768, 64, 3072), (1, 2, 4, 8, 12), None),
    ):
        steps = {s.key: s for s in plan(shape).steps}
        sets, taught = steps["head-sets@grammar-entailment"], steps["finetune@grammar-entailment"]
        assert isinstance(sets, RunStudy)
        assert isinstance(taught, FineTune)
        assert sets.parameters["sizes"] == sizes
        assert taught.learning_rate == rate


def test_what_is_not_here_is_told_and_left_out(tmp_path: Any) -> None:
    made = plan(tasks=("grammar-paraphrase", "mrpc"), root=str(tmp_path))
    assert [d.name for d in made.tasks] == ["grammar-paraphrase"]
    assert made.missing[0].name == "mrpc"
    with pytest.raises(DataError, match="None of the tasks is on this machine"):
        plan(tasks=("mrpc", "rte"), root=str(tmp_path))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tasks": ("mrpx",)}, UnknownNameError),
        ({"tasks": ("grammar",)}, CapabilityError),
        ({"tasks": ("grammar-paraphrase",) * 2}, ParameterError),
        ({"examples": 1}, ParameterError),
        ({"seeds": 0}, ParameterError),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], error: type[BertologyError]) -> None:
    with pytest.raises(error):
        plan(**options)


def test_samples_stand_in_and_are_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, *, split: str, **more: Any) -> Corpus:
        if split == "train":
            raise DataError("no such file")
        return load_corpus("grammar-paraphrase", limit=2)

    monkeypatch.setattr(planner, "load_corpus", load)
    found = planner.find_task("qnli")
    assert isinstance(found, Data)
    assert (found.train_split, found.split) == ("train_sample", "validation")
    assert found.title == "qnli (sample)"


def test_a_plan_is_in_order() -> None:
    data = Data("x")
    taught, asked = FineTune(data), RunStudy("head-ablation", data, fine_tuned_by="finetune@x")
    joined = Combine("head-profile", data, (asked.key, "relation-heads@y"))
    assert list(StepPlan((data,), (taught, asked, joined)).steps_of("head-ablation")) == [asked]
    with pytest.raises(ParameterError, match="come after what they need"):
        StepPlan((data,), (asked, taught))
    with pytest.raises(ParameterError, match="different keys"):
        StepPlan((data,), (taught, replace(taught, epochs=1)))
