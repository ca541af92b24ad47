"""All forms of smaller models by name, and how large a model is in its file.

A form is one module here. It changes a model in place and notes in the config what it did
(`written.py`); its `put_in` builds the same again, without weights, when a model is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bertology.errors import CapabilityError
from bertology.model import added_parts
from bertology.model.compressed import (
    early_exit,
    eliminated_tokens,
    low_rank,
    quantised,
    shared_layers,
)
from bertology.model.compressed.quantised_maps import Quantised, QuantisedLinear
from bertology.model.compressed.written import misfit, written_forms

_FORMS: Mapping[str, Callable[..., None]] = {
    low_rank.FORM: low_rank.put_in,
    quantised.FORM: quantised.put_in,
    shared_layers.FORM: shared_layers.put_in,
    eliminated_tokens.FORM: eliminated_tokens.put_in,
    early_exit.FORM: early_exit.put_in,
}
_ALONE = (shared_layers.FORM, eliminated_tokens.FORM, early_exit.FORM)  # only one of these
PARTIAL = (eliminated_tokens.FORM, early_exit.FORM)  # layers that see only some of the batch


def compressed_forms(config: object) -> list[str]:
    """The names of the forms that a model has, in the order of their application."""
    names = [one["form"] for one in written_forms(config)]
    for name in names:
        if name not in _FORMS:
            raise misfit(f"there is no form {name!r:.60}", hint=f"Forms: {', '.join(_FORMS)}.")
    return names


def put_in_forms(model: Any) -> None:
    """Give a model that was just made the forms that its config names, without their weights."""
    partial = [name for name in compressed_forms(model.config) if name in _ALONE]
    if len(partial) > 1:
        raise misfit(f"{' and '.join(partial)} do not go together")
    for options in written_forms(model.config):
        name = options.pop("form")
        try:
            _FORMS[name](model, **options)
        except TypeError as error:
            raise misfit(f"{name} has no such options {options!r:.80}") from error


def check_one_pass(config: object) -> None:
    """Refuse to look into a model whose layers do not all see the same tokens, and all of them."""
    added_parts.check_one_pass(config)
    partial = [name for name in compressed_forms(config) if name in PARTIAL]
    if partial:
        raise CapabilityError(
            f"A model with {partial[0].replace('_', ' ')} does not compute every token in every "
            "layer, so there is nothing to look at in some of them.",
            hint="It can be scored: bertology score.",
        )


def make_weights(model: Any) -> None:
    """Make the weights of all packed maps, which no tracing of the model needs to unpack then.

    What is asked of numbers, such as whether a range is known, is answered here, too.
    """
    for module in model.modules():
        if isinstance(module, Quantised):
            module.weight  # noqa: B018 - kept by the module
        if isinstance(module, QuantisedLinear):
            module.span()


def parameters(model: Any) -> int:
    """How many numbers a model is made of: packed ones one by one, shared ones once."""
    plain = sum(p.numel() for p in model.parameters())
    packed = sum(m.numbers for m in model.modules() if isinstance(m, Quantised))
    return int(plain + packed)


def nonzero_parameters(model: Any) -> int:
    """The same without the zeros in matrices, whether they are stored as floats or packed."""
    zeros = sum(int((p == 0).sum()) for p in model.parameters() if p.dim() > 1)
    zeros += sum(m.zeros for m in model.modules() if isinstance(m, Quantised))
    return parameters(model) - zeros


def stored_bytes(model: Any) -> int:
    """The bytes of all tensors as they lie in the file; what is shared lies there once."""
    sizes = {}
    for tensor in model.state_dict().values():
        sizes[tensor.data_ptr() or id(tensor)] = tensor.numel() * tensor.element_size()
    return sum(sizes.values())
