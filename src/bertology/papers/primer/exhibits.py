"""The table of this survey that needs code; `paper.yaml` names the function."""

from __future__ import annotations

from bertology.papers.nuggets.exhibits import syntax_table

__all__ = ["syntax_table"]
