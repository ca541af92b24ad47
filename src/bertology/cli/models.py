"""`bertology models`: the bundled models, and those in folders of the user."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

from bertology.cli.command import command
from bertology.cli.console import say, show_table
from bertology.cli.typer_options import argument
from bertology.errors import ModelError
from bertology.plain_files import read_json


@dataclass(frozen=True, kw_only=True)
class ModelsOptions:
    """The arguments of `models`."""

    folders: list[Path] | None = argument("Folders with models to list as well.", None)


@command(
    "models",
    [ModelsOptions],
    examples=["bertology models", "bertology models ./my-run/model"],
)
def list_models(options: ModelsOptions) -> None:
    """List the bundled models: size, number of parameters, and training steps."""
    from bertology.model.loading.names import bundled_models, locate

    found = dict(bundled_models())
    for folder in options.folders or []:
        found[str(folder)] = Path(locate(str(folder.absolute())).source)
    if not found:
        say("No model is bundled with this version. Give a folder to list the model in it.")
        return
    rows = [(name, *_shown(folder)) for name, folder in found.items()]
    show_table(("model", "family", "shape", "parameters", "steps"), rows)
    say("Use one with --model MODEL, or an earlier training step of it with --model MODEL@STEP.")


def _shown(folder: Path) -> tuple[str, str, str, str]:
    """Family, shape, parameters and steps, read without torch."""
    from bertology.model.families import family_of
    from bertology.model.loading.names import bundled_models, steps_in
    from bertology.model.loading.own_type import family_name

    config = read_json(folder / "config.json", error=ModelError)
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise ModelError(
            f"{folder / 'config.json'} does not say which family the model is of.",
            hint='Add a line such as "model_type": "bert" to it.',
        )
    family = family_of(family_name(config["model_type"]))
    stack = family.stacks[family.main_stack]
    # Families have different names for the same number; one that is missing is not guessed.
    width = next((config[k] for k in ("hidden_size", "dim", "d_model") if k in config), "?")
    shape = f"{config.get(stack.layers, '?')} layers × {config.get(stack.heads, '?')} heads × "
    steps = ", ".join(map(str, steps_in(folder)))
    none = "in the extra `steps`" if folder in bundled_models().values() else "-"
    return family.title, f"{shape}{width} wide", _parameters(folder), steps or none


def _parameters(folder: Path) -> str:
    """The number of weights, read from the headers of the files."""
    from safetensors import SafetensorError, safe_open

    count = 0
    for path in sorted(folder.glob("model*.safetensors")):
        try:
            with safe_open(path, framework="numpy") as file:
                names = list(file.keys())
                count += sum(prod(file.get_slice(name).get_shape()) for name in names)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"The weights {path} are corrupt: {error}.") from error
    return f"{count:,}" if count else "?"
