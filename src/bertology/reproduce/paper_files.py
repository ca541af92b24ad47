"""Papers read from the `paper.yaml` in their package.

A paper is a package that holds `paper.yaml` and, where a table or a figure needs code, a module
`exhibits` with the functions that the file names. Fields are those of `Paper` and its parts; the
plan is explained in `paper_plan`. Built-in papers are folders in `bertology/papers/`; another
package brings one through the entry-point group `bertology.papers` (its value names the package).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.resources import files

from bertology.errors import DataError, UnknownNameError
from bertology.reproduce.paper import Exhibit, Paper, PaperSection
from bertology.reproduce.paper_plan import (
    CombineData,
    FineTuneData,
    Note,
    PaperPlan,
    StepData,
    StepsData,
    StudyData,
    TaskSteps,
)
from bertology.yaml_sections import Section, parse_section

_FILE = "paper.yaml"
_STEPS = {
    "study": StudyData,
    "finetune": FineTuneData,
    "combine": CombineData,
    "steps": StepsData,
}
_FOR_EACH_TASK = "for_each_task"


def read_paper(package: str) -> Paper:
    """The paper of a package."""
    try:
        text = (files(package) / _FILE).read_text(encoding="utf-8")
    except (ImportError, TypeError, OSError) as error:
        raise DataError(
            f"The package {package!r} holds no paper: {error}.",
            hint=f"It must be a package that holds {_FILE}.",
        ) from error
    return parse_paper(text, label=f"{package}/{_FILE}", functions=f"{package}.exhibits")


def parse_paper(text: str, *, label: str, functions: str) -> Paper:
    """The paper in a YAML `text`; `functions` is the module that has the functions it names."""
    root = parse_section(text, label=label)
    given = root.values(Paper, apart=("sections", "plan"))
    plan = _plan(root.section("plan"))
    sections = tuple(_section(s, plan, functions) for s in root.sections("sections"))
    return root.build(Paper, {**given, "plan": plan, "sections": sections})


def _section(section: Section, plan: PaperPlan, functions: str) -> PaperSection:
    given = section.values(PaperSection, apart=("exhibits", "differs"))
    exhibits = tuple(_exhibit(e, functions) for e in section.sections("exhibits"))
    differs = tuple(_notes(section, plan)) if "differs" in section else ()
    return PaperSection(**given, exhibits=exhibits, differs=differs)


def _exhibit(section: Section, functions: str) -> Exhibit:
    named = ("our_table", "joint_figure")
    given = section.values(Exhibit, apart=named)
    found = {key: _function(section, key, functions) for key in named if key in section}
    return section.build(Exhibit, {**given, **found})


def _function(section: Section, key: str, functions: str) -> Callable[..., object]:
    name, module = section.text(key), import_module(functions)
    if name not in module.__all__:
        unknown = UnknownNameError(f"function of {functions}", name, module.__all__)
        raise section.wrong(key, unknown.problem.rstrip("."), hint=unknown.hint)
    found: Callable[..., object] = getattr(module, name)
    return found


def _notes(section: Section, plan: PaperPlan) -> list[Note]:
    """Notes are plain text, or text with a condition."""
    notes = []
    for item in section.items("differs"):
        if isinstance(item, str):
            notes.append(Note(item))
            continue
        note = item.make(Note)
        when = item.section("when")
        known = {"setting": plan.settings, "unlike": plan.settings, "corpus": plan.corpora}
        for key, names in known.items():
            if key in when and when.text(key) not in names:
                unknown = UnknownNameError(f"{key} of the plan", when.text(key), names)
                raise when.wrong(key, unknown.problem.rstrip("."), hint=unknown.hint)
        notes.append(note)
    return notes


def _plan(section: Section) -> PaperPlan:
    given = section.values(PaperPlan, apart=("steps",))
    return section.build(PaperPlan, {**given, "steps": _steps(section)})


def _steps(section: Section) -> tuple[StepData, ...]:
    return tuple(_step(step) for step in section.sections("steps"))


def _step(section: Section) -> StepData:
    kinds = [key for key in (*_STEPS, _FOR_EACH_TASK) if key in section]
    if len(kinds) != 1:
        names = ", ".join((*_STEPS, _FOR_EACH_TASK))
        raise section.wrong(None, f"a step must have exactly one of these fields: {names}")
    if kinds == [_FOR_EACH_TASK]:
        section.only([_FOR_EACH_TASK])
        group = section.section(_FOR_EACH_TASK)
        given = group.values(TaskSteps, apart=("steps",))
        return TaskSteps(_steps(group), **given)
    made: StepData = section.make(_STEPS[kinds[0]])
    return made
