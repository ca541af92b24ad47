"""The words of a command that reads a corpus again, from what the corpus knows of its origin."""

from __future__ import annotations

import os
from collections.abc import Mapping

from bertology.data.loading import data_root


def reading_words(origin: Mapping[str, object]) -> tuple[str, dict[str, str]]:
    """What a command calls the data, and its options; "" where nothing is known of them.

    All of them, so that a proposed command does what it says. What is usual is left out.
    """
    # Switches of the grammar are true or false; no command can turn them off, so all are on.
    rest = {n: value for n, value in origin.items() if value is not None and value is not True}
    if "name_or_path" not in rest:
        return "", {}
    name = nearby(str(rest.pop("name_or_path")))
    labels, said = rest.pop("labels", None), dict[str, str]()
    rest.pop("seed", None)  # commands draw by the same one
    split, limit, root = (rest.pop(n, None) for n in ("split", "limit", "root"))
    if split not in (None, "validation"):
        said["--split"] = str(split)
    if limit is not None:
        said["--limit"] = str(limit)
    if root is not None and str(root) != str(data_root().resolve()):
        said["--root"] = nearby(str(root))
    if "languages" in rest:
        chosen = rest.pop("languages")
        said["--languages"] = ",".join(chosen) if isinstance(chosen, list | tuple) else str(chosen)
    if rest:
        said["--columns"] = ",".join(f"{name}={value}" for name, value in rest.items())
    if isinstance(labels, Mapping):
        said["--labels"] = ",".join(f"{name}={value}" for name, value in labels.items())
    return name, said


def nearby(name: str) -> str:
    """A path below the folder one is in, from there; anything else as it is."""
    here = f"{os.getcwd()}{os.sep}"
    return name.removeprefix(here) if os.path.exists(name) else name
