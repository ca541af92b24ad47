"""What a config says of the forms a model was given, and the modules that forms are about.

`bertology_compressed = [{"form": "low_rank", "ranks": {…}}, {"form": "quantised", …}]`: in the
order in which they were applied, for the later ones see what the earlier ones left. Modules are
named from the base model, so that the names are right under any head.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from bertology.errors import BertologyError, CapabilityError, ModelError
from bertology.model.added_parts import ADAPTERS, added_parts
from bertology.model.families import family_of

KEY = "bertology_compressed"
MAPS = ("all", "layers", "embeddings")


def written_forms(config: object) -> list[dict[str, Any]]:
    """The forms in the order of their application; each has at least a name."""
    written = getattr(config, KEY, None) or []
    fits = isinstance(written, list) and all(
        isinstance(one, dict) and isinstance(one.get("form"), str) for one in written
    )
    if not fits:
        raise misfit(
            f"it is {written!r:.80}", hint='It is a list, as in [{"form": "low_rank", …}].'
        )
    return [dict(one) for one in written]


def write_form(model: Any, form: str, **options: object) -> None:
    """Note in the config that a model now has this form."""
    setattr(model.config, KEY, [*written_forms(model.config), {"form": form, **options}])


def check_new(model: Any, form: str, *others: str) -> None:
    """Refuse a form that a model has already, or that goes with no other of these."""
    for one in written_forms(model.config):
        if one["form"] in (form, *others):
            raise CapabilityError(
                f"A model with {one['form'].replace('_', ' ')} cannot be given "
                f"{form.replace('_', ' ')}.",
                hint="Begin with a model without it.",
            )


def misfit(what: str, hint: str | None = None) -> ModelError:
    """The error for a config whose forms cannot be those of its model."""
    return ModelError(f"The config's {KEY!r} does not fit the model: {what}.", hint=hint)


def check_whole(name: str, value: object, least: int, most: int) -> int:
    """A whole number between two others, or an error that names it."""
    if type(value) is not int or not least <= value <= most:
        raise BertologyError(
            f"{name} must be a whole number from {least:,} to {most:,}, not {value!r:.60}."
        )
    return value


def named_maps(model: Any, which: str = "all") -> Iterator[tuple[str, nn.Linear | nn.Embedding]]:
    """The linear maps and tables of the base model that have their weights in full.

    `layers`: the maps of the layers; `embeddings`: all tables; `all`: these and every other map,
    such as that of the pooler. The head is no part of the base model.
    """
    if which not in MAPS:
        raise BertologyError(f"maps must be one of {', '.join(MAPS)}, not {which!r}.")
    if ADAPTERS in added_parts(model.config):
        raise CapabilityError(
            "A model with adapters cannot be compressed: they hang on the maps that would go.",
            hint="Begin with a model without them.",
        )
    for name, module in model.base_model.named_modules():
        is_map = type(module) is nn.Linear
        is_table = type(module) is nn.Embedding or (
            isinstance(module, nn.Embedding) and type(module).forward is nn.Embedding.forward
        )
        inside = layer_of(model, name) is not None
        wanted = {"all": is_map or is_table, "layers": is_map and inside, "embeddings": is_table}
        if wanted[which]:
            yield name, module


def layer_of(model: Any, name: str) -> int | None:
    """The layer whose part a module of the base model is; None outside of the layers."""
    family = family_of(model.config.model_type)
    for stack in family.stacks.values():
        before, _, _ = stack.block.partition("{")
        number, _, _ = name.removeprefix(before).partition(".")
        if name.startswith(before) and number.isdigit():
            return int(number)
    return None


def put_module(model: Any, name: str, new: nn.Module) -> None:
    """Another module in the place of one of the base model's."""
    home, _, last = name.rpartition(".")
    parent = model.base_model.get_submodule(home)
    new.train(parent.training)
    setattr(parent, last, new)


def module_at(model: Any, name: str) -> nn.Linear | nn.Embedding:
    """A map or table in full that a config names, or an error about the config."""
    try:
        module = model.base_model.get_submodule(name)
    except AttributeError:
        raise misfit(f"there is no module {name!r}") from None
    if not isinstance(module, nn.Linear | nn.Embedding):
        raise misfit(f"{name!r} is a {type(module).__name__}, no linear map or table")
    return module


def check_tables(model: Any, names: list[str]) -> None:
    """Refuse to change a table of embeddings that a head for words uses as well."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if head is None or getattr(head, "weight", None) is None:
        return
    for name in names:
        if module_at(model, name).weight is head.weight:
            raise CapabilityError(
                "The head for masked words shares its weights with the table of embeddings, which "
                "cannot be compressed then.",
                hint="Compress a classifier, or leave out the embeddings: maps='layers'.",
            )
