"""Claims read from YAML, strictly: a misspelt field is an error that names file and line.

A claim is data: one entry of a YAML file under `bertology/claims/`, or brought by another package
through the entry-point group `bertology.claims` (its value names a package that holds `*.yaml`).

    - id: dark-secrets.disabling-some-heads-hurts   # lower case, digits, dots and dashes
      aliases: [dark-secrets.some-heads-hurt]       # optional: ids it had before
      source: {paper: …, section: "4.6"}    # optional: page, figure, quote
      statement: …                          # one sentence, in our own words
      published: {text: …, values: {MRPC: 0.012}}
      study: head-ablation
      rule: {quantity: best_head_gain, relation: above, value: 0}   # above, below
      #     {quantity: …, relation: between, values: [0, 0.1]}      # between, outside
      #     margin: 0.005                   # of above and below: less than this does not matter;
      #                                     # never more than the source counts as an effect
      #     unit: points                    # or "%": readers see it times a hundred; fractions here
      explanation: …                        # one paragraph: what is tested, and what it means
      ours: true                            # optional: the paper does not say it; our question
      tasks: {only: [MRPC, RTE]}            # optional: the tasks it is said of; or {except: [QQP]}

Claims that differ in some words and numbers are one entry: `each` is a list of mappings, and names
in braces stand for their values in all other fields.

    - each: [{row: pkd, least: 1.3}, {row: tiny, least: 6}]
      id: primer-compression.{row}-smaller
      rule: {quantity: "{row}_fewer", relation: above, value: "{least}"}
      …
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable

from bertology.errors import DataError
from bertology.results.verdicts import Claim, Tasks
from bertology.yaml_sections import Section, parse_list

GROUP = "bertology.claims"
_ID = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")


@cache
def read_all_claims() -> tuple[Claim, ...]:
    """Built-in claims, then those of plugins; ids are unique over all of them."""
    claims, seen = list[Claim](), dict[str, str]()
    for label, text in _texts():
        for claim in parse_claims(text, label=label):
            for name in (claim.id, *claim.aliases):
                if name in seen:
                    raise DataError(
                        f"The claim {name!r} is in {seen[name]} and again in {label}.",
                        hint="Give one of them another id.",
                    )
                seen[name] = label
            claims.append(claim)
    return tuple(claims)


def _texts() -> Iterator[tuple[str, str]]:
    yield from _yaml_files(files("bertology") / "claims", prefix="claims/")
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        try:
            folder = files(entry.value)
        except (ImportError, TypeError) as error:
            raise DataError(
                f"The claims of the plugin {entry.name!r} cannot be found in the package "
                f"{entry.value!r}: {error}.",
                hint=f"The entry point in group {GROUP!r} must name a package that holds *.yaml.",
            ) from error
        yield from _yaml_files(folder, prefix=f"{entry.value}/")


def _yaml_files(folder: Traversable, *, prefix: str) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.iterdir(), key=lambda f: str(f.name)):
        if file.name.endswith((".yaml", ".yml")):
            yield prefix + file.name, file.read_text(encoding="utf-8")


def parse_claims(text: str, *, label: str) -> list[Claim]:
    """The claims in a YAML `text`; `label` names the file in error messages."""
    first: dict[str, int] = {}
    claims = []
    for section in _spread(parse_list(text, label=label, what="claims")):
        claim = _squeezed(_read(section))
        for name in (claim.id, *claim.aliases):
            if not _ID.fullmatch(name):
                must = "must be lower-case words joined by '.' or '-'"
                raise section.wrong("id", f"'id' {must}. Got {name!r} instead")
            if name in first:
                raise section.wrong(
                    None, f"the id {name!r} is given again, after line {first[name]}"
                )
            first[name] = section.line
        claims.append(claim)
    return claims


def _spread(sections: list[Section]) -> Iterator[Section]:
    """An entry with `each` is one claim for each row of it."""
    for section in sections:
        yield from section.for_each("each") if "each" in section else [section]


def _read(section: Section) -> Claim:
    given = section.values(Claim, apart=["tasks"])
    if "tasks" in section:
        # By hand: a field of a dataclass cannot be called `except`.
        tasks = section.section("tasks")
        tasks.only(["only", "except"])
        names = {name: tasks.read(name, tuple[str, ...]) for name in tasks}
        found = {"only": names.get("only", ()), "excepted": names.get("except", ())}
        given["tasks"] = section.build(Tasks, found)
    return section.build(Claim, given)


def _squeezed(claim: Claim) -> Claim:
    """Texts in one line each, however they were broken in the file."""
    quote = claim.source.quote
    return replace(
        claim,
        statement=_line(claim.statement),
        explanation=_line(claim.explanation),
        published=replace(claim.published, text=_line(claim.published.text)),
        source=replace(claim.source, quote=None if quote is None else _line(quote)),
    )


def _line(text: str) -> str:
    return " ".join(text.split())
