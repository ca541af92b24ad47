"""Tables and figures of this paper that need code: those of the paper whose question it is."""

from __future__ import annotations

from bertology.papers.dark_secrets.exhibits import type_table, types_by_data

__all__ = ["type_table", "types_by_data"]
