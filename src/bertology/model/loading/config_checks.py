"""What a config.json and a tokenizer must be like, checked before any library trusts them.

transformers would build five million layers one after another, divide by no heads, or look up a
token outside the table of embeddings.
"""

from __future__ import annotations

from pathlib import Path

from bertology.errors import ModelError
from bertology.model.families import Family
from bertology.model.protocols import ModelConfig, PretrainedModel, Tokenizer
from bertology.plain_files import read_json

_MOST_LAYERS = 1000
_MOST = 10**7  # of any other size: width, heads, pieces of the vocabulary, positions


def check_config(name: str, folder: Path) -> None:
    """Refuse a folder whose config.json is not a mapping with the name of a family."""
    config = read_json(folder / "config.json", error=ModelError)
    if not isinstance(config, dict):
        raise ModelError(f"The config.json of {name!r} is no mapping of fields to values.")
    if not isinstance(config.get("model_type", ""), str):
        raise ModelError(
            f"The config.json of {name!r} does not say which family the model is of.",
            hint='Write a line such as "model_type": "bert".',
        )


def check_sizes(name: str, config: ModelConfig, family: Family) -> None:
    """Refuse sizes that no model has."""
    sizes: dict[str, int] = dict.fromkeys(("hidden_size", "vocab_size"), _MOST)
    sizes["max_position_embeddings"] = _MOST
    for stack in family.stacks.values():
        sizes |= {stack.layers: _MOST_LAYERS, stack.heads: _MOST}
        if stack.mlp_size:
            sizes[stack.mlp_size] = _MOST
    for field, most in sizes.items():
        value = getattr(config, field, None)
        if value is None and field in ("max_position_embeddings", *_optional(family)):
            continue
        least = -1 if field == "max_position_embeddings" else 1
        if type(value) is not int or not least <= value <= most:
            raise ModelError(
                f"The config.json of {name!r} says {field} = {value!r:.60}.",
                hint=f"It must be a whole number, at least 1 and at most {most:,}.",
            )
    heads = getattr(config, family.stacks[family.main_stack].heads)
    own_size = any(hasattr(config, n) for n in ("d_kv", "d_head", "true_hidden_size"))
    if getattr(config, "hidden_size") % heads and not own_size:  # noqa: B009 - not in the protocol
        raise ModelError(f"The hidden_size of {name!r} is no multiple of its number of heads.")


def _optional(family: Family) -> set[str]:
    return {stack.mlp_size for stack in family.stacks.values() if stack.mlp_size}


def check_tokenizer(name: str, tokenizer: Tokenizer, model: PretrainedModel) -> None:
    """Refuse a tokenizer with pieces, or special tokens, whose numbers have no embedding."""
    pieces = tokenizer.get_vocab().values()
    check_pieces(name, max([*pieces, *tokenizer.all_special_ids], default=0), model)


def check_weights(name: str, model: PretrainedModel) -> None:
    """Refuse weights that are no numbers: all that is measured with them would be none."""
    for weight, values in model.state_dict().items():
        usual = values.is_floating_point() and values.element_size() > 1  # not those in 8 bits
        if usual and not values.isfinite().all():
            raise ModelError(
                f"{name!r} cannot be used: its weight {weight} holds values that are no numbers "
                "(NaN) or infinite.",
                hint="Its training diverged, or the file was damaged. Take an earlier checkpoint.",
            )


def check_pieces(name: str, largest: int, model: PretrainedModel) -> None:
    """Refuse pieces for which the model has no embedding."""
    rows = int(model.get_input_embeddings().num_embeddings)
    if largest >= rows:
        raise ModelError(
            f"The tokenizer of {name!r} has a piece with the number {largest}, and the model has "
            f"embeddings for 0 to {rows - 1} only.",
            hint="Tokenizer and weights are not of the same model: copy both from one place.",
        )
