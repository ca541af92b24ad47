"""What the masked-language-model head would say of the states of any layer.

`LogitLens` gives the head a layer's states as they are (nostalgebraist 2020); `AffineLens` first
maps them to where the last layer's states lie, by a map that was fitted to text
(`train/lenses.py`). On the last layer both are the model itself.

The head is called through the model's own forward method, with given states in place of what the
layers compute. So every family's head works, whatever it is made of.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from bertology.drafts import make_readable
from bertology.errors import ModelError
from bertology.model.hooks.instrument import standing_in, swapped_weights
from bertology.model.hooks.walking import submodule
from bertology.model.weight_edits import WeightEdit

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.model.site_context import SiteContext

LENSES = ("logit", "affine")


class Lens(Protocol):
    """Brings the states of a layer to where the head reads."""

    def __call__(self, layer: int, states: Tensor) -> Tensor:
        """(…, M) of this layer, as the head is to read them."""
        ...


@dataclass(frozen=True)
class LogitLens:
    """States as they are."""

    def __call__(self, layer: int, states: Tensor) -> Tensor:
        """The same states."""
        return states


@dataclass(frozen=True, eq=False)
class AffineLens:
    """An affine map for each layer; that of the last one changes nothing."""

    weight: Tensor  # (L, M, M)
    bias: Tensor  # (L, M)
    fingerprint: str  # of the model that it was fitted to

    def __call__(self, layer: int, states: Tensor) -> Tensor:
        """The states that the last layer would have, as far as an affine map can tell."""
        if layer == len(self.weight) - 1:
            return states
        weight, bias = (of[layer].to(states) for of in (self.weight, self.bias))
        return states @ weight + bias

    def check(self, encoder: Encoder) -> None:
        """Refuse a model that the lens was not fitted to."""
        if self.fingerprint != encoder.fingerprint:
            raise ModelError(
                f"This lens was fitted to another model than {encoder.name!r}.",
                hint="Fit one to this model: bertology.train.lenses.fit_lens(encoder, texts).",
            )

    def save(self, path: Path) -> None:
        """Write it as safetensors."""
        from safetensors.torch import save_file

        tensors = {"weight": self.weight.contiguous(), "bias": self.bias.contiguous()}
        save_file(tensors, path, metadata={"model": self.fingerprint})
        make_readable(path)

    @classmethod
    def load(cls, path: Path) -> AffineLens:
        """Read one that was saved."""
        from safetensors import safe_open

        with safe_open(path, framework="pt") as found:
            return cls(
                found.get_tensor("weight"), found.get_tensor("bias"), found.metadata()["model"]
            )


class StatesAt:
    """A reducer: the states after each layer at some places (B, K) of each text."""

    def __init__(self, places: Tensor) -> None:
        self._rows, self._places = torch.arange(len(places))[:, None], places
        self.found: dict[int, Tensor] = {}  # by layer, (B, K, M)

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Keep what is at these places."""
        where = value.device
        self.found[at.layer] = value[self._rows.to(where), self._places.to(where)]

    def value(self) -> Tensor:
        """(L, B, K, M)."""
        return torch.stack([self.found[layer] for layer in sorted(self.found)])


def head_logits(encoder: Encoder, states: Tensor) -> Tensor:
    """What the head says of states (N, M), as the layers give them: (N, V)."""
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    path = encoder.family.final_norm
    with encoder.turn(), torch.no_grad(), ExitStack() as undo:
        for change in encoder.standing:
            if isinstance(change, WeightEdit):
                undo.enter_context(swapped_weights(encoder.model, change.weights(encoder)))
        given = states if path is None else submodule(encoder.base, path)(states)
        out = BaseModelOutputWithPooling(last_hidden_state=given[:, None], pooler_output=given)
        undo.enter_context(standing_in(encoder.base, {"forward": lambda *a, **k: out}))
        blank = torch.zeros((len(given), 1), dtype=torch.long, device=given.device)
        found = encoder.model(input_ids=blank, attention_mask=torch.ones_like(blank))
    for name in ("logits", "prediction_logits"):
        logits = getattr(found, name, None)
        if isinstance(logits, Tensor):
            return logits.reshape(len(given), -1)
    raise ModelError(f"{encoder.name!r} ({type(encoder.model).__name__}) predicts no tokens.")
