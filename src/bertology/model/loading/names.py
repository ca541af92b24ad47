"""Where the model of a given name is: bundled, in a folder, on the hub, or a training step.

`NAME@STEP` is a step of a bundled model or of a folder. Steps are in one of two places:

    FOLDER/steps/step-00001000.safetensors    compressed, beside the model (`loading/steps.py`)
    RUN/checkpoints/step-00001000/            whole folders, as pre-training writes them; the
                                              model itself is then RUN/model

The steps of a bundled model lie beside it in a checkout. Installed, they are a package of their
own, the extra `steps`: `bertology_steps/NAME/step-00001000.safetensors`.

For a hub id, what follows the @ is a revision: a branch, a tag or a commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from bertology.bundled import CHECKPOINTS
from bertology.errors import MissingExtraError, ModelError, UnknownNameError
from bertology.plain_files import local_path

DEFAULT_MODEL = "bertology-mini"  # the model when none is named; it is bundled

STEPS = "steps"  # the folder of compressed steps beside a model
_STEPS_PACKAGE = "bertology_steps"  # the wheel that carries steps of bundled models
_RUN_STEPS = "checkpoints"  # the folder of whole steps in a pre-training run
_STEP = re.compile(r"step-(\d+)")


@dataclass(frozen=True)
class Location:
    """Where the parts of a model are read from."""

    source: str  # a folder, or a hub id
    revision: str | None = None  # of a hub id
    weights: Path | None = None  # a compressed step, used instead of the folder's weights
    home: str | None = None  # the folder of the finished model that a whole step belongs to


def bundled_models() -> dict[str, Path]:
    """Checkpoints that come with the package."""
    return {p.parent.name: p.parent for p in sorted(CHECKPOINTS.glob("*/config.json"))}


def step_name(step: int) -> str:
    """The name of a step's file or folder, without a suffix; sorted by name is sorted by step."""
    return f"step-{step:08d}"


def steps(name: str = DEFAULT_MODEL) -> list[int]:
    """The training steps of a bundled model or a folder; `load(f"{name}@{step}")` loads one."""
    folder = _folder_of(name)
    if folder is None:
        _hub_id(name)  # an error for what looks like a folder or a misspelt bundled model
        raise ModelError(
            f"The steps of {name!r} are not known: it is neither bundled nor a folder here.",
            hint="For a model on the hub, name a revision: 'owner/model@revision'.",
        )
    return list(_steps_of(name, folder))


def _steps_of(name: str, folder: Path) -> dict[int, Path]:
    """The steps in a folder; an error where a bundled model's are not installed."""
    found = steps_in(folder)
    if not found and name in bundled_models():
        raise MissingExtraError("steps", needed_for=f"An earlier training step of {name!r}")
    return found


def steps_in(folder: Path) -> dict[int, Path]:
    """The steps in a model's folder or a run's folder, each with its file or folder."""
    runs = [folder / _RUN_STEPS]
    if folder.absolute().name == "model":  # RUN/model and RUN/checkpoints are side by side
        runs.append(folder.absolute().parent / _RUN_STEPS)
    whole = [p.parent for run in runs for p in run.glob("step-*/config.json")]
    places = (folder / STEPS, *_installed_steps(folder))
    compressed = [path for place in places for path in place.glob("step-*.safetensors")]
    found = {}
    for path in (*whole, *compressed):
        if match := _STEP.fullmatch(path.name.removesuffix(".safetensors")):
            found[int(match[1])] = path
    return dict(sorted(found.items()))


def _installed_steps(folder: Path) -> list[Path]:
    """Where the extra `steps` keeps those of a bundled model, if it is installed."""
    spec = find_spec(_STEPS_PACKAGE) if folder.parent == CHECKPOINTS else None
    places = spec.submodule_search_locations if spec is not None else None
    return [Path(place) / folder.name for place in places or ()]


def home_of(name: str) -> Path | None:
    """The folder of the finished model, for a bundled model, a model's folder or a run's folder."""
    folder = _folder_of(name)
    home = None if folder is None else _home_of(folder)
    return None if home is None else Path(home)


def locate(name: str) -> Location:
    """Where a model is; a name that is neither bundled nor a folder must be a hub id."""
    folder = _folder_of(name)
    if folder is not None:
        return Location(_checked(folder))
    base, mark, tag = name.rpartition("@")
    if not (mark and base) or (_looks_like_path(base) and "/" in tag):
        return Location(_hub_id(name))
    folder = _folder_of(base)
    if folder is None:
        return Location(_hub_id(base), revision=tag or None)
    found = _steps_of(base, folder)
    if not re.fullmatch(r"[0-9]{1,18}", tag) or int(tag) not in found:
        listed = ", ".join(map(str, found))
        raise ModelError(
            f"{base!r} has no training step {tag!r:.60}.",
            hint=f"Its steps: {listed}." if found else "It has no earlier steps.",
        )
    path = found[int(tag)]
    if path.is_dir():
        return Location(str(path), home=_home_of(folder))
    return Location(_checked(folder), weights=path)


def _home_of(folder: Path) -> str | None:
    """The model in a model's folder or a run's folder; None while the run is not finished."""
    homes = [p for p in (folder, folder / "model") if (p / "config.json").is_file()]
    return str(homes[0]) if homes else None


def _folder_of(name: str) -> Path | None:
    path = bundled_models().get(name) or local_path(name, error=ModelError)
    return path if path.is_dir() else None


def _looks_like_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") > 1


def _hub_id(name: str) -> str:
    """The name as a hub id; an error where it looks like a file, a folder or a bundled model."""
    path = local_path(name, error=ModelError)
    if path.is_file():
        raise ModelError(
            f"{name!r} is a file; a model is a folder with config.json and model.safetensors.",
            hint=f"Give the folder: {path.parent}",
        )
    # Fine-tuning puts the model of each seed into a folder of such a name; no hub id ends so.
    of_a_seed = path.name.startswith("seed-") and path.parent.is_dir()
    if _looks_like_path(name) or of_a_seed:
        beside = [str(p) for p in path.parent.glob("*") if p.is_dir()]
        near = get_close_matches(str(path), beside, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"{path.parent} holds no such folder."
        raise ModelError(f"There is no model folder {name!r}.", hint=hint)
    bundled = bundled_models()
    if "/" not in name and get_close_matches(name, bundled, n=1, cutoff=0.75):
        raise UnknownNameError("bundled model", name, bundled)
    return name


def _checked(folder: Path) -> str:
    if (folder / "config.json").is_file():
        _refuse_pipes(folder)
        return str(folder)
    inside = sorted(str(path.parent) for path in folder.glob("*/config.json"))
    raise ModelError(
        f"{str(folder)!r} holds no config.json, so it is no Hugging Face model folder.",
        hint=f"Give the folder: {' or '.join(inside[:3])}"
        if inside
        else "Save a model there with model.save_pretrained(folder).",
    )


def _refuse_pipes(folder: Path) -> None:
    """Who opens a pipe waits for ever; the libraries below would do so."""
    for path in folder.iterdir():
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ModelError(f"{str(path)!r} is a pipe or a device, not a file.")
