"""Papers read from the `paper.yaml` in their package, and from `sections/*.yaml` beside it.

A paper is a package that holds `paper.yaml` and, where a table or a figure needs code, a module
`exhibits` with the functions that the file names. Fields are those of `Paper` and its parts; the
plan is explained in `paper_plan`.

A section may stand in the field `sections`, or in a file of its own in the folder `sections`, read
in the order of their names. With its fields it has what only it needs: settings, corpora and steps
of the plan, claims, and what is not judged. A second file of the same `number` adds to the section.

Built-in papers are folders in `bertology/papers/`; another package brings one through the
entry-point group `bertology.papers` (its value names the package).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from inspect import isfunction
from types import MappingProxyType

from bertology.errors import DataError, UnknownNameError
from bertology.reproduce.paper import Exhibit, Paper, PaperSection, Unjudged
from bertology.reproduce.paper_plan import (
    CombineData,
    FineTuneData,
    LanguageSteps,
    Note,
    PaperPlan,
    StepData,
    StepsData,
    StudyData,
    TaskSteps,
)
from bertology.yaml_sections import Section, parse_section

_FILE = "paper.yaml"
_SECTIONS = "sections"
_STEPS = {
    "study": StudyData,
    "finetune": FineTuneData,
    "combine": CombineData,
    "steps": StepsData,
}
_GROUPS = {"for_each_task": TaskSteps, "for_each_language": LanguageSteps}


def read_paper(package: str) -> Paper:
    """The paper of a package."""
    try:
        folder = files(package)
        text = (folder / _FILE).read_text(encoding="utf-8")
        parts = {
            f"{package}/{_SECTIONS}/{part.name}": part.read_text(encoding="utf-8")
            for part in sorted(_parts(folder / _SECTIONS), key=lambda part: part.name)
        }
    except (ImportError, TypeError, OSError) as error:
        raise DataError(
            f"The package {package!r} holds no paper: {error}.",
            hint=f"It must be a package that holds {_FILE}.",
        ) from error
    label, functions = f"{package}/{_FILE}", f"{package}.exhibits"
    return parse_paper(text, label=label, functions=functions, parts=parts)


def _parts(folder: Traversable) -> list[Traversable]:
    """The files of sections."""
    if not folder.is_dir():
        return []
    return [part for part in folder.iterdir() if part.name.endswith(".yaml")]


def parse_paper(
    text: str, *, label: str, functions: str, parts: Mapping[str, str] = MappingProxyType({})
) -> Paper:
    """The paper in a YAML `text`; `functions` is the module that has the functions it names.

    `parts`: sections in files of their own, by what the file is called in errors.
    """
    root = parse_section(text, label=label)
    given = root.values(Paper, apart=("sections", "plan"))
    found = [] if parts and "sections" not in root else root.sections("sections")
    found += [parse_section(part, label=name) for name, part in parts.items()]
    plan = _plan([root.section("plan"), *(s.section("plan") for s in found if "plan" in s)])
    for section in found:
        for key in ("claims", "unjudged"):
            if key in section:
                kind = tuple[Unjudged, ...] if key == "unjudged" else tuple[str, ...]
                given[key] = (*given.get(key, ()), *section.read(key, kind))
    return root.build(Paper, {**given, "plan": plan, "sections": _sections(found, plan, functions)})


def _sections(
    given: Sequence[Section], plan: PaperPlan, functions: str
) -> tuple[PaperSection, ...]:
    """Sections in their order; what has the number of an earlier one adds to it."""
    found: dict[str, PaperSection] = {}
    for section in given:
        number = section.text("number")
        exhibits = tuple(_exhibit(e, functions) for e in section.sections("exhibits"))
        differs = tuple(_notes(section, plan)) if "differs" in section else ()
        apart = ("exhibits", "differs", "plan", "claims", "unjudged")
        if (before := found.get(number)) is not None:
            section.only(("number", *apart))
            exhibits, differs = (*before.exhibits, *exhibits), (*before.differs, *differs)
            found[number] = replace(before, exhibits=exhibits, differs=differs)
        else:
            own = section.values(PaperSection, apart=apart)
            found[number] = PaperSection(**own, exhibits=exhibits, differs=differs)
    return tuple(found.values())


def _exhibit(section: Section, functions: str) -> Exhibit:
    named = ("our_table", "joint_figure")
    given = section.values(Exhibit, apart=named)
    found = {key: _function(section, key, functions) for key in named if key in section}
    return section.build(Exhibit, {**given, **found})


def _function(section: Section, key: str, functions: str) -> Callable[..., object]:
    name, module = section.text(key), import_module(functions)
    known = [n for n, made in vars(module).items() if isfunction(made) and not n.startswith("_")]
    if name not in known:
        unknown = UnknownNameError(f"function of {functions}", name, known)
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


def _plan(plans: Sequence[Section]) -> PaperPlan:
    """The plan of the paper, and what its sections add to it."""
    whole, *of_sections = plans
    given = {**whole.values(PaperPlan, apart=("steps",)), "steps": _steps(whole)}
    made = whole.build(PaperPlan, given)
    for plan in of_sections:
        own = plan.values(PaperPlan, without=("tasks", "languages", "small_for"), apart=("steps",))
        for key, named in own.items():  # settings and corpora
            before = given.get(key, {})
            for name in before.keys() & named.keys():
                raise plan.section(key).wrong(name, f"{name!r} is also given elsewhere")
            given[key] = {**before, **named}
        given["steps"] += _steps(plan) if "steps" in plan else ()
        made = plan.build(PaperPlan, given)
    return made


def _steps(section: Section) -> tuple[StepData, ...]:
    return tuple(_step(step) for step in section.sections("steps"))


def _step(section: Section) -> StepData:
    kinds = [key for key in (*_STEPS, *_GROUPS) if key in section]
    if len(kinds) != 1:
        names = ", ".join((*_STEPS, *_GROUPS))
        raise section.wrong(None, f"a step must have exactly one of these fields: {names}")
    (kind,) = kinds
    made: StepData
    if kind in _GROUPS:
        section.only([kind])
        group = section.section(kind)
        given = group.values(_GROUPS[kind], apart=("steps",))
        made = group.build(_GROUPS[kind], {**given, "steps": _steps(group)})
    else:
        made = section.make(_STEPS[kind])
    return made
