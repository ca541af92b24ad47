"""What a study asks, how, and where it ends, read from its own description."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

from bertology.report.atlas.naming import portable_name, shortened
from bertology.results.provenance import Provenance

_LIMIT = "limit"
_PARTS = re.compile(r"\b(Method|Source|Limits): ")
_DOCS_PAGE = re.compile(r"\bdocs/[\w/.-]+\.md\b")  # the page is read where no such file is


@dataclass(frozen=True)
class About:
    """A study in words; parts that its description does not have are empty."""

    question: str = ""
    method: str = ""
    source: str = ""
    limits: str = ""
    defaults: dict[str, object] = field(default_factory=dict)  # of its parameters
    options: dict[str, str] = field(default_factory=dict)  # what each is called on the command line
    task: bool = False  # whether its data have a task
    runs: bool = False  # whether `bertology run` knows it


Describe = Callable[[str], About]
"""Study to what is known of it; an empty one for a study that is not installed here."""


def read_about(
    doc: str | None,
    *,
    defaults: dict[str, object] | None = None,
    options: dict[str, str] | None = None,
    task: bool = False,
) -> About:
    """From a study's docstring: the question, then what follows `Method:` and the like."""
    text = " ".join(inspect.cleandoc(doc or "").split())
    text = _DOCS_PAGE.sub("the documentation", text)
    first, *rest = _PARTS.split(text)
    found = dict(zip(rest[::2], rest[1::2], strict=True))
    method, source, limits = (found.get(n, "").strip() for n in ("Method", "Source", "Limits"))
    return About(
        first.strip(),
        method,
        source,
        limits,
        defaults=defaults or {},
        options=options or {},
        task=task,
        runs=defaults is not None,
    )


def commands_of(provenance: Provenance, about: About) -> list[str]:
    """The command that made a result, and the one that makes it alone, without machine paths."""
    made = [] if provenance.command is None else [shortened(provenance.command)]
    if about.runs and not any(c.startswith("bertology run ") for c in made):
        made.append(_alone(provenance, about))
    return made


def _alone(provenance: Provenance, about: About) -> str:
    words = ["bertology run", provenance.study]
    words.append(f"--model {shlex.quote(portable_name(str(provenance.model.get('name'))))}")
    corpus = provenance.corpus
    if corpus is not None:
        words.append(f"--{'task' if about.task else 'corpus'} {shlex.quote(str(corpus['name']))}")
        if corpus.get("split") not in (None, "validation"):
            words.append(f"--split {corpus['split']}")
    said = {} if corpus is None else {_LIMIT: f"--{_LIMIT} {corpus.get('size')}"}
    for name, value in provenance.parameters.items():
        if value != about.defaults.get(name):
            option = about.options.get(name, name.replace("_", "-"))
            said[option] = _option(f"--{option}", value)
    return " ".join([*words, *said.values()])


def _option(option: str, value: object) -> str:
    if isinstance(value, bool):
        return option if value else option.replace("--", "--no-", 1)
    shown = ",".join(map(str, value)) if isinstance(value, list) else portable_name(str(value))
    return f"{option} {shlex.quote(shown)}"
