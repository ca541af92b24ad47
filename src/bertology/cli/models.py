"""`bertology models`: the models that come along, and the training steps of any folder."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Annotated

import typer

from bertology.cli.console import examples, say, show_table

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Put `models` into the app."""
    app.command("models", epilog=examples("bertology models", "bertology models ./my-run/model"))(
        list_models
    )


def list_models(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders with models to list as well.")
    ] = None,
) -> None:
    """List the models that come along: shape, parameters, and the training steps they have."""
    from bertology.model.loading.names import bundled_models, locate

    found = dict(bundled_models())
    for folder in folders or []:
        found[str(folder)] = Path(locate(str(folder.absolute())).source)
    if not found:
        say("No model comes with this version. Give a folder to see what is in it.")
        return
    rows = [(name, *_shown(folder)) for name, folder in found.items()]
    show_table(("model", "family", "shape", "parameters", "steps"), rows)
    say("Load one as --model MODEL; an earlier training step as --model MODEL@STEP.")


def _shown(folder: Path) -> tuple[str, str, str, str]:
    """Family, shape, parameters and steps, read without torch."""
    from bertology.model.families import family_of
    from bertology.model.loading.names import steps_in

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    family = family_of(config["model_type"])
    stack = family.stacks[family.main_stack]
    # Families call the same number by different names; what a config leaves out is not guessed.
    width = next((config[k] for k in ("hidden_size", "dim", "d_model") if k in config), "?")
    shape = f"{config.get(stack.layers, '?')} layers × {config.get(stack.heads, '?')} heads × "
    steps = ", ".join(map(str, steps_in(folder)))
    return family.title, f"{shape}{width} wide", _parameters(folder), steps or "-"


def _parameters(folder: Path) -> str:
    """How many numbers the weights hold, from the heads of the files."""
    from safetensors import safe_open

    count = 0
    for path in sorted(folder.glob("model*.safetensors")):
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            count += sum(prod(file.get_slice(name).get_shape()) for name in names)
    return f"{count:,}" if count else "?"
