"""The checks that every study's parameters go through, with one wording."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from bertology.errors import ParameterError

if TYPE_CHECKING:
    from bertology.studies.study import Study

__all__ = ["check_parameters"]


def check_parameters(study: Study[Any]) -> None:
    """Refuse a value outside its declared choices or limits."""
    name = type(study).__name__
    for f in fields(study):
        value, meta = getattr(study, f.name), f.metadata
        if value is None:
            continue
        if "choices" in meta and value not in meta["choices"]:
            choices = ", ".join(repr(c) for c in meta["choices"])
            raise ParameterError(f.name, name, f"be one of {choices}", value)
        if "minimum" in meta and not value >= meta["minimum"]:
            raise ParameterError(f.name, name, f"be at least {meta['minimum']}", value)
        if "maximum" in meta and not value <= meta["maximum"]:
            raise ParameterError(f.name, name, f"be at most {meta['maximum']}", value)
