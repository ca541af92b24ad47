"""How deep weights lie: in what comes before the layers, in one of them, or after them.

Every weight has a place. A layer is all that the family's row names of it: XLM has the parts of a
layer in four lists. After the layers come the pooler, the last norm, what reads layers for a head,
and all that is outside of the body. The rest of the body is the input part: embeddings with their
norms and maps, and tables of relative positions that all layers look into.
"""

from __future__ import annotations

from torch import nn

from bertology.errors import CapabilityError
from bertology.model.added_parts import READER
from bertology.model.compressed.early_exit import EXITS
from bertology.model.encoder import Encoder
from bertology.model.families import Stack

INPUT = 0  # the depth of the input part; layers are 1 to L, and what comes after them L + 1
_LIKE_BERT = "Take a model whose layers have weights of their own, such as BERT."


def weight_depths(encoder: Encoder) -> dict[str, int]:
    """The depth of each weight, by its name in `encoder.model`.

    A CapabilityError where layers share their weights, and where there are other lists of layers
    (a decoder) that are no layers of the encoder.
    """
    title = encoder.family.title
    if encoder.shares_layers:
        raise CapabilityError(
            f"The layers of {title} share their weights, so none can be treated apart.",
            hint=_LIKE_BERT,
        )
    layers, config = encoder.shape.layers, encoder.config
    roots = _roots(encoder.family.stacks[encoder.family.main_stack])
    places = {
        f"{encoder.family.path(root, config, layer)}.": layer + 1
        for layer in range(layers)
        for root in roots
    }
    found = {}
    for name, weight in encoder.base.named_parameters():
        inside = [depth for place, depth in places.items() if name.startswith(place)]
        if not inside and not _is_after(name, encoder.family.final_norm):
            _check_no_list(name, title)
            inside = [INPUT]
        found[id(weight)] = inside[0] if inside else layers + 1
    return {n: found.get(id(w), layers + 1) for n, w in encoder.model.named_parameters()}


def layer_modules(encoder: Encoder) -> list[nn.Module]:
    """The module of each layer; a CapabilityError where a layer is not one module."""
    stack, depths = encoder.family.stacks[encoder.family.main_stack], weight_depths(encoder)
    found = [encoder.module(stack.block, layer) for layer in range(encoder.shape.layers)]
    inside = {id(weight) for module in found for weight in module.parameters()}
    weights = dict(encoder.model.named_parameters())
    deep = (n for n, depth in depths.items() if INPUT < depth <= len(found))
    if outside := [n for n in deep if id(weights[n]) not in inside]:
        raise CapabilityError(
            f"A layer of {encoder.family.title} is not one module ({outside[0]} lies beside it), "
            "so that no layer can be left out.",
            hint="Take a model whose layers are modules, such as BERT.",
        )
    return found


def _roots(stack: Stack) -> list[str]:
    """What a layer is made of: paths of all of its parts, as far as they name the layer."""
    parts = (stack.block, stack.attention, stack.projection, stack.mlp, stack.mlp_up, stack.exit)
    found = dict[str, None]()
    for template in (*parts, *stack.norms.values()):
        if template is not None:
            names = template.split(".")
            numbered = [at for at, name in enumerate(names) if "{" in name]
            found[".".join(names[: max(numbered, default=len(names)) + 1])] = None
    return list(found)


def _is_after(name: str, final_norm: str | None) -> bool:
    """Whether a weight of the body that is in no layer comes after them."""
    names = name.split(".")
    after = "pooler" in names or READER in names or EXITS in names
    return after or (final_norm is not None and name.startswith(f"{final_norm}."))


def _check_no_list(name: str, title: str) -> None:
    if any(part.isdigit() for part in name.split(".")):
        raise CapabilityError(
            f"{title} has more than the layers of its encoder ({name}), so that it cannot be said "
            "how deep each weight lies.",
            hint="Take a model that is an encoder alone, such as BERT.",
        )
