"""The classical pipeline, from parts of speech to coreference, and tasks that show its steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping

PIPELINE: Mapping[str, tuple[str, ...]] = {
    "pos": ("pos", "tags"),
    "chunk": ("chunk-tag", "chunk"),
    "constituent": ("constituent",),
    "relation": ("arc-relation", "relation"),
    "entity": ("entity",),
    "role": ("role", "frame-element"),
    "coreference": ("coreference",),
}
"""Steps in their order, and the tasks that show each; the first that layers tell is compared."""
SEMANTIC = frozenset(
    {"entity", "role", "frame-element", "proto-role", "entity-relation", "coreference"}
)


def steps_told(tasks: Collection[str]) -> dict[str, str]:
    """Of each step of the pipeline the first of its tasks that is among these."""
    found: dict[str, str] = {}
    for step, names in PIPELINE.items():
        for name in names:
            if name in tasks:
                found.setdefault(step, name)
    return found
