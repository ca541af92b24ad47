"""Papers reproduced: what is run, in which order, and the page that shows it beside the paper.

A paper is YAML: its sections, exhibits with the published tables, and the plan (which studies on
which data with which parameters); `paper_files` reads it, `paper_plan` explains the plan's
language. The planner makes steps for the data at hand; `verify` keeps the steps that chosen claims
need.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from bertology import papers
from bertology.registry import Registry

if TYPE_CHECKING:
    from bertology.reproduce.paper import Paper


def _built_in() -> Mapping[str, str]:
    folders = [f for f in files(papers.__name__).iterdir() if (f / "paper.yaml").is_file()]
    return {f.name.replace("_", "-"): f"{papers.__name__}.{f.name}" for f in folders}


def _load(package: str) -> Paper:
    from bertology.reproduce.paper_files import read_paper

    return read_paper(package)


PAPERS: Registry[Paper] = Registry("paper", group="bertology.papers", builtin=_built_in, load=_load)
